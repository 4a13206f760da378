//! Checks of single values: presence, type, enum, format.

use std::sync::LazyLock;

use regex::Regex;

use crate::language::{Scalar, is_one_of};
use crate::model::{GO_ZERO_TIME, Json, parse_rfc3339};
use crate::policy::{Check, FieldType, Format};
use crate::source::tree::near;

use super::Cause;
use super::because::quoted;

/// The first violation of a value, if any.
pub(crate) fn violation(check: &Check, value: Option<&Json<'_>>) -> Option<(Cause, String)> {
    let null = value.is_some_and(Json::is_null);
    let Some(value) = value.filter(|value| !null && !is_unset(check, value)) else {
        return if check.required {
            Some((Cause::Required, "is required".to_owned()))
        } else if null && !check.nullable {
            Some((Cause::TypeInvalid, "must not be null".to_owned()))
        } else {
            None
        };
    };
    if check.forbidden {
        return (!value.is_empty()).then(|| (Cause::Forbidden, "must not be present".to_owned()));
    }
    if let Some(kind) = check.kind
        && !is_of(value, kind)
    {
        let found = match kind {
            FieldType::String => return Some((Cause::TypeInvalid, not_a_string(value))),
            FieldType::Integer if value.as_i64().is_some() => {
                "has a decimal point or an exponent".to_owned()
            }
            FieldType::Integer if is_whole(value) => "does not fit in 64 bits".to_owned(),
            _ => format!("is {}", value.kind()),
        };
        return Some((Cause::TypeInvalid, format!("must be {kind}, it {found}")));
    }
    if !check.values.is_empty() && !is_one_of(value, &check.values) {
        return Some((Cause::NotSupported, not_in_enum(value, &check.values)));
    }
    match value {
        Json::String(text) => text_violation(check, text),
        Json::Number(number) => number_violation(check, number.as_f64()?),
        _ => None,
    }
}

/// Whether a value is an empty text that counts as absent.
fn is_unset(check: &Check, value: &Json<'_>) -> bool {
    check.empty_is_absent && matches!(value, Json::String(text) if text.is_empty())
}

/// The message about a value that must be a string. YAML reads an unquoted `True` or `5` as another type.
pub(super) fn not_a_string(value: &Json<'_>) -> String {
    match value {
        Json::Bool(value) => format!("must be a string, it is the boolean {value} (quote it)"),
        Json::Number(number) => format!("must be a string, it is the number {number} (quote it)"),
        other => format!("must be a string, it is {}", other.kind()),
    }
}

/// Whether a present value satisfies a check.
pub fn fits(check: &Check, value: &Json<'_>) -> bool {
    violation(check, Some(value)).is_none()
}

fn is_of(value: &Json<'_>, kind: FieldType) -> bool {
    match kind {
        FieldType::String => matches!(value, Json::String(_)),
        // JSON Schema accepts 3.0, but Go clients cannot decode it as int64.
        FieldType::Integer => value.as_int64().is_some(),
        FieldType::Number => matches!(value, Json::Number(_)),
        FieldType::Boolean => matches!(value, Json::Bool(_)),
        FieldType::Object => matches!(value, Json::Object(_) | Json::Deep | Json::Large(_)),
        FieldType::Array => matches!(value, Json::Array(_) | Json::Deep | Json::Large(_)),
    }
}

/// A number without a fraction, of any size.
fn is_whole(value: &Json<'_>) -> bool {
    matches!(value, Json::Number(number) if number.as_f64().is_some_and(|number| number.fract() == 0.0))
}

fn text_violation(check: &Check, text: &str) -> Option<(Cause, String)> {
    if let Some(least) = check.min_length
        && text.chars().take(least).count() < least
    {
        return Some(if text.is_empty() {
            (Cause::Required, "must not be empty".to_owned())
        } else {
            (Cause::Invalid, format!("must have at least {least} characters"))
        });
    }
    // A string has at most as many characters as bytes, so only long strings are counted.
    if let Some(most) = check.max_length
        && text.len() > most
        && text.chars().nth(most).is_some()
    {
        return Some((Cause::TooLong, format!("must have at most {most} characters")));
    }
    if let Some(most) = check.max_bytes
        && text.len() > most
    {
        return Some((Cause::TooLong, format!("must have at most {most} bytes")));
    }
    if let Some(pattern) = &check.pattern
        && !pattern.is_match(text)
    {
        let (found, pattern) = (quoted(text), pattern.as_str());
        let message = match &check.message {
            Some(words) => format!("{found} {words} (pattern '{pattern}')"),
            None => format!("{found} does not match '{pattern}'"),
        };
        return Some((Cause::Invalid, message));
    }
    match check.format {
        Some(Format::DateTime) => match parse_rfc3339(text) {
            None => {
                let message = format!("{} is not an RFC 3339 time", quoted(text));
                Some((Cause::Invalid, message))
            }
            Some(GO_ZERO_TIME) if check.required => {
                Some((Cause::Required, "is the zero time, which means not set".to_owned()))
            }
            Some(_) => None,
        },
        Some(Format::Quantity) if !is_quantity(text) => {
            Some((Cause::Invalid, format!("{} is not a quantity", quoted(text))))
        }
        Some(Format::QualifiedName) if !is_qualified_name(text) => {
            let message = format!(
                "{} is not a name of at most 63 letters, digits, '-', '_' or '.', \
                 with an optional DNS subdomain and a slash before it",
                quoted(text)
            );
            Some((Cause::Invalid, message))
        }
        _ => None,
    }
}

fn number_violation(check: &Check, number: f64) -> Option<(Cause, String)> {
    let below = check.minimum.filter(|least| number < *least);
    let above = check.maximum.filter(|most| number > *most);
    let message = below.map(|least| format!("must be at least {least}"));
    let message = message.or_else(|| above.map(|most| format!("must be at most {most}")))?;
    Some((Cause::Invalid, message))
}

fn not_in_enum(found: &Json<'_>, known: &[Scalar]) -> String {
    let texts: Option<Vec<&str>> = known.iter().map(|value| value.value().as_str()).collect();
    match (found, texts) {
        (Json::String(found), Some(texts)) => unsupported(found, texts.into_iter()),
        (Json::String(found), None) => not_among(&quoted(found), known.iter().map(as_json)),
        (odd, _) => not_among(&plain(odd), known.iter().map(as_json)),
    }
}

fn as_json(value: &Scalar) -> String {
    value.value().as_str().map_or_else(|| value.value().to_string(), quoted)
}

/// `Unsupported value: "x": supported values: "Ready", …`, as the API server's own enum errors. A similar
/// value comes first.
pub(crate) fn unsupported<'v>(found: &str, known: impl Iterator<Item = &'v str>) -> String {
    let mut known: Vec<&str> = known.collect();
    // Comparing two texts takes the product of their lengths.
    let nearest = (found.len() <= MAX_LISTED).then(|| near(found, known.iter().copied())).flatten();
    let Some(at) = known.iter().position(|name| Some(*name) == nearest) else {
        return not_among(&quoted(found), known.into_iter().map(quoted));
    };
    known[..=at].rotate_right(1);
    let (found, nearest) = (quoted(found), quoted(known[0]));
    format!(
        "Unsupported value: {found}: did you mean {nearest}? Supported values: {}",
        list(known.into_iter().map(quoted))
    )
}

fn not_among(found: &str, known: impl Iterator<Item = String>) -> String {
    format!("Unsupported value: {found}: supported values: {}", list(known))
}

/// How many bytes of supported values a message has: clients cut long messages.
const MAX_LISTED: usize = 128;

/// The first values, and the number of the others.
fn list(mut known: impl Iterator<Item = String>) -> String {
    let mut text = known.next().unwrap_or_default();
    while let Some(value) = known.next() {
        if text.len() + value.len() > MAX_LISTED {
            return format!("{text} and {} more", known.count() + 1);
        }
        text.push_str(", ");
        text.push_str(&value);
    }
    text
}

/// A value that is not a string, as in the API server's errors; for a large one its kind.
fn plain(value: &Json<'_>) -> String {
    match value {
        Json::Number(number) => number.to_string(),
        Json::Bool(value) => value.to_string(),
        other => other.kind().to_owned(),
    }
}

/// The grammar of `resource.Quantity`: a sign, digits with at most one point, and a binary suffix, a
/// decimal suffix or an exponent.
fn is_quantity(text: &str) -> bool {
    static QUANTITY: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$")
            .ok()
    });
    QUANTITY.as_ref().is_some_and(|quantity| quantity.is_match(text))
}

/// apimachinery's `IsQualifiedName`.
fn is_qualified_name(text: &str) -> bool {
    static NAME: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let label = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
        let name = "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?";
        Regex::new(&format!(r"^({label}(\.{label})*/)?{name}$")).ok()
    });
    let prefix_fits = text.find('/').is_none_or(|length| length <= 253);
    prefix_fits && NAME.as_ref().is_some_and(|name| name.is_match(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_other_types_are_reported_as_by_the_api_server() {
        let found = |value| not_in_enum(&value, &["x".into()]);
        assert_eq!(found(Json::Number(5.into())), "Unsupported value: 5: supported values: \"x\"");
        assert_eq!(found(Json::Bool(true)), "Unsupported value: true: supported values: \"x\"");
        assert_eq!(
            found(Json::Deep),
            "Unsupported value: a deeply nested value: supported values: \"x\""
        );
    }

    #[test]
    fn a_similar_value_is_first_and_values_beyond_the_limit_are_counted() {
        let names: Vec<String> = (0..22).map(|number| format!("Phase{number:02}Name")).collect();
        assert_eq!(
            unsupported("phase17name", names.iter().map(String::as_str)),
            "Unsupported value: \"phase17name\": did you mean \"Phase17Name\"? Supported values: \
             \"Phase17Name\", \"Phase00Name\", \"Phase01Name\", \"Phase02Name\", \"Phase03Name\", \
             \"Phase04Name\", \"Phase05Name\", \"Phase06Name\" and 14 more"
        );
        let long = "x".repeat(100_000);
        let message = unsupported(&long, [&*(long.clone() + "y")].into_iter());
        assert!(
            message.starts_with("Unsupported value: \"xxx") && message.len() < 300,
            "{message}"
        );
    }

    #[test]
    fn an_integer_is_a_number_that_go_decodes_as_int64() {
        use crate::policy::{PolicySet, Source};
        let text = "apiVersion: statusgate.dev/v1alpha1\nkind: StatusConvention\nmetadata: {name: own}\n\
                    spec: {fields: [{path: /status/a, type: integer}]}\n";
        let set = PolicySet::compile(&[Source::new("a.yaml", text)]).unwrap();
        let check = &set.conventions()["own"].fields[0].check;
        let found = |text: &str| {
            violation(check, Some(&Json::parse(text).unwrap())).map(|(_, message)| message)
        };
        for good in ["3", "0", "-0", "-9223372036854775808"] {
            assert_eq!(found(good), None, "{good}");
        }
        let decimal = "must be an integer, it has a decimal point or an exponent";
        for (odd, message) in [
            ("3.0", decimal),
            ("3e0", decimal),
            ("3.5", "must be an integer, it is a number"),
            ("9223372036854775808", "must be an integer, it does not fit in 64 bits"),
        ] {
            assert_eq!(found(odd).as_deref(), Some(message), "{odd}");
        }
    }

    #[test]
    fn an_enum_has_strings_integers_or_booleans() {
        let numbers = ["0", "1", "2"].map(|number| serde_json::from_str(number).unwrap());
        let found = |text: &str| not_in_enum(&Json::parse(text).unwrap(), &numbers);
        for (text, quoted) in [("3", "3"), ("true", "true"), ("\"1\"", "\"1\"")] {
            let message = format!("Unsupported value: {quoted}: supported values: 0, 1, 2");
            assert_eq!(found(text), message);
            assert!(!is_one_of(&Json::parse(text).unwrap(), &numbers));
        }
        // As the API server, which compares an enum after it has converted the value.
        assert!(is_one_of(&Json::parse("1.0").unwrap(), &numbers));
    }

    #[test]
    fn qualified_names_follow_apimachinery() {
        let long = format!("{}/{}", "a.".repeat(126) + "a", "B".repeat(63));
        for good in ["Ready", "a", "ACK.Terminal", "Pod_Ready", "x.io/Ready", &long] {
            assert!(is_qualified_name(good), "{good}");
        }
        let name = "A".repeat(64);
        for bad in ["", "/Ready", "a/b/c", "-a", "a-", "X.io/Ready", "a../b", "a/", "a b", &name] {
            assert!(!is_qualified_name(bad), "{bad}");
        }
    }

    #[test]
    fn quantities_follow_apimachinery() {
        for good in ["20Gi", "142500m", "142.50", "+1", "-1.5k", "1e3", "1E-3", ".5", "5.", "0"] {
            assert!(is_quantity(good), "{good}");
        }
        for bad in ["", "Gi", "1.2.3", "1 Gi", "1gi", "1e", "0x1", "--1", ".", "1Gii"] {
            assert!(!is_quantity(bad), "{bad}");
        }
    }
}
