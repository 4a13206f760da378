//! The types agree with the documents of the project, and with the structural check.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use serde::Serialize;
use serde_json::{Value as Json, json};

use super::check::{self, Spec};
use super::{ConventionSpec, DocumentKind, PolicySpec};
use crate::source::tree::{self, Node, Problems, Value};

/// The documents of the project: the built-in conventions and the example policies.
fn documents() -> Vec<(DocumentKind, Node)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = ["src/conventions", "../../deploy/policies", "../../tests/fixtures/policies/ok"];
    let files = folders.iter().flat_map(|folder| fs::read_dir(root.join(folder)).unwrap());
    let mut found = Vec::new();
    for file in files {
        let (documents, mistakes) =
            tree::parse(0, &fs::read_to_string(file.unwrap().path()).unwrap());
        assert_eq!(mistakes, []);
        for mut document in documents {
            let problems = Problems::default();
            // The folder of the policies has a kustomization, too.
            if let Some(kind) = check::envelope(&mut document.root, &problems) {
                assert_eq!(problems.into_list(), []);
                found.push((kind, document.root.member("spec").unwrap().clone()));
            }
        }
    }
    assert!(found.len() > 25, "{}", found.len());
    found
}

/// The errors of a `spec`, and what was read.
fn read(kind: DocumentKind, spec: &mut Node, complete: bool) -> (Vec<String>, Option<Json>) {
    fn read<T: Spec + Serialize>(
        spec: &mut Node,
        complete: bool,
        problems: &Problems,
    ) -> Option<Json> {
        let read = check::spec::<T>(spec, complete, problems)?;
        Some(serde_json::to_value(read).unwrap())
    }
    let problems = Problems::default();
    let json = match kind {
        DocumentKind::StatusPolicy => read::<PolicySpec>(spec, complete, &problems),
        DocumentKind::StatusConvention => read::<ConventionSpec>(spec, complete, &problems),
    };
    let errors = problems.into_list().into_iter().map(|error| error.message);
    (errors.collect(), json)
}

/// The same document in one of its spellings: no list of one item, no unquoted status, no nulls and
/// no explicit default.
fn plain(json: &Json) -> Json {
    match json {
        Json::Array(items) => match &items[..] {
            [one] => plain(one),
            items => items.iter().map(plain).collect(),
        },
        Json::Object(members) => {
            let is_default = |key: &str, value: &Json| match key {
                "value" => false,
                "ahead" | "duplicate" | "tooLong" => *value == "Deny",
                "future" | "kept" | "misspelled" | "reasonKept" | "better" | "worse"
                | "otherReason" | "moved" | "backwards" | "rewritten" | "repeated"
                | "aheadAtFirst" | "decreased" | "action" => *value == "Warn",
                "statusSubresource" => *value == true,
                _ => value.is_null(),
            };
            let kept = members.iter().filter(|(key, value)| !is_default(key, value));
            kept.map(|(key, value)| (key.clone(), plain(value))).collect()
        }
        Json::Number(number) => json!(number.as_f64()),
        other => other.clone(),
    }
}

#[test]
fn the_documents_of_the_project_are_written_as_they_were_read() {
    for (kind, mut spec) in documents() {
        let before = serde_json::to_value(&spec).unwrap();
        // An heir lacks what it inherits.
        if before.get("extends").is_none() {
            let (errors, read) = read(kind, &mut spec, true);
            assert_eq!(errors, [""; 0], "{before:#}");
            assert_eq!(plain(&read.unwrap()), plain(&before));
        }
    }
}

/// All nodes of a tree, depth first.
fn nodes<'n>(node: &'n mut Node, visit: &mut dyn FnMut(&mut Node)) {
    visit(node);
    match &mut node.value {
        Value::List(items) => items.iter_mut().for_each(|item| nodes(item, visit)),
        Value::Map(entries) => entries.iter_mut().for_each(|(_, value)| nodes(value, visit)),
        _ => {}
    }
}

fn broken(node: &mut Node, how: u8, other: &Value) {
    node.value = match (how, &mut node.value) {
        (0, Value::Map(entries)) if !entries.is_empty() => {
            entries.remove(entries.len() / 2);
            return;
        }
        (1, Value::Map(entries)) if !entries.is_empty() => {
            let at = entries.len() / 2;
            entries[at].0.name.push('x');
            return;
        }
        (0 | 2, _) => Value::Null,
        (1 | 3, _) => Value::Bool(true),
        (4, _) => Value::Integer(-1),
        (5, _) => Value::String("True".to_owned()),
        (6, _) => Value::List(Vec::new()),
        (7, _) => Value::Map(Vec::new()),
        (8, _) => Value::Float(f64::NAN),
        _ => other.clone(),
    };
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// After the check, every document can be deserialized, whether or not it had errors.
    #[test]
    fn a_checked_document_can_be_deserialized(
        which in 0..30_usize, places in prop::collection::vec((0..2_000_usize, 0..10_u8, 0..2_000_usize), 1..4),
    ) {
        thread_local! {
            static DOCUMENTS: Vec<(DocumentKind, Node)> = documents();
        }
        let (kind, mut spec) = DOCUMENTS.with(|all| all[which % all.len()].clone());
        for (place, how, from) in places {
            let mut all = Vec::new();
            nodes(&mut spec, &mut |node| all.push(node.value.clone()));
            let (place, other) = (place % all.len(), all[from % all.len()].clone());
            let mut at = 0;
            nodes(&mut spec, &mut |node| {
                if at == place {
                    broken(node, how, &other);
                }
                at += 1;
            });
        }
        let before = serde_json::to_value(&spec).unwrap();
        let (errors, json) = read(kind, &mut spec, true);
        prop_assert!(json.is_some(), "{errors:?}, but serde has another: {before:#}");
        // What is left has no structural errors of its own.
        let (more, _) = read(kind, &mut spec, true);
        prop_assert_eq!(more, Vec::<String>::new());
    }
}
