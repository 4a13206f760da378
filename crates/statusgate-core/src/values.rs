//! Parsers of the values of arguments that several commands have: durations and names.

use std::time::Duration;

use jiff::SignedDuration;

/// Reads a duration of zero or more: `15s`, `2m`, `500ms`.
///
/// # Errors
/// Any other text.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is not a duration such as 15s, 2m or 500ms");
    let duration: SignedDuration = text.parse().map_err(|_| wrong())?;
    Duration::try_from(duration).map_err(|_| wrong())
}

/// Reads a duration of more than zero.
///
/// # Errors
/// Any other text, and zero.
pub fn positive_duration(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("the duration must be more than zero".to_owned()),
        duration => Ok(duration),
    }
}

/// Reads the name of a namespace.
///
/// It cannot be empty: an unset variable in a script would otherwise select all namespaces.
///
/// # Errors
/// A text that is no label of DNS in small letters.
pub fn namespace(text: &str) -> Result<String, String> {
    if is_label(text) && !text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Ok(text.to_owned())
    } else {
        Err("a namespace consists of a-z, 0-9 and inner -, with at most 63 characters".to_owned())
    }
}

/// Reads a DNS name (RFC 1123), optionally with a leading `*.`.
///
/// # Errors
/// Any other text.
pub fn dns_name(text: &str) -> Result<String, String> {
    let labels = text.strip_prefix("*.").unwrap_or(text);
    if text.len() <= 253 && labels.split('.').all(is_label) {
        Ok(text.to_owned())
    } else {
        Err(format!("{text:?} is not a DNS name"))
    }
}

/// A DNS label in any case (RFC 1123).
fn is_label(text: &str) -> bool {
    text.len() <= 63
        && !text.is_empty()
        && !text.starts_with('-')
        && !text.ends_with('-')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_need_units() {
        assert_eq!(duration("15s"), Ok(Duration::from_secs(15)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("0s"), Ok(Duration::ZERO));
        for wrong in ["", "15", "-1s", "soon"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
        assert!(positive_duration("0s").is_err());
    }

    #[test]
    fn a_namespace_is_a_dns_label() {
        for good in ["a", "kube-system", "0", &"a".repeat(63)] {
            assert_eq!(namespace(good).as_deref(), Ok(good));
        }
        for bad in ["", " ", "-a", "a-", "A", "a.b", "a/b", "a b", "a%2Fb", "é", &"a".repeat(64)] {
            assert!(namespace(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_dns_name_consists_of_labels() {
        for good in ["gate", "a.b-c.svc", "*.example.com", "Gate.Example", "1.a"] {
            assert_eq!(dns_name(good).as_deref(), Ok(good));
        }
        let long = "a".repeat(64);
        for bad in ["", "bad name", "a..b", "-a", "a-", "a.", "*", "a.*.b", "a_b", "ä", &long] {
            assert!(dns_name(bad).is_err(), "{bad}");
        }
    }
}
