//! `length`: the number of items in a list.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check::{Check, Step};
use super::{AnyPointer, Word};

/// The number of items in a list. An absent list has none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Length {
    /// The list.
    pub length: AnyPointer,
    /// The least number of items.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_least: Option<usize>,
    /// The largest number of items.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_most: Option<usize>,
}

impl Word for Length {
    const KEYS: &'static [&'static str] = &["length"];
    const TESTS: &'static [&'static str] = &["atLeast", "atMost"];
    const OF_ELEMENT: &'static [&'static str] = &[];

    fn check(&self, check: &mut Check<'_>) {
        check.at(Step::Key("length"), |check| match (self.at_least, self.at_most) {
            (None, None) => check.error("a length needs \"atLeast\" or \"atMost\"", None),
            (Some(least), Some(most)) if least > most => {
                check.error("no length is at least and at most this", None);
            }
            _ => {}
        });
    }
}
