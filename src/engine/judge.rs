//! The validating half: everything that is wrong with a write, and what happens about it.

use std::collections::HashMap;

use crate::model::{Json, Object, Operation, Pointer, Subject, in_status};
use crate::policy::convention::{PhaseRules, Rule, Trigger, Watched};
use crate::policy::{Action, CelRule, Disposition, Id, Owner, Policy, Selected};

use super::because::quoted;
use super::conditions::{self, Circumstances, Generations, same};
use super::evidence::{Facts, Truth, phase_of, phase_path};
use super::ours::Ours;
use super::ratchet::{Sink, Stored, Violation};
use super::{Cause, Finding, cel, fields, phase};

/// Findings of one rule with one action that are told one by one. A list of ten thousand bad
/// conditions is one mistake made ten thousand times. An answer carries 32 causes: they are the same
/// with and without this limit.
const MAX_OF_A_RULE: usize = 100;

/// Judges a subject by one policy of those that select it.
pub(super) fn judge<'p, 'a>(
    policy: &'p Policy,
    selected: &Selected<'p>,
    subject: &Subject<'a>,
    now: i64,
    findings: &mut Vec<Finding<'p>>,
) {
    let (object, old) = (&subject.object, subject.old.as_ref());
    // A write that does not change status is never rejected because of the stored status.
    let nobodys = || object.has_no_status() && old.is_none_or(Object::has_no_status);
    if old.is_some_and(|old| old.status == object.status) || nobodys() {
        return;
    }
    // Of a stored status that cannot be read nothing is known: this is as good as the first write.
    let old = old.filter(|old| !old.has_large_status());
    // An object on its way out is not worth a refusal: where status travels with the main
    // resource, the refused write may be the one that removes the finalizer.
    let leaving = object.is_deleting() && subject.subresource.is_empty();
    let ceiling = if leaving { Action::Warn } else { Action::Deny }.min(policy.enforcement);
    let ours = Ours { policy, selected, subject, now };
    let judging = Judging { policy, subject, old, ours, now };
    let first = findings.len();
    let mut introduced = Introduced {
        judging,
        ceiling,
        way_out: judging.way_out(),
        // What a rule misses in a status that nobody had written, this write has left out.
        stored: old.filter(|old| old.written_status().is_some()),
        known: None,
        kept: Kept { policy, first, findings: &mut *findings, counts: HashMap::new() },
    };
    judging.judge(object, old, &mut introduced);
    introduced.kept.finish();
    // A status that the mutating webhook alone made of the stored one is nobody's fault.
    if findings.len() > first && ours.is_all() {
        findings.truncate(first);
    }
}

/// Keeps the violations that the write introduced.
struct Introduced<'p, 's, 'a, 'f> {
    judging: Judging<'p, 's, 'a>,
    ceiling: Action,
    /// The field of the phase, where it is the default one: a way out of every state, which no local rule
    /// takes away.
    way_out: Option<&'p str>,
    /// The stored object, until it is judged: a clean write never pays for it.
    stored: Option<&'s Object<'a>>,
    known: Option<Stored>,
    kept: Kept<'p, 'f>,
}

impl<'p> Sink<'p> for Introduced<'p, '_, '_, '_> {
    fn push(&mut self, violation: Violation<'p>) {
        if let Some(stored) = self.stored.filter(|_| violation.ratcheted) {
            let mut known = Stored::default();
            self.judging.judge(stored, None, &mut known);
            (self.known, self.stored) = (Some(known), None);
        }
        if self.known.as_ref().is_some_and(|known| known.excuses(&violation)) {
            return;
        }
        let action = match violation.action {
            Disposition::Fixed(action) => action,
            Disposition::Disagreement => self.judging.disagreement(&self.judging.subject.object),
        };
        let out = action > Action::Warn && self.way_out == Some(violation.field.as_str());
        let ceiling = if out { self.ceiling.min(Action::Warn) } else { self.ceiling };
        self.kept.add(violation, action.min(ceiling));
    }
}

/// The findings of one policy, of each rule not more than anybody reads.
struct Kept<'p, 'f> {
    policy: &'p Policy,
    findings: &'f mut Vec<Finding<'p>>,
    /// Where those of this policy begin.
    first: usize,
    /// How many there are by rule and action: empty while there are few in all.
    counts: HashMap<(&'p Id, Action), usize>,
}

impl<'p> Kept<'p, '_> {
    fn add(&mut self, violation: Violation<'p>, action: Action) {
        let mine = &self.findings[self.first..];
        if mine.len() >= MAX_OF_A_RULE {
            if self.counts.is_empty() {
                for finding in mine {
                    *self.counts.entry((finding.rule, finding.action)).or_default() += 1;
                }
            }
            let count = self.counts.entry((violation.rule, action)).or_default();
            *count += 1;
            if *count > MAX_OF_A_RULE {
                return;
            }
        }
        let Violation { rule, field, cause, message, .. } = violation;
        self.say(rule, field, cause, message, action);
    }

    /// Says how many were left out. Never a part of a denial, which has a hundred causes before this
    /// one: the text of a denial has no numbers in it.
    fn finish(mut self) {
        let mut more: Vec<_> =
            self.counts.drain().filter(|(_, count)| *count > MAX_OF_A_RULE).collect();
        more.sort_unstable_by_key(|((rule, action), _)| (rule.as_str(), *action));
        for ((rule, action), count) in more {
            let message = format!("{} more of these are left out", count - MAX_OF_A_RULE);
            self.say(rule, "status".to_owned(), Cause::Invalid, message, action);
        }
    }

    fn say(&mut self, rule: &'p Id, field: String, cause: Cause, message: String, action: Action) {
        let policy = &self.policy.name;
        let others = Vec::new();
        self.findings.push(Finding { policy, rule, field, cause, message, action, others });
    }
}

/// The circumstances of a judgement; the object varies between the written and the stored one.
#[derive(Clone, Copy)]
struct Judging<'p, 's, 'a> {
    policy: &'p Policy,
    subject: &'s Subject<'a>,
    /// What is stored.
    old: Option<&'s Object<'a>>,
    ours: Ours<'p, 's, 'a>,
    now: i64,
}

impl<'p, 'a> Judging<'p, '_, 'a> {
    /// The field of the phase, where it is the default one.
    fn way_out(&self) -> Option<&'p str> {
        let owner = self.ours.selected.owner()?;
        let (rules, object) = (owner.convention.phase.as_ref()?, &self.subject.object);
        let default = rules.default.as_deref()?;
        let there = phase_of(&owner.convention, object) == Some(default);
        there.then(|| phase_path(rules, object).field())
    }

    fn judge(&self, object: &Object<'a>, old: Option<&Object<'a>>, violations: &mut dyn Sink<'p>) {
        let convention = &self.policy.convention;
        if let Some(status) = &object.status
            && !matches!(status, Json::Null | Json::Object(_))
        {
            let (cause, message) = match status {
                Json::Large(_) => (Cause::TooLong, "has more values than can be judged".to_owned()),
                other => (Cause::TypeInvalid, format!("must be an object, it is {}", other.kind())),
            };
            let field = "status".to_owned();
            violations.push(fixed(
                &convention.status_rule,
                field,
                cause,
                message,
                Action::Deny.into(),
            ));
            return;
        }
        let resource = &self.subject.resource;
        let facts = Facts::new(convention, object, old, resource).at_time(self.now);
        let generations = convention.generation.as_ref();
        let generations = generations.and_then(|rules| Generations::new(rules, object, old));
        let circumstances = Circumstances {
            facts: &facts,
            generations: generations.as_ref(),
            backfill: &self.policy.backfill,
            now: self.now,
        };
        for list in convention.conditions.iter().filter(|list| list.applies_to(&resource.version)) {
            conditions::judge(list, object, old, circumstances, violations);
        }
        // Without a status there is no field to ask for: a new object has none.
        let fields = convention.fields.iter().chain(&self.policy.fields);
        for field in fields.filter(|_| object.status_object().is_some()) {
            let value = in_status(object.status.as_ref(), &field.path);
            if let Some((cause, message)) = fields::violation(&field.check, value) {
                let path = field.path.field().to_owned();
                let check = &field.check;
                let found = fixed(&check.rule, path, cause, message, check.action.into());
                violations.push(Violation { value: fields::judged(cause, value), ..found });
            }
        }
        if let Some(rules) =
            convention.phase.as_ref().filter(|_| self.ours.selected.owns(self.policy))
        {
            let mut found = Vec::new();
            phase::judge(rules, object, old, &facts, &mut found);
            // Where the mutating webhook set the phase, it is no move of the writer's, nor does his reason
            // have to go with it.
            if !found.is_empty() && !self.phase_is_ours(rules, object, old) {
                found.into_iter().for_each(|violation| violations.push(violation));
            }
        }
        if let Some(generations) = &generations {
            generations.judge_object(object, old, violations);
        }
        // Rules of one list stand together: it is looked up for the first of them.
        let mut elsewhere: Option<(&Pointer, Facts<'_, '_>)> = None;
        for rule in &convention.rules {
            let facts = match &rule.list {
                None => facts,
                Some(path) => match elsewhere {
                    Some((known, facts)) if known == path => facts,
                    _ => elsewhere.insert((path, Self::reading(path, facts))).1,
                },
            };
            self.judge_rule(rule, object, old, &facts, violations);
        }
        for rule in &self.policy.rules {
            self.judge_cel(rule, object, old, &facts, violations);
        }
        // A creation is a change of nothing. On a desk and in an audit nobody creates.
        let creation =
            || self.subject.operation == Operation::Create && !self.subject.writer.user.is_empty();
        if old.is_some() || creation() {
            self.judge_owners(object, old, violations);
        }
    }

    /// Whether the phase is not the stored one, and would be the same had the writer left it alone.
    fn phase_is_ours(
        &self,
        rules: &PhaseRules,
        object: &Object<'a>,
        old: Option<&Object<'a>>,
    ) -> bool {
        let path = phase_path(rules, object);
        let written = in_status(object.status.as_ref(), path);
        // The stored object by itself has none before it.
        let moved = old.is_some_and(|old| !same(written, in_status(old.status.as_ref(), path)));
        let made = if moved { self.ours.without([path]) } else { None };
        made.is_some_and(|made| same(written, in_status(Some(&made), path)))
    }

    /// The facts with the conditions of the list at a path; unchanged where there is no such list.
    fn reading<'s>(path: &Pointer, facts: Facts<'s, 'a>) -> Facts<'s, 'a> {
        facts.list_at(path).map_or(facts, |list| facts.reading(list))
    }

    fn judge_rule(
        &self,
        rule: &'p Rule,
        object: &Object<'a>,
        old: Option<&Object<'a>>,
        facts: &Facts<'_, '_>,
        violations: &mut dyn Sink<'p>,
    ) {
        if facts.ask(&rule.when) != Truth::True
            || !self.triggered(&rule.trigger, facts, object, old)
        {
            return;
        }
        let field = rule.path.field().to_owned();
        let found = fixed(&rule.id, field, Cause::Invalid, rule.message.clone(), rule.action);
        let ratcheted = rule.trigger == Trigger::Introduced;
        violations.push(Violation { ratcheted, ..found });
    }

    /// A rule of the policy, in CEL. Without a status there is nothing to ask for, and without a stored
    /// object a rule that names it says nothing: both as in Kubernetes' own validation rules.
    fn judge_cel(
        &self,
        rule: &'p CelRule,
        object: &Object<'a>,
        old: Option<&Object<'a>>,
        facts: &Facts<'_, '_>,
        violations: &mut dyn Sink<'p>,
    ) {
        if object.status_object().is_none() || !self.triggered(&rule.trigger, facts, object, old) {
            return;
        }
        let names_old = rule.expression.reads.stored.is_some();
        // The stored object by itself, for the ratchet: over itself it shows whether such a rule can be
        // evaluated at all. It is no violation there: a transition is not a state.
        let by_itself = names_old && old.is_none();
        let old = if by_itself && self.old.is_some() { Some(object) } else { old };
        if names_old && old.is_none() {
            return;
        }
        let field = rule.path.field().to_owned();
        let (message, place) = match cel::holds(&rule.expression, object, old, &self.subject.writer)
        {
            Ok(true) => return,
            Ok(false) if by_itself => return,
            Ok(false) => (rule.message.clone(), None),
            // At a place of its own: a stored object of which the rule cannot tell does not excuse a
            // written one that violates it.
            Err(reason) => {
                let message = format!("rule {} cannot be evaluated: {reason}", rule.name);
                (message, Some(format!("{field} unknown")))
            }
        };
        // The default phase is a way out of every state, and Deleting is not the writer's choice.
        let phase = self.policy.convention.phase.as_ref();
        let default = phase.and_then(|rules| rules.default.as_deref());
        let out = default.is_some() && facts.phase == default;
        let mild = rule.sees_the_phase && (out || facts.deleting());
        let action = if mild { rule.action.min(Action::Warn) } else { rule.action };
        // An evaluation error that the stored object also has never rejects, for any trigger: if a
        // member of `oldSelf` is missing, no write could repair it.
        let ratcheted = rule.trigger == Trigger::Introduced || place.is_some();
        let found = fixed(&rule.id, field, Cause::Invalid, message, action.into());
        violations.push(Violation { place, ratcheted, ..found });
    }

    /// Whether a rule looks at this write. `facts` are those of its list of conditions.
    fn triggered(
        &self,
        trigger: &Trigger,
        facts: &Facts<'_, '_>,
        object: &Object<'a>,
        old: Option<&Object<'a>>,
    ) -> bool {
        let moved = |watched: &Watched| match (watched, old) {
            (_, None) => true,
            (Watched::Field(path), Some(old)) => {
                !same(in_status(object.status.as_ref(), path), in_status(old.status.as_ref(), path))
            }
            // Its status: another message, and what a default fills in, say nothing new.
            (Watched::Condition(kind), Some(_)) => {
                let status = |list| facts.find(list, kind).and_then(|found| found.get("status"));
                status(facts.conditions) != facts.old_conditions.and_then(status)
            }
        };
        match trigger {
            Trigger::State | Trigger::Introduced => true,
            Trigger::Moved(watched) => watched.iter().any(moved),
            Trigger::CoWritten(watched) => {
                old.is_none_or(|old| old.written_status().is_none()) || watched.iter().all(moved)
            }
        }
    }

    /// What a disagreement of this writer leads to here. Only the mutating webhook repairs; where
    /// it is not registered the disagreement passes with a warning. And on an object that is being
    /// deleted nobody but Crossplane's core writes conditions, and nobody the phase.
    fn disagreement(&self, object: &Object<'_>) -> Action {
        let action = self.policy.disagreement_of(&self.subject.writer);
        match action {
            Action::Repair => Action::Warn,
            action if object.is_deleting() => action.min(Action::Warn),
            action => action,
        }
    }

    fn judge_owners(
        &self,
        object: &Object<'_>,
        old: Option<&Object<'_>>,
        violations: &mut dyn Sink<'p>,
    ) {
        let before = |path| old.and_then(|old| in_status(old.status.as_ref(), path));
        let value = |path| in_status(object.status.as_ref(), path);
        let others: Vec<&Owner> = self
            .policy
            .owners
            .iter()
            .filter(|owner| !same(value(&owner.path), before(&owner.path)))
            .filter(|owner| !owner.writers.include(&self.subject.writer))
            .collect();
        if others.is_empty() {
            return;
        }
        // What the mutating webhook did is nobody's trespass.
        let ours = self.ours.without(others.iter().map(|owner| &*owner.path));
        for owner in others {
            let value = value(&owner.path);
            if ours.is_some() && same(value, in_status(ours.as_ref(), &owner.path)) {
                continue;
            }
            let dropped = value.is_none_or(Json::is_null);
            let preserved = |path: &Pointer| path.contains(&owner.path);
            // What the mutating webhook would have restored is no reason to refuse.
            let action = if dropped && self.policy.preserve.iter().any(preserved) {
                Action::Warn
            } else {
                Action::Deny
            };
            let message = format!("{} does not own this field", quoted(&self.subject.writer.user));
            let field = owner.path.field().to_owned();
            let rule = &self.policy.owner_rule;
            let found = fixed(rule, field, Cause::Forbidden, message, action.into());
            violations.push(Violation { ratcheted: false, ..found });
        }
    }
}

/// A violation at a field that has no key of its own.
pub(super) const fn fixed(
    rule: &Id,
    field: String,
    cause: Cause,
    message: String,
    action: Disposition,
) -> Violation<'_> {
    Violation { rule, field, place: None, cause, message, action, ratcheted: true, value: None }
}
