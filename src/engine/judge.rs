//! The validating half: everything that is wrong with a write, and what happens about it.

use crate::model::{Json, Object, Pointer, Subject, in_status};
use crate::policy::convention::{Filling, Rule, Trigger, ValueSource, Watched};
use crate::policy::{Action, Disposition, Policy};

use super::because::quoted;
use super::conditions::{self, Circumstances, Generations, same};
use super::evidence::{Facts, Truth, phase_of, phase_path};
use super::ratchet::{Violation, keep_introduced};
use super::{Cause, Finding, fields, phase};

/// Judges a subject by one policy.
pub(crate) fn judge<'p>(
    policy: &'p Policy,
    subject: &Subject<'_>,
    now: i64,
    findings: &mut Vec<Finding<'p>>,
) {
    let (object, old) = (&subject.object, subject.old.as_ref());
    // A write that does not touch status is never refused for it, whatever is stored.
    if old.is_some_and(|old| old.status == object.status) {
        return;
    }
    let judging = Judging { policy, subject, now };
    let mut violations = judging.violations(object, old);
    if violations.is_empty() {
        return;
    }
    // What a rule misses in a status that nobody had written, this write has left out.
    if let Some(old) = old.filter(|old| old.status_object().is_some_and(|old| !old.is_empty())) {
        keep_introduced(&mut violations, || judging.violations(old, None));
    }
    // An object on its way out is not worth a refusal: where status travels with the main
    // resource, the refused write may be the one that removes the finalizer.
    let leaving = object.is_deleting() && subject.subresource.is_empty();
    let ceiling = if leaving { Action::Warn } else { Action::Deny }.min(policy.enforcement);
    // The default phase is a way out of every state: no local rule takes it away.
    let way_out = policy
        .convention
        .phase
        .as_ref()
        .filter(|rules| {
            rules.default.is_some()
                && phase_of(&policy.convention, object) == rules.default.as_deref()
        })
        .map(|rules| phase_path(rules, object).field());
    let disagreement = judging.disagreement(object);
    findings.extend(violations.into_iter().map(|violation| {
        let out = way_out == Some(violation.field.as_str());
        let ceiling = if out { ceiling.min(Action::Warn) } else { ceiling };
        let action = match violation.action {
            Disposition::Fixed(action) => action,
            Disposition::Disagreement => disagreement,
        };
        Finding {
            policy: &policy.name,
            rule: violation.rule,
            field: violation.field,
            cause: violation.cause,
            message: violation.message,
            action: action.min(ceiling),
        }
    }));
}

/// The circumstances of a judgement; the object varies between the written and the stored one.
#[derive(Clone, Copy)]
struct Judging<'p, 's, 'a> {
    policy: &'p Policy,
    subject: &'s Subject<'a>,
    now: i64,
}

impl<'p, 'a> Judging<'p, '_, 'a> {
    fn violations(&self, object: &Object<'a>, old: Option<&Object<'a>>) -> Vec<Violation<'p>> {
        let mut violations = Vec::new();
        let convention = &self.policy.convention;
        if let Some(status) = &object.status
            && !matches!(status, Json::Null | Json::Object(_))
        {
            let message = format!("must be an object, it is {}", status.kind());
            let field = "status".to_owned();
            let rule = &convention.status_rule;
            violations.push(fixed(rule, field, Cause::TypeInvalid, message, Action::Deny.into()));
            return violations;
        }
        let resource = &self.subject.resource;
        let facts = Facts::new(convention, object, old, resource).at_time(self.now);
        let generations = convention.generation.as_ref();
        let generations = generations.and_then(|rules| Generations::new(rules, object, old));
        let circumstances =
            Circumstances { facts: &facts, generations: generations.as_ref(), now: self.now };
        for list in convention.conditions.iter().filter(|list| list.applies_to(&resource.version)) {
            conditions::judge(list, object, old, circumstances, &mut violations);
        }
        // Without a status there is no field to ask for: a new object has none.
        let fields = convention.fields.iter().chain(&self.policy.fields);
        for field in fields.filter(|_| object.status_object().is_some()) {
            let value = in_status(object.status.as_ref(), &field.path);
            if let Some((cause, message)) = fields::violation(&field.check, value) {
                let path = field.path.field().to_owned();
                let check = &field.check;
                violations.push(fixed(&check.rule, path, cause, message, check.action.into()));
            }
        }
        if let Some(rules) = &convention.phase {
            phase::judge(rules, object, old, &facts, &mut violations);
        }
        if let Some(generations) = &generations {
            generations.judge_object(object, old, &mut violations);
        }
        for rule in &convention.rules {
            self.judge_rule(rule, object, old, &facts, &mut violations);
        }
        if let Some(old) = old {
            self.judge_owners(object, old, &mut violations);
        }
        violations
    }

    fn judge_rule(
        &self,
        rule: &'p Rule,
        object: &Object<'a>,
        old: Option<&Object<'a>>,
        facts: &Facts<'_, '_>,
        violations: &mut Vec<Violation<'p>>,
    ) {
        let other_list = rule.list.as_ref().and_then(|path| {
            self.policy.convention.conditions.iter().find(|list| list.path == *path)
        });
        let answer = match other_list {
            Some(list) => facts.reading(list).ask(&rule.when),
            None => facts.ask(&rule.when),
        };
        if answer != Truth::True || !self.triggered(rule, object, old) {
            return;
        }
        let field = rule.path.field().to_owned();
        let found = fixed(&rule.id, field, Cause::Invalid, rule.message.clone(), rule.action);
        let ratcheted = rule.trigger == Trigger::Introduced;
        violations.push(Violation { ratcheted, ..found });
    }

    fn triggered<'o>(
        &self,
        rule: &Rule,
        object: &'o Object<'a>,
        old: Option<&'o Object<'a>>,
    ) -> bool {
        let moved = |watched: &Watched| match (watched, old) {
            (_, None) => true,
            (Watched::Field(path), Some(old)) => {
                !same(in_status(object.status.as_ref(), path), in_status(old.status.as_ref(), path))
            }
            (Watched::Condition(kind), Some(old)) => {
                let primary = || {
                    let version = &self.subject.resource.version;
                    Some(&self.policy.convention.primary_conditions(version)?.path)
                };
                let path = rule.list.as_ref().or_else(primary);
                let found = |object: &'o Object<'a>| {
                    let value = in_status(object.status_object(), path?);
                    crate::model::Conditions::of(value).find(kind)
                };
                found(object) != found(old)
            }
        };
        match &rule.trigger {
            Trigger::State | Trigger::Introduced => true,
            Trigger::Moved(watched) => watched.iter().any(moved),
            Trigger::CoWritten(watched) => {
                old.is_none_or(|old| old.status_object().is_none()) || watched.iter().all(moved)
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

    /// Whether a field holds what a default of this policy puts there.
    fn is_default(&self, path: &Pointer, object: &Object<'_>) -> bool {
        let status = object.status.as_ref();
        let value = |path| in_status(status, path).map(Json::to_value);
        self.policy.backfill.iter().any(|default| match &default.filling {
            Filling::Field(place, sources) if place == path => {
                sources.iter().any(|source| match source {
                    ValueSource::Value(filling) => value(path).as_ref() == Some(filling),
                    ValueSource::Field(other) => value(other) == value(path),
                    _ => false,
                })
            }
            _ => false,
        })
    }

    fn judge_owners(
        &self,
        object: &Object<'_>,
        old: &Object<'_>,
        violations: &mut Vec<Violation<'p>>,
    ) {
        for owner in &self.policy.owners {
            let value = in_status(object.status.as_ref(), &owner.path);
            let before = in_status(old.status.as_ref(), &owner.path);
            if same(value, before) || owner.writers.include(&self.subject.writer) {
                continue;
            }
            // What the mutating webhook filled in was nobody's trespass.
            let filled = before.is_none_or(Json::is_null) && self.is_default(&owner.path, object);
            if filled {
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
    rule: &str,
    field: String,
    cause: Cause,
    message: String,
    action: Disposition,
) -> Violation<'_> {
    Violation { rule, field, place: None, cause, message, action, ratcheted: true }
}
