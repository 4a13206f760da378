//! `deleting`: whether `metadata.deletionTimestamp` is set.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Word;
use super::check::Check;

/// Whether `metadata.deletionTimestamp` is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Deleting {
    /// Whether metadata.deletionTimestamp is set.
    pub deleting: bool,
}

impl Word for Deleting {
    const KEYS: &'static [&'static str] = &["deleting"];
    const TESTS: &'static [&'static str] = &[];
    const OF_ELEMENT: &'static [&'static str] = &[];

    fn check(&self, _: &mut Check<'_>) {}
}
