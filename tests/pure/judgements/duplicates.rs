//! Duplicates in a list that should be a map, under the default that removes them.

use serde_json::{Value, json};
use statusgate_core::policy::PolicySet;

use super::{condition, with};
use crate::support::{NOW, T0, Write, compile, convention, following, policy};

const UNIQUE: &str = "{list: /status/conditions, uniqueElements: true}";

fn unique() -> PolicySet {
    following("metav1", &format!("backfill: [{UNIQUE}]"))
}

/// A condition with a time.
fn at(kind: &str, status: &str, time: &str) -> Value {
    with(condition(kind, status), "lastTransitionTime", time)
}

fn status(conditions: impl IntoIterator<Item = Value>) -> Value {
    json!({"conditions": conditions.into_iter().collect::<Vec<_>>()})
}

/// What a write that changes nothing stores, as backfill sends it.
fn backfilled(policies: &PolicySet, stored: &Value) -> Value {
    let outcome = Write::of(stored.clone(), stored.clone()).review(policies);
    outcome.is_clean();
    outcome.status()
}

#[test]
fn of_duplicates_the_newest_transition_stays() {
    let (old, new) = (at("Ready", "True", T0), at("Ready", "False", NOW));
    let synced = condition("Synced", "True");
    for (stored, stays) in [
        (vec![&old, &synced, &new], vec![&synced, &new]),
        (vec![&new, &synced, &old], vec![&new, &synced]),
        (vec![&old, &old, &new, &old], vec![&new]),
        (vec![&synced, &old], vec![&synced, &old]),
    ] {
        let found = backfilled(&unique(), &status(stored.into_iter().cloned()));
        assert_eq!(found, status(stays.into_iter().cloned()));
    }
    // The last one of two with the same time, and any time is newer than none.
    let other = with(old.clone(), "reason", "Other");
    let found = backfilled(&unique(), &status([old.clone(), other.clone()]));
    assert_eq!(found, status([other]));
    let never = with(old.clone(), "lastTransitionTime", "never");
    assert_eq!(backfilled(&unique(), &status([old.clone(), never])), status([old]));
}

#[test]
fn without_the_default_duplicates_stay() {
    let stored = status([at("Ready", "True", T0), at("Ready", "True", NOW)]);
    assert_eq!(backfilled(&following("metav1", ""), &stored), stored);
}

#[test]
fn elements_are_compared_by_the_key_of_their_type_and_those_without_it_stay() {
    let list = "path: /status/conditions, types: {Node: {key: [type, node]}}";
    let policies = compile(&[
        convention("c", format!("conditions: [{{{list}}}]")),
        policy("p", format!("convention: c, backfill: [{UNIQUE}]")),
    ]);
    let node = |node: &str| with(condition("Node", "True"), "node", node);
    let other = condition("Node", "True");
    let kept = [node("a"), node("b"), other.clone(), other, json!("text"), json!({})];
    let stored = status(kept.iter().cloned().chain([node("b")]));
    let outcome = Write::of(stored.clone(), stored).mutate(&policies);
    let expected = [&kept[..1], &kept[2..], &[node("b")]].concat();
    assert_eq!(outcome.status(), status(expected));
}

/// A condition that goes on from the one that stayed is no transition, and the removal is no change of the writer.
#[test]
fn the_removal_of_stored_duplicates_rejects_no_write() {
    let list = "path: /status/conditions, types: {Ready: {reverted: Deny, removed: Deny}}, \
        each: [{id: e, when: {member: reason, changed: true}, action: Deny, message: m}]";
    let rule =
        "{id: r, when: {condition: Ready, is: 'False'}, action: Deny, message: m, path: /status/x}";
    let spec = format!("conditions: [{{{list}}}], rules: [{rule}]");
    let owners =
        "owners: [{conditions: [Ready], users: [kubelet]}], preserve: [/status/conditions]";
    let policies = compile(&[
        convention("c", spec),
        policy("p", format!("convention: c, {owners}, backfill: [{UNIQUE}]")),
    ]);
    for length in [2, 40] {
        let first = at("Ready", "True", T0);
        let last = with(at("Ready", "False", NOW), "reason", "Other");
        let duplicates = || (1..length).map(|_| first.clone()).chain([last.clone()]);
        let stored = status(duplicates());
        let outcome = Write::of(stored.clone(), with(stored, "x", 1)).review(&policies);
        assert_eq!(outcome.status(), with(status([last.clone()]), "x", 1));
        outcome.is_clean();
        // A writer that drops them all.
        let outcome = Write::of(status(duplicates()), json!({"x": 1})).review(&policies);
        assert_eq!(outcome.status()["conditions"], json!([last]));
        outcome.is_clean();
    }
}

#[test]
fn stored_duplicates_are_no_fault_of_the_writer_if_only_the_validating_webhook_runs() {
    let stored = status([at("Ready", "True", T0), at("Ready", "False", NOW)]);
    let write = Write::of(stored.clone(), with(stored, "x", 1));
    write.validate(&unique()).is_clean();
}

#[test]
fn a_list_of_thousands_is_cleaned_in_a_short_time() {
    for count in [420, 5_000] {
        for types in [1, count / 2] {
            let kind = |at: usize| format!("Type{}", at % types);
            let stored = (0..count).map(|at| condition(&kind(at), "True"));
            let stored = status(stored);
            let outcome = Write::of(stored.clone(), stored).mutate(&unique());
            let left = outcome.status()["conditions"].as_array().unwrap().len();
            assert_eq!(left, types, "{count}");
        }
    }
}
