//! What apimachinery 1.36.2 answered to the same questions, recorded by running its Go code.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::{Value, json};
use statusgate::engine::Action;
use statusgate::policy::PolicySet;

use super::judging::{Outcome, Write, policy};

const ANSWERS: &str = include_str!("../fixtures/oracles/metav1.jsonl");

#[derive(Deserialize)]
#[serde(tag = "kind", deny_unknown_fields)]
enum Answer {
    #[serde(rename_all = "camelCase")]
    ValidateConditions {
        name: String,
        conditions: Value,
        #[serde(default)]
        bad_fields: BTreeSet<String>,
        /// Where Go cannot even read the list.
        #[serde(default)]
        decode_error: bool,
    },
    SetStatusCondition {
        name: String,
        old: Value,
        set: Value,
        changed: bool,
        result: Value,
    },
    #[serde(rename = "date-time", rename_all = "camelCase")]
    DateTime {
        s: String,
        /// Laxer than what Go can read back: not followed.
        #[serde(rename = "openapi")]
        _openapi: bool,
        #[serde(rename = "goRFC3339")]
        go: bool,
        reserialised: Option<String>,
    },
}

fn answers() -> Vec<Answer> {
    ANSWERS.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The recording writes long texts as `{"$repeat": TEXT, "n": TIMES}`.
fn spell_out(value: &mut Value) {
    match value {
        Value::Object(members) => {
            if let Some(text) = members.get("$repeat").and_then(Value::as_str) {
                let times = members.get("n").and_then(Value::as_u64).unwrap();
                *value = text.repeat(usize::try_from(times).unwrap()).into();
            } else {
                members.values_mut().for_each(spell_out);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(spell_out),
        _ => {}
    }
}

fn judge(metav1: &PolicySet, old: Value, new: Value) -> Outcome {
    let (version, plural) = ("v1".to_owned(), "things".to_owned());
    let (metadata, spec) = (Value::Null, Value::Null);
    Write { version, plural, generation: 5, metadata, spec, old, new }.validated(metav1)
}

fn denied(outcome: &Outcome) -> impl Iterator<Item = &str> {
    let denied = outcome.findings.iter().filter(|(action, ..)| *action == Action::Deny);
    denied.map(|(_, _, field)| field.as_str())
}

#[test]
fn bad_conditions_are_those_that_validate_conditions_finds_bad() {
    let metav1 = policy("metav1", "", &[]);
    let mut judged = 0;
    for answer in answers() {
        let Answer::ValidateConditions { name, mut conditions, bad_fields, decode_error } = answer
        else {
            continue;
        };
        judged += 1;
        spell_out(&mut conditions);
        let outcome = judge(&metav1, Value::Null, json!({"conditions": conditions}));
        if decode_error {
            assert_ne!(denied(&outcome).next(), None, "{name}: nobody can read this");
            continue;
        }
        let found: BTreeSet<String> =
            denied(&outcome).map(|field| field.trim_start_matches("status.").to_owned()).collect();
        assert_eq!(found, bad_fields, "{name}: {outcome:?}");
    }
    assert_eq!(judged, 41);
}

/// Nothing that apimachinery's own helper writes is refused. Two of its writes are warned of, as the
/// page says: a time that goes back with the status, and what lies before it.
#[test]
fn what_set_status_condition_writes_is_never_refused() {
    let metav1 = policy("metav1", "", &[]);
    let mut judged = 0;
    for answer in answers() {
        let Answer::SetStatusCondition { name, old, set, changed, result } = answer else {
            continue;
        };
        judged += 1;
        assert_eq!(old != result, changed, "{name}: the recording says what it did with {set}");
        let outcome = judge(&metav1, json!({"conditions": old}), json!({"conditions": result}));
        let expected = match name.as_str() {
            "status-change-supplied-older-ltt-goes-backwards" => {
                BTreeSet::from(["metav1/transition-time-backwards"])
            }
            _ => BTreeSet::new(),
        };
        assert_eq!(denied(&outcome).next(), None, "{name}: {outcome:?}");
        assert_eq!(outcome.rules(), expected, "{name}: {outcome:?}");
    }
    assert_eq!(judged, 5);
}

/// Of times we take what Go reads back, not all that the API server lets through. The zero time is
/// read, but means none.
#[test]
fn times_are_those_that_go_can_read_back() {
    let metav1 = policy("metav1", "", &[]);
    let mut judged = 0;
    for answer in answers() {
        let Answer::DateTime { s, go, reserialised, .. } = answer else { continue };
        judged += 1;
        let condition = json!({"type": "Ready", "status": "True", "reason": "Ok", "message": "",
            "lastTransitionTime": s});
        let outcome = judge(&metav1, Value::Null, json!({"conditions": [condition]}));
        // The year 9999 is a time, and far from now.
        let form = outcome.findings.iter().filter(|(_, rule, _)| !rule.ends_with("-future"));
        assert_eq!(form.count() == 0, go && reserialised.is_some(), "{s}: {outcome:?}");
    }
    assert_eq!(judged, 14);
}
