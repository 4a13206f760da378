//! Reading evidence: predicates answered in three values.
//!
//! Conditions are True, False, Unknown or absent. Whatever is asked of an absent condition has no
//! answer, and neither has its negation: missing evidence never denies. Kleene's logic carries
//! that through `all`, `any` and `not`.

mod answers;
mod gates;

use crate::model::{
    Conditions, Json, Object, Pointer, Resource, in_status, parse_rfc3339, same_number,
};
use crate::policy::convention::{
    ConditionList, ConditionType, Convention, Phase, PhaseRules, Polarity,
};
use crate::policy::{ConditionTest, Observed, Place, Predicate, ValueTest};

use super::conditions::same;

pub(crate) use answers::Answers;

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
    pub(super) object: &'s Object<'a>,
    old: Option<&'s Object<'a>>,
    convention: &'s Convention,
    list: Option<&'s ConditionList>,
    pub(super) conditions: Conditions<'s, 'a>,
    pub(super) old_conditions: Option<Conditions<'s, 'a>>,
    /// The phase to judge; a repair supposes others than the written one.
    pub phase: Option<&'s str>,
    /// The stored phase.
    pub old_phase: Option<&'s str>,
    pub(super) resource: &'s Resource<'a>,
    element: Option<Element<'s, 'a>>,
    /// What is known for all elements of a long list.
    answers: Option<&'s Answers<'s, 'a>>,
    now: Option<i64>,
}

/// The difference between clocks that is no fault; as the transition times' own.
const SKEW_SECONDS: i64 = 300;

/// The element of a list that a rule is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Element<'s, 'a> {
    pub(crate) item: &'s Json<'a>,
    /// The stored one of the same key.
    pub(crate) before: Option<&'s Json<'a>>,
    /// What is known of its type.
    pub(crate) kind: Option<&'s ConditionType>,
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
        let facts = Self {
            object,
            old,
            convention,
            list: None,
            conditions: Conditions::of(None),
            old_conditions: None,
            phase: phase_of(convention, object),
            old_phase: old.and_then(|old| phase_of(convention, old)),
            resource,
            element: None,
            answers: None,
            now: None,
        };
        match convention.primary_conditions(&resource.version) {
            Some(list) => facts.reading(list),
            None => Self { old_conditions: old.map(|_| Conditions::of(None)), ..facts },
        }
    }

    /// The same facts under another phase.
    #[must_use]
    pub const fn supposing(mut self, phase: Option<&'s str>) -> Self {
        self.phase = phase;
        self
    }

    /// The same facts with the conditions of another list.
    pub(crate) fn reading(mut self, list: &'s ConditionList) -> Self {
        if self.list.is_some_and(|own| std::ptr::eq(own, list)) {
            return self;
        }
        self.conditions = conditions_at(self.object, &list.path);
        self.old_conditions = self.old.map(|old| conditions_at(old, &list.path));
        self.list = Some(list);
        self.answers = None;
        self
    }

    /// The same facts, at a time (Unix seconds). Without one no time is known to lie in the future.
    pub(crate) const fn at_time(mut self, now: i64) -> Self {
        self.now = Some(now);
        self
    }

    /// The rules of the list at a path.
    pub(crate) fn list_at(&self, path: &Pointer) -> Option<&'s ConditionList> {
        let version = &self.resource.version;
        let mut lists = self.convention.conditions.iter();
        lists.find(|list| list.path == *path && list.applies_to(version))
    }

    /// The same facts, of one element of the list.
    pub(crate) const fn of_element(mut self, element: Element<'s, 'a>) -> Self {
        self.element = Some(element);
        self
    }

    /// The same facts, with what is the same for all elements of the list found beforehand.
    pub(crate) const fn knowing(mut self, answers: &'s Answers<'s, 'a>) -> Self {
        self.answers = Some(answers);
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
        if let Some(truth) = self.answers.and_then(|answers| answers.truth(predicate)) {
            return truth;
        }
        match predicate {
            Predicate::All(parts) => self.fold(parts, Truth::True, Truth::False),
            Predicate::Any(parts) => self.fold(parts, Truth::False, Truth::True),
            Predicate::Not(part) => match self.ask(part) {
                Truth::True => Truth::False,
                Truth::False => Truth::True,
                Truth::NoEvidence => Truth::NoEvidence,
            },
            Predicate::Condition { old, kind, test } => Truth::of(self.condition(*old, kind, test)),
            Predicate::Phase(names) => {
                Truth::of(self.phase.map(|phase| names.iter().any(|name| name == phase)))
            }
            Predicate::OldPhase(names) => {
                Truth::of(self.old_phase.map(|phase| names.iter().any(|name| name == phase)))
            }
            Predicate::Deleting => Truth::of(Some(self.deleting())),
            Predicate::Observed(wanted) => {
                Truth::of(self.observed().map(|observed| wanted.contains(&observed)))
            }
            Predicate::Value(place, test) => Truth::of(self.value_test(place, test)),
            Predicate::Length { path, at_least, at_most } => {
                let items = at(self.object, path).and_then(Json::as_array);
                let length = items.map_or(0, <[Json<'_>]>::len);
                Truth::of(Some((*at_least..=*at_most).contains(&length)))
            }
            Predicate::Gates(path) => self.gates(path),
            Predicate::Polarity(wanted) => {
                let polarity = self.polarity();
                let known = polarity != Polarity::Unknown;
                Truth::of(known.then(|| wanted.contains(&polarity)))
            }
            Predicate::Resource(globs) => {
                let plural = &self.resource.resource;
                Truth::of(Some(globs.iter().any(|glob| glob.matches(plural))))
            }
        }
    }

    /// Whether a phase may stand with this evidence: its necessary evidence is not definitely
    /// contradicted.
    #[must_use]
    pub fn admits(&self, phase: &'s Phase) -> bool {
        let facts = self.supposing(Some(&phase.name));
        phase.necessary.as_ref().is_none_or(|necessary| facts.ask(necessary) != Truth::False)
    }

    /// The condition of a type, whichever way it is spelled.
    pub(super) fn find(&self, list: Conditions<'s, 'a>, kind: &str) -> Option<&'s Json<'a>> {
        self.spelled(kind, |kind| list.find(kind))
    }

    fn spelled<T>(&self, kind: &str, find: impl Fn(&str) -> Option<T>) -> Option<T> {
        find(kind).or_else(|| {
            let types = &self.list.filter(|list| list.types.has_aliases)?.types;
            types.spellings(kind).skip(1).find_map(find)
        })
    }

    fn condition(&self, old: bool, kind: &str, test: &ConditionTest) -> Option<bool> {
        let list = if old { self.old_conditions? } else { self.conditions };
        let found = self.find(list, kind);
        match test {
            ConditionTest::Is(statuses) => {
                Conditions::status_of(found?).map(|status| statuses.contains(&status))
            }
            ConditionTest::Reason(reasons) => {
                let listed = |reason: &str| reasons.iter().any(|known| known == reason);
                match found?.get("reason") {
                    // Absence is an answer only where it is asked for, as in reason tables by "".
                    None | Some(Json::Null) => listed("").then_some(true),
                    Some(reason) => reason.as_str().map(listed),
                }
            }
            ConditionTest::Present => Some(found.is_some()),
            ConditionTest::Changed => Some(found != self.find(self.old_conditions?, kind)),
        }
    }

    fn observed(&self) -> Option<Observed> {
        let rules = self.convention.generation.as_ref()?;
        let path = rules.paths.first()?;
        let observed = in_status(self.object.status.as_ref(), path).and_then(Json::as_i64)?;
        let old = self.old.and_then(|old| old.metadata.generation);
        let newest = self.object.metadata.generation.max(old)?;
        Some(match observed.cmp(&newest) {
            std::cmp::Ordering::Less => Observed::Behind,
            std::cmp::Ordering::Equal => Observed::Current,
            std::cmp::Ordering::Greater => Observed::Ahead,
        })
    }

    /// The value at a place; null is none.
    pub(super) fn value(&self, place: &Place) -> Option<&'s Json<'a>> {
        if let Some(found) = self.answers.and_then(|answers| answers.field(place)) {
            return found;
        }
        let found = match place {
            Place::Field { old: false, path } => at(self.object, path),
            Place::Field { old: true, path } => self.at_stored(self.old?, path),
            Place::Member { old: false, name } => self.element?.item.get(name),
            Place::Member { old: true, name } => self.element?.before?.get(name),
        };
        found.filter(|value| !value.is_null())
    }

    /// What the stored object has in the place. `None` where there is no stored object at all.
    fn value_before(&self, place: &Place) -> Option<Option<&'s Json<'a>>> {
        let old = self.old?;
        let found = match place {
            Place::Field { path, .. } => self.at_stored(old, path),
            // A new element has not changed in a member: it was not there.
            Place::Member { name, .. } => self.element?.before?.get(name),
        };
        Some(found.filter(|value| !value.is_null()))
    }

    /// The value at a pointer in the stored object. Writes of a status leave the spec as it is, text
    /// and all: it is not read twice.
    fn at_stored(&self, old: &'s Object<'a>, path: &Pointer) -> Option<&'s Json<'a>> {
        let same_spec = !path.is_below_status() && old.spec.text() == self.object.spec.text();
        at(if same_spec { self.object } else { old }, path)
    }

    fn value_test(&self, place: &Place, test: &ValueTest) -> Option<bool> {
        let value = self.value(place);
        match test {
            ValueTest::Is(wanted) => {
                let value = value?;
                Some(wanted.iter().any(|wanted| equals(value, wanted)))
            }
            ValueTest::Set => {
                // Of a stored object that is not there nothing is known, not even absence.
                if matches!(place, Place::Field { old: true, .. }) {
                    self.old?;
                }
                Some(value.is_some_and(|value| !value.is_empty()))
            }
            ValueTest::Changed => Some(!same(value, self.value_before(place)?)),
            ValueTest::Decreased => less(value?, self.value_before(place)??),
            ValueTest::Matches(pattern) => Some(pattern.is_match(value?.as_str()?)),
            ValueTest::Equals(other) => {
                let (value, other) = (value?, self.value(other)?);
                Some(same(Some(value), Some(other)))
            }
            ValueTest::Before(other) => less(value?, self.value(other)?),
            ValueTest::Future => Some(parse_rfc3339(value?.as_str()?)? > self.now? + SKEW_SECONDS),
        }
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

fn conditions_at<'s, 'a>(object: &'s Object<'a>, path: &Pointer) -> Conditions<'s, 'a> {
    Conditions::of(in_status(object.status.as_ref(), path))
}

/// The value at a pointer below `/status` or `/spec`.
fn at<'s, 'a>(object: &'s Object<'a>, path: &Pointer) -> Option<&'s Json<'a>> {
    if path.is_below_status() {
        in_status(object.status.as_ref(), path)
    } else {
        object.spec.tree()?.at(path.below_spec())
    }
}

/// Whether a value is the one that a document names.
fn equals(value: &Json<'_>, wanted: &serde_json::Value) -> bool {
    match (value, wanted) {
        (Json::String(text), serde_json::Value::String(wanted)) => text == wanted,
        (Json::Bool(value), serde_json::Value::Bool(wanted)) => value == wanted,
        (Json::Number(number), serde_json::Value::Number(wanted)) => same_number(number, wanted),
        _ => false,
    }
}

/// Whether a number or a time is less than another; nothing where they cannot be compared.
fn less(one: &Json<'_>, other: &Json<'_>) -> Option<bool> {
    match (one, other) {
        (Json::Number(one), Json::Number(other)) => match (one.as_i64(), other.as_i64()) {
            (Some(one), Some(other)) => Some(one < other),
            _ => Some(one.as_f64()? < other.as_f64()?),
        },
        (Json::String(one), Json::String(other)) => {
            Some(parse_rfc3339(one)? < parse_rfc3339(other)?)
        }
        _ => None,
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
    let mut paths = std::iter::once(&rules.path).chain(&rules.other_paths);
    paths.find(holds_text).unwrap_or(&rules.path)
}
