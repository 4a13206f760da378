//! The control plane that the tests share, with its kinds and one statusgate for most tests.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::registration::{FailurePolicy, Registration};
use super::server::Server;
use crate::harness::objects::{Kind, Objects};
use crate::harness::plane::Plane;

/// Runs a test in the shared cluster. The first test starts the cluster.
pub(crate) fn in_cluster(test: impl AsyncFnOnce(&'static Cluster)) {
    static CLUSTER: LazyLock<Cluster> = LazyLock::new(Cluster::start);
    let cluster = &*CLUSTER;
    let _told = Told(cluster.server());
    cluster.plane.runtime.block_on(test(cluster));
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
    plane: Plane,
    names: AtomicU32,
    shared: Option<(Server, Registration)>,
}

impl Cluster {
    fn start() -> Self {
        let mut cluster = Self { plane: Plane::start(), names: 0.into(), shared: None };
        cluster.shared = Some(cluster.plane.runtime.block_on(async {
            let server = Server::new(&cluster, "shared").start().await;
            let registration =
                Registration::of(&server, "shared", FailurePolicy::Fail).apply(&cluster).await;
            (server, registration)
        }));
        cluster
    }

    pub(crate) fn plane(&self) -> &Plane {
        &self.plane
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
        self.plane.objects_of("operator", kind)
    }

    /// Crossplane, which the policy names under `writers`.
    pub(crate) fn crossplane(&self, kind: Kind) -> Objects {
        self.plane.objects_of("crossplane", kind)
    }

    /// The billing controller.
    pub(crate) fn billing(&self, kind: Kind) -> Objects {
        self.plane.objects_of("billing", kind)
    }

    /// The administrator, for the setup of a test.
    pub(crate) fn admin(&self, kind: Kind) -> Objects {
        self.plane.objects_of("admin", kind)
    }
}
