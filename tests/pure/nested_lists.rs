//! Lists of conditions in the elements of an outer list, such as `status.parents[*].conditions` of a
//! route in the Gateway API.

use serde_json::{Value, json};
use statusgate_core::policy::PolicySet;

use crate::support::{NOW, T0, Write, under};

const CONVENTION: &str = "\
    generation: {}, \
    conditions: [{path: '/status/parents/*/conditions', parentKey: [parentRef, controllerName], \
      members: {reason: {required: true}}, \
      types: {Accepted: {missing: Deny, removed: Deny, reverted: Deny}}, \
      transitionTime: {member: lastTransitionTime, mustMoveOn: [status], mayMoveOn: [status], kept: Deny}, \
      each: [{id: resolved-first, member: status, action: Deny, message: ResolvedRefs is False, \
              when: {all: [{member: type, is: Accepted}, {condition: ResolvedRefs, is: 'False'}]}}]}]";

fn policies() -> PolicySet {
    under(CONVENTION, "")
}

fn condition(kind: &str, status: &str, time: &str) -> Value {
    json!({"type": kind, "status": status, "reason": format!("R{status}"), "lastTransitionTime": time})
}

/// An element of `status.parents`.
fn parent(gateway: &str, conditions: &Value) -> Value {
    json!({
        "parentRef": {"group": "gateway.networking.k8s.io", "name": gateway},
        "controllerName": "example.com/controller",
        "conditions": conditions,
    })
}

fn accepted(gateway: &str) -> Value {
    parent(gateway, &json!([condition("Accepted", "True", T0)]))
}

/// The rules and fields for which the validating webhook rejects a write.
fn rejected(old: &[Value], new: &[Value]) -> Vec<(String, String)> {
    let write = Write::of(json!({"parents": old}), json!({"parents": new, "other": 1}));
    let findings = write.validate(&policies()).findings.into_iter();
    findings.map(|found| (found.rule.to_string(), found.field)).collect()
}

fn one(rule: &str, field: &str) -> Vec<(String, String)> {
    vec![(format!("c/{rule}"), field.to_owned())]
}

#[test]
fn the_list_of_every_parent_is_judged() {
    let broken =
        parent("b", &json!([{"type": "Accepted", "status": "True", "lastTransitionTime": T0}]));
    let empty = parent("c", &json!([]));
    let mut expected = one("condition-reason", "status.parents[1].conditions[0].reason");
    expected.extend(one("accepted-missing", "status.parents[2].conditions"));
    assert_eq!(rejected(&[], &[accepted("a"), broken, empty]), expected);
}

#[test]
fn a_parent_is_compared_with_the_stored_parent_of_its_key() {
    let stored = [accepted("a"), parent("b", &json!([condition("Accepted", "False", T0)]))];
    let inserted = [accepted("new"), stored[1].clone(), stored[0].clone()];
    assert_eq!(rejected(&stored, &inserted), []);
    let reverted = parent("a", &json!([condition("Accepted", "False", NOW)]));
    let written = [accepted("new"), stored[1].clone(), reverted];
    assert_eq!(
        rejected(&stored, &written),
        one("accepted-reverted", "status.parents[2].conditions[0].status")
    );
}

#[test]
fn a_removed_condition_is_reported_but_not_a_removed_parent() {
    let stored = [accepted("a"), accepted("b")];
    assert_eq!(rejected(&stored, &stored[..1]), []);
    let other = parent("b", &json!([condition("Other", "True", T0)]));
    let rules: Vec<String> =
        rejected(&stored, &[accepted("a"), other]).into_iter().map(|(rule, _)| rule).collect();
    assert_eq!(rules, ["c/accepted-missing", "c/condition-removed"]);
}

#[test]
fn a_kept_time_is_reported_at_its_parent() {
    let stored = [accepted("a"), parent("b", &json!([condition("Accepted", "False", T0)]))];
    let written = [accepted("a"), accepted("b")];
    assert_eq!(
        rejected(&stored, &written),
        one("transition-time-kept", "status.parents[1].conditions[0].lastTransitionTime")
    );
}

#[test]
fn a_stored_violation_is_tolerated_at_the_same_parent_only() {
    let broken = |gateway| {
        parent(gateway, &json!([{"type": "Accepted", "status": "True", "lastTransitionTime": T0}]))
    };
    let changed = |gateway| {
        let mut parent = broken(gateway);
        parent["conditions"][0]["message"] = "changed".into();
        parent
    };
    assert_eq!(rejected(&[broken("a")], &[accepted("b"), changed("a")]), []);
    assert_eq!(
        rejected(&[broken("a")], &[changed("b"), accepted("a")]),
        one("condition-reason", "status.parents[0].conditions[0].reason")
    );
}

#[test]
fn a_rule_about_elements_reads_the_conditions_of_the_same_parent() {
    let unresolved =
        json!([condition("Accepted", "True", T0), condition("ResolvedRefs", "False", T0)]);
    assert_eq!(
        rejected(&[], &[accepted("a"), parent("b", &unresolved)]),
        one("resolved-first", "status.parents[1].conditions[0].status")
    );
}

#[test]
fn a_generation_that_does_not_exist_is_reported_at_its_parent() {
    let mut ahead = accepted("a");
    ahead["conditions"][0]["observedGeneration"] = 9.into();
    assert_eq!(
        rejected(&[accepted("a")], &[ahead]),
        one("generation-ahead", "status.parents[0].conditions[0].observedGeneration")
    );
}

#[test]
fn an_outer_list_of_another_type_is_reported() {
    for (parents, field) in [
        (json!({}), "status.parents"),
        (json!([5]), "status.parents[0]"),
        (json!([{"conditions": 5}]), "status.parents[0].conditions"),
    ] {
        let write = Write::of(json!({}), json!({"parents": parents}));
        let findings = write.validate(&policies()).findings;
        let found: Vec<_> = findings.iter().map(|found| (&*found.rule, &*found.field)).collect();
        assert_eq!(found, [("c/condition-shape", field)]);
    }
}

#[test]
fn many_parents_in_another_order_are_matched_by_their_keys() {
    let stored: Vec<Value> = (0..1000).map(|number| accepted(&number.to_string())).collect();
    let mut written = stored.clone();
    written.reverse();
    assert_eq!(rejected(&stored, &written), []);
    written[7] = parent("992", &json!([condition("Accepted", "False", NOW)]));
    assert_eq!(
        rejected(&stored, &written),
        one("accepted-reverted", "status.parents[7].conditions[0].status")
    );
}

/// A write of conditions in the values of a map.
fn rejected_in_map(old: &Value, new: &Value) -> Vec<(String, String)> {
    let convention = CONVENTION
        .replace(", parentKey: [parentRef, controllerName]", "")
        .replace("parents", "map");
    let write = Write::of(json!({"map": old}), json!({"map": new, "other": 1}));
    let findings = write.validate(&under(&convention, "")).findings.into_iter();
    findings.map(|found| (found.rule.to_string(), found.field)).collect()
}

#[test]
fn the_lists_in_the_values_of_a_map_are_compared_by_its_keys() {
    let stored = json!({"b": accepted("x"), "c/~\n": accepted("y")});
    let mut written = stored.clone();
    written["a"] = accepted("x");
    assert_eq!(rejected_in_map(&stored, &written), []);
    written["c/~\n"] = parent("x", &json!([condition("Accepted", "False", NOW)]));
    assert_eq!(
        rejected_in_map(&stored, &written),
        one("accepted-reverted", "status.map[c/~\\n].conditions[0].status")
    );
    let broken = json!({"type": "Accepted", "status": "True", "lastTransitionTime": T0});
    let stored = json!({"b": parent("x", &json!([broken]))});
    let mut changed = broken;
    changed["message"] = "changed".into();
    let changed = parent("x", &json!([changed]));
    assert_eq!(rejected_in_map(&stored, &json!({"a": accepted("x"), "b": changed})), []);
    assert_eq!(
        rejected_in_map(&stored, &json!({"c": changed})),
        one("condition-reason", "status.map[c].conditions[0].reason")
    );
}

#[test]
fn a_map_of_another_type_is_reported() {
    for (map, field) in [
        (json!([]), "status.map"),
        (json!({"a": 5}), "status.map[a]"),
        (json!({"a": {"conditions": 5}}), "status.map[a].conditions"),
    ] {
        assert_eq!(rejected_in_map(&Value::Null, &map), one("condition-shape", field));
    }
}

#[test]
fn an_absent_outer_list_has_no_conditions() {
    assert_eq!(rejected(&[accepted("a")], &[]), []);
    let write = Write::of(json!({}), json!({"parents": null}));
    assert_eq!(write.validate(&policies()).findings.len(), 0);
}
