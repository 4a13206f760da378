//! Agreement of the phase with the conditions, and which phase results from a written one.

use crate::policy::convention::{Convention, PhaseRules, PhaseValue, REQUESTED, Rule, STORED};

use super::evidence::{Facts, Truth};

/// The phase, if the evidence definitely contradicts it.
pub(crate) fn contradicted<'p>(
    rules: &'p PhaseRules,
    facts: &Facts<'_, '_>,
) -> Option<&'p PhaseValue> {
    let phase = rules.find(facts.phase?)?;
    let necessary = phase.necessary.as_ref()?;
    (facts.ask(necessary) == Truth::False).then_some(phase)
}

/// Whether a phase is admissible: the evidence does not definitely contradict it.
pub fn admits(facts: &Facts<'_, '_>, phase: &PhaseValue) -> bool {
    let facts = Facts { phase: Some(&phase.name), ..*facts };
    phase.necessary.as_ref().is_none_or(|necessary| facts.ask(necessary) != Truth::False)
}

/// Whether a change makes the phase disagree, or violates a rule that held before and that would hold
/// without the phase.
pub(crate) fn change_contradicts_phase(
    convention: &Convention,
    before: &Facts<'_, '_>,
    after: &Facts<'_, '_>,
) -> bool {
    let Some(rules) = &convention.phase else { return false };
    let before = Facts { phase: after.phase, ..*before };
    let contradicted = |facts| contradicted(rules, facts).is_some();
    let violated = |rule: &Rule, facts: &Facts<'_, '_>| {
        let version = &facts.resource.version;
        let list = rule.list.as_ref().and_then(|path| convention.list_at(path, version));
        let facts = list.map_or(*facts, |list| facts.reading(list.for_predicates()));
        facts.ask(&rule.when) == Truth::True
    };
    let denying = convention.rules.iter().filter(|rule| rule.action.can_deny());
    let mut violating = denying.filter(|rule| violated(rule, after) && !violated(rule, &before));
    (contradicted(after) && !contradicted(&before))
        || violating.any(|rule| !violated(rule, &Facts { phase: None, ..*after }))
}

/// The message about a contradicted phase. It changes only with the state.
pub fn reason(phase: &PhaseValue, facts: &Facts<'_, '_>) -> String {
    let because = phase.necessary.as_ref().map(|necessary| facts.because(necessary));
    format!("phase {} disagrees: {}", phase.name, because.unwrap_or_default())
}

/// The phase that the evidence supports: determined by sufficient evidence, otherwise by the
/// convention's repair steps, otherwise the default. It is always admissible, so a second repair changes
/// nothing.
pub fn repaired<'p>(rules: &'p PhaseRules, facts: &Facts<'_, '_>) -> Option<&'p str> {
    let holds = |predicate| facts.ask(predicate) == Truth::True;
    let by_evidence =
        rules.phases.iter().filter(|phase| phase.sufficient.as_ref().is_some_and(holds));
    let steps = rules.repair.iter().filter(|step| step.when.as_ref().is_none_or(holds));
    let by_steps = steps.filter_map(|step| match step.to.as_str() {
        REQUESTED => rules.find(facts.phase?),
        STORED => rules.find(facts.old_phase?),
        name => rules.find(name),
    });
    let found = by_evidence.chain(by_steps).find(|phase| admits(facts, phase));
    found.map(|phase| phase.name.as_str()).or(rules.default.as_deref())
}

/// The decision about the phase of an object.
#[derive(Clone, Copy, Debug)]
pub(super) enum Choice<'p> {
    /// The convention imposes this phase, independent of the writer.
    Imposed(&'p PhaseValue),
    /// No phase is written: the convention's default, if it has one.
    Default(Option<&'p str>),
    /// The evidence contradicts the written phase.
    Contradicted(&'p PhaseValue),
    /// The written phase stays.
    Written,
}

/// Chooses the phase from the evidence and the written phase.
pub(super) fn choose<'p>(rules: &'p PhaseRules, facts: &Facts<'_, '_>) -> Choice<'p> {
    if let Some(phase) = imposed(rules, facts) {
        return Choice::Imposed(phase);
    }
    if facts.phase.is_none() {
        return Choice::Default(rules.default.as_deref());
    }
    contradicted(rules, facts).map_or(Choice::Written, Choice::Contradicted)
}

/// The phase that the convention imposes.
pub fn imposed<'p>(rules: &'p PhaseRules, facts: &Facts<'_, '_>) -> Option<&'p PhaseValue> {
    rules.phases.iter().find(|phase| {
        phase.imposed.as_ref().is_some_and(|imposed| facts.ask(&imposed.when) == Truth::True)
    })
}
