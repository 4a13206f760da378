//! Collects all mistakes of a document, with their locations.

use std::cell::RefCell;

use super::Diagnostic;
use super::tree::{Node, Span, Value, did_you_mean};

/// The mistakes so far. Reading continues after a mistake.
#[derive(Default)]
pub struct Problems {
    list: RefCell<Vec<Diagnostic>>,
}

impl Problems {
    /// The mistakes, in the order in which they were found.
    pub fn into_list(self) -> Vec<Diagnostic> {
        self.list.into_inner()
    }

    /// The number of mistakes so far.
    pub fn count(&self) -> usize {
        self.list.borrow().len()
    }

    pub(crate) fn report(&self, span: &Span, message: impl Into<String>) {
        self.report_with_help(span, message, None);
    }

    pub(crate) fn report_with_help(
        &self,
        span: &Span,
        message: impl Into<String>,
        help: Option<String>,
    ) {
        if *span == Span::NOWHERE {
            return;
        }
        let mistake = Diagnostic { help, ..Diagnostic::new(span.clone(), message) };
        self.list.borrow_mut().push(mistake);
    }

    /// Reports an unknown name, with the nearest known name or all of them.
    pub(crate) fn unknown<'w>(
        &self,
        span: &Span,
        what: &str,
        found: &str,
        known: impl Iterator<Item = &'w str> + Clone,
    ) {
        let help = did_you_mean(found, known);
        self.report_with_help(span, format!("unknown {what} \"{found}\""), Some(help));
    }
}

/// A location in a document. It reports mistakes there.
#[derive(Clone, Copy)]
pub struct At<'p> {
    problems: &'p Problems,
    node: &'p Node,
    span: &'p Span,
    key: &'p Span,
}

impl<'p> At<'p> {
    /// A whole document, or a part of one.
    pub const fn root(node: &'p Node, problems: &'p Problems) -> Self {
        Self { problems, node, span: &node.span, key: &node.span }
    }

    /// The value of a key, or the mapping itself if it has no such key.
    pub fn key(self, name: &str) -> Self {
        let Value::Map(entries) = &self.node.value else { return self };
        match entries.iter().find(|(key, _)| key.name == name) {
            Some((key, node)) => Self { node, span: &node.span, key: &key.span, ..self },
            None => self,
        }
    }

    /// An item of a list, or the value itself if it is not a list.
    pub fn item(self, index: usize) -> Self {
        let Value::List(items) = &self.node.value else { return self };
        items.get(index).map_or(self, |node| Self { node, span: &node.span, ..self })
    }

    /// The items of a list, each with its value.
    pub(crate) fn each<T>(
        self,
        values: impl IntoIterator<Item = T>,
    ) -> impl Iterator<Item = (Self, T)> {
        (0..).zip(values).map(move |(index, value)| (self.item(index), value))
    }

    /// The key of this value.
    pub const fn name(self) -> Self {
        Self { span: self.key, ..self }
    }

    /// The position of a key among the others, in the order of the document.
    pub(crate) fn position(self, name: &str) -> Option<usize> {
        let Value::Map(entries) = &self.node.value else { return None };
        entries.iter().position(|(key, _)| key.name == name)
    }

    /// The node here.
    pub const fn node(self) -> &'p Node {
        self.node
    }

    /// Reports a mistake here.
    pub fn report(self, message: impl Into<String>) {
        self.problems.report(self.span, message);
    }

    /// Reports a mistake here, and its fix.
    pub fn report_with_help(self, message: impl Into<String>, help: impl Into<String>) {
        self.problems.report_with_help(self.span, message, Some(help.into()));
    }

    /// The same node, with its errors at another place.
    pub(crate) const fn on(self, span: &'p Span) -> Self {
        Self { span, ..self }
    }

    pub(crate) fn report_at(self, span: &Span, message: impl Into<String>, help: Option<String>) {
        if *self.span != Span::NOWHERE {
            self.problems.report_with_help(span, message, help);
        }
    }

    /// [`Problems::unknown`] at this location.
    pub(crate) fn unknown<'w>(
        self,
        what: &str,
        found: &str,
        known: impl Iterator<Item = &'w str> + Clone,
    ) {
        self.problems.unknown(self.span, what, found, known);
    }
}
