//! Counts and logs decisions: who wrote what, never the content.

use std::fmt;

use jiff::Timestamp;
use opentelemetry::{KeyValue, StringValue, Value};

use super::policies::Snapshot;
use crate::telemetry::{Count, Counters, Decision, Metrics};
use statusgate_core::engine::{Action, Change, Finding, StatusWrite, Verdict};
use statusgate_core::model::{Subject, Webhook};
use statusgate_core::wire::AdmissionRequest;

/// Counts and logs a decision.
///
/// Decisions that changed, warned about or rejected a write are logged at `info`. Unchanged writes
/// are by far the most and logged at `debug`. The log omits the messages of findings, which quote
/// values of the object; rule ids identify them.
pub(super) fn decision(
    metrics: &Metrics,
    snapshot: &Snapshot,
    webhook: Webhook,
    request: &AdmissionRequest<'_>,
    verdict: &Verdict<'_>,
    now: Timestamp,
) {
    let counters = &snapshot.counters;
    if verdict.policies.is_empty() {
        metrics.of(webhook).unmatched.inc();
    }
    for &policy in &verdict.policies {
        let policy = usize::from(policy);
        let decision = of_policy(verdict, Some(policy));
        counters.decision(webhook, policy, decision).into_iter().for_each(Count::inc);
    }
    for finding in &verdict.findings {
        for (policy, action) in finding.reported_by() {
            let counter = counters.finding(policy.index(), finding.rule.index(), action);
            counter.into_iter().for_each(Count::inc);
        }
    }
    for (policy, change) in &verdict.changes {
        counters.change(policy.index(), *change).into_iter().for_each(Count::inc);
    }
    for (policy, cause) in &verdict.refused {
        let counter = counters.change(policy.index(), Change::Withheld);
        counter.into_iter().for_each(Count::inc);
        let (uid, field) = (&*request.uid, &*cause.field);
        tracing::debug!(
            policy = policy.as_str(),
            uid,
            field,
            "withheld a value that the schema rejects"
        );
    }
    if verdict.patch_failed {
        metrics.server.patch_failures.inc();
        tracing::error!(
            webhook = webhook.name(),
            uid = &*request.uid,
            group = &*request.subject.resource.group,
            resource = &*request.subject.resource.resource,
            "a patch did not apply on replay and was not sent: a bug in statusgate"
        );
    }
    if webhook == Webhook::Validate && !request.dry_run && !verdict.is_denied() {
        status_writes(snapshot, &request.subject, verdict, now);
    }
    log(counters, webhook, request, verdict);
}

fn status_writes(
    snapshot: &Snapshot,
    subject: &Subject<'_>,
    verdict: &Verdict<'_>,
    now: Timestamp,
) {
    for &index in &verdict.policies {
        let Some(policy) = snapshot.policies.get(index) else { continue };
        let Some(resource) = policy.resource_of(subject) else { continue };
        if let Some(write) = StatusWrite::of(policy, subject, now.as_second())
            && let Some(writes) = snapshot.counters.writes(usize::from(index), resource)
        {
            writes.count(&write);
        }
    }
}

fn log(
    counters: &Counters,
    webhook: Webhook,
    request: &AdmissionRequest<'_>,
    verdict: &Verdict<'_>,
) {
    let decision = of_policy(verdict, None);
    let Subject { resource, subresource, operation, writer, .. } = &request.subject;
    let policies = Joined(policies(counters, verdict));
    let rules = Joined(verdict.findings.iter().map(|finding| &**finding.rule));
    // A macro, because the level of an event is part of its call site.
    macro_rules! event {
        ($level:ident) => {
            tracing::$level!(
                webhook = webhook.name(),
                decision = decision.name(),
                uid = &*request.uid,
                group = &*resource.group,
                version = &*resource.version,
                resource = &*resource.resource,
                subresource = &**subresource,
                namespace = &*request.namespace,
                name = &*request.name,
                operation = operation.name(),
                user = &*writer.user,
                dry_run = request.dry_run,
                %policies,
                %rules,
                "decision"
            )
        };
    }
    if decision == Decision::Allowed { event!(debug) } else { event!(info) }
}

/// The attributes of the span of a review: the same as in the log, without the user.
pub(super) fn attributes(
    counters: &Counters,
    webhook: Webhook,
    request: &AdmissionRequest<'_>,
    verdict: &Verdict<'_>,
) -> Vec<KeyValue> {
    let Subject { resource, subresource, operation, .. } = &request.subject;
    let policies = policies(counters, verdict).map(|policy| policy.to_owned().into());
    let policies: Vec<StringValue> = policies.collect();
    let mut rules: Vec<StringValue> = Vec::new();
    for finding in &verdict.findings {
        if rules.len() < MAX_RULES && !rules.iter().any(|rule| rule.as_str() == &**finding.rule) {
            rules.push(finding.rule.to_string().into());
        }
    }
    vec![
        KeyValue::new("statusgate.webhook", webhook.name()),
        KeyValue::new("statusgate.decision", of_policy(verdict, None).name()),
        KeyValue::new("statusgate.policies", Value::Array(policies.into())),
        KeyValue::new("statusgate.rules", Value::Array(rules.into())),
        KeyValue::new("k8s.admission.uid", request.uid.to_string()),
        KeyValue::new("k8s.admission.operation", operation.name()),
        KeyValue::new("k8s.admission.dry_run", request.dry_run),
        KeyValue::new("k8s.resource.group", resource.group.to_string()),
        KeyValue::new("k8s.resource.version", resource.version.to_string()),
        KeyValue::new("k8s.resource.name", resource.resource.to_string()),
        KeyValue::new("k8s.resource.subresource", subresource.to_string()),
        KeyValue::new("k8s.namespace.name", request.namespace.to_string()),
        KeyValue::new("k8s.object.name", request.name.to_string()),
    ]
}

/// A status with thousands of elements can violate all rules of a convention; spans stay small.
const MAX_RULES: usize = 32;

/// The decision of one policy, or of all policies (`None`).
fn of_policy(verdict: &Verdict<'_>, policy: Option<usize>) -> Decision {
    let strongest = verdict
        .findings
        .iter()
        .flat_map(Finding::reported_by)
        .filter(|(reporter, _)| policy.is_none_or(|policy| reporter.index() == policy))
        .map(|(_, action)| match action {
            Action::Deny => Decision::Denied,
            Action::Repair => Decision::Patched,
            Action::Warn => Decision::Warned,
            Action::Audit => Decision::Allowed,
        })
        .max()
        .unwrap_or(Decision::Allowed);
    // A patch has no policy of its own: it counts for every policy that selects the object.
    if verdict.patch.is_some() { strongest.max(Decision::Patched) } else { strongest }
}

/// The names of the policies that select the object.
fn policies<'v>(
    counters: &'v Counters,
    verdict: &'v Verdict<'_>,
) -> impl Iterator<Item = &'v str> + Clone {
    verdict.policies.iter().filter_map(|&index| counters.policy(usize::from(index)))
}

/// Comma-separated names, formatted only if the event is logged.
struct Joined<I>(I);

impl<'n, I: Iterator<Item = &'n str> + Clone> fmt::Display for Joined<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, name) in self.0.clone().enumerate() {
            if position > 0 {
                f.write_str(",")?;
            }
            f.write_str(name)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use statusgate_core::engine::Cause;
    use statusgate_core::policy::Id;

    const STRICT: usize = 0;
    const LAX: usize = 1;

    fn policy(index: usize) -> &'static Id {
        Box::leak(Box::new(Id::new(format!("policy-{index}"), index)))
    }

    fn finding(index: usize, action: Action) -> Finding<'static> {
        let (policy, rule) = (policy(index), policy(0));
        let (field, message, cause) = (String::new(), String::new(), Cause::Invalid);
        Finding { policy, rule, field, cause, message, action, others: Vec::new() }
    }

    #[test]
    fn each_policy_has_its_decision_and_the_log_has_the_strongest() {
        let findings = vec![finding(STRICT, Action::Deny), finding(LAX, Action::Warn)];
        let verdict = Verdict { findings, ..Verdict::default() };
        assert_eq!(of_policy(&verdict, Some(STRICT)), Decision::Denied);
        assert_eq!(of_policy(&verdict, Some(LAX)), Decision::Warned);
        assert_eq!(of_policy(&verdict, Some(2)), Decision::Allowed);
        assert_eq!(of_policy(&verdict, None), Decision::Denied);
    }

    #[test]
    fn policies_with_the_same_finding_have_their_own_decisions() {
        let others = vec![(policy(LAX), Action::Warn)];
        let findings = vec![Finding { others, ..finding(STRICT, Action::Deny) }];
        let verdict = Verdict { findings, ..Verdict::default() };
        assert_eq!(of_policy(&verdict, Some(STRICT)), Decision::Denied);
        assert_eq!(of_policy(&verdict, Some(LAX)), Decision::Warned);
    }

    #[test]
    fn a_backfill_without_findings_counts_as_patched() {
        let verdict = Verdict { patch: Some(json_patch::Patch(Vec::new())), ..Verdict::default() };
        assert_eq!(of_policy(&verdict, Some(STRICT)), Decision::Patched);
    }
}
