//! The messages of findings: each names the condition or field, its value, and what is valid.

use serde_json::{Value, json};
use statusgate_core::source::one_line;

use crate::support::{T0, Write, built_in, following, under};

/// A condition as controllers write it.
fn condition(kind: &str, status: impl Into<Value>) -> Value {
    json!({"type": kind, "status": status.into(), "reason": "Any", "message": "m",
        "lastTransitionTime": T0})
}

/// The message of a rule about a first status.
fn message(convention: &str, resource: &str, spec: Value, status: Value, rule: &str) -> String {
    let policies = following(convention, "");
    let write = Write::to(resource).stored(None).sent(status).both("/spec", spec);
    find(&write.validate(&policies).lines(), rule)
}

fn find(lines: &[String], rule: &str) -> String {
    let tail = format!(" [{rule}]");
    let line = lines.iter().find_map(|line| line.strip_suffix(&tail));
    line.unwrap_or_else(|| panic!("{rule} is not among {lines:#?}")).to_owned()
}

#[test]
fn a_rule_names_the_condition_that_decided() {
    let summarized = "deny status.conditions: Ready is True although a condition that it summarizes has a bad status";
    let of_others = "audit status.conditions: Ready is True although a condition of another controller \
        has a bad status";
    for (bad, rule, text, found) in [
        (
            condition("NodeHealthy", "Unknown"),
            "machine-ready",
            summarized,
            "condition NodeHealthy is Unknown",
        ),
        (condition("Updating", "True"), "machine-ready", summarized, "condition Updating is True"),
        (
            condition("Own", "False"),
            "machine-ready-unhealthy",
            of_others,
            "condition \"Own\" of spec.readinessGates is False",
        ),
    ] {
        let status = json!({"conditions": [condition("Ready", "True"), bad]});
        let gates = json!({"readinessGates": [{"conditionType": "Own"}]});
        let rule = format!("capi-v1beta2/{rule}");
        let said = message("capi-v1beta2", "machines", gates, status, &rule);
        assert_eq!(said, format!("{text}: {found}"));
    }
}

#[test]
fn a_rule_reports_an_absent_condition_as_absent() {
    let conditions = json!({"conditions": [condition("Ready", "True")]});
    assert_eq!(
        message("ack", "things", json!({}), conditions, "ack/ready-differs-from-synced"),
        "warn status.conditions: Ready and ACK.ResourceSynced differ although there is no error: \
         condition ACK.ResourceSynced is absent and condition Ready is True and condition \
         ACK.Terminal is absent and condition ACK.Recoverable is absent"
    );
}

#[test]
fn a_rule_does_not_repeat_its_message() {
    let both = [condition("ScalingUp", "True"), condition("ScalingDown", "True")];
    let rule = "capi-v1beta2/scaling-up-and-down";
    let status = json!({"conditions": both});
    assert_eq!(
        message("capi-v1beta2", "machinesets", json!({}), status, rule),
        "deny status.conditions: ScalingUp and ScalingDown are both True"
    );
}

#[test]
fn a_finding_about_an_element_names_its_condition() {
    let status = |element: Value| json!({"conditions": [condition("Synced", "True"), element]});
    let found =
        |element: Value, rule: &str| message("metav1", "things", json!({}), status(element), rule);
    let mut element = condition("Ready", "Maybe");
    let status = found(element.clone(), "metav1/condition-status");
    assert!(status.starts_with("deny status.conditions[1].status: "), "{status}");
    assert!(status.ends_with(" (condition Ready)"), "{status}");
    element["reason"] = Value::Null;
    assert_eq!(
        found(element.clone(), "metav1/condition-reason"),
        "deny status.conditions[1].reason: is required (condition Ready)"
    );
    element["type"] = "no name".into();
    let kind = found(element, "metav1/condition-type");
    assert!(!kind.contains("(condition"), "{kind}");
}

#[test]
fn a_value_without_quotes_is_shown_with_the_fix() {
    let found = |status: Value, rule: &str| message("appcat", "things", json!({}), status, rule);
    assert_eq!(
        found(json!({"conditions": [condition("Ready", true)]}), "appcat/condition-status"),
        "deny status.conditions[0].status: must be a string, it is the boolean true (quote it) \
         (condition Ready)"
    );
    assert_eq!(
        found(json!({"phase": 5}), "appcat/phase-value"),
        "deny status.phase: must be a string, it is the number 5 (quote it)"
    );
    assert_eq!(
        found(json!({"phase": [5]}), "appcat/phase-value"),
        "deny status.phase: must be a string, it is a list"
    );
}

#[test]
fn a_pattern_is_described_in_words_before_it_is_shown() {
    let check = |message: &str| {
        let spec = format!("fields: [{{path: /status/unit, pattern: '^[A-Z]'{message}}}]");
        let write = Write::of(None, json!({"unit": "gib"}));
        find(&write.validate(&under(spec, "")).lines(), "c/field-unit")
    };
    assert_eq!(
        check(", message: must start with a capital letter"),
        "deny status.unit: \"gib\" must start with a capital letter (pattern '^[A-Z]')"
    );
    assert_eq!(check(""), "deny status.unit: \"gib\" does not match '^[A-Z]'");
}

#[test]
fn every_pattern_of_a_built_in_convention_has_words() {
    for (name, convention) in built_in().conventions() {
        let members = convention.conditions.iter().flat_map(|list| list.members.iter());
        let checks = members.flat_map(|(_, checks)| checks.iter());
        let fields = convention.fields.iter().map(|field| &field.check);
        for check in checks.chain(fields).filter(|check| check.pattern.is_some()) {
            assert!(check.message.is_some(), "{name}: {}", check.rule);
        }
    }
}

#[test]
fn a_transition_names_the_valid_phases() {
    let policies = under(
        json!({"phase": {"path": "/status/phase", "values": [{"phase": "Pending"}, {"phase": "Installing"},
            {"phase": "Done"}], "moves": {"from": {"": ["Pending"], "Pending": ["Installing", "Done"],
            "Done": ["Done", "Installing"]}}}}),
        "",
    );
    let found = |old: Value, new: &str| {
        let write = Write::of(old, json!({"phase": new}));
        find(&write.validate(&policies).lines(), "c/phase-move")
    };
    assert_eq!(
        found(json!({"a": 1}), "Installing"),
        "warn status.phase: phase Installing is not a valid first phase: expected Pending"
    );
    assert_eq!(
        found(json!({"phase": "Installing"}), "Pending"),
        "warn status.phase: phase Pending is not valid after Installing: expected Installing"
    );
    assert_eq!(
        found(json!({"phase": "Done"}), "Pending"),
        "warn status.phase: phase Pending is not valid after Done: expected Done or Installing"
    );
}

/// The page shows names as the terminal does.
#[test]
fn the_page_escapes_the_same_letters_as_the_terminal() {
    let script = include_str!("../../src/ui/page/dom.js");
    let (_, class) = script.split_once("text.replace(/[\\u").unwrap();
    let (class, _) = class.split_once("]/g").unwrap();
    let class = class.replace("-\\u", "-");
    let by_page = class.split("\\u").flat_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let letter = |code: &str| char::from_u32(u32::from_str_radix(code, 16).unwrap());
        letter(first).unwrap()..=letter(last).unwrap()
    });
    let all = '\0'..=char::MAX;
    let by_terminal = all.filter(|letter| one_line(&letter.to_string()).starts_with("\\u"));
    assert_eq!(by_page.collect::<Vec<_>>(), by_terminal.collect::<Vec<_>>());
}
