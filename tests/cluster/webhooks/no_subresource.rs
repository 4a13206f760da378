//! A kind without the status subresource: status is part of the main resource, so no write of it may get
//! stuck.

use serde_json::json;

use super::cluster::in_cluster;
use super::registration::{FailurePolicy, Registration};
use crate::harness::objects::{WIDGET, refusal};

#[test]
fn create_and_update_are_backfilled_and_judged() {
    in_cluster(async |cluster| {
        let name = cluster.object(WIDGET).await;
        let objects = cluster.operator(WIDGET);
        let mut object = objects.get(&name).await.unwrap();
        assert_eq!(object["status"], json!({"phase": "Unknown"}), "created without a status");
        let updated = objects.merge(&name, json!({"status": {"phase": null, "reason": "Because"}}));
        let updated = updated.await.unwrap();
        assert_eq!(updated["status"], json!({"phase": "Unknown", "reason": "Because"}));
        let refused = refusal(objects.merge(&name, json!({"status": {"phase": "ready"}})).await);
        assert!(refused.message.ends_with(" [appcat/phase-value]"), "{}", refused.message);

        object["metadata"] = json!({"name": cluster.unique("widget"),
            "labels": object["metadata"]["labels"]});
        object["status"] = json!({"phase": "ready"});
        assert_eq!(refusal(objects.create(&object).await).code, 422);
        object["status"] = json!({"phase": null});
        let created = objects.create(&object).await.unwrap();
        assert_eq!(created["status"], json!({"phase": "Unknown"}));
    });
}

#[test]
fn a_stored_fault_does_not_prevent_changes_of_spec_and_finalizers() {
    in_cluster(async |cluster| {
        let registration = Registration::of(cluster.server(), "nonsense", FailurePolicy::Fail);
        let objects = cluster.operator(WIDGET);
        let statuses = [
            json!({"phase": "Nonsense", "conditions": [{"type": "Ready", "status": "Maybe"}]}),
            json!({"phase": 5, "conditions": {}}),
            json!(["not", "an", "object"]),
        ];
        let mut names = Vec::new();
        for status in &statuses {
            let name = registration.object(cluster, WIDGET).await;
            let body = json!({"metadata": {"finalizers": ["test.statusgate.dev/held"]},
                "status": status});
            objects.merge(&name, body).await.unwrap();
            names.push(name);
        }
        registration.apply(cluster).await;

        for (name, status) in names.iter().zip(&statuses) {
            let edited = objects.merge(name, json!({"spec": {"size": 2}})).await.unwrap();
            assert_eq!(edited["spec"]["size"], 2);
            assert_eq!(edited["status"], *status, "this write does not change the status");

            objects.delete(name).await.unwrap();
            let held = objects.get(name).await.unwrap();
            assert_ne!(held["metadata"].get("deletionTimestamp"), None);
            let free = json!({"metadata": {"finalizers": null}});
            objects.merge(name, free).await.unwrap_or_else(|error| {
                panic!("the finalizer of an object with status {status} stays: {error}");
            });
            assert_eq!(refusal(objects.get(name).await).code, 404);
        }
    });
}

#[test]
fn a_finalizer_can_be_removed_before_a_deletion() {
    in_cluster(async |cluster| {
        let registration = Registration::of(cluster.server(), "living", FailurePolicy::Fail);
        let objects = cluster.operator(WIDGET);
        let name = registration.object(cluster, WIDGET).await;
        let status = json!({"phase": "Nonsense"});
        let body = json!({"metadata": {"finalizers": ["test.statusgate.dev/held"]},
            "status": status});
        objects.merge(&name, body).await.unwrap();
        registration.apply(cluster).await;
        let free = json!({"metadata": {"finalizers": null}});
        let freed = objects.merge(&name, free).await.unwrap();
        assert_eq!(freed["metadata"].get("finalizers"), None);
        assert_eq!(freed["status"], status);
    });
}
