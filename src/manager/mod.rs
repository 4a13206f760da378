//! Long-term operation of a running server: its policies, certificates and registrations in the cluster.
//!
//! Each part is a pure function from what the cluster holds to the next step, and a loop that performs
//! this step. No part calls the API server on the path of a request. The parts share what they know
//! through an [`exchange::Exchange`].
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
mod trouble;
mod writes;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use self::certificates::Certificates;
use self::documents::Documents;
use self::exchange::Exchange;
use self::registrations::Registrar;
use self::replicas::Replicas;
use self::trouble::Trouble;
use crate::cluster::{Cluster, ClusterError};
use crate::server::{Opening, PolicyStore, Running, ServerSettings, StartError};
use crate::tls::Bundle;

pub use self::context::Context;
pub use self::options::{ManagerOptions, host_name};

/// The managed parts of a server that does not serve yet.
pub struct Prepared {
    context: Context,
    policies: PolicyStore,
    documents: Option<Documents>,
    certificate: Option<(Certificates, Bundle)>,
}

/// The managed parts of a running server. Dropping it stops them.
pub struct Manager {
    tasks: JoinSet<()>,
    replicas: Option<Replicas>,
}

impl Prepared {
    /// Reads the policies of the cluster and gets a certificate. Waits until the API server is available:
    /// a server without its policies would accept everything.
    ///
    /// # Errors
    /// An invalid kubeconfig, or one that the API server does not accept.
    pub async fn new(
        options: ManagerOptions,
        kubeconfig: Option<&Path>,
        kube_context: Option<&str>,
        opening: &Opening,
        policies: PolicyStore,
        clock: fn() -> Timestamp,
    ) -> Result<Self, ClusterError> {
        let context = Context {
            cluster: connect(kubeconfig, kube_context).await?,
            options: Arc::new(options),
            exchange: Arc::new(Exchange::new(policies.published().clone())),
            metrics: Arc::clone(opening.metrics()),
            clock,
        };
        let (mut documents, mut certificate) = (None, None);
        if context.options.watch_policies {
            let context = context.counting("documents");
            documents = Some(Documents::first(context, policies.clone()).await);
        }
        if context.options.manage_certificates {
            certificate = Some(Certificates::first(context.counting("certificates")).await);
        }
        Ok(Self { context, policies, documents, certificate })
    }

    /// The certificate to serve with, if it is managed.
    pub fn certificate(&self) -> Option<&Bundle> {
        self.certificate.as_ref().map(|(_, bundle)| bundle)
    }

    /// Starts the server and keeps its managed parts up to date.
    ///
    /// # Errors
    /// As for [`Opening::start`].
    pub fn start(
        self,
        opening: Opening,
        settings: &ServerSettings,
    ) -> Result<(Running, Manager), StartError> {
        let Self { context, policies, documents, certificate } = self;
        let review = documents.as_ref().map(|it| review::reviewer(it.shared(), policies.clone()));
        let running = opening.start(settings, &policies, review)?;
        let mut tasks = JoinSet::new();
        let keeps_lease = certificate.is_some() || documents.is_some();
        if certificate.is_some() || context.options.manage_webhooks {
            tasks.spawn(Registrar(context.counting("registrations")).run());
        }
        if let Some((certificates, _)) = certificate {
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
        Ok((running, Manager { tasks, replicas }))
    }
}

impl Manager {
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
async fn connect(
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
