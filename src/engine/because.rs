//! User text in messages.

pub(crate) use crate::language::quoted;

/// A member name from a user as part of a field: quoted, but without the quotes.
pub(crate) fn escaped(name: &str) -> String {
    let quoted = quoted(name);
    let inner = quoted.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    inner.unwrap_or(&quoted).to_owned()
}
