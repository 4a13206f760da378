//! Random statuses in the words of a convention.

#![allow(dead_code, reason = "each test crate uses a part of it")]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Map, Value, json};
use statusgate_core::language::{AnyWord, Operand, Predicate};
use statusgate_core::model::{Pointer, parse_rfc3339};
use statusgate_core::policy::Disposition;
use statusgate_core::policy::convention::{ConditionList, Convention};

use crate::support::{EARLIER, T0};

/// JSON that no controller means to write.
fn hostile() -> impl Strategy<Value = Value> {
    let leaf = select(vec![
        Value::Null,
        json!(true),
        json!(0),
        json!(i64::MIN),
        json!(-0.0),
        json!(1.5),
        json!(""),
        json!("True"),
        json!("Ready"),
        json!(T0),
        json!("ä\u{0}\n\t'\" # : -"),
        json!("\u{10fffd}a/b~c"),
        json!([]),
        json!({}),
    ]);
    leaf.prop_recursive(3, 12, 4, |inner| {
        let names = select(vec!["type", "status", "a/b", "m~n", "", "0"]);
        let members = prop::collection::vec((names, inner.clone()), 0..4);
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(Value::from),
            members.prop_map(|members| {
                let members = members.into_iter();
                members.map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>().into()
            }),
        ]
    })
}

/// Mostly a valid value; sometimes absent or hostile.
fn mostly(
    valid: impl Strategy<Value = Value> + 'static,
) -> impl Strategy<Value = Option<Value>> + Clone {
    let valid = valid.boxed();
    prop_oneof![16 => valid.prop_map(Some), 4 => Just(None), 1 => hostile().prop_map(Some)].boxed()
}

fn words<T: AsRef<str>>(words: impl IntoIterator<Item = T>) -> BoxedStrategy<Value> {
    let words: Vec<Value> = words.into_iter().map(|word| word.as_ref().into()).collect();
    select(words).boxed()
}

fn times() -> BoxedStrategy<Value> {
    words([EARLIER, T0, T0, T0, "2999-01-01T00:00:00Z", "yesterday", "2024-06-01T11:00:00.5Z"])
}

/// The members with times that `steady-times` restores.
const STEADY: [&str; 4] =
    ["lastHeartbeatTime", "lastProbeTime", "lastTransitionTime", "lastUpdateTime"];

/// The same status with another text for all of its times.
pub(crate) fn with_times(status: &Value, time: &str) -> Value {
    match status {
        Value::Array(items) => items.iter().map(|item| with_times(item, time)).collect(),
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| {
                let is_time = STEADY.contains(&name.as_str())
                    && value.as_str().and_then(parse_rfc3339).is_some();
                (name.clone(), if is_time { time.into() } else { with_times(value, time) })
            };
            members.iter().map(member).collect::<Map<_, _>>().into()
        }
        other => other.clone(),
    }
}

/// The parts of a spec that some convention reads.
pub(crate) fn specs() -> impl Strategy<Value = Option<Value>> {
    select(vec![
        None,
        Some(json!({"clusterOperation": {"stopped": true, "reconciliationPaused": false}})),
        Some(json!({"clusterConfig": {"clusterOperation": {"reconciliationPaused": true}}})),
        Some(
            json!({"readinessGates": [{"conditionType": "Custom", "polarity": "Negative"}, {}, 5]}),
        ),
        Some(json!({"availabilityGates": [{"conditionType": "Ready"}]})),
    ])
}

/// A stored status and a new one: unrelated, or equal except for one member, as in most writes.
pub(crate) fn pairs(
    convention: &'static Convention,
) -> impl Strategy<Value = (Option<Value>, Option<Value>)> {
    let whole = || mostly(statuses(convention));
    prop_oneof![
        1 => (whole(), whole()),
        4 => (statuses(convention), statuses(convention), any::<Index>()).prop_map(
            |(old, other, at)| {
                let mut new = old.clone();
                let names: BTreeSet<&String> = [&old, &other]
                    .into_iter()
                    .flat_map(|status| status.as_object().unwrap().keys())
                    .collect();
                if !names.is_empty() {
                    let name = *at.get(&names.iter().copied().collect::<Vec<_>>());
                    match other.get(name) {
                        Some(value) => new[name] = value.clone(),
                        None => drop(new.as_object_mut().unwrap().remove(name)),
                    }
                }
                (Some(old), Some(new))
            }
        ),
    ]
}

/// A status that is an object.
pub(crate) fn statuses(convention: &'static Convention) -> BoxedStrategy<Value> {
    let mut parts: Vec<(Vec<String>, BoxedStrategy<Option<Value>>)> = Vec::new();
    let mut part = |path: &Pointer, value| parts.push((path.tokens()[1..].to_vec(), value));
    for list in &convention.conditions {
        let element = prop_oneof![20 => elements(list, convention), 1 => hostile()];
        let elements = prop::collection::vec(element, 0..7).prop_map(Value::from);
        part(&list.path, mostly(elements).boxed());
    }
    if let Some(phase) = &convention.phase {
        part(&phase.path, mostly(words(phases(convention))).boxed());
        for other in &phase.other_paths {
            let value = prop_oneof![4 => Just(None), 1 => words(phases(convention)).prop_map(Some)];
            part(other, value.boxed());
        }
        if let Some(time) = &phase.transition_time {
            part(&time.path, mostly(times()).boxed());
        }
        if let Some(reason) = &phase.reason {
            part(&reason.path, mostly(reasons(convention)).boxed());
        }
    }
    for path in convention.generation.iter().flat_map(|rules| rules.paths.iter().flatten()) {
        part(path, mostly(select(vec![-1, 1, 2, 3, 9]).prop_map(Value::from)).boxed());
    }
    let billing = select(vec![
        Value::Null,
        json!({"unit": "GiB"}),
        json!({"unit": "minutes"}),
        json!({"unit": "gib"}),
    ]);
    for (path, value) in [
        ("/status/billing", billing.boxed()),
        ("/status/lastUpdateTime", times()),
        ("/status/version/version", words(["1.0.0", "2.0.0"])),
        ("/status/instanceNamespace", words(["vshn-x", "vshn-x", ""])),
        ("/status/initialization/provisioned", any::<bool>().prop_map(Value::from).boxed()),
    ] {
        let value = prop_oneof![1 => Just(None), 1 => mostly(value)];
        part(&path.parse().unwrap(), value.boxed());
    }
    let (paths, values): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
    values
        .prop_map(move |values| {
            let mut status = json!({});
            for (path, value) in paths.iter().zip(values) {
                if let Some(value) = value {
                    put(&mut status, path, value);
                }
            }
            status
        })
        .boxed()
}

/// Sets a value and creates its parents. A parent that is not an object is replaced.
pub(crate) fn put(status: &mut Value, path: &[String], value: Value) {
    match path {
        [] => *status = value,
        [name, rest @ ..] => {
            if !status.is_object() {
                *status = json!({});
            }
            put(&mut status[name.as_str()], rest, value);
        }
    }
}

fn phases(convention: &Convention) -> Vec<&str> {
    let phases = convention.phase.iter().flat_map(|rules| &rules.phases);
    phases.map(|phase| phase.name.as_str()).chain(["", "ready"]).collect()
}

fn reasons(convention: &Convention) -> BoxedStrategy<Value> {
    let types = convention.conditions.iter().flat_map(|list| list.types.values());
    let rows = types.filter_map(|kind| kind.reasons.as_ref()).flat_map(|reasons| reasons.all());
    let phases = convention.phase.iter().flat_map(|rules| &rules.phases);
    let phases = phases.flat_map(|phase| phase.reasons.iter()).map(String::as_str);
    words(rows.chain(phases).chain(["Because", "Because", "", "two words", "ACK.Terminal"]))
}

/// An element with members that the list knows.
fn elements(list: &'static ConditionList, convention: &Convention) -> BoxedStrategy<Value> {
    let types = list.types.values().map(|kind| kind.name.replace('*', "Node"));
    // Types that other rules read are more frequent: two of thirty rarely meet in one list.
    let in_rules = conditions_in_rules(convention);
    let types = types.chain(in_rules.iter().cycle().take(4 * in_rules.len()).cloned());
    let types: Vec<String> = types.chain(["Custom".to_owned()]).collect();
    let value = |member: &str| match member {
        "type" => words(&types),
        "status" => words(["True", "True", "True", "False", "False", "Unknown", "true"]),
        "severity" => words(["", "Info", "Warning", "Error", "Fatal"]),
        "reason" => reasons(convention),
        "phase" => words(phases(convention)),
        "observedGeneration" => select(vec![0, 1, 2, 3, 9]).prop_map(Value::from).boxed(),
        time if time.ends_with("Time") => times(),
        _ => words(["", "m", "n"]),
    };
    let often = |member: &str| matches!(member, "type" | "status" | "reason" | "phase");
    let members = list.members.iter().map(|(member, _)| {
        let value = if often(member) {
            mostly(value(member)).boxed()
        } else {
            prop_oneof![1 => Just(None), 1 => mostly(value(member))].boxed()
        };
        value.prop_map(|value| (member.clone(), value)).boxed()
    });
    let members: Vec<_> = members.collect();
    members
        .prop_map(|members| {
            let members = members.into_iter();
            members.filter_map(|(name, value)| Some((name, value?))).collect::<Map<_, _>>().into()
        })
        .boxed()
}

fn conditions_in_rules(convention: &Convention) -> Vec<String> {
    let phases = convention.phase.iter().flat_map(|rules| &rules.phases);
    let evidence = phases.filter_map(|phase| phase.necessary.as_ref());
    let rules = convention.rules.iter().filter(|rule| rule.action == Disposition::Disagreement);
    let words = evidence.chain(rules.map(|rule| &rule.when)).flat_map(Predicate::questions);
    let kinds = words.flat_map(|word| match word {
        AnyWord::Condition(word) => vec![word.of.kind()],
        AnyWord::Value(value) => value.operands().filter_map(Operand::condition).collect(),
        AnyWord::Elapsed(word) => word.since.condition().into_iter().collect(),
        _ => Vec::new(),
    });
    kinds.map(str::to_owned).collect()
}
