//! The time of a command: the clock, or `--now`.

use jiff::Timestamp;

pub(super) use statusgate_server::now as clock;

/// The flag that makes a command's output independent of the clock.
#[derive(Debug, clap::Args)]
pub(super) struct Now {
    /// The time of the decision (RFC 3339). Default: the clock.
    #[arg(long = "now", value_name = "TIME", value_parser = parse)]
    time: Option<Timestamp>,
}

impl Now {
    /// The time of the flag.
    pub(super) const fn given(&self) -> Option<Timestamp> {
        self.time
    }

    /// The time of the flag, else of the clock.
    pub(super) fn get(&self) -> Timestamp {
        self.time.unwrap_or_else(clock)
    }
}

/// How long ago a time is, in its largest unit, as kubectl prints it.
pub(super) fn age(time: i64, now: i64) -> String {
    let seconds = now.saturating_sub(time).max(0);
    let units = [("y", 31_557_600), ("d", 86_400), ("h", 3_600), ("m", 60)];
    let (unit, size) = units.into_iter().find(|(_, size)| seconds >= *size).unwrap_or(("s", 1));
    format!("{}{unit}", seconds / size)
}

/// Reads a time in RFC 3339.
pub(super) fn parse(text: &str) -> Result<Timestamp, String> {
    text.parse().map_err(|_| format!("{text:?} is not a time such as 2024-06-01T12:00:00Z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_has_its_largest_unit() {
        let ages = [-5, 0, 59, 60, 3_599, 3_600, 86_399, 86_400, 31_557_599, 31_557_600];
        let ages = ages.map(|seconds| age(1000, 1000 + seconds));
        assert_eq!(ages, ["0s", "0s", "59s", "1m", "59m", "1h", "23h", "1d", "365d", "1y"]);
    }

    #[test]
    fn an_invalid_time_is_reported_with_an_example() {
        assert_eq!(parse("1970-01-01T01:00:00+01:00"), Ok(Timestamp::UNIX_EPOCH));
        assert_eq!(
            parse("tomorrow").unwrap_err(),
            "\"tomorrow\" is not a time such as 2024-06-01T12:00:00Z"
        );
    }
}
