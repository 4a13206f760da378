//! Several policies select one object: the first with a phase owns phase and defaults. The laws of
//! `properties` hold over small conventions that contradict each other and use defaults as evidence.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Value, json};
use statusgate_core::engine::Action;
use statusgate_core::model::Webhook;
use statusgate_core::policy::PolicySet;

use crate::support::{LATER, NOW, T0, Write, compile, convention, policy};

// --- the policies ---------------------------------------------------------------------------------------

const TRUE: &str = "{condition: Ready, is: 'True'}";
const NOT_TRUE: &str = "{condition: Ready, isNot: 'True'}";

/// Conventions by name: what follows their list of conditions.
fn conventions() -> Vec<(&'static str, String)> {
    let phase = |more: &str, values: &str| {
        format!("phase: {{path: /status/phase, {more}, values: [{values}, {{phase: Unknown}}]}}")
    };
    let time = "default: Unknown, transitionTime: {path: /status/since}";
    let unknown = "default: Unknown";
    let plain = format!(
        "{{phase: A, necessary: {TRUE}, sufficient: {TRUE}}}, {{phase: B, necessary: {NOT_TRUE}}}"
    );
    let turned = format!(
        "{{phase: B, necessary: {TRUE}, sufficient: {TRUE}}}, {{phase: A, necessary: {NOT_TRUE}}}"
    );
    let synced = "{phase: A, necessary: {condition: Synced, is: 'True'}}, {phase: B, necessary: {condition: Ready, is: 'False'}, sufficient: {condition: Ready, is: 'False'}}, {phase: C}";
    let imposing = "{phase: Gone, imposed: {when: {deleting: true}, since: /metadata/deletionTimestamp}}, {phase: A}, {phase: B, sufficient: {oldPhase: [A, B]}}";
    let element = |kind: &str, status: &str| {
        format!(
            "{{name: {kind}, list: /status/conditions, element: {{type: {kind}, status: {status}, reason: First}}}}"
        )
    };
    let ready = element("Ready", "Unknown");
    vec![
        ("plain", phase(time, &plain)),
        ("turned", phase(unknown, &turned)),
        ("synced", phase(time, synced)),
        ("imposing", phase(unknown, imposing)),
        ("no-default", phase(time, &turned).replace("default: Unknown, ", "")),
        ("other-default", phase("default: C", &format!("{turned}, {{phase: C}}"))),
        ("filling", format!("{}\nbackfill: [{ready}]", phase(time, &plain))),
        (
            "filling-two",
            format!(
                "{}\nbackfill: [{}, {}, {{path: /status/x, value: 1}}]",
                phase(unknown, synced),
                element("Synced", "'False'"),
                element("Ready", "'True'")
            ),
        ),
        (
            "filling-fields",
            format!(
                "{}\nbackfill: [{{path: /status/x, value: 1}}, {{path: /status/y, value: 1, when: {{field: /status/x, is: 1}}}}]",
                phase(
                    unknown,
                    "{phase: A, necessary: {not: {field: /status/y, is: 1}}}, {phase: B, necessary: {condition: Ready, is: 'True'}}"
                )
            ),
        ),
        (
            "ruled",
            format!(
                "{}\nbackfill: [{ready}]\nrules: [{{id: a, path: /status/phase, action: Disagreement, message: m, when: {{phase: A, condition: Ready, isNot: 'True'}}}}]",
                phase(unknown, "{phase: A}, {phase: B}")
            ),
        ),
        (
            "elsewhere",
            format!(
                "phase: {{path: /status/state, {unknown}, values: [{plain}, {{phase: Unknown}}]}}"
            ),
        ),
        ("no-phase", "backfill: [{path: /status/x, value: 1}]".to_owned()),
        ("no-phase-filling", format!("backfill: [{ready}]")),
    ]
}

/// Two or three policies, for the API group `gINDEX`.
#[derive(Clone, Debug)]
struct Settings {
    index: usize,
    policies: Vec<(&'static str, &'static str)>,
}

fn all_settings() -> &'static [Settings] {
    static ALL: OnceLock<Vec<Settings>> = OnceLock::new();
    ALL.get_or_init(|| {
        let names: Vec<&str> = conventions().into_iter().map(|(name, _)| name).collect();
        let mut all: Vec<Vec<(&str, &str)>> = Vec::new();
        for one in &names {
            for how in ["Deny", "Repair", "Warn"] {
                all.push(vec![(one, how)]);
                for other in &names {
                    for others in ["Deny", "Repair"] {
                        all.push(vec![(one, how), (other, others)]);
                    }
                    let third = ("turned", "Repair");
                    all.push(vec![(one, how), (other, "Repair"), third]);
                }
            }
        }
        let number = |(index, policies)| Settings { index, policies };
        all.into_iter().enumerate().map(number).collect()
    })
}

fn all_policies() -> &'static PolicySet {
    static POLICIES: OnceLock<PolicySet> = OnceLock::new();
    POLICIES.get_or_init(|| {
        let conventions = conventions().into_iter().map(|(name, spec)| {
            convention(name, format!("conditions: [{{path: /status/conditions}}], {}", spec.replace('\n', ", ")))
        });
        let mut documents: Vec<String> = conventions.collect();
        for Settings { index, policies } in all_settings() {
            for (at, (convention, disagreement)) in policies.iter().enumerate() {
                // Two policies that name the same resource cannot both configure the phase.
                let star = if at == 0 { "" } else { "*" };
                documents.push(policy(
                    &format!("p{index}-{at}"),
                    format!(
                        "convention: {convention}, disagreement: {disagreement}, \
                         resources: [{{apiGroups: [g{index}], apiVersions: [v1], resources: ['things{star}']}}]"
                    ),
                ));
            }
        }
        compile(&documents)
    })
}

// --- the writes -----------------------------------------------------------------------------------------

/// A stored status, and the next one.
#[derive(Clone, Debug)]
struct Case {
    settings: &'static Settings,
    deleting: bool,
    old: Option<Value>,
    new: Value,
}

fn statuses() -> impl Strategy<Value = Value> {
    let phase = || select(vec![None, Some("A"), Some("A"), Some("B"), Some("C"), Some("Unknown")]);
    let status = || select(vec![None, Some("True"), Some("False"), Some("Unknown")]);
    let time = select(vec![None, Some(T0), Some("2024-06-01T11:30:00Z")]);
    let parts = (phase(), phase(), status(), status(), time, any::<bool>());
    parts.prop_map(|(phase, state, ready, synced, since, x)| {
        let mut whole = json!({});
        for (name, value) in [("phase", phase), ("state", state), ("since", since)] {
            if let Some(value) = value {
                whole[name] = value.into();
            }
        }
        if x {
            whole["x"] = 1.into();
        }
        let conditions = [("Ready", ready), ("Synced", synced)].into_iter();
        let there = |(kind, status): (&str, Option<&str>)| {
            Some(json!({"type": kind, "status": status?, "reason": "R"}))
        };
        let conditions: Vec<Value> = conditions.filter_map(there).collect();
        if !conditions.is_empty() {
            whole["conditions"] = conditions.into();
        }
        whole
    })
}

/// A stored status and the next one: unrelated, or with some members of another.
fn pairs() -> impl Strategy<Value = (Option<Value>, Value)> {
    let members = || subsequence(vec!["phase", "state", "since", "x", "conditions", "z"], 0..4);
    prop_oneof![
        1 => (prop::option::of(statuses()), statuses()),
        3 => (statuses(), statuses(), members()).prop_map(|(old, other, members)| {
            let mut new = old.clone();
            for name in members {
                match other.get(name) {
                    Some(value) => new[name] = value.clone(),
                    None if name == "z" => new[name] = 1.into(),
                    None => drop(new.as_object_mut().unwrap().remove(name)),
                }
            }
            (Some(old), new)
        }),
    ]
}

fn cases() -> impl Strategy<Value = Case> {
    let deleting = prop_oneof![6 => Just(false), 1 => Just(true)];
    (select(all_settings()), deleting, pairs()).prop_map(|(settings, deleting, (old, new))| Case {
        settings: &all_settings()[settings.index],
        deleting,
        old,
        new,
    })
}

impl Case {
    fn write(&self, new: &Value) -> Write {
        let group = format!("g{}", self.settings.index);
        let write = Write::of(self.old.clone(), new.clone()).group(&group);
        if self.deleting { write.deleting() } else { write }
    }

    /// The status after the mutating webhook, and the paths of its patch.
    fn mutated(&self, new: &Value, now: &str) -> (Value, Vec<String>) {
        let outcome = self.write(new).at(now).mutate(all_policies());
        let operations = outcome.patch.as_array().into_iter().flatten();
        let paths = operations.map(|operation| operation["path"].as_str().unwrap().to_owned());
        (outcome.status(), paths.collect())
    }

    /// The findings that reject a status.
    fn denials(&self, new: &Value) -> Vec<String> {
        self.write(new).validate(all_policies()).denials()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_second_mutation_changes_nothing(case in cases()) {
        let (once, _) = case.mutated(&case.new, NOW);
        for now in [NOW, LATER] {
            let (twice, paths) = case.mutated(&once, now);
            prop_assert!(paths.is_empty(), "first {once}, then {twice}");
        }
    }

    /// The phase and its time are set at most once, and at the place of the first policy with a phase.
    #[test]
    fn one_policy_owns_the_phase(case in cases()) {
        let selected = case.write(&case.new).ask(all_policies(), Webhook::Mutate, |verdict| verdict.policies.len());
        prop_assert_eq!(selected, case.settings.policies.len());
        let (_, mut paths) = case.mutated(&case.new, NOW);
        paths.retain(|path| ["/status/phase", "/status/state", "/status/since"].contains(&path.as_str()));
        let once: BTreeSet<&String> = paths.iter().collect();
        prop_assert_eq!(once.len(), paths.len(), "{:?}", paths);
        let with_phase = |(name, _): &&(&str, &str)| !name.starts_with("no-phase");
        let owner = case.settings.policies.iter().find(with_phase);
        let foreign = match owner {
            None => paths.first(),
            Some((name, _)) => {
                let other = if *name == "elsewhere" { "/status/phase" } else { "/status/state" };
                paths.iter().find(|path| *path == other)
            }
        };
        prop_assert_eq!(foreign, None);
    }

    /// A writer is not responsible for the changes of the mutating webhook.
    #[test]
    fn changes_by_the_mutating_webhook_are_not_rejected(case in cases()) {
        let (mutated, _) = case.mutated(&case.new, NOW);
        if case.denials(&case.new).is_empty() {
            prop_assert_eq!(case.denials(&mutated), Vec::<String>::new(), "{}", mutated);
        }
    }

    #[test]
    fn stored_violations_do_not_reject(case in cases()) {
        if let Some(mut new) = case.old.clone() {
            for unrelated in [false, true] {
                if unrelated {
                    new["unrelated"] = 1.into();
                }
                prop_assert_eq!(case.denials(&new), Vec::<String>::new());
                let (mutated, _) = case.mutated(&new, NOW);
                prop_assert_eq!(case.denials(&mutated), Vec::<String>::new(), "{}", mutated);
            }
        }
    }

    #[test]
    fn every_state_can_change_to_the_default_phase(case in cases()) {
        if let Some(mut new) = case.old.clone() {
            (new["phase"], new["state"]) = ("Unknown".into(), "Unknown".into());
            prop_assert_eq!(case.denials(&new), Vec::<String>::new());
            let (mutated, _) = case.mutated(&new, NOW);
            prop_assert_eq!(case.denials(&mutated), Vec::<String>::new(), "{}", mutated);
        }
    }
}

// --- single cases -----------------------------------------------------------------------------------------

/// The status after both webhooks under these policies, and the rules that reject it. Each policy is a
/// convention and what the policy adds.
fn written(policies: &[(&str, &str)], status: &Value) -> (Value, Vec<String>) {
    let documents = policies.iter().enumerate().flat_map(|(at, (spec, more))| {
        let name = format!("c{at}");
        let policy = policy(&format!("p{at}"), format!("convention: {name}{more}"));
        [convention(&name, *spec), policy]
    });
    let policies = compile(&documents.collect::<Vec<_>>());
    let outcome = Write::of(None, status.clone()).review(&policies);
    let denied = outcome.findings.iter().filter(|found| found.action == Action::Deny);
    (outcome.status(), denied.map(|found| found.rule.clone()).collect())
}

const PHASE: &str =
    "phase: {path: /status/phase, default: Unknown, values: [{phase: Up}, {phase: Unknown}]}";
const STATE: &str =
    "phase: {path: /status/state, default: None, values: [{phase: Up}, {phase: None}]}";

#[test]
fn the_first_policy_with_a_phase_sets_and_judges_the_phase() {
    let policies = [("fields: []", ""), (PHASE, ""), (STATE, "")];
    let (status, rules) = written(&policies, &json!({"state": "odd"}));
    assert_eq!((status, rules), (json!({"phase": "Unknown", "state": "odd"}), vec![]));
    let (_, rules) = written(&policies, &json!({"phase": "odd"}));
    assert_eq!(rules, ["c1/phase-value"]);
}

#[test]
fn of_conventions_only_the_owners_sets_defaults() {
    let owner = format!("{PHASE}, backfill: [{{path: /status/a, value: 1}}]");
    let other = "backfill: [{path: /status/a, value: 2}, {path: /status/b, value: 2}]";
    let (status, _) = written(&[(other, ""), (&owner, "")], &json!({}));
    assert_eq!(status, json!({"phase": "Unknown", "a": 1}));
    // Without an owner all of them count, the first one first.
    let (status, _) =
        written(&[("backfill: [{path: /status/a, value: 1}]", ""), (other, "")], &json!({}));
    assert_eq!(status, json!({"a": 1, "b": 2}));
}

#[test]
fn another_policy_sets_its_own_defaults_for_other_places() {
    let owner = format!("{PHASE}, backfill: [{{path: /status/a/b, value: 1}}]");
    let own = ", backfill: [{path: /status/a, value: {}}, {path: /status/phase, value: Up}, {path: /status/c, value: 3}]";
    let (status, _) = written(&[("fields: []", own), (&owner, "")], &json!({}));
    assert_eq!(status, json!({"phase": "Unknown", "a": {"b": 1}, "c": 3}));
}

#[test]
fn defaults_of_several_policies_see_each_other_in_one_run() {
    let owner =
        format!("{PHASE}, backfill: [{{path: /status/a, value: 1, when: {{set: /status/b}}}}]");
    let own = ", backfill: [{path: /status/b, copyOf: [/status/phase]}]";
    let (status, _) = written(&[(&owner, ""), ("fields: []", own)], &json!({"phase": "Up"}));
    assert_eq!(status, json!({"phase": "Up", "a": 1, "b": "Up"}));
}

#[test]
fn another_policy_contributes_fields_rules_and_the_findings_of_conditions() {
    let other = "conditions: [{path: /status/conditions, members: {reason: {required: true}}}]";
    let own = ", fields: [{path: /status/unit, enum: [GiB]}]";
    let (_, rules) =
        written(&[(PHASE, ""), (other, own)], &json!({"unit": "x", "conditions": [{"type": "A"}]}));
    assert_eq!(rules, ["c1/condition-reason", "p1/field-unit"]);
}
