//! The validating webhook: finds the violations of a write and what happens about them.

use std::collections::HashMap;

use crate::model::{Json, Object, Operation, Pointer, Subject, in_status, too_many};
use crate::policy::convention::{PhaseRules, Rule, Trigger, Watch, Watched};
use crate::policy::{Action, CelRule, Disposition, Id, Policy, Selected};

use super::because::explained;
use super::conditions::{self, Circumstances, Generations, same};
use super::evidence::{Facts, Truth, facts_of, phase_of, phase_path};
use super::owners::Part;
use super::violation::{Sink, StoredViolations, Violation};
use super::{Cause, Finding, cel, fields, phase};

/// The maximum number of findings of one rule with one action: a list of ten thousand invalid conditions
/// is one mistake. A response has at most 32 causes, so the limit does not change it.
const MAX_OF_A_RULE: usize = 100;

/// Judges a subject by one of the policies that select it.
pub(super) fn judge<'p, 'a>(
    policy: &'p Policy,
    selected: &Selected<'p>,
    subject: &Subject<'a>,
    now: i64,
    budgets: &Budgets,
    findings: &mut Vec<Finding<'p>>,
) {
    let (object, old) = (&subject.object, subject.old.as_ref());
    // A write that does not change the status is never rejected because of the stored status.
    if subject.has_no_status() || old.is_some_and(|old| old.status == object.status) {
        return;
    }
    // If the status is part of the main resource, the write may be the one that removes the finalizer.
    // Its rejection would block the deletion.
    let may_finalize = object.is_deleting() && subject.subresource.is_empty();
    let ceiling = if may_finalize { Action::Warn } else { Action::Deny }.min(policy.enforcement);
    // A stored status that is too large to be read counts as none for everything but its size.
    let stored = old.filter(|old| old.written_status().is_some() || old.has_large_status());
    let old = old.filter(|old| !old.has_large_status());
    let judging = Judging { policy, selected, subject, now, budgets };
    let first = findings.len();
    let mut ratchet = Ratchet {
        judging,
        ceiling,
        default_phase_field: judging.default_phase_field(),
        // Without a written stored status, this write introduces every violation.
        unjudged: stored,
        stored: None,
        findings: Findings { policy, findings: &mut *findings, counts: HashMap::new() },
    };
    judging.judge(object, old, &mut ratchet);
    ratchet.findings.finish();
    // The writer is not responsible for a status that only the mutating webhook changed.
    if findings.len() > first && judging.only_webhook_changed_status(false) {
        findings.truncate(first);
    }
}

/// Keeps the violations that the write introduced.
struct Ratchet<'p, 's, 'a, 'f> {
    judging: Judging<'p, 's, 'a>,
    ceiling: Action,
    /// The field of the phase, if the phase is the default. Every object can get the default phase, even
    /// if a local rule denies it.
    default_phase_field: Option<&'p str>,
    /// The stored object until it is judged. A write without violations does not need it.
    unjudged: Option<&'s Object<'a>>,
    stored: Option<StoredViolations>,
    findings: Findings<'p, 'f>,
}

impl<'p> Sink<'p> for Ratchet<'p, '_, '_, '_> {
    fn push(&mut self, violation: Violation<'p>) {
        if let Some(object) = self.unjudged.filter(|_| violation.ratcheted) {
            let mut stored = StoredViolations::default();
            self.judging.judge(object, None, &mut stored);
            (self.stored, self.unjudged) = (Some(stored), None);
        }
        let is_stored = self.stored.as_ref().is_some_and(|stored| stored.excuses(&violation));
        let action = match violation.action.action(self.judging.disagreement()) {
            _ if is_stored && !violation.is_limit => return,
            action if is_stored => action.min(Action::Warn),
            action => action,
        };
        let is_default_phase = self.default_phase_field == Some(violation.field.as_str());
        let ceiling = if is_default_phase { Action::Warn } else { Action::Deny };
        self.findings.push(violation, action.min(self.ceiling).min(ceiling));
    }
}

/// The findings of one policy, with a maximum number for each rule and action.
struct Findings<'p, 'f> {
    policy: &'p Policy,
    findings: &'f mut Vec<Finding<'p>>,
    /// The number of violations by rule and action. No allocation before the first violation.
    counts: HashMap<(&'p Id, Action), usize>,
}

impl<'p> Findings<'p, '_> {
    fn push(&mut self, violation: Violation<'p>, action: Action) {
        let count = self.counts.entry((violation.rule, action)).or_default();
        *count += 1;
        if *count <= MAX_OF_A_RULE {
            let Violation { rule, field, cause, message, .. } = violation;
            let (policy, others) = (&self.policy.name, Vec::new());
            self.findings.push(Finding { policy, rule, field, cause, message, action, others });
        }
    }

    /// Reports how many were left out. This is never part of a denial, which has a hundred causes before
    /// this one: the text of a denial must not contain a number that changes.
    fn finish(mut self) {
        let mut more: Vec<_> =
            self.counts.drain().filter(|(_, count)| *count > MAX_OF_A_RULE).collect();
        more.sort_unstable_by_key(|((rule, action), _)| (rule.as_str(), *action));
        for ((rule, action), count) in more {
            let message = format!("{} more of these are left out", count - MAX_OF_A_RULE);
            let (policy, field, others) = (&self.policy.name, "status".to_owned(), Vec::new());
            let cause = Cause::Invalid;
            self.findings.push(Finding { policy, rule, field, cause, message, action, others });
        }
    }
}

/// The input of a judgement. The judged object is the written or the stored one.
#[derive(Clone, Copy)]
pub(super) struct Judging<'p, 's, 'a> {
    pub(super) policy: &'p Policy,
    /// All policies that select the object: the mutating webhook applies all of them.
    pub(super) selected: &'s Selected<'p>,
    pub(super) subject: &'s Subject<'a>,
    pub(super) now: i64,
    budgets: &'s Budgets,
}

/// What the CEL rules of all policies may cost in one review: for the written and for the stored object.
#[derive(Debug, Default)]
pub(super) struct Budgets {
    written: cel::Budget,
    stored: cel::Budget,
}

impl<'p, 'a> Judging<'p, '_, 'a> {
    /// The field of the phase, if the phase is the default.
    fn default_phase_field(&self) -> Option<&'p str> {
        let owner = self.selected.owner()?;
        let (rules, object) = (owner.convention.phase.as_ref()?, &self.subject.object);
        let default = rules.default.as_deref()?;
        let is_default = phase_of(&owner.convention, object) == Some(default);
        is_default.then(|| phase_path(rules, object).field())
    }

    fn judge(&self, object: &Object<'a>, old: Option<&Object<'a>>, violations: &mut dyn Sink<'p>) {
        let convention = &*self.policy.convention;
        if let Some(status) = &object.status
            && !matches!(status, Json::Null | Json::Object(_))
        {
            let found = |message: String| {
                Violation::new(&convention.status_rule, Disposition::Deny, "status", message)
            };
            violations.push(match status {
                Json::Large(text) => found(too_many(text)).cause(Cause::TooLong).limit(),
                other => {
                    let message = format!("must be an object, it is {}", other.kind());
                    found(message).cause(Cause::TypeInvalid)
                }
            });
            return;
        }
        let resource = &self.subject.resource;
        let facts = facts_of(convention, object, old, resource);
        let facts = Facts { now: Some(self.now), ..facts };
        let generations = convention.generation.as_ref();
        let generations = generations.and_then(|rules| Generations::new(rules, object, old));
        let circumstances = Circumstances {
            facts: &facts,
            generations: generations.as_ref(),
            backfill: &self.policy.backfill,
            now: self.now,
        };
        for list in convention.lists(&resource.version) {
            conditions::judge(list, circumstances, violations);
        }
        // A new object has no status and so no missing fields.
        let fields = convention.fields.iter().chain(&self.policy.fields);
        for field in fields.filter(|_| object.status_object().is_some()) {
            let (check, value) = (&field.check, object.at_status(&field.path));
            if let Some((cause, message)) = fields::violation(check, value) {
                let found =
                    Violation::new(&check.rule, check.action(), field.path.field(), message);
                violations.push(found.cause(cause).of_value(value));
            }
        }
        let phase = convention.phase.as_ref().filter(|_| self.selected.owns(self.policy));
        if let Some(rules) = phase {
            let mut found = Vec::new();
            let repairs = self.policy.disagreement_of(&self.subject.writer) == Action::Repair;
            phase::judge(rules, &facts, repairs, &mut found);
            // The writer is not responsible for a phase that the mutating webhook set, and not for the phase
            // that a backfill repaired. Owners of the phase still are asked.
            if !found.is_empty()
                && !self.webhook_set_phase(rules, &facts)
                && !self.only_webhook_changed_status(true)
            {
                found.into_iter().for_each(|violation| violations.push(violation));
            }
        }
        if let Some(generations) = &generations {
            generations.judge_object(&facts, violations);
        }
        // The rules of one list are adjacent: the facts are made for the first of them.
        let mut of_list: Option<(&Pointer, Facts<'_, '_>)> = None;
        for rule in &convention.rules {
            let facts = match (rule.list.as_deref(), of_list) {
                (None, _) => facts,
                (Some(path), Some((known, facts))) if known == path => facts,
                (Some(path), _) => {
                    let list = convention.list_at(path, &resource.version);
                    let facts = list.map_or(facts, |list| facts.reading(list.for_predicates()));
                    of_list.insert((path, facts)).1
                }
            };
            judge_rule(rule, &facts, violations);
        }
        // Not of the stored object alone: each rule compares it with the written one.
        let is_written = std::ptr::eq(object, &self.subject.object);
        for rule in self.policy.rules.iter().filter(|_| is_written) {
            self.judge_cel(rule, &facts, violations);
        }
        // A creation has an owner of each field, but files and stored objects have no writer.
        let Subject { operation, writer, .. } = self.subject;
        if old.is_some() || *operation == Operation::Create && !writer.user.is_empty() {
            self.judge_owners(&facts, violations);
        }
    }

    /// Whether the phase differs from the stored one, and would be the same if the writer had not changed
    /// it.
    fn webhook_set_phase(&self, rules: &PhaseRules, facts: &Facts<'_, 'a>) -> bool {
        let path = phase_path(rules, facts.object);
        let written = facts.object.at_status(path);
        let changed = facts.old.is_some_and(|old| !same(written, old.at_status(path)));
        let mutated = if changed { self.mutated_without([Part::Field(path)]) } else { None };
        mutated.is_some_and(|status| same(written, in_status(Some(&status), path)))
    }

    /// Judges a CEL rule of the policy. As in Kubernetes' own validation rules, it does not apply without a
    /// status, and a rule with `oldSelf` does not apply without a stored object.
    fn judge_cel(&self, rule: &'p CelRule, facts: &Facts<'_, 'a>, violations: &mut dyn Sink<'p>) {
        let (object, old) = (facts.object, facts.old);
        let names_old = rule.expression.reads.stored.is_some();
        if object.status_object().is_none()
            || names_old && old.is_none()
            || !triggered(&rule.trigger, facts)
        {
            return;
        }
        let writer = &self.subject.writer;
        let holds = |object, old, budget| cel::holds(&rule.expression, object, old, writer, budget);
        // The ratchet evaluates only what the written object violates. A rule that names `oldSelf` gets the
        // stored object as its own old object, to see whether the rule can be evaluated. The answer false
        // does not count: the rule is about a change.
        let before = || {
            let stored = old.filter(|old| old.written_status().is_some())?;
            Some(holds(stored, Some(stored), &self.budgets.stored))
        };
        // Every object can get the default phase, and the writer does not choose Deleting.
        let phase = self.policy.convention.phase.as_ref();
        let default = phase.and_then(|rules| rules.default.as_deref());
        let is_default = default.is_some() && facts.phase == default;
        let mut is_mild = rule.sees_the_phase && (is_default || facts.deleting());
        let message = match holds(object, old, &self.budgets.written) {
            Ok(true) => return,
            Ok(false) => {
                let may_excuse = rule.trigger.is_introduced() && !names_old;
                if may_excuse && before() == Some(Ok(false)) {
                    return;
                }
                rule.message.clone()
            }
            Err(unknown) => {
                // An evaluation error that the stored object also has never rejects, for any trigger: if a
                // member of `oldSelf` is missing, no write could repair it.
                let is_stored = matches!(before(), Some(Err(_)));
                if is_stored && !unknown.is_limit {
                    return;
                }
                is_mild |= is_stored;
                format!("rule {} cannot be evaluated: {unknown}", rule.name)
            }
        };
        let is_softened = is_mild && rule.action == Disposition::Deny;
        let action = if is_softened { Disposition::Warn } else { rule.action };
        let found = Violation::new(&rule.id, action, rule.path.field(), message);
        violations.push(found.transition());
    }

    /// The action for a disagreement of this writer. Only the mutating webhook repairs; if it is not
    /// registered, the validating webhook warns. While an object is deleted, only Crossplane writes
    /// conditions, and no controller updates the phase.
    fn disagreement(&self) -> Action {
        let action = self.policy.disagreement_of(&self.subject.writer);
        match action {
            Action::Repair => Action::Warn,
            action if self.subject.object.is_deleting() => action.min(Action::Warn),
            action => action,
        }
    }
}

fn judge_rule<'p>(rule: &'p Rule, facts: &Facts<'_, '_>, violations: &mut dyn Sink<'p>) {
    if facts.ask(&rule.when) == Truth::True
        && rule.trigger.as_ref().is_none_or(|trigger| triggered(trigger, facts))
    {
        let message = explained(&rule.message, &rule.when, facts);
        let found = Violation::new(&rule.rule, rule.action, rule.field(), message);
        let ratcheted = rule.trigger.as_ref().is_none_or(Trigger::is_introduced);
        violations.push(Violation { ratcheted, ..found });
    }
}

/// Whether a rule applies to this write. `facts` are those of the rule's list of conditions.
fn triggered(trigger: &Trigger, facts: &Facts<'_, '_>) -> bool {
    let changed = |watched: &Watched| match (watched, facts.old) {
        (_, None) => true,
        (Watched::Field(path), Some(old)) => {
            !same(facts.object.at_status(path), old.at_status(path))
        }
        // Only its status: a new message or a default is not a change of the condition.
        (Watched::Condition(kind), Some(_)) => {
            let status = facts.conditions.find(kind).and_then(|found| found.get("status"));
            status != facts.old_conditions.and_then(|list| list.find(kind)?.get("status"))
        }
    };
    match trigger {
        Trigger::Watch(Watch { moved: Some(watched), .. }) => watched.iter().any(changed),
        Trigger::Watch(Watch { co_written: Some(watched), .. }) => {
            facts.old.is_none_or(|old| old.written_status().is_none())
                || watched.iter().all(changed)
        }
        _ => true,
    }
}
