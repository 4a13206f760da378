//! Defaults for kinds with the status subresource, and the writes that get none.

use serde_json::json;

use super::cluster::in_cluster;
use super::registration::{FailurePolicy, Registration};
use crate::harness::objects::{COMPOSITE, GADGET, condition, refusal};

#[test]
fn an_object_older_than_the_registration_gets_its_phase_at_the_next_status_write() {
    in_cluster(async |cluster| {
        let registration = Registration::of(cluster.server(), "older", FailurePolicy::Fail);
        let name = registration.object(cluster, COMPOSITE).await;
        let objects = cluster.operator(COMPOSITE);
        let before = objects.merge_status(&name, json!({"instanceNamespace": "n"})).await.unwrap();
        assert_eq!(before["status"], json!({"instanceNamespace": "n"}));

        registration.apply(cluster).await;
        let rewritten = objects.put(&before).await.unwrap();
        assert_eq!(rewritten, before, "a rewrite as storage migration does it changes nothing");

        let written = objects.merge_status(&name, json!({"currentVersion": "15"})).await.unwrap();
        assert_eq!(written["status"]["phase"], "Unknown");
        assert_eq!(objects.get(&name).await.unwrap()["status"], written["status"]);
    });
}

#[test]
fn creations_and_writes_of_the_main_resource_are_not_changed() {
    in_cluster(async |cluster| {
        let registration = Registration::of(cluster.server(), "everything", FailurePolicy::Fail);
        let registration = registration.about_everything().apply(cluster).await;
        let objects = cluster.operator(COMPOSITE);
        let name = cluster.unique("everything");
        let mut object = objects.named(&name);
        object["metadata"]["labels"] = registration.label();
        // The API server drops the status, so the webhooks neither reject nor patch it.
        object["status"] = json!({"phase": "Nonsense"});
        let created = objects.create(&object).await.unwrap();
        assert_eq!(created.get("status"), None);

        let told = json!({"spec": {"parameters": {"a": 1}}, "status": {"phase": "Nonsense"}});
        let merged = objects.merge(&name, told).await.unwrap();
        assert_eq!(merged.get("status"), None);
        assert_eq!(merged["spec"]["parameters"]["a"], 1);
        objects.delete(&name).await.unwrap();
        assert_eq!(refusal(objects.get(&name).await).code, 404);
    });
}

#[test]
fn every_kind_of_status_write_gets_the_default_phase() {
    in_cluster(async |cluster| {
        let name = cluster.object(GADGET).await;
        let objects = cluster.operator(GADGET);
        for phase in [json!(""), json!(null)] {
            let merged = objects.merge_status(&name, json!({"phase": phase})).await.unwrap();
            assert_eq!(merged["status"]["phase"], "Unknown", "merged {phase}");
            let mut object = merged;
            object["status"] = json!({"phase": phase, "instanceNamespace": "n"});
            let put = objects.put_status(&object).await.unwrap();
            assert_eq!(put["status"]["phase"], "Unknown", "put {phase}");
        }
        let mut object = objects.get(&name).await.unwrap();
        object.as_object_mut().unwrap().remove("status");
        let put = objects.put_status(&object).await.unwrap();
        assert_eq!(put["status"]["phase"], "Unknown", "put without a status");
    });
}

#[test]
fn a_dry_run_is_judged_and_stores_nothing() {
    in_cluster(async |cluster| {
        let name = cluster.object(COMPOSITE).await;
        let objects = cluster.operator(COMPOSITE);
        let before = objects.get(&name).await.unwrap();

        let status = json!({"conditions": [condition("Synced", "True", 0)]});
        let dry = objects.dry_merge_status(&name, status).await.unwrap();
        assert_eq!(dry["status"]["phase"], "Unknown");
        let refused = refusal(objects.dry_merge_status(&name, json!({"phase": "ready"})).await);
        assert_eq!(refused.code, 422);
        assert_eq!(objects.get(&name).await.unwrap(), before);
    });
}
