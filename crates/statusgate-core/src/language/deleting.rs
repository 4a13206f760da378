//! `deleting`: whether `metadata.deletionTimestamp` is set.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::words::not;
use super::{Around, Facts, Layout, Reasons, Sides, Truth, Word};

/// Whether `metadata.deletionTimestamp` is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Deleting {
    /// Whether metadata.deletionTimestamp is set.
    pub deleting: bool,
}

impl Word for Deleting {
    const KEYS: &'static [&'static str] = &["deleting"];

    fn ask(&self, facts: &Facts<'_, '_>) -> Truth {
        Truth::of(Some(facts.deleting() == self.deleting))
    }

    fn because(&self, facts: &Facts<'_, '_>, reasons: &mut Reasons) {
        let is = if facts.deleting() { "is" } else { "is not" };
        reasons.say(format_args!("metadata.deletionTimestamp {is} set"));
    }

    fn words(&self, _: Around, negated: bool) -> String {
        format!("the object is {}being deleted", not(self.deleting == negated))
    }

    // Health is decided before: an object that is being deleted is terminating.
    fn sides(&self, _: Layout<'_>) -> Sides {
        Sides::known(!self.deleting)
    }
}
