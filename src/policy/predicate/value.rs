//! What may be asked of a single value: of a field, or of a member of a condition.

use std::fmt;

use crate::model::Pointer;

use super::super::Pattern;
use super::any_pointer;
use crate::source::tree::{Map, Node, Problems, Value};

/// Where a value is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A field of the object, or of the stored one.
    Field {
        /// Read from the stored object.
        old: bool,
        /// Below `/status` or `/spec`.
        path: Pointer,
    },
    /// A member of the element that is judged, or of the stored one of the same key.
    Member {
        /// Read from the stored element.
        old: bool,
        /// `severity`.
        name: String,
    },
}

/// What is asked of a value. Of one that is not there only `Set` has an answer.
#[derive(Clone, Debug)]
pub enum ValueTest {
    /// It is one of these.
    Is(Vec<serde_json::Value>),
    /// It is there, and not null, `""`, `[]` or `{}`.
    Set,
    /// This write changed it.
    Changed,
    /// A number or a time that this write made smaller.
    Decreased,
    /// A text that matches.
    Matches(Pattern),
    /// The same as another value.
    Equals(Place),
    /// A time before another one, or a number below it.
    Before(Place),
    /// A time later than now, by more than clocks differ.
    Future,
}

/// The tests, for messages.
pub(super) const TESTS: &str =
    "is, isNot, set, changed, decreased, future, matches, equals or before";

/// The questions in a mapping, and whether each is negated.
pub(super) fn read_tests(
    map: &Map<'_>,
    problems: &Problems,
    of_element: bool,
) -> Vec<(ValueTest, bool)> {
    let mut tests = Vec::new();
    let values = |node| problems.filled(node, |item| scalar(item, problems));
    if let Some(node) = map.get("is") {
        tests.push((ValueTest::Is(values(node)), false));
    }
    if let Some(node) = map.get("isNot") {
        tests.push((ValueTest::Is(values(node)), true));
    }
    let mut flag = |key, test| {
        if let Some(wanted) = map.get(key).and_then(|node| problems.boolean(node)) {
            tests.push((test, !wanted));
        }
    };
    flag("set", ValueTest::Set);
    flag("changed", ValueTest::Changed);
    flag("decreased", ValueTest::Decreased);
    flag("future", ValueTest::Future);
    let pattern = map.get("matches").and_then(|node| problems.parsed(node));
    tests.extend(pattern.map(|pattern| (ValueTest::Matches(pattern), false)));
    let other = |key| map.get(key).and_then(|node| place(node, problems, of_element));
    tests.extend(other("equals").map(|other| (ValueTest::Equals(other), false)));
    tests.extend(other("before").map(|other| (ValueTest::Before(other), false)));
    tests
}

/// `/status/x`, or in rules about elements the name of another member.
fn place(node: &Node, problems: &Problems, of_element: bool) -> Option<Place> {
    let text = problems.string(node)?;
    if of_element && !text.starts_with('/') {
        return Some(Place::Member { old: false, name: text.to_owned() });
    }
    any_pointer(node, problems).map(|path| Place::Field { old: false, path })
}

/// A text, number or boolean.
fn scalar(node: &Node, problems: &Problems) -> Option<serde_json::Value> {
    if matches!(node.value, Value::List(_) | Value::Map(_) | Value::Null) {
        problems.report(&node.span, "this must be a text, a number, true or false");
        return None;
    }
    problems.json(node)
}

/// A text as members of conditions have it. YAML reads an unquoted `True` as a boolean; in a
/// condition it can mean only the status.
pub(crate) fn scalar_text(node: &Node, problems: &Problems) -> Option<String> {
    match unquoted_status(node) {
        serde_json::Value::String(text) => Some(text),
        _ => problems.string(node).map(str::to_owned),
    }
}

/// A JSON value, where an unquoted `True` or `False` is the status of a condition.
pub(crate) fn unquoted_status(node: &Node) -> serde_json::Value {
    match &node.value {
        Value::Bool(true) => "True".into(),
        Value::Bool(false) => "False".into(),
        _ => node.to_json(),
    }
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field { old: false, path } => formatter.write_str(path.field()),
            Self::Field { old: true, path } => write!(formatter, "the stored {}", path.field()),
            Self::Member { old: false, name } => formatter.write_str(name),
            Self::Member { old: true, name } => write!(formatter, "the stored {name}"),
        }
    }
}

impl PartialEq for ValueTest {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Is(one), Self::Is(other)) => one == other,
            (Self::Matches(one), Self::Matches(other)) => one.as_str() == other.as_str(),
            (Self::Equals(one), Self::Equals(other)) | (Self::Before(one), Self::Before(other)) => {
                one == other
            }
            (Self::Set, Self::Set)
            | (Self::Changed, Self::Changed)
            | (Self::Decreased, Self::Decreased)
            | (Self::Future, Self::Future) => true,
            _ => false,
        }
    }
}
