//! The control plane that the tests share, with its kinds and one statusgate for most tests.

use std::collections::HashMap;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use kube::Client;
use tokio::runtime::Runtime;

use crate::launcher::{ControlPlane, client, create_kinds};
use crate::objects::{CLAIM, COMPOSITE, CRD, GADGET, Kind, Objects, WIDGET};
use crate::patience::until;
use crate::registration::{FailurePolicy, Registration};
use crate::server::Server;

/// Runs a test in the shared cluster. The first test starts the cluster.
pub(crate) fn in_cluster(test: impl AsyncFnOnce(&'static Cluster)) {
    static CLUSTER: LazyLock<Cluster> = LazyLock::new(Cluster::start);
    let cluster = &*CLUSTER;
    // One runtime for all tests: clients have tasks, which must not end with a test.
    let _told = Told(cluster.server());
    cluster.runtime.block_on(test(cluster));
}

/// Prints the log of the shared server if a test fails, because its destructor never runs.
struct Told(&'static Server);

impl Drop for Told {
    fn drop(&mut self) {
        self.0.tell_why();
    }
}

/// etcd, kube-apiserver, and everything that the tests share.
pub(crate) struct Cluster {
    runtime: Runtime,
    control_plane: ControlPlane,
    clients: HashMap<&'static str, Client>,
    names: AtomicU32,
    shared: Option<(Server, Registration)>,
}

impl Cluster {
    fn start() -> Self {
        let control_plane = ControlPlane::start();
        let runtime = Runtime::new().expect("a runtime");
        let clients = runtime.block_on(clients(&control_plane));
        let mut cluster = Self { runtime, control_plane, clients, names: 0.into(), shared: None };
        cluster.shared = Some(cluster.runtime.block_on(async {
            cluster.create_kinds().await;
            let server = Server::new(&cluster, "shared").start().await;
            let registration =
                Registration::of(&server, "shared", FailurePolicy::Fail).apply(&cluster).await;
            (server, registration)
        }));
        cluster
    }

    /// The control plane, with a folder for files.
    pub(crate) fn control_plane(&self) -> &ControlPlane {
        &self.control_plane
    }

    /// The server that most tests use.
    pub(crate) fn server(&self) -> &Server {
        &self.shared.as_ref().expect("it has started").0
    }

    /// Creates an object with a unique name that the shared server judges.
    pub(crate) async fn object(&self, kind: Kind) -> String {
        let registration = &self.shared.as_ref().expect("it has started").1;
        registration.object(self, kind).await
    }

    /// A name that no other object has.
    pub(crate) fn unique(&self, what: &str) -> String {
        format!("{what}-{}", self.names.fetch_add(1, Relaxed))
    }

    /// The operator of AppCat. Its disagreements are rejected.
    pub(crate) fn operator(&self, kind: Kind) -> Objects {
        self.objects("operator", kind)
    }

    /// Crossplane, which the policy names under `writers`.
    pub(crate) fn crossplane(&self, kind: Kind) -> Objects {
        self.objects("crossplane", kind)
    }

    /// The billing controller.
    pub(crate) fn billing(&self, kind: Kind) -> Objects {
        self.objects("billing", kind)
    }

    /// The administrator, for the setup of a test.
    pub(crate) fn admin(&self, kind: Kind) -> Objects {
        self.objects("admin", kind)
    }

    fn objects(&self, user: &str, kind: Kind) -> Objects {
        Objects::new(self.clients[user].clone(), kind)
    }

    async fn create_kinds(&self) {
        create_kinds(&self.admin(CRD)).await;
        for kind in [COMPOSITE, CLAIM, WIDGET, GADGET] {
            let objects = self.admin(kind);
            until("a kind is served", async || objects.list().await.ok()).await;
        }
    }
}

async fn clients(control_plane: &ControlPlane) -> HashMap<&'static str, Client> {
    let mut clients = HashMap::from([("admin", client(&control_plane.kubeconfig()).await)]);
    for user in ["operator", "crossplane", "billing"] {
        let file = control_plane.folder().join(format!("plane/kubeconfig-{user}"));
        clients.insert(user, client(&file).await);
    }
    clients
}
