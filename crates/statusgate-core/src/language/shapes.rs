//! The forms of values in documents in addition to structs: each with its type, its schema, and its reader
//! and writer.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::{Glob, Operand, Pattern, Span};
use crate::model::{ConditionStatus, Pointer};

/// One value or a list of at least `MIN` values. One value is written without a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Values<T, const MIN: usize>(pub Vec<T>);

/// One value or a non-empty list.
pub type OneOrMany<T> = Values<T, 1>;

/// One value or a list that may be empty.
pub type ZeroOrMore<T> = Values<T, 0>;

impl<T> Default for ZeroOrMore<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T, const MIN: usize> Deref for Values<T, MIN> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T> From<T> for OneOrMany<T> {
    fn from(one: T) -> Self {
        Self(vec![one])
    }
}

impl<T, const MIN: usize> FromIterator<T> for Values<T, MIN> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Self(items.into_iter().collect())
    }
}

impl<'de, T: DeserializeOwned, const MIN: usize> Deserialize<'de> for Values<T, MIN> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let items = match Value::deserialize(from)? {
            Value::Array(items) => items,
            one => vec![one],
        };
        if items.len() < MIN {
            return Err(D::Error::custom("this list must not be empty"));
        }
        let values = items.into_iter().map(serde_json::from_value);
        values.collect::<Result<_, _>>().map(Self).map_err(D::Error::custom)
    }
}

impl<T: Serialize, const MIN: usize> Serialize for Values<T, MIN> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0[..] {
            [one] => one.serialize(serializer),
            several => several.serialize(serializer),
        }
    }
}

impl<T: JsonSchema, const MIN: usize> JsonSchema for Values<T, MIN> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Values_{MIN}_{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let item = generator.subschema_for::<T>();
        let mut list = json_schema!({"type": "array", "items": item});
        if MIN > 0 {
            list.insert("minItems".to_owned(), MIN.into());
        }
        json_schema!({"anyOf": [item, list]})
    }
}

/// A string, a number or a boolean.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Value")]
pub struct Scalar(Value);

impl Scalar {
    /// The same as JSON.
    pub const fn value(&self) -> &Value {
        &self.0
    }
}

impl TryFrom<Value> for Scalar {
    type Error = &'static str;

    fn try_from(value: Value) -> Result<Self, Self::Error> {
        match value {
            Value::Null | Value::Array(_) | Value::Object(_) => {
                Err("this must be a text, a number, true or false")
            }
            scalar => Ok(Self(scalar)),
        }
    }
}

impl From<&str> for Scalar {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

described!(Scalar, inline: true, |_| json_schema!({"type": ["string", "number", "boolean"]}));

/// YAML reads an unquoted `True` as a boolean; in a condition it can only mean the status.
impl<'de> Deserialize<'de> for ConditionStatus {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(from)?;
        let status = match &value {
            Value::Bool(true) => Some(Self::True),
            Value::Bool(false) => Some(Self::False),
            other => other.as_str().and_then(Self::parse),
        };
        status.ok_or_else(|| D::Error::custom(format!("{value} is not a status")))
    }
}

described!(ConditionStatus, inline: true, |_| {
    json_schema!({"enum": ["True", "False", "Unknown", true, false]})
});

/// A string with a syntax. Its schema names the syntax in `x-check`, so that the structural check can
/// report errors in it.
pub trait Text: FromStr<Err: fmt::Display> {
    /// The name of the syntax.
    const CHECK: &'static str;
    /// The other parts of the schema.
    fn schema() -> Schema {
        json_schema!({"type": "string"})
    }
}

/// The name of a syntax, and the check of a text.
pub type TextCheck = (&'static str, fn(&str) -> Result<(), String>);

/// The syntaxes of the language, by the name in `x-check`.
pub const CHECKS: [TextCheck; 6] = [
    check::<AnyPointer>(),
    check::<SpecPointer>(),
    check::<Operand>(),
    check::<Pattern>(),
    check::<Glob>(),
    check::<Span>(),
];

/// The entry of a syntax in a table like [`CHECKS`].
pub const fn check<T: Text>() -> TextCheck {
    (T::CHECK, |text| text.parse::<T>().map(drop).map_err(|error| error.to_string()))
}

/// Describes a type: under its name, or `inline` at each place.
macro_rules! described {
    ($name:ident, inline: $inline:literal, |$generator:pat_param| $schema:expr) => {
        impl schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                $inline
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema($generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                $schema
            }
        }
    };
}
pub(crate) use described;

/// Reads, writes and describes a [`Text`] that has `Display`.
macro_rules! text_shape {
    ($name:ident) => {
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        $crate::language::shapes::described!($name, inline: true, |_| {
            let mut schema = <Self as $crate::language::shapes::Text>::schema();
            let check = <Self as $crate::language::shapes::Text>::CHECK;
            schema.insert("x-check".to_owned(), check.into());
            schema
        });
    };
}
pub(crate) use text_shape;

/// The common parts of a string with a form: it is its content, and it is read from text.
macro_rules! form {
    ($name:ident($content:ty), $form:literal, $schema:tt, |$text:ident| $read:expr) => {
        impl std::str::FromStr for $name {
            type Err = String;

            fn from_str($text: &str) -> Result<Self, String> {
                $read.map(Self)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(formatter)
            }
        }

        impl std::ops::Deref for $name {
            type Target = $content;

            fn deref(&self) -> &$content {
                &self.0
            }
        }

        impl $crate::language::shapes::Text for $name {
            const CHECK: &'static str = $form;

            fn schema() -> schemars::Schema {
                schemars::json_schema!($schema)
            }
        }
        $crate::language::shapes::text_shape!($name);
    };
}
pub(crate) use form;

/// A pointer that a predicate can use: inside `.status` or `.spec`, or to a label or an annotation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnyPointer(Pointer);

form!(
    AnyPointer(Pointer),
    "any-pointer",
    {
        "description": "A JSON pointer below /status or /spec, or to a label or an annotation.",
        "type": "string",
        "pattern": "^/(status/.|spec/.|metadata/(labels|annotations)/[^/]+$)",
    },
    |text| pointer(text.parse(), is_any, ANY)
);

/// A pointer to something inside `.spec`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecPointer(Pointer);

form!(
    SpecPointer(Pointer),
    "spec-pointer",
    {"description": "A JSON pointer below /spec.", "type": "string", "pattern": "^/spec/."},
    |text| pointer(
        text.parse(),
        |found| !found.below_spec().is_empty(),
        "this must point below /spec"
    )
);

/// A pointer of a form.
pub(crate) fn pointer(
    read: Result<Pointer, &'static str>,
    fits: fn(&Pointer) -> bool,
    what: &str,
) -> Result<Pointer, String> {
    let pointer = read?;
    if fits(&pointer) { Ok(pointer) } else { Err(what.to_owned()) }
}

const ANY: &str = "this must point below /status or /spec, or to a label or an annotation such as \
                   /metadata/annotations/example.com~1paused";

fn is_any(pointer: &Pointer) -> bool {
    pointer.is_below_status() || !pointer.below_spec().is_empty() || pointer.in_metadata().is_some()
}

impl TryFrom<Pointer> for AnyPointer {
    type Error = &'static str;

    fn try_from(pointer: Pointer) -> Result<Self, Self::Error> {
        if is_any(&pointer) { Ok(Self(pointer)) } else { Err(ANY) }
    }
}

impl Text for Glob {
    const CHECK: &'static str = "glob";
}
text_shape!(Glob);

impl Text for Pattern {
    const CHECK: &'static str = "pattern";
}
text_shape!(Pattern);
