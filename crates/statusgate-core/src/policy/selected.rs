//! The policies that select one subject, and which of them owns its phase and defaults.

use super::convention::{Backfill, PhaseRules};
use super::{Defined, Policy, PolicySet};
use crate::model::Subject;

/// Something that the mutating webhook does.
#[derive(Clone, Copy, Debug)]
pub enum Step<'p> {
    /// Sets the phase and its time.
    Phase(&'p PhaseRules),
    /// Sets a default.
    Default(&'p Backfill),
}

/// The policies that select one subject.
#[derive(Clone, Debug)]
pub struct Selected<'p> {
    set: &'p PolicySet,
    indices: Vec<u16>,
    owner: Option<&'p Policy>,
}

impl<'p> Selected<'p> {
    /// Those that select a subject.
    pub fn of(set: &'p PolicySet, subject: &Subject<'_>) -> Self {
        let (mut indices, mut owner) = (Vec::new(), None);
        for (index, policy) in set.select(subject) {
            indices.push(index);
            owner = owner.or_else(|| policy.convention.phase.as_ref().map(|_| policy));
        }
        Self { set, indices, owner }
    }

    /// What is known of the resource of a subject.
    pub(crate) fn defined(&self, subject: &Subject<'_>) -> Option<&'p Defined> {
        self.set.defined().get(&subject.resource)
    }

    /// The policies in the order of their documents, each with its index in the set.
    pub fn policies(&self) -> impl Iterator<Item = (u16, &'p Policy)> {
        self.indices.iter().filter_map(|index| Some((*index, self.set.get(*index)?)))
    }

    pub(crate) fn into_indices(self) -> Vec<u16> {
        self.indices
    }

    /// The first policy with a phase in its convention. It alone sets and judges the phase, and the
    /// conventions of other policies set no defaults.
    pub const fn owner(&self) -> Option<&'p Policy> {
        self.owner
    }

    /// Whether a policy judges the phase.
    pub fn owns(&self, policy: &Policy) -> bool {
        self.owner.is_some_and(|owner| std::ptr::eq(owner, policy))
    }

    /// The steps of the mutating webhook: all steps of the owner. Other policies set only the defaults that
    /// they declare themselves, in places that the owner does not set. What is removed is no evidence for
    /// the phase, so removals come first.
    pub fn steps(&self) -> impl Iterator<Item = (&'p Policy, Step<'p>)> {
        self.policies().flat_map(|(_, policy)| {
            let owner = self.owner.filter(|owner| !std::ptr::eq(*owner, policy));
            let phase = policy.convention.phase.as_deref().filter(|_| owner.is_none());
            let defaults = move |removes: bool| {
                let defaults = policy.backfill.iter().filter(move |default| {
                    default.removes() == removes
                        && owner
                            .is_none_or(|owner| default.of_policy && !owner.sets_place_of(default))
                });
                defaults.map(Step::Default)
            };
            let steps = defaults(true).chain(phase.map(Step::Phase)).chain(defaults(false));
            steps.map(move |step| (policy, step))
        })
    }
}

impl Policy {
    /// Whether the phase or a default sets the place of another policy's default.
    fn sets_place_of(&self, default: &Backfill) -> bool {
        let phase = self.convention.phase.iter().flat_map(|rules| {
            let time = rules.transition_time.iter().filter(|time| time.in_step());
            rules.paths().chain(time.map(|time| &*time.path))
        });
        phase.into_iter().any(|path| default.sets_at(path))
            || self.backfill.iter().any(|own| own.sets_place_of(default))
    }
}
