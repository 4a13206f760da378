//! Replicas in this process.

use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use statusgate::cluster::Cluster;
use statusgate::manager::documents::{Documents, Store};
use statusgate::manager::exchange::{Exchange, Replica};
use statusgate::telemetry::{Metrics, Scrape};
use statusgate_core::policy::{Diagnostics, PolicySet, Source};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::harness::plane::Plane;

/// A set of policies, as a server has it.
#[derive(Clone, Default)]
pub(crate) struct Memory(Arc<Mutex<Held>>);

/// The files, and the policies in use.
type Held = (Vec<Source>, Option<Arc<PolicySet>>);

impl Memory {
    pub(crate) fn names(&self) -> Vec<String> {
        let held = self.0.lock().unwrap();
        held.1.iter().flat_map(|set| set.names()).map(str::to_owned).collect()
    }

    pub(crate) fn set(&self) -> Arc<PolicySet> {
        self.0.lock().unwrap().1.clone().unwrap()
    }

    pub(crate) fn set_files(&self, files: Vec<Source>) {
        self.0.lock().unwrap().0 = files;
    }
}

impl Store for Memory {
    fn files(&self) -> Vec<Source> {
        self.0.lock().unwrap().0.clone()
    }

    fn replace_documents(&self, documents: Vec<Source>) -> Result<Arc<PolicySet>, Diagnostics> {
        let mut held = self.0.lock().unwrap();
        let set = Arc::new(PolicySet::compile(&[held.0.clone(), documents].concat())?);
        held.1 = Some(Arc::clone(&set));
        Ok(set)
    }
}

/// A replica that follows the documents until it is dropped.
pub(crate) struct Running {
    pub(crate) store: Memory,
    pub(crate) exchange: Arc<Exchange>,
    metrics: Arc<Metrics>,
    task: JoinHandle<()>,
}

impl Running {
    pub(crate) async fn start(plane: &Plane, name: &str, store: Memory) -> Self {
        let (cluster, exchange) = (connect(plane).await, exchange());
        let metrics = Arc::new(Metrics::new(None));
        let documents = Documents::first(
            cluster,
            Arc::clone(&exchange),
            store.clone(),
            Arc::clone(&metrics),
            name,
            false,
            Timestamp::now,
        )
        .await;
        Self { store, exchange, metrics, task: tokio::spawn(documents.run()) }
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

pub(crate) fn exchange() -> Arc<Exchange> {
    Arc::new(Exchange::new(watch::Sender::new(Arc::new(PolicySet::compile(&[]).unwrap()))))
}

/// A connection of the program.
pub(crate) async fn connect(plane: &Plane) -> Cluster {
    Cluster::connect(Some(&plane.kubeconfig()), None).await.unwrap()
}
