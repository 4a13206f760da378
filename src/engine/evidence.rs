//! The facts of an object under a convention: what predicates are asked of.

use std::ops::Deref;

use crate::language;
use crate::model::{Json, Object, Pointer, Resource, in_status};
use crate::policy::convention::{ConditionList, ConditionType, Convention, Phase, PhaseRules};

pub(crate) use language::Answers;
pub use language::Truth;

/// What predicates are asked of, with the convention that knows the lists and the phase.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'s, 'a> {
    facts: language::Facts<'s, 'a>,
    convention: &'s Convention,
}

/// The element of a list that a rule is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Element<'s, 'a> {
    pub(crate) item: &'s Json<'a>,
    /// The stored one of the same key.
    pub(crate) before: Option<&'s Json<'a>>,
    /// What is known of its type.
    pub(crate) kind: Option<&'s ConditionType>,
}

impl<'s, 'a> Deref for Facts<'s, 'a> {
    type Target = language::Facts<'s, 'a>;

    fn deref(&self) -> &Self::Target {
        &self.facts
    }
}

impl<'s, 'a> Facts<'s, 'a> {
    /// The facts of an object under a convention.
    #[must_use]
    pub fn new(
        convention: &'s Convention,
        object: &'s Object<'a>,
        old: Option<&'s Object<'a>>,
        resource: &'s Resource<'a>,
    ) -> Self {
        let generation = convention.generation.as_ref();
        let facts = language::Facts {
            phase: phase_of(convention, object),
            old_phase: old.and_then(|old| phase_of(convention, old)),
            observed_generation: generation.and_then(|rules| rules.paths.first()),
            ..language::Facts::new(object, old, resource)
        };
        let facts = Self { facts, convention };
        match convention.primary_conditions(&resource.version) {
            Some(list) => facts.reading(list),
            None => facts,
        }
    }

    /// The same facts under another phase.
    #[must_use]
    pub const fn supposing(mut self, phase: Option<&'s str>) -> Self {
        self.facts.phase = phase;
        self
    }

    /// The same facts with the conditions of another list.
    pub(crate) fn reading(mut self, list: &'s ConditionList) -> Self {
        self.facts = self.facts.reading(list.for_predicates());
        self
    }

    /// The same facts, at a time (Unix seconds). Without one no time is known to lie in the future.
    pub(crate) const fn at_time(mut self, now: i64) -> Self {
        self.facts.now = Some(now);
        self
    }

    /// The rules of the list at a path.
    pub(crate) fn list_at(&self, path: &Pointer) -> Option<&'s ConditionList> {
        let version = &self.resource.version;
        let mut lists = self.convention.conditions.iter();
        lists.find(|list| list.path == *path && list.applies_to(version))
    }

    /// The same facts, of one element of the list.
    pub(crate) fn of_element(mut self, element: Element<'s, 'a>) -> Self {
        let Element { item, before, kind } = element;
        let polarity = kind.map(|kind| kind.polarity).unwrap_or_default();
        self.facts.element = Some(language::Element { item, before, polarity });
        self
    }

    /// The same facts, with what is the same for all elements of the list found beforehand.
    pub(crate) const fn knowing(mut self, answers: &'s Answers<'s, 'a>) -> Self {
        self.facts.answers = Some(answers);
        self
    }

    /// Whether a phase may stand with this evidence: its necessary evidence is not definitely
    /// contradicted.
    #[must_use]
    pub fn admits(&self, phase: &'s Phase) -> bool {
        let facts = self.supposing(Some(&phase.name));
        phase.necessary.as_ref().is_none_or(|necessary| facts.ask(necessary) != Truth::False)
    }
}

/// The phase as an object has it: a text that is not empty.
pub(crate) fn phase_of<'s>(convention: &Convention, object: &'s Object<'_>) -> Option<&'s str> {
    let rules = convention.phase.as_ref()?;
    in_status(object.status.as_ref(), phase_path(rules, object))
        .and_then(Json::as_str)
        .filter(|phase| !phase.is_empty())
}

/// Where an object has its phase: the first of the convention's places that holds a text, else the
/// first.
pub(crate) fn phase_path<'p>(rules: &'p PhaseRules, object: &Object<'_>) -> &'p Pointer {
    if rules.other_paths.is_empty() {
        return &rules.path;
    }
    let status = object.status.as_ref();
    let holds_text = |path: &&Pointer| matches!(in_status(status, path), Some(Json::String(_)));
    rules.paths().find(holds_text).unwrap_or(&rules.path)
}
