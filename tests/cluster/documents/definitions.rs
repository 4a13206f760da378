//! The CustomResourceDefinitions.

use std::fs;

use serde_json::Value;
use statusgate_core::policy::PolicySet;

use crate::harness::objects::{CONVENTION, CRD, POLICY, name_of};
use crate::harness::patience::until;
use crate::harness::pool::in_own_cluster;

#[test]
fn the_api_server_accepts_the_schemas_as_structural() {
    in_own_cluster(async |plane| {
        for name in ["statuspolicies.statusgate.dev", "statusconventions.statusgate.dev"] {
            let types = until("the definition is established", async || {
                let definition = plane.objects(CRD).get(name).await.unwrap();
                let conditions = definition["status"]["conditions"].as_array()?.clone();
                let types: Vec<String> = conditions
                    .iter()
                    .filter(|condition| condition["status"] == "True")
                    .map(|condition| condition["type"].as_str().unwrap().to_owned())
                    .collect();
                types.contains(&"Established".to_owned()).then_some(types)
            });
            assert_eq!(types.await, ["NamesAccepted", "Established"], "{name}");
        }
    });
}

#[test]
fn the_api_server_stores_each_document_without_loss() {
    in_own_cluster(async |plane| {
        let mut texts: Vec<String> = PolicySet::built_in_names()
            .flat_map(|name| {
                let whole = PolicySet::whole_document(&[], name).unwrap();
                let whole = serde_saphyr::to_string(&whole).unwrap();
                let whole =
                    whole.replacen(&format!("name: {name}"), &format!("name: {name}-whole"), 1);
                [PolicySet::document(&[], name).unwrap(), whole]
            })
            .collect();
        for entry in fs::read_dir("deploy/policies").unwrap() {
            let path = entry.unwrap().path();
            if !path.ends_with("kustomization.yaml") {
                texts.push(fs::read_to_string(path).unwrap());
            }
        }
        let documents = texts.iter().flat_map(|text| serde_saphyr::from_multiple(text).unwrap());
        let documents: Vec<Value> =
            documents.filter(|document: &Value| !document.is_null()).collect();
        assert!(documents.len() > 45, "the documents were found: {}", documents.len());
        for mut document in documents {
            // Keys of a later version.
            document["spec"]["later"] = serde_json::json!({"a": [{"b": null}]});
            let kind = if document["kind"] == "StatusPolicy" { POLICY } else { CONVENTION };
            let name = name_of(&document).to_owned();
            plane.objects(kind).create(&document).await.unwrap();
            let created = plane.objects(kind).get(&name).await.unwrap();
            assert!(same(&created["spec"], &document["spec"]), "{name}");
            plane.objects(kind).delete(&name).await.unwrap();
            plane.objects(kind).apply(&name, "test", document.clone()).await.unwrap();
            let applied = plane.objects(kind).get(&name).await.unwrap();
            assert!(same(&applied["spec"], &document["spec"]), "{name} by server-side apply");
        }
    });
}

/// Whether two values are the same; 1 and 1.0 are, because Go writes both as 1.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.keys().eq(other.keys()) && one.values().zip(other.values()).all(|(a, b)| same(a, b))
        }
        _ => one == other,
    }
}
