//! Which phase results from a written one.

use crate::policy::convention::{Phase, PhaseRules};

use super::agreement;
use super::evidence::{Facts, Truth};

/// What becomes of the phase of an object.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Choice<'p> {
    /// This one is always set, independent of the written one.
    Imposed(&'p Phase),
    /// No phase is written: the default, where the convention has one.
    Default(Option<&'p str>),
    /// The evidence contradicts the written phase.
    Contradicted(&'p Phase),
    /// The written phase stays.
    Written,
}

/// Chooses the phase, by the evidence and the phase of `facts`.
pub(crate) fn choose<'p>(rules: &'p PhaseRules, facts: &Facts<'_, '_>) -> Choice<'p> {
    if let Some(phase) = imposed(rules, facts) {
        return Choice::Imposed(phase);
    }
    if facts.phase.is_none() {
        return Choice::Default(rules.default.as_deref());
    }
    agreement::contradicted(rules, facts).map_or(Choice::Written, Choice::Contradicted)
}

/// The phase that is set independent of the writer.
pub(crate) fn imposed<'p>(rules: &'p PhaseRules, facts: &Facts<'_, '_>) -> Option<&'p Phase> {
    rules.phases.iter().find(|phase| {
        phase.imposed.as_ref().is_some_and(|imposed| facts.ask(&imposed.when) == Truth::True)
    })
}
