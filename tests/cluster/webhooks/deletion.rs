//! A deleted object gets the phase `Deleting`, and nothing prevents its deletion.

use serde_json::json;

use super::cluster::{Cluster, in_cluster};
use crate::harness::objects::{COMPOSITE, Kind, WIDGET, condition, refusal};

#[test]
fn a_deleted_object_gets_the_phase_deleting_and_its_finalizer_can_be_removed() {
    in_cluster(async |cluster| {
        let name = held(cluster, COMPOSITE).await;
        let crossplane = cluster.crossplane(COMPOSITE);
        let conditions = ["Ready", "Synced", "PodReady"].map(|kind| condition(kind, "True", 0));
        let ready = json!({"phase": "Ready", "instanceNamespace": "n", "conditions": conditions});
        crossplane.merge_status(&name, ready).await.unwrap();
        crossplane.delete(&name).await.unwrap();

        // At a deletion Crossplane runs no function and writes the old phase.
        let mut object = crossplane.get(&name).await.unwrap();
        assert_eq!(object["status"]["phase"], "Ready", "deletion is no status write");
        let asked = object["metadata"]["deletionTimestamp"].clone();
        object["status"]["conditions"][0] = condition("Ready", "False", 1);
        object["status"]["conditions"][0]["reason"] = "Deleting".into();
        let written = crossplane.put_status(&object).await.unwrap();
        assert_eq!(written["status"]["phase"], "Deleting");
        assert_eq!(written["status"]["lastTransitionTime"], asked);

        // The phase stays for every writer, and no write is rejected.
        for phase in ["Ready", "Provisioning"] {
            let operator = cluster.operator(COMPOSITE);
            let again = operator.merge_status(&name, json!({"phase": phase})).await.unwrap();
            assert_eq!(again["status"], written["status"], "written as {phase}");
        }
        let freed = crossplane.merge(&name, json!({"metadata": {"finalizers": null}})).await;
        freed.unwrap();
        assert_eq!(refusal(crossplane.get(&name).await).code, 404);
    });
}

#[test]
fn an_object_without_the_subresource_can_be_deleted() {
    in_cluster(async |cluster| {
        let name = held(cluster, WIDGET).await;
        let objects = cluster.operator(WIDGET);
        objects.delete(&name).await.unwrap();
        let written = objects.merge(&name, json!({"status": {"reason": "Leaving"}})).await.unwrap();
        assert_eq!(written["status"]["phase"], "Deleting");
        let asked = &written["metadata"]["deletionTimestamp"];
        assert_eq!(written["status"]["lastTransitionTime"], *asked);
        objects.merge(&name, json!({"metadata": {"finalizers": null}})).await.unwrap();
        assert_eq!(refusal(objects.get(&name).await).code, 404);
    });
}

async fn held(cluster: &Cluster, kind: Kind) -> String {
    let name = cluster.object(kind).await;
    let finalizer = json!({"metadata": {"finalizers": ["test.statusgate.dev/held"]}});
    cluster.operator(kind).merge(&name, finalizer).await.unwrap();
    name
}
