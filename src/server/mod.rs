//! The HTTPS edge: listener, routes, probes, and the life of the process around them.
//!
//! Start order: the probe port first, so that whoever asks is told what is still missing; then
//! policies, certificate and port, anything wrong with which ends the start; then readiness. The
//! end is in `drain`.
//!
//! ```no_run
//! # async fn example() -> Result<(), statusgate::server::StartError> {
//! use statusgate::server::{CertificateSource, Server, Settings};
//!
//! let running = Server::start(Settings::new(CertificateSource::SelfSigned)).await?;
//! println!("reviews at https://{}/validate", running.address());
//! running.shutdown().signal();
//! running.ended().await;
//! # Ok(())
//! # }
//! ```

pub mod admit;
mod body;
mod budget;
mod clock;
mod connection;
mod drain;
mod handshake;
mod inputs;
mod listener;
mod observe;
mod probe_port;
mod probes;
mod pulse;
mod readiness;
mod refusal;
mod reload;
mod routes;
mod settings;
mod snapshot;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use thiserror::Error;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use self::body::BodyLimits;
use self::budget::Budget;
use self::connection::{Connections, Transport};
use self::drain::{Conductor, StageWatch};
use self::handshake::HandshakeLog;
use self::inputs::Inputs;
use self::listener::Listener;
use self::probe_port::Probes;
use self::readiness::Readiness;
use self::routes::Edge;
use crate::policy::Diagnostics;
use crate::telemetry::Metrics;
use crate::tls::{BundleError, IssueError};

pub use self::drain::{End, Stage};
pub use self::probe_port::ProbePort;
pub use self::reload::ReadError;
pub use self::settings::{CertificateSource, Limits, Settings};

/// The webhook server.
#[derive(Debug)]
pub struct Server;

impl Server {
    /// Starts serving. Returns once clients are answered and `/readyz` says so.
    ///
    /// # Errors
    /// Whatever is wrong with policies, certificate, client CA or ports.
    pub async fn start(settings: Settings) -> Result<Running, StartError> {
        Start::new(settings)?.serve(None)
    }

    /// Starts serving other routes over the same listener, limits, TLS and drain: the null server
    /// of the benchmark, and tests of the edge itself. Policies are not read.
    ///
    /// # Errors
    /// As for [`Server::start`].
    pub async fn start_with_router(
        settings: Settings,
        router: Router,
    ) -> Result<Running, StartError> {
        Start::new(settings)?.serve(Some(router))
    }
}

/// A server on its way up: the probe port is bound and answered.
struct Start {
    settings: Settings,
    metrics: Arc<Metrics>,
    readiness: Readiness,
    probes: Probes,
}

impl Start {
    fn new(settings: Settings) -> Result<Self, StartError> {
        let metrics = Arc::new(Metrics::new(settings.dropped_lines.clone()));
        let readiness = Readiness::default();
        let (address, reuse_port) = (settings.probe_listen, settings.reuse_port);
        let scraped = Arc::clone(&metrics);
        let probes = Probes::open(address, reuse_port, readiness.clone(), scraped)?;
        Ok(Self { settings, metrics, readiness, probes })
    }

    fn serve(self, router: Option<Router>) -> Result<Running, StartError> {
        let Self { settings, metrics, readiness, probes } = self;
        let probe_address = probes.address();
        let now = clock::now();
        let policies_gate = readiness.gate("the policies are not loaded");
        let certificate_gate = readiness.gate("the certificate is not loaded");
        let listening_gate = readiness.gate("not listening yet");

        let mut inputs = Inputs::default();
        let router = match router {
            Some(router) => router,
            None => routes::router(Arc::new(Edge {
                snapshot: inputs.policies(&settings, &metrics, now)?,
                metrics: Arc::clone(&metrics),
                in_flight: Budget::new(settings.limits.max_in_flight),
                bodies: BodyLimits {
                    bytes: settings.limits.body_bytes,
                    held: Budget::new(settings.limits.held_bytes),
                    timeout: settings.limits.body_timeout,
                },
                large: Arc::default(),
            })),
        };
        policies_gate.open();
        let tls = inputs.tls(&settings, &metrics, now)?;
        certificate_gate.open();

        let (conductor, stage) = Conductor::new();
        let connections = Connections {
            transport: Transport::Tls {
                tls,
                metrics: Arc::clone(&metrics),
                failures: HandshakeLog::new(),
            },
            router,
            stage: stage.clone(),
            handshake_timeout: settings.limits.handshake_timeout,
            head_timeout: settings.limits.head_timeout,
            idle_timeout: settings.limits.idle_timeout,
        };
        let (listener, address) = bind(
            settings.listen,
            settings.reuse_port,
            settings.limits.max_connections,
            Arc::new(connections),
        )?;
        let mut listening = JoinSet::new();
        listening.spawn(listener.run());
        let mut watching = JoinSet::new();
        watching.spawn(watch(inputs, &settings, &metrics, stage));
        listening_gate.open();
        let policies = metrics.policies.get();
        tracing::info!(%address, %probe_address, policies, "listening");

        // From here on everything that runs is owned by one task, and that by `Running`.
        let (signal, signals) = mpsc::unbounded_channel();
        let mut whole = JoinSet::new();
        whole.spawn(async move {
            let listened = async { while listening.join_next().await.is_some() {} };
            let entered = |stage| {
                if stage == Stage::Unready {
                    readiness.close("shutting down");
                }
                tracing::info!(?stage, "shutting down");
            };
            let Settings { grace, drain_timeout, .. } = settings;
            let end = conductor.conduct(signals, listened, grace, drain_timeout, entered).await;
            watching.shutdown().await;
            probes.close().await;
            end
        });
        Ok(Running { address, probe_address, metrics, signal, whole })
    }
}

fn bind(
    address: SocketAddr,
    reuse_port: bool,
    max_connections: usize,
    connections: Arc<Connections>,
) -> Result<(Listener, SocketAddr), StartError> {
    let failed = |source| StartError::FailedListen { address, source };
    let listener =
        Listener::bind(address, reuse_port, max_connections, connections).map_err(failed)?;
    let address = listener.address().map_err(failed)?;
    Ok((listener, address))
}

fn watch(
    inputs: Inputs,
    settings: &Settings,
    metrics: &Arc<Metrics>,
    stage: StageWatch,
) -> impl Future<Output = ()> + use<> {
    inputs.watch(settings.reload_every, Arc::clone(metrics), stage)
}

/// A server that runs. Dropping it stops it at once, without a drain.
#[derive(Debug)]
pub struct Running {
    address: SocketAddr,
    probe_address: SocketAddr,
    metrics: Arc<Metrics>,
    signal: mpsc::UnboundedSender<()>,
    whole: JoinSet<End>,
}

impl Running {
    /// Where reviews are answered; the real port, where 0 was asked for.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where probes are answered.
    #[must_use]
    pub fn probe_address(&self) -> SocketAddr {
        self.probe_address
    }

    /// What it counts.
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// A handle to end it.
    #[must_use]
    pub fn shutdown(&self) -> Shutdown {
        Shutdown(self.signal.clone())
    }

    /// Waits for its end.
    pub async fn ended(mut self) -> End {
        match self.whole.join_next().await {
            Some(Ok(end)) => end,
            _ => End::Cut,
        }
    }
}

/// Ends a server, from anywhere.
#[derive(Clone, Debug)]
pub struct Shutdown(mpsc::UnboundedSender<()>);

impl Shutdown {
    /// As SIGTERM does: the first begins the grace time, the second skips it, the third does not
    /// wait for requests either.
    pub fn signal(&self) {
        // Nobody there to hear it means that it has ended.
        let _ = self.0.send(());
    }
}

/// Why a server did not start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// A port that cannot be bound.
    #[error("failed to listen on {address}")]
    FailedListen {
        /// As asked for.
        address: SocketAddr,
        /// What the system says.
        source: std::io::Error,
    },
    /// Policies that cannot be read, or are wrong. The text has all mistakes with file, line and caret.
    #[error("{0}")]
    BrokenPolicies(Diagnostics),
    /// A certificate, key or CA file that cannot be read.
    #[error(transparent)]
    FailedReadFile(#[from] ReadError),
    /// A certificate, key or CA file that is wrong.
    #[error(transparent)]
    BadCertificate(#[from] BundleError),
    /// No certificate for `--self-signed`.
    #[error(transparent)]
    FailedIssue(#[from] IssueError),
    /// The TLS library refuses its configuration.
    #[error("failed to configure TLS")]
    FailedConfigureTls(#[source] rustls::Error),
}
