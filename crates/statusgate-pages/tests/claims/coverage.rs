//! Every key of both documents occurs in a small convention, so that a new key needs a case.

use std::collections::BTreeSet;

use serde_json::Value;
use statusgate_core::documents::DocumentKind;

use crate::grammar::{Sketch, about_objects, pairs, singles};

/// Keys that no claim of this folder is about: texts, how documents are put together, and the health, which
/// `tests/properties` compares with the tools that read it.
const LEFT_OUT: &[&str] = &[
    "ConventionSpec.title",
    "ConventionSpec.differences",
    "ConventionSpec.extends",
    "ConventionSpec.without",
    "ConventionSpec.health",
    "ConventionSpec.resourceVersion",
    "ConditionList.like",
    "ConditionList.apiVersions",
    "ConditionType.meaning",
    "PhaseValue.meaning",
    "PhaseValue.health",
    "PhaseValue.id",
    "PolicySpec.enable",
    "Metadata.namespace",
    "Metadata.labels",
    "Metadata.annotations",
];

#[test]
fn every_key_of_the_grammar_occurs_in_a_small_convention() {
    let mut used = BTreeSet::new();
    let mut known = BTreeSet::new();
    let schemas =
        [DocumentKind::StatusConvention, DocumentKind::StatusPolicy].map(DocumentKind::json_schema);
    for schema in &schemas {
        keys(schema, &mut known);
    }
    // One convention for each place, and one for each predicate about objects and about elements.
    let mut seen = BTreeSet::new();
    for sketch in singles() {
        let (place, predicate) = sketch.name.split_once(' ').unwrap();
        let is_about_element = place.starts_with("each");
        let names = [place.to_owned(), format!("{is_about_element} {predicate}")];
        let is_new = names.map(|name| seen.insert(name));
        if is_new == [false, false] {
            continue;
        }
        let text = sketch.documents(false);
        for (document, schema) in text.split("---\n").zip(&schemas) {
            let value: Value = serde_saphyr::from_str(document).unwrap();
            Walk { root: schema, used: &mut used }.value(&value, schema, "");
        }
    }
    // A field is a path with the keys of a check.
    let checks = used.iter().filter_map(|key| key.strip_prefix("Field."));
    used.extend(checks.map(|key| format!("Check.{key}")).collect::<Vec<_>>());
    let is_left_out = |key: &&String| {
        LEFT_OUT.contains(&key.as_str())
            || [".source", ".optional"].iter().any(|end| key.ends_with(end))
            || key.starts_with("Health")
            || key.starts_with("RetriedHealth")
            || key.starts_with("ResourceVersion")
    };
    let missing: Vec<&String> = known.difference(&used).filter(|key| !is_left_out(key)).collect();
    assert!(missing.is_empty(), "no small convention has {missing:?}");
}

#[test]
fn every_two_predicates_about_an_object_occur_in_a_pair_of_small_conventions() {
    let pairs = pairs();
    let found: BTreeSet<[&str; 2]> = pairs.iter().filter_map(Sketch::predicates).collect();
    let words = about_objects();
    let all = words.iter().flat_map(|one| words.iter().map(move |other| [&**one, &**other]));
    let missing: Vec<[&str; 2]> = all
        .filter(|[one, other]| !found.contains(&[*one, *other]) && !found.contains(&[*other, *one]))
        .collect();
    assert!(missing.is_empty(), "{} pairs do not occur: {missing:?}", missing.len());
}

/// All keys, each with the definition that has it.
fn keys(schema: &Value, known: &mut BTreeSet<String>) {
    for (name, definition) in schema["$defs"].as_object().into_iter().flatten() {
        // A word of a predicate is a branch of its definition.
        for schema in [definition].into_iter().chain(branches(definition)) {
            let properties = schema["properties"].as_object().into_iter().flatten();
            known.extend(properties.map(|(key, _)| format!("{name}.{key}")));
        }
    }
}

fn branches(schema: &Value) -> impl Iterator<Item = &Value> {
    let lists = ["anyOf", "oneOf", "allOf"].into_iter();
    let branches = lists.flat_map(|list| schema[list].as_array().into_iter().flatten());
    branches.map(|branch| if branch["then"].is_null() { branch } else { &branch["then"] })
}

struct Walk<'s> {
    root: &'s Value,
    used: &'s mut BTreeSet<String>,
}

impl Walk<'_> {
    fn value(&mut self, value: &Value, schema: &Value, name: &str) {
        if let Some(to) = schema["$ref"].as_str() {
            let name = to.rsplit('/').next().unwrap();
            let definition = self.root["$defs"][name].clone();
            return self.value(value, &definition, name);
        }
        branches(schema)
            .cloned()
            .collect::<Vec<_>>()
            .iter()
            .for_each(|branch| self.value(value, branch, name));
        match value {
            Value::Object(members) => {
                for (key, value) in members {
                    let property = &schema["properties"][key];
                    if !property.is_null() {
                        self.used.insert(format!("{name}.{key}"));
                        self.value(value, property, name);
                    } else if schema["additionalProperties"].is_object() {
                        self.value(value, &schema["additionalProperties"], name);
                    }
                }
            }
            Value::Array(items) => {
                items.iter().for_each(|item| self.value(item, &schema["items"], name))
            }
            _ => {}
        }
    }
}
