//! Replicas in this process.

use std::sync::Arc;

use jiff::Timestamp;
use statusgate_cluster::Cluster;
use statusgate_core::policy::PolicySet;
use statusgate_manager::documents::Documents;
use statusgate_manager::exchange::{Exchange, Replica};
use statusgate_manager::{Context, ManagerOptions};
use statusgate_server::PolicyStore;
use statusgate_server::telemetry::{Metrics, Scrape};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::harness::plane::Plane;

/// A replica that follows the documents until it is dropped.
pub(crate) struct Running {
    pub(crate) store: PolicyStore,
    pub(crate) exchange: Arc<Exchange>,
    metrics: Arc<Metrics>,
    task: JoinHandle<()>,
}

impl Running {
    pub(crate) async fn start(plane: &Plane, name: &str) -> Self {
        let metrics = Arc::new(Metrics::new(None));
        let store = PolicyStore::new(Vec::new(), &metrics).unwrap();
        let context = context(plane, name, Arc::clone(&metrics), store.clone()).await;
        let exchange = Arc::clone(&context.exchange);
        let documents = Documents::first(context).await;
        Self { store, exchange, metrics, task: tokio::spawn(documents.run()) }
    }

    /// The names of the policies in use.
    pub(crate) fn names(&self) -> Vec<String> {
        self.store.current().names().map(str::to_owned).collect()
    }

    /// Whether its metrics have this sample.
    pub(crate) fn shows(&self, sample: &str) -> bool {
        let text = self.metrics.encode().unwrap();
        text.lines().any(|line| line == sample)
    }

    pub(crate) fn sees(&self, names: &[&str]) {
        let replica = |name: &&str| Replica {
            name: (*name).to_owned(),
            authority: String::new(),
            is_live: true,
        };
        self.exchange.replicas.send_replace(names.iter().map(replica).collect());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What a replica of this name needs.
pub(crate) async fn context(
    plane: &Plane,
    name: &str,
    metrics: Arc<Metrics>,
    store: PolicyStore,
) -> Context {
    let cluster = Cluster::connect(Some(&plane.kubeconfig()), None).await.unwrap();
    let policies = Arc::new(PolicySet::compile(&[]).unwrap());
    let exchange = Arc::new(Exchange::new(watch::Sender::new(policies)));
    let options = Arc::new(ManagerOptions::new(name));
    Context { cluster, options, store, exchange, metrics, clock: Timestamp::now }
}
