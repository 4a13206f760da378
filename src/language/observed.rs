//! `observed`: how the object's own `observedGeneration` relates to `metadata.generation`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check::Check;
use super::{OneOrMany, Word};

/// How `observedGeneration` relates to `metadata.generation`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ObservedGeneration {
    /// observedGeneration is behind metadata.generation, current, or ahead of it.
    pub observed: OneOrMany<Observed>,
}

/// How the generation that a controller has seen relates to the newest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub enum Observed {
    /// It is older.
    Behind,
    /// It is the newest.
    Current,
    /// It does not exist yet.
    Ahead,
}

impl Word for ObservedGeneration {
    const KEYS: &'static [&'static str] = &["observed"];
    const TESTS: &'static [&'static str] = &[];
    const OF_ELEMENT: &'static [&'static str] = &[];

    fn check(&self, _: &mut Check<'_>) {}
}

impl Observed {
    /// As documents spell it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Behind => "behind",
            Self::Current => "current",
            Self::Ahead => "ahead",
        }
    }
}
