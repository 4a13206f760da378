//! Judging the phase: its value, its agreement with the conditions, its moves, and what goes with it.

use super::conditions::same;
use super::evidence::{Facts, phase_path};
use super::judge::fixed;
use super::ratchet::{Digest, Sink, Violation};
use super::{Cause, agreement, fields};
use crate::model::{Json, Object, in_status};
use crate::policy::convention::{PhaseReason, PhaseRules, Sanction};
use crate::policy::{Action, Disposition};

/// Judges the phase of an object.
pub(super) fn judge<'p>(
    rules: &'p PhaseRules,
    object: &Object<'_>,
    old: Option<&Object<'_>>,
    facts: &Facts<'_, '_>,
    violations: &mut dyn Sink<'p>,
) {
    let path = phase_path(rules, object);
    let field = || path.field().to_owned();
    let written = in_status(object.status.as_ref(), path);
    let mut unfit = |cause, message| {
        let found = fixed(&rules.value_rule, field(), cause, message, Action::Deny.into());
        violations.push(Violation { value: written.map(Digest::of), ..found });
    };
    match written {
        // Nothing, or as good as nothing: for the mutating webhook to fill in, and no evidence.
        None | Some(Json::Null) => {}
        Some(Json::String(phase)) if phase.is_empty() || rules.find(phase).is_some() => {}
        Some(Json::String(phase)) => {
            let known = rules.phases.iter().map(|phase| &phase.name);
            unfit(Cause::NotSupported, fields::unsupported(phase, known));
        }
        Some(other) => {
            unfit(Cause::TypeInvalid, format!("must be a string, it is {}", other.kind()));
        }
    }
    if let Some(phase) = agreement::contradicted(rules, facts) {
        let message = agreement::reason(phase, facts);
        let action = Disposition::Disagreement;
        violations.push(fixed(&phase.rule, field(), Cause::Invalid, message, action));
    }
    if let Some(reason) = &rules.reason {
        judge_reason(reason, rules, object, facts, violations);
    }
    if let Some(old) = old {
        // Where nobody had written a status it is not known what was before: a controller that
        // restores one, and a manifest on a desk, make no move.
        if old.written_status().is_some() {
            judge_move(rules, facts, field, violations);
        }
        judge_time(rules, object, old, facts, violations);
    }
}

/// The reason of the phase is one that goes with it.
fn judge_reason<'p>(
    reason: &'p PhaseReason,
    rules: &'p PhaseRules,
    object: &Object<'_>,
    facts: &Facts<'_, '_>,
    violations: &mut dyn Sink<'p>,
) {
    let found = in_status(object.status.as_ref(), &reason.path).and_then(Json::as_str);
    let Some(found) = found.filter(|text| !text.is_empty()) else { return };
    let Some(phase) = facts.phase.and_then(|phase| rules.find(phase)) else { return };
    let known = || phase.reasons.iter().chain(&reason.always);
    if !phase.reasons.is_empty() && !known().any(|known| known == found) {
        let (field, sanction) = (reason.path.field().to_owned(), &reason.sanction);
        let message = format!("with phase {}: {}", phase.name, fields::unsupported(found, known()));
        violations.push(fixed(
            &sanction.rule,
            field,
            Cause::NotSupported,
            message,
            sanction.action,
        ));
    }
}

/// The phase may follow the stored one.
fn judge_move<'p>(
    rules: &'p PhaseRules,
    facts: &Facts<'_, '_>,
    field: impl FnOnce() -> String,
    violations: &mut dyn Sink<'p>,
) {
    let Some(moves) = &rules.moves else { return };
    let from = facts.old_phase.unwrap_or_default();
    let Some(to) = facts.phase.filter(|to| *to != from && rules.find(to).is_some()) else { return };
    if !moves.allow(from, to) {
        let from = if from.is_empty() { "no phase" } else { from };
        let message = format!("phase {to} does not follow {from}");
        let (rule, action) = (&moves.sanction.rule, moves.sanction.action);
        let found = fixed(rule, field(), Cause::Invalid, message, action);
        violations.push(Violation { ratcheted: false, ..found });
    }
}

/// The time of the phase moves when the phase does.
fn judge_time<'p, 's>(
    rules: &'p PhaseRules,
    object: &'s Object<'_>,
    old: &'s Object<'_>,
    facts: &Facts<'_, '_>,
    violations: &mut dyn Sink<'p>,
) {
    let Some(time) = &rules.transition_time else { return };
    // A Go writer has null or nothing where it has no time.
    let said = |object: &'s Object<'_>| {
        in_status(object.status.as_ref(), &time.path).filter(|time| !time.is_empty())
    };
    let (new, before) = (said(object), said(old));
    if new.is_none() || before.is_none() {
        return;
    }
    let mut say = |sanction: &'p Sanction, message: &str| {
        let (field, action) = (time.path.field().to_owned(), sanction.action);
        let found = fixed(&sanction.rule, field, Cause::Invalid, message.to_owned(), action);
        violations.push(Violation { ratcheted: false, ..found });
    };
    let (moved, changed) = (!same(new, before), facts.phase != facts.old_phase);
    if moved && !changed {
        say(&time.moved, "moved although the phase did not change");
    } else if changed && !moved && !time.in_step {
        say(&time.kept, "did not move although the phase changed");
    }
}
