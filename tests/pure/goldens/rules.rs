//! One clean write for each convention, and one change for each rule: every rule can be broken, no other
//! rule fires, and no rule is missing here.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;
use statusgate_core::engine::Action;

use super::judging::{Case, fixtures, read, rules};
use crate::support::{built_in, following};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fixture {
    convention: String,
    clean: Case,
    /// Rules that no write of this convention alone can break, and the test that proves them.
    #[serde(default)]
    elsewhere: BTreeMap<String, String>,
    /// Changes that resemble a violation and break no rule.
    #[serde(default)]
    harmless: BTreeMap<String, Pointers>,
    changes: Vec<Change>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Change {
    /// The rule that it breaks, without the convention.
    rule: String,
    /// `deny` or `warn`: one rule may have several.
    action: String,
    /// Other rules that this change breaks.
    #[serde(default)]
    also: BTreeSet<String>,
    /// An optional rule.
    enable: Option<String>,
    with: Pointers,
}

/// Pointers into the write, and their new values; `absent` removes a value.
type Pointers = BTreeMap<String, Value>;

/// A rule and its action.
type Judged = (String, Action);

#[test]
fn each_rule_is_broken_by_its_change() {
    let mut faults = Vec::new();
    let mut conventions: BTreeSet<String> = built_in().conventions().keys().cloned().collect();
    for path in fixtures("rules") {
        let fixture: Fixture = read(&path);
        faults.extend(fixture.faults());
        conventions.remove(&fixture.convention);
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(conventions.is_empty(), "no fixture for {conventions:?}");
}

/// The name of the convention alone is not a source.
#[test]
fn each_rule_names_its_source() {
    for name in built_in().conventions().keys() {
        let policies = following(name, "");
        let policy = &policies.policies()[0];
        for (id, rule) in policy.convention.declared.iter() {
            let source = &rule.source;
            let whole = id == policy.convention.status_rule;
            assert!(!source.is_empty(), "{id}");
            assert_eq!(*source == policy.convention.source, whole, "{id}: {source}");
        }
    }
    for (id, source) in [
        ("crossplane/condition-reason-form", "XP-S2"),
        ("crossplane/condition-status", "ValidateCondition"),
        ("crossplane/generation-ahead", "B-T6, B-T7"),
        ("crossplane/ready-reason", "XP-X1"),
        ("appcat/condition-reason-form", "XP-S2"),
        ("appcat/phase-value", "ADR 0051, phase table; AC-S4; AC-T1"),
        ("appcat/phase-reason", "AC-S5"),
        ("appcat/phase-ready", "AC-X3, AC-X4, AC-X5"),
        ("kstatus/condition-duplicate", "kstatus §1; KS-S3"),
        ("kstatus/observed-generation", "KS-S2"),
        ("capi-v1beta2/condition-status", "ValidateCondition; C1-S1"),
        ("stackable/condition-order", "ADR 027; operator-rs; ST-S1, ST-S4"),
    ] {
        let policies = following(id.split_once('/').unwrap().0, "");
        let declared = policies.policies()[0].rule(id).unwrap();
        assert_eq!(declared.source, source, "{id}");
    }
}

/// Objects of Cluster API have the lists of both versions.
#[test]
fn both_versions_of_cluster_api_have_the_same_rules_for_the_same_list() {
    let policies = built_in();
    let rules = |name: &str, path: &str| {
        let lists = &policies.conventions()[name].conditions;
        let list = lists.iter().find(|list| list.path.to_string() == path).unwrap();
        let mut list = (**list).clone();
        list.path = "/status/conditions".parse().unwrap();
        list.source.clear();
        format!("{list:#?}").replace(&format!("\"{name}/"), "\"")
    };
    for (one, path, other) in [
        ("capi-v1beta1", "/status/v1beta2/conditions", "capi-v1beta2"),
        ("capi-v1beta2", "/status/deprecated/v1beta1/conditions", "capi-v1beta1"),
    ] {
        // `assert_eq` would print a thousand lines of both.
        assert!(rules(one, path) == rules(other, "/status/conditions"), "{path} of {one}");
    }
}

impl Fixture {
    fn faults(&self) -> Vec<String> {
        let name = &self.convention;
        let policies = following(name, "");
        let clean = self.clean.write().review(&policies);
        if clean.is_patched() || !clean.findings.is_empty() {
            return vec![format!("{name}: the clean write is not clean: {clean:?}")];
        }
        let mut faults = Vec::new();
        let mut broken: BTreeSet<Judged> = BTreeSet::new();
        for (name, with) in &self.harmless {
            let found = changed(&self.clean, with).write().validate(&policies);
            if !found.findings.is_empty() {
                faults.push(format!("{name}: {found:?}"));
            }
        }
        for change in &self.changes {
            let write = changed(&self.clean, &change.with).write();
            let outcome = match &change.enable {
                Some(rule) => write.validate(&following(name, &format!("enable: [{rule}]"))),
                None => write.validate(&policies),
            };
            let id = format!("{name}/{}", change.rule);
            let main = (id.clone(), change.action());
            let is_found = outcome.rules().contains(&(main.1, id.as_str()));
            let also: BTreeSet<String> =
                change.also.iter().map(|rule| format!("{name}/{rule}")).collect();
            let expected: BTreeSet<&str> =
                also.iter().map(String::as_str).chain([id.as_str()]).collect();
            if !is_found || rules(&outcome) != expected {
                faults.push(format!("{main:?} by {:?}: {:?}", change.with, outcome.lines()));
            }
            broken.insert(main);
        }
        let elsewhere: BTreeSet<String> =
            self.elsewhere.keys().map(|rule| format!("{name}/{rule}")).collect();
        for judged in judged_rules(name) {
            if !broken.contains(&judged) && !elsewhere.contains(&judged.0) {
                faults.push(format!("{name}: no change breaks {judged:?}"));
            }
        }
        faults
    }
}

impl Change {
    fn action(&self) -> Action {
        match self.action.as_str() {
            "deny" => Action::Deny,
            "warn" => Action::Warn,
            "audit" => Action::Audit,
            other => panic!("{other} is not an action"),
        }
    }
}

fn changed(clean: &Case, with: &Pointers) -> Case {
    let mut write = serde_json::to_value(clean).unwrap();
    for (pointer, value) in with {
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        let parent = write.pointer_mut(parent).unwrap_or_else(|| panic!("{pointer}"));
        if let Value::Array(items) = parent {
            match (name.parse::<usize>(), value == "absent") {
                (Ok(index), true) => drop(items.remove(index)),
                (Ok(index), false) => items[index] = value.clone(),
                (Err(_), _) => items.push(value.clone()),
            }
        } else if value == "absent" {
            parent.as_object_mut().unwrap().remove(name).unwrap();
        } else {
            parent[name] = value.clone();
        }
    }
    serde_json::from_value(write).unwrap()
}

/// Every rule of a convention, with its actions by a policy without settings.
fn judged_rules(convention: &str) -> BTreeSet<Judged> {
    let policies = following(convention, "");
    let policy = &policies.policies()[0];
    let rules = policy.convention.declared.iter();
    let judged = rules.flat_map(|(id, rule)| {
        policy.actions_of(rule).map(move |action| (id.to_string(), action)).collect::<Vec<_>>()
    });
    judged.collect()
}
