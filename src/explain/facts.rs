//! What predicates ask about, as a space of combinations: each fact with the answers that make a
//! difference to the predicates that ask for it.
//!
//! The answers are those of the format, not those of real objects: a condition is True, False,
//! Unknown or absent; a value is absent, one of those that a predicate names, or another. That is
//! why walking all combinations is a proof: a predicate cannot tell apart what is left out here. Where
//! it can, as where several patterns are asked of one text, the space says that it is open.

mod asked;
mod fitting;
mod sample;

use indexmap::IndexSet;

use crate::language::{Glob, Observed, Predicate};
use crate::model::{ConditionStatus, Pointer};
use crate::policy::convention::{ConditionList, Convention};

pub(crate) use asked::Asked;
pub(crate) use fitting::{Left, is_decided, left};
pub(crate) use sample::{GATE, GATES, NOW, PAST, condition, reason};

/// Something that predicates ask about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// Whether deletion was asked for.
    Deleting,
    /// The plural that is addressed.
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
        /// The list it is in; `None` where the convention has none, and so no conditions.
        list: Option<Pointer>,
        /// Its type.
        kind: String,
    },
    /// How the object's own `observedGeneration` relates to its generation.
    Observed,
    /// A value in the status or the spec.
    Field {
        /// Of the stored object.
        old: bool,
        /// Where it is.
        path: Pointer,
    },
    /// The number of items in a list.
    Length(Pointer),
    /// The conditions that a list in the spec asks for.
    Gates(Pointer),
    /// A member of the element that a rule is about.
    Member {
        /// Of the stored element.
        old: bool,
        /// `severity`.
        name: String,
    },
}

/// What a fact can be.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Not there.
    Absent,
    /// Yes or no.
    Flag(bool),
    /// A condition that is there.
    Condition {
        /// Its status.
        status: ConditionStatus,
        /// Its reason.
        reason: String,
        /// Whether predicates ask for reasons of this condition, and for this one.
        asked: Reason,
    },
    /// A value.
    Value {
        /// It.
        value: serde_json::Value,
        /// What it is an example of.
        stands: Stands,
    },
    /// How generations relate.
    Observed(Observed),
    /// So many items.
    Count(usize),
    /// The spec asks for no condition.
    NotAsked,
    /// A condition that the spec asks for: whether it is as it should be; `None` for absent.
    Gate(Option<bool>),
}

/// What a value is an example of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stands {
    /// Of nothing: a predicate names it.
    Itself,
    /// Of all that no predicate names.
    Others,
    /// Of all that is there: nobody asks for more.
    Anything,
}

/// What predicates know of the reason of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Nobody asks.
    NotAsked,
    /// A predicate names it.
    Named,
    /// Predicates name others.
    Other,
}

/// Facts with their answers, and so all combinations of them.
#[derive(Clone, Debug, Default)]
pub struct Space {
    /// The facts, in the order in which tables show them.
    pub facts: Vec<Fact>,
    /// The answers of each.
    pub answers: Vec<Vec<Answer>>,
    /// The list with the judged elements, if the facts are about a list.
    pub element_of: Option<Pointer>,
    /// How many conditions are asked whether they changed in anything: more than combinations show.
    pub(crate) changed: usize,
    /// Whether stored conditions differ from the new ones in more than combinations show.
    pub(crate) touched: bool,
    /// Whether there is more to be told apart than the answers do: a search that finds nothing proves
    /// nothing then.
    pub(crate) open: bool,
}

/// Combinations beyond which nothing is searched. A search ends long before the last of them; what
/// walks them all has less.
pub(crate) const MAX_COMBINATIONS: usize = 1 << 20;

/// Answers of one fact: each has a bit in a line of a table.
const MAX_ANSWERS: usize = u128::BITS as usize;

impl Space {
    /// The number of combinations; `None` where it is beyond what is walked.
    #[must_use]
    pub fn size(&self) -> Option<usize> {
        let product = self
            .answers
            .iter()
            .try_fold(1_usize, |product, answers| product.checked_mul(answers.len()))?;
        let narrow = self.answers.iter().all(|answers| answers.len() <= MAX_ANSWERS);
        (narrow && product <= MAX_COMBINATIONS).then_some(product)
    }

    /// The combination of a number below [`Self::size`]: an answer, by its place, for each fact.
    #[must_use]
    pub fn combination(&self, mut number: usize) -> Vec<usize> {
        let mut combination = vec![0; self.facts.len()];
        for (place, answers) in combination.iter_mut().zip(&self.answers).rev() {
            *place = number % answers.len();
            number /= answers.len();
        }
        combination
    }

    /// All numbers below `size`, once each, but not in their order: neighbours differ in many facts,
    /// so that a search for one of many finds it early.
    pub(crate) fn scattered(size: usize) -> impl Iterator<Item = usize> {
        // A prime that is no factor of the size steps through all of it.
        let stride =
            [7919, 7907, 7901, 7883].into_iter().find(|prime| !size.is_multiple_of(*prime));
        (0..size).map(move |step| step * stride.unwrap_or(1) % size)
    }

    /// The answer of a combination to a fact.
    #[must_use]
    pub fn answer(&self, fact: &Fact, combination: &[usize]) -> Option<&Answer> {
        let at = self.facts.iter().position(|known| known == fact)?;
        self.answers.get(at)?.get(*combination.get(at)?)
    }

    /// Adds a fact that is not there yet.
    pub(crate) fn add(&mut self, fact: Fact, answers: Vec<Answer>) {
        if !self.facts.contains(&fact) {
            self.facts.push(fact);
            self.answers.push(answers);
        }
    }

    /// Adds the stored phase.
    pub(crate) fn add_stored_phase(&mut self, convention: &Convention) {
        let mut asked = Asked::new(convention, "");
        asked.fact(Fact::Phase { old: true });
        let space = asked.into_space();
        space
            .facts
            .into_iter()
            .zip(space.answers)
            .for_each(|(fact, answers)| self.add(fact, answers));
    }

    pub(crate) fn retain(&mut self, wanted: impl Fn(&Fact) -> bool) {
        let kept = self.facts.drain(..).zip(self.answers.drain(..));
        (self.facts, self.answers) = kept.filter(|(fact, _)| wanted(fact)).unzip();
    }

    /// Leaves a member of the element only some of its answers.
    pub(crate) fn narrow(&mut self, member: &str, wanted: impl Fn(&Answer) -> bool) {
        for (fact, answers) in self.facts.iter().zip(&mut self.answers) {
            if matches!(fact, Fact::Member { old: false, name } if name == member) {
                answers.retain(&wanted);
            }
        }
    }

    pub(crate) fn remove(&mut self, unwanted: &Fact) {
        self.retain(|fact| fact != unwanted);
    }
}

impl Fact {
    /// As the head of a column has it.
    #[must_use]
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
            Self::Gates(path) => format!("a condition of {}", path.field()),
            Self::Member { old, name } => format!("{}{name}", stored(*old)),
        }
    }
}

impl Answer {
    /// The value that it is, where it is one.
    pub(crate) fn into_value(self) -> Option<serde_json::Value> {
        match self {
            Self::Value { value, .. } => Some(value),
            _ => None,
        }
    }

    /// As a cell has it.
    #[must_use]
    pub fn label(&self) -> String {
        match self {
            Self::Absent | Self::Gate(None) => "absent".to_owned(),
            Self::Flag(true) => "yes".to_owned(),
            Self::Flag(false) => "no".to_owned(),
            Self::Condition { status, asked: Reason::NotAsked, .. } => status.name().to_owned(),
            Self::Condition { status, reason, asked: Reason::Named } => {
                format!("{} ({reason})", status.name())
            }
            Self::Condition { status, asked: Reason::Other, .. } => {
                format!("{} (another reason)", status.name())
            }
            Self::Value { stands: Stands::Others, .. } => "another".to_owned(),
            Self::Value { stands: Stands::Anything, .. } => "set".to_owned(),
            Self::Value { value: serde_json::Value::String(text), .. } => text.clone(),
            Self::Value { value, .. } => value.to_string(),
            Self::Observed(observed) => observed.name().to_owned(),
            Self::Count(count) => count.to_string(),
            Self::Gate(Some(true)) => "good".to_owned(),
            Self::Gate(Some(false)) => "bad".to_owned(),
            Self::NotAsked => "nothing asked for".to_owned(),
        }
    }
}

/// A predicate of a convention together with where its conditions are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question<'c> {
    pub(crate) predicate: &'c Predicate,
    /// The list that its conditions are in; the first one, where it does not say.
    pub(crate) list: Option<&'c ConditionList>,
    /// It is about each element of the list.
    pub(crate) of_element: bool,
}

impl<'c> Question<'c> {
    /// A predicate about the object, with the conditions of the first list.
    pub(crate) const fn plain(predicate: &'c Predicate) -> Self {
        Self { predicate, list: None, of_element: false }
    }
}

/// The version of the API that combinations are made for: the first that a convention speaks of.
pub(crate) fn version_of(convention: &Convention) -> String {
    versions_of(convention).swap_remove(0)
}

/// All versions that a convention speaks of, and one where it speaks of none.
pub(crate) fn versions_of(convention: &Convention) -> Vec<String> {
    let globs = convention.conditions.iter().flat_map(|list| &list.versions);
    let versions: IndexSet<String> = globs.map(Glob::sample).collect();
    if versions.is_empty() { vec!["v1".to_owned()] } else { versions.into_iter().collect() }
}
