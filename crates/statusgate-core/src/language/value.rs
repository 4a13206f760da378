//! `field`, `oldField`, `member` and `oldMember`: one value of the object, or of the element of a list.

use std::cmp::Ordering;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::checker::{Checker, Issue, Segment};
use super::formula::{self, Comparison};
use super::reference::number;
use super::words::not;
use super::{
    Around, Bound, Facts, Layout, OneOrMany, Operand, Pattern, Question, Reasons, Reference,
    Scalar, Sides, Truth, Word, any_of, quoted, quoted_if_odd,
};
use crate::model::{Json, is_before_write, order, parse_rfc3339, same, same_number};

/// The tolerated clock skew. The default for transition times.
pub(crate) const SKEW_SECONDS: i64 = 300;

/// A value, and what must hold of it: all of the tests that are there. Where the value is absent, only
/// `set` and `changed` have an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Value {
    /// Where the value is.
    #[serde(flatten)]
    pub reference: Reference,
    /// It is one of these.
    pub is: Option<OneOrMany<Scalar>>,
    /// It is none of these.
    pub is_not: Option<OneOrMany<Scalar>>,
    /// Whether it is present and not null, "", [] or {}.
    pub set: Option<bool>,
    /// Whether this write changed it.
    pub changed: Option<bool>,
    /// Whether this write made a number or a time smaller.
    pub decreased: Option<bool>,
    /// Whether it is a time later than now, by more than clocks differ.
    pub future: Option<bool>,
    /// Whether it is a time before this write: more than 2 seconds before now.
    pub past: Option<bool>,
    /// It matches this pattern.
    pub matches: Option<Pattern>,
    /// It is the same as another value.
    pub equals: Option<Operand>,
    /// It is a time before another one.
    pub before: Option<Operand>,
    /// It is this number or a larger one. The number can be that of another value.
    pub at_least: Option<Bound>,
    /// It is this number or a smaller one. The number can be that of another value.
    pub at_most: Option<Bound>,
}

impl Value {
    /// A value without tests.
    pub const fn of(reference: Reference) -> Self {
        Self {
            reference,
            is: None,
            is_not: None,
            set: None,
            changed: None,
            decreased: None,
            future: None,
            past: None,
            matches: None,
            equals: None,
            before: None,
            at_least: None,
            at_most: None,
        }
    }

    /// The bounds of a number.
    pub fn bounds(&self) -> impl Iterator<Item = &Bound> {
        self.at_least.iter().chain(&self.at_most)
    }

    /// The other values that it is compared with.
    pub fn operands(&self) -> impl Iterator<Item = &Operand> {
        self.equals.iter().chain(&self.before).chain(self.bounds().filter_map(Bound::operand))
    }
}

impl Word for Value {
    const KEYS: &'static [&'static str] = &["field", "oldField", "member", "oldMember"];
    const TESTS: &'static [&'static str] = &[
        "is",
        "isNot",
        "set",
        "changed",
        "decreased",
        "future",
        "past",
        "matches",
        "equals",
        "before",
        "atLeast",
        "atMost",
    ];
    const OF_ELEMENT: &'static [&'static str] = &["member", "oldMember"];

    fn check(&self, checker: &mut Checker) {
        if *self == Self::of(self.reference.clone()) {
            let message = format!("there is no test of {}", self.reference);
            let tests = any_of(Self::TESTS.iter().map(ToString::to_string));
            checker.error(&message, Some(&format!("add {tests}")));
        }
        if let Reference::Field(path) | Reference::OldField(path) = &self.reference
            && path.in_metadata().is_some()
        {
            for (key, values) in [("is", &self.is), ("isNot", &self.is_not)] {
                if values
                    .iter()
                    .flat_map(|values| values.iter())
                    .any(|value| !value.value().is_string())
                {
                    checker.at(Segment::Key(key), |checker| {
                        checker.error("labels and annotations are texts", Some("put it in quotes"));
                    });
                }
            }
            for (key, bound) in [("atLeast", &self.at_least), ("atMost", &self.at_most)] {
                if bound.is_some() {
                    checker.at(Segment::Key(key), |checker| {
                        let help = "use is or matches";
                        checker.error("labels and annotations are texts, not numbers", Some(help));
                    });
                }
            }
        }
        let tests_write = [self.changed, self.decreased, self.future, self.past];
        let is_old = matches!(self.reference, Reference::OldField(_) | Reference::OldMember(_));
        if is_old || tests_write.iter().any(Option::is_some) {
            checker.add(Issue::Write);
        }
        for (key, test) in [("future", self.future), ("past", self.past)] {
            if test.is_some() {
                checker.at(Segment::Key(key), |checker| checker.add(Issue::Clock));
            }
        }
        for (key, operand) in [
            ("equals", self.equals.as_ref()),
            ("before", self.before.as_ref()),
            ("atLeast", self.at_least.as_ref().and_then(Bound::operand)),
            ("atMost", self.at_most.as_ref().and_then(Bound::operand)),
        ] {
            operand.into_iter().for_each(|operand| operand.check(key, checker));
        }
        if let (Some(Bound::Number(least)), Some(Bound::Number(most))) =
            (&self.at_least, &self.at_most)
            && order(least, most) == Some(Ordering::Greater)
        {
            checker.error("no number is at least and at most this", None);
        }
    }

    fn ask(&self, facts: &Facts<'_, '_>) -> Truth {
        let value = facts.value(&self.reference);
        Truth::True
            .and(self.is.as_ref(), |wanted| Some(is_one_of(value?, wanted)))
            .and(self.is_not.as_ref(), |unwanted| Some(!is_one_of(value?, unwanted)))
            .and(self.set.as_ref(), |set| {
                // Without a stored object, not even absence is known.
                if matches!(self.reference, Reference::OldField(_)) {
                    facts.old?;
                }
                Some(value.is_some_and(|value| !value.is_empty()) == *set)
            })
            .and(self.changed.as_ref(), |changed| {
                Some(same(value, facts.value_before(&self.reference)?) != *changed)
            })
            .and(self.decreased.as_ref(), |decreased| {
                let (value, before) = (value?, facts.value_before(&self.reference)??);
                let less = match (number(value), number(before)) {
                    (Some(value), Some(before)) => order(value, before)?.is_lt(),
                    _ => is_before(value, before)?,
                };
                Some(less == *decreased)
            })
            .and(self.future.as_ref(), |future| {
                let is_later = parse_rfc3339(value?.as_str()?)? > facts.now? + SKEW_SECONDS;
                Some(is_later == *future)
            })
            .and(self.past.as_ref(), |past| {
                let time = parse_rfc3339(value?.as_str()?)?;
                Some(is_before_write(time, facts.now?) == *past)
            })
            .and(self.matches.as_ref(), |pattern| Some(pattern.is_match(value?.as_str()?)))
            .and(self.equals.as_ref(), |other| {
                let (value, other) = (value?, facts.value(&other.0)?);
                Some(same(Some(value), Some(other)))
            })
            .and(self.before.as_ref(), |other| is_before(value?, facts.value(&other.0)?))
            .and(self.at_least.as_ref(), |least| Some(least.compare(value?, facts)?.is_ge()))
            .and(self.at_most.as_ref(), |most| Some(most.compare(value?, facts)?.is_le()))
    }

    fn because(&self, facts: &Facts<'_, '_>, reasons: &mut Reasons) {
        let reference = &self.reference;
        let mut say = |wanted: bool, yes: &str, no: &str| {
            let words = if self.ask(facts) == Truth::of(Some(wanted)) { yes } else { no };
            reasons.say(format_args!("{reference} {words}"));
        };
        match self {
            Self { set: Some(set), .. } => say(*set, "is set", "is empty"),
            Self { changed: Some(changed), .. } => say(*changed, "did change", "did not change"),
            Self { decreased: Some(decreased), .. } => {
                say(*decreased, "did decrease", "did not decrease");
            }
            Self { future: Some(future), .. } => {
                say(*future, "lies in the future", "does not lie in the future");
            }
            Self { past: Some(past), .. } => {
                say(*past, "lies before this write", "does not lie before this write");
            }
            Self { equals: Some(_), .. }
            | Self { before: Some(_), .. }
            | Self { at_least: Some(_), .. }
            | Self { at_most: Some(_), .. } => {
                // Not the number itself: it may change with each write.
                let negated = self.ask(facts) == Truth::False;
                reasons.say(format_args!("{}", self.words(Around::Nothing, negated)));
            }
            _ => match facts.value(reference) {
                Some(Json::String(text)) => {
                    reasons.say(format_args!("{reference} is {}", quoted(text)));
                }
                Some(Json::Bool(value)) => reasons.say(format_args!("{reference} is {value}")),
                Some(Json::Number(number)) => reasons.say(format_args!("{reference} is {number}")),
                Some(other) => reasons.say(format_args!("{reference} is {}", other.kind())),
                None => reasons.say(format_args!("{reference} is absent")),
            },
        }
    }

    fn is_open(&self, answer: Truth) -> bool {
        let is_true = answer == Truth::True;
        match self {
            Self { is: Some(wanted), .. } => !is_true || wanted.len() > 1,
            Self { is_not: Some(unwanted), .. } => is_true || unwanted.len() > 1,
            Self { matches, .. } => matches.is_some(),
        }
    }

    fn words(&self, _: Around, negated: bool) -> String {
        let reference = &self.reference;
        let is = |wanted: &[Scalar], negated| {
            let wanted = wanted.iter().map(Scalar::value);
            let wanted =
                wanted.map(|value| value.as_str().map_or_else(|| value.to_string(), quoted_if_odd));
            format!("{reference} is {}{}", not(negated), any_of(wanted))
        };
        // The clause for a boolean test.
        let flag = |wanted: bool, yes: &str, no: &str| {
            format!("{reference} {}", if wanted == negated { no } else { yes })
        };
        match self {
            Self { is: Some(wanted), .. } => is(wanted, negated),
            Self { is_not: Some(unwanted), .. } => is(unwanted, !negated),
            Self { set: Some(set), .. } => flag(*set, "is set", "is not set"),
            Self { changed: Some(changed), .. } => flag(*changed, "changed", "did not change"),
            Self { decreased: Some(decreased), .. } => {
                flag(*decreased, "went back", "did not go back")
            }
            Self { future: Some(future), .. } => {
                flag(*future, "lies in the future", "does not lie in the future")
            }
            Self { past: Some(past), .. } => {
                flag(*past, "lies before this write", "does not lie before this write")
            }
            Self { matches: Some(pattern), .. } => {
                format!("{} `{pattern}`", flag(true, "matches", "does not match"))
            }
            Self { equals: Some(other), .. } => {
                format!("{} {}", flag(true, "equals", "differs from"), other.0)
            }
            Self { before: Some(other), .. } => {
                format!("{reference} is {}before {}", not(negated), other.0)
            }
            Self { at_least, .. } => {
                let is = match (at_least, negated) {
                    (Some(_), false) => "is at least",
                    (Some(_), true) => "is less than",
                    (None, false) => "is at most",
                    (None, true) => "is more than",
                };
                let bound = self.bounds().map(ToString::to_string).collect::<String>();
                format!("{reference} {is} {bound}")
            }
        }
    }

    fn sides(&self, _: Layout<'_>) -> Sides {
        let pointer = |reference: &Reference| match reference {
            Reference::Field(path) => Some((**path).clone()),
            _ => None,
        };
        let sides = || {
            let path = pointer(&self.reference)?;
            let is = |wanted: &[Scalar]| {
                let among: Vec<_> = wanted.iter().map(|scalar| scalar.value().clone()).collect();
                let question = |negated| {
                    let (path, among) = (path.clone(), among.clone());
                    Question::Value { path, among, negated, text: false }.into()
                };
                Sides { yes: question(false), no: question(true) }
            };
            let compared = |bound: &Bound, yes, no| {
                let bound = match bound {
                    Bound::Number(number) => formula::Bound::Number(number.clone()),
                    Bound::Of(operand) => formula::Bound::At(pointer(&operand.0)?),
                };
                let question = |how| Question::Compare(path.clone(), how, bound.clone()).into();
                Some(Sides { yes: question(yes), no: question(no) })
            };
            match self {
                Self { is: Some(wanted), .. } => Some(is(wanted)),
                Self { is_not: Some(unwanted), .. } => Some(!is(unwanted)),
                Self { set: Some(set), .. } => {
                    let sides = Sides::of(Question::Set(path).into());
                    Some(if *set { sides } else { !sides })
                }
                Self { matches: Some(pattern), .. } => {
                    let question = |negated| {
                        let (path, pattern) = (path.clone(), pattern.clone());
                        Question::Matches { path, pattern, negated }.into()
                    };
                    Some(Sides { yes: question(false), no: question(true) })
                }
                Self { equals: Some(other), .. } => {
                    let other = pointer(&other.0)?;
                    let question = |same| Question::Same(path.clone(), other.clone(), same).into();
                    Some(Sides { yes: question(true), no: question(false) })
                }
                Self { at_least: Some(least), .. } => {
                    compared(least, Comparison::AtLeast, Comparison::Less)
                }
                Self { at_most: Some(most), .. } => {
                    compared(most, Comparison::AtMost, Comparison::More)
                }
                _ => None,
            }
        };
        sides().unwrap_or_else(|| self.foreign())
    }

    fn is_about_element(&self) -> bool {
        self.reference.is_member() || self.operands().any(|operand| operand.0.is_member())
    }

    fn split(&self) -> Vec<Self> {
        let none = || Self::of(self.reference.clone());
        let tests = [
            Self { is: self.is.clone(), ..none() },
            Self { is_not: self.is_not.clone(), ..none() },
            Self { set: self.set, ..none() },
            Self { changed: self.changed, ..none() },
            Self { decreased: self.decreased, ..none() },
            Self { future: self.future, ..none() },
            Self { past: self.past, ..none() },
            Self { matches: self.matches.clone(), ..none() },
            Self { equals: self.equals.clone(), ..none() },
            Self { before: self.before.clone(), ..none() },
            Self { at_least: self.at_least.clone(), ..none() },
            Self { at_most: self.at_most.clone(), ..none() },
        ];
        let none = none();
        tests.into_iter().filter(|test| *test != none).collect()
    }
}

/// Whether a value is one of these. Numbers are compared by value.
pub(crate) fn is_one_of(value: &Json<'_>, wanted: &[Scalar]) -> bool {
    wanted.iter().any(|wanted| match (value, wanted.value()) {
        (Json::String(text), serde_json::Value::String(wanted)) => text == wanted,
        (Json::Bool(value), serde_json::Value::Bool(wanted)) => value == wanted,
        (Json::Number(number), serde_json::Value::Number(wanted)) => same_number(number, wanted),
        _ => false,
    })
}

/// Whether a time is before another; `None` unless both are times.
fn is_before(one: &Json<'_>, other: &Json<'_>) -> Option<bool> {
    Some(parse_rfc3339(one.as_str()?)? < parse_rfc3339(other.as_str()?)?)
}
