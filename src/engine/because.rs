//! Evidence in words: what of an object makes a predicate definitely true or false.
//!
//! Controllers copy denial texts into conditions, so that a text with a time or a counter in it
//! would make an endless loop: the words here name states only.

use std::fmt::Write as _;

use crate::model::{Conditions, Json, quote};
use crate::policy::{ConditionTest, Observed, Predicate, ValueTest};

use super::{Facts, Truth};

impl Facts<'_, '_> {
    /// What the object says that makes `predicate` definitely true or false, as a list in words.
    #[must_use]
    pub fn because(&self, predicate: &Predicate) -> String {
        let mut words = String::new();
        self.explain(predicate, &mut words);
        words
    }

    fn explain(&self, predicate: &Predicate, words: &mut String) {
        let mut say = |text: std::fmt::Arguments<'_>| {
            if !words.is_empty() {
                words.push_str(" and ");
            }
            // Writing to a String cannot fail.
            let _ = words.write_fmt(text);
        };
        match predicate {
            Predicate::All(parts) | Predicate::Any(parts) => {
                // The parts that decided: those that answer as the whole does.
                let whole = self.ask(predicate);
                for part in parts.iter().filter(|part| self.ask(part) == whole) {
                    self.explain(part, words);
                }
            }
            Predicate::Not(part) => self.explain(part, words),
            Predicate::Condition { old, kind, test } => {
                let (list, stored) = if *old {
                    (self.old_conditions, "stored condition")
                } else {
                    (Some(self.conditions), "condition")
                };
                let found = list.and_then(|list| self.find(list, kind));
                match test {
                    ConditionTest::Present if found.is_none() => {
                        say(format_args!("{stored} {kind} is absent"));
                    }
                    ConditionTest::Reason(_) => {
                        let reason = found.and_then(|item| item.get("reason"));
                        let reason = reason.and_then(Json::as_str).unwrap_or_default();
                        say(format_args!("{stored} {kind} has reason {}", quoted(reason)));
                    }
                    ConditionTest::Changed => {
                        let did = did(self.ask(predicate));
                        say(format_args!("{stored} {kind} {did} change"));
                    }
                    ConditionTest::Is(_) | ConditionTest::Present => {
                        let status = found.and_then(|item| Conditions::status_of(item));
                        let status = status.map_or("not a status", |status| status.name());
                        say(format_args!("{stored} {kind} is {status}"));
                    }
                }
            }
            Predicate::Phase(_) => {
                say(format_args!("the phase is {}", quoted(self.phase.unwrap_or_default())));
            }
            Predicate::OldPhase(_) => {
                let phase = quoted(self.old_phase.unwrap_or_default());
                say(format_args!("the stored phase is {phase}"));
            }
            Predicate::Deleting => {
                let is = if self.deleting() { "is" } else { "is not" };
                say(format_args!("metadata.deletionTimestamp {is} set"));
            }
            Predicate::Observed(_) => {
                let behind = Predicate::Observed(vec![Observed::Behind]);
                let is = if self.ask(&behind) == Truth::True { "is" } else { "is not" };
                say(format_args!("observedGeneration {is} behind metadata.generation"));
            }
            Predicate::Value(place, ValueTest::Set) => {
                let is = if self.ask(predicate) == Truth::True { "is set" } else { "is empty" };
                say(format_args!("{place} {is}"));
            }
            Predicate::Value(place, ValueTest::Changed) => {
                say(format_args!("{place} {} change", did(self.ask(predicate))));
            }
            Predicate::Value(place, ValueTest::Decreased) => {
                say(format_args!("{place} {} decrease", did(self.ask(predicate))));
            }
            Predicate::Value(place, ValueTest::Future) => {
                let lies = if self.ask(predicate) == Truth::True { "lies" } else { "does not lie" };
                say(format_args!("{place} {lies} in the future"));
            }
            Predicate::Value(place, ValueTest::Equals(other) | ValueTest::Before(other)) => {
                say(format_args!("of {place} and {other}"));
            }
            Predicate::Value(place, ValueTest::Is(_) | ValueTest::Matches(_)) => {
                match self.value(place) {
                    Some(Json::String(text)) => say(format_args!("{place} is {}", quoted(text))),
                    Some(Json::Bool(value)) => say(format_args!("{place} is {value}")),
                    Some(Json::Number(number)) => say(format_args!("{place} is {number}")),
                    Some(other) => say(format_args!("{place} is {}", other.kind())),
                    None => say(format_args!("{place} is absent")),
                }
            }
            Predicate::Length { path, .. } => {
                say(format_args!("of the length of {}", path.field()));
            }
            Predicate::Gates(path) => {
                say(format_args!("a condition that {} asks for is not good", path.field()));
            }
            Predicate::Polarity(_) => say(format_args!("of the polarity")),
            Predicate::Resource(_) => {
                say(format_args!("the resource is {}", quoted(&self.resource.resource)));
            }
        }
    }
}

fn did(answer: Truth) -> &'static str {
    if answer == Truth::True { "did" } else { "did not" }
}

/// A user's text in a message: not longer than it helps.
pub(crate) fn quoted(text: &str) -> String {
    quote(text, LONGEST_TEXT)
}

/// A user's name of a member, as a part of a field: the same without the quotes.
pub(crate) fn escaped(name: &str) -> String {
    let quoted = quoted(name);
    let inner = quoted.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    inner.unwrap_or(&quoted).to_owned()
}

/// Characters of a user's text that are shown.
const LONGEST_TEXT: usize = 64;
