//! YAML as a tree that remembers where each part stands, and readers that report every mistake.
//!
//! serde's derive stops at the first unknown key. People fix documents faster when they see all
//! mistakes at once, so documents are read from this tree by hand.

mod problems;

use std::fmt;
use std::ops::Range;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Location, Spanned};

use super::Diagnostic;

pub(crate) use problems::{Map, Problems, did_you_mean};

/// Where something stands: which source, by its place in the list given to the compiler, and which
/// bytes of it. A convention that extends another is read from nodes of both their documents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) source: usize,
    pub(crate) bytes: Range<usize>,
}

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) value: Value,
    pub(crate) span: Span,
}

/// What a node holds.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Integer(i64),
    Float(f64),
    String(String),
    List(Vec<Node>),
    Map(Vec<(Key, Node)>),
}

/// A key of a mapping and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub(crate) name: String,
    pub(crate) span: Span,
}

/// Reads all documents of one YAML (or JSON) text. Empty documents are left out.
pub(crate) fn parse(source: usize, text: &str) -> Result<Vec<Node>, Diagnostic> {
    let options = serde_saphyr::options! {
        // `no`, `on` and `y` are names in policies, not booleans.
        strict_booleans: true,
        // The message carries its own picture; ours is drawn by `Diagnostics`.
        with_snippet: false,
    };
    serde_saphyr::from_multiple_with_options::<Node>(text, options)
        .map(|nodes| {
            let full = nodes.into_iter().filter(|node| !matches!(node.value, Value::Null));
            full.map(|mut node| {
                node.stamp(source);
                node
            })
            .collect()
        })
        .map_err(|error| {
            let bytes = error.location().map_or(0..0, |location| bytes(text, &location));
            let full = error.to_string();
            // The location is drawn as a caret; said twice it only distracts.
            let message = full.split(" at line ").next().unwrap_or(&full);
            let span = Span { source, bytes };
            Diagnostic { span, message: format!("not YAML: {message}"), help: None }
        })
}

/// The bytes of a location. Syntax errors come without byte offsets, only with line and column.
fn bytes(text: &str, location: &Location) -> Range<usize> {
    if let (Some(offset), Some(length)) =
        (location.span().byte_offset(), location.span().byte_len())
    {
        let start = usize::try_from(offset).unwrap_or(0);
        return start..start + usize::try_from(length).unwrap_or(0);
    }
    let line = usize::try_from(location.line()).unwrap_or(1).max(1);
    let column = usize::try_from(location.column()).unwrap_or(1).max(1);
    let before: usize = text.split_inclusive('\n').take(line - 1).map(str::len).sum();
    let within = text[before..].chars().take(column - 1).map(char::len_utf8).sum::<usize>();
    before + within..before + within + 1
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Value>::deserialize(deserializer)?;
        Ok(Self { value: spanned.value, span: span(&spanned.defined) })
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<String>::deserialize(deserializer)?;
        Ok(Self { name: spanned.value, span: span(&spanned.defined) })
    }
}

/// Without its source, which the deserializer does not know; see [`Node::stamp`].
fn span(location: &Location) -> Span {
    let start = location.span().byte_offset().and_then(|start| usize::try_from(start).ok());
    let length = location.span().byte_len().and_then(|length| usize::try_from(length).ok());
    let bytes = start.map_or(0..0, |start| start..start + length.unwrap_or(0));
    Span { source: 0, bytes }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ValueVisitor;
        impl<'de> Visitor<'de> for ValueVisitor {
            type Value = Value;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a YAML value")
            }
            fn visit_unit<E>(self) -> Result<Value, E> {
                Ok(Value::Null)
            }
            fn visit_none<E>(self) -> Result<Value, E> {
                Ok(Value::Null)
            }
            fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
                Ok(Value::Bool(value))
            }
            fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
                Ok(Value::Integer(value))
            }
            fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
                #[expect(clippy::cast_precision_loss, reason = "no document counts beyond 2^63")]
                Ok(i64::try_from(value).map_or(Value::Float(value as f64), Value::Integer))
            }
            fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
                Ok(Value::Float(value))
            }
            fn visit_str<E>(self, value: &str) -> Result<Value, E> {
                Ok(Value::String(value.to_owned()))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
                let mut list = Vec::new();
                while let Some(item) = items.next_element()? {
                    list.push(item);
                }
                Ok(Value::List(list))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
                let mut map = Vec::new();
                while let Some(entry) = members.next_entry()? {
                    map.push(entry);
                }
                Ok(Value::Map(map))
            }
        }
        deserializer.deserialize_any(ValueVisitor)
    }
}

impl Value {
    fn kind(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Bool(_) => "a boolean",
            Self::Integer(_) | Self::Float(_) => "a number",
            Self::String(_) => "a text",
            Self::List(_) => "a list",
            Self::Map(_) => "a mapping",
        }
    }
}

impl Node {
    /// Says where this and everything in it comes from.
    fn stamp(&mut self, source: usize) {
        self.span.source = source;
        match &mut self.value {
            Value::List(items) => items.iter_mut().for_each(|item| item.stamp(source)),
            Value::Map(entries) => entries.iter_mut().for_each(|(key, node)| {
                key.span.source = source;
                node.stamp(source);
            }),
            _ => {}
        }
    }

    /// An owned JSON value of the same content, for defaults that end up in a patch.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        match &self.value {
            Value::Null => serde_json::Value::Null,
            Value::Bool(value) => (*value).into(),
            Value::Integer(value) => (*value).into(),
            Value::Float(value) => (*value).into(),
            Value::String(text) => text.as_str().into(),
            Value::List(items) => items.iter().map(Self::to_json).collect(),
            Value::Map(map) => serde_json::Value::Object(
                map.iter().map(|(key, node)| (key.name.clone(), node.to_json())).collect(),
            ),
        }
    }
}
