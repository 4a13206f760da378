//! `polarity`: which status of a condition is the good one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check::Check;
use super::{OneOrMany, Word};
use crate::model::ConditionStatus;

/// The polarity of the element's type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ElementPolarity {
    /// The polarity of the element's type is one of these.
    pub polarity: OneOrMany<Polarity>,
}

/// Which status of a condition is the good one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub enum Polarity {
    /// True is good.
    Positive,
    /// True is bad.
    Negative,
    /// Neither is.
    Neutral,
    /// The convention does not say. No document can ask for this.
    #[default]
    #[serde(skip)]
    Unknown,
}

impl Word for ElementPolarity {
    const KEYS: &'static [&'static str] = &["polarity"];
    const TESTS: &'static [&'static str] = &[];
    const OF_ELEMENT: &'static [&'static str] = &["polarity"];

    fn check(&self, _: &mut Check<'_>) {}
}

impl Polarity {
    /// As documents and tables spell it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Positive => "positive",
            Self::Negative => "negative",
            Self::Neutral => "neutral",
            Self::Unknown => "unknown",
        }
    }

    /// The good status. For a type of unknown polarity, True.
    #[must_use]
    pub const fn good(self) -> ConditionStatus {
        match self {
            Self::Negative => ConditionStatus::False,
            Self::Positive | Self::Neutral | Self::Unknown => ConditionStatus::True,
        }
    }

    /// The polarity of an entry of `spec.readinessGates`; positive by default.
    #[must_use]
    pub fn of_gate(text: Option<&str>) -> Self {
        if text == Some("Negative") { Self::Negative } else { Self::Positive }
    }
}
