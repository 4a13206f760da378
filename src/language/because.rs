//! Evidence as text: the parts of an object that make a predicate definitely true or false.
//!
//! Controllers copy rejection messages into conditions. A message with a time or a counter would cause an
//! endless loop, so these texts contain only states.

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
    /// The reasons why `predicate` is definitely true or false, as text.
    pub fn because(&self, predicate: &Predicate) -> String {
        let mut reasons = Reasons::default();
        self.explain(predicate, &mut reasons);
        reasons.0
    }

    /// Explains the parts that decided: those with the same answer as the whole.
    pub(super) fn explain(&self, predicate: &Predicate, reasons: &mut Reasons) {
        let whole = self.ask(predicate);
        for part in predicate.parts().iter().filter(|part| part.ask(self) == whole) {
            part.because(self, reasons);
        }
    }
}

/// User text in a message, quoted and shortened.
pub(crate) fn quoted(text: &str) -> String {
    quote(text, LONGEST_TEXT)
}

/// The maximum number of characters of user text in a message.
const LONGEST_TEXT: usize = 64;
