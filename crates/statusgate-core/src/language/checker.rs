//! Errors in predicates that their schema cannot find.

use super::{Predicate, Scope, Word};

/// A part of a predicate that its schema cannot judge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Issue {
    /// An error, and the fix.
    Error(String, Option<String>),
    /// A question with an answer that changes without a write. It is an error if the answer can change or
    /// reject a write.
    Clock,
    /// A question about the write or its time: it needs more than the object. Health cannot ask it.
    Write,
    /// The name of a phase. It is an error if the convention has no such phase.
    Phase(String),
    /// The type of a condition. It is an error if no list of the convention may have it.
    Condition(String),
}

/// The issues of a predicate, each with its path. An empty path is the predicate itself.
pub type Issues = Vec<(Vec<Segment>, Issue)>;

/// One segment of a path into a mapping or a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Segment {
    /// The value of a key.
    Key(&'static str),
    /// The item of a list. A single value instead of a list is its only item.
    Item(usize),
}

/// Collects issues while words are checked.
pub struct Checker {
    issues: Issues,
    path: Vec<Segment>,
    scope: Scope,
}

impl Checker {
    pub(super) fn check(predicate: &Predicate, scope: Scope) -> Issues {
        let mut checker = Self { issues: Vec::new(), path: Vec::new(), scope };
        predicate.check_in(&mut checker);
        checker.issues
    }

    /// The scope of the predicate.
    pub const fn scope(&self) -> Scope {
        self.scope
    }

    /// Adds an issue at the current path.
    pub fn add(&mut self, issue: Issue) {
        self.issues.push((self.path.clone(), issue));
    }

    /// Adds an error at the current path.
    pub fn error(&mut self, message: &str, help: Option<&str>) {
        self.add(Issue::Error(message.to_owned(), help.map(str::to_owned)));
    }

    /// Checks a nested value.
    pub fn at(&mut self, segment: Segment, check: impl FnOnce(&mut Self)) {
        self.path.push(segment);
        check(self);
        self.path.pop();
    }

    /// Checks each item of the value of a key.
    pub fn each<T>(&mut self, key: &'static str, items: &[T], check: impl Fn(&mut Self, &T)) {
        self.at(Segment::Key(key), |here| {
            for (index, item) in items.iter().enumerate() {
                here.at(Segment::Item(index), |here| check(here, item));
            }
        });
    }

    /// Reports a key that is valid only in rules about elements.
    pub(super) fn scope_of<W: Word>(&mut self, word: &W) {
        if self.scope == Scope::Element || W::OF_ELEMENT.is_empty() {
            return;
        }
        let Ok(serde_json::Value::Object(members)) = serde_json::to_value(word) else { return };
        if let Some(key) = W::OF_ELEMENT.iter().find(|key| members.contains_key(**key)) {
            self.at(Segment::Key(key), |here| {
                here.error(
                    &format!("only rules about the elements of a list know \"{key}\""),
                    None,
                );
            });
        }
    }
}
