//! The members of the status that the parts of a convention read.

use std::collections::BTreeSet;

use crate::table::phase_questions;
use statusgate_core::documents::{CopySource, Origin};
use statusgate_core::language::{AnyWord, ConditionOf, Predicate, Reference};
use statusgate_core::model::Pointer;
use statusgate_core::policy::cel::Reads;
use statusgate_core::policy::convention::{
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
    /// Whether they also ask about the spec, the generation, a label or an annotation: another write changes these.
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
        self.outside |= !path.is_below_status();
        self.members.extend(path.below_status().first().cloned());
    }

    pub(super) fn predicate(&mut self, predicate: &Predicate) {
        predicate.questions().into_iter().for_each(|word| self.word(word));
    }

    /// Adds what a word without predicates in it reads.
    fn word(&mut self, word: &AnyWord) {
        let convention = self.convention;
        let phase = convention.phase.as_deref();
        match word {
            AnyWord::Condition(word) => {
                self.stored |= matches!(word.of, ConditionOf::OldCondition(_));
                self.stored |= word.changed.is_some();
                self.conditions();
            }
            AnyWord::Set(word) => self.reference(&Reference::Field(word.set.clone())),
            AnyWord::Value(value) => {
                self.stored |= value.changed.is_some() || value.decreased.is_some();
                self.reference(&value.reference);
                value.operands().for_each(|operand| self.reference(&operand.0));
            }
            AnyWord::Phase(_) => phase.into_iter().for_each(|rules| self.phase(rules)),
            AnyWord::OldPhase(_) => {
                self.stored = true;
                phase.into_iter().for_each(|rules| self.phase(rules));
            }
            AnyWord::Deleting(_) => self.deleting = true,
            AnyWord::ObservedGeneration(_) => {
                self.outside = true;
                convention.generation.iter().for_each(|rules| self.generation(rules));
            }
            AnyWord::Elapsed(word) => self.reference(&word.since.0),
            AnyWord::Length(word) => self.path(&word.length),
            AnyWord::Gates(word) => {
                self.path(&word.gates);
                self.conditions();
            }
            AnyWord::ElementPolarity(_)
            | AnyWord::ResourceName(_)
            | AnyWord::All(_)
            | AnyWord::Any(_)
            | AnyWord::Not(_) => {}
        }
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
        match reference {
            Reference::Field(path) | Reference::OldField(path) => self.path(path),
            Reference::OfCondition(_) => self.conditions(),
            Reference::Member(_) | Reference::OldMember(_) => {}
        }
    }
}
