//! Answers that are the same for all elements of a list.

use std::collections::HashMap;
use std::ptr::from_ref;

use super::{All, Any, AnyWord, Facts, Polarity, Predicate, Reference, Truth};
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

    fn ask(&mut self, predicate: &Predicate, facts: &Facts<'s, 'a>) {
        for word in predicate.words() {
            match word {
                word if !word.is_about_element() => {
                    self.truths.insert(from_ref(word).addr(), word.ask(facts));
                }
                AnyWord::All(All { all: parts }) | AnyWord::Any(Any { any: parts }) => {
                    parts.iter().for_each(|part| self.ask(part, facts));
                }
                AnyWord::Not(word) => self.ask(&word.not, facts),
                AnyWord::Value(value) => {
                    let operands = value.operands().map(|operand| &operand.0);
                    let others = operands.chain([&value.reference]).filter(|of| !of.is_member());
                    let fields = others.map(|of| (from_ref(of).addr(), facts.value(of)));
                    self.fields.extend(fields);
                }
                _ => {}
            }
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
