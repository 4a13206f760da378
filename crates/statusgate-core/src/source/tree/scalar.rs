//! The value of a scalar, in each dialect of YAML.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use granit_parser::Tag;

use super::Value;

/// Which YAML a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// The core schema of YAML 1.2 (section 10.3.2): in policies `no`, `on` and `y` are names.
    Core,
    /// What `kubectl` reads, which is YAML 1.1: `yes` and `on` are booleans, `0755` is octal. A
    /// timestamp is a text.
    Kubectl,
}

impl Dialect {
    /// The value of a scalar.
    ///
    /// # Errors
    /// A tag that the text does not fit, or a number that JSON does not have.
    pub(super) fn scalar(
        self,
        text: Cow<'_, str>,
        is_plain: bool,
        tag: Option<&Tag>,
    ) -> Result<Value, String> {
        let Some(tag) = tag else {
            return if is_plain { self.plain(&text) } else { Ok(Value::String(text.into_owned())) };
        };
        if is_non_specific(tag) {
            return Ok(Value::String(text.into_owned()));
        }
        match (yaml_tag(tag).as_deref(), self) {
            (Some("str"), _) => Ok(Value::String(text.into_owned())),
            (Some(kind @ ("null" | "bool" | "int" | "float" | "seq" | "map")), _) => {
                match (kind, self.plain(&text)?) {
                    ("null", _) => Ok(Value::Null),
                    ("bool", value @ Value::Bool(_))
                    | ("int", value @ Value::Integer(_))
                    | ("float", value @ Value::Float(_)) => Ok(value),
                    #[expect(clippy::cast_precision_loss, reason = "the tag asks for it")]
                    ("float", Value::Integer(value)) => Ok(Value::Float(value as f64)),
                    _ => Err(NOT_ITS_TAG.to_owned()),
                }
            }
            (Some("binary"), Self::Kubectl) => {
                let bytes = STANDARD.decode(text.split_ascii_whitespace().collect::<String>()).ok();
                let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
                text.map(Value::String).ok_or_else(|| NOT_ITS_TAG.to_owned())
            }
            (Some("timestamp"), Self::Kubectl) => Ok(Value::String(text.into_owned())),
            // `kubectl` ignores the tags of others.
            (_, Self::Kubectl) => self.scalar(text, is_plain, None),
            (_, Self::Core) => Err(UNKNOWN_TAG.to_owned()),
        }
    }

    /// Checks the tag of a list (`seq`) or mapping (`map`).
    ///
    /// # Errors
    /// A tag of something else.
    pub(super) fn collection(self, kind: &str, tag: Option<&Tag>) -> Result<(), String> {
        match tag.map(yaml_tag) {
            None => Ok(()),
            Some(Some(suffix)) if suffix == kind => Ok(()),
            Some(Some(_)) => Err(NOT_ITS_TAG.to_owned()),
            Some(None) if self == Self::Kubectl || tag.is_some_and(is_non_specific) => Ok(()),
            Some(None) => Err(UNKNOWN_TAG.to_owned()),
        }
    }

    /// The value of a scalar without quotes and tag.
    fn plain(self, text: &str) -> Result<Value, String> {
        let value = match (self, text) {
            (_, "" | "~" | "null" | "Null" | "NULL") => Some(Value::Null),
            (_, "true" | "True" | "TRUE") => Some(Value::Bool(true)),
            (_, "false" | "False" | "FALSE") => Some(Value::Bool(false)),
            (Self::Core, _) => core_number(text),
            (Self::Kubectl, _) => match kubectl_boolean(text) {
                Some(value) => Some(Value::Bool(value)),
                None => kubectl_number(text)?,
            },
        };
        Ok(value.unwrap_or_else(|| Value::String(text.to_owned())))
    }
}

const NOT_ITS_TAG: &str = "the value does not match its tag";
const UNKNOWN_TAG: &str = "this tag means nothing here";

/// The name of a tag that YAML itself defines.
fn yaml_tag(tag: &Tag) -> Option<Cow<'_, str>> {
    tag.suffix_in_namespace("tag:yaml.org,2002:")
}

/// `!`: always a string.
fn is_non_specific(tag: &Tag) -> bool {
    tag.parts() == ("", "!") || tag.parts() == ("!", "")
}

/// Numbers of the core schema.
fn core_number(text: &str) -> Option<Value> {
    let (negative, digits) = sign(text);
    if matches!(digits, ".inf" | ".Inf" | ".INF") {
        return Some(Value::Float(if negative { f64::NEG_INFINITY } else { f64::INFINITY }));
    }
    if matches!(text, ".nan" | ".NaN" | ".NAN") {
        return Some(Value::Float(f64::NAN));
    }
    for (prefix, radix) in [("0x", 16), ("0o", 8)] {
        if let Some(digits) = text.strip_prefix(prefix) {
            let good = digits.bytes().all(|byte| byte.is_ascii_alphanumeric());
            return i64::from_str_radix(digits, radix).ok().filter(|_| good).map(Value::Integer);
        }
    }
    // What Rust reads as a number beyond this (`infinity`) is a text.
    if !digits.starts_with(|letter: char| letter.is_ascii_digit() || letter == '.') {
        return None;
    }
    text.parse().map(Value::Integer).or_else(|_| text.parse().map(Value::Float)).ok()
}

/// Whether a number is negative, and the number without its sign.
fn sign(text: &str) -> (bool, &str) {
    (text.starts_with('-'), text.strip_prefix(['+', '-']).unwrap_or(text))
}

/// The booleans of `resolve.go` in go.yaml.in/yaml/v2, which kubectl uses: YAML 1.1, but in three spellings only.
fn kubectl_boolean(text: &str) -> Option<bool> {
    match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => Some(true),
        "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => Some(false),
        _ => None,
    }
}

/// The numbers of the same file. Integers that no `i64` holds are floats, as the API server reads them.
fn kubectl_number(text: &str) -> Result<Option<Value>, String> {
    let unsigned = text.trim_start_matches(['+', '-']);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return Err(format!("JSON has no number {text}"));
    }
    if !text.starts_with(|first: char| first.is_ascii_digit() || matches!(first, '+' | '-' | '.')) {
        return Ok(None);
    }
    // Go removes every `_`, except from a number that begins with the point.
    let plain = if text.starts_with('.') { text.to_owned() } else { text.replace('_', "") };
    Ok(kubectl_integer(&plain).or_else(|| kubectl_float(&plain)))
}

/// Go's `ParseInt` and `ParseUint` with the base of the prefix.
fn kubectl_integer(text: &str) -> Option<Value> {
    let (negative, digits) = sign(text);
    let second = digits.as_bytes().get(1).map(u8::to_ascii_lowercase);
    let (radix, digits) = match second.filter(|_| digits.starts_with('0')) {
        None => (10, digits),
        Some(b'x') => (16, &digits[2..]),
        Some(b'o') => (8, &digits[2..]),
        Some(b'b') => (2, &digits[2..]),
        Some(_) => (8, &digits[1..]),
    };
    let magnitude =
        i128::from_str_radix(digits, radix).ok().filter(|_| !digits.starts_with(['+', '-']))?;
    let value = if negative { -magnitude } else { magnitude };
    if let Ok(value) = i64::try_from(value) {
        return Some(Value::Integer(value));
    }
    #[expect(clippy::cast_precision_loss, reason = "the API server reads it as a float")]
    u64::try_from(value).ok().map(|value| Value::Float(value as f64))
}

/// `yamlStyleFloat` of the same file: Rust also reads words such as `infinity`.
fn kubectl_float(text: &str) -> Option<Value> {
    let value = text.parse::<f64>().ok().filter(|value| value.is_finite())?;
    let is_word =
        text.contains(|letter: char| letter.is_alphabetic() && !matches!(letter, 'e' | 'E'));
    (!is_word).then_some(Value::Float(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> String {
        format!("{:?}", Dialect::Kubectl.plain(text))
    }

    #[test]
    fn scalars_are_what_kubectl_makes_of_them() {
        // What kubectl 1.32 prints of them, with `label --local -o json`.
        for (text, expected) in [
            ("True", Value::Bool(true)),
            ("yes", Value::Bool(true)),
            ("OFF", Value::Bool(false)),
            ("n", Value::Bool(false)),
            ("NULL", Value::Null),
            ("012", Value::Integer(10)),
            ("010", Value::Integer(8)),
            ("0_1", Value::Integer(1)),
            ("0O17", Value::Integer(15)),
            ("-0x1F", Value::Integer(-31)),
            ("0x_1F", Value::Integer(31)),
            ("0B1_0", Value::Integer(2)),
            ("1_000", Value::Integer(1000)),
            ("1__0", Value::Integer(10)),
            ("1_", Value::Integer(1)),
            ("+_1", Value::Integer(1)),
            ("-9223372036854775808", Value::Integer(i64::MIN)),
            ("18446744073709551615", Value::Float(18_446_744_073_709_551_615.0)),
            ("0xFFFFFFFFFFFFFFFF", Value::Float(18_446_744_073_709_551_615.0)),
            ("08", Value::Float(8.0)),
            ("0789", Value::Float(789.0)),
            ("+.5", Value::Float(0.5)),
            ("1.", Value::Float(1.0)),
            ("1_0.5", Value::Float(10.5)),
            ("1e3", Value::Float(1000.0)),
            ("1e3_0", Value::Float(1e30)),
        ] {
            assert_eq!(plain(text), format!("{:?}", Ok::<_, String>(expected)), "{text}");
        }
        for text in [
            "tRue",
            "oN",
            "yES",
            "oFF",
            "nUll",
            "_1",
            "0x",
            "0b",
            "+-1",
            ".",
            "._5",
            ".e5",
            "-",
            "inf",
            "-nan",
            "+.nan",
            ".nAn",
            "1.20.2",
            "12:30",
            "e5",
            "1e999",
            "-1e999",
            "0x1FFFFFFFFFFFFFFFFF",
            "2001-01-01",
        ] {
            assert_eq!(plain(text), format!("Ok(String({text:?}))"), "{text}");
        }
        for text in [".inf", "-.INF", "+.Inf", ".NaN"] {
            assert_eq!(plain(text), format!("Err(\"JSON has no number {text}\")"), "{text}");
        }
    }
}
