//! The facts that predicates query, as a space of combinations: each fact with the answers that the
//! predicates distinguish.
//!
//! The answers come from the format, not from real objects: a condition is True, False, Unknown or absent; a
//! value is absent, named by a predicate, or another. So a walk through all combinations is a proof: no
//! predicate distinguishes anything else. If one does, as with several patterns for one text, the space is
//! marked as open.

mod collector;
mod fitting;
mod sample;

use indexmap::{IndexMap, IndexSet};

use statusgate_core::language::{Glob, MemberOf, Observed, Predicate};
use statusgate_core::model::{ConditionStatus, Pointer};
use statusgate_core::policy::convention::{ConditionList, Convention};

pub(crate) use collector::Collector;
pub(crate) use fitting::{Left, is_decided, left, passes, refused, values};
pub(crate) use sample::{
    FUTURE, GATE, GATES, LATER, NOW, PAST, STATUSES, checks_of, checks_of_member, condition, gate,
    generation, has_statuses, has_types, matching, reason, sample_path,
};

/// Something that predicates query.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Fact {
    /// Whether deletion was requested.
    Deleting,
    /// The plural of the resource.
    Resource,
    /// The phase.
    Phase {
        /// Of the stored object.
        old: bool,
    },
    /// The condition of a type.
    Condition {
        /// Of the stored object.
        old: bool,
        /// Its list; `None` if the convention has no conditions.
        list: Option<Pointer>,
        /// Its type.
        kind: String,
    },
    /// Whether the object's own `observedGeneration` is behind, equal to or ahead of its generation.
    Observed,
    /// A value in the status or the spec.
    Field {
        /// Of the stored object.
        old: bool,
        /// Its path.
        path: Pointer,
    },
    /// The number of items in a list.
    Length(Pointer),
    /// The conditions that a list in the spec requires.
    Gates(Pointer),
    /// A member of a condition, in addition to its status and its reason.
    OfCondition {
        /// The list of the condition; `None` if the convention has no conditions.
        list: Option<Pointer>,
        /// The condition, and the member.
        of: MemberOf,
    },
    /// A member of the element that a rule judges.
    Member {
        /// Of the stored element.
        old: bool,
        /// `severity`.
        name: String,
    },
}

/// A value of a fact.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Absent.
    Absent,
    /// Yes or no.
    Flag(bool),
    /// A condition that is present.
    Condition {
        /// Its status.
        status: ConditionStatus,
        /// Its reason; empty if it has none.
        reason: String,
        /// What the reason is an example of.
        represents: Represents,
    },
    /// A value.
    Value {
        /// The value.
        value: serde_json::Value,
        /// What it is an example of.
        represents: Represents,
    },
    /// The relation between the two generations.
    Observed(Observed),
    /// The number of items.
    Count(usize),
    /// The spec requires no condition.
    NotAsked,
    /// A condition that the spec requires: whether its status is good; `None` if it is absent.
    Gate(Option<bool>),
}

/// What a value or a reason is an example of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Represents {
    /// Only of itself: a predicate names it.
    Itself,
    /// Of all values that no predicate names.
    Others,
    /// Of all values: predicates only query whether there is one.
    Anything,
}

/// Facts with their answers: the space of their combinations.
#[derive(Clone, Debug, Default)]
pub struct Space {
    /// The facts with their answers, in the order in which tables show them.
    pub facts: IndexMap<Fact, Vec<Answer>>,
    /// The list with the judged elements, if rules judge the elements of a list.
    pub element_of: Option<Pointer>,
    /// The number of conditions with a query for any change. Combinations do not contain all changes.
    pub(crate) changed: usize,
    /// Whether stored conditions also differ from the new ones in a member that no fact describes.
    pub(crate) touched: bool,
    /// Whether predicates distinguish more than the answers contain. Then a search that finds nothing is no
    /// proof.
    pub(crate) open: bool,
}

/// No space with more combinations is searched. Searches end long before this limit, and complete walks
/// have lower limits.
pub(crate) const MAX_COMBINATIONS: usize = 1 << 20;

/// The limit of the answers of one fact: each has a bit in a [`super::Cube`].
const MAX_ANSWERS: usize = u128::BITS as usize;

impl Fact {
    /// Whether it is about the stored object.
    pub(crate) fn is_stored(&self) -> bool {
        *self != self.written()
    }

    /// The same of the written object.
    pub(crate) fn written(&self) -> Self {
        let mut fact = self.clone();
        if let Self::Phase { old }
        | Self::Condition { old, .. }
        | Self::Field { old, .. }
        | Self::Member { old, .. } = &mut fact
        {
            *old = false;
        }
        fact
    }
}

impl Space {
    /// The number of combinations; `None` above the limit.
    pub fn size(&self) -> Option<usize> {
        let mut counts = self.facts.values().map(Vec::len);
        let product = counts.clone().try_fold(1_usize, usize::checked_mul)?;
        let narrow = counts.all(|count| count <= MAX_ANSWERS);
        (narrow && product <= MAX_COMBINATIONS).then_some(product)
    }

    /// The combination with a number below [`Self::size`]: for each fact the index of an answer.
    pub fn combination(&self, mut number: usize) -> Vec<usize> {
        let mut combination = vec![0; self.facts.len()];
        for (place, answers) in combination.iter_mut().zip(self.facts.values()).rev() {
            *place = number % answers.len();
            number /= answers.len();
        }
        combination
    }

    /// The numbers of all combinations, or of `most`, each once. Neighbours differ in many facts, so that a search
    /// that can succeed in many places succeeds early.
    pub(crate) fn scattered(&self, most: usize) -> impl Iterator<Item = usize> + use<> {
        let size = self.size().unwrap_or(most);
        // Steps of a prime that does not divide the size reach every number.
        let stride =
            [7919, 7907, 7901, 7883].into_iter().find(|prime| !size.is_multiple_of(*prime));
        (0..size.min(most)).map(move |step| step * stride.unwrap_or(1) % size)
    }

    /// The answer of a combination to a fact.
    pub fn answer(&self, fact: &Fact, combination: &[usize]) -> Option<&Answer> {
        let (at, _, answers) = self.facts.get_full(fact)?;
        answers.get(*combination.get(at)?)
    }

    /// The facts of a combination, each with its answer.
    pub fn chosen<'s>(
        &'s self,
        combination: &'s [usize],
    ) -> impl Iterator<Item = (&'s Fact, &'s Answer)> {
        let facts = self.facts.iter().zip(combination);
        facts.filter_map(|((fact, answers), at)| Some((fact, answers.get(*at)?)))
    }
}

impl Fact {
    /// The text in the head of a column.
    pub fn label(&self) -> String {
        let stored = |old: bool| if old { "stored " } else { "" };
        match self {
            Self::Deleting => "deleting".to_owned(),
            Self::Resource => "resource".to_owned(),
            Self::Phase { old } => format!("{}phase", stored(*old)),
            Self::Condition { old, kind, .. } => format!("{}{kind}", stored(*old)),
            Self::Observed => "observedGeneration".to_owned(),
            Self::Field { old, path } => format!("{}{}", stored(*old), path.field()),
            Self::Length(path) => format!("length of {}", path.field()),
            Self::OfCondition { of, .. } => format!("{} of {}", of.member, of.condition),
            Self::Gates(path) => format!("a condition of {}", path.field()),
            Self::Member { old, name } => format!("{}{name}", stored(*old)),
        }
    }
}

impl Answer {
    /// A value that represents only itself.
    pub(crate) const fn named(value: serde_json::Value) -> Self {
        Self::Value { value, represents: Represents::Itself }
    }

    /// The value, if the answer is one.
    pub fn value(&self) -> Option<&serde_json::Value> {
        match self {
            Self::Value { value, .. } => Some(value),
            _ => None,
        }
    }

    /// The text in a cell.
    pub fn label(&self) -> String {
        match self {
            Self::Absent | Self::Gate(None) => "absent".to_owned(),
            Self::Flag(true) => "yes".to_owned(),
            Self::Flag(false) => "no".to_owned(),
            Self::Condition { status, represents: Represents::Anything, .. } => {
                status.name().to_owned()
            }
            Self::Condition { status, reason, represents: Represents::Itself } => {
                let reason = if reason.is_empty() { "no reason" } else { reason };
                format!("{} ({reason})", status.name())
            }
            Self::Condition { status, represents: Represents::Others, .. } => {
                format!("{} (another reason)", status.name())
            }
            Self::Value { represents: Represents::Others, .. } => "another".to_owned(),
            Self::Value { represents: Represents::Anything, .. } => "set".to_owned(),
            Self::Value { value: serde_json::Value::String(text), .. } => text.clone(),
            Self::Value { value, .. } => value.to_string(),
            Self::Observed(observed) => observed.name().to_owned(),
            Self::Count(count) => count.to_string(),
            Self::Gate(Some(true)) => "good".to_owned(),
            Self::Gate(Some(false)) => "bad".to_owned(),
            Self::NotAsked => "none required".to_owned(),
        }
    }
}

/// A predicate of a convention, and the list of its conditions.
#[derive(Clone, Copy, Debug)]
pub struct Question<'c> {
    pub(crate) predicate: &'c Predicate,
    /// The list of its conditions; `None` for the first list.
    pub(crate) list: Option<&'c ConditionList>,
    /// Whether the predicate judges each element of the list.
    pub(crate) of_element: bool,
}

impl<'c> Question<'c> {
    /// A predicate about the object, with the conditions of the first list.
    pub(crate) const fn plain(predicate: &'c Predicate) -> Self {
        Self { predicate, list: None, of_element: false }
    }
}

/// The API version of the combinations: the first that a convention names.
pub fn version_of(convention: &Convention) -> String {
    versions_of(convention).swap_remove(0)
}

/// All API versions that a convention names, or `v1`.
pub(crate) fn versions_of(convention: &Convention) -> Vec<String> {
    let globs = convention.conditions.iter().flat_map(|list| &list.api_versions);
    let versions: IndexSet<String> = globs.map(Glob::sample).collect();
    if versions.is_empty() { vec!["v1".to_owned()] } else { versions.into_iter().collect() }
}
