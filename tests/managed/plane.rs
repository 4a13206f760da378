//! The control plane of these tests, emptied before each of them.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kube::Client;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::launcher::{ControlPlane, client, create_kinds};
use crate::objects::{COMPOSITE, CRD, Kind, MUTATING, Objects, VALIDATING, name_of};
use crate::patience::{until, until_within};
use crate::process::run;

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
pub(crate) const SECRET: Kind = Kind {
    api_version: "v1",
    kind: "Secret",
    path: "/api/v1/namespaces/statusgate-system/secrets",
};
pub(crate) const LEASE: Kind = Kind {
    api_version: "coordination.k8s.io/v1",
    kind: "Lease",
    path: "/apis/coordination.k8s.io/v1/namespaces/statusgate-system/leases",
};
pub(crate) const NAMESPACE: Kind =
    Kind { api_version: "v1", kind: "Namespace", path: "/api/v1/namespaces" };

/// etcd, kube-apiserver and a client.
pub(crate) struct Plane {
    control_plane: ControlPlane,
    client: Client,
    runtime: Runtime,
}

/// The control plane for one test.
pub(crate) fn in_turn(test: impl AsyncFnOnce(&'static Plane)) {
    static PLANE: LazyLock<Plane> = LazyLock::new(Plane::start);
    static TURN: Mutex<()> = Mutex::new(());
    let _turn: MutexGuard<'_, ()> = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let plane = &*PLANE;
    plane.runtime.block_on(async {
        plane.empty().await;
        test(plane).await;
    });
}

/// Another control plane, for a test that stops it or takes minutes. The test runs at the same time as the
/// others.
pub(crate) fn alone(test: impl AsyncFnOnce(&Plane)) {
    let plane = Plane::start();
    plane.runtime.block_on(test(&plane));
}

impl Plane {
    fn start() -> Self {
        let control_plane = ControlPlane::start();
        let runtime = Runtime::new().expect("a runtime");
        let client = runtime.block_on(client(&control_plane.kubeconfig()));
        let plane = Self { control_plane, client, runtime };
        plane.runtime.block_on(async {
            create_kinds(&plane.objects(CRD)).await;
            let crds = run(["manifests", "crds"]);
            for document in documents(&crds.out) {
                plane.objects(CRD).create(&document).await.expect("a CRD of statusgate");
            }
            let mut namespace = plane.objects(NAMESPACE).named("statusgate-system");
            let label = json!({"kubernetes.io/metadata.name": "statusgate-system"});
            namespace["metadata"]["labels"] = label;
            plane.objects(NAMESPACE).create(&namespace).await.expect("a namespace");
            for kind in [POLICY, CONVENTION, COMPOSITE] {
                let objects = plane.objects(kind);
                until("a kind is served", async || objects.list().await.ok()).await;
            }
        });
        plane
    }

    /// Removes what a test may have left.
    pub(crate) async fn empty(&self) {
        for kind in [MUTATING, VALIDATING, POLICY, CONVENTION, LEASE, COMPOSITE] {
            self.delete_all(kind).await;
        }
        let _ = self.objects(SECRET).delete("statusgate-tls").await;
    }

    /// Deletes all objects of a kind.
    pub(crate) async fn delete_all(&self, kind: Kind) {
        let objects = self.objects(kind);
        for object in self.list(kind).await {
            objects.delete(name_of(&object)).await.expect("a deletion");
        }
    }

    /// All objects of a kind.
    pub(crate) async fn list(&self, kind: Kind) -> Vec<Value> {
        let list = self.objects(kind).list().await.expect("a list");
        list["items"].as_array().expect("items").clone()
    }

    /// The objects of a kind, for the administrator.
    pub(crate) fn objects(&self, kind: Kind) -> Objects {
        Objects::new(self.client.clone(), kind)
    }

    /// Creates an object and returns its name.
    pub(crate) async fn composite(&self, name: &str) -> String {
        let objects = self.objects(COMPOSITE);
        objects.create(&objects.named(name)).await.expect("an object");
        name.to_owned()
    }

    /// Creates the example policy for AppCat.
    pub(crate) async fn create_policy(&self) {
        let [policy] =
            documents(include_str!("../../deploy/policies/appcat.yaml")).try_into().expect("one");
        self.objects(POLICY).create(&policy).await.expect("a policy");
    }

    /// Waits until both webhooks judge the writes of an object.
    pub(crate) async fn judged(&self, name: &str) {
        let objects = self.objects(COMPOSITE);
        until("both webhooks are called", async || {
            let filled = objects.dry_merge_status(name, json!({"instanceNamespace": "n"})).await;
            let judged = objects.dry_merge_status(name, json!({"phase": "Nonsense"})).await;
            let asked = filled.is_ok_and(|object| object["status"]["phase"] == "Unknown");
            (asked && judged.is_err()).then_some(())
        })
        .await;
    }

    /// The Secret and the registrations.
    pub(crate) async fn kept(&self) -> Vec<Value> {
        let mut kept = Vec::new();
        for (kind, name) in [
            (SECRET, "statusgate-tls"),
            (MUTATING, "statusgate"),
            (VALIDATING, "statusgate"),
            (VALIDATING, "statusgate-documents"),
        ] {
            kept.push(self.objects(kind).get(name).await.expect("it exists"));
        }
        kept
    }

    /// Waits until this many replicas enforce the current generation of the policy. A replica that was killed
    /// counts until its Lease is old.
    pub(crate) async fn enforced(&self, replicas: usize) -> Value {
        until_within(Duration::from_secs(120), "the policy is enforced", async || {
            let policy = self.objects(POLICY).get("appcat").await.ok()?;
            let enforced = condition(&policy, "Enforced");
            let is_current = enforced["observedGeneration"] == policy["metadata"]["generation"];
            let message = enforced["message"].as_str()?;
            let is_by_all = message.starts_with(&format!("{replicas} of {replicas} replica"));
            (is_current && is_by_all && enforced["status"] == "True").then_some(policy)
        })
        .await
    }

    /// A folder for files, which is removed at the end.
    pub(crate) fn folder(&self, name: &str) -> PathBuf {
        let folder = self.control_plane.folder().join(name);
        fs::create_dir_all(&folder).expect("a folder");
        folder
    }

    /// The administrator's kubeconfig.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.control_plane.kubeconfig()
    }

    /// The administrator's kubeconfig without a check of the API server's certificate.
    pub(crate) fn unverified_kubeconfig(&self) -> PathBuf {
        let text = fs::read_to_string(self.kubeconfig()).expect("a kubeconfig");
        let lines = text.lines().map(|line| match line.split_once("certificate-authority-data:") {
            Some((indent, _)) => format!("{indent}insecure-skip-tls-verify: true\n"),
            None => format!("{line}\n"),
        });
        let path = self.folder("unverified").join("kubeconfig");
        fs::write(&path, lines.collect::<String>()).expect("a kubeconfig");
        path
    }

    /// A kubeconfig for another user.
    pub(crate) fn kubeconfig_of(&self, user: &str) -> PathBuf {
        self.control_plane.kubeconfig_of(user)
    }

    /// Restarts kube-apiserver and waits until it is ready for this many times.
    pub(crate) async fn restart(&self, times: u32) {
        run_signal(Command::new("kill").args(["-USR1", "--", &self.script()]));
        let path = self.control_plane.folder().join("plane/ready");
        until("the API is back", async || {
            let text = fs::read_to_string(&path).ok()?;
            (text.trim().parse() == Ok(times)).then_some(())
        })
        .await;
    }

    /// Stops kube-apiserver until the next restart.
    pub(crate) async fn stop(&self) {
        run_signal(Command::new("kill").args(["-USR2", "--", &self.script()]));
        let namespaces = self.objects(NAMESPACE);
        until("the API is gone", async || namespaces.list().await.err()).await;
    }

    /// Sends a signal to kube-apiserver.
    pub(crate) fn signal(&self, name: &str) {
        let (signal, parent) = (format!("-{name}"), self.script());
        run_signal(Command::new("pkill").args([&signal, "-P", &parent, "-x", "kube-apiserver"]));
    }

    /// The process that runs etcd and kube-apiserver.
    fn script(&self) -> String {
        let pid = fs::read_to_string(self.control_plane.folder().join("pid")).expect("a pid");
        pid.trim().to_owned()
    }
}

fn run_signal(command: &mut Command) {
    assert!(command.status().expect("kill starts").success(), "{command:?}");
}

/// The documents of a YAML text.
pub(crate) fn documents(text: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(text).expect("YAML")
}

/// The condition of an object with this type, or null.
pub(crate) fn condition<'v>(object: &'v Value, kind: &str) -> &'v Value {
    let conditions = object["status"]["conditions"].as_array();
    let found = conditions.and_then(|list| list.iter().find(|condition| condition["type"] == kind));
    found.unwrap_or(&Value::Null)
}
