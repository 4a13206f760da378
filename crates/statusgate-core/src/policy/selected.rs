//! The policies that select one subject, and which of them owns its phase and defaults.

use super::order::{Step, Task, set_the_same, tasks};
use super::{Policy, PolicySet};
use crate::model::Subject;

/// The policies that select one subject.
#[derive(Clone, Debug)]
pub(crate) struct Selected<'p> {
    set: &'p PolicySet,
    indices: Vec<u16>,
    owner: Option<&'p Policy>,
}

impl<'p> Selected<'p> {
    pub(crate) fn of(set: &'p PolicySet, subject: &Subject<'_>) -> Self {
        let (mut indices, mut owner) = (Vec::new(), None);
        for (index, policy) in set.select(subject) {
            indices.push(index);
            owner = owner.or_else(|| policy.convention.phase.as_ref().map(|_| policy));
        }
        Self { set, indices, owner }
    }

    /// In the order of their documents, with their place in the set.
    pub(crate) fn policies(&self) -> impl Iterator<Item = (u16, &'p Policy)> {
        let policies = self.set.policies();
        let at = |index: &u16| Some((*index, policies.get(usize::from(*index))?));
        self.indices.iter().filter_map(at)
    }

    pub(crate) fn into_indices(self) -> Vec<u16> {
        self.indices
    }

    /// The first with a phase in its convention: it alone sets and judges the phase, and of conventions only
    /// its own sets defaults.
    pub(crate) const fn owner(&self) -> Option<&'p Policy> {
        self.owner
    }

    /// Whether a policy judges the phase.
    pub(crate) fn owns(&self, policy: &Policy) -> bool {
        self.owner.is_some_and(|owner| std::ptr::eq(owner, policy))
    }

    /// What the mutating webhook does, in order.
    pub(crate) fn steps(&self) -> impl Iterator<Item = (&'p Policy, Step<'p>)> {
        let (one, mut merged) = match *self.indices.as_slice() {
            [index] => (self.set.policies().get(usize::from(index)), Vec::new()),
            _ => (None, self.merged()),
        };
        merged.sort_unstable_by_key(|(rank, ..)| *rank);
        let alone =
            one.into_iter().flat_map(|policy| policy.steps().map(move |(_, step)| (policy, step)));
        alone.chain(merged.into_iter().map(|(_, policy, step)| (policy, step)))
    }

    fn merged(&self) -> Vec<(u32, &'p Policy, Step<'p>)> {
        let policies = self.policies().map(|(_, policy)| policy);
        let steps = policies
            .flat_map(|policy| policy.steps().map(move |(rank, step)| (rank, policy, step)));
        steps.filter(|(_, policy, step)| self.takes(policy, *step)).collect()
    }

    /// Whether a step counts: all of the owner's, and of the others their own defaults for other places.
    fn takes(&self, policy: &'p Policy, step: Step<'p>) -> bool {
        let Some(owner) = self.owner.filter(|owner| !std::ptr::eq(*owner, policy)) else {
            return true;
        };
        let Step::Default(default) = step else { return false };
        let task = Task { convention: &policy.convention, step };
        default.of_policy
            && !tasks(&owner.convention, &owner.backfill).any(|other| set_the_same(&task, &other))
    }
}
