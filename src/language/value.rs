//! `field`, `oldField`, `member` and `oldMember`: one value of the object, or of the element of a list.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::check::{Check, Step};
use super::shapes::{Text, text_shape};
use super::{AnyPointer, OneOrMany, Pattern, Scalar, Scope, Word};

/// A value, and what must hold of it: all of the tests that are there. Where the value is absent, only
/// `set` and `changed` have an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Value {
    /// Where the value is.
    #[serde(flatten)]
    pub place: Place,
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

/// Where a value is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Place {
    /// A field of this write.
    Field(AnyPointer),
    /// A field of the stored object.
    OldField(AnyPointer),
    /// A member of the element.
    Member(String),
    /// A member of the stored element of the same key.
    OldMember(String),
}

/// What a value is compared with: a pointer, or in rules about elements the name of a member. Never
/// stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operand(pub Place);

impl Value {
    /// No tests of a value yet.
    #[must_use]
    pub const fn of(place: Place) -> Self {
        Self {
            place,
            is: None,
            is_not: None,
            set: None,
            changed: None,
            decreased: None,
            future: None,
            matches: None,
            equals: None,
            before: None,
        }
    }
}

impl Place {
    /// Whether it is in the element.
    #[must_use]
    pub const fn is_member(&self) -> bool {
        matches!(self, Self::Member(_) | Self::OldMember(_))
    }
}

impl Word for Value {
    const KEYS: &'static [&'static str] = &["field", "oldField", "member", "oldMember"];
    const TESTS: &'static [&'static str] =
        &["is", "isNot", "set", "changed", "decreased", "future", "matches", "equals", "before"];
    const OF_ELEMENT: &'static [&'static str] = &["member", "oldMember"];

    fn check(&self, check: &mut Check<'_>) {
        if *self == Self::of(self.place.clone()) {
            let message = format!("nothing is asked of {}", self.place);
            let help = "add is, isNot, set, changed, decreased, future, matches, equals or before";
            check.error(&message, Some(help));
        }
        for (key, operand) in [("equals", &self.equals), ("before", &self.before)] {
            let member = operand.as_ref().is_some_and(|operand| operand.0.is_member());
            if member && check.scope() == Scope::Object {
                check.at(Step::Key(key), |check| {
                    check.error("a JSON pointer starts with '/'", None)
                });
            }
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(path) => formatter.write_str(path.field()),
            Self::OldField(path) => write!(formatter, "the stored {}", path.field()),
            Self::Member(name) => formatter.write_str(name),
            Self::OldMember(name) => write!(formatter, "the stored {name}"),
        }
    }
}

impl JsonSchema for Place {
    fn schema_name() -> Cow<'static, str> {
        "Place".into()
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
            Place::Field(text.parse()?)
        } else {
            Place::Member(text.to_owned())
        }))
    }
}

impl fmt::Display for Operand {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Place::Field(path) | Place::OldField(path) => path.fmt(formatter),
            Place::Member(name) | Place::OldMember(name) => formatter.write_str(name),
        }
    }
}

impl Text for Operand {
    const CHECK: &'static str = "operand";
}
text_shape!(Operand);
