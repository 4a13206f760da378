//! The JSON Schemas of documents: as checked in, and of one mind with the reader.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use jsonschema::Validator;
use serde_json::{Value, json};
use statusgate_core::documents::DocumentKind;
use statusgate_core::language::Predicate;
use statusgate_core::policy::{PolicySet, Source};
use statusgate_pages::dictionary::Dictionary;

const KINDS: [DocumentKind; 2] = [DocumentKind::StatusPolicy, DocumentKind::StatusConvention];

/// All documents of the repository that compile.
fn documents() -> Vec<(String, Value)> {
    let mut documents = Vec::new();
    for folder in
        ["crates/statusgate-core/src/conventions", "deploy/policies", "tests/fixtures/policies/ok"]
    {
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
    let kind: DocumentKind = serde_json::from_value(document["kind"].clone()).unwrap();
    jsonschema::validator_for(&kind.json_schema()).unwrap()
}

#[test]
fn the_schemas_are_as_checked_in() {
    for kind in KINDS {
        let path = format!("docs/schemas/{kind:?}.json").to_lowercase();
        let stored = fs::read_to_string(Path::new(&path)).unwrap_or_default();
        let fresh = format!("{}\n", serde_json::to_string_pretty(&kind.json_schema()).unwrap());
        assert!(stored == fresh, "{path} is not up to date: run `make docs`");
    }
    let stored = fs::read_to_string("docs/schemas/dictionary.json").unwrap_or_default();
    assert_eq!(stored, format!("{:#}\n", Dictionary::schema()), "run `make docs`");
}

#[test]
fn the_dictionary_matches_its_schema_and_has_the_words_of_all_conventions() {
    let policies = PolicySet::compile(&PolicySet::examples()).unwrap();
    let dictionary = json!(Dictionary::of(&policies));
    let validator = jsonschema::validator_for(&Dictionary::schema()).unwrap();
    let errors: Vec<String> =
        validator.iter_errors(&dictionary).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:#?}");
    for name in PolicySet::built_in_names() {
        assert!(dictionary["conventions"][name].is_object(), "{name}");
    }
    let of = |name: &str| &dictionary["conventions"][name];
    let types = of("stackable")["conditions"][0]["types"].as_array().unwrap();
    let stopped = types.iter().find(|known| known["type"] == "Stopped").unwrap();
    assert_eq!(stopped["polarity"], "negative");
    let phases = of("cert-manager")["phase"]["values"].as_array().unwrap();
    let valid = phases.iter().find(|known| known["phase"] == "valid").unwrap();
    assert_eq!((&valid["health"], &valid["retried"]), (&json!("current"), &json!(false)));
    let resources = dictionary["resources"].as_array().unwrap();
    assert!(resources.iter().any(|rule| rule["convention"] == "cert-manager"
        && rule["resources"].to_string().contains("certificates")));
}

#[test]
fn documents_that_compile_match_the_schema() {
    for (name, document) in documents() {
        let validator = validator(&document);
        let errors: Vec<String> = validator
            .iter_errors(&document)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{name}: {errors:#?}");
    }
}

/// Other values for a place: null, an empty list, a list of the value, a string, an integer, a boolean, and
/// the first item of a list.
fn variants(value: &Value) -> Vec<Value> {
    let mut others =
        vec![Value::Null, json!([]), json!([value]), json!("/status"), json!(1), json!(true)];
    if let Value::Array(items) = value {
        others.extend(items.first().cloned());
    }
    others.retain(|other| other != value);
    others
}

/// All places of a document; of those that differ only by the index in a list, one.
fn places(document: &Value) -> Vec<String> {
    fn walk(value: &Value, at: &str, kind: &str, found: &mut Vec<(String, String)>) {
        if !found.iter().any(|(_, known)| known == kind) {
            found.push((at.to_owned(), kind.to_owned()));
        }
        match value {
            Value::Object(members) => {
                for (key, value) in members {
                    let key = key.replace('~', "~0").replace('/', "~1");
                    walk(value, &format!("{at}/{key}"), &format!("{kind}/{key}"), found);
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    walk(item, &format!("{at}/{index}"), &format!("{kind}/*"), found);
                }
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    walk(&document["spec"], "/spec", "/spec", &mut found);
    found.into_iter().map(|(at, _)| at).collect()
}

/// Whether the reader takes a document; then the schema has to.
fn both_take(name: &str, document: &Value, validator: &Validator) -> bool {
    let source = Source { name: name.to_owned(), text: document.to_string() };
    let taken = PolicySet::compile(&[source]).is_ok();
    assert!(!taken || validator.is_valid(document), "{name}: the schema refuses {document:#}");
    taken
}

#[test]
fn all_forms_of_a_value_match_the_schema() {
    let mut taken = 0;
    for (name, document) in documents() {
        // The built-in ones have few forms and many words; the fixtures are made of forms.
        if !name.contains("fixtures") {
            continue;
        }
        let validator = validator(&document);
        for place in places(&document) {
            for other in variants(document.pointer(&place).unwrap()) {
                let mut changed = document.clone();
                changed["metadata"]["name"] = json!("of-its-own");
                *changed.pointer_mut(&place).unwrap() = other;
                taken += usize::from(both_take(&format!("{name}{place}"), &changed, &validator));
            }
        }
    }
    assert!(taken > 40, "{taken}");
}

/// Null removes what is inherited.
#[test]
fn null_that_removes_an_inherited_key_matches_the_schema() {
    let mut taken = 0;
    let conventions = documents().into_iter().filter(|(name, _)| name.starts_with("crates/"));
    for (name, document) in conventions {
        let base = document["metadata"]["name"].clone();
        let heir = |spec: Value| {
            let mut heir = json!({
                "apiVersion": "statusgate.dev/v1alpha1", "kind": "StatusConvention",
                "metadata": {"name": "heir"}, "spec": spec,
            });
            heir["spec"]["extends"] = base.clone();
            heir
        };
        let keys = |value: &Value| -> Vec<String> {
            value.as_object().into_iter().flatten().map(|(key, _)| key.clone()).collect()
        };
        let mut heirs = Vec::new();
        for key in keys(&document["spec"]) {
            for inner in keys(&document["spec"][&key]) {
                heirs.push(heir(json!({&key: {inner: null}})));
            }
            heirs.push(heir(json!({key: null})));
        }
        for list in document["spec"]["conditions"].as_array().into_iter().flatten() {
            let with = |key: &str, value: Value| {
                heir(json!({"conditions": [{"path": list["path"], key: value}]}))
            };
            for key in keys(list).iter().filter(|key| *key != "path") {
                heirs.push(with(key, Value::Null));
                for inner in keys(&list[key]) {
                    heirs.push(with(key, json!({&inner: null})));
                    for innermost in keys(&list[key][&inner]) {
                        heirs.push(with(key, json!({&inner: {innermost: null}})));
                    }
                }
            }
        }
        let validator = validator(&document);
        taken += heirs.iter().filter(|heir| both_take(&name, heir, &validator)).count();
    }
    assert!(taken > 100, "{taken}");
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
    let mut forms = BTreeSet::new();
    for (name, document) in documents() {
        let validator = validator(&document);
        let kind: DocumentKind = serde_json::from_value(document["kind"].clone()).unwrap();
        let schema = kind.json_schema().to_string();
        let mut places = Vec::new();
        with_unknown_keys(&document, "", &mut places);
        // The mappings at one place of the schema are read alike: one of them in all documents is enough.
        places.retain(|place| {
            let keys = place.split('/').map(|key| {
                // Others are names: of types, members and phases.
                if schema.contains(&format!("\"{key}\":")) { key } else { "*" }
            });
            forms.insert((kind, keys.collect::<Vec<_>>().join("/")))
        });
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
    assert!(unknown > 100 && known > 0, "{unknown} refused, {known} taken");
}

/// Code can print any predicate as a document.
#[test]
fn predicates_are_written_as_they_were_read() {
    const KEYS: [&str; 5] = ["when", "necessary", "sufficient", "imposed", "absentWhere"];
    fn predicates(value: &Value, found: &mut Vec<Value>) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| predicates(item, found)),
            Value::Object(members) => {
                for (key, value) in members {
                    let nested = value.get("when").is_some();
                    if KEYS.contains(&key.as_str()) && value.is_object() && !nested {
                        found.push(value.clone());
                    } else {
                        predicates(value, found);
                    }
                }
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    documents().iter().for_each(|(_, document)| predicates(document, &mut found));
    assert!(found.len() > 100, "{}", found.len());
    for document in found {
        let read: Predicate = serde_json::from_value(document.clone()).unwrap();
        assert_eq!(serde_json::to_value(read).unwrap(), document);
    }
}
