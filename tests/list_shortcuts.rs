//! The short ways through a list of conditions give the answers of the long ones: an unchanged list
//! is not judged element by element, and elements that kept their places are not searched for.
//!
//! What takes the long way is the same convention with a rule about each element and a type with a
//! key of its own, neither of which ever applies.

#![expect(clippy::unwrap_used, reason = "tests, and their helpers too")]

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::RngSeed;
use serde_json::{Value, json};
use statusgate::engine::{Action, decide};
use statusgate::model::{Object, Operation, Resource, Subject, Webhook, Writer};
use statusgate::policy::{PolicySet, Source};

const T0: &str = "2024-06-01T11:00:00Z";
const EARLIER: &str = "2024-06-01T10:00:00Z";

/// A convention with as many engine rules as a list can have.
fn policies(key: &str, long: bool) -> PolicySet {
    let (each, never) = if long {
        (
            "      each: [{id: never, when: {member: type, is: Never}, action: Deny, member: type, \
             message: it never applies}]\n",
            "        Never: {key: [type, a]}\n",
        )
    } else {
        ("", "")
    };
    let text = format!(
        "apiVersion: statusgate.dev/v1alpha1
kind: StatusConvention
metadata: {{name: x}}
spec:
  title: a test
  source: none
  conditions:
    - path: /status/conditions
      source: none
      key: {key}
      maxItems: 4
      order: Warn
      members:
        type: {{required: true, type: string, source: none}}
        status: {{required: true, type: string, enum: [\"True\", \"False\"], source: none}}
        lastTransitionTime: {{required: true, type: string, format: date-time, source: none}}
      transitionTime: {{member: lastTransitionTime, mustMoveOn: [status], mayMoveOn: [status], source: none}}
{each}      types:
{never}        Ready: {{polarity: positive, reverted: Warn, removed: Warn, source: none}}
        Synced: {{polarity: positive, notTrue: Warn, missing: Warn, source: none}}
        Other: {{polarity: positive, present: {{when: {{field: /status/phase, is: b}}, action: Warn}}, source: none}}
  generation: {{paths: [/status/observedGeneration], source: none}}
"
    );
    let policy = "apiVersion: statusgate.dev/v1alpha1\nkind: StatusPolicy\nmetadata: {name: x}\n\
        spec: {convention: x, resources: [{apiGroups: [g], apiVersions: [v1], resources: [xs]}]}\n";
    let sources = [("convention", text), ("policy", policy.to_owned())]
        .map(|(name, text)| Source { name: name.to_owned(), text });
    PolicySet::compile(&sources).unwrap()
}

type Said = Vec<(String, String, String, Action)>;

fn said(policies: &PolicySet, old: &str, new: &str) -> Said {
    let subject = Subject {
        resource: Resource { group: "g".into(), version: "v1".into(), resource: "xs".into() },
        subresource: "status".into(),
        operation: Operation::Update,
        writer: Writer::default(),
        object: Object::parse(new).unwrap(),
        old: Some(Object::parse(old).unwrap()),
    };
    let now = "2024-06-01T12:00:00Z".parse().unwrap();
    let verdict = decide(policies, &subject, Webhook::Validate, now);
    assert_eq!(verdict.policies.len(), 1);
    let findings = verdict.findings.into_iter();
    // The one message that lists the types has one more of them the long way.
    let message = |message: String| message.replace("Never, ", "");
    findings
        .map(|found| (found.rule.to_owned(), found.field, message(found.message), found.action))
        .collect()
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

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1500,
        rng_seed: RngSeed::Fixed(0x5747_6174),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_short_way_says_what_the_long_one_does(
        stored in lists(),
        changes in prop::collection::vec(change(), 0..3),
        phases in (select(vec!["a", "b"]), select(vec!["a", "b"])),
    ) {
        thread_local! {
            static BOTH: Vec<(PolicySet, PolicySet)> = ["[type]", "[a]", "[type, a]"]
                .map(|key| (policies(key, false), policies(key, true)))
                .into_iter()
                .collect();
        }
        let object = |phase: &str, list: &[Value]| {
            json!({"metadata": {"generation": 2}, "status": {"phase": phase, "conditions": list}})
                .to_string()
        };
        let old = object(phases.0, &stored);
        let new = object(phases.1, &changed(stored, &changes));
        BOTH.with(|both| {
            for (short, long) in both {
                prop_assert_eq!(said(short, &old, &new), said(long, &old, &new));
            }
            Ok(())
        })?;
    }
}
