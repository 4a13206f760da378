//! Whose the phase is, where several policies speak of it at one place.
//!
//! Of two that both set it each would undo the other, in one run and at every write. So it belongs to one
//! of them, and which one does not depend on the phase: on its own result the webhook asks the same one.

use crate::model::{Object, Pointer, Subject};
use crate::policy::{Action, Policy, PolicySet};

use super::agreement;
use super::evidence::{Facts, phase_path};
use super::mutate::{self, Say};

/// All policies, and what they are asked about.
#[derive(Clone, Copy)]
pub(super) struct Holders<'h, 'a> {
    pub(super) policies: &'h PolicySet,
    pub(super) subject: &'h Subject<'a>,
    pub(super) object: &'h Object<'a>,
}

/// The policy that the phase belongs to.
#[derive(Clone, Copy)]
pub(super) struct Holder<'h> {
    policy: &'h Policy,
    imposes: bool,
}

impl<'h> Holders<'h, '_> {
    /// Of the policies with a phase at the place of this one's: the first that imposes one on this object,
    /// else the first that repairs disagreements of this writer.
    pub(super) fn of(&self, policy: &Policy) -> Option<Holder<'h>> {
        let path = self.path_of(policy)?;
        let mut repairs = None;
        for (_, other) in self.policies.select(self.subject) {
            if self.path_of(other) != Some(path) {
                continue;
            }
            if mutate::imposes(other, self.subject, self.object) {
                return Some(Holder { policy: other, imposes: true });
            }
            if repairs.is_none() && self.repairs(other) {
                repairs = Some(Holder { policy: other, imposes: false });
            }
        }
        repairs
    }

    /// Whether another policy would refuse a phase of this one's in the place of the written one, which it
    /// takes. What the webhook sets is no reason to refuse a write.
    pub(super) fn refused(&self, by: &Policy, written: Option<&str>, phase: &str) -> bool {
        let path = self.path_of(by);
        let mut others = self.policies.select(self.subject).map(|(_, policy)| policy);
        others.any(|other| {
            !std::ptr::eq(other, by)
                && self.path_of(other) == path
                && self.refuses(other, phase)
                && !written.is_some_and(|written| self.refuses(other, written))
        })
    }

    fn refuses(&self, policy: &Policy, phase: &str) -> bool {
        let Some(rules) = &policy.convention.phase else { return false };
        let Subject { old, resource, writer, .. } = self.subject;
        let facts = Facts::new(&policy.convention, self.object, old.as_ref(), resource);
        let facts = facts.supposing(Some(phase));
        // A value that was stored stands, as far as its name goes.
        let unheard_of = policy.enforcement == Action::Deny
            && rules.find(phase).is_none()
            && facts.old_phase != Some(phase);
        let stood_before = |phase| {
            let stored = agreement::stored_facts(policy, old.as_ref(), resource);
            stored.is_some_and(|stored| agreement::stood_before(phase, rules, &stored))
        };
        let denies = || policy.disagreement_of(writer) == Action::Deny && !facts.deleting();
        let contradicted = || agreement::contradicted(rules, &facts);
        unheard_of || (denies() && contradicted().is_some_and(|phase| !stood_before(phase)))
    }

    fn path_of<'p>(&self, policy: &'p Policy) -> Option<&'p Pointer> {
        Some(phase_path(policy.convention.phase.as_ref()?, self.object))
    }

    /// Without evidence there is never anything to repair.
    fn repairs(&self, policy: &Policy) -> bool {
        let phases = policy.convention.phase.iter().flat_map(|rules| &rules.phases);
        policy.disagreement_of(&self.subject.writer) == Action::Repair
            && phases.into_iter().any(|phase| phase.necessary.is_some())
    }
}

impl Holder<'_> {
    pub(super) fn is(&self, policy: &Policy) -> bool {
        std::ptr::eq(self.policy, policy)
    }

    /// What is left to another policy.
    pub(super) fn beside<'v>(&self, refused: &'v dyn Fn(Option<&str>, &str) -> bool) -> Say<'v> {
        if self.imposes {
            return Say::Nothing;
        }
        let phase = self.policy.convention.phase.as_ref();
        let default = phase.is_none_or(|rules| rules.default.is_none());
        Say::Beside { default, refused }
    }
}
