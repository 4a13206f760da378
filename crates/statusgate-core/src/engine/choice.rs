//! Which phase results from a written one.

use crate::policy::convention::{PhaseRules, PhaseValue};

use super::agreement;
use super::evidence::{Facts, Truth};

/// The decision about the phase of an object.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Choice<'p> {
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
pub(crate) fn choose<'p>(rules: &'p PhaseRules, facts: &Facts<'_, '_>) -> Choice<'p> {
    if let Some(phase) = imposed(rules, facts) {
        return Choice::Imposed(phase);
    }
    if facts.phase.is_none() {
        return Choice::Default(rules.default.as_deref());
    }
    agreement::contradicted(rules, facts).map_or(Choice::Written, Choice::Contradicted)
}

/// The phase that the convention imposes.
pub(crate) fn imposed<'p>(rules: &'p PhaseRules, facts: &Facts<'_, '_>) -> Option<&'p PhaseValue> {
    rules.phases.iter().find(|phase| {
        phase.imposed.as_ref().is_some_and(|imposed| facts.ask(&imposed.when) == Truth::True)
    })
}
