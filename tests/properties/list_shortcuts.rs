//! The engine skips an unchanged list of conditions and does not search for an element that kept its
//! place. Both shortcuts must find what the full comparison finds.
//!
//! A rule about each element and a type with its own key disable the shortcuts. Neither ever applies.

use std::sync::LazyLock;

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use statusgate_core::engine::Action;
use statusgate_core::policy::PolicySet;

use crate::support::{EARLIER, T0, Write, under};

/// A convention with as many engine rules as a list can have.
fn policies(key: &str, full: bool) -> PolicySet {
    let (each, never) = if full {
        (
            ", each: [{id: never, when: {member: type, is: Never}, action: Deny, member: type, message: m}]",
            "Never: {key: [type, a]}, ",
        )
    } else {
        ("", "")
    };
    under(
        format!(
            "conditions: [{{path: /status/conditions, key: {key}, maxItems: 4, order: Warn, \
            members: {{type: {{required: true, type: string}}, \
              status: {{required: true, type: string, enum: ['True', 'False']}}, \
              lastTransitionTime: {{required: true, type: string, format: date-time}}}}, \
            transitionTime: {{member: lastTransitionTime, mustMoveOn: [status], mayMoveOn: [status]}}, \
            types: {{{never}Ready: {{polarity: positive, reverted: Warn, removed: Warn}}, \
              Synced: {{polarity: positive, notTrue: Warn, missing: Warn}}, \
              Other: {{polarity: positive, present: {{when: {{field: /status/phase, is: b}}, action: Warn}}}}}}{each}}}], \
            generation: {{paths: [/status/observedGeneration]}}"
        ),
        "",
    )
}

/// Rule, field, message and action of each finding.
fn found(policies: &PolicySet, write: &Write) -> Vec<(String, String, String, Action)> {
    let findings = write.validate(policies).findings.into_iter();
    // The message that lists the known types has one more of them without the shortcuts.
    let message = |message: String| message.replace("Never, ", "");
    findings.map(|f| (f.rule, f.field, message(f.message), f.action)).collect()
}

fn element() -> impl Strategy<Value = Value> {
    let sane = (
        select(vec!["Ready", "Ready", "Synced", "Other", "Own"]),
        select(vec!["True", "False", "odd"]),
        select(vec![T0, T0, EARLIER, "2999-01-01T00:00:00Z", "yesterday"]),
        select(vec![json!(null), json!("x"), json!("y")]),
        select(vec![1, 2, 9]),
    );
    let sane = sane.prop_map(|(kind, status, time, a, generation)| {
        json!({"type": kind, "status": status, "lastTransitionTime": time, "a": a,
            "observedGeneration": generation})
    });
    let odd =
        select(vec![json!(null), json!("x"), json!({}), json!({"type": 5}), json!({"a": "x"})]);
    prop_oneof![12 => sane, 1 => odd]
}

/// What a write does to a list.
#[derive(Clone, Debug)]
enum Change {
    Put(usize, Value),
    Insert(usize, Value),
    Remove(usize),
    Swap(usize, usize),
}

fn changed(mut list: Vec<Value>, changes: &[Change]) -> Vec<Value> {
    for change in changes {
        let length = list.len();
        match change {
            Change::Insert(at, value) => list.insert(at % (length + 1), value.clone()),
            _ if length == 0 => {}
            Change::Put(at, value) => list[at % length] = value.clone(),
            Change::Remove(at) => drop(list.remove(at % length)),
            Change::Swap(one, other) => list.swap(one % length, other % length),
        }
    }
    list
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        3 => (0..20_usize, element()).prop_map(|(at, value)| Change::Put(at, value)),
        2 => (0..20_usize, element()).prop_map(|(at, value)| Change::Insert(at, value)),
        1 => (0..20_usize).prop_map(Change::Remove),
        1 => (0..20_usize, 0..20_usize).prop_map(|(one, other)| Change::Swap(one, other)),
    ]
}

fn lists() -> impl Strategy<Value = Vec<Value>> {
    let short = prop::collection::vec(element(), 0..6);
    let long = prop::collection::vec(element(), 14..20);
    prop_oneof![5 => short, 1 => long]
}

/// For each key: the convention that allows the shortcuts, and the one that does not.
static BOTH: LazyLock<Vec<(PolicySet, PolicySet)>> = LazyLock::new(|| {
    let both = |key| (policies(key, false), policies(key, true));
    ["[type]", "[a]", "[type, a]"].map(both).into_iter().collect()
});

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn the_shortcuts_find_what_the_full_comparison_finds(
        stored in lists(),
        changes in prop::collection::vec(change(), 0..3),
        phases in (select(vec!["a", "b"]), select(vec!["a", "b"])),
    ) {
        let status = |phase: &str, list: &[Value]| json!({"phase": phase, "conditions": list});
        let old = status(phases.0, &stored);
        let write = Write::of(old, status(phases.1, &changed(stored, &changes)));
        for (shortcuts, full) in BOTH.iter() {
            prop_assert_eq!(found(shortcuts, &write), found(full, &write));
        }
    }
}
