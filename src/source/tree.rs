//! YAML as a tree with locations.
//!
//! serde's derive stops at the first unknown key. People fix documents faster when they see all
//! mistakes at once, so documents are read from this tree by hand.

mod parts;
mod read;
mod scalar;

use std::ops::Range;

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

use super::Diagnostic;

pub(crate) use super::problems::{Map, Problems, did_you_mean, near};
pub(crate) use parts::{content, parts, without_byte_order_mark};
use scalar::Dialect;

/// Where something stands: which source, by its place in the list given to the compiler, and which
/// bytes of it. A convention that extends another is read from nodes of both their documents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) source: usize,
    pub(crate) bytes: Range<usize>,
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
