//! Texts of users in messages.

pub(crate) use crate::language::quoted;

/// A user's name of a member, as a part of a field: the same without the quotes.
pub(crate) fn escaped(name: &str) -> String {
    let quoted = quoted(name);
    let inner = quoted.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    inner.unwrap_or(&quoted).to_owned()
}
