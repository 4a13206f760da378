//! An audit as JSON: an object, and the counts.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::super::Target;
use super::{Audited, Findings, Row, State, Tally};
use statusgate_core::causes::with_causes;
use statusgate_core::engine::Action;
use statusgate_core::policy::PolicySet;

/// One object.
pub fn object(policies: &PolicySet, target: &Target, judged: &Audited<'_>) -> Value {
    let states = &judged.states;
    let judging = states.iter().filter_map(|state| policies.get(state.policy));
    let findings = states.iter().flat_map(|state| &state.findings);
    let passing = states.iter().flat_map(|state| &state.passing);
    let mut line = json!({
        "apiVersion": target.api_version(),
        "kind": target.kind,
        "name": judged.metadata.name,
        "uid": judged.metadata.uid,
        "policies": judging.map(|policy| policy.name.as_str()).collect::<Vec<_>>(),
        "worst": judged.worst(),
        "findings": findings.collect::<Vec<_>>(),
        "passing": passing.collect::<Vec<_>>(),
        "toBackfill": judged.backfill,
    });
    if !judged.metadata.namespace.is_empty() {
        line["namespace"] = judged.metadata.namespace.as_ref().into();
    }
    // `health`, `healthReason` and perhaps `retried`.
    if let Some(State { health, .. }) = states.first()
        && let (Value::Object(line), Value::Object(health)) = (&mut line, json!(health))
    {
        line.extend(health);
    }
    if let Some(phase) = states.iter().find_map(|state| state.phase.as_deref()) {
        line["phase"] = phase.into();
    }
    if let Some(since) = judged.since.and_then(|since| jiff::Timestamp::from_second(since).ok()) {
        line["since"] = since.to_string().into();
    }
    if let Some(reason) = &judged.broken {
        line["unjudged"] = reason.as_str().into();
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
        "worst": by_action(found),
        "toBackfill": backfill,
        "unjudged": broken.0,
        "failures": failures.collect::<Vec<_>>(),
        "kinds": tally.worst_first().into_iter().map(row).collect::<Vec<_>>(),
    }})
}

fn row(row: &Row) -> Value {
    let rules = row.rules.iter().map(|((rule, action), sums)| {
        json!({"rule": rule, "action": action, "objects": sums.objects,
            "findings": sums.findings})
    });
    let health = row.health.iter().map(|(health, (count, _))| (health.name(), *count));
    // Indexing adds missing members.
    let mut conditions = json!({});
    for ((kind, status), count) in &row.conditions {
        conditions[kind][status] = (*count).into();
    }
    json!({
        "policy": row.policy,
        "apiVersion": row.target.api_version(),
        "kind": row.target.kind,
        "resource": row.target.name(),
        "complete": row.complete,
        "objects": row.objects,
        "worst": by_action(&row.worst),
        "clean": row.clean(),
        "disagreements": row.disagreements,
        "passing": row.passing(),
        "toBackfill": row.backfill,
        "health": health.collect::<Value>(),
        "phases": row.phases,
        "conditions": conditions,
        "rules": rules.collect::<Vec<_>>(),
    })
}

fn by_action(counts: &BTreeMap<Action, u64>) -> Value {
    Action::WORST_FIRST.iter().map(|of| (of.label(), *counts.get(of).unwrap_or(&0))).collect()
}
