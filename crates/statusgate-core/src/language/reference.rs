//! References to values: what tests of a value are about, and what they compare it with.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Number;

use super::checker::{Checker, Issue, Segment};
use super::shapes::{Text, described};
use super::{AnyPointer, Facts, Scope};
use crate::model::{Json, order};

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
    /// A member of a condition. Only in operands: tests of a condition have their own word.
    #[serde(skip)]
    OfCondition(MemberOf),
}

/// A member of a condition of the list that predicates read.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MemberOf {
    /// The type of the condition.
    pub condition: String,
    /// The member.
    pub member: String,
}

/// The value to compare with: a pointer, a member of a condition, or in rules about elements the name of a
/// member. It is never a stored value.
// Tekton's `MarkResourceFailed` sets `completionTime` to the transition time of the condition Succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operand(pub Reference);

/// The number to compare with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Bound {
    /// A number.
    Number(Number),
    /// The number that another value is.
    Of(Operand),
}

impl Operand {
    /// Reports the name of a member in a predicate about an object.
    pub(super) fn check(&self, key: &'static str, checker: &mut Checker) {
        if self.0.is_member() && checker.scope() == Scope::Object {
            checker.at(Segment::Key(key), |checker| {
                checker.error("a JSON pointer starts with '/'", None)
            });
        }
        if let Some(kind) = self.condition() {
            checker.at(Segment::Key(key), |checker| {
                checker.at(Segment::Key("condition"), |here| {
                    here.add(Issue::Condition(kind.to_owned()));
                });
            });
        }
    }

    /// The type of the condition that it is a member of.
    pub fn condition(&self) -> Option<&str> {
        match &self.0 {
            Reference::OfCondition(of) => Some(&of.condition),
            _ => None,
        }
    }
}

impl Bound {
    /// The other value, if it is no fixed number.
    pub const fn operand(&self) -> Option<&Operand> {
        match self {
            Self::Number(_) => None,
            Self::Of(operand) => Some(operand),
        }
    }

    /// How a value compares with it; `None` unless both are numbers.
    pub(super) fn compare(&self, value: &Json<'_>, facts: &Facts<'_, '_>) -> Option<Ordering> {
        let bound = match self {
            Self::Number(bound) => bound,
            Self::Of(operand) => number(facts.value(&operand.0)?)?,
        };
        order(number(value)?, bound)
    }
}

impl Reference {
    /// Whether it is a member of the element.
    pub const fn is_member(&self) -> bool {
        matches!(self, Self::Member(_) | Self::OldMember(_))
    }
}

pub(super) const fn number<'j>(value: &'j Json<'_>) -> Option<&'j Number> {
    match value {
        Json::Number(number) => Some(number),
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
            Self::OfCondition(of) => write!(formatter, "{} of {}", of.member, of.condition),
        }
    }
}

described!(Reference, inline: false, |generator| {
    let mut pointer = |description: &str| {
        let mut schema = generator.subschema_for::<AnyPointer>();
        schema.insert("description".to_owned(), description.into());
        schema
    };
    json_schema!({"type": "object", "properties": {
        "field": pointer("A field of this write."),
        "oldField": pointer("A field of the stored object."),
        "member": {"description": "A member of the element.", "type": "string"},
        "oldMember": {"description": "A member of the stored element.", "type": "string"},
    }})
});

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

impl Text for Operand {
    const CHECK: &'static str = "operand";
}

impl<'de> Deserialize<'de> for Operand {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match serde_json::Value::deserialize(from)? {
            serde_json::Value::String(text) => text.parse().map_err(D::Error::custom),
            other => {
                let of = MemberOf::deserialize(other).map_err(D::Error::custom)?;
                Ok(Self(Reference::OfCondition(of)))
            }
        }
    }
}

impl Serialize for Operand {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Reference::Field(path) | Reference::OldField(path) => path.serialize(serializer),
            Reference::Member(name) | Reference::OldMember(name) => name.serialize(serializer),
            Reference::OfCondition(of) => of.serialize(serializer),
        }
    }
}

described!(Operand, inline: true, |generator| {
    let of = generator.subschema_for::<MemberOf>();
    json_schema!({"anyOf": [{"type": "string", "x-check": Self::CHECK}, of]})
});

impl fmt::Display for Bound {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(formatter),
            Self::Of(operand) => operand.0.fmt(formatter),
        }
    }
}
