//! The text of a document file, and its name in messages.

use super::tree::without_byte_order_mark;

/// One document file: what to call it in messages, and its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The path as a person would type it.
    pub name: String,
    /// The whole text, without a byte order mark.
    pub text: String,
}

impl Source {
    /// A text under a name.
    #[must_use]
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { name: name.into(), text: without_byte_order_mark(text.into()) }
    }
}
