//! Predicates as boolean formulas, for programs that ask the same in another language.
//!
//! A predicate has three answers. A program has two, so a predicate becomes two formulas: one for
//! definitely true, one for definitely false. Without evidence, neither holds.

use std::ops::Not;

use serde_json::{Number, Value};

use super::{Observed, Pattern, Predicate};
use crate::model::Pointer;
use crate::schema::Schema;

/// A boolean question about an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Formula {
    /// All of these hold. Without parts it always holds.
    All(Vec<Self>),
    /// One of these holds. Without parts it never holds.
    Any(Vec<Self>),
    /// This does not hold.
    Not(Box<Self>),
    /// A question without parts.
    Ask(Question),
    /// Some element of a list has conditions for which this holds. Only a whole formula is of this kind.
    Some {
        /// The list.
        outer: Pointer,
        /// The names from an element to its conditions.
        inner: Vec<String>,
        /// What must hold.
        of: Box<Self>,
    },
}

/// A question without parts. Null counts as absent.
#[derive(Clone, Debug, PartialEq)]
pub enum Question {
    /// The list has a condition of this type.
    Present(ListPlace, String),
    /// A member of a condition is a text in a list, or with `negated` another text. The condition did not
    /// observe an older generation.
    Condition {
        /// The list.
        list: ListPlace,
        /// The type.
        kind: String,
        /// The member.
        member: &'static str,
        /// The texts. The empty text includes an absent member.
        among: Vec<String>,
        /// Whether it must be another text.
        negated: bool,
    },
    /// A value is present and in a list, or with `negated` not in it.
    Value {
        /// Where it is.
        path: Pointer,
        /// The values.
        among: Vec<Value>,
        /// Whether it must not be among them.
        negated: bool,
        /// Whether only a non-empty text counts.
        text: bool,
    },
    /// A value is a text, which may be empty.
    IsText(Pointer),
    /// Two values are present, and equal or not.
    Same(Pointer, Pointer, bool),
    /// Two numbers are present, and the comparison holds.
    Compare(Pointer, Comparison, Bound),
    /// A value is present and not "", [] or {}.
    Set(Pointer),
    /// A text is present, and matches a pattern or does not.
    Matches {
        /// Where it is.
        path: Pointer,
        /// The pattern.
        pattern: Pattern,
        /// Whether it must not match.
        negated: bool,
    },
    /// Two values are present, and a language cannot compare them: two texts that may be the same time in two forms.
    Unsure(Pointer, Pointer),
    /// A condition in the list observed an older generation.
    Stale(ListPlace),
    /// A list is present with at least this many items, which are not 0.
    Longer(Pointer, usize),
    /// How an observedGeneration relates to metadata.generation.
    Observed {
        /// Where it is.
        path: Pointer,
        /// The relation is one of these.
        among: Vec<Observed>,
        /// Whether the number is written as a string.
        text: bool,
    },
    /// What no other language asks, in words.
    Foreign(String),
}

/// A list of conditions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListPlace {
    /// At this path.
    At(Pointer),
    /// Of the element of [`Formula::Some`].
    OfElement,
}

/// A comparison of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Comparison {
    AtLeast,
    Less,
    AtMost,
    More,
}

/// A number, or where it is.
#[derive(Clone, Debug, PartialEq)]
pub enum Bound {
    /// A number.
    Number(Number),
    /// The number at a pointer.
    At(Pointer),
}

/// The formulas of a predicate.
#[derive(Clone, Debug, PartialEq)]
pub struct Sides {
    /// It is definitely true.
    pub yes: Formula,
    /// It is definitely false.
    pub no: Formula,
}

/// What a formula needs to know of the objects that it asks about.
#[derive(Clone, Copy, Debug)]
pub struct Layout<'k> {
    /// The plural.
    pub plural: &'k str,
    /// Where the phase is: the first text counts.
    pub phase: &'k [Pointer],
    /// The list of conditions that predicates read, if there is one.
    pub list: Option<&'k ListPlace>,
    /// Where the object's own observedGeneration is.
    pub observed_generation: Option<&'k Pointer>,
    /// Whether it is written as a string.
    pub generation_is_text: bool,
}

impl Formula {
    /// It always holds.
    pub const ALWAYS: Self = Self::All(Vec::new());
    /// It never holds.
    pub const NEVER: Self = Self::Any(Vec::new());

    /// All of these hold.
    pub fn all(parts: impl IntoIterator<Item = Self>) -> Self {
        let mut all: Vec<Self> = Vec::new();
        for part in parts {
            match part {
                Self::All(parts) => all.extend(parts),
                Self::Any(parts) if parts.is_empty() => return Self::NEVER,
                part if all.contains(&part) => {}
                part => all.push(part),
            }
        }
        if all.len() == 1 { all.remove(0) } else { Self::All(all) }
    }

    /// One of these holds.
    pub fn any(parts: impl IntoIterator<Item = Self>) -> Self {
        let mut any: Vec<Self> = Vec::new();
        for part in parts {
            match part {
                Self::Any(parts) => any.extend(parts),
                Self::All(parts) if parts.is_empty() => return Self::ALWAYS,
                part if any.contains(&part) => {}
                part => any.push(part),
            }
        }
        if any.len() == 1 { any.remove(0) } else { Self::Any(any) }
    }

    /// The formula for objects without the fields that their schema drops.
    pub fn under(&self, schema: &Schema) -> Self {
        self.without(&[], &|path| {
            path.first().is_none_or(|name| name != "metadata") && schema.pruned(path).is_some()
        })
    }

    /// Whether it never holds for objects without a field.
    pub fn needs(&self, field: &[String]) -> bool {
        self.without(&[], &|path| path.starts_with(field)) == Self::NEVER
    }

    /// The formula for objects without some fields. The conditions of an element are at `place`.
    fn without(&self, place: &[String], is_dropped: &dyn Fn(&[String]) -> bool) -> Self {
        let part = |part: &Self| part.without(place, is_dropped);
        match self {
            Self::All(parts) => Self::all(parts.iter().map(part)),
            Self::Any(parts) => Self::any(parts.iter().map(part)),
            Self::Not(of) => !part(of),
            Self::Ask(question) if question.paths(place).iter().any(|path| is_dropped(path)) => {
                Self::NEVER
            }
            Self::Ask(_) => self.clone(),
            Self::Some { outer, inner, of } => {
                let place = [outer.tokens(), &["*".to_owned()], inner].concat();
                let of = of.without(&place, is_dropped);
                if is_dropped(&place) || of == Self::NEVER {
                    return Self::NEVER;
                }
                Self::Some { outer: outer.clone(), inner: inner.clone(), of: Box::new(of) }
            }
        }
    }

    /// The formula with the answers to some questions that make it hold, so that it holds whenever the formula does.
    pub fn possible(&self, is_known: &dyn Fn(&Question) -> bool) -> Self {
        self.assuming(true, is_known)
    }

    fn assuming(&self, holds: bool, is_known: &dyn Fn(&Question) -> bool) -> Self {
        let part = |part: &Self| part.assuming(holds, is_known);
        match self {
            Self::All(parts) => Self::all(parts.iter().map(part)),
            Self::Any(parts) => Self::any(parts.iter().map(part)),
            Self::Not(of) => !of.assuming(!holds, is_known),
            Self::Ask(question) if is_known(question) => self.clone(),
            Self::Ask(_) if holds => Self::ALWAYS,
            Self::Ask(_) => Self::NEVER,
            Self::Some { outer, inner, of } => {
                Self::Some { outer: outer.clone(), inner: inner.clone(), of: Box::new(part(of)) }
            }
        }
    }

    /// All of its questions.
    pub fn questions(&self) -> Vec<&Question> {
        match self {
            Self::All(parts) | Self::Any(parts) => parts.iter().flat_map(Self::questions).collect(),
            Self::Not(of) | Self::Some { of, .. } => of.questions(),
            Self::Ask(question) => vec![question],
        }
    }

    /// Whether one excludes the other: both ask for the same value, and no value is in both lists.
    pub fn excludes(&self, other: &Self) -> bool {
        match (self, other) {
            (parts @ (Self::Any(_) | Self::All(_)), other)
            | (other, parts @ (Self::Any(_) | Self::All(_))) => match parts {
                Self::Any(parts) => parts.iter().all(|part| part.excludes(other)),
                Self::All(parts) => parts.iter().any(|part| part.excludes(other)),
                _ => false,
            },
            (Self::Ask(one), Self::Ask(other)) => one.excludes(other),
            _ => false,
        }
    }
}

impl Not for Formula {
    type Output = Self;

    fn not(self) -> Self {
        match self {
            Self::All(parts) if parts.is_empty() => Self::NEVER,
            Self::Any(parts) if parts.is_empty() => Self::ALWAYS,
            Self::Not(part) => *part,
            part => Self::Not(Box::new(part)),
        }
    }
}

impl ListPlace {
    /// Where a member of its conditions is. The conditions of an element are at `place`.
    pub fn member(&self, name: &str, place: &[String]) -> Vec<String> {
        let list = match self {
            Self::At(path) => path.tokens(),
            Self::OfElement => place,
        };
        [list, &["*".to_owned(), name.to_owned()]].concat()
    }
}

impl Question {
    /// The question as a clause, if a language may not be able to ask it.
    pub fn words(&self) -> String {
        match self {
            Self::Foreign(words) => words.clone(),
            Self::Matches { path, pattern, negated } => {
                let matches = if *negated { "does not match" } else { "matches" };
                format!("{} {matches} `{pattern}`", path.field())
            }
            Self::Value { path, .. } | Self::Compare(path, ..) => {
                format!("{} is compared with a number above 2^53", path.field())
            }
            other => format!("{other:?}"),
        }
    }

    /// The fields without which it is false.
    fn paths(&self, place: &[String]) -> Vec<Vec<String>> {
        let path = |path: &Pointer| path.tokens().to_vec();
        match self {
            Self::Present(list, _) => vec![list.member("type", place)],
            Self::Stale(list) => vec![list.member("observedGeneration", place)],
            Self::Condition { list, member, among, negated, .. } => {
                let may_be_absent = !negated && among.iter().any(String::is_empty);
                vec![list.member(if may_be_absent { "type" } else { member }, place)]
            }
            Self::Same(one, other, _)
            | Self::Unsure(one, other)
            | Self::Compare(one, _, Bound::At(other)) => vec![path(one), path(other)],
            Self::Value { path: one, .. }
            | Self::Matches { path: one, .. }
            | Self::Observed { path: one, .. }
            | Self::IsText(one)
            | Self::Longer(one, _)
            | Self::Compare(one, ..)
            | Self::Set(one) => vec![path(one)],
            Self::Foreign(_) => Vec::new(),
        }
    }

    fn excludes(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::Condition { list, kind, member, among, negated: false },
                Self::Condition { list: l, kind: k, member: m, among: others, negated: false },
            ) => {
                (list, kind, member) == (l, k, m) && !among.iter().any(|text| others.contains(text))
            }
            (
                Self::Value { path, among, negated: false, .. },
                Self::Value { path: p, among: others, negated: false, .. },
            ) => path == p && !among.iter().any(|value| others.contains(value)),
            _ => false,
        }
    }
}

impl Sides {
    /// A question that always has an answer.
    pub fn of(yes: Formula) -> Self {
        Self { no: !yes.clone(), yes }
    }

    /// A question whose answer is known.
    pub fn known(answer: bool) -> Self {
        Self::of(if answer { Formula::ALWAYS } else { Formula::NEVER })
    }

    /// A question that never has an answer.
    pub const UNKNOWN: Self = Self { yes: Formula::NEVER, no: Formula::NEVER };

    /// What no other language asks, in words.
    pub fn foreign(words: String) -> Self {
        let yes = Formula::from(Question::Foreign(words));
        Self { no: yes.clone(), yes }
    }

    /// All of these hold.
    pub fn all(parts: Vec<Self>) -> Self {
        let (yes, no): (Vec<_>, Vec<_>) =
            parts.into_iter().map(|sides| (sides.yes, sides.no)).unzip();
        Self { yes: Formula::all(yes), no: Formula::any(no) }
    }

    /// At least one of these holds.
    pub fn any(parts: Vec<Self>) -> Self {
        !Self::all(parts.into_iter().map(Not::not).collect())
    }
}

impl Not for Sides {
    type Output = Self;

    fn not(self) -> Self {
        Self { yes: self.no, no: self.yes }
    }
}

impl From<Question> for Formula {
    fn from(question: Question) -> Self {
        Self::Ask(question)
    }
}

impl Predicate {
    /// Its formulas for objects of a kind.
    pub fn sides(&self, layout: Layout<'_>) -> Sides {
        Sides::all(self.parts().iter().map(|word| word.sides(layout)).collect())
    }
}
