//! Maps with elements as their values, such as `status.instancesReportedState` of CloudNativePG.

use serde_json::{Map, Value, json};
use statusgate_core::policy::PolicySet;

use crate::support::{NOW, T0, Write, under};

const CONVENTION: &str = "\
    generation: {}, \
    conditions: [{path: /status/conditions}, {path: '/status/instances/*', maxItems: 100, \
      members: {timeline: {type: integer, required: true}, primary: {type: boolean}, \
        since: {format: date-time}, observedGeneration: {}}, \
      otherMembers: Deny, \
      transitionTime: {member: since, mustMoveOn: [primary], mayMoveOn: [primary], kept: Deny, moved: Deny}, \
      each: [\
        {id: primary-while-ready, member: primary, action: Deny, message: the object is not Ready, \
         when: {all: [{member: primary, is: true}, {condition: Ready, is: 'False'}]}}, \
        {id: older, member: timeline, action: Deny, message: the timeline differs, \
         when: {oldMember: timeline, is: 2}}]}]";

fn policies() -> PolicySet {
    under(CONVENTION, "")
}

/// The rules and fields for which the validating webhook rejects a write of a map.
fn rejected(old: &Value, new: &Value) -> Vec<(String, String)> {
    let ready = json!([{"type": "Ready", "status": "True"}]);
    rejected_with(&ready, old, new)
}

fn rejected_with(conditions: &Value, old: &Value, new: &Value) -> Vec<(String, String)> {
    let write = Write::of(
        json!({"instances": old, "conditions": conditions}),
        json!({"instances": new, "conditions": conditions, "other": 1}),
    );
    let findings = write.validate(&policies()).findings.into_iter();
    findings.map(|found| (found.rule.to_string(), found.field)).collect()
}

fn one(rule: &str, field: &str) -> Vec<(String, String)> {
    vec![(format!("c/{rule}"), field.to_owned())]
}

#[test]
fn each_value_is_checked_and_named_by_its_key() {
    let good = json!({"timeline": 1});
    assert_eq!(rejected(&json!({}), &json!({"a": good, "b": good})), []);
    for (value, rule, field) in [
        (json!({}), "condition-timeline", "[b].timeline"),
        (json!({"timeline": "1"}), "condition-timeline", "[b].timeline"),
        (json!({"timeline": 1, "x/y": 1}), "condition-member-unknown", "[b].x/y"),
        (
            json!({"timeline": 1, "observedGeneration": 9}),
            "generation-ahead",
            "[b].observedGeneration",
        ),
        (json!("text"), "condition-shape", "[b]"),
    ] {
        let found = rejected(&json!({}), &json!({"a": good, "b": value}));
        assert_eq!(found, one(rule, &format!("status.instances{field}")));
    }
}

#[test]
fn the_keys_of_a_map_are_checked() {
    let checks = "keys: [{pattern: '^[a-z]+-[0-9]+$', message: must be a pod}, {maxLength: 8, action: Warn}]";
    let outer = |path: &str| format!("conditions: [{{path: '{path}', {checks}}}]");
    let found = |path: &str, old: Value, new: Value| -> Vec<(String, String, String)> {
        let write = Write::of(json!({"a": old, "x": 0}), json!({"a": new, "x": 1}));
        let findings = write.validate(&under(outer(path), "")).findings.into_iter();
        findings.map(|found| (found.rule.to_string(), found.field, found.message)).collect()
    };
    let (flat, nested) = ("/status/a/*", "/status/a/*/members/*");
    assert_eq!(found(flat, json!({}), json!({"db-1": {}, "db-2": {}})), []);
    let [(_, long, _), (rule, field, message)] =
        &*found(flat, json!({}), json!({"database-1": {}, "db1": {}, "db-1": {}}))
    else {
        panic!("two keys are wrong")
    };
    assert_eq!(
        (&**rule, &**field, &**long),
        ("c/condition-keys", "status.a[db1]", "status.a[database-1]")
    );
    assert_eq!(message, "the key: \"db1\" must be a pod (pattern '^[a-z]+-[0-9]+$')");
    // A stored key stays, and its value may change.
    assert_eq!(found(flat, json!({"db1": {}}), json!({"db1": {"n": 1}})), []);
    let found = found(nested, json!({}), json!({"db1": {"members": {"db2": {}, "db-2": {}}}}));
    let fields: Vec<&str> = found.iter().map(|(_, field, _)| &**field).collect();
    assert_eq!(fields, ["status.a[db1].members[db2]"], "only the keys of the inner maps");
}

#[test]
fn a_value_is_compared_with_the_stored_value_of_its_key() {
    let value =
        |primary: bool, since: &str| json!({"timeline": 1, "primary": primary, "since": since});
    let stored = json!({"b": value(true, T0), "c": value(false, T0)});
    let inserted = json!({"a": value(false, NOW), "b": value(true, T0), "c": value(false, T0)});
    assert_eq!(rejected(&stored, &inserted), []);
    let kept = json!({"a": value(false, NOW), "b": value(false, T0), "c": value(true, NOW)});
    assert_eq!(rejected(&stored, &kept), one("transition-time-kept", "status.instances[b].since"));
    let moved = json!({"c": value(false, NOW)});
    assert_eq!(
        rejected(&stored, &moved),
        one("transition-time-moved", "status.instances[c].since")
    );
}

#[test]
fn a_stored_violation_is_tolerated_at_the_same_key_only() {
    let (stored, changed) = (json!({"timeline": 1.5}), json!({"timeline": 1.5, "primary": true}));
    assert_eq!(rejected(&json!({"b": stored}), &json!({"b": changed})), []);
    assert_eq!(
        rejected(&json!({"b": stored}), &json!({"a": changed})),
        one("condition-timeline", "status.instances[a].timeline")
    );
}

#[test]
fn a_rule_about_each_value_reads_the_conditions_of_the_object() {
    let primary = json!({"a": {"timeline": 1, "primary": true}});
    let not_ready = json!([{"type": "Ready", "status": "False"}]);
    assert_eq!(rejected(&json!({}), &primary), []);
    assert_eq!(
        rejected_with(&not_ready, &json!({}), &primary),
        one("primary-while-ready", "status.instances[a].primary")
    );
}

#[test]
fn a_rule_about_each_value_reads_the_stored_value_of_its_key() {
    let value = |timeline: i64| json!({"timeline": timeline});
    let stored = json!({"a": value(1), "b": value(2)});
    assert_eq!(
        rejected(&stored, &json!({"b": value(3), "c": value(2)})),
        one("older", "status.instances[b].timeline")
    );
}

#[test]
fn a_key_is_escaped_in_the_field() {
    let found = rejected(&json!({}), &json!({"a/b~c.d\n": {}}));
    assert_eq!(found, one("condition-timeline", "status.instances[a/b~c.d\\n].timeline"));
}

#[test]
fn a_map_has_a_maximum_number_of_values() {
    let map = |count: usize| -> Value {
        let value = |number: usize| (format!("i{number}"), json!({"timeline": 1}));
        (0..count).map(value).collect::<Map<_, _>>().into()
    };
    assert_eq!(rejected(&json!({}), &map(100)), []);
    assert_eq!(rejected(&json!({}), &map(101)), one("conditions-length", "status.instances"));
}

#[test]
fn a_list_in_place_of_a_map_is_reported() {
    assert_eq!(rejected(&json!({}), &json!([])), one("condition-shape", "status.instances"));
    for absent in [json!({}), Value::Null] {
        assert_eq!(rejected(&json!({"a": {"timeline": 1}}), &absent), []);
    }
}

/// Each value of `status.replsets` has a map of members.
#[test]
fn the_values_of_a_map_in_a_map_are_elements() {
    let convention = "conditions: [{path: '/status/replsets/*/members/*', element: member, maxItems: 3, \
        members: {name: {type: string, required: true}, state: {type: integer}}, \
        each: [{id: older, member: state, action: Deny, message: is older, when: {member: state, decreased: true}}]}]";
    let found = |old: Value, new: Value| -> Vec<(String, String)> {
        let write = Write::of(json!({"replsets": old}), json!({"replsets": new}));
        let findings = write.validate(&under(convention, "")).findings.into_iter();
        findings.map(|found| (found.rule.to_string(), found.field)).collect()
    };
    let of =
        |state: u8| json!({"rs0": {"members": {"a": {"name": "a", "state": state}}, "size": 1}});
    assert_eq!(found(json!({}), of(2)), []);
    assert_eq!(found(of(1), of(2)), []);
    assert_eq!(found(of(2), of(1)), one("older", "status.replsets[rs0].members[a].state"));
    let bad = |members: Value| json!({"rs0": {"members": members}, "cfg": {"size": 1}});
    for (members, rule, field) in [
        (json!({"a": {}}), "member-name", "status.replsets[rs0].members[a].name"),
        (json!({"a": 1}), "member-shape", "status.replsets[rs0].members[a]"),
        (json!([]), "member-shape", "status.replsets[rs0].members[]"),
    ] {
        assert_eq!(found(json!({}), bad(members)), one(rule, field));
    }
    let four: Map<String, Value> = ["a", "b", "c", "d"]
        .iter()
        .map(|name| ((*name).to_owned(), json!({"name": name})))
        .collect();
    assert_eq!(found(json!({}), bad(four.into())), one("member-length", "status.replsets"));
    assert_eq!(found(json!({}), json!({"rs0": 1})), one("member-shape", "status.replsets[rs0]"));
}
