//! Rejected writes with their messages, and repaired writes.

use kube::core::response::StatusSummary;
use serde_json::json;

use super::cluster::in_cluster;
use crate::harness::objects::{COMPOSITE, condition, refusal};

#[test]
fn an_unsupported_phase_is_rejected_with_a_cause_at_its_field() {
    in_cluster(async |cluster| {
        let name = cluster.object(COMPOSITE).await;
        let objects = cluster.operator(COMPOSITE);
        let before = objects.get(&name).await.unwrap();
        let status = refusal(objects.merge_status(&name, json!({"phase": "ready"})).await);
        assert_eq!(status.status, Some(StatusSummary::Failure));
        assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"));
        let denied = "admission webhook \"validate.statusgate.dev\" denied the request: ";
        assert!(status.message.starts_with(denied), "{}", status.message);
        assert!(status.message.ends_with(" [appcat/phase-value]"), "{}", status.message);

        let details = status.details.unwrap();
        assert_eq!(details.group, "vshn.appcat.vshn.io");
        assert_eq!((details.kind.as_str(), &details.name), ("XVSHNPostgreSQL", &name));
        let [cause] = details.causes.as_slice() else { panic!("one cause: {details:?}") };
        assert_eq!(cause.reason, "FieldValueNotSupported");
        assert_eq!(cause.field, "status.phase");
        assert!(cause.message.contains("\"ready\""), "{}", cause.message);
        assert!(cause.message.ends_with(" [appcat/phase-value]"), "{}", cause.message);
        assert_eq!(objects.get(&name).await.unwrap(), before);
    });
}

#[test]
fn every_fault_of_a_write_has_its_own_cause() {
    in_cluster(async |cluster| {
        let name = cluster.object(COMPOSITE).await;
        let mut bad = condition("Ready", "Maybe", 0);
        bad["type"] = "not a type".into();
        let write = json!({"phase": "Broken", "conditions": [bad]});
        let status = refusal(cluster.operator(COMPOSITE).merge_status(&name, write).await);
        let causes = status.details.unwrap().causes;
        let fields: Vec<&str> = causes.iter().map(|cause| cause.field.as_str()).collect();
        assert_eq!(
            fields,
            ["status.conditions[0].type", "status.conditions[0].status", "status.phase"]
        );
    });
}

#[test]
fn a_disagreement_of_an_operator_is_rejected_and_one_of_crossplane_is_repaired() {
    in_cluster(async |cluster| {
        let name = cluster.object(COMPOSITE).await;
        let operator = cluster.operator(COMPOSITE);
        let conditions = [condition("Ready", "False", 0), condition("Synced", "True", 0)];
        let fresh = json!({"phase": "Provisioning", "instanceNamespace": "n",
            "conditions": conditions});
        let before = operator.merge_status(&name, fresh).await.unwrap();

        let status = refusal(operator.merge_status(&name, json!({"phase": "Ready"})).await);
        assert_eq!(status.code, 422);
        let cause = &status.details.unwrap().causes[0];
        assert_eq!(
            (cause.reason.as_str(), cause.field.as_str()),
            ("FieldValueInvalid", "status.phase")
        );
        assert!(cause.message.ends_with(" [appcat/phase-ready]"), "{}", cause.message);
        assert_eq!(operator.get(&name).await.unwrap(), before);

        let crossplane = cluster.crossplane(COMPOSITE);
        let repaired = crossplane.merge_status(&name, json!({"phase": "Ready"})).await.unwrap();
        assert_eq!(repaired["status"], before["status"]);
    });
}

#[test]
fn a_changed_condition_with_the_old_phase_is_rejected_or_repaired() {
    in_cluster(async |cluster| {
        let name = cluster.object(COMPOSITE).await;
        let operator = cluster.operator(COMPOSITE);
        let kinds = ["Ready", "Synced", "PodReady"];
        let conditions = kinds.map(|kind| condition(kind, "True", 0));
        let ready = json!({"phase": "Ready", "instanceNamespace": "n", "conditions": conditions});
        operator.merge_status(&name, ready).await.unwrap();

        let mut conditions = conditions;
        conditions[2] = condition("PodReady", "False", 1);
        let failing = json!({"conditions": conditions});
        let status = refusal(operator.merge_status(&name, failing.clone()).await);
        assert!(status.message.ends_with(" [appcat/phase-ready]"), "{}", status.message);

        let crossplane = cluster.crossplane(COMPOSITE);
        let repaired = crossplane.merge_status(&name, failing).await.unwrap();
        assert_eq!(repaired["status"]["phase"], "Degraded");
        assert_eq!(crossplane.get(&name).await.unwrap()["status"], repaired["status"]);
    });
}
