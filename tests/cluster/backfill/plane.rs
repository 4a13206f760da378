//! The policies and the objects of these tests.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::harness::objects::{CLUSTER_ROLE, CLUSTER_ROLE_BINDING, Kind, name_of};
use crate::harness::patience::PATIENCE;
use crate::harness::plane::Plane;

impl Plane {
    /// The kubeconfig of a user who may only get and list.
    pub(crate) async fn reader(&self) -> PathBuf {
        let mut role = self.objects(CLUSTER_ROLE).named("test-reader");
        role["rules"] = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list"]}]);
        let mut binding = self.objects(CLUSTER_ROLE_BINDING).named("test-reader");
        binding["roleRef"] = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "test-reader"});
        binding["subjects"] =
            json!([{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "reader"}]);
        for (kind, object) in [(CLUSTER_ROLE, role), (CLUSTER_ROLE_BINDING, binding)] {
            // Another test may have created it in this control plane.
            self.objects(kind).apply("test-reader", "test", object).await.expect("it is applied");
        }
        self.kubeconfig_of("reader")
    }

    /// The policies for all kinds of these tests.
    pub(crate) fn policies(&self) -> PathBuf {
        let folder = self.folder("policies");
        let example = include_str!("../../../deploy/policies/appcat.yaml");
        fs::write(folder.join("appcat.yaml"), example).expect("a policy");
        let kinds = include_str!("../harness/policies.yaml");
        fs::write(folder.join("kinds.yaml"), kinds).expect("a policy");
        folder
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
}
