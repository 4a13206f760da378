//! Times as people write them: RFC 3339.

use jiff::Timestamp;

/// Reads a time.
pub(super) fn parse(text: &str) -> Result<Timestamp, String> {
    text.parse().map_err(|_| format!("{text:?} is no time such as 2024-06-01T12:00:00Z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_other_texts_are_told_in_our_words() {
        assert_eq!(parse("1970-01-01T01:00:00+01:00"), Ok(Timestamp::UNIX_EPOCH));
        assert_eq!(
            parse("tomorrow").unwrap_err(),
            "\"tomorrow\" is no time such as 2024-06-01T12:00:00Z"
        );
    }
}
