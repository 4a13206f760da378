//! The members of the status that the parts of a convention read.

use std::collections::BTreeSet;

use crate::documents::{CopySource, Origin};
use crate::explain::phase_questions;
use crate::language::{Asks, Operand, Predicate, Reference, Span, Value};
use crate::model::Pointer;
use crate::policy::cel::Reads;
use crate::policy::convention::{
    Convention, Generation, PhaseRules, Trigger, ValueSource, Watched,
};

/// What some parts of a convention read. Nothing outside the status changes in a write of `/status`, so
/// only its members count.
pub(super) struct Inputs<'c> {
    convention: &'c Convention,
    /// Members of the status.
    pub(super) members: BTreeSet<String>,
    /// Whether the object is being deleted.
    pub(super) deleting: bool,
    /// Whether they also ask about the spec, a label or an annotation: another write changes these.
    pub(super) outside: bool,
    /// Whether they also ask about the stored object, or about a change.
    pub(super) stored: bool,
}

impl<'c> Inputs<'c> {
    pub(super) const fn of(convention: &'c Convention) -> Self {
        Self {
            convention,
            members: BTreeSet::new(),
            deleting: false,
            outside: false,
            stored: false,
        }
    }

    pub(super) fn path(&mut self, path: &Pointer) {
        self.members.extend(path.below_status().first().cloned());
    }

    pub(super) fn predicate(&mut self, predicate: &Predicate) {
        predicate.asks(self);
    }

    pub(super) fn phase(&mut self, rules: &PhaseRules) {
        rules.paths().for_each(|path| self.path(path));
    }

    /// What proves or contradicts a phase, and what a repair asks.
    pub(super) fn evidence(&mut self, rules: &PhaseRules) {
        phase_questions(rules).for_each(|question| self.predicate(question.predicate));
    }

    pub(super) fn generation(&mut self, generation: &Generation) {
        generation.paths.iter().flatten().for_each(|path| self.path(path));
    }

    pub(super) fn sources<'s>(&mut self, sources: impl IntoIterator<Item = &'s ValueSource>) {
        for source in sources {
            if let ValueSource::Copy(CopySource::Origin(Origin::Field(path))) = source {
                self.path(path);
            }
        }
    }

    pub(super) fn trigger(&mut self, trigger: &Trigger) {
        let Trigger::Watch(watch) = trigger else { return };
        for watched in
            [&watch.moved, &watch.co_written].into_iter().flatten().flat_map(|of| of.iter())
        {
            match watched {
                Watched::Field(path) => self.path(path),
                Watched::Condition(_) => self.conditions(),
            }
        }
    }

    /// Adds what an expression reads. Returns whether that is less than the whole status.
    pub(super) fn expression(&mut self, reads: &Reads) -> bool {
        let objects = [&reads.written, &reads.stored];
        objects.into_iter().flatten().all(|object| match object.members.get("status") {
            Some(status) if status.whole => false,
            Some(status) => {
                self.members.extend(status.members.keys().cloned());
                !object.whole
            }
            None => !object.whole,
        })
    }

    /// Every list: which one a predicate reads depends on the version of the object.
    fn conditions(&mut self) {
        for list in &self.convention.conditions {
            self.path(&list.path);
        }
    }

    fn reference(&mut self, reference: &Reference) {
        self.stored |= matches!(reference, Reference::OldField(_) | Reference::OldMember(_));
        if let Reference::Field(path) | Reference::OldField(path) = reference {
            self.path(path);
            self.outside |= !path.is_below_status();
        }
    }
}

impl<'p> Asks<'p> for Inputs<'_> {
    fn deleting(&mut self) {
        self.deleting = true;
    }

    fn phase(&mut self, old: bool, _names: &'p [String]) {
        self.stored |= old;
        if let Some(rules) = self.convention.phase.as_deref() {
            Inputs::phase(self, rules);
        }
    }

    fn condition(&mut self, old: bool, _kind: &str, _reasons: &'p [String]) {
        self.stored |= old;
        self.conditions();
    }

    fn changed_condition(&mut self, _old: bool, _kind: &str) {
        self.stored = true;
    }

    fn observed(&mut self) {
        if let Some(generation) = &self.convention.generation {
            self.generation(generation);
        }
    }

    fn length(&mut self, path: &Pointer, _at_least: usize, _at_most: usize) {
        self.path(path);
    }

    fn gates(&mut self, path: &Pointer) {
        self.path(path);
        self.conditions();
    }

    fn set(&mut self, reference: &Reference) {
        self.reference(reference);
    }

    fn value(&mut self, value: &'p Value) {
        self.stored |= value.changed.is_some() || value.decreased.is_some();
        self.reference(&value.reference);
        for Operand(reference) in value.operands() {
            self.reference(reference);
        }
    }

    fn elapsed(&mut self, of: &Reference, _more_than: Span) {
        self.reference(of);
    }
}
