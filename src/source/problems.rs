//! Reading a tree and collecting every mistake on the way.

use std::cell::RefCell;
use std::fmt;

use super::Diagnostic;
use super::tree::{Key, Node, Span, Value};

/// The longest message of a rule, in characters. An answer has up to 32 of them, and controllers copy
/// it into a condition, whose message may have 32,768.
const MAX_SENTENCE: usize = 200;

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
            other => self.wrong(node, "a text", other),
        }
    }

    pub(crate) fn boolean(&self, node: &Node) -> Option<bool> {
        match &node.value {
            Value::Bool(value) => Some(*value),
            other => self.wrong(node, "true or false", other),
        }
    }

    pub(crate) fn integer(&self, node: &Node) -> Option<i64> {
        match &node.value {
            Value::Integer(value) => Some(*value),
            other => self.wrong(node, "a whole number", other),
        }
    }

    pub(crate) fn number(&self, node: &Node) -> Option<f64> {
        match &node.value {
            #[expect(clippy::cast_precision_loss, reason = "limits beyond 2^53 are not written")]
            Value::Integer(value) => Some(*value as f64),
            Value::Float(value) => {
                self.check_finite(node);
                Some(*value)
            }
            other => self.wrong(node, "a number", other),
        }
    }

    /// Any value that JSON has.
    pub(crate) fn json(&self, node: &Node) -> Option<serde_json::Value> {
        let before = self.count();
        self.check_finite(node);
        (self.count() == before).then(|| node.to_json())
    }

    /// `.inf` and `.nan` are of YAML alone. In a patch they would be null, and as a limit nothing
    /// would ever keep to them, or everything.
    fn check_finite(&self, node: &Node) {
        match &node.value {
            Value::Float(value) if !value.is_finite() => {
                self.report(&node.span, "JSON has no such number");
            }
            Value::List(items) => items.iter().for_each(|item| self.check_finite(item)),
            Value::Map(entries) => entries.iter().for_each(|(_, node)| self.check_finite(node)),
            _ => {}
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

    /// The same of a list that says nothing when it is empty: `why` is what it would mean.
    pub(crate) fn filled_list<'n, T>(
        &self,
        node: &'n Node,
        why: &str,
        read: impl FnMut(&'n Node) -> Option<T>,
    ) -> Vec<T> {
        if matches!(&node.value, Value::List(items) if items.is_empty()) {
            self.report(&node.span, why);
        }
        self.list(node, read)
    }

    /// A list, or a single item in its place.
    pub(crate) fn one_or_many<'n, T>(
        &self,
        node: &'n Node,
        mut read: impl FnMut(&'n Node) -> Option<T>,
    ) -> Vec<T> {
        match &node.value {
            Value::List(items) => items.iter().filter_map(&mut read).collect(),
            _ => read(node).into_iter().collect(),
        }
    }

    /// The same, where an empty list is a mistake: what it stands for would never be so, or always.
    pub(crate) fn filled<'n, T>(
        &self,
        node: &'n Node,
        read: impl FnMut(&'n Node) -> Option<T>,
    ) -> Vec<T> {
        if matches!(&node.value, Value::List(items) if items.is_empty()) {
            self.report(&node.span, "an empty list says nothing");
        }
        self.one_or_many(node, read)
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

    /// A name that ends up in a rule id, and so in metric labels and between brackets in answers.
    pub(crate) fn identifier<'n>(&self, node: &'n Node) -> Option<&'n str> {
        let name = self.string(node)?;
        let good = !name.is_empty()
            && name.len() <= 63
            && name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.'))
            && name.starts_with(|first: char| first.is_ascii_alphanumeric())
            && name.ends_with(|last: char| last.is_ascii_alphanumeric());
        if !good {
            let message = "a name has at most 63 of a-z, 0-9, '-' and '.', and starts and ends with a letter or digit";
            self.report(&node.span, message);
        }
        good.then_some(name)
    }

    /// A sentence that ends up in answers: one line, not longer than a client shows.
    pub(crate) fn sentence<'n>(&self, node: &'n Node, what: &str) -> Option<&'n str> {
        let text = self.string(node)?;
        if text.is_empty() || text.contains(char::is_control) {
            self.report(&node.span, format!("a {what} is one line of text"));
            return None;
        }
        let length = text.chars().count();
        if length > MAX_SENTENCE {
            let message =
                format!("a {what} has at most {MAX_SENTENCE} characters, this one {length}");
            self.report(&node.span, message);
            return None;
        }
        Some(text)
    }

    /// Anything that parses from a text.
    pub(crate) fn parsed<T: std::str::FromStr<Err: fmt::Display>>(&self, node: &Node) -> Option<T> {
        let text = self.string(node)?;
        text.parse().map_err(|error: T::Err| self.report(&node.span, error.to_string())).ok()
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

    /// All keys and values, for mappings whose keys are names of the user's.
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
