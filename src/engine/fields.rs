//! Checks of single fields: presence, type, values, form.

use crate::model::{GO_ZERO_TIME, Json, parse_rfc3339};
use crate::policy::{Check, FieldType, Format};

use super::Cause;
use super::evidence::quoted;

/// The first thing that is wrong with a value, if anything.
pub(crate) fn violation(check: &Check, value: Option<&Json<'_>>) -> Option<(Cause, String)> {
    let Some(value) = value.filter(|value| !value.is_null()) else {
        return check.required.then(|| (Cause::Required, "is required".to_owned()));
    };
    if let Some(kind) = check.kind
        && !is_of(value, kind)
    {
        return Some((Cause::TypeInvalid, format!("must be {kind}, it is {}", value.kind())));
    }
    match value {
        Json::String(text) => text_violation(check, text),
        odd if !check.values.is_empty() => {
            Some((Cause::NotSupported, unsupported(odd.kind(), check.values.iter())))
        }
        Json::Number(number) => number_violation(check, number.as_f64()?),
        _ => None,
    }
}

fn is_of(value: &Json<'_>, kind: FieldType) -> bool {
    match kind {
        FieldType::String => matches!(value, Json::String(_)),
        FieldType::Integer => value.as_i64().is_some(),
        FieldType::Number => matches!(value, Json::Number(_)),
        FieldType::Boolean => matches!(value, Json::Bool(_)),
        FieldType::Object => matches!(value, Json::Object(_) | Json::Deep),
        FieldType::Array => matches!(value, Json::Array(_) | Json::Deep),
    }
}

fn text_violation(check: &Check, text: &str) -> Option<(Cause, String)> {
    if !check.values.is_empty() && !check.values.iter().any(|known| known == text) {
        return Some((Cause::NotSupported, unsupported(text, check.values.iter())));
    }
    if let Some(least) = check.min_length
        && text.chars().take(least).count() < least
    {
        return Some(if text.is_empty() {
            (Cause::Required, "must not be empty".to_owned())
        } else {
            (Cause::Invalid, format!("must have at least {least} characters"))
        });
    }
    // Bytes are never fewer than characters: counting is only for texts that might be too long.
    if let Some(most) = check.max_length
        && text.len() > most
        && text.chars().nth(most).is_some()
    {
        return Some((Cause::TooLong, format!("must have at most {most} characters")));
    }
    if let Some(pattern) = &check.pattern
        && !pattern.is_match(text.as_bytes())
    {
        let message = format!("{} does not match '{}'", quoted(text), pattern.as_str());
        return Some((Cause::Invalid, message));
    }
    match check.format {
        Some(Format::DateTime) => match parse_rfc3339(text) {
            None => {
                let message = format!("{} is not an RFC 3339 time", quoted(text));
                Some((Cause::Invalid, message))
            }
            Some(GO_ZERO_TIME) if check.required => {
                Some((Cause::Required, "is the zero time, which means none".to_owned()))
            }
            Some(_) => None,
        },
        Some(Format::Quantity) if !is_quantity(text) => {
            Some((Cause::Invalid, format!("{} is not a quantity", quoted(text))))
        }
        _ => None,
    }
}

fn number_violation(check: &Check, number: f64) -> Option<(Cause, String)> {
    if let Some(least) = check.minimum
        && number < least
    {
        return Some((Cause::Invalid, format!("must be at least {least}")));
    }
    if let Some(most) = check.maximum
        && number > most
    {
        return Some((Cause::Invalid, format!("must be at most {most}")));
    }
    None
}

/// `Unsupported value: "ready": supported values: "Ready", …`, as the API server's own enum errors.
pub(crate) fn unsupported<'v>(
    found: &str,
    known: impl Iterator<Item = impl AsRef<str> + 'v>,
) -> String {
    let known: Vec<String> = known.map(|value| quoted(value.as_ref())).collect();
    format!("Unsupported value: {}: supported values: {}", quoted(found), known.join(", "))
}

/// `resource.Quantity`'s grammar: a sign, digits with one point at most, and a binary suffix, a
/// decimal suffix or an exponent.
fn is_quantity(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let end = unsigned.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
    let (number, suffix) = unsigned.split_at(end.unwrap_or(unsigned.len()));
    let digits = number.bytes().filter(u8::is_ascii_digit).count();
    let exponent = |rest: &str| {
        let rest = rest.strip_prefix(['+', '-']).unwrap_or(rest);
        !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit())
    };
    digits > 0
        && number.matches('.').count() <= 1
        && match suffix {
            "" | "Ki" | "Mi" | "Gi" | "Ti" | "Pi" | "Ei" => true,
            "n" | "u" | "m" | "k" | "M" | "G" | "T" | "P" | "E" => true,
            _ => suffix.strip_prefix(['e', 'E']).is_some_and(exponent),
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_what_go_reads() {
        for good in ["20Gi", "142500m", "142.50", "+1", "-1.5k", "1e3", "1E-3", ".5", "5.", "0"] {
            assert!(is_quantity(good), "{good}");
        }
        for bad in ["", "Gi", "1.2.3", "1 Gi", "1gi", "1e", "0x1", "--1", ".", "1Gii"] {
            assert!(!is_quantity(bad), "{bad}");
        }
    }
}
