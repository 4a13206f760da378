//! The input of predicates: an object, the stored object, and the convention's rules about them.

use std::fmt::Debug;

use super::{Answers, AnyWord, Polarity, Predicate, Reference, SpecPointer, Truth};
use crate::model::{Conditions, Json, Object, Pointer, Resource};

/// The input of predicates. A caller changes a part with a struct update, such as another phase.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'s, 'a> {
    /// The object of this write.
    pub object: &'s Object<'a>,
    /// The stored object.
    pub old: Option<&'s Object<'a>>,
    /// The resource that the request addresses.
    pub resource: &'s Resource<'a>,
    /// The phase to judge: the written one, or another one that a repair tries.
    pub phase: Option<&'s str>,
    /// The stored phase.
    pub old_phase: Option<&'s str>,
    /// The path of the object's own `observedGeneration`.
    pub observed_generation: Option<&'s Pointer>,
    /// The generation that a condition must have observed to be evidence. Health asks for the newest one;
    /// rules accept all.
    pub evidence_since: Option<i64>,
    /// The list of conditions that predicates read.
    pub list: Option<List<'s>>,
    /// The conditions in that list.
    pub conditions: Conditions<'s, 'a>,
    /// The stored conditions; `None` without a stored object.
    pub old_conditions: Option<Conditions<'s, 'a>>,
    /// The element that a rule is about.
    pub element: Option<ElementFacts<'s, 'a>>,
    /// The answers that are the same for all elements of a long list.
    pub answers: Option<&'s Answers<'s, 'a>>,
    /// The time in Unix seconds. Without it, no time is in the future or the past.
    pub now: Option<i64>,
}

/// The rules of a convention for a list of conditions, as far as predicates need them.
#[derive(Clone, Copy, Debug)]
pub struct List<'s> {
    /// Its path.
    pub path: &'s Pointer,
    /// Lists of `{conditionType, polarity}` in `.spec` that name the object's own types.
    pub polarity_from: &'s [SpecPointer],
}

/// The facts of the element that a rule is about.
#[derive(Clone, Copy, Debug)]
pub struct ElementFacts<'s, 'a> {
    /// The element.
    pub item: &'s Json<'a>,
    /// The stored element with the same key.
    pub before: Option<&'s Json<'a>>,
    /// The polarity of its type in the convention.
    pub polarity: Polarity,
}

impl<'s, 'a> Facts<'s, 'a> {
    /// The facts of an object without a convention.
    pub fn new(
        object: &'s Object<'a>,
        old: Option<&'s Object<'a>>,
        resource: &'s Resource<'a>,
    ) -> Self {
        Self {
            object,
            old,
            resource,
            phase: None,
            old_phase: None,
            observed_generation: None,
            evidence_since: None,
            list: None,
            conditions: Conditions::of(None),
            old_conditions: old.map(|_| Conditions::of(None)),
            element: None,
            answers: None,
            now: None,
        }
    }

    /// The same facts with the conditions of another list.
    pub fn reading(self, list: List<'s>) -> Self {
        if self.list.is_some_and(|own| std::ptr::eq(own.path, list.path)) {
            return self;
        }
        let conditions = Conditions::of(self.object.at_status(list.path));
        let old_conditions = self.old.map(|old| Conditions::of(old.at_status(list.path)));
        self.with_list(list, conditions, old_conditions)
    }

    /// The same facts with these conditions of a list.
    pub fn with_list(
        self,
        list: List<'s>,
        conditions: Conditions<'s, 'a>,
        old_conditions: Option<Conditions<'s, 'a>>,
    ) -> Self {
        Self { list: Some(list), conditions, old_conditions, answers: None, ..self }
    }

    /// Whether deletion has been requested.
    pub const fn deleting(&self) -> bool {
        self.object.is_deleting()
    }

    /// A condition that is evidence.
    pub(super) fn evidence(&self, kind: &str) -> Option<&'s Json<'a>> {
        self.conditions.find(kind).filter(|found| self.is_evidence(found))
    }

    /// Whether a condition did not observe an older generation.
    pub(crate) fn is_evidence(&self, condition: &Json<'_>) -> bool {
        let observed = || condition.get("observedGeneration").and_then(Json::as_i64);
        self.evidence_since.is_none_or(|since| observed().is_none_or(|observed| observed >= since))
    }

    /// The answer to a predicate.
    pub fn ask(&self, predicate: &Predicate) -> Truth {
        Truth::all(predicate.words().iter().map(|word| self.ask_word(word)))
    }

    fn ask_word(&self, word: &AnyWord) -> Truth {
        let known = self.answers.and_then(|answers| answers.truth(word));
        known.unwrap_or_else(|| word.ask(self))
    }

    /// The value of a reference. Null counts as absent.
    pub(super) fn value(&self, reference: &Reference) -> Option<&'s Json<'a>> {
        if let Some(found) = self.answers.and_then(|answers| answers.field(reference)) {
            return found;
        }
        let found = match reference {
            Reference::Field(path) => self.at(path),
            Reference::OldField(path) => self.at_stored(self.old?, path),
            Reference::Member(name) => self.element?.item.get(name),
            Reference::OldMember(name) => self.element?.before?.get(name),
            Reference::OfCondition(of) => self.evidence(&of.condition)?.get(&of.member),
        };
        found.filter(|value| !value.is_null())
    }

    /// The stored value of a reference. The outer `None` means that there is no stored object.
    pub(super) fn value_before(&self, reference: &Reference) -> Option<Option<&'s Json<'a>>> {
        let old = self.old?;
        let found = match reference {
            Reference::Field(path) | Reference::OldField(path) => self.at_stored(old, path),
            // A member of a new element is not a change.
            Reference::Member(name) | Reference::OldMember(name) => self.element?.before?.get(name),
            Reference::OfCondition(of) => {
                self.old_conditions?.find(&of.condition).and_then(|found| found.get(&of.member))
            }
        };
        Some(found.filter(|value| !value.is_null()))
    }

    /// The value at a pointer.
    pub(super) fn at(&self, path: &Pointer) -> Option<&'s Json<'a>> {
        at(self.object, path)
    }

    /// The same for the stored object. A part that is the same in both is parsed only once.
    fn at_stored(&self, old: &'s Object<'a>, path: &Pointer) -> Option<&'s Json<'a>> {
        let text = |object: &'s Object<'a>| object.part(path).map(|(part, _)| part.text());
        let same = !path.is_below_status() && text(old) == text(self.object);
        at(if same { self.object } else { old }, path)
    }
}

pub(super) fn at<'s, 'a>(object: &'s Object<'a>, path: &Pointer) -> Option<&'s Json<'a>> {
    if path.is_below_status() {
        object.at_status(path)
    } else {
        let (part, names) = object.part(path)?;
        part.tree()?.at(names)
    }
}
