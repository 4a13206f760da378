//! What these tests do with a cluster.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::objects::{COMPOSITE, MUTATING, POLICY, SECRET, VALIDATING, condition_of};
use crate::harness::patience::{until, until_within};
use crate::harness::plane::{Plane, documents};

impl Plane {
    /// Creates an object and returns its name.
    pub(crate) async fn composite(&self, name: &str) -> String {
        let objects = self.objects(COMPOSITE);
        objects.create(&objects.named(name)).await.expect("an object");
        name.to_owned()
    }

    /// Creates the example policy for AppCat.
    pub(crate) async fn create_policy(&self) {
        let [policy] = documents(include_str!("../../../deploy/policies/appcat.yaml"))
            .try_into()
            .expect("one");
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
            let enforced = condition_of(&policy, "Enforced");
            let is_current = enforced["observedGeneration"] == policy["metadata"]["generation"];
            let message = enforced["message"].as_str()?;
            let is_by_all = message.starts_with(&format!("{replicas} of {replicas} replica"));
            (is_current && is_by_all && enforced["status"] == "True").then_some(policy)
        })
        .await
    }

    /// The administrator's kubeconfig without a check of the API server's certificate.
    pub(crate) fn unverified_kubeconfig(&self) -> PathBuf {
        self.changed_kubeconfig("unverified", |text| {
            let lines =
                text.lines().map(|line| match line.split_once("certificate-authority-data:") {
                    Some((indent, _)) => format!("{indent}insecure-skip-tls-verify: true\n"),
                    None => format!("{line}\n"),
                });
            lines.collect()
        })
    }
}
