//! The webhook registrations, with the rules of `deploy/base/webhooks.yaml` for the kinds here.
//!
//! Each has a name and selects the objects with this name as a label. So a test that kills its server
//! does not affect the writes of other tests.

use std::net::SocketAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::cluster::Cluster;
use super::server::Server;
use crate::harness::objects::{COMPOSITE, Kind, MUTATING, Objects, VALIDATING};
use crate::harness::patience::until;

/// The result of a write if no server answers.
#[derive(Clone, Copy)]
pub(crate) enum FailurePolicy {
    Fail,
    Ignore,
}

/// Both registrations of one name.
pub(crate) struct Registration {
    name: String,
    address: SocketAddr,
    ca: String,
    failure_policy: FailurePolicy,
    rules: Value,
}

impl Registration {
    pub(crate) fn of(server: &Server, name: &str, failure_policy: FailurePolicy) -> Self {
        let ca = STANDARD.encode(server.home().ca());
        let (name, address) = (name.to_owned(), server.address());
        Self { name, address, ca, failure_policy, rules: rules() }
    }

    /// Calls another address than the server's own, that of a load balancer.
    pub(crate) fn at(mut self, address: SocketAddr) -> Self {
        self.address = address;
        self
    }

    /// Selects every operation and subresource, as in a careless registration.
    pub(crate) fn about_everything(mut self) -> Self {
        self.rules = json!([{
            "apiGroups": ["vshn.appcat.vshn.io", "test.statusgate.dev"], "apiVersions": ["*"],
            "operations": ["CREATE", "UPDATE", "DELETE"], "resources": ["*", "*/status"]
        }]);
        self
    }

    /// Registers, and waits until the API server calls the webhooks.
    pub(crate) async fn apply(self, cluster: &Cluster) -> Self {
        for (kind, webhook) in [(MUTATING, "mutate"), (VALIDATING, "validate")] {
            let objects = cluster.admin(kind);
            objects.create(&self.document(&objects, webhook)).await.expect("a registration");
        }
        let probe = self.object(cluster, COMPOSITE).await;
        let probes = cluster.admin(COMPOSITE);
        until("both webhooks are asked", async || {
            let filled = probes.dry_merge_status(&probe, json!({"instanceNamespace": "n"})).await;
            let judged = probes.dry_merge_status(&probe, json!({"phase": "Nonsense"})).await;
            let asked = filled.is_ok_and(|object| object["status"]["phase"] == "Unknown");
            (asked && judged.is_err()).then_some(())
        })
        .await;
        self
    }

    /// Creates an object with nothing but a name and the label of this registration.
    pub(crate) async fn object(&self, cluster: &Cluster, kind: Kind) -> String {
        let name = cluster.unique(&self.name);
        let objects = cluster.admin(kind);
        let mut object = objects.named(&name);
        object["metadata"]["labels"] = self.label();
        // The next request may not know a kind that was just established.
        until("an object is created", async || objects.create(&object).await.ok()).await;
        name
    }

    /// Objects for steady writes.
    pub(crate) async fn writers(&self, cluster: &Cluster) -> Vec<(Objects, String)> {
        let mut writers = Vec::new();
        for _ in 0..WRITERS {
            let name = self.object(cluster, COMPOSITE).await;
            writers.push((cluster.operator(COMPOSITE), name));
        }
        writers
    }

    /// The labels that this registration selects.
    pub(crate) fn label(&self) -> Value {
        json!({"test": self.name})
    }

    fn document(&self, objects: &Objects, webhook: &str) -> Value {
        let mut document = objects.named(&self.name);
        document["webhooks"] = json!([{
            "name": format!("{webhook}.statusgate.dev"),
            "admissionReviewVersions": ["v1"],
            "clientConfig": {"url": format!("https://{}/{webhook}", self.address), "caBundle": self.ca},
            "failurePolicy": match self.failure_policy {
                FailurePolicy::Fail => "Fail",
                FailurePolicy::Ignore => "Ignore",
            },
            "matchPolicy": "Equivalent",
            "sideEffects": "None",
            "timeoutSeconds": 10,
            "objectSelector": {"matchLabels": self.label()},
            "rules": self.rules,
        }]);
        if webhook == "mutate" {
            document["webhooks"][0]["reinvocationPolicy"] = "IfNeeded".into();
        }
        document
    }
}

/// With the status subresource `/status` and UPDATE, without it the main resource.
fn rules() -> Value {
    let rule = |group, operations: &[&str], resources: &[&str]| {
        json!({"apiGroups": [group], "apiVersions": ["v1"], "operations": operations,
            "resources": resources, "scope": "*"})
    };
    json!([
        rule(
            "vshn.appcat.vshn.io",
            &["UPDATE"],
            &["xvshnpostgresqls/status", "vshnpostgresqls/status"]
        ),
        rule("test.statusgate.dev", &["UPDATE"], &["gadgets/status"]),
        rule("test.statusgate.dev", &["CREATE", "UPDATE"], &["widgets"]),
    ])
}

/// Enough for writes at the same time.
const WRITERS: usize = 4;
