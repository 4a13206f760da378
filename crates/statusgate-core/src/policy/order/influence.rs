//! What a step sets, and whether that could change the answer of a predicate of another step.

use serde_json::Value as Json;

use super::{Step, Task};
use crate::language::{
    All, Any, AnyWord, Asks, Condition, ConditionOf, Not, Place, Polarity, Predicate, Scalar, Value,
};
use crate::model::{ConditionStatus, Pointer};
use crate::policy::Action;
use crate::policy::convention::{ConditionList, Convention, Filling, PhaseRules, ValueSource};
use crate::policy::schema::Check;

/// Whether two defaults, or a default and a phase, set the same place.
pub(in crate::policy) fn set_the_same(one: &Task<'_>, other: &Task<'_>) -> bool {
    one.sets().iter().any(|one| other.sets().iter().any(|other| one.meets(other)))
}

/// What a step sets.
enum Set<'p> {
    /// A field; a constant, where it is only ever one.
    Field(&'p Pointer, Option<&'p Json>),
    /// A condition of a type, with these members.
    Element(&'p Pointer, &'p str, &'p [(String, Vec<ValueSource>)]),
    /// A member of conditions; whether it is removed.
    Member(&'p Pointer, &'p str, bool),
}

impl<'p> Task<'p> {
    fn sets(&self) -> Vec<Set<'p>> {
        match self.step {
            Step::Phase(rules) => {
                let time = rules.transition_time.iter().filter(|time| time.in_step);
                let paths = rules.paths().chain(time.map(|time| &time.path));
                paths.map(|path| Set::Field(path, None)).collect()
            }
            Step::Default(default) => match &default.filling {
                // To every reader a null is nothing.
                Filling::Absent(_) => Vec::new(),
                Filling::Field(path, sources) => vec![Set::Field(path, constant(sources))],
                Filling::Element { list, kind, members } => vec![Set::Element(list, kind, members)],
                Filling::Member { list, member, .. } | Filling::Steady { list, member, .. } => {
                    vec![Set::Member(list, member, false)]
                }
                Filling::AbsentMember { list, member, .. } => {
                    vec![Set::Member(list, member, true)]
                }
            },
        }
    }

    /// Whether this could give another step something to do that it did not have to do before.
    pub(super) fn enables(&self, other: &Task<'_>) -> bool {
        self.sets().iter().any(|set| other.is_enabled_by(set))
    }

    fn is_enabled_by(&self, set: &Set<'_>) -> bool {
        let reader = Reader { convention: self.convention, set, element_of: None };
        let default = match self.step {
            Step::Phase(rules) => {
                let imposed = rules.phases.iter().filter_map(|phase| phase.imposed.as_ref());
                return imposed.into_iter().any(|imposed| reader.becomes(&imposed.when, true))
                    // Where there is a default phase no other default comes to it.
                    || (rules.default.is_none() && rules.paths().any(|path| set.touches(path)));
            }
            Step::Default(default) => default,
        };
        let in_list = |own: &Pointer| match set {
            Set::Element(list, ..) => *list == own,
            // The whole list, or what contains it.
            Set::Field(..) => set.touches(own),
            Set::Member(..) => false,
        };
        let member = |own: &Pointer, name: &str, removed: bool| matches!(set, Set::Member(list, other, gone) if *list == own && *other == name && *gone == removed);
        default.when.as_ref().is_some_and(|when| reader.becomes(when, true))
            || match &default.filling {
                Filling::Absent(_) => false,
                Filling::Field(_, sources) => {
                    constant_at_end(sources).is_none() && reader.copied(sources, None)
                }
                Filling::Member { list, member: name, sources } => {
                    let has = |(known, sources): &(String, Vec<ValueSource>)| {
                        known == name && constant(sources).is_some()
                    };
                    let given =
                        matches!(set, Set::Element(_, _, members) if members.iter().any(has));
                    (in_list(list) && !given)
                        || member(list, name, true)
                        || (constant_at_end(sources).is_none()
                            && reader.copied(sources, Some(list)))
                }
                Filling::Element { list, members, .. } => members.iter().any(|(name, sources)| {
                    self.requires(list, name) && reader.copied(sources, Some(list))
                }),
                Filling::Steady { list, member: own, unless } => {
                    let counts =
                        |name: &String| member(list, name, false) || member(list, name, true);
                    in_list(list) || member(list, own, true) || unless.iter().any(counts)
                }
                Filling::AbsentMember { list, member: name, of } => {
                    let reader = Reader { element_of: Some(list), ..reader };
                    // Of what another one has removed nothing is left to remove.
                    if member(list, name, true) {
                        return false;
                    }
                    in_list(list) || member(list, name, false) || reader.becomes(of, true)
                }
            }
    }

    /// Whether a condition without a member cannot be added to a list.
    fn requires(&self, path: &Pointer, name: &str) -> bool {
        let mut lists = self.convention.conditions.iter().filter(|list| list.path == *path);
        let required = |check: &Check| check.required && check.action == Action::Deny;
        lists.any(|list: &ConditionList| {
            let mut members = list.members.iter().filter(|(known, _)| known == name);
            members.any(|(_, checks)| checks.iter().any(required))
        })
    }

    /// Whether another step copies what this sets.
    pub(super) fn informs(&self, other: &Task<'_>) -> bool {
        let Step::Default(default) = other.step else { return false };
        self.sets().iter().any(|set| {
            let reader = Reader { convention: other.convention, set, element_of: None };
            match &default.filling {
                Filling::Field(_, sources) => reader.copied(sources, None),
                Filling::Member { list, sources, .. } => reader.copied(sources, Some(list)),
                Filling::Element { list, members, .. } => {
                    members.iter().any(|(_, sources)| reader.copied(sources, Some(list)))
                }
                _ => false,
            }
        })
    }

    /// Whether this could leave another default without anything to do.
    pub(super) fn disables(&self, other: &Task<'_>) -> bool {
        let Step::Default(default) = other.step else { return false };
        self.sets().iter().any(|set| {
            let reader = Reader { convention: other.convention, set, element_of: None };
            default.when.as_ref().is_some_and(|when| reader.becomes(when, false))
        })
    }
}

impl Set<'_> {
    /// Whether this changes what is at a path, above it or below it.
    fn touches(&self, path: &Pointer) -> bool {
        let own = self.path();
        own.contains(path) || path.contains(own)
    }

    const fn path(&self) -> &Pointer {
        match self {
            Self::Field(path, _) | Self::Element(path, ..) | Self::Member(path, ..) => path,
        }
    }

    fn meets(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Element(_, one, _), Self::Element(_, other, _))
            | (Self::Member(_, one, _), Self::Member(_, other, _))
                if one != other =>
            {
                false
            }
            (Self::Element(..), Self::Member(..)) | (Self::Member(..), Self::Element(..)) => false,
            _ => self.touches(other.path()),
        }
    }
}

/// Whether a change could turn an answer.
#[derive(Clone, Copy)]
struct Reader<'r> {
    convention: &'r Convention,
    set: &'r Set<'r>,
    /// The list of the element that is asked about.
    element_of: Option<&'r Pointer>,
}

impl Reader<'_> {
    /// Whether the result could become `wanted`.
    fn becomes(&self, predicate: &Predicate, wanted: bool) -> bool {
        predicate.words().iter().any(|word| match word {
            AnyWord::All(All { all: parts }) | AnyWord::Any(Any { any: parts }) => {
                parts.iter().any(|part| self.becomes(part, wanted))
            }
            AnyWord::Not(Not { not }) => self.becomes(not, !wanted),
            AnyWord::Condition(condition) => self.condition_becomes(condition, wanted),
            AnyWord::Value(value) => self.value_becomes(value, wanted),
            AnyWord::Set(place) => {
                self.set.touches(&place.set) && (wanted || self.constant().is_none())
            }
            // Any change of the facts that other words read counts.
            word => {
                let mut change = Change { reader: self, found: false };
                Predicate::from(word.clone()).asks(&mut change);
                change.found
            }
        })
    }

    fn condition_becomes(&self, condition: &Condition, wanted: bool) -> bool {
        let ConditionOf::Condition(kind) = &condition.of else { return false };
        if !self.is_in_a_list() {
            return false;
        }
        let Condition { is, is_not, reason, present, changed, .. } = condition;
        let (added, members) = match self.set {
            Set::Element(_, added, members) => (*added, *members),
            Set::Member(_, name, _) => {
                return changed.is_some()
                    || (*name == "status" && (is.is_some() || is_not.is_some()))
                    || (*name == "reason" && reason.is_some())
                    || (*name == "type" && present.is_some());
            }
            Set::Field(..) => return true,
        };
        if !self.are_one_type(kind, added) {
            return false;
        }
        let text = |name: &str| {
            let (_, sources) = members.iter().find(|(known, _)| known == name)?;
            constant(sources)?.as_str()
        };
        let status = |statuses: &[ConditionStatus], wanted| {
            let text = text("status");
            text.is_none_or(|text| statuses.iter().any(|one| one.name() == text) == wanted)
        };
        changed.is_some()
            || present.is_some_and(|present| present == wanted)
            || is.as_ref().is_some_and(|statuses| status(statuses, wanted))
            || is_not.as_ref().is_some_and(|statuses| status(statuses, !wanted))
            || reason.as_ref().is_some_and(|reasons| {
                let text = text("reason");
                text.is_none_or(|text| reasons.iter().any(|one| one == text) == wanted)
            })
    }

    fn value_becomes(&self, value: &Value, wanted: bool) -> bool {
        let compared = [&value.equals, &value.before].into_iter().flatten();
        let reads = self.reads(&value.place);
        if compared.into_iter().any(|other| reads || self.reads(&other.0)) {
            return true;
        }
        let Some(constant) = self.constant().filter(|_| reads) else { return reads };
        let is = |values: &[Scalar]| values.iter().any(|value| value.value() == constant);
        let Value { is: one_of, is_not, set, changed, decreased, future, past, matches, .. } =
            value;
        set.is_some_and(|set| set == wanted)
            || one_of.as_ref().is_some_and(|values| constant.is_object() || is(values) == wanted)
            || is_not.as_ref().is_some_and(|values| constant.is_object() || is(values) != wanted)
            || changed.is_some()
            || decreased.is_some()
            || future.is_some()
            || past.is_some()
            || matches.is_some()
    }

    /// The only value that a field is set to.
    const fn constant(&self) -> Option<&Json> {
        match self.set {
            Set::Field(_, value) => *value,
            _ => None,
        }
    }

    fn reads(&self, place: &Place) -> bool {
        match (place, self.set) {
            (Place::OldField(_) | Place::OldMember(_), _) => false,
            (Place::Field(path), set) => set.touches(path),
            (Place::Member(_), Set::Field(path, _)) => {
                self.element_of.is_some_and(|list| list.contains(path) || path.contains(list))
            }
            (Place::Member(_), Set::Element(list, ..)) => self.element_of == Some(list),
            (Place::Member(name), Set::Member(list, set, _)) => {
                self.element_of == Some(list) && name == set
            }
        }
    }

    /// Whether one of these sources reads what is set; `list` is where conditions are copied from.
    fn copied(&self, sources: &[ValueSource], list: Option<&Pointer>) -> bool {
        sources.iter().any(|source| match source {
            ValueSource::Field(path) => self.set.touches(path),
            ValueSource::Condition { kind, member } => match self.set {
                Set::Element(own, added, _) => list == Some(own) && self.are_one_type(kind, added),
                Set::Member(own, name, _) => list == Some(own) && member == name,
                Set::Field(..) => list.is_some_and(|list| self.set.touches(list)),
            },
            _ => false,
        })
    }

    fn is_in_a_list(&self) -> bool {
        self.convention.conditions.iter().any(|list| match self.set {
            Set::Field(..) => self.set.touches(&list.path),
            set => *set.path() == list.path,
        })
    }

    fn are_one_type(&self, one: &str, other: &str) -> bool {
        let known = |list: &ConditionList| {
            let known = list.types.find(one);
            known.is_some_and(|known| known.is_called(other))
        };
        one == other || self.convention.conditions.iter().any(known)
    }
}

/// Whether words read what is set.
struct Change<'r> {
    reader: &'r Reader<'r>,
    found: bool,
}

impl Asks<'_> for Change<'_> {
    fn phase(&mut self, old: bool) {
        let rules = self.reader.convention.phase.as_deref().into_iter().filter(|_| !old);
        self.found |= rules.flat_map(PhaseRules::paths).any(|path| self.reader.set.touches(path));
    }

    fn observed(&mut self) {
        let rules = self.reader.convention.generation.iter();
        let mut paths = rules.flat_map(|rules| &rules.paths);
        self.found |= paths.any(|path| self.reader.set.touches(path));
    }

    fn length(&mut self, path: &Pointer, _: usize, _: usize) {
        self.found |= self.reader.set.touches(path);
    }

    fn gates(&mut self, _: &Pointer) {
        self.found |= self.reader.is_in_a_list();
    }

    fn conditions_of(&mut self, _: Polarity) {
        self.found |= self.reader.is_in_a_list();
    }
}

/// The value, where there is no other source.
fn constant(sources: &[ValueSource]) -> Option<&Json> {
    match sources {
        [ValueSource::Value(value)] => Some(value),
        _ => None,
    }
}

/// The value that is set where nothing can be copied.
fn constant_at_end(sources: &[ValueSource]) -> Option<&Json> {
    match sources.last()? {
        ValueSource::Value(value) => Some(value),
        _ => None,
    }
}
