//! How CEL writes values and names.

use serde_json::{Number, Value};

pub(super) fn is_text(value: &str) -> String {
    format!("type({value}) == type('')")
}

pub(super) fn is_in(value: &str, among: impl IntoIterator<Item = String>) -> String {
    match Vec::from_iter(among).as_slice() {
        [one] => format!("{value} == {one}"),
        several => format!("{value} in [{}]", several.join(", ")),
    }
}

pub(super) fn not_in(value: &str, among: impl IntoIterator<Item = String>) -> String {
    match Vec::from_iter(among).as_slice() {
        [one] => format!("{value} != {one}"),
        several => format!("!({value} in [{}])", several.join(", ")),
    }
}

pub(super) fn literal(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Number(value) => number(value),
        other => other.to_string(),
    }
}

/// An integer, otherwise a number with a point: CEL has no integers above 2^63 without a suffix.
pub(super) fn number(number: &Number) -> String {
    match (number.as_i64(), number.as_f64()) {
        (None, Some(float)) => format!("{float:?}"),
        _ => number.to_string(),
    }
}

pub(in crate::readers) fn quoted(text: &str) -> String {
    let escaped = text.chars().map(|character| match character {
        '\'' | '\\' => format!("\\{character}"),
        character if character.is_control() => format!("\\u{:04x}", u32::from(character)),
        character => character.to_string(),
    });
    format!("'{}'", escaped.collect::<String>())
}

/// Names that CEL reserves.
const RESERVED: [&str; 21] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "namespace",
    "null",
    "package",
    "return",
    "true",
    "var",
    "void",
    "while",
];

pub(super) fn is_identifier(name: &str) -> bool {
    let is_letter = |character: char| character == '_' || character.is_ascii_alphabetic();
    name.starts_with(is_letter)
        && name.chars().all(|character| is_letter(character) || character.is_ascii_digit())
        && !RESERVED.contains(&name)
}
