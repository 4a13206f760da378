//! Answers that are the same for all elements of a list.

use std::collections::HashMap;
use std::ptr::from_ref;

use super::{AnyWord, Facts, Polarity, Predicate, Reference, Truth};
use crate::model::Json;

/// Answers that are computed once for a long list. A rule may search the whole list, status or spec. For
/// each of ten thousand elements, this would take minutes.
#[derive(Debug)]
pub struct Answers<'s, 'a> {
    /// The answers of the words that are not about the element, by the word's address, which is stable
    /// during a judgement. Equal words have separate answers.
    truths: HashMap<usize, Truth>,
    /// The fields that members are compared with, by the address of the reference.
    fields: HashMap<usize, Option<&'s Json<'a>>>,
    /// The polarity of types in the spec.
    polarities: HashMap<&'s str, Polarity>,
}

impl<'s, 'a> Answers<'s, 'a> {
    /// Evaluates the parts of these predicates that are not about the element.
    pub fn to<'p>(predicates: impl Iterator<Item = &'p Predicate>, facts: &Facts<'s, 'a>) -> Self {
        let (truths, fields) = (HashMap::new(), HashMap::new());
        let mut answers = Self { truths, fields, polarities: HashMap::new() };
        for (kind, polarity) in super::polarity::in_spec(facts) {
            // The first of duplicates counts, as in a search.
            answers.polarities.entry(kind).or_insert(polarity);
        }
        predicates.for_each(|predicate| answers.ask(predicate, facts));
        answers
    }

    pub(super) fn ask(&mut self, predicate: &Predicate, facts: &Facts<'s, 'a>) {
        for word in predicate.words() {
            if word.is_about_element() {
                word.prepare(self, facts);
            } else {
                self.truths.insert(from_ref(word).addr(), word.ask(facts));
            }
        }
    }

    pub(super) fn ask_reference(&mut self, reference: &Reference, facts: &Facts<'s, 'a>) {
        if !reference.is_member() {
            self.fields.insert(from_ref(reference).addr(), facts.value(reference));
        }
    }

    pub(super) fn truth(&self, word: &AnyWord) -> Option<Truth> {
        self.truths.get(&from_ref(word).addr()).copied()
    }

    pub(super) fn field(&self, reference: &Reference) -> Option<Option<&'s Json<'a>>> {
        self.fields.get(&from_ref(reference).addr()).copied()
    }

    pub(super) fn polarity(&self, kind: &str) -> Polarity {
        self.polarities.get(kind).copied().unwrap_or(Polarity::Unknown)
    }
}
