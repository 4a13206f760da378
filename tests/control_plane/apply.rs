//! Server-side apply on `/status`, and writers that repeat what was repaired.

use serde_json::json;

use crate::cluster::in_cluster;
use crate::objects::{COMPOSITE, condition};

#[test]
fn two_field_managers_apply_their_parts_and_a_backfilled_phase_is_in_nobodys_way() {
    in_cluster(async |cluster| {
        let name = cluster.object(COMPOSITE).await;
        let (billing, function) = (cluster.billing(COMPOSITE), cluster.operator(COMPOSITE));
        let price = json!({"billing": {"unit": "GiB", "currentMonthlyPrice": "12.50"}});
        let first = billing.apply_status(&name, "billing", price.clone()).await.unwrap();
        assert_eq!(first["status"]["phase"], "Unknown");

        // Without force: a phase that the webhook had put under the other manager would conflict.
        let fresh = json!({"phase": "Provisioning", "instanceNamespace": "n",
            "conditions": [condition("PodReady", "False", 0)]});
        let second = function.apply_status(&name, "function", fresh).await.unwrap();
        assert_eq!(second["status"]["phase"], "Provisioning");
        assert_eq!(second["status"]["billing"], price["billing"]);

        let again = billing.apply_status(&name, "billing", price.clone()).await.unwrap();
        assert_eq!(again["status"], second["status"]);

        // Its manager applies no phase any more, so the API server takes it away.
        let less = json!({"instanceNamespace": "n"});
        let third = function.apply_status(&name, "function", less).await.unwrap();
        assert_eq!(third["status"]["phase"], "Unknown");
        assert_eq!(third["status"]["billing"], price["billing"]);
        assert_eq!(third["status"].get("conditions"), None);
    });
}

#[test]
fn a_repaired_status_that_is_written_again_and_again_converges() {
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
            // 1.20 stamps managedFields anew at each apply, so the version moves there.
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
