//! Reading a tree and collecting every mistake on the way.

use std::cell::RefCell;

use super::Diagnostic;
use super::tree::{Node, Span, Value};

/// Collects mistakes. Reading goes on after a mistake: what could not be read is `None`, and the
/// mistake is here.
#[derive(Default)]
pub(crate) struct Problems {
    list: RefCell<Vec<Diagnostic>>,
}

impl Problems {
    pub(crate) fn into_list(self) -> Vec<Diagnostic> {
        self.list.into_inner()
    }

    /// How many mistakes there are so far.
    pub(crate) fn count(&self) -> usize {
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

    /// A name that is not among those that exist: says which do, and the nearest one.
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

/// The name that is nearest to one that does not exist, or all that do.
pub(crate) fn did_you_mean<'w>(
    found: &str,
    known: impl Iterator<Item = &'w str> + Clone,
) -> String {
    match near(found, known.clone()) {
        Some(name) => format!("did you mean \"{name}\"?"),
        None => format!("possible: {}", known.collect::<Vec<_>>().join(", ")),
    }
}

/// The name that is nearest to one that does not exist, where one is so near that it was meant.
pub(crate) fn near<'w>(found: &str, known: impl Iterator<Item = &'w str>) -> Option<&'w str> {
    let found = found.to_lowercase();
    known
        .map(|name| (strsim::damerau_levenshtein(&name.to_lowercase(), &found), name))
        .filter(|(distance, name)| *distance <= 2.max(name.len() / 4))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// A place in a document that is compiled: it reports what is wrong there.
#[derive(Clone, Copy)]
pub(crate) struct At<'p> {
    problems: &'p Problems,
    node: &'p Node,
    span: &'p Span,
    key: &'p Span,
}

impl<'p> At<'p> {
    pub(crate) const fn root(node: &'p Node, problems: &'p Problems) -> Self {
        Self { problems, node, span: &node.span, key: &node.span }
    }

    /// The value of a key; the mapping itself, where it has no such key.
    pub(crate) fn key(self, name: &str) -> Self {
        let Value::Map(entries) = &self.node.value else { return self };
        match entries.iter().find(|(key, _)| key.name == name) {
            Some((key, node)) => Self { node, span: &node.span, key: &key.span, ..self },
            None => self,
        }
    }

    /// An item of a list; a value that stands for a list of one, where there is no list.
    pub(crate) fn item(self, index: usize) -> Self {
        let Value::List(items) = &self.node.value else { return self };
        items.get(index).map_or(self, |node| Self { node, span: &node.span, ..self })
    }

    /// The key of this value.
    pub(crate) const fn name(self) -> Self {
        Self { span: self.key, ..self }
    }

    /// Where a key is among the others, in the order of the document.
    pub(crate) fn position(self, name: &str) -> Option<usize> {
        let Value::Map(entries) = &self.node.value else { return None };
        entries.iter().position(|(key, _)| key.name == name)
    }

    /// The node here.
    pub(crate) const fn node(self) -> &'p Node {
        self.node
    }

    /// Whether nothing was reported so far.
    pub(crate) fn is_clean(self) -> bool {
        self.problems.count() == 0
    }

    pub(crate) fn report(self, message: impl Into<String>) {
        self.problems.report(self.span, message);
    }

    pub(crate) fn report_with_help(self, message: impl Into<String>, help: impl Into<String>) {
        self.problems.report_with_help(self.span, message, Some(help.into()));
    }

    pub(crate) fn report_at(self, span: &Span, message: impl Into<String>, help: Option<String>) {
        if *self.span != Span::NOWHERE {
            self.problems.report_with_help(span, message, help);
        }
    }

    /// A name that does not exist: reports the nearest one that does, or all.
    pub(crate) fn unknown<'w>(
        self,
        what: &str,
        found: &str,
        known: impl Iterator<Item = &'w str> + Clone,
    ) {
        self.problems.unknown(self.span, what, found, known);
    }
}
