//! The inputs of predicates, for tables and proofs.

use super::{Glob, Polarity, Reference, Span, Value};
use crate::model::Pointer;

/// Visits the inputs of the words of a predicate. A visitor implements the methods that it needs.
pub trait Asks<'p> {
    /// Whether deletion was requested.
    fn deleting(&mut self) {}
    /// The resource, and the names that the predicate distinguishes.
    fn resource(&mut self, _names: &'p [Glob]) {}
    /// The phase, or the stored phase, and the names that the predicate distinguishes.
    fn phase(&mut self, _old: bool, _names: &'p [String]) {}
    /// A condition, and the reasons that the predicate distinguishes.
    fn condition(&mut self, _old: bool, _kind: &str, _reasons: &'p [String]) {}
    /// The severity of a condition, and the names that the predicate distinguishes.
    fn severity(&mut self, _kind: &str, _names: &'p [String]) {}
    /// Whether this write changed a condition.
    fn changed_condition(&mut self, _old: bool, _kind: &str) {}
    /// How `observedGeneration` relates to the generation.
    fn observed(&mut self) {}
    /// The number of items in a list, and the bounds that the predicate distinguishes.
    fn length(&mut self, _path: &Pointer, _at_least: usize, _at_most: usize) {}
    /// The conditions that a list in the spec names.
    fn gates(&mut self, _path: &Pointer) {}
    /// Whether a value is present.
    fn set(&mut self, _reference: &Reference) {}
    /// A value, and its tests.
    fn value(&mut self, _value: &'p Value) {}
    /// A time, and how long ago it must be.
    fn elapsed(&mut self, _of: &Reference, _more_than: Span) {}
    /// The polarity of the element.
    fn polarity(&mut self, _polarities: &'p [Polarity]) {}
}
