//! `billing` is nil by default: the stored result of a null.

use serde_json::{Value, json};

use super::cluster::in_cluster;
use crate::harness::objects::{COMPOSITE, GADGET, Kind, Objects};

#[test]
fn a_null_of_a_field_that_is_not_nullable_is_removed() {
    in_cluster(async |cluster| {
        let (objects, name) = (cluster.operator(COMPOSITE), cluster.object(COMPOSITE).await);
        for stored in write_null(&objects, &name).await {
            assert_eq!(stored.get("billing"), None, "{stored}");
        }
    });
}

#[test]
fn a_nullable_field_is_stored_as_null() {
    in_cluster(async |cluster| {
        let (objects, name) = (cluster.operator(GADGET), cluster.object(GADGET).await);
        let absent = objects.merge_status(&name, json!({"phase": "Unknown"})).await.unwrap();
        assert_eq!(absent["status"].get("billing"), Some(&Value::Null), "{absent}");
        for stored in write_null(&objects, &name).await {
            assert_eq!(stored.get("billing"), Some(&Value::Null), "{stored}");
        }
    });
}

#[test]
fn an_existing_value_is_kept() {
    in_cluster(async |cluster| {
        let kinds: [Kind; 2] = [COMPOSITE, GADGET];
        for kind in kinds {
            let (objects, name) = (cluster.operator(kind), cluster.object(kind).await);
            let billing = json!({"unit": "GiB"});
            cluster.billing(kind).merge_status(&name, json!({"billing": billing})).await.unwrap();
            let later = objects.merge_status(&name, json!({"instanceNamespace": "n"}));
            assert_eq!(later.await.unwrap()["status"]["billing"], billing);
        }
    });
}

/// The stored object after a null in a JSON merge patch, and after one in a PUT.
async fn write_null(objects: &Objects, name: &str) -> [Value; 2] {
    let null = json!({"billing": null, "instanceNamespace": "merged"});
    objects.merge_status(name, null).await.unwrap();
    let mut object = objects.get(name).await.unwrap();
    let merged = object["status"].clone();
    object["status"]["billing"] = Value::Null;
    object["status"]["instanceNamespace"] = "put".into();
    objects.put_status(&object).await.unwrap();
    let put = objects.get(name).await.unwrap()["status"].clone();
    assert_eq!(
        (&merged["instanceNamespace"], &put["instanceNamespace"]),
        (&json!("merged"), &json!("put"))
    );
    [merged, put]
}
