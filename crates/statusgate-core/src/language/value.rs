//! `field`, `oldField`, `member` and `oldMember`: one value of the object, or of the element of a list.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::checker::{Checker, Segment};
use super::shapes::{Text, text_shape};
use super::words::not;
use super::{
    Answers, AnyPointer, Around, Asks, Facts, OneOrMany, Pattern, Reasons, Scalar, Scope, Truth,
    Word, any_of, quoted, quoted_if_odd,
};
use crate::model::{Json, is_before_write, parse_rfc3339, same, same_number};

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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is: Option<OneOrMany<Scalar>>,
    /// It is none of these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_not: Option<OneOrMany<Scalar>>,
    /// Whether it is present and not null, "", [] or {}.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set: Option<bool>,
    /// Whether this write changed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed: Option<bool>,
    /// Whether this write made a number or a time smaller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decreased: Option<bool>,
    /// Whether it is a time later than now, by more than clocks differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub future: Option<bool>,
    /// Whether it is a time before this write: more than 2 seconds before now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub past: Option<bool>,
    /// It matches this pattern.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matches: Option<Pattern>,
    /// It is the same as another field, or as another member.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub equals: Option<Operand>,
    /// It is a time before another one, or a smaller number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Operand>,
}

/// A reference to a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Reference {
    /// A field of this write.
    Field(AnyPointer),
    /// A field of the stored object.
    OldField(AnyPointer),
    /// A member of the element.
    Member(String),
    /// A member of the stored element of the same key.
    OldMember(String),
}

/// The value to compare with: a pointer, or in rules about elements the name of a member. It is never a
/// stored value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operand(pub Reference);

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
        }
    }
}

impl Reference {
    /// Whether it is a member of the element.
    pub const fn is_member(&self) -> bool {
        matches!(self, Self::Member(_) | Self::OldMember(_))
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
    ];
    const OF_ELEMENT: &'static [&'static str] = &["member", "oldMember"];

    fn check(&self, checker: &mut Checker<'_>) {
        if *self == Self::of(self.reference.clone()) {
            let message = format!("there is no test of {}", self.reference);
            let help =
                "add is, isNot, set, changed, decreased, future, past, matches, equals or before";
            checker.error(&message, Some(help));
        }
        for (key, operand) in [("equals", &self.equals), ("before", &self.before)] {
            let member = operand.as_ref().is_some_and(|operand| operand.0.is_member());
            if member && checker.scope() == Scope::Object {
                checker.at(Segment::Key(key), |checker| {
                    checker.error("a JSON pointer starts with '/'", None)
                });
            }
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
                Some(less(value?, facts.value_before(&self.reference)??)? == *decreased)
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
            .and(self.before.as_ref(), |other| less(value?, facts.value(&other.0)?))
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
            Self { equals: Some(_), .. } | Self { before: Some(_), .. } => {
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
            Self { before, .. } => {
                let other = before.iter().map(|other| other.0.to_string()).collect::<String>();
                format!("{reference} is {}before {other}", not(negated))
            }
        }
    }

    fn asks<'p>(&'p self, asks: &mut dyn Asks<'p>) {
        asks.value(self);
    }

    fn is_about_element(&self) -> bool {
        let mut operands = self.equals.iter().chain(&self.before);
        self.reference.is_member() || operands.any(|operand| operand.0.is_member())
    }

    fn prepare<'s, 'a>(&self, answers: &mut Answers<'s, 'a>, facts: &Facts<'s, 'a>) {
        let operands = self.equals.iter().chain(&self.before);
        let operands = operands.map(|operand| &operand.0);
        operands
            .chain([&self.reference])
            .for_each(|reference| answers.ask_reference(reference, facts));
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
        ];
        let none = none();
        tests.into_iter().filter(|test| *test != none).collect()
    }
}

fn is_one_of(value: &Json<'_>, wanted: &[Scalar]) -> bool {
    wanted.iter().any(|wanted| match (value, wanted.value()) {
        (Json::String(text), serde_json::Value::String(wanted)) => text == wanted,
        (Json::Bool(value), serde_json::Value::Bool(wanted)) => value == wanted,
        (Json::Number(number), serde_json::Value::Number(wanted)) => same_number(number, wanted),
        _ => false,
    })
}

/// Whether a number or a time is less than another; `None` if they cannot be compared.
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

impl fmt::Display for Reference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(path) => formatter.write_str(path.field()),
            Self::OldField(path) => write!(formatter, "the stored {}", path.field()),
            Self::Member(name) => formatter.write_str(name),
            Self::OldMember(name) => write!(formatter, "the stored {name}"),
        }
    }
}

impl JsonSchema for Reference {
    fn schema_name() -> Cow<'static, str> {
        "Reference".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let pointer = |generator: &mut SchemaGenerator, description: &str| {
            let mut schema = generator.subschema_for::<AnyPointer>();
            schema.insert("description".to_owned(), description.into());
            schema
        };
        let field = pointer(generator, "A field of this write, below /status or /spec.");
        let old_field = pointer(generator, "A field of the stored object.");
        json_schema!({"type": "object", "properties": {
            "field": field,
            "oldField": old_field,
            "member": {"description": "A member of the element.", "type": "string"},
            "oldMember": {"description": "A member of the stored element.", "type": "string"},
        }})
    }
}

impl FromStr for Operand {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(Self(if text.starts_with('/') {
            Reference::Field(text.parse()?)
        } else {
            Reference::Member(text.to_owned())
        }))
    }
}

impl fmt::Display for Operand {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Reference::Field(path) | Reference::OldField(path) => path.fmt(formatter),
            Reference::Member(name) | Reference::OldMember(name) => formatter.write_str(name),
        }
    }
}

impl Text for Operand {
    const CHECK: &'static str = "operand";
}
text_shape!(Operand);
