//! Names as values of flags: those of actions, of webhooks and of tools.
//!
//! Actions are shown as findings print them. Their flags ignore the case, so the spelling of policies is
//! accepted, too.

use clap::builder::{PossibleValuesParser, TypedValueParser};

use statusgate_core::engine::Action;

/// The actions that can be a limit: it includes stronger ones. A repair is never one, because only a
/// disagreement can be repaired.
pub(super) const LIMITS: [Action; 3] = [Action::Deny, Action::Warn, Action::Audit];

/// Reads one of these values by its name.
pub(super) fn one_of<T: Copy + Send + Sync + 'static, const N: usize>(
    values: [T; N],
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(values.map(name)).try_map(move |text| {
        let mut values = values.into_iter();
        values.find(|value| name(*value).eq_ignore_ascii_case(&text)).ok_or(text)
    })
}

/// Reads what fails a run: a finding with this action or a stronger one; or `unjudged`, an object without a judgement, as `None`.
pub(super) fn fail_on() -> impl TypedValueParser<Value = Option<Action>> {
    let [deny, warn, audit] = LIMITS.map(Some);
    one_of([deny, warn, audit, None], |limit| limit.map_or("unjudged", Action::label))
}
