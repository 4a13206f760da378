//! The JSON Schemas of documents: as checked in, and of one mind with the reader.

#![expect(clippy::unwrap_used, reason = "tests, and their helpers too")]

use std::fs;
use std::path::Path;

use jsonschema::Validator;
use serde_json::{Value, json};
use statusgate::policy::{DocumentKind, PolicySet, Source};

const KINDS: [DocumentKind; 2] = [DocumentKind::StatusPolicy, DocumentKind::StatusConvention];

/// All documents of the repository that compile.
fn documents() -> Vec<(String, Value)> {
    let mut documents = Vec::new();
    for folder in ["src/conventions", "deploy/policies", "tests/fixtures/policies/ok"] {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.display().to_string();
            if name.ends_with("kustomization.yaml") {
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            let parts: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
            documents.extend(parts.into_iter().map(|part| (name.clone(), part)));
        }
    }
    documents.retain(|(_, document)| !document.is_null());
    assert!(documents.len() > 25, "the documents were found: {}", documents.len());
    documents
}

fn validator(document: &Value) -> Validator {
    let kind = document["kind"].as_str().unwrap();
    let kind = KINDS.into_iter().find(|known| known.name() == kind).unwrap();
    jsonschema::validator_for(&kind.json_schema()).unwrap()
}

#[test]
fn the_schemas_are_as_checked_in() {
    for kind in KINDS {
        let path = format!("docs/schemas/{}.json", kind.name().to_lowercase());
        let stored = fs::read_to_string(Path::new(&path)).unwrap_or_default();
        let fresh = format!("{}\n", serde_json::to_string_pretty(&kind.json_schema()).unwrap());
        assert!(stored == fresh, "{path} is not up to date: run `make docs`");
    }
}

#[test]
fn what_the_reader_takes_the_schema_takes() {
    for (name, document) in documents() {
        let validator = validator(&document);
        let errors: Vec<String> = validator
            .iter_errors(&document)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{name}: {errors:#?}");
    }
}

/// Puts an unknown key into each mapping of a document in turn.
fn with_unknown_keys(document: &Value, at: &str, found: &mut Vec<String>) {
    match document {
        Value::Object(members) => {
            found.push(at.to_owned());
            for (key, value) in members {
                let key = key.replace('~', "~0").replace('/', "~1");
                with_unknown_keys(value, &format!("{at}/{key}"), found);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                with_unknown_keys(item, &format!("{at}/{index}"), found);
            }
        }
        _ => {}
    }
}

#[test]
fn a_key_that_the_reader_does_not_know_the_schema_does_not_either() {
    let (mut known, mut unknown) = (0, 0);
    for (name, document) in documents() {
        let validator = validator(&document);
        let mut places = Vec::new();
        with_unknown_keys(&document, "", &mut places);
        for place in places {
            let mut changed = document.clone();
            changed.pointer_mut(&place).unwrap()["zzz"] = json!("zzz");
            // A name of its own, for those that are built in already.
            changed["metadata"]["name"] = json!("of-its-own");
            let source = Source { name: name.clone(), text: changed.to_string() };
            let said = PolicySet::compile(&[source]).map_err(|mistakes| mistakes.to_string());
            let refused = said.as_ref().is_err_and(|said| said.contains("unknown key \"zzz\""));
            if refused {
                unknown += 1;
                assert!(!validator.is_valid(&changed), "{name}{place}: the schema takes any key");
            } else if said.is_ok() {
                known += 1;
                assert!(validator.is_valid(&changed), "{name}{place}: the reader takes any key");
            }
        }
    }
    assert!(unknown > 500 && known > 10, "{unknown} refused, {known} taken");
}
