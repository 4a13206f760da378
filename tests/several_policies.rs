//! Several policies select one object: the first with a phase owns phase and defaults. The laws of
//! `properties` hold over small conventions that contradict each other and use defaults as evidence.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests, and their helpers too")]

use std::collections::BTreeSet;
use std::sync::OnceLock;

use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Value, json};
use statusgate::engine::{Action, Verdict, decide};
use statusgate::model::{Object, Operation, Resource, Subject, Webhook, Writer};
use statusgate::policy::{PolicySet, Source};

mod support;

const T0: &str = "2024-06-01T11:00:00Z";
const NOW: &str = "2024-06-01T12:00:00Z";
const LATER: &str = "2024-06-01T12:01:00Z";

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
    let imposing = "{phase: Gone, imposed: {when: {deleting: true}, since: /metadata/deletionTimestamp}}, {phase: A}, {phase: B, necessary: {oldPhase: [A, B]}}";
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
        ("no-default", phase("reason: {path: /status/reason}", &turned)),
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

/// Two or three policies, which speak of the API group `gINDEX`.
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
        let head = "---\napiVersion: statusgate.dev/v1alpha1\n";
        let mut text = String::new();
        for (name, spec) in conventions() {
            let spec = spec.replace('\n', "\n  ");
            text.push_str(&format!("{head}kind: StatusConvention\nmetadata: {{name: {name}}}\nspec:\n  conditions: [{{path: /status/conditions}}]\n  {spec}\n"));
        }
        for Settings { index, policies } in all_settings() {
            for (at, (convention, disagreement)) in policies.iter().enumerate() {
                // Two policies that name the same resource cannot both configure the phase.
                let star = if at == 0 { "" } else { "*" };
                text.push_str(&format!(
                    "{head}kind: StatusPolicy\nmetadata: {{name: p{index}-{at}}}\nspec: {{convention: {convention}, disagreement: {disagreement}, \
                     resources: [{{apiGroups: [g{index}], apiVersions: [v1], resources: ['things{index}{star}']}}]}}\n"
                ));
            }
        }
        let source = Source { name: "all.yaml".into(), text };
        PolicySet::compile(&[source]).unwrap_or_else(|error| panic!("{error}"))
    })
}

// --- the writes -----------------------------------------------------------------------------------------

#[derive(Clone, Debug)]
struct Write {
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

fn writes() -> impl Strategy<Value = Write> {
    let deleting = prop_oneof![6 => Just(false), 1 => Just(true)];
    (select(all_settings()), deleting, pairs()).prop_map(|(settings, deleting, (old, new))| Write {
        settings: &all_settings()[settings.index],
        deleting,
        old,
        new,
    })
}

impl Write {
    fn document(&self, status: Option<&Value>) -> Value {
        let mut object = json!({"apiVersion": "g/v1", "kind": "Thing", "metadata": {"name": "n", "creationTimestamp": T0}});
        if self.deleting {
            object["metadata"]["deletionTimestamp"] = "2024-06-01T11:59:00Z".into();
        }
        if let Some(status) = status {
            object["status"] = status.clone();
        }
        object
    }

    fn ask<T>(
        &self,
        new: &Value,
        webhook: Webhook,
        now: &str,
        question: impl FnOnce(&Verdict<'_>) -> T,
    ) -> T {
        let (new, old) =
            (self.document(Some(new)).to_string(), self.document(self.old.as_ref()).to_string());
        let group = format!("g{}", self.settings.index);
        let subject = Subject {
            resource: Resource {
                group: group.into(),
                version: "v1".into(),
                resource: format!("things{}", self.settings.index).into(),
            },
            subresource: "status".into(),
            operation: Operation::Update,
            writer: Writer { user: "operator".into(), groups: Vec::new() },
            object: Object::parse(&new).unwrap(),
            old: Some(Object::parse(&old).unwrap()),
        };
        let verdict = decide(all_policies(), &subject, webhook, now.parse().unwrap());
        assert!(!verdict.patch_failed, "a patch always applies");
        assert_eq!(verdict.policies.len(), self.settings.policies.len(), "the policies apply");
        question(&verdict)
    }

    /// The status after the mutating webhook, and the paths of its patch.
    fn mutated(&self, new: &Value, now: &str) -> (Value, Vec<String>) {
        self.ask(new, Webhook::Mutate, now, |verdict| {
            let mut document = self.document(Some(new));
            let mut paths = Vec::new();
            if let Some(patch) = &verdict.patch {
                json_patch::patch(&mut document, patch).unwrap();
                paths.extend(patch.0.iter().map(|operation| operation.path().to_string()));
            }
            (document["status"].clone(), paths)
        })
    }

    /// The rules that refuse, and the policies that say so.
    fn denials(&self, new: &Value) -> BTreeSet<(String, String)> {
        self.ask(new, Webhook::Validate, NOW, |verdict| {
            let denied = verdict.findings.iter().filter(|found| found.action == Action::Deny);
            denied.map(|found| (found.policy.to_string(), found.rule.to_string())).collect()
        })
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn mutate_is_done_after_one_run(write in writes()) {
        let (once, _) = write.mutated(&write.new, NOW);
        for now in [NOW, LATER] {
            let (twice, paths) = write.mutated(&once, now);
            prop_assert!(paths.is_empty(), "first {once}, then {twice}");
        }
    }

    /// The phase and its time are set at most once, and at the place of the first policy with a phase.
    #[test]
    fn one_policy_owns_the_phase(write in writes()) {
        let (_, mut paths) = write.mutated(&write.new, NOW);
        paths.retain(|path| ["/status/phase", "/status/state", "/status/since"].contains(&path.as_str()));
        let once: BTreeSet<&String> = paths.iter().collect();
        prop_assert_eq!(once.len(), paths.len(), "{:?}", paths);
        let with_phase = |(name, _): &&(&str, &str)| !name.starts_with("no-phase");
        let owner = write.settings.policies.iter().find(with_phase);
        let foreign = match owner {
            None => paths.first(),
            Some((name, _)) => {
                let other = if *name == "elsewhere" { "/status/phase" } else { "/status/state" };
                paths.iter().find(|path| *path == other)
            }
        };
        prop_assert_eq!(foreign, None);
    }

    /// Nobody is held to what the webhook did: it is no reason to refuse.
    #[test]
    fn changes_by_the_mutating_webhook_are_not_rejected(write in writes()) {
        let (mutated, _) = write.mutated(&write.new, NOW);
        if write.denials(&write.new).is_empty() {
            prop_assert_eq!(write.denials(&mutated), BTreeSet::new(), "{}", mutated);
        }
    }

    #[test]
    fn old_faults_are_no_reason_to_refuse(write in writes()) {
        if let Some(mut new) = write.old.clone() {
            for unrelated in [false, true] {
                if unrelated {
                    new["unrelated"] = 1.into();
                }
                prop_assert_eq!(write.denials(&new), BTreeSet::new());
                let (mutated, _) = write.mutated(&new, NOW);
                prop_assert_eq!(write.denials(&mutated), BTreeSet::new(), "{}", mutated);
            }
        }
    }

    #[test]
    fn the_default_phase_is_a_way_out_of_every_state(write in writes()) {
        if let Some(mut new) = write.old.clone() {
            (new["phase"], new["state"]) = ("Unknown".into(), "Unknown".into());
            prop_assert_eq!(write.denials(&new), BTreeSet::new());
            let (mutated, _) = write.mutated(&new, NOW);
            prop_assert_eq!(write.denials(&mutated), BTreeSet::new(), "{}", mutated);
        }
    }
}

// --- single cases -----------------------------------------------------------------------------------------

/// What a set of policies, each a convention and what the policy adds, makes of a status; and the rules that
/// then reject it.
fn written(policies: &[(&str, &str)], status: &Value) -> (Value, Vec<String>) {
    let head = "---\napiVersion: statusgate.dev/v1alpha1\n";
    let mut text = String::new();
    for (at, (convention, more)) in policies.iter().enumerate() {
        text.push_str(&format!(
            "{head}kind: StatusConvention\nmetadata: {{name: c{at}}}\nspec: {{{convention}}}\n"
        ));
        text.push_str(&format!(
            "{head}kind: StatusPolicy\nmetadata: {{name: p{at}}}\nspec: {{convention: c{at}, \
             resources: [{{apiGroups: [g], apiVersions: [v1], resources: ['things*']}}]{more}}}\n"
        ));
    }
    let policies = PolicySet::compile(&[Source { name: "p.yaml".into(), text }]);
    let policies = policies.unwrap_or_else(|error| panic!("{error}"));
    let judge = |status: &Value, webhook| {
        let object = json!({"metadata": {"name": "n"}, "status": status}).to_string();
        let subject = Subject {
            resource: Resource {
                group: "g".into(),
                version: "v1".into(),
                resource: "things".into(),
            },
            subresource: "status".into(),
            operation: Operation::Update,
            writer: Writer::default(),
            object: Object::parse(&object).unwrap(),
            old: Some(Object::parse("{}").unwrap()),
        };
        let verdict = decide(&policies, &subject, webhook, NOW.parse().unwrap());
        let denied = verdict.findings.iter().filter(|found| found.action == Action::Deny);
        let rules = denied.map(|found| found.rule.to_string()).collect();
        (verdict.status.map(|status| status.to_value()), rules)
    };
    let status = judge(status, Webhook::Mutate).0.unwrap_or_else(|| status.clone());
    assert_eq!(judge(&status, Webhook::Mutate).0, None, "a second run changes nothing");
    let (_, rules) = judge(&status, Webhook::Validate);
    (status, rules)
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
