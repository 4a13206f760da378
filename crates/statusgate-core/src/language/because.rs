//! Evidence as text: the parts of an object that make a predicate definitely true or false.
//!
//! Controllers copy rejection messages into conditions. A message with a time or a counter would cause an
//! endless loop, so these texts contain only states.

use std::fmt::Arguments;

use super::{Facts, Predicate, Truth};
use crate::model::quote;

/// Collects reasons: `condition Ready is False and the phase is "Ready"`.
#[derive(Debug, Default)]
pub struct Reasons {
    reasons: Vec<String>,
    /// Whether to leave out what the predicate already states.
    only_open: bool,
}

impl Reasons {
    /// Adds a reason.
    pub fn say(&mut self, reason: Arguments<'_>) {
        let reason = reason.to_string();
        if !self.reasons.contains(&reason) {
            self.reasons.push(reason);
        }
    }

    /// Explains everything of one of several alternatives: the predicate does not say which one holds.
    pub(super) fn of_alternative(&mut self, explain: impl FnOnce(&mut Self)) {
        let only_open = std::mem::take(&mut self.only_open);
        explain(self);
        self.only_open = only_open;
    }

    fn text(&self) -> String {
        self.reasons.join(" and ")
    }
}

impl Facts<'_, '_> {
    /// The reasons why `predicate` is definitely true or false, as text.
    pub fn because(&self, predicate: &Predicate) -> String {
        let mut reasons = Reasons::default();
        self.explain(predicate, &mut reasons);
        reasons.text()
    }

    /// The same without the parts that allow only one value. The author of a rule names those in its
    /// message, but not which of several conditions is bad.
    pub fn because_open(&self, predicate: &Predicate) -> String {
        let mut reasons = Reasons { only_open: true, ..Reasons::default() };
        self.explain(predicate, &mut reasons);
        reasons.text()
    }

    /// Explains the parts that decided: those with the same answer as the whole.
    pub(super) fn explain(&self, predicate: &Predicate, reasons: &mut Reasons) {
        let whole = self.ask(predicate);
        let parts = predicate.parts();
        let deciding = parts.iter().filter(|part| part.ask(self) == whole);
        let explain = |reasons: &mut Reasons| {
            for part in deciding.clone() {
                if !reasons.only_open || part.is_open(whole) {
                    part.because(self, reasons);
                }
            }
        };
        if whole == Truth::False && parts.len() > 1 {
            reasons.of_alternative(explain);
        } else {
            explain(reasons);
        }
    }
}

/// User text in a message, quoted and shortened.
pub(crate) fn quoted(text: &str) -> String {
    quote(text, LONGEST_TEXT)
}

/// The maximum number of characters of user text in a message.
const LONGEST_TEXT: usize = 64;
