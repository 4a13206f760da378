//! `since`: how long ago a time is.

use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, json_schema};
use serde::{Deserialize, Serialize};

use super::checker::{Checker, Issue, Segment};
use super::shapes::{Text, text_shape};
use super::{Around, Facts, Operand, Truth, Word};
use crate::model::{Json, parse_rfc3339};

/// How long ago a time is. Only rules that never reject can ask: the answer changes without a write.
// Velero stops waiting for the plugins of a backup 4 hours after status.startTimestamp
// (`defaultItemOperationTimeout`), unless its controller does not run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Elapsed {
    /// The time.
    pub since: Operand,
    /// It is longer ago than this, for example 4h or 1h30m.
    pub more_than: Span,
}

/// A positive number of seconds, written as in Go: `4h`, `1h30m`, `45s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(i64);

/// The units of a span, in seconds.
const UNITS: [(char, i64); 3] = [('h', 3600), ('m', 60), ('s', 1)];

impl Span {
    /// Its length in seconds.
    pub const fn seconds(self) -> i64 {
        self.0
    }
}

impl Word for Elapsed {
    const KEYS: &'static [&'static str] = &["since"];
    const TESTS: &'static [&'static str] = &["moreThan"];

    fn check(&self, checker: &mut Checker) {
        self.since.check("since", checker);
        checker.at(Segment::Key("since"), |checker| {
            checker.add(Issue::Clock);
            checker.add(Issue::Write);
        });
    }

    fn ask(&self, facts: &Facts<'_, '_>) -> Truth {
        let time = facts.value(&self.since.0).and_then(Json::as_str).and_then(parse_rfc3339);
        let elapsed = facts.now.zip(time).map(|(now, time)| now.saturating_sub(time));
        Truth::of(elapsed.map(|elapsed| elapsed > self.more_than.0))
    }

    fn words(&self, _: Around, negated: bool) -> String {
        let than = if negated { "at most" } else { "more than" };
        format!("{} is {than} {} ago", self.since.0, self.more_than)
    }

    fn is_about_element(&self) -> bool {
        self.since.0.is_member()
    }
}

impl FromStr for Span {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = "this must be a duration in hours, minutes and seconds: 4h, 1h30m or 45s";
        let (mut rest, mut seconds) = (text, 0);
        for (unit, length) in UNITS {
            let Some((digits, after)) = rest.split_once(unit) else { continue };
            if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(error);
            }
            seconds += i64::from(digits.parse::<u32>().map_err(|_| error)?) * length;
            rest = after;
        }
        if rest.is_empty() && seconds > 0 { Ok(Self(seconds)) } else { Err(error) }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        for (unit, length) in UNITS {
            if rest >= length {
                write!(formatter, "{}{unit}", rest / length)?;
                rest %= length;
            }
        }
        Ok(())
    }
}

impl Text for Span {
    const CHECK: &'static str = "span";

    fn schema() -> Schema {
        json_schema!({
            "description": "Hours, minutes and seconds, for example 4h, 1h30m or 45s.",
            "type": "string",
            "pattern": "^([0-9]+h)?([0-9]+m)?([0-9]+s)?$",
        })
    }
}
text_shape!(Span);
