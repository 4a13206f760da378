//! YAML as a tree with locations.
//!
//! serde's derive stops at the first unknown key. People fix documents faster when they see all
//! mistakes at once, so documents are checked as trees before they are deserialized.

mod continued;
mod deserialize;
mod parts;
mod read;
mod scalar;

use std::ops::Range;

use serde::ser::{Serialize, Serializer};

pub use super::near::{did_you_mean, is_near, near};
pub use super::problems::{At, Problems};
pub(crate) use parts::{content, parts, without_byte_order_mark};
pub(super) use read::manifest;
pub use read::parse;
use scalar::Dialect;

/// A location: a source, by its position in the list given to the compiler, and its bytes. A convention that extends another is read from nodes of both their documents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Span {
    pub(crate) source: usize,
    /// The bytes.
    pub bytes: Range<usize>,
}

impl Span {
    /// Where placeholders are.
    pub(crate) const NOWHERE: Self = Self { source: usize::MAX, bytes: 0..0 };
}

/// A value and its location.
#[derive(Clone, Debug)]
pub struct Node {
    pub(crate) value: Value,
    /// The location.
    pub span: Span,
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
pub struct Document {
    /// Its content.
    pub root: Node,
    /// The whole document, from its first line to the next document.
    pub(crate) span: Span,
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
}

/// Keeps the order of the document.
impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Integer(value) => serializer.serialize_i64(*value),
            Self::Float(value) => serializer.serialize_f64(*value),
            Self::String(text) => serializer.serialize_str(text),
            Self::List(items) => serializer.collect_seq(items),
            Self::Map(entries) => {
                serializer.collect_map(entries.iter().map(|(key, node)| (&key.name, node)))
            }
        }
    }
}

impl Serialize for Node {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(serializer)
    }
}

impl Node {
    /// A node that no text has.
    pub(crate) const fn placeholder(value: Value) -> Self {
        Self { value, span: Span::NOWHERE }
    }

    /// The value of a key.
    pub fn member(&self, name: &str) -> Option<&Self> {
        let Value::Map(entries) = &self.value else { return None };
        entries.iter().find(|(key, _)| key.name == name).map(|(_, node)| node)
    }

    /// The value of a key, to change it.
    pub(crate) fn member_mut(&mut self, name: &str) -> Option<&mut Self> {
        let entries = self.entries_mut()?;
        entries.iter_mut().find(|(key, _)| key.name == name).map(|(_, node)| node)
    }

    /// The text of a string.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// The text of a key.
    pub(crate) fn text_of(&self, name: &str) -> Option<&str> {
        self.member(name)?.text()
    }

    /// The items of the list of a key; none of anything else, which the structural check reports.
    pub(crate) fn items_of(&self, name: &str) -> &[Self] {
        match self.member(name) {
            Some(Self { value: Value::List(items), .. }) => items,
            _ => &[],
        }
    }

    /// The items of the list of a key, to change them.
    pub(crate) fn items_of_mut(&mut self, name: &str) -> Option<&mut Vec<Self>> {
        match &mut self.member_mut(name)?.value {
            Value::List(items) => Some(items),
            _ => None,
        }
    }

    /// The entries of a mapping.
    pub(crate) const fn entries_mut(&mut self) -> Option<&mut Vec<(Key, Self)>> {
        match &mut self.value {
            Value::Map(entries) => Some(entries),
            _ => None,
        }
    }
}
