//! Reading a tree and collecting every mistake on the way.

use std::cell::RefCell;

use super::Diagnostic;
use super::tree::{Key, Node, Span, Value};

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

    /// The members of a mapping.
    pub(crate) fn map<'n>(&'n self, node: &'n Node) -> Option<Map<'n>> {
        match &node.value {
            Value::Map(entries) => {
                Some(Map { problems: self, node, entries, asked: RefCell::default() })
            }
            other => self.wrong(node, "a mapping", other),
        }
    }

    pub(crate) fn string<'n>(&self, node: &'n Node) -> Option<&'n str> {
        match &node.value {
            Value::String(text) => Some(text),
            other => self.wrong(node, "a string", other),
        }
    }

    /// A list, each item read by `read`; what cannot be read is left out (and reported).
    pub(crate) fn list<'n, T>(
        &self,
        node: &'n Node,
        mut read: impl FnMut(&'n Node) -> Option<T>,
    ) -> Vec<T> {
        match &node.value {
            Value::List(items) => items.iter().filter_map(&mut read).collect(),
            other => {
                self.wrong::<()>(node, "a list", other);
                Vec::new()
            }
        }
    }

    /// A list, or a single item in its place.
    pub(crate) fn one_or_many<'n, T>(
        &self,
        node: &'n Node,
        mut read: impl FnMut(&'n Node) -> Option<T>,
    ) -> Vec<T> {
        match &node.value {
            Value::List(_) => self.list(node, read),
            _ => read(node).into_iter().collect(),
        }
    }

    /// A list of texts.
    pub(crate) fn strings(&self, node: &Node) -> Vec<String> {
        self.list(node, |item| self.string(item).map(str::to_owned))
    }

    /// One of a few words.
    pub(crate) fn word<T: Copy>(&self, node: &Node, words: &[(&str, T)]) -> Option<T> {
        let text = self.string(node)?;
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
        if found.is_none() {
            let names = words.iter().map(|(word, _)| *word);
            self.unknown(&node.span, "value", text, names);
        }
        found
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

    fn wrong<T>(&self, node: &Node, wanted: &str, found: &Value) -> Option<T> {
        self.report(&node.span, format!("this must be {wanted}, it is {}", found.kind()));
        None
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

/// A mapping being read: remembers which keys were asked for, so that the others are mistakes.
pub(crate) struct Map<'n> {
    problems: &'n Problems,
    pub(crate) node: &'n Node,
    entries: &'n [(Key, Node)],
    asked: RefCell<Vec<&'static str>>,
}

impl<'n> Map<'n> {
    /// The value of a key that may be missing. `null` is a value: only the caller knows whether it
    /// is the same as absence.
    pub(crate) fn get(&self, name: &'static str) -> Option<&'n Node> {
        self.asked.borrow_mut().push(name);
        self.entries.iter().find(|(key, _)| key.name == name).map(|(_, node)| node)
    }

    /// The value of a key that must be there.
    pub(crate) fn required(&self, name: &'static str) -> Option<&'n Node> {
        let found = self.get(name);
        if found.is_none() {
            self.problems.report(&self.node.span, format!("\"{name}\" is missing here"));
        }
        found
    }

    /// All keys and values.
    pub(crate) fn entries(&self) -> &'n [(Key, Node)] {
        self.entries
    }

    /// Reports the keys that nobody asked for. Call it last.
    pub(crate) fn close(self) {
        let asked = self.asked.borrow();
        for (key, _) in self.entries {
            if !asked.contains(&key.name.as_str()) {
                self.problems.unknown(&key.span, "key", &key.name, asked.iter().copied());
            }
        }
    }
}
