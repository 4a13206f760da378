//! YAML as a tree with locations.
//!
//! serde's derive stops at the first unknown key. People fix documents faster when they see all
//! mistakes at once, so documents are checked as trees before they are deserialized.

mod deserialize;
mod parts;
mod read;
mod scalar;

use std::ops::Range;

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

use super::Diagnostic;

pub(crate) use super::problems::{At, Problems, did_you_mean, near};
pub(crate) use parts::{content, parts, without_byte_order_mark};
use scalar::Dialect;

/// Where something stands: which source, by its place in the list given to the compiler, and which
/// bytes of it. A convention that extends another is read from nodes of both their documents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) source: usize,
    pub(crate) bytes: Range<usize>,
}

impl Span {
    /// Where placeholders are.
    pub(crate) const NOWHERE: Self = Self { source: usize::MAX, bytes: 0..0 };
}

/// A value and its location.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) value: Value,
    pub(crate) span: Span,
}

/// The content of a node.
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

/// A key of a mapping and its location.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub(crate) name: String,
    pub(crate) span: Span,
}

impl Key {
    /// A key that no text has.
    pub(crate) fn placeholder(name: &str) -> Self {
        Self { name: name.to_owned(), span: Span::NOWHERE }
    }
}

/// One document of a text.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) root: Node,
    /// The whole document, from its first line to the next document.
    pub(crate) span: Span,
}

/// Reads all policies of one YAML (or JSON) text, and the mistakes in those that cannot be read.
/// Empty documents are left out.
pub(crate) fn parse(source: usize, text: &str) -> (Vec<Document>, Vec<Diagnostic>) {
    read::documents(source, text)
}

/// Reads one document of a manifest as `kubectl` does. An empty document is null. Its spans name source 0.
pub(super) fn manifest(text: &str, part: &Range<usize>) -> Result<Node, Diagnostic> {
    read::manifest(text, part)
}

impl Value {
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Integer(_) | Self::Float(_) => "a number",
            Self::String(_) => "a string",
            Self::List(_) => "a list",
            Self::Map(_) => "a mapping",
        }
    }

    /// An owned JSON value of the same content.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        match self {
            Self::Null => serde_json::Value::Null,
            Self::Bool(value) => (*value).into(),
            Self::Integer(value) => (*value).into(),
            Self::Float(value) => (*value).into(),
            Self::String(text) => text.as_str().into(),
            Self::List(items) => items.iter().map(Node::to_json).collect(),
            Self::Map(map) => serde_json::Value::Object(
                map.iter().map(|(key, node)| (key.name.clone(), node.to_json())).collect(),
            ),
        }
    }
}

/// Keeps the order of the document; [`Node::to_json`] sorts the keys.
impl Serialize for Node {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.value {
            Value::Null => serializer.serialize_unit(),
            Value::Bool(value) => serializer.serialize_bool(*value),
            Value::Integer(value) => serializer.serialize_i64(*value),
            Value::Float(value) => serializer.serialize_f64(*value),
            Value::String(text) => serializer.serialize_str(text),
            Value::List(items) => {
                let mut list = serializer.serialize_seq(Some(items.len()))?;
                for item in items {
                    list.serialize_element(item)?;
                }
                list.end()
            }
            Value::Map(entries) => {
                let mut map = serializer.serialize_map(Some(entries.len()))?;
                for (key, node) in entries {
                    map.serialize_entry(&key.name, node)?;
                }
                map.end()
            }
        }
    }
}

impl Node {
    /// A node that no text has.
    pub(crate) const fn placeholder(value: Value) -> Self {
        Self { value, span: Span::NOWHERE }
    }

    /// The value of a key.
    pub(crate) fn member(&self, name: &str) -> Option<&Self> {
        let Value::Map(entries) = &self.value else { return None };
        entries.iter().find(|(key, _)| key.name == name).map(|(_, node)| node)
    }

    /// An owned JSON value of the same content.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        self.value.to_json()
    }
}
