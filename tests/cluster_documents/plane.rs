//! A control plane with the definitions of both kinds, and replicas in this process.

use std::sync::{Arc, LazyLock, Mutex};

use jiff::Timestamp;
use kube::Client;
use serde_json::Value;
use statusgate::cluster::Cluster;
use statusgate::manager::documents::{Documents, Store};
use statusgate::manager::exchange::{Exchange, Replica};
use statusgate::manifests::crds::crds;
use statusgate::telemetry::{Metrics, Scrape};
use statusgate_core::policy::{Diagnostics, PolicySet, Source};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::launcher::{ControlPlane, client};
use crate::objects::{CRD, Kind, Objects};
use crate::patience::until;

pub(crate) const POLICY: Kind = Kind {
    api_version: "statusgate.dev/v1alpha1",
    kind: "StatusPolicy",
    path: "/apis/statusgate.dev/v1alpha1/statuspolicies",
};
pub(crate) const CONVENTION: Kind = Kind {
    api_version: "statusgate.dev/v1alpha1",
    kind: "StatusConvention",
    path: "/apis/statusgate.dev/v1alpha1/statusconventions",
};

/// The control plane that all tests of this binary share.
pub(crate) struct Plane {
    pub(crate) control_plane: ControlPlane,
    pub(crate) client: Client,
    runtime: Runtime,
    turn: Mutex<()>,
}

/// Runs a test alone: all documents of the cluster are its own.
pub(crate) fn alone(test: impl AsyncFnOnce(&'static Plane)) {
    static PLANE: LazyLock<Plane> = LazyLock::new(|| {
        let control_plane = ControlPlane::start();
        let runtime = Runtime::new().unwrap();
        let client = runtime.block_on(client(&control_plane.kubeconfig()));
        Plane { control_plane, client, runtime, turn: Mutex::default() }
    });
    let _turn = PLANE.turn.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    PLANE.runtime.block_on(async {
        PLANE.install().await;
        for kind in [POLICY, CONVENTION] {
            let objects = PLANE.objects(kind);
            let all = objects.list().await.unwrap();
            for object in all["items"].as_array().unwrap() {
                let name = object["metadata"]["name"].as_str().unwrap();
                objects.delete(name).await.unwrap();
            }
        }
        test(&PLANE).await;
    });
}

impl Plane {
    pub(crate) fn objects(&self, kind: Kind) -> Objects {
        Objects::new(self.client.clone(), kind)
    }

    /// Installs the definitions by server-side apply.
    pub(crate) async fn install(&self) {
        for definition in crds() {
            let name = definition["metadata"]["name"].as_str().unwrap().to_owned();
            self.objects(CRD).apply(&name, "test", definition).await.unwrap();
        }
        for kind in [POLICY, CONVENTION] {
            until("the kind is served", async || self.objects(kind).list().await.ok()).await;
        }
    }

    pub(crate) async fn connect(&self) -> Cluster {
        Cluster::connect(Some(&self.control_plane.kubeconfig()), None).await.unwrap()
    }
}

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
        let (cluster, exchange) = (plane.connect().await, exchange());
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

/// The condition of a type in an object.
pub(crate) fn condition<'o>(object: &'o Value, of: &str) -> Option<&'o Value> {
    let conditions = object["status"]["conditions"].as_array()?;
    conditions.iter().find(|condition| condition["type"] == of)
}
