//! Actions as values of flags.
//!
//! The values are shown as findings print them. Case does not matter, so the spelling of policies is
//! accepted, too.

use clap::builder::{PossibleValuesParser, TypedValueParser};

use statusgate_core::engine::Action;

/// The actions that can be a limit: it includes stronger ones. A repair is never one, because only a
/// disagreement can be repaired.
pub(super) const LIMITS: [Action; 3] = [Action::Deny, Action::Warn, Action::Audit];

/// What fails a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FailOn {
    /// A finding with this action or a stronger one.
    Action(Action),
    /// An object that was not judged.
    Unjudged,
}

/// Reads one of these actions. The flag has to ignore the case.
pub(super) fn one_of<const N: usize>(
    actions: [Action; N],
) -> impl TypedValueParser<Value = Action> {
    PossibleValuesParser::new(actions.map(Action::label))
        .try_map(move |name| actions.into_iter().find(|of| is(&name, *of)).ok_or(name))
}

/// Reads a limit, or `unjudged`.
pub(super) fn fail_on() -> impl TypedValueParser<Value = FailOn> {
    let names = LIMITS.map(Action::label).into_iter().chain(["unjudged"]);
    PossibleValuesParser::new(names).map(|name| {
        let action = LIMITS.into_iter().find(|action| is(&name, *action));
        action.map_or(FailOn::Unjudged, FailOn::Action)
    })
}

fn is(name: &str, action: Action) -> bool {
    name.eq_ignore_ascii_case(action.label())
}
