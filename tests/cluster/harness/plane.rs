//! A control plane: etcd and kube-apiserver (`hack/control-plane.sh`), and all kinds of the tests.

use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};
use statusgate_cluster::manifests::crds::crds;
use tokio::runtime::Runtime;

use super::leash::lines;
use super::objects::{
    CLAIM, COMPOSITE, CONVENTION, CRD, GADGET, Kind, LEASE, MUTATING, NAMESPACE, Objects, POLICY,
    SECRET, VALIDATING, WIDGET, name_of,
};
use super::patience::until;

/// A running control plane with a folder for files. It stops and removes the folder when its stdin closes,
/// which happens at every end of this process.
pub(crate) struct Plane {
    folder: PathBuf,
    _script: Child,
    /// How often the API has become ready.
    ready: AtomicU32,
    clients: HashMap<&'static str, Client>,
    /// One for all tests: clients have tasks, which must not end with a test.
    pub(crate) runtime: Runtime,
}

impl Plane {
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder").keep();
        let script = launch(&folder);
        let runtime = Runtime::new().expect("a runtime");
        let clients = runtime.block_on(clients(&folder));
        let plane = Self { folder, _script: script, ready: 1.into(), clients, runtime };
        plane.runtime.block_on(plane.create_kinds());
        plane
    }

    async fn create_kinds(&self) {
        for definition in kinds() {
            self.objects(CRD).create(&definition).await.expect("a CRD");
        }
        let mut namespace = self.objects(NAMESPACE).named("statusgate-system");
        namespace["metadata"]["labels"] =
            json!({"kubernetes.io/metadata.name": "statusgate-system"});
        self.objects(NAMESPACE).create(&namespace).await.expect("a namespace");
        self.install().await;
        for kind in [COMPOSITE, CLAIM, WIDGET, GADGET] {
            self.served(kind).await;
        }
    }

    /// Deletes the definitions of policies and conventions.
    pub(crate) async fn uninstall(&self) {
        for definition in crds() {
            self.objects(CRD).delete(name_of(&definition)).await.expect("a deletion");
        }
        until("the kinds are not served", async || {
            let served = [self.objects(POLICY).list().await, self.objects(CONVENTION).list().await];
            served.iter().all(Result::is_err).then_some(())
        })
        .await;
    }

    /// Installs the definitions of policies and conventions by server-side apply.
    pub(crate) async fn install(&self) {
        for definition in crds() {
            let name = name_of(&definition).to_owned();
            self.objects(CRD).apply(&name, "test", definition).await.expect("a CRD of statusgate");
        }
        self.served(POLICY).await;
        self.served(CONVENTION).await;
    }

    async fn served(&self, kind: Kind) {
        let objects = self.objects(kind);
        until("a kind is served", async || objects.list().await.ok()).await;
    }

    /// Removes what a test may have left.
    pub(crate) async fn empty(&self) {
        for kind in
            [MUTATING, VALIDATING, POLICY, CONVENTION, LEASE, COMPOSITE, CLAIM, WIDGET, GADGET]
        {
            self.objects(kind).delete_all().await.expect("a deletion");
        }
        let _ = self.objects(SECRET).delete("statusgate-tls").await;
        let kept: Vec<Value> = kinds().into_iter().chain(crds()).collect();
        let definitions = self.objects(CRD);
        for definition in self.list(CRD).await {
            let name = name_of(&definition);
            if kept.iter().all(|one| name_of(one) != name) {
                definitions.delete(name).await.expect("a deletion");
                // Its objects are deleted first.
                until("a CRD is gone", async || definitions.get(name).await.err()).await;
            }
        }
    }

    /// All objects of a kind.
    pub(crate) async fn list(&self, kind: Kind) -> Vec<Value> {
        let list = self.objects(kind).list().await.expect("a list");
        list["items"].as_array().expect("items").clone()
    }

    /// The objects of a kind, for the administrator.
    pub(crate) fn objects(&self, kind: Kind) -> Objects {
        self.objects_of("admin", kind)
    }

    /// The objects of a kind, for a user of `hack/control-plane.sh`.
    pub(crate) fn objects_of(&self, user: &str, kind: Kind) -> Objects {
        Objects::new(self.client(user).clone(), kind)
    }

    pub(crate) fn client(&self, user: &str) -> &Client {
        &self.clients[user]
    }

    /// A folder for files, which is removed at the end.
    pub(crate) fn folder(&self, name: &str) -> PathBuf {
        let folder = self.folder.join(name);
        fs::create_dir_all(&folder).expect("a folder");
        folder
    }

    /// The administrator's kubeconfig.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.folder.join("plane/kubeconfig")
    }

    /// A kubeconfig for another user, whom the administrator impersonates.
    pub(crate) fn kubeconfig_of(&self, user: &str) -> PathBuf {
        let token = "    token: admin-token\n";
        let change = |text: String| text.replace(token, &format!("{token}    as: {user}\n"));
        self.changed_kubeconfig(&format!("of-{user}"), change)
    }

    /// The administrator's kubeconfig with a change.
    pub(crate) fn changed_kubeconfig(
        &self,
        name: &str,
        change: impl FnOnce(String) -> String,
    ) -> PathBuf {
        let text = fs::read_to_string(self.kubeconfig()).expect("a kubeconfig");
        let changed = change(text.clone());
        assert_ne!(changed, text);
        let path = self.folder.join(format!("kubeconfig-{name}"));
        fs::write(&path, changed).expect("a kubeconfig");
        path
    }

    /// Restarts kube-apiserver, or starts it after `stop`.
    pub(crate) async fn restart(&self) {
        let times = self.ready.fetch_add(1, Relaxed) + 1;
        run(Command::new("kill").args(["-USR1", "--", &self.script()]));
        let path = self.folder.join("plane/ready");
        until("the API is back", async || {
            let text = fs::read_to_string(&path).ok()?;
            (text.trim().parse() == Ok(times)).then_some(())
        })
        .await;
    }

    /// Stops kube-apiserver until the next restart.
    pub(crate) async fn stop(&self) {
        run(Command::new("kill").args(["-USR2", "--", &self.script()]));
        let namespaces = self.objects(NAMESPACE);
        until("the API is gone", async || namespaces.list().await.err()).await;
    }

    /// Sends a signal to kube-apiserver.
    pub(crate) fn signal(&self, name: &str) {
        let (signal, parent) = (format!("-{name}"), self.script());
        run(Command::new("pkill").args([&signal, "-P", &parent, "-x", "kube-apiserver"]));
    }

    /// The process that runs etcd and kube-apiserver.
    fn script(&self) -> String {
        let pid = fs::read_to_string(self.folder.join("pid")).expect("a pid");
        pid.trim().to_owned()
    }
}

/// The CRDs of the kinds that the tests share.
fn kinds() -> Vec<Value> {
    let example = include_str!("../../../deploy/crds/appcat-example.yaml");
    [example, include_str!("crds.yaml")].into_iter().flat_map(documents).collect()
}

fn launch(folder: &Path) -> Child {
    let log = folder.join("control-plane.log");
    // The script gets stdin and the signals; the shell around it removes the folder.
    let run = r#""$1" run "$2/plane" <&0 & echo $! > "$2/pid"; wait; rm -rf "$2""#;
    let mut script = Command::new("bash")
        .args(["-c", run, "control-plane"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/hack/control-plane.sh"))
        .arg(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // Not our stderr: the reader of our output would wait for the end of every process that has it.
        .stderr(File::create(&log).expect("a log"))
        .process_group(0)
        .spawn()
        .expect("bash starts");
    // The script has its own deadline, and may have to build the control plane first.
    let ready = lines(&mut script).recv().is_ok_and(|line| line.starts_with("ready "));
    assert!(ready, "no control plane: {}", fs::read_to_string(&log).unwrap_or_default());
    script
}

async fn clients(folder: &Path) -> HashMap<&'static str, Client> {
    let mut clients = HashMap::from([("admin", client(&folder.join("plane/kubeconfig")).await)]);
    for user in ["operator", "crossplane", "billing"] {
        let file = folder.join(format!("plane/kubeconfig-{user}"));
        clients.insert(user, client(&file).await);
    }
    clients
}

async fn client(kubeconfig: &Path) -> Client {
    // The client needs a default provider; only our own listeners name theirs.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let file = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
    let options = KubeConfigOptions::default();
    let mut config = Config::from_custom_kubeconfig(file, &options).await.expect("a configuration");
    // Retries of the client would hide failed writes.
    config.default_retry = false;
    // The server is on loopback: ignore a proxy in the environment.
    config.proxy_url = None;
    Client::try_from(config).expect("a client")
}

fn run(command: &mut Command) {
    assert!(command.status().expect("it starts").success(), "{command:?}");
}

/// The documents of a YAML text.
pub(crate) fn documents(text: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(text).expect("YAML")
}
