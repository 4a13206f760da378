//! The validating half: everything that is wrong with a write, and what happens about it.

use crate::model::{Json, Object, Pointer, Subject, in_status};
use crate::policy::convention::{Fill, PhaseRules, Rule, Trigger, Watched};
use crate::policy::{Action, Disposition, Policy};

use super::conditions::{self, Generations, same};
use super::evidence::{Facts, Truth, phase_of, quoted};
use super::ratchet::{Violation, keep_introduced};
use super::{Cause, Finding, agreement, fields};

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
    if let Some(old) = old {
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
        .map(|rules| rules.path.field());
    findings.extend(violations.into_iter().map(|violation| {
        let out = way_out == Some(violation.field.as_str());
        let ceiling = if out { ceiling.min(Action::Warn) } else { ceiling };
        Finding {
            policy: &policy.name,
            rule: violation.rule,
            field: violation.field,
            cause: violation.cause,
            message: violation.message,
            action: violation.action.min(ceiling),
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

impl<'p> Judging<'p, '_, '_> {
    fn violations(&self, object: &Object<'_>, old: Option<&Object<'_>>) -> Vec<Violation<'p>> {
        let mut violations = Vec::new();
        let convention = &self.policy.convention;
        if let Some(status) = &object.status
            && !matches!(status, Json::Null | Json::Object(_))
        {
            let message = format!("must be an object, it is {}", status.kind());
            let field = "status".to_owned();
            let rule = &convention.status_rule;
            violations.push(fixed(rule, field, Cause::TypeInvalid, message, Action::Deny));
            return violations;
        }
        let generations = self.generations(object, old);
        for list in &convention.conditions {
            conditions::judge(list, object, old, generations.as_ref(), self.now, &mut violations);
        }
        // Without a status there is no field to ask for: a new object has none.
        let fields = convention.fields.iter().chain(&self.policy.fields);
        for field in fields.filter(|_| object.status_object().is_some()) {
            let value = in_status(object.status.as_ref(), &field.path);
            if let Some((cause, message)) = fields::violation(&field.check, value) {
                let path = field.path.field().to_owned();
                let check = &field.check;
                violations.push(fixed(&check.rule, path, cause, message, check.action));
            }
        }
        let facts = Facts::new(convention, object, old, &self.subject.resource.resource);
        if let Some(rules) = &convention.phase {
            self.judge_phase(rules, object, old, &facts, &mut violations);
        }
        if let Some(generations) = &generations {
            judge_generations(generations, object, old, &mut violations);
        }
        for rule in &convention.rules {
            self.judge_rule(rule, object, old, &facts, &mut violations);
        }
        if let Some(old) = old {
            self.judge_owners(object, old, &mut violations);
        }
        violations
    }

    fn judge_phase(
        &self,
        rules: &'p PhaseRules,
        object: &Object<'_>,
        old: Option<&Object<'_>>,
        facts: &Facts<'_, '_>,
        violations: &mut Vec<Violation<'p>>,
    ) {
        let field = || rules.path.field().to_owned();
        match in_status(object.status.as_ref(), &rules.path) {
            // Nothing, or as good as nothing: for the mutating webhook to fill in, and no evidence.
            None | Some(Json::Null) => {}
            Some(Json::String(phase)) if phase.is_empty() || rules.find(phase).is_some() => {}
            Some(Json::String(phase)) => {
                let known = rules.phases.iter().map(|phase| &phase.name);
                let message = fields::unsupported(phase, known);
                let cause = Cause::NotSupported;
                violations.push(fixed(&rules.value_rule, field(), cause, message, Action::Deny));
            }
            Some(other) => {
                let message = format!("must be a string, it is {}", other.kind());
                let cause = Cause::TypeInvalid;
                violations.push(fixed(&rules.value_rule, field(), cause, message, Action::Deny));
            }
        }
        if let Some(phase) = agreement::contradicted(rules, facts) {
            let message = agreement::reason(phase, facts);
            let action = self.disagreement(facts);
            violations.push(fixed(&phase.rule, field(), Cause::Invalid, message, action));
        }
        if let (Some((path, rule)), Some(old)) = (&rules.transition_time, old) {
            let time = in_status(object.status.as_ref(), path);
            let before = in_status(old.status.as_ref(), path);
            let moved = time.is_some() && before.is_some() && !same(time, before);
            if moved && facts.phase == facts.old_phase {
                let message = "moved although the phase did not change".to_owned();
                let path = path.field().to_owned();
                let found = fixed(rule, path, Cause::Invalid, message, Action::Warn);
                violations.push(Violation { ratcheted: false, ..found });
            }
        }
    }

    fn judge_rule(
        &self,
        rule: &'p Rule,
        object: &Object<'_>,
        old: Option<&Object<'_>>,
        facts: &Facts<'_, '_>,
        violations: &mut Vec<Violation<'p>>,
    ) {
        if facts.ask(&rule.when) != Truth::True || !self.triggered(rule, object, old) {
            return;
        }
        let action = match rule.action {
            Disposition::Fixed(action) => action,
            Disposition::Disagreement => self.disagreement(facts),
        };
        let field = rule.path.field().to_owned();
        let found = fixed(&rule.id, field, Cause::Invalid, rule.message.clone(), action);
        let ratcheted = rule.trigger == Trigger::Introduced;
        violations.push(Violation { ratcheted, ..found });
    }

    fn triggered(&self, rule: &Rule, object: &Object<'_>, old: Option<&Object<'_>>) -> bool {
        let moved = |watched: &Watched| match (watched, old) {
            (_, None) => true,
            (Watched::Field(path), Some(old)) => {
                !same(in_status(object.status.as_ref(), path), in_status(old.status.as_ref(), path))
            }
            (Watched::Condition(kind), Some(old)) => {
                let facts = |object| {
                    let list = self.policy.convention.primary_conditions()?;
                    let value = in_status(Object::status_object(object), &list.path);
                    crate::model::Conditions::of(value).find(kind)
                };
                facts(object) != facts(old)
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
    fn disagreement(&self, facts: &Facts<'_, '_>) -> Action {
        let action = self.policy.disagreement_of(&self.subject.writer);
        match action {
            Action::Repair => Action::Warn,
            action if facts.deleting() => action.min(Action::Warn),
            action => action,
        }
    }

    /// The newest generation: admission sees the bump of a spec change before or after, depending
    /// on the webhook, and a deletion bumps it too.
    fn generations(
        &self,
        object: &Object<'_>,
        old: Option<&Object<'_>>,
    ) -> Option<Generations<'p>> {
        let rules = self.policy.convention.generation.as_ref()?;
        let newest = object.metadata.generation.max(old.and_then(|old| old.metadata.generation))?;
        let had_status = old.is_some_and(|old| old.status_object().is_some());
        Some(Generations { rules, newest, had_status })
    }

    /// Whether a field holds what a default of this policy puts there.
    fn is_default(&self, path: &Pointer, object: &Object<'_>) -> bool {
        let status = object.status.as_ref();
        let value = |path| in_status(status, path).map(Json::to_value);
        self.policy.backfill.iter().filter(|default| default.path == *path).any(|default| {
            match &default.fill {
                Fill::Absent | Fill::Null => false,
                Fill::Value(filling) => value(path).as_ref() == Some(filling),
                Fill::CopyOf(sources) => sources.iter().any(|source| value(source) == value(path)),
            }
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
            let found = fixed(&self.policy.owner_rule, field, Cause::Forbidden, message, action);
            violations.push(Violation { ratcheted: false, ..found });
        }
    }
}

fn judge_generations<'p>(
    generations: &Generations<'p>,
    object: &Object<'_>,
    old: Option<&Object<'_>>,
    violations: &mut Vec<Violation<'p>>,
) {
    for path in &generations.rules.paths {
        let observed =
            |object: &Object<'_>| in_status(object.status.as_ref(), path).and_then(Json::as_i64);
        let Some(new) = observed(object) else { continue };
        if let Some((sanction, message)) = generations.judge(new, old.and_then(observed)) {
            let action = generations.action(sanction);
            let field = path.field().to_owned();
            let found = fixed(&sanction.rule, field, Cause::Invalid, message.to_owned(), action);
            violations.push(Violation { ratcheted: false, ..found });
        }
    }
}

/// A violation at a field that has no key of its own.
const fn fixed(
    rule: &str,
    field: String,
    cause: Cause,
    message: String,
    action: Action,
) -> Violation<'_> {
    Violation { rule, field, place: None, cause, message, action, ratcheted: true }
}
