//! Errors in predicates that their schema cannot find.

use super::{Scope, Word};

/// Receives the errors of a predicate, each with its path inside the predicate.
pub trait Report {
    /// An error at a path. An empty path is the predicate itself.
    fn error(&mut self, path: &[Segment], message: &str, help: Option<&str>);

    /// A question at a path with an answer that changes without a write. It is an error if the answer can
    /// change or reject a write.
    fn clock(&mut self, path: &[Segment]);

    /// A question at a path about the write or its time: it needs more than the object. Health cannot ask it.
    fn write(&mut self, path: &[Segment]);

    /// The name of a phase at a path. It is an error if the convention has no such phase.
    fn phase(&mut self, path: &[Segment], name: &str);

    /// The type of a condition at a path. It is an error if no list of the convention may have it.
    fn condition(&mut self, path: &[Segment], name: &str);
}

/// One segment of a path into a mapping or a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Segment {
    /// The value of a key.
    Key(&'static str),
    /// The item of a list. A single value instead of a list is its only item.
    Item(usize),
}

/// Collects errors while words are checked.
pub struct Checker<'r> {
    report: &'r mut dyn Report,
    path: Vec<Segment>,
    scope: Scope,
}

impl<'r> Checker<'r> {
    pub(super) const fn new(report: &'r mut dyn Report, scope: Scope) -> Self {
        Self { report, path: Vec::new(), scope }
    }

    /// The scope of the predicate.
    pub const fn scope(&self) -> Scope {
        self.scope
    }

    /// Reports an error at the current path.
    pub fn error(&mut self, message: &str, help: Option<&str>) {
        self.report.error(&self.path, message, help);
    }

    /// Checks that a word may read the clock.
    pub fn clock(&mut self) {
        self.report.clock(&self.path);
    }

    /// Checks that a word may ask about the write.
    pub fn write(&mut self) {
        self.report.write(&self.path);
    }

    /// Checks the name of a phase.
    pub fn phase(&mut self, name: &str) {
        self.report.phase(&self.path, name);
    }

    /// Checks the type of a condition.
    pub fn condition(&mut self, name: &str) {
        self.report.condition(&self.path, name);
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
