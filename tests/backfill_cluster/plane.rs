//! The control plane of this test binary: started by the first test, ended with the process.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kube::Client;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::launcher::{ControlPlane, client, create_kinds};
use crate::objects::{CRD, Kind, Objects, name_of};
use crate::patience::{PATIENCE, until};

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
    plane.runtime.block_on(test(plane));
}

impl Plane {
    fn start() -> Self {
        let control_plane = ControlPlane::start();
        let runtime = Runtime::new().expect("a runtime");
        let client = runtime.block_on(client(&control_plane.kubeconfig()));
        let plane = Self { control_plane, client, runtime };
        plane.runtime.block_on(create_kinds(&plane.objects(CRD)));
        plane
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

    /// A kubeconfig for another user, whom the administrator impersonates.
    pub(crate) fn kubeconfig_of(&self, user: &str) -> PathBuf {
        self.control_plane.kubeconfig_of(user)
    }

    /// The policies for all kinds of these tests.
    pub(crate) fn policies(&self) -> PathBuf {
        let folder = self.folder("policies");
        let example = include_str!("../../deploy/policies/appcat.yaml");
        fs::write(folder.join("appcat.yaml"), example).expect("a policy");
        let kinds = include_str!("../control_plane/policies.yaml");
        fs::write(folder.join("kinds.yaml"), kinds).expect("a policy");
        folder
    }

    /// The objects of a kind, for the administrator.
    pub(crate) fn objects(&self, kind: Kind) -> Objects {
        Objects::new(self.client.clone(), kind)
    }

    /// Creates objects, a few at a time, each with a label and a status.
    pub(crate) async fn create(&self, kind: Kind, label: &str, count: usize, status: Value) {
        let mut tasks = JoinSet::new();
        for number in 0..count {
            let (objects, label, status) = (self.objects(kind), label.to_owned(), status.clone());
            tasks.spawn(async move {
                let mut object = objects.named(&format!("{label}-{number}"));
                object["metadata"]["labels"] = json!({"test": label});
                object["status"] = status.clone();
                // The next request may not know a kind that was just established.
                let mut created = objects.create(&object).await;
                let deadline = Instant::now() + PATIENCE;
                while created.is_err() && Instant::now() < deadline {
                    sleep(Duration::from_millis(50)).await;
                    created = objects.create(&object).await;
                }
                let created = created.expect("an object is created");
                // A creation drops the status if the kind has the status subresource.
                if created.get("status").is_none() && status != json!({}) {
                    objects.merge_status(name_of(&object), status).await.expect("a status");
                }
            });
            if tasks.len() >= 16 {
                tasks.join_next().await.expect("a task").expect("it succeeds");
            }
        }
        while let Some(done) = tasks.join_next().await {
            done.expect("it succeeds");
        }
    }

    /// The objects with a label.
    pub(crate) async fn labelled(&self, kind: Kind, label: &str) -> Vec<Value> {
        let list = self.objects(kind).list().await.expect("a list");
        let items = list["items"].as_array().expect("items").iter();
        items.filter(|object| object["metadata"]["labels"]["test"] == *label).cloned().collect()
    }

    /// Restarts kube-apiserver, and returns when it begins to stop.
    pub(crate) fn restart(&self) {
        let pid = fs::read_to_string(self.control_plane.folder().join("pid")).expect("a pid");
        let sent = Command::new("kill").args(["-USR1", "--", pid.trim()]).status();
        assert!(sent.expect("kill starts").success());
    }

    /// Waits until it has become ready this many times.
    pub(crate) async fn ready(&self, times: u32) {
        let path = self.control_plane.folder().join("plane/ready");
        until("the API is back", async || {
            let text = fs::read_to_string(&path).ok()?;
            (text.trim().parse() == Ok(times)).then_some(())
        })
        .await;
    }
}
