//! The definitions of both kinds for a cluster.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use statusgate_cluster::manifests::crds::crds;

#[test]
fn the_custom_resource_definitions_are_as_checked_in() {
    for definition in crds() {
        let path = format!("deploy/crds/{}.yaml", definition["metadata"]["name"].as_str().unwrap());
        let stored = fs::read_to_string(Path::new(&path)).unwrap_or_default();
        let fresh = serde_saphyr::to_string(&definition).unwrap();
        assert!(stored == fresh, "{path} is not up to date: run `make docs`");
    }
}

#[test]
fn no_key_of_a_spec_is_dropped_or_rejected_by_its_structural_schema() {
    fn check(schema: &Value, at: &str) {
        for word in ["$ref", "anyOf", "oneOf", "allOf", "const", "enum", "pattern", "required"] {
            assert!(schema.get(word).is_none(), "{at}: {word}");
        }
        let open = schema.get("x-kubernetes-preserve-unknown-fields") == Some(&json!(true));
        match schema.get("type").and_then(Value::as_str) {
            None => assert!(open && schema["nullable"] == true, "{at}: a union is open"),
            Some("array") => check(&schema["items"], &format!("{at}/*")),
            Some("object") => match schema.get("additionalProperties") {
                Some(values) => check(values, &format!("{at}/*")),
                None => assert!(open, "{at}: an object keeps its unknown keys"),
            },
            Some(_) => {}
        }
        for (key, schema) in schema["properties"].as_object().into_iter().flatten() {
            assert!(schema["description"].is_string(), "{at}/{key}: kubectl explains every key");
            check(schema, &format!("{at}/{key}"));
        }
    }
    for definition in crds() {
        let version = &definition["spec"]["versions"][0];
        check(&version["schema"]["openAPIV3Schema"]["properties"]["spec"], "");
    }
}
