//! The control plane that the tests share, with its kinds and one statusgate for most tests.

use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::leash::lines;
use crate::objects::{CLAIM, COMPOSITE, CRD, GADGET, Kind, Objects, WIDGET, name_of};
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
    folder: PathBuf,
    clients: HashMap<&'static str, Client>,
    names: AtomicU32,
    shared: Option<(Server, Registration)>,
    /// The control plane stops and removes its folder when its stdin closes, which happens at every end
    /// of this process.
    _plane: Child,
}

impl Cluster {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder").keep();
        let plane = start_control_plane(&folder);
        let runtime = Runtime::new().expect("a runtime");
        let clients = runtime.block_on(clients(&folder.join("plane")));
        let mut cluster =
            Self { runtime, folder, clients, names: 0.into(), shared: None, _plane: plane };
        cluster.shared = Some(cluster.runtime.block_on(async {
            cluster.create_kinds().await;
            let server = Server::new(&cluster, "shared").start().await;
            let registration =
                Registration::of(&server, "shared", FailurePolicy::Fail).apply(&cluster).await;
            (server, registration)
        }));
        cluster
    }

    /// A folder for files, which is removed at the end.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
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
        let crds = self.admin(CRD);
        let texts =
            [include_str!("../../deploy/crds/appcat-example.yaml"), include_str!("crds.yaml")];
        for text in texts {
            let documents: Vec<Value> = serde_saphyr::from_multiple(text).expect("CRDs are YAML");
            for document in documents {
                crds.create(&document).await.unwrap_or_else(|error| {
                    panic!("{} is created: {error}", name_of(&document));
                });
            }
        }
        for kind in [COMPOSITE, CLAIM, WIDGET, GADGET] {
            let objects = self.admin(kind);
            until("a kind is served", async || objects.list().await.ok()).await;
        }
    }
}

fn start_control_plane(folder: &Path) -> Child {
    let log = folder.join("control-plane.log");
    let mut plane = Command::new("bash")
        .args(["-c", "\"$1\" run \"$2/plane\"; rm -rf \"$2\"", "control-plane"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/hack/control-plane.sh"))
        .arg(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // Not our stdout: the reader of our output would wait for the end of every process that has it.
        .stderr(File::create(&log).expect("a log"))
        .process_group(0)
        .spawn()
        .expect("bash starts");
    // The script has its own deadline, and may have to build the control plane first.
    let said = lines(&mut plane).recv();
    assert!(
        said.is_ok_and(|line| line.starts_with("ready ")),
        "no control plane: {}",
        fs::read_to_string(&log).unwrap_or_default()
    );
    plane
}

async fn clients(plane: &Path) -> HashMap<&'static str, Client> {
    let mut clients = HashMap::new();
    for user in ["admin", "operator", "crossplane", "billing"] {
        let file = match user {
            "admin" => "kubeconfig".to_owned(),
            _ => format!("kubeconfig-{user}"),
        };
        let file = Kubeconfig::read_from(plane.join(file)).expect("a kubeconfig");
        let options = KubeConfigOptions::default();
        let mut config =
            Config::from_custom_kubeconfig(file, &options).await.expect("a configuration");
        // Retries of the client would hide failed writes.
        config.default_retry = false;
        // The server is on loopback: ignore a proxy in the environment.
        config.proxy_url = None;
        clients.insert(user, Client::try_from(config).expect("a client"));
    }
    clients
}
