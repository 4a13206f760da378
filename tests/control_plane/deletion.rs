//! An object on its way out: `Deleting` is imposed, and nothing is in the way.

use serde_json::json;

use crate::cluster::{Cluster, in_cluster};
use crate::objects::{COMPOSITE, Kind, WIDGET, condition, refusal};

#[test]
fn deleting_is_imposed_at_the_next_status_write_and_the_finalizer_lets_the_object_go() {
    in_cluster(async |cluster| {
        let name = held(cluster, COMPOSITE).await;
        let crossplane = cluster.crossplane(COMPOSITE);
        let conditions = ["Ready", "Synced", "PodReady"].map(|kind| condition(kind, "True", 0));
        let ready = json!({"phase": "Ready", "instanceNamespace": "n", "conditions": conditions});
        crossplane.merge_status(&name, ready).await.unwrap();
        crossplane.delete(&name).await.unwrap();

        // What Crossplane writes on deletion: no function runs, so the phase is the old one.
        let mut object = crossplane.get(&name).await.unwrap();
        assert_eq!(object["status"]["phase"], "Ready", "deletion is no status write");
        let asked = object["metadata"]["deletionTimestamp"].clone();
        object["status"]["conditions"][0] = condition("Ready", "False", 1);
        object["status"]["conditions"][0]["reason"] = "Deleting".into();
        let written = crossplane.put_status(&object).await.unwrap();
        assert_eq!(written["status"]["phase"], "Deleting");
        assert_eq!(written["status"]["lastTransitionTime"], asked);

        // Anybody, whatever he writes: it stays, and he is not refused.
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
fn without_the_subresource_a_deleted_object_goes_too() {
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
