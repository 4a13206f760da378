//! A check of one value tolerates a stored violation only while the value is unchanged, as the API
//! server's own ratchet does.

use serde_json::{Value, json};
use statusgate_core::engine::Action;

use crate::support::{Write, under};

const CONVENTION: &str = "\
    conditions: [{path: /status/conditions, key: [type], \
      members: {status: {required: true, enum: ['True', 'False', Unknown]}, reason: {pattern: '^[A-Z]+$'}}}], \
    generation: {paths: [/status/observedGeneration], minimum: 1}, \
    phase: {path: /status/phase, default: Unknown, values: [{phase: Ready}, {phase: Unknown}]}";

const FIELDS: &str = "fields: [\
    {path: /status/unit, enum: [GiB, minutes]}, \
    {path: /status/name, pattern: '^[a-z]+$', maxLength: 8}, \
    {path: /status/count, type: integer, minimum: 0}, \
    {path: /status/since, format: date-time, enum: ['2024-01-01T00:00:00Z']}, \
    {path: /status/owner, required: true, enum: [me]}, \
    {path: /status/gone, forbidden: true}]";

/// The fields for which the validating webhook rejects a write.
fn rejected(old: &Value, new: &Value) -> Vec<String> {
    let with_owner = |status: &Value| {
        let mut members = status.as_object().cloned().unwrap_or_default();
        members.entry("owner").or_insert("me".into());
        Value::from(members)
    };
    let write = Write::of(with_owner(old), with_owner(new));
    let findings = write.validate(&under(CONVENTION, FIELDS)).findings.into_iter();
    findings.filter(|found| found.action == Action::Deny).map(|found| found.field).collect()
}

/// Checks that a member may keep its value and may change to `good`, but not to `other`.
fn only_unchanged(member: &str, stored: &Value, other: &Value, good: &Value) {
    // Another member changes too: a write that changes nothing is never judged.
    let write = |value: &Value| json!({member: value, "other": 2});
    let old = json!({member: stored, "other": 1});
    assert_eq!(rejected(&old, &write(stored)), [""; 0], "{member}: {stored} is unchanged");
    assert_eq!(rejected(&old, &write(good)), [""; 0], "{member}: {stored} to {good}");
    let field = format!("status.{member}");
    assert_eq!(rejected(&old, &write(other)), [field], "{member}: {stored} to {other}");
}

#[test]
fn an_unsupported_phase_may_stay_but_not_become_another() {
    only_unchanged("phase", &json!("Paused"), &json!("Stopped"), &json!("Unknown"));
    only_unchanged("phase", &json!("Paused"), &json!(5), &json!("Ready"));
    only_unchanged("phase", &json!(5), &json!("Paused"), &json!("Unknown"));
}

#[test]
fn a_field_with_an_enum_may_keep_an_unsupported_value() {
    only_unchanged("unit", &json!("gib"), &json!("GIB"), &json!("GiB"));
    only_unchanged("unit", &json!(["gib", {"a": 1, "b": 2}]), &json!([]), &json!("minutes"));
}

#[test]
fn a_field_with_a_pattern_or_a_length_may_keep_its_value() {
    only_unchanged("name", &json!("A B"), &json!("A C"), &json!("ab"));
    only_unchanged("name", &json!("tooooolong"), &json!("toooooooolong"), &json!("short"));
    only_unchanged("name", &json!("tooooolong"), &json!("A B"), &json!("short"));
}

#[test]
fn a_field_with_a_type_or_a_range_may_keep_its_value() {
    only_unchanged("count", &json!(-1), &json!(-2), &json!(0));
    only_unchanged("count", &json!("many"), &json!("few"), &json!(3));
    only_unchanged("count", &json!("many"), &json!(1.5), &json!(3));
}

#[test]
fn the_observed_generation_may_stay_below_the_minimum() {
    only_unchanged("observedGeneration", &json!(-2), &json!(-1), &json!(1));
}

#[test]
fn equal_instants_and_equal_objects_are_the_same_value() {
    let old = json!({"since": "2024-06-01T12:00:00Z", "unit": {"a": 1, "b": [2]}});
    let new = json!({"since": "2024-06-01T13:00:00.0+01:00", "unit": {"b": [2.0], "a": 1}});
    assert_eq!(rejected(&old, &new), [""; 0]);
    let new = json!({"since": "2024-06-01T12:00:01Z", "unit": {"a": 1, "b": [3]}});
    assert_eq!(rejected(&old, &new), ["status.unit", "status.since"]);
}

/// The status with one condition.
fn condition(kind: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({"conditions": [{"type": kind, "status": status, "reason": reason, "message": message}]})
}

#[test]
fn a_member_of_a_condition_may_keep_its_value() {
    let old = condition("A", "true", "two words", "m");
    assert_eq!(rejected(&old, &condition("A", "true", "two words", "n")), [""; 0]);
    assert_eq!(rejected(&old, &condition("A", "True", "WORD", "n")), [""; 0]);
    let other_status = condition("A", "yes", "two words", "m");
    assert_eq!(rejected(&old, &other_status), ["status.conditions[0].status"]);
    let other_reason = condition("A", "true", "three words", "m");
    assert_eq!(rejected(&old, &other_reason), ["status.conditions[0].reason"]);
}

#[test]
fn a_condition_keeps_its_value_wherever_it_is_in_the_list() {
    let old = condition("A", "true", "X", "m");
    let mut new = condition("B", "True", "X", "m");
    let moved = condition("A", "true", "X", "n")["conditions"][0].clone();
    new["conditions"].as_array_mut().unwrap().push(moved);
    assert_eq!(rejected(&old, &new), [""; 0]);
    new["conditions"][1]["status"] = "yes".into();
    assert_eq!(rejected(&old, &new), ["status.conditions[1].status"]);
}

/// Presence is no check of a value: what was missing or in the way before may be so in another way.
#[test]
fn presence_is_judged_by_its_place_alone() {
    let without = json!({"owner": null});
    assert_eq!(rejected(&without, &json!({"owner": null, "other": 1})), [""; 0]);
    assert_eq!(rejected(&json!({"gone": 1}), &json!({"gone": 2})), [""; 0]);
    // A value that was not there is new.
    assert_eq!(rejected(&without, &json!({"owner": "you"})), ["status.owner"]);
    assert_eq!(rejected(&json!({"owner": "you"}), &without), [""; 0]);
}
