//! The HTTPS server: listener, routes, probes, start and shutdown; and what it needs to run for months: [`files`] that are
//! read again when they change, and [`telemetry`].
//!
//! A request passes `listener` → `connection` → `routes` → `body` → [`admit`](statusgate_core::admit) → `observe`.
//! The probe port opens first, so that `/readyz` lists what is missing. Then come policies,
//! certificate and listener; an error in one of them ends the start. `drain` shuts the server down.
//!
//! It decides nothing about a review, knows no cluster, and on the path of a review of an object it waits for no lock, file or log.
//! Begin with [`start`], then `routes`.
//!
//! ```no_run
//! # async fn example() -> Result<(), statusgate_server::StartError> {
//! use statusgate_server::{CertificateSource, ServerSettings};
//!
//! let running = statusgate_server::start(&ServerSettings::new(CertificateSource::SelfSigned))?;
//! println!("serving https://{}/validate", running.address());
//! running.shutdown().signal();
//! running.ended().await;
//! # Ok(())
//! # }
//! ```

mod activity;
mod answer;
mod body;
mod budget;
mod connection;
mod drain;
pub mod files;
mod handshake;
mod inputs;
mod listener;
mod observe;
mod policies;
mod probe_port;
mod rejection;
mod reload;
mod routes;
mod settings;
pub mod telemetry;
mod trees;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use jiff::Timestamp;
use thiserror::Error;
use tokio::sync::mpsc;
use tokio::task::{JoinSet, spawn_blocking};

use self::body::BodyLimits;
use self::budget::Budget;
use self::connection::{Connections, Transport};
use self::drain::Lifecycle;
use self::handshake::HandshakeLog;
use self::inputs::Inputs;
use self::listener::Listener;
use self::routes::Handler;
use self::trees::TreeMemory;
use crate::telemetry::{Metrics, Scrape, traces};
use statusgate_core::policy::{Diagnostics, Source};
use statusgate_tls::{CertificateError, ServerTls};

pub use self::drain::{End, Stage};
pub use self::policies::PolicyStore;
pub use self::probe_port::{ProbePort, Readiness};
pub use self::routes::DocumentReview;
pub use self::settings::{BODY_BYTES, CertificateSource, Limits, ServerSettings};

/// The error of documents without a policy.
pub const NO_POLICY: &str = "--policies names no StatusPolicy: nothing would be judged";

/// Starts serving. Returns when the server is ready. Requires a tokio runtime.
///
/// # Errors
/// Invalid policies, certificate or client CA, or a port that cannot be bound.
pub fn start(settings: &ServerSettings) -> Result<Running, StartError> {
    let opening = Opening::of(settings)?;
    let files =
        files::load_policies_or_examples(&settings.policies).map_err(StartError::BrokenPolicies)?;
    let policies = opening.policies(files)?;
    if policies.current().policies().is_empty() {
        return Err(StartError::NoPolicy);
    }
    opening.start(settings, &policies, None)
}

/// Starts serving other routes with the same listener, limits, TLS and shutdown, and without
/// policies: for the null server of the benchmark and for tests.
///
/// # Errors
/// As for [`start`].
pub fn start_with_router(settings: &ServerSettings, router: Router) -> Result<Running, StartError> {
    Opening::of(settings)?.listen(settings, Inputs::default(), router)
}

/// A server that answers probes, and is not ready yet. Dropping it closes the port.
#[derive(Debug)]
pub struct Opening {
    metrics: Arc<Metrics>,
    readiness: Readiness,
    probes: ProbePort,
}

impl Opening {
    /// Opens the probe port.
    ///
    /// # Errors
    /// A port that cannot be bound.
    pub fn of(settings: &ServerSettings) -> Result<Self, StartError> {
        let &ServerSettings { probe_listen, reuse_port, ref lost_lines, .. } = settings;
        let metrics = Arc::new(Metrics::new(lost_lines.clone()));
        let readiness = Readiness::blocked_by([NO_POLICIES, NO_CERTIFICATE, NOT_LISTENING]);
        let scrape: Arc<dyn Scrape> = Arc::<Metrics>::clone(&metrics);
        let probes = ProbePort::open(probe_listen, reuse_port, readiness.clone(), scrape)?;
        Ok(Self { metrics, readiness, probes })
    }

    /// The metrics of the server.
    pub const fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// Compiles the policies of files.
    ///
    /// # Errors
    /// Invalid policies.
    pub fn policies(&self, files: Vec<Source>) -> Result<PolicyStore, StartError> {
        let store = PolicyStore::new(files, &self.metrics).map_err(StartError::BrokenPolicies)?;
        policies::log_skipped(&store.current());
        self.metrics.reloaded(inputs::POLICIES, now().as_second());
        Ok(store)
    }

    /// Starts serving. `documents` reviews the documents of statusgate itself.
    ///
    /// # Errors
    /// An invalid certificate or client CA, or a port that cannot be bound.
    pub fn start(
        self,
        settings: &ServerSettings,
        policies: &PolicyStore,
        documents: Option<DocumentReview>,
    ) -> Result<Running, StartError> {
        let limits = &settings.limits;
        let mut inputs = Inputs::default();
        inputs.policies(&settings.policies, policies);
        inputs.definitions(&settings.crds, policies)?;
        let router = routes::router(Arc::new(Handler {
            snapshot: Arc::clone(&policies.snapshot),
            metrics: Arc::clone(&self.metrics),
            in_flight: Budget::new(limits.max_in_flight),
            bodies: BodyLimits {
                bytes: limits.body_bytes,
                held: Budget::new(limits.held_bytes),
                timeout: limits.body_timeout,
            },
            documents,
            tracer: settings.traces.as_ref().map(traces::tracer),
            trees: TreeMemory::new(limits.tree_bytes, limits.tree_timeout),
        }));
        self.listen(settings, inputs, router)
    }

    fn listen(
        self,
        settings: &ServerSettings,
        mut inputs: Inputs,
        router: Router,
    ) -> Result<Running, StartError> {
        let &ServerSettings { listen, reuse_port, grace, drain_timeout, .. } = settings;
        let Self { metrics, readiness, probes } = self;
        let probe_address = probes.address;
        let limits = &settings.limits;
        readiness.unblock(NO_POLICIES);
        inputs.log(settings, &metrics, now());
        let tls = inputs.tls(settings, &metrics, now())?;
        readiness.unblock(NO_CERTIFICATE);

        let (lifecycle, stage) = Lifecycle::new();
        let connections = Connections {
            transport: Transport::Tls {
                tls: Arc::clone(&tls),
                metrics: Arc::clone(&metrics),
                failures: HandshakeLog::default(),
            },
            router,
            stage: stage.clone(),
            handshake_timeout: limits.handshake_timeout,
            head_timeout: limits.head_timeout,
            idle_timeout: limits.idle_timeout,
            keep_alive: true,
        };
        let listener =
            Listener::bind(listen, reuse_port, limits.max_connections, Arc::new(connections))?;
        let address = listener.address;
        let mut listening = JoinSet::new();
        listening.spawn(listener.run());
        let mut watching = JoinSet::new();
        watching.spawn(inputs.watch(settings.reload_every, Arc::clone(&metrics), stage));
        let traces = settings.traces.clone();
        readiness.unblock(NOT_LISTENING);
        let policies = metrics.server.policies.get();
        tracing::info!(%address, %probe_address, policies, "listening");

        // From here on, `Running` owns one task that owns everything else.
        let (signal, signals) = mpsc::unbounded_channel();
        let mut server = JoinSet::new();
        server.spawn(async move {
            let listened = async { while listening.join_next().await.is_some() {} };
            let run = lifecycle.run(signals, listened, grace, drain_timeout, |stage| {
                if stage == Stage::Unready {
                    readiness.block("shutting down");
                }
                tracing::info!(?stage, "shutting down");
            });
            let end = run.await;
            watching.shutdown().await;
            if let Some(traces) = traces {
                // It blocks, and the runtime has to send the requests.
                let _ = spawn_blocking(move || traces.shutdown_with_timeout(EXPORT_TIMEOUT)).await;
            }
            probes.close().await;
            end
        });
        Ok(Running { address, probe_address, tls, signal, server })
    }
}

/// The current time. Everything else takes it as an argument.
#[expect(clippy::disallowed_methods, reason = "this is the edge where time enters")]
pub fn now() -> Timestamp {
    Timestamp::now()
}

/// The time for the last spans at the end.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(2);

/// The reasons of `/readyz` before the server is ready.
const NO_POLICIES: &str = "the policies are not loaded";
const NO_CERTIFICATE: &str = "the certificate is not loaded";
const NOT_LISTENING: &str = "the server is not listening";

/// A running server. Dropping it stops the server immediately.
#[derive(Debug)]
pub struct Running {
    address: SocketAddr,
    probe_address: SocketAddr,
    tls: Arc<ServerTls>,
    signal: mpsc::UnboundedSender<()>,
    server: JoinSet<End>,
}

impl Running {
    /// The address of the webhooks, with the real port if port 0 was requested.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address of the probes.
    pub fn probe_address(&self) -> SocketAddr {
        self.probe_address
    }

    /// The serving certificate, which can be replaced.
    pub const fn tls(&self) -> &Arc<ServerTls> {
        &self.tls
    }

    /// A handle that shuts the server down.
    pub fn shutdown(&self) -> Shutdown {
        Shutdown(self.signal.clone())
    }

    /// Waits until the server has ended.
    pub async fn ended(mut self) -> End {
        match self.server.join_next().await {
            Some(Ok(end)) => end,
            _ => End::Cut,
        }
    }
}

/// Shuts a server down.
#[derive(Clone, Debug)]
pub struct Shutdown(mpsc::UnboundedSender<()>);

impl Shutdown {
    /// Has the effect of SIGTERM: the first signal begins the grace time, the second skips it, and
    /// the third does not wait for requests.
    pub fn signal(&self) {
        // An error means that the server has ended.
        let _ = self.0.send(());
    }
}

/// An error at the start of a server.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// The port cannot be bound.
    #[error("failed to listen on {address}")]
    FailedListen {
        /// The requested address.
        address: SocketAddr,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// Policies or definitions that cannot be read, or are wrong. The text has all mistakes with file, line and caret.
    #[error("{0}")]
    BrokenPolicies(Diagnostics),
    /// The files of `--crds` hold no definition.
    #[error("--crds names no CustomResourceDefinition")]
    NoDefinition,
    /// The documents hold no policy, and the cluster gives none.
    #[error("{NO_POLICY}")]
    NoPolicy,
    /// A certificate, key or CA file cannot be read.
    #[error("failed to read {name}")]
    FailedReadFile {
        /// The file.
        name: String,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// A certificate, key or CA file is invalid, or the certificate for `--self-signed` cannot be
    /// created.
    #[error(transparent)]
    BadCertificate(#[from] CertificateError),
    /// The TLS library rejects its configuration.
    #[error("failed to configure TLS")]
    FailedConfigureTls(#[source] rustls::Error),
}
