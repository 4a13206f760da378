//! `phase` and `oldPhase`: the phase of this write, and the stored one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check::Check;
use super::{OneOrMany, Word};

/// The phase of this write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Phase {
    /// The phase is one of these.
    pub phase: OneOrMany<String>,
}

/// The stored phase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OldPhase {
    /// The stored phase is one of these.
    pub old_phase: OneOrMany<String>,
}

impl Word for Phase {
    const KEYS: &'static [&'static str] = &["phase"];
    const TESTS: &'static [&'static str] = &[];
    const OF_ELEMENT: &'static [&'static str] = &[];

    fn check(&self, check: &mut Check<'_>) {
        check.each("phase", &self.phase, |check, name| check.phase(name));
    }
}

impl Word for OldPhase {
    const KEYS: &'static [&'static str] = &["oldPhase"];
    const TESTS: &'static [&'static str] = &[];
    const OF_ELEMENT: &'static [&'static str] = &[];

    fn check(&self, check: &mut Check<'_>) {
        check.each("oldPhase", &self.old_phase, |check, name| check.phase(name));
    }
}
