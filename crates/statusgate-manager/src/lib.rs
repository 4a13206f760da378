//! Long-term operation of a running server: its policies, certificates and registrations in the cluster.
//!
//! Each part is a pure function from what the cluster holds to the next step, and a loop that performs
//! this step. No part calls the API server on the path of a request, decides about a review of an object, or needs a leader: each step is
//! safe to repeat. The parts share what they know through an [`exchange::Exchange`]. Begin with [`Manager::start`].
//!
//! ```text
//! StatusPolicies, StatusConventions ─► documents (registry) ─► PolicyStore ─► requests
//!                                         │ policies               ▲ conditions ─► their status
//!                                         ▼                        │ coverage, replicas
//! CRDs, registrations ─► registrations (steps) ─► rules, caBundles ┤
//!                             ▲ authorities   │ caBundles          │
//! Secret ─► certificates (tls::rotation) ◄────┘ ─► ServerTls
//!                             ▲ replicas
//! Leases ─► replicas ─────────┴────────────────────────────────────┘
//! ```

pub mod certificates;
pub mod conditions;
mod context;
pub mod documents;
pub mod exchange;
mod options;
pub mod registrations;
pub mod registry;
pub mod replicas;
pub mod review;
mod writes;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use self::certificates::Certificates;
use self::context::Trouble;
use self::documents::Documents;
use self::exchange::Exchange;
use self::registrations::Registrar;
use self::replicas::Replicas;
use statusgate_cluster::{Cluster, ClusterError};
use statusgate_server::{
    CertificateSource, Opening, PolicyStore, Running, ServerSettings, StartError,
};

pub use self::context::Context;
pub use self::options::{ManagerOptions, host_name};

/// The managed parts of a running server. Dropping it stops them.
pub struct Manager {
    tasks: JoinSet<()>,
    replicas: Option<Replicas>,
}

impl Manager {
    /// Reads the policies of the cluster, gets a certificate, starts the server and keeps its managed parts
    /// up to date. Waits until the API server is available: a server without its policies would accept
    /// everything.
    ///
    /// # Errors
    /// As for [`Opening::start`].
    pub async fn start(
        cluster: Cluster,
        options: ManagerOptions,
        opening: Opening,
        mut settings: ServerSettings,
        policies: &PolicyStore,
        clock: fn() -> Timestamp,
    ) -> Result<(Running, Self), StartError> {
        let context = Context {
            cluster,
            options: Arc::new(options),
            store: policies.clone(),
            exchange: Arc::new(Exchange::new(policies.published().clone())),
            metrics: Arc::clone(opening.metrics()),
            clock,
        };
        let (mut documents, mut certificates) = (None, None);
        if context.options.watch_policies {
            let context = context.counting("documents");
            documents = Some(Documents::first(context).await);
        }
        if context.options.manage_certificates {
            let (managed, bundle) = Certificates::first(context.counting("certificates")).await;
            settings.certificate = CertificateSource::Given(bundle);
            certificates = Some(managed);
        }
        let registrar = Registrar(context.counting("registrations"));
        if context.options.manage_webhooks {
            registrar.replace_old().await;
        }
        let review = documents.as_ref().map(|it| review::reviewer(it.shared(), policies.clone()));
        let running = opening.start(&settings, policies, review)?;
        let mut tasks = JoinSet::new();
        let keeps_lease = certificates.is_some() || documents.is_some();
        if certificates.is_some() || context.options.manage_webhooks {
            tasks.spawn(registrar.run());
        }
        if let Some(certificates) = certificates {
            let tls = Arc::clone(running.tls());
            tasks.spawn(certificates.run(move |bundle| {
                if let Err(error) = tls.swap_certificate(bundle) {
                    tracing::error!(%error, "the new certificate cannot be used");
                }
            }));
        }
        if let Some(documents) = documents {
            tasks.spawn(documents.run());
        }
        let replicas = keeps_lease.then(|| Replicas(context.counting("leases")));
        if let Some(replicas) = replicas.clone() {
            tasks.spawn(async move { replicas.run().await });
        }
        Ok((running, Self { tasks, replicas }))
    }

    /// Stops all parts and deletes the Lease, so the other replicas know that this one has ended.
    pub async fn end(mut self) {
        self.tasks.shutdown().await;
        if let Some(replicas) = self.replicas {
            // Without an API server, the others see that the Lease is not renewed.
            let _ = timeout(LEAVE, replicas.leave()).await;
        }
    }
}

/// Connects when the API server is available.
///
/// # Errors
/// An invalid kubeconfig, or one that the API server does not accept.
pub async fn connect(
    kubeconfig: Option<&Path>,
    context: Option<&str>,
) -> Result<Cluster, ClusterError> {
    let mut trouble = Trouble::default();
    loop {
        match Cluster::connect(kubeconfig, context).await {
            Err(error) if error.is_of_the_server() && error.code() != Some(401) => {
                trouble.begin(CONNECT, &error);
                sleep(RETRY).await;
            }
            connected => {
                trouble.end(CONNECT);
                return connected;
            }
        }
    }
}

const CONNECT: &str = "connect to the API server";

/// Between attempts to connect at the start.
const RETRY: Duration = Duration::from_secs(1);

/// The limit for the last request.
const LEAVE: Duration = Duration::from_secs(5);
