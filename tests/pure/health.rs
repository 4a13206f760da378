//! What a status means for its readers: the order of the rules, evidence, and messages.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};
use statusgate_core::engine::Health;
use statusgate_core::model::{Object, Resource};
use statusgate_core::policy::convention::{Convention, HealthRule};
use statusgate_core::policy::{PolicySet, Source};

const HEAD: &str = "apiVersion: statusgate.dev/v1alpha1\nkind: StatusConvention\nmetadata: {name:";

const BASE: &str = "{conditions: [{path: /status/conditions}, {path: '/status/parents/*/conditions', parentKey: [name]}], \
    health: {default: current, rules: [{name: not-ready, is: inProgress, when: {condition: Ready, isNot: 'True'}}]}}";

/// A convention that extends `BASE`.
fn conventions(heir: &str) -> PolicySet {
    let text = format!("{HEAD} base}}\nspec: {BASE}\n---\n{HEAD} heir}}\nspec: {heir}\n");
    let set = PolicySet::compile(&[Source::new("a.yaml", text)]);
    set.unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

/// Health, `retried`, and the reason.
fn health(heir: &str, object: &Value) -> String {
    health_under(&conventions(heir).conventions()["heir"], "things", object)
}

fn health_under(convention: &Convention, resource: &str, object: &Value) -> String {
    let text = object.to_string();
    let object = Object::parse(&text).unwrap();
    let resource = Resource { resource: resource.into(), ..Resource::default() };
    let found = Health::of(convention, &object, &resource).unwrap();
    format!("{}: {}", found.class, found.reason)
}

fn ready(status: &str) -> Value {
    json!({"type": "Ready", "status": status, "reason": "R", "message": format!("it is {status}")})
}

fn with_conditions(conditions: &Value) -> Value {
    json!({"metadata": {"generation": 2}, "status": {"conditions": conditions}})
}

#[test]
fn own_rules_come_before_the_phase_and_inherited_rules_come_last() {
    let heir = "{extends: base, phase: {path: /status/phase, values: [{phase: Up, health: current}, {phase: Down}]}, \
        health: {rules: [{name: broken, is: failed, when: {condition: Broken, is: 'True'}}]}}";
    let of = |phase: &str, conditions: &Value| {
        health(heir, &json!({"status": {"phase": phase, "conditions": conditions}}))
    };
    let broken = json!({"type": "Broken", "status": "True", "reason": "Disk", "message": ""});
    assert_eq!(of("Up", &json!([ready("False"), broken])), "failed: Disk");
    assert_eq!(of("Up", &json!([ready("False")])), "current: phase Up");
    assert_eq!(of("Down", &json!([ready("False")])), "inProgress: it is False");
    assert_eq!(of("Down", &json!([ready("True")])), "current: no rule about health applies");
}

#[test]
fn a_rule_with_the_name_phase_moves_the_health_of_the_phase() {
    let heir = "{extends: base, phase: {path: /status/phase, values: [{phase: Up, health: current}]}, \
        health: {rules: [{name: phase}, {name: broken, is: failed, when: {condition: Broken, is: 'True'}}]}}";
    let broken = json!({"type": "Broken", "status": "True"});
    let object = |phase: &str| json!({"status": {"phase": phase, "conditions": [broken]}});
    assert_eq!(health(heir, &object("Up")), "current: phase Up");
    assert_eq!(health(heir, &object("Down")), "failed: broken", "neither message nor reason");
}

#[test]
fn an_heir_replaces_and_removes_inherited_rules_by_name() {
    let replaced =
        "{extends: base, health: {rules: [{name: not-ready, is: failed, retried: true}]}}";
    let not_ready = with_conditions(&json!([ready("False")]));
    assert_eq!(health(replaced, &not_ready), "failed (retried): it is False");
    let removed = "{extends: base, without: [not-ready]}";
    assert_eq!(health(removed, &not_ready), "current: it is False");
    let default = "{extends: base, without: [not-ready], health: {default: unknown}}";
    assert_eq!(health(default, &not_ready), "unknown: it is False");
}

#[test]
fn deletion_comes_first_then_rules_about_the_spec_then_an_old_observed_generation() {
    let heir = "{extends: base, health: {rules: [\
        {name: broken, is: failed, when: {condition: Broken, is: 'True'}}, \
        {name: spec-paused, is: suspended, evenIfStale: true, when: {field: /spec/paused, is: true}}]}}";
    let broken = json!([{"type": "Broken", "status": "True"}]);
    let object = |observed: Value, paused: bool, deletion: Option<&str>| {
        json!({
            "metadata": {"generation": 2, "deletionTimestamp": deletion},
            "spec": {"paused": paused},
            "status": {"observedGeneration": observed, "conditions": broken},
        })
    };
    let deleted = object(json!(1), true, Some("2024-06-01T09:00:00Z"));
    assert_eq!(health(heir, &deleted), "terminating: metadata.deletionTimestamp is set");
    assert_eq!(health(heir, &object(json!(1), true, None)), "suspended: spec-paused");
    assert_eq!(health(heir, &object(json!(2), true, None)), "suspended: spec-paused");
    let stale = "inProgress: the controller has not observed the newest generation";
    assert_eq!(health(heir, &object(json!(1), false, None)), stale);
    assert_eq!(health(heir, &object(json!("1"), false, None)), stale, "Argo Rollouts");
    for observed in [json!(2), json!("2"), json!(3), json!("x"), json!(true), json!(null)] {
        assert_eq!(
            health(heir, &object(observed.clone(), false, None)),
            "failed: broken",
            "{observed}"
        );
    }
}

#[test]
fn a_condition_that_observed_an_older_generation_is_no_evidence() {
    let heir = "{extends: base, health: {rules: [{name: ready, is: failed, when: {condition: Ready, is: 'True'}}]}}";
    let observed = |generation: i64| {
        let mut condition = ready("True");
        condition["observedGeneration"] = generation.into();
        health(heir, &with_conditions(&json!([condition])))
    };
    // Nothing definite is known about the newest generation.
    assert_eq!(observed(1), "inProgress: the controller has not observed the newest generation");
    assert_eq!(observed(2), "failed: it is True");
    assert_eq!(observed(3), "failed: it is True");
}

#[test]
fn a_list_inside_another_list_needs_one_element_for_which_the_rule_holds() {
    let heir = "{extends: base, health: {rules: [{name: rejected, is: failed, in: '/status/parents/*/conditions', \
        when: {all: [{condition: Accepted, is: 'False'}, {condition: Resolved, is: 'True'}]}}]}}";
    let parent = |accepted: &str, resolved: &str| {
        let condition = |kind: &str, status: &str| json!({"type": kind, "status": status, "message": format!("{kind} is {status}")});
        json!({"name": accepted, "conditions": [condition("Accepted", accepted), condition("Resolved", resolved)]})
    };
    let of = |parents: Value| health(heir, &json!({"status": {"parents": parents}}));
    assert_eq!(
        of(json!([parent("True", "True"), parent("False", "True")])),
        "failed: Accepted is False"
    );
    let none = "current: no rule about health applies";
    assert_eq!(of(json!([parent("True", "True"), parent("False", "False")])), none);
    for odd in [json!(null), json!({}), json!([1, {"conditions": 3}])] {
        assert_eq!(of(odd), none);
    }
}

#[test]
fn the_message_is_that_of_the_first_condition_that_made_the_rule_true() {
    let heir = "{extends: base, health: {rules: [{name: any, is: failed, when: {any: [\
        {all: [{condition: A, is: 'True'}, {condition: B, is: 'True'}]}, {condition: C, isNot: 'True'}]}}]}}";
    let conditions = ["A", "C"].map(|kind| {
        json!({"type": kind, "status": if kind == "A" { "True" } else { "False" }, "message": format!("m of {kind}")})
    });
    assert_eq!(health(heir, &with_conditions(&json!(conditions))), "failed: m of C");
}

#[test]
fn the_phase_has_the_message_of_its_field() {
    let heir = "{extends: base, phase: {path: /status/phase, values: [{phase: Down, health: {is: failed, retried: true}}]}, \
        health: {message: /status/message}}";
    let object = |message: Value| json!({"status": {"phase": "Down", "message": message}});
    assert_eq!(health(heir, &object(json!("no space left"))), "failed (retried): no space left");
    for message in [json!(""), json!(null), json!(3)] {
        assert_eq!(health(heir, &object(message)), "failed (retried): phase Down");
    }
}

#[test]
fn a_rule_can_have_the_message_of_a_field() {
    let heir = "{extends: base, health: {rules: [{name: broken, is: failed, message: /status/error, \
        when: {any: [{set: /status/error}, {condition: Broken, is: 'True'}]}}]}}";
    let broken = json!([{"type": "Broken", "status": "True", "message": "it broke"}]);
    let of =
        |error: Value| health(heir, &json!({"status": {"error": error, "conditions": broken}}));
    assert_eq!(of(json!("disk full")), "failed: disk full");
    assert_eq!(of(json!({"code": 1})), "failed: broken", "the error decides, and has no text");
    assert_eq!(of(json!("")), "failed: it broke");
}

#[test]
fn without_a_rule_ready_says_why_otherwise_the_newest_condition_that_is_not_good() {
    let heir = "{extends: base, without: [not-ready], health: {default: inProgress}, conditions: [{path: /status/conditions, \
        types: {Stuck: {polarity: negative}, Mode: {polarity: neutral}, Done: {polarity: positive}}}]}";
    let of = |conditions: Value| {
        health(heir, &json!({"metadata": {"generation": 2}, "status": {"conditions": conditions}}))
    };
    let condition = |kind: &str, status: &str, day: u8| {
        json!({"type": kind, "status": status, "message": format!("{kind} is {status}"),
            "lastTransitionTime": format!("2024-06-{day:02}T00:00:00Z")})
    };
    let none = "inProgress: no rule about health applies";
    let old = [condition("Done", "False", 1), condition("Stuck", "True", 2)];
    assert_eq!(of(json!(old)), "inProgress: Stuck is True");
    assert_eq!(
        of(json!([old[1], condition("Other", "Unknown", 3)])),
        "inProgress: Other is Unknown"
    );
    assert_eq!(
        of(json!([condition("Ready", "Unknown", 1), old[1]])),
        "inProgress: Ready is Unknown"
    );
    assert_eq!(of(json!([condition("Ready", "True", 9), old[0]])), "inProgress: Done is False");
    for (kind, status) in [("Stuck", "False"), ("Mode", "False"), ("Done", "True"), ("Done", "?")] {
        assert_eq!(of(json!([condition(kind, status, 1)])), none, "{kind}");
    }
    // Of an older generation, nothing is quoted.
    let mut stale = condition("Done", "False", 9);
    stale["observedGeneration"] = 1.into();
    let expected = "inProgress: the controller has not observed the newest generation";
    assert_eq!(of(json!([stale])), expected);
    assert_eq!(of(json!([stale, old[0]])), "inProgress: Done is False");
    assert_eq!(
        of(json!([{"type": "Done", "status": "False", "reason": "Slow"}])),
        "inProgress: Slow"
    );
    assert_eq!(of(json!([{"type": "Done", "status": "False"}])), none);
}

/// An object for which a rule decides.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    #[serde(default)]
    resource: String,
    object: Value,
    is: String,
    #[serde(default, rename = "argo")]
    _argo: String,
}

#[test]
fn each_rule_of_a_built_in_convention_decides_for_its_object() {
    let text = include_str!("../fixtures/health.yaml");
    let cases: BTreeMap<String, BTreeMap<String, Case>> = serde_saphyr::from_str(text).unwrap();
    let set = PolicySet::compile(&PolicySet::examples()).unwrap();
    let conventions: BTreeMap<&str, &Convention> = set
        .policies()
        .iter()
        .map(|policy| (policy.convention.name.as_str(), &*policy.convention))
        .collect();
    let rules_of = |name: &str| &conventions[name].health.as_ref().unwrap().rules;
    let inherited: Vec<String> = ["metav1", "crossplane"]
        .iter()
        .flat_map(|base| rules_of(base).iter().map(move |rule| format!("{base} {rule:?}")))
        .collect();
    let mut wrong = Vec::new();
    for (name, of_convention) in &cases {
        let convention = conventions[name.as_str()];
        let is_inherited = |rule: &HealthRule| {
            let of_base = |base: &&str| {
                *base != name.as_str() && inherited.contains(&format!("{base} {rule:?}"))
            };
            ["metav1", "crossplane"].iter().any(of_base)
        };
        let is_tested = |rule: &HealthRule| of_convention.contains_key(rule.name.as_str());
        let untested = rules_of(name).iter().find(|rule| !is_inherited(rule) && !is_tested(rule));
        assert!(untested.is_none(), "{name}: {untested:?}");
        for (rule, Case { resource, object, is, .. }) in of_convention {
            let found = health_under(convention, resource, object);
            if found != *is {
                wrong.push(format!("{name}: {rule}: {found}, not {is}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(cases.len(), 25);
}
