//! `examples/suites`: the built-in conventions match the systems they describe.
//!
//! Each convention has a folder: `rules.yaml` with a clean write and changes of it, of which each breaks a rule,
//! `examples.yaml` with the examples of its page, `transitions.yaml` with writes of its controllers, and
//! `document.yaml` with those of the document that it comes from.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};
use statusgate_core::documents::PolicySpec;
use statusgate_core::engine::Action;
use statusgate_core::policy::Source;
use statusgate_core::source::{json_at, tree};

use crate::command;
use crate::support::built_in;

/// The cases of a file in the folder of a convention.
pub(crate) fn cases(convention: &str, file: &str) -> Vec<Value> {
    let path = format!("{}/examples/suites/{convention}/{file}.yaml", env!("CARGO_MANIFEST_DIR"));
    if !Path::new(&path).exists() {
        return Vec::new();
    }
    let source = Source::new(path.as_str(), std::fs::read_to_string(&path).unwrap());
    let mut cases = Vec::new();
    for document in tree::parse(0, &source.text).0 {
        let (text, _) = json_at(&source, document.root.span.bytes.start).unwrap();
        let suite: Value = serde_json::from_str(&text).unwrap();
        cases.extend(suite["cases"].as_array().unwrap().iter().cloned());
    }
    cases
}

/// The convention and the name of the rule of an expected finding.
pub(crate) fn rule(finding: &Value) -> (&str, &str) {
    finding["rule"].as_str().unwrap().split_once('/').unwrap()
}

#[test]
fn all_cases_pass() {
    let ended = command::run(["test", "examples/suites", "-o", "json"]);
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{}", ended.out);
    let report: Value = serde_json::from_str(&ended.out).unwrap();
    let files: Vec<&str> = report["cases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|case| case["file"].as_str().unwrap().rsplit_once('/').unwrap().1)
        .collect();
    for (name, least) in [("rules", 600), ("examples", 45), ("transitions", 250), ("document", 35)]
    {
        let count = files.iter().filter(|file| **file == format!("{name}.yaml")).count();
        assert!(count >= least, "{name}: {count} cases");
    }
}

#[test]
fn each_rule_is_broken_by_a_change_of_a_clean_write() {
    let mut faults = Vec::new();
    for name in built_in().conventions().keys() {
        let mut cases = cases(name, "rules");
        let Some((clean, changes)) = cases.split_first() else {
            faults.push(format!("{name}: no rules.yaml"));
            continue;
        };
        assert_eq!(
            clean["expect"],
            json!({"verdict": "allow", "findings": [], "patch": "none"}),
            "{name}"
        );
        for case in changes {
            let is_changed = case.get("with").or_else(|| case.get("without")).is_some();
            let is_clean = ["object", "old"].iter().all(|part| case[part] == clean[part]);
            assert!(is_changed && is_clean, "{name}: {}", case["name"]);
        }
        // A convention that extends this one may break its rules.
        cases.extend(self::cases(name, "document"));
        let findings = cases.iter().flat_map(|case| case["expect"]["findings"].as_array().unwrap());
        let broken: BTreeSet<(&str, Action)> = findings
            .filter_map(|found| Some((rule(found).1, Action::deserialize(&found["action"]).ok()?)))
            .collect();
        let policies = built_in().with_policy("p", &PolicySpec::for_everything(name)).unwrap();
        let policy = &policies.policies()[0];
        for (id, rule) in policy.convention.declared.iter() {
            for action in policy.actions_of(rule) {
                if !broken.contains(&(id.split_once('/').unwrap().1, action)) {
                    faults.push(format!("no change breaks {id} with {action:?}"));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn each_transition_names_its_source() {
    for name in built_in().conventions().keys() {
        let transitions = cases(name, "transitions");
        assert!(!transitions.is_empty(), "{name}");
        for case in transitions {
            assert!(case["source"].is_string(), "{name}: {}", case["name"]);
        }
    }
}
