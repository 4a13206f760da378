//! Evidence and user text in messages.

use crate::language::{Facts, Predicate};

pub(crate) use crate::language::quoted;

/// The message of a violated rule, with the values that the rule leaves open: `Ready is True although a
/// condition that it summarizes has a bad status: condition NodeHealthy is False`.
pub(super) fn explained(message: &str, when: &Predicate, facts: &Facts<'_, '_>) -> String {
    // A predicate may read a whole list, which takes too long for each element of a long one.
    let because = match facts.answers {
        None => facts.because_open(when),
        Some(_) => String::new(),
    };
    if because.is_empty() { message.to_owned() } else { format!("{message}: {because}") }
}

/// A member name from a user as part of a field: quoted, but without the quotes.
pub(crate) fn escaped(name: &str) -> String {
    let quoted = quoted(name);
    let inner = quoted.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    inner.unwrap_or(&quoted).to_owned()
}
