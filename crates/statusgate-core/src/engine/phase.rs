//! Judges the phase: its value, its agreement with the conditions, its transitions, its reason and its time.

use indexmap::IndexSet;

use super::agreement::{Choice, choose};
use super::conditions::same;
use super::evidence::{Facts, Truth, phase_path};
use super::violation::{Sink, Violation};
use super::{Cause, agreement, fields};
use crate::language::any_of;
use crate::model::{Json, Object, is_before_write, parse_rfc3339};
use crate::policy::Disposition;
use crate::policy::convention::{PhaseReason, PhaseRules, PhaseValue};

/// Judges the phase of an object. `repairs` tells whether this writer's disagreements are repaired.
pub(super) fn judge<'p>(
    rules: &'p PhaseRules,
    facts: &Facts<'_, '_>,
    repairs: bool,
    violations: &mut dyn Sink<'p>,
) {
    let path = phase_path(rules, facts.object);
    let written = facts.object.at_status(path);
    let mut judge_value = |cause, message: String| {
        let found = Violation::new(&rules.value_rule, Disposition::Deny, path.field(), message);
        violations.push(found.cause(cause).of_value(written));
    };
    match written.filter(|_| !is_known(rules, written)) {
        None => {}
        Some(Json::String(phase)) => {
            let known = rules.phases.iter().map(|phase| phase.name.as_str());
            judge_value(Cause::NotSupported, fields::unsupported(phase, known));
        }
        Some(other) => {
            judge_value(Cause::TypeInvalid, fields::not_a_string(other));
        }
    }
    if let Some(phase) = agreement::contradicted(rules, facts) {
        let message = agreement::reason(phase, facts);
        let action = Disposition::Disagreement;
        violations.push(Violation::new(&phase.rule, action, path.field(), message));
    }
    if let Some(reason) = &rules.reason {
        judge_reason(reason, rules, facts, repairs, violations);
    }
    if let Some(old) = facts.old
        && !rules.mirrored.as_ref().is_some_and(|when| facts.ask(when) == Truth::True)
    {
        // Another value is a violation of its own. The stored one may be the old name of a phase: no
        // phase follows it, so a judgement would lock its writer out.
        let stored = old.at_status(phase_path(rules, old));
        if [written, stored].into_iter().all(|value| is_known(rules, value)) {
            judge_transition(rules, facts, repairs, path.field(), violations);
        }
        judge_time(rules, facts, old, repairs, violations);
    }
}

/// Whether a value is a phase, or none. The empty text is none: the mutating webhook sets the default.
fn is_known(rules: &PhaseRules, value: Option<&Json<'_>>) -> bool {
    match value {
        None | Some(Json::Null) => true,
        Some(Json::String(phase)) => phase.is_empty() || rules.find(phase).is_some(),
        Some(_) => false,
    }
}

/// The reason must be one of those of the phase.
fn judge_reason<'p>(
    reason: &'p PhaseReason,
    rules: &'p PhaseRules,
    facts: &Facts<'_, '_>,
    repairs: bool,
    violations: &mut dyn Sink<'p>,
) {
    let found = facts.object.at_status(&reason.path).and_then(Json::as_str);
    let Some(found) = found.filter(|text| !text.is_empty()) else { return };
    let Some(phase) = facts.phase.and_then(|phase| rules.find(phase)) else { return };
    let known = |phase: &'p PhaseValue| phase.reasons.iter().chain(reason.always.iter());
    let has = |phase: &'p PhaseValue| {
        phase.reasons.is_empty() || known(phase).any(|known| known == found)
    };
    if let Some(sanction) = &reason.action
        && !has(phase)
        && !replaces_one(rules, facts, repairs, |phase| rules.find(phase).is_none_or(has))
    {
        let known = known(phase).map(String::as_str);
        let message = format!("with phase {}: {}", phase.name, fields::unsupported(found, known));
        let found = Violation::by(sanction, reason.path.field(), message);
        violations.push(found.cause(Cause::NotSupported));
    }
}

/// Whether the mutating webhook replaces one of the phases that are `written`, or an absent one, by this phase.
/// The webhook is responsible for the result. The empty text is no phase.
fn replaces_one(
    rules: &PhaseRules,
    facts: &Facts<'_, '_>,
    repairs: bool,
    written: impl Fn(&str) -> bool,
) -> bool {
    let phases = rules.phases.iter().map(|phase| phase.name.as_str());
    phases.chain([""]).filter(|phase| written(phase)).any(|phase| {
        let supposed = Facts { phase: Some(phase).filter(|phase| !phase.is_empty()), ..*facts };
        let chosen = match choose(rules, &supposed) {
            Choice::Imposed(phase) => Some(&*phase.name),
            Choice::Default(default) => default,
            Choice::Contradicted(_) if repairs => agreement::repaired(rules, &supposed),
            Choice::Contradicted(_) | Choice::Written => None,
        };
        chosen.is_some() && chosen == facts.phase
    })
}

/// The phase must be a valid successor of the stored one. The empty text is no phase: before the first one,
/// and after a write that removes it.
fn judge_transition<'p>(
    rules: &'p PhaseRules,
    facts: &Facts<'_, '_>,
    repairs: bool,
    field: &str,
    violations: &mut dyn Sink<'p>,
) {
    let Some(moves) = &rules.moves else { return };
    let from = facts.old_phase.unwrap_or_default();
    let to = facts.phase.unwrap_or_default();
    if to == from {
        return;
    }
    let may_follow = |phase: &str| phase == from || moves.allow(from, phase);
    if let Some(sanction) = &moves.action
        && !may_follow(to)
        && !replaces_one(rules, facts, repairs, may_follow)
    {
        let unchanged = Some(from).filter(|from| !from.is_empty());
        let next: IndexSet<&str> = moves.after(from).chain(unchanged).collect();
        let names = next.into_iter().map(|phase| if phase.is_empty() { "none" } else { phase });
        let valid = any_of(names.map(str::to_owned));
        let message = match (from, to) {
            ("", to) => format!("phase {to} is not a valid first phase: expected {valid}"),
            (from, "") => format!("phase {from} must not be removed: expected {valid}"),
            (from, to) => format!("phase {to} is not valid after {from}: expected {valid}"),
        };
        violations.push(Violation::by(sanction, field, message).transition());
    }
}

/// The time of the phase must change exactly when the phase does.
fn judge_time<'p, 's>(
    rules: &'p PhaseRules,
    facts: &Facts<'s, '_>,
    old: &'s Object<'_>,
    repairs: bool,
    violations: &mut dyn Sink<'p>,
) {
    let Some(time) = &rules.transition_time else { return };
    // Go controllers write null or "" for an unset time.
    let is_set = |time: &&Json<'_>| !time.is_empty();
    let Some(new) = facts.object.at_status(&time.path).filter(is_set) else { return };
    let Some(before) = old.at_status(&time.path).filter(is_set) else { return };
    let (moved, changed) = (!same(Some(new), Some(before)), facts.phase != facts.old_phase);
    let (sanction, message) = if moved && !changed {
        // The phase may be the stored one only because the webhook chose it. In step, it also sets the time.
        if !time.in_step()
            && replaces_one(rules, facts, repairs, |phase| Some(phase) != facts.old_phase)
        {
            return;
        }
        (&time.moved, "moved although the phase did not change")
    } else if changed && !moved && !time.in_step() && is_kept(before, facts.now) {
        (&time.kept, "did not move although the phase changed")
    } else {
        return;
    };
    if let Some(sanction) = sanction {
        violations.push(Violation::by(sanction, time.path.field(), message).transition());
    }
}

/// Whether an unchanged time is from before this write. An invalid one is a violation of its format.
fn is_kept(stored: &Json<'_>, now: Option<i64>) -> bool {
    let time = stored.as_str().and_then(parse_rfc3339);
    time.zip(now).is_some_and(|(time, now)| is_before_write(time, now))
}
