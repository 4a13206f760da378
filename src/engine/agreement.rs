//! Agreement: phase and conditions tell the same story.

use crate::model::{Object, Resource};
use crate::policy::convention::{Convention, Phase, PhaseRules, RepairTo, Rule};
use crate::policy::{Action, Disposition, Policy};

use super::evidence::{Facts, Truth};

/// The phase that the evidence definitely contradicts, if it does.
pub(crate) fn contradicted<'p>(rules: &'p PhaseRules, facts: &Facts<'_, '_>) -> Option<&'p Phase> {
    let phase = rules.find(facts.phase?)?;
    let necessary = phase.necessary.as_ref()?;
    (facts.ask(necessary) == Truth::False).then_some(phase)
}

/// Whether the stored object is in the same disagreement: the same phase, contradicted. Which
/// evidence contradicts it may have changed; the write did not bring the disagreement in.
pub(crate) fn stood_before(phase: &Phase, rules: &PhaseRules, stored: &Facts<'_, '_>) -> bool {
    contradicted(rules, stored).is_some_and(|before| before.name == phase.name)
}

/// Whether a phase is contradicted that was not by what was there `before`, or refused by a rule that has
/// nothing against the rest.
pub(crate) fn fell_out(
    convention: &Convention,
    before: &Facts<'_, '_>,
    after: &Facts<'_, '_>,
) -> bool {
    let Some(rules) = &convention.phase else { return false };
    let before = before.supposing(after.phase);
    let contradicted = |facts| contradicted(rules, facts).is_some();
    let refused = |rule: &Rule| {
        let fires = |facts: &Facts<'_, '_>| {
            let list = rule.list.as_ref().and_then(|path| facts.list_at(path));
            list.map_or(*facts, |list| facts.reading(list)).ask(&rule.when) == Truth::True
        };
        fires(after) && !fires(&before) && !fires(&after.supposing(None))
    };
    let refuses = |rule: &&Rule| {
        matches!(rule.action, Disposition::Disagreement | Disposition::Fixed(Action::Deny))
    };
    (contradicted(after) && !contradicted(&before))
        || convention.rules.iter().filter(refuses).any(refused)
}

/// Why a phase is contradicted, in words that do not change while the state does not.
pub(crate) fn reason(phase: &Phase, facts: &Facts<'_, '_>) -> String {
    let because = phase.necessary.as_ref().map(|necessary| facts.because(necessary));
    format!("phase {} disagrees: {}", phase.name, because.unwrap_or_default())
}

/// The phase that the evidence supports: settled by sufficient evidence, else chosen by the
/// convention's steps, else the default. Always admissible, so that a second repair changes nothing.
pub(crate) fn repaired<'p>(rules: &'p PhaseRules, facts: &Facts<'_, '_>) -> Option<&'p str> {
    let holds = |predicate| facts.ask(predicate) == Truth::True;
    let settled = rules
        .phases
        .iter()
        .filter(|phase| phase.sufficient.as_ref().is_some_and(holds))
        .find(|phase| facts.admits(phase));
    let chosen = || {
        rules
            .repair
            .iter()
            .filter(|step| step.when.as_ref().is_none_or(holds))
            .filter_map(|step| match &step.to {
                RepairTo::Phase(name) => rules.find(name),
                RepairTo::Requested => rules.find(facts.phase?),
                RepairTo::Stored => rules.find(facts.old_phase?),
            })
            .find(|phase| facts.admits(phase))
    };
    let found = settled.or_else(chosen).map(|phase| phase.name.as_str());
    found.or(rules.default.as_deref())
}

/// The facts of the stored object by itself.
pub(crate) fn stored_facts<'s, 'a>(
    policy: &'s Policy,
    old: Option<&'s Object<'a>>,
    resource: &'s Resource<'a>,
) -> Option<Facts<'s, 'a>> {
    old.map(|old| Facts::new(&policy.convention, old, None, resource))
}
