//! Durations as people write them: `15s`, `2m`, `500ms`.

use std::time::Duration;

use jiff::SignedDuration;

/// Reads a duration of zero or more.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is not a duration such as 15s, 2m or 500ms");
    let duration: SignedDuration = text.parse().map_err(|_| wrong())?;
    Duration::try_from(duration).map_err(|_| wrong())
}

/// Reads a duration of more than zero.
pub(super) fn parse_positive(text: &str) -> Result<Duration, String> {
    match parse(text)? {
        Duration::ZERO => Err("it must be more than zero".to_owned()),
        duration => Ok(duration),
    }
}

/// Reads an idle timeout.
pub(super) fn parse_idle(text: &str) -> Result<Duration, String> {
    let duration = parse(text)?;
    if duration < SHORTEST_IDLE {
        return Err("it must be at least 91s: API servers keep idle connections for 90 s, and a \
                    write that meets a closing connection fails"
            .to_owned());
    }
    Ok(duration)
}

/// Go's `http.DefaultTransport` keeps idle connections for 90 s, and API servers inherit that.
const SHORTEST_IDLE: Duration = Duration::from_secs(91);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_with_their_units_and_refused_without() {
        assert_eq!(parse("15s"), Ok(Duration::from_secs(15)));
        assert_eq!(parse("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(parse("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse("1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(parse("0s"), Ok(Duration::ZERO));
        for wrong in ["", "15", "-1s", "soon"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert!(parse_positive("0s").is_err());
    }

    #[test]
    fn an_idle_timeout_below_the_api_servers_is_refused_with_the_reason() {
        assert!(parse_idle("90s").unwrap_err().contains("API servers"));
        assert!(parse_idle("91s").is_ok());
    }
}
