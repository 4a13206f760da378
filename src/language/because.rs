//! Evidence in words: what of an object makes a predicate definitely true or false.
//!
//! Controllers copy rejection messages into conditions. A message with a time or a counter in it would
//! make an endless loop, so these words name states only.

use std::fmt::{Arguments, Write as _};

use super::{Facts, Predicate};
use crate::model::quote;

/// Collects reasons: `condition Ready is False and the phase is "Ready"`.
#[derive(Debug, Default)]
pub struct Reasons(String);

impl Reasons {
    /// Adds a reason.
    pub fn say(&mut self, reason: Arguments<'_>) {
        if !self.0.is_empty() {
            self.0.push_str(" and ");
        }
        // Writing to a String cannot fail.
        let _ = self.0.write_fmt(reason);
    }
}

impl Facts<'_, '_> {
    /// What in the object makes `predicate` definitely true or false, as a list in words.
    #[must_use]
    pub fn because(&self, predicate: &Predicate) -> String {
        let mut reasons = Reasons::default();
        self.explain(predicate, &mut reasons);
        reasons.0
    }

    /// The parts that decided: those that answer as the whole does.
    pub(super) fn explain(&self, predicate: &Predicate, reasons: &mut Reasons) {
        let whole = self.ask(predicate);
        for part in predicate.parts().iter().filter(|part| part.ask(self) == whole) {
            part.because(self, reasons);
        }
    }
}

/// A user's text in a message: not longer than it helps.
pub(crate) fn quoted(text: &str) -> String {
    quote(text, LONGEST_TEXT)
}

/// Characters of a user's text that are shown.
const LONGEST_TEXT: usize = 64;
