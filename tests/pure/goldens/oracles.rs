//! Recorded answers of apimachinery 1.36.2: the output of its Go code for the same inputs.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::{Value, json};
use statusgate_core::engine::Action;

use crate::support::{Outcome, Write, following};

const ANSWERS: &str = include_str!("../../fixtures/oracles/metav1.jsonl");

#[derive(Deserialize)]
#[serde(tag = "kind", deny_unknown_fields)]
enum Answer {
    #[serde(rename_all = "camelCase")]
    ValidateConditions {
        name: String,
        conditions: Value,
        #[serde(default)]
        bad_fields: BTreeSet<String>,
        /// Go cannot decode the list.
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
        /// Accepts more than Go can read back.
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

/// The recording abbreviates long texts as `{"$repeat": TEXT, "n": TIMES}`.
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

fn validated(old: Option<Value>, conditions: &Value) -> Outcome {
    let write = Write::of(old, json!({"conditions": conditions})).both("/metadata/generation", 5);
    write.validate(&following("metav1", ""))
}

fn denied(outcome: &Outcome) -> impl Iterator<Item = &str> {
    let denied = outcome.findings.iter().filter(|found| found.action == Action::Deny);
    denied.map(|found| found.field.as_str())
}

#[test]
fn the_denied_conditions_are_those_that_validate_conditions_rejects() {
    let mut judged = 0;
    for answer in answers() {
        let Answer::ValidateConditions { name, mut conditions, bad_fields, decode_error } = answer
        else {
            continue;
        };
        judged += 1;
        spell_out(&mut conditions);
        let outcome = validated(None, &conditions);
        if decode_error {
            assert_ne!(denied(&outcome).next(), None, "{name}: Go cannot decode this");
            continue;
        }
        let found: BTreeSet<String> =
            denied(&outcome).map(|field| field.trim_start_matches("status.").to_owned()).collect();
        assert_eq!(found, bad_fields, "{name}: {outcome:?}");
    }
    assert_eq!(judged, 41);
}

/// One of its writes gets a warning, as the page explains: its time goes backwards with the status.
#[test]
fn a_write_of_set_status_condition_is_never_denied() {
    let mut judged = 0;
    for answer in answers() {
        let Answer::SetStatusCondition { name, old, set, changed, result } = answer else {
            continue;
        };
        judged += 1;
        assert_eq!(old != result, changed, "{name}: the recording says what it did with {set}");
        let outcome = validated(Some(json!({"conditions": old})), &result);
        let expected = match name.as_str() {
            "status-change-supplied-older-ltt-goes-backwards" => {
                BTreeSet::from(["metav1/transition-time-backwards"])
            }
            _ => BTreeSet::new(),
        };
        assert_eq!(denied(&outcome).next(), None, "{name}: {outcome:?}");
        let rules: BTreeSet<&str> = outcome.rules().into_iter().map(|(_, rule)| rule).collect();
        assert_eq!(rules, expected, "{name}: {outcome:?}");
    }
    assert_eq!(judged, 5);
}

/// The API server accepts more times than Go can read back. Go reads the zero time as no time.
#[test]
fn a_time_is_accepted_if_go_can_read_it_back() {
    let mut judged = 0;
    for answer in answers() {
        let Answer::DateTime { s, go, reserialised, .. } = answer else { continue };
        judged += 1;
        let condition = json!({"type": "Ready", "status": "True", "reason": "Ok", "message": "",
            "lastTransitionTime": s});
        let outcome = validated(None, &json!([condition]));
        // The year 9999 is a valid time in the far future.
        let form = outcome.findings.iter().filter(|found| !found.rule.ends_with("-future"));
        assert_eq!(form.count() == 0, go && reserialised.is_some(), "{s}: {outcome:?}");
    }
    assert_eq!(judged, 14);
}
