//! What the rules about each element of a list ask that is the same for all of its elements.

use std::collections::HashMap;
use std::ptr::from_ref;

use super::gates::polarity_of;
use super::{Facts, Truth, at};
use crate::model::Json;
use crate::policy::convention::Polarity;
use crate::policy::{Place, Predicate, ValueTest};

/// Answers that were found once for a long list. A rule may look through the whole of the list, of
/// the status or of the spec: done again for each of ten thousand elements that would take minutes.
#[derive(Debug)]
pub(crate) struct Answers<'s, 'a> {
    /// Of the parts of rules that do not speak of the element, by where they stand in memory: a
    /// policy does not move while it judges, and two parts that are equal may well be asked twice.
    truths: HashMap<usize, Truth>,
    /// The fields that members are compared with, likewise.
    fields: HashMap<usize, Option<&'s Json<'a>>>,
    /// The polarity of types, as the spec has it.
    polarities: HashMap<&'s str, Polarity>,
}

impl<'s, 'a> Answers<'s, 'a> {
    /// Asks all that these ask and no element has a part in.
    pub(crate) fn to<'p>(
        predicates: impl Iterator<Item = &'p Predicate>,
        facts: &Facts<'s, 'a>,
    ) -> Self {
        let (truths, fields) = (HashMap::new(), HashMap::new());
        let mut answers = Self { truths, fields, polarities: HashMap::new() };
        let paths = facts.list.into_iter().flat_map(|list| &list.types.polarity_from);
        for gate in paths.filter_map(|path| at(facts.object, path)?.as_array()).flatten() {
            if let Some(kind) = gate.get("conditionType").and_then(Json::as_str) {
                // The first of several, as everywhere.
                answers.polarities.entry(kind).or_insert_with(|| polarity_of(gate));
            }
        }
        for predicate in predicates {
            answers.ask(predicate, facts);
        }
        answers
    }

    fn ask(&mut self, predicate: &Predicate, facts: &Facts<'s, 'a>) {
        if !speaks_of_the_element(predicate) {
            self.truths.insert(from_ref(predicate).addr(), facts.ask(predicate));
            return;
        }
        match predicate {
            Predicate::All(parts) | Predicate::Any(parts) => {
                parts.iter().for_each(|part| self.ask(part, facts));
            }
            Predicate::Not(part) => self.ask(part, facts),
            Predicate::Value(place, ValueTest::Equals(other) | ValueTest::Before(other)) => {
                for place in [place, other].into_iter().filter(|place| !is_member(place)) {
                    self.fields.insert(from_ref(place).addr(), facts.value(place));
                }
            }
            _ => {}
        }
    }

    pub(super) fn truth(&self, predicate: &Predicate) -> Option<Truth> {
        self.truths.get(&from_ref(predicate).addr()).copied()
    }

    pub(super) fn field(&self, place: &Place) -> Option<Option<&'s Json<'a>>> {
        self.fields.get(&from_ref(place).addr()).copied()
    }

    pub(super) fn polarity(&self, kind: &str) -> Polarity {
        self.polarities.get(kind).copied().unwrap_or(Polarity::Unknown)
    }
}

fn speaks_of_the_element(predicate: &Predicate) -> bool {
    match predicate {
        Predicate::All(parts) | Predicate::Any(parts) => parts.iter().any(speaks_of_the_element),
        Predicate::Not(part) => speaks_of_the_element(part),
        Predicate::Value(place, ValueTest::Equals(other) | ValueTest::Before(other)) => {
            is_member(place) || is_member(other)
        }
        Predicate::Value(place, _) => is_member(place),
        Predicate::Polarity(_) => true,
        Predicate::Condition { .. }
        | Predicate::Phase(_)
        | Predicate::OldPhase(_)
        | Predicate::Deleting
        | Predicate::Observed(_)
        | Predicate::Length { .. }
        | Predicate::Gates(_)
        | Predicate::Resource(_) => false,
    }
}

const fn is_member(place: &Place) -> bool {
    matches!(place, Place::Member { .. })
}
