//! `length`: the number of items in a list.

use std::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::checker::{Checker, Segment};
use super::{AnyPointer, Around, Facts, Formula, Layout, Question, Sides, Truth, Word};
use crate::model::Json;

/// The number of items in a list. An absent list has none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Length {
    /// The list.
    pub length: AnyPointer,
    /// The least number of items.
    pub at_least: Option<usize>,
    /// The largest number of items.
    pub at_most: Option<usize>,
}

impl Length {
    /// The admissible lengths.
    pub fn bounds(&self) -> RangeInclusive<usize> {
        self.at_least.unwrap_or(0)..=self.at_most.unwrap_or(usize::MAX)
    }
}

impl Word for Length {
    const KEYS: &'static [&'static str] = &["length"];
    const TESTS: &'static [&'static str] = &["atLeast", "atMost"];

    fn check(&self, checker: &mut Checker) {
        checker.at(Segment::Key("length"), |checker| match (self.at_least, self.at_most) {
            (None, None) => checker.error("a length needs \"atLeast\" or \"atMost\"", None),
            (Some(least), Some(most)) if least > most => {
                checker.error("no length is at least and at most this", None);
            }
            _ => {}
        });
    }

    fn ask(&self, facts: &Facts<'_, '_>) -> Truth {
        let items = facts.at(&self.length).and_then(Json::as_array);
        Truth::of(Some(self.bounds().contains(&items.map_or(0, <[Json<'_>]>::len))))
    }

    fn words(&self, _: Around, negated: bool) -> String {
        let has = match (self.at_least, self.at_most, negated) {
            (least, None, false) => format!("has at least {}", least.unwrap_or_default()),
            (least, None, true) => format!("has fewer than {}", least.unwrap_or_default()),
            (None | Some(0), Some(most), false) => format!("has at most {most}"),
            (None | Some(0), Some(most), true) => format!("has more than {most}"),
            (Some(least), Some(most), false) => format!("has {least} to {most}"),
            (Some(least), Some(most), true) => format!("does not have {least} to {most}"),
        };
        format!("{} {has} items", self.length.field())
    }

    fn sides(&self, _: Layout<'_>) -> Sides {
        let at_least = |least: usize| match least {
            0 => Formula::ALWAYS,
            least => Question::Longer((*self.length).clone(), least).into(),
        };
        let most = self.at_most.and_then(|most| most.checked_add(1));
        let fits = [at_least(self.at_least.unwrap_or(0)), !most.map_or(Formula::NEVER, at_least)];
        Sides::of(Formula::all(fits))
    }
}
