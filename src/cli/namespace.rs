//! Namespaces as people write them on the command line.

/// Reads the name of a namespace: a DNS label, as the API server wants it.
///
/// An empty one, from a variable of a script that is not set, would otherwise mean all namespaces, or
/// none.
///
/// # Errors
/// Text that names no namespace.
pub(super) fn parse(text: &str) -> Result<String, String> {
    let alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let inside = text.bytes().all(|byte| alphanumeric(byte) || byte == b'-');
    let ends = !text.is_empty() && !text.starts_with('-') && !text.ends_with('-');
    if inside && ends && text.len() <= LONGEST {
        Ok(text.to_owned())
    } else {
        Err("a namespace has a-z, 0-9 and - inside, and 63 characters at most".to_owned())
    }
}

/// Of a DNS label, RFC 1123.
const LONGEST: usize = 63;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_is_a_dns_label_and_never_empty() {
        for good in ["a", "kube-system", "0", &"a".repeat(63)] {
            assert_eq!(parse(good).as_deref(), Ok(good));
        }
        for bad in ["", " ", "-a", "a-", "A", "a.b", "a/b", "a b", "a%2Fb", "é", &"a".repeat(64)] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
    }
}
