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
//! Secret ─► certificates (tls::rotation) ◄────┘ ─► ServingCertificate
//!                             ▲ replicas
//! Leases ─► replicas ─────────┴────────────────────────────────────┘
//! ```

pub mod certificates;
pub mod conditions;
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

use jiff::SignedDuration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use self::certificates::Certificates;
use self::documents::Documents;
use self::exchange::Exchange;
use self::registrations::Registrar;
use self::replicas::Replicas;
use self::trouble::Trouble;
use crate::cluster::{Cluster, ClusterError};
use crate::manifests::registrations::FailurePolicy;
use crate::server::{Opening, PolicyStore, Running, ServerSettings, StartError};
use crate::telemetry::Metrics;
use crate::tls::Bundle;
use crate::tls::rotation::Lifetimes;

pub use self::options::{ManagedCertificate, ManagerOptions};

/// The managed parts of a server that does not serve yet.
pub struct Prepared {
    options: ManagerOptions,
    cluster: Cluster,
    exchange: Arc<Exchange>,
    policies: PolicyStore,
    documents: Option<Documents>,
    certificate: Option<(Certificates, Bundle)>,
    authority: watch::Receiver<String>,
}

/// The managed parts of a running server. Dropping it stops them.
pub struct Manager {
    tasks: JoinSet<()>,
    replicas: Option<Arc<Replicas>>,
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
        context: Option<&str>,
        opening: &Opening,
        policies: PolicyStore,
    ) -> Result<Self, ClusterError> {
        let cluster = connect(kubeconfig, context).await?;
        let exchange = Arc::new(Exchange::new(policies.published().clone()));
        let documents = if options.watch_policies {
            let registers = options.registrations.is_some();
            let cluster = counted(&cluster, opening.metrics(), "documents");
            let exchange = Arc::clone(&exchange);
            let (store, metrics) = (policies.clone(), Arc::clone(opening.metrics()));
            let ManagerOptions { replica, clock, .. } = &options;
            let first =
                Documents::first(cluster, exchange, store, metrics, replica, registers, *clock);
            Some(first.await)
        } else {
            None
        };
        let (fingerprint, authority) = watch::channel(String::new());
        let certificate = match &options.certificate {
            Some(ManagedCertificate { secret, lifetime }) => {
                let wanted = certificates::CertificateOptions {
                    namespace: options.namespace.clone(),
                    secret: secret.clone(),
                    names: options.names.clone(),
                    lifetimes: lifetimes(*lifetime),
                    replica: options.replica.clone(),
                    clock: options.clock,
                };
                let cluster = counted(&cluster, opening.metrics(), "certificates");
                let exchange = Arc::clone(&exchange);
                let metrics = Arc::clone(opening.metrics());
                let first = Certificates::first(cluster, wanted, exchange, metrics, fingerprint);
                Some(first.await)
            }
            None => None,
        };
        Ok(Self { options, cluster, exchange, policies, documents, certificate, authority })
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
        let Self { options, cluster, exchange, policies, documents, certificate, authority } = self;
        let review = documents.as_ref().map(|it| review::reviewer(it.shared(), policies.clone()));
        let running = opening.start(settings, &policies, review)?;
        let mut tasks = JoinSet::new();
        let manages_certificates = certificate.is_some();
        if let Some((certificates, _)) = certificate {
            let serving = running.certificate().clone();
            tasks.spawn(certificates.run(move |bundle| {
                if let Err(error) = serving.swap(bundle) {
                    tracing::error!(%error, "the new certificate cannot be used");
                }
            }));
        }
        if manages_certificates || options.registrations.is_some() {
            let registrar = Registrar {
                cluster: counted(&cluster, running.metrics(), "registrations"),
                exchange: Arc::clone(&exchange),
                namespace: options.namespace.clone(),
                address: options.address.clone(),
                failure_policy: options.registrations.unwrap_or(FailurePolicy::Ignore),
                metrics: Arc::clone(running.metrics()),
                clock: options.clock,
                rules: options.registrations.is_some(),
                secret: options.certificate.as_ref().map(|managed| managed.secret.clone()),
            };
            tasks.spawn(registrar.run());
        }
        let keeps_lease = manages_certificates || documents.is_some();
        if let Some(documents) = documents {
            tasks.spawn(documents.run());
        }
        let ManagerOptions { namespace, replica: name, clock, .. } = options;
        let metrics = Arc::clone(running.metrics());
        let cluster = counted(&cluster, &metrics, "leases");
        let lifetimes = options.certificate.map(|managed| lifetimes(managed.lifetime));
        let lifetimes = lifetimes.unwrap_or_default();
        let replicas =
            Replicas { cluster, namespace, name, exchange, metrics, authority, lifetimes, clock };
        let replicas = keeps_lease.then(|| Arc::new(replicas));
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

/// The same cluster. Each request counts for this purpose.
fn counted(cluster: &Cluster, metrics: &Arc<Metrics>, purpose: &'static str) -> Cluster {
    let metrics = Arc::clone(metrics);
    cluster.reporting(move |code| metrics.api_request(purpose, code))
}

fn lifetimes(leaf: Duration) -> Lifetimes {
    Lifetimes::of_leaf(SignedDuration::try_from(leaf).unwrap_or(SignedDuration::MAX))
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
