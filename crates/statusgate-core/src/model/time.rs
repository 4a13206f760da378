//! Times as in Kubernetes: strict RFC 3339, compared by seconds.

use jiff::civil::DateTime;

/// The zero value of Go's `time.Time`, `0001-01-01T00:00:00Z`, in Unix seconds. It is the value of an
/// unset `metav1.Time`; apimachinery's `ValidateConditions` treats it as missing.
pub const GO_ZERO_TIME: i64 = -62_135_596_800;

/// Reads a time that every client can decode (upper-case `T` and `Z`, two-digit fields, a zone
/// within a day), as Unix seconds.
///
/// The API server's `date-time` check also accepts `2024-01-01t00:00:00z` and `…+99:99`, but then no
/// Go client can decode the `metav1.Time` and read the object. Both reject leap seconds and
/// `24:00:00`, and both accept a comma before the fraction. The result has seconds, because
/// `metav1.Time` is not finer and because jiff's timestamps end a day before Go's.
pub fn parse_rfc3339(text: &str) -> Option<i64> {
    let (date, zone) = text.split_at_checked(DATE_SHAPE.len())?;
    let fits = date.bytes().zip(DATE_SHAPE).all(|(byte, shape)| match shape {
        b'0' => byte.is_ascii_digit(),
        literal => byte == *literal,
    });
    // jiff accepts second 60 as 59; Go rejects it.
    if !fits || date.ends_with("60") {
        return None;
    }
    let offset = zone_offset(zone)?;
    let date: DateTime = date.parse().ok()?;
    Some(date.duration_since(DateTime::constant(1970, 1, 1, 0, 0, 0, 0)).as_secs() - offset)
}

/// Whether two texts are the same second. Go rewrites times as UTC seconds, so `…00.123Z` and `…00Z`,
/// or a time in `+01:00` and in UTC, are not a change. Invalid times are compared as texts.
pub fn same_instant(one: &str, other: &str) -> bool {
    one == other
        || matches!(
            (parse_rfc3339(one), parse_rfc3339(other)),
            (Some(one), Some(other)) if one == other
        )
}

/// How many seconds a writer's time may lie before the time at which the webhook judges the write, at
/// least. The writer takes its time before it sends the request, and both times lose their fractions.
const WRITE_SECONDS: i64 = 2;

/// Whether a stored time lies before the write that is judged now, so that keeping it is visible. Times
/// have a resolution of one second: a change in the same second keeps the text although its writer set the
/// time. A time that is later, because the writer's clock is ahead, shows nothing either.
pub const fn is_before_write(stored: i64, now: i64) -> bool {
    stored < now.saturating_sub(WRITE_SECONDS)
}

const DATE_SHAPE: &[u8; 19] = b"0000-00-00T00:00:00";

/// The offset in seconds of an optional fraction and a zone (`.5Z`, `+01:00`).
fn zone_offset(text: &str) -> Option<i64> {
    let zone = match text.strip_prefix(['.', ',']) {
        None => text,
        Some(fraction) => {
            let zone = fraction.trim_start_matches(|digit: char| digit.is_ascii_digit());
            if zone.len() == fraction.len() {
                return None;
            }
            zone
        }
    };
    let two = |high: u8, low: u8, limit: i64| {
        let number = i64::from(high.wrapping_sub(b'0')) * 10 + i64::from(low.wrapping_sub(b'0'));
        (high.is_ascii_digit() && low.is_ascii_digit() && number <= limit).then_some(number)
    };
    match *zone.as_bytes() {
        [b'Z'] => Some(0),
        [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] => {
            let east = two(h1, h2, 23)? * 3600 + two(m1, m2, 59)? * 60;
            Some(if sign == b'+' { east } else { -east })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_up_to_two_seconds_before_a_write_may_be_that_of_the_write() {
        for (stored, is_before) in
            [(i64::MIN, true), (97, true), (98, false), (100, false), (105, false)]
        {
            assert_eq!(is_before_write(stored, 100), is_before, "{stored}");
        }
    }

    #[test]
    fn only_times_that_every_client_decodes_are_valid() {
        for good in [
            "2024-01-01T00:00:00Z",
            "2024-01-01T00:00:00.123456789Z",
            "2024-02-29T23:59:59+01:00",
            "1970-01-01T00:00:00Z",
            "9999-12-31T23:59:59Z",
            "2024-01-01T00:00:00-00:00",
            "2024-01-01T00:00:00,5Z",
        ] {
            assert!(parse_rfc3339(good).is_some(), "{good}");
        }
        for bad in [
            "",
            "2024-01-01",
            "2024-01-01t00:00:00z",
            "2024-01-01T00:00:00",
            "2024-01-01T0:00:00Z",
            "2024-01-01T00:00:60Z",
            "2024-01-01T24:00:00Z",
            "2024-01-01T00:00:00+99:99",
            "2024-01-01T00:00:00x5Z",
            "2024-01-01T00:00:00.Z",
            "2024-01-01T00:00:00ZT",
            "2023-02-29T00:00:00Z",
            "2024-13-01T00:00:00Z",
            " 2024-01-01T00:00:00Z",
        ] {
            assert!(parse_rfc3339(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn seconds_are_unix_seconds_in_utc() {
        assert_eq!(parse_rfc3339("1970-01-01T00:00:01Z"), Some(1));
        assert_eq!(parse_rfc3339("1970-01-01T01:00:00+01:00"), Some(0));
        assert_eq!(parse_rfc3339("0001-01-01T00:00:00Z"), Some(GO_ZERO_TIME));
    }

    #[test]
    fn fractions_and_zones_are_not_a_change() {
        assert!(same_instant("2024-01-01T00:00:00.9Z", "2024-01-01T00:00:00Z"));
        assert!(same_instant("2024-01-01T01:00:00+01:00", "2024-01-01T00:00:00Z"));
        assert!(!same_instant("2024-01-01T00:00:01Z", "2024-01-01T00:00:00Z"));
        assert!(!same_instant("soon", "later"));
    }
}
