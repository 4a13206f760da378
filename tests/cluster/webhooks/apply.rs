//! Server-side apply on `/status`, and writers that repeat a repaired write.

use serde_json::json;

use super::cluster::in_cluster;
use crate::harness::objects::{COMPOSITE, condition};

#[test]
fn a_default_phase_conflicts_with_no_field_manager() {
    in_cluster(async |cluster| {
        let name = cluster.object(COMPOSITE).await;
        let (billing, function) = (cluster.billing(COMPOSITE), cluster.operator(COMPOSITE));
        let price = json!({"billing": {"unit": "GiB", "currentMonthlyPrice": "12.50"}});
        let first = billing.apply_status(&name, "billing", price.clone()).await.unwrap();
        assert_eq!(first["status"]["phase"], "Unknown");

        // Without force: a phase under the other manager would conflict.
        let fresh = json!({"phase": "Provisioning", "instanceNamespace": "n",
            "conditions": [condition("PodReady", "False", 0)]});
        let second = function.apply_status(&name, "function", fresh).await.unwrap();
        assert_eq!(second["status"]["phase"], "Provisioning");
        assert_eq!(second["status"]["billing"], price["billing"]);

        let again = billing.apply_status(&name, "billing", price.clone()).await.unwrap();
        assert_eq!(again["status"], second["status"]);

        // Its manager no longer applies a phase, so the API server removes it.
        let less = json!({"instanceNamespace": "n"});
        let third = function.apply_status(&name, "function", less).await.unwrap();
        assert_eq!(third["status"]["phase"], "Unknown");
        assert_eq!(third["status"]["billing"], price["billing"]);
        assert_eq!(third["status"].get("conditions"), None);
    });
}

#[test]
fn repeated_writes_of_a_repaired_status_converge() {
    in_cluster(async |cluster| {
        let name = cluster.object(COMPOSITE).await;
        let crossplane = cluster.crossplane(COMPOSITE);
        let conditions = json!([condition("Ready", "False", 0), condition("Synced", "True", 0)]);
        let fresh = json!({"phase": "Provisioning", "instanceNamespace": "n",
            "conditions": conditions});
        crossplane.merge_status(&name, fresh).await.unwrap();

        let wanted = json!({"phase": "Ready", "instanceNamespace": "n"});
        let first = crossplane.force_status(&name, "function", wanted.clone()).await.unwrap();
        assert_eq!(first["status"]["phase"], "Provisioning");
        for _ in 0..3 {
            let again = crossplane.force_status(&name, "function", wanted.clone()).await.unwrap();
            // 1.20 changes the time in managedFields at each apply, so the resource version changes.
            assert_eq!(again["status"], first["status"]);
        }

        let mut object = crossplane.get(&name).await.unwrap();
        object["status"]["phase"] = "Ready".into();
        let first = crossplane.put_status(&object).await.unwrap();
        assert_eq!(first["status"]["phase"], "Provisioning");
        object["metadata"] = first["metadata"].clone();
        for _ in 0..3 {
            let again = crossplane.put_status(&object).await.unwrap();
            assert_eq!(again, first, "a repeated PUT is no write: nothing to be woken by");
        }
    });
}
