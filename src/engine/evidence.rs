//! Reading evidence: predicates answered in three values.
//!
//! Conditions are True, False, Unknown or absent. Whatever is asked of an absent condition has no
//! answer, and neither has its negation: missing evidence never denies. Kleene's logic carries
//! that through `all`, `any` and `not`.

use std::fmt::Write as _;

use crate::model::{Conditions, Json, Object, in_status};
use crate::policy::convention::{Convention, Phase};
use crate::policy::{ConditionTest, Predicate};

/// An answer to a predicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    /// It holds.
    True,
    /// It definitely does not hold.
    False,
    /// Nothing in the object says.
    NoEvidence,
}

/// What predicates are asked of: an object, the stored one, and the phase to suppose.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'s, 'a> {
    object: &'s Object<'a>,
    conditions: Conditions<'s, 'a>,
    old_conditions: Option<Conditions<'s, 'a>>,
    /// The phase to judge; a repair supposes others than the written one.
    pub phase: Option<&'s str>,
    /// The stored phase.
    pub old_phase: Option<&'s str>,
    resource: &'s str,
}

impl<'s, 'a> Facts<'s, 'a> {
    /// The facts of an object under a convention.
    #[must_use]
    pub fn new(
        convention: &Convention,
        object: &'s Object<'a>,
        old: Option<&'s Object<'a>>,
        resource: &'s str,
    ) -> Self {
        let list = convention.primary_conditions();
        let conditions = |object: &'s Object<'a>| {
            Conditions::of(list.and_then(|list| in_status(object.status.as_ref(), &list.path)))
        };
        Self {
            object,
            conditions: conditions(object),
            old_conditions: old.map(conditions),
            phase: phase_of(convention, object),
            old_phase: old.and_then(|old| phase_of(convention, old)),
            resource,
        }
    }

    /// The same facts under another phase.
    #[must_use]
    pub const fn supposing(mut self, phase: Option<&'s str>) -> Self {
        self.phase = phase;
        self
    }

    /// Whether deletion has been asked for.
    #[must_use]
    pub const fn deleting(&self) -> bool {
        self.object.is_deleting()
    }

    /// The answer to a predicate.
    #[must_use]
    pub fn ask(&self, predicate: &Predicate) -> Truth {
        match predicate {
            Predicate::All(parts) => self.fold(parts, Truth::True, Truth::False),
            Predicate::Any(parts) => self.fold(parts, Truth::False, Truth::True),
            Predicate::Not(part) => match self.ask(part) {
                Truth::True => Truth::False,
                Truth::False => Truth::True,
                Truth::NoEvidence => Truth::NoEvidence,
            },
            Predicate::Condition { old, kind, test } => {
                let list = if *old { self.old_conditions } else { Some(self.conditions) };
                let answer = list.and_then(|list| match test {
                    ConditionTest::Is(statuses) => {
                        list.status(kind).map(|status| statuses.contains(&status))
                    }
                    ConditionTest::Reason(reasons) => {
                        list.reason(kind).map(|reason| reasons.iter().any(|known| known == reason))
                    }
                    ConditionTest::Present => Some(list.find(kind).is_some()),
                });
                Truth::of(answer)
            }
            Predicate::Phase(names) => {
                Truth::of(self.phase.map(|phase| names.iter().any(|name| name == phase)))
            }
            Predicate::OldPhase(names) => {
                Truth::of(self.old_phase.map(|phase| names.iter().any(|name| name == phase)))
            }
            Predicate::Deleting => Truth::of(Some(self.deleting())),
            Predicate::Set(path) => {
                let value = in_status(self.object.status.as_ref(), path);
                Truth::of(Some(value.is_some_and(|value| !value.is_empty())))
            }
            Predicate::Resource(glob) => Truth::of(Some(glob.matches(self.resource))),
        }
    }

    /// Whether a phase may stand with this evidence: its necessary evidence is not definitely
    /// contradicted.
    #[must_use]
    pub fn admits(&self, phase: &'s Phase) -> bool {
        let facts = self.supposing(Some(&phase.name));
        phase.necessary.as_ref().is_none_or(|necessary| facts.ask(necessary) != Truth::False)
    }

    /// What the object says that makes `predicate` definitely true or false, as a list in words.
    #[must_use]
    pub fn because(&self, predicate: &Predicate) -> String {
        let mut words = String::new();
        self.explain(predicate, &mut words);
        words
    }

    /// `absorbing` decides by itself; without one, one missing answer leaves all open.
    fn fold(&self, parts: &[Predicate], neutral: Truth, absorbing: Truth) -> Truth {
        let mut answer = neutral;
        for part in parts {
            match self.ask(part) {
                found if found == absorbing => return absorbing,
                Truth::NoEvidence => answer = Truth::NoEvidence,
                _ => {}
            }
        }
        answer
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
                let status = list.and_then(|list| list.status(kind));
                match (test, status) {
                    (ConditionTest::Present, None) => {
                        say(format_args!("{stored} {kind} is absent"))
                    }
                    (ConditionTest::Reason(_), _) => {
                        let reason = list.and_then(|list| list.reason(kind)).unwrap_or_default();
                        say(format_args!("{stored} {kind} has reason {}", quoted(reason)));
                    }
                    (_, status) => {
                        let status = status.map_or("not a status", |status| status.name());
                        say(format_args!("{stored} {kind} is {status}"));
                    }
                }
            }
            Predicate::Phase(_) => {
                say(format_args!("the phase is {}", quoted(self.phase.unwrap_or_default())));
            }
            Predicate::OldPhase(_) => {
                say(format_args!(
                    "the stored phase is {}",
                    quoted(self.old_phase.unwrap_or_default())
                ));
            }
            Predicate::Deleting => {
                let is = if self.deleting() { "is" } else { "is not" };
                say(format_args!("metadata.deletionTimestamp {is} set"));
            }
            Predicate::Set(path) => {
                let is = if self.ask(predicate) == Truth::True { "is set" } else { "is empty" };
                say(format_args!("{} {is}", path.field()));
            }
            Predicate::Resource(_) => {
                say(format_args!("the resource is {}", quoted(self.resource)));
            }
        }
    }
}

impl Truth {
    /// A known answer, or none.
    const fn of(answer: Option<bool>) -> Self {
        match answer {
            Some(true) => Self::True,
            Some(false) => Self::False,
            None => Self::NoEvidence,
        }
    }
}

/// The phase as an object has it: a text that is not empty.
pub(crate) fn phase_of<'s>(convention: &Convention, object: &'s Object<'_>) -> Option<&'s str> {
    let rules = convention.phase.as_ref()?;
    in_status(object.status.as_ref(), &rules.path)
        .and_then(Json::as_str)
        .filter(|phase| !phase.is_empty())
}

/// A user's text in a message: in quotes, on one line, not longer than it helps.
pub(crate) fn quoted(text: &str) -> String {
    const LIMIT: usize = 64;
    let mut quoted = String::with_capacity(text.len().min(LIMIT) + 2);
    quoted.push('"');
    for (index, letter) in text.chars().enumerate() {
        if index == LIMIT {
            quoted.push('…');
            break;
        }
        quoted.extend(letter.escape_debug());
    }
    quoted.push('"');
    quoted
}
