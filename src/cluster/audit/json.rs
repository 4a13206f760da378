//! An audit as JSON: an object, and the counts.

use serde_json::{Map, Value, json};

use super::super::Target;
use super::{Findings, Judged, Row, State, Tally};
use crate::telemetry::with_causes;
use statusgate_core::engine::{Action, Health};
use statusgate_core::policy::PolicySet;

/// One object.
pub fn object(policies: &PolicySet, target: &Target, judged: &Judged<'_>) -> Value {
    let states = &judged.states;
    let name = |state: &State<'_>| Some(policies.get(state.policy)?.name.as_str());
    let names: Vec<&str> = states.iter().filter_map(name).collect();
    let findings = states.iter().flat_map(|state| &state.findings);
    let passing = states.iter().flat_map(|state| &state.passing);
    let mut line = json!({
        "apiVersion": target.api_version(),
        "kind": target.kind,
        "name": judged.metadata.name,
        "uid": judged.metadata.uid,
        "policies": names,
        "worst": judged.worst(),
        "findings": findings.collect::<Vec<_>>(),
        "passing": passing.collect::<Vec<_>>(),
        "toFillIn": judged.backfill,
    });
    if !judged.metadata.namespace.is_empty() {
        line["namespace"] = judged.metadata.namespace.as_ref().into();
    }
    if let Some(state) = states.first() {
        line.as_object_mut().into_iter().for_each(|line| line.extend(members(&state.health)));
    }
    if let Some(phase) = states.iter().find_map(|state| state.phase.as_deref()) {
        line["phase"] = phase.into();
    }
    if let Some(since) = judged.since.and_then(|since| jiff::Timestamp::from_second(since).ok()) {
        line["since"] = since.to_string().into();
    }
    if let Some(reason) = &judged.broken {
        line["error"] = reason.as_str().into();
    }
    line
}

/// The counts.
pub fn summary(findings: &Findings) -> Value {
    let Findings { tally, failures, .. } = findings;
    let Tally { objects, found, backfill, broken, .. } = tally;
    let failures = failures.iter().map(|failure| Value::from(with_causes(failure)));
    json!({"summary": {
        "objects": objects,
        "worst": by_action(|action| found.get(&action).copied().unwrap_or_default()),
        "toFillIn": backfill,
        "unjudged": broken.0,
        "failures": failures.collect::<Vec<_>>(),
        "kinds": tally.worst_first().into_iter().map(row).collect::<Vec<_>>(),
    }})
}

/// The members `health`, `healthReason` and perhaps `retried`.
fn members(health: &Health) -> Map<String, Value> {
    json!(health).as_object().cloned().unwrap_or_default()
}

fn row(row: &Row) -> Value {
    let rules = row.rules.iter().map(|((rule, action), sums)| {
        json!({"rule": rule, "action": action, "objects": sums.objects,
            "findings": sums.findings})
    });
    let mut conditions = Map::new();
    for ((kind, status), count) in &row.conditions {
        let of_kind = conditions.entry(kind.clone()).or_insert_with(|| json!({}));
        of_kind[*status] = (*count).into();
    }
    json!({
        "policy": row.policy,
        "apiVersion": row.target.api_version(),
        "kind": row.target.kind,
        "resource": row.target.name(),
        "complete": row.complete,
        "objects": row.objects,
        "worst": by_action(|action| row.worst(action)),
        "clean": row.clean(),
        "disagreements": row.disagreements,
        "passing": row.passing(),
        "toFillIn": row.backfill,
        "health": row.health.iter().map(|(health, (count, _))| (health.name().to_owned(), Value::from(*count))).collect::<Value>(),
        "phases": row.phases,
        "conditions": conditions,
        "rules": rules.collect::<Vec<_>>(),
    })
}

fn by_action(count: impl Fn(Action) -> u64) -> Value {
    Action::WORST_FIRST
        .map(|action| (action.label().to_owned(), Value::from(count(action))))
        .into_iter()
        .collect()
}
