//! The counters of the status writes of a policy and a resource.
//!
//! Their number is known when the policy is loaded: pairs of phases of its convention. Most resources of most
//! policies have no object, so the counters exist from the first write on.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use prometheus_client::encoding::MetricEncoder;

use super::histogram::{Histogram, STATES};
use super::policies::{Count, Ids, encode};
use statusgate_core::engine::{StatusChange, StatusWrite};

/// The counters of the status writes of a policy and a resource.
#[derive(Debug)]
pub struct Writes {
    /// The names of phases, by their positions in a [`StatusWrite`].
    phases: Ids,
    /// Empty before the first write.
    pub(super) counts: OnceLock<Box<Counts>>,
}

#[derive(Debug)]
pub(super) struct Counts {
    phases: Ids,
    changes: [Count; StatusChange::ALL.len()],
    /// By the phase before and the phase after.
    transitions: Box<[Count]>,
    /// By the phase before.
    in_phase: Box<[Histogram]>,
    first_current: Histogram,
}

/// The writes of a policy, by the name of the resource.
pub(super) type ByResource = BTreeMap<Box<str>, Arc<Writes>>;

impl Writes {
    /// Those of a resource with these phases: the same as before, if the phases are the same.
    pub(super) fn of(before: &ByResource, resource: &str, phases: &Ids) -> Arc<Self> {
        match before.get(resource) {
            Some(writes) if writes.phases == *phases => Arc::clone(writes),
            _ => Arc::new(Self { phases: Arc::clone(phases), counts: OnceLock::new() }),
        }
    }

    /// Counts one write.
    pub fn count(&self, write: &StatusWrite) {
        let counts = self.counts.get_or_init(|| Counts::of(&self.phases).into());
        counts.changes.get(write.change as usize).into_iter().for_each(Count::inc);
        if let Some((from, to)) = write.phases {
            let transition = counts.transitions.get(from * self.phases.len() + to);
            transition.into_iter().for_each(Count::inc);
            if let (Some(seconds), Some(phase)) = (write.in_phase, counts.in_phase.get(from)) {
                phase.count(seconds);
            }
        }
        if let Some(age) = write.age_when_current {
            counts.first_current.count(age);
        }
    }
}

/// The policy and the resource.
pub(super) type Labels<'l> = [(&'static str, &'l str); 2];

impl Counts {
    fn of(phases: &Ids) -> Self {
        let count = phases.len();
        let changes: [Count; StatusChange::ALL.len()] = Default::default();
        changes.iter().for_each(Count::create);
        Self {
            phases: Arc::clone(phases),
            changes,
            transitions: (0..count * count).map(|_| Count::default()).collect(),
            in_phase: (0..count).map(|_| Histogram::new(&STATES)).collect(),
            first_current: Histogram::new(&STATES),
        }
    }

    pub(super) fn changes(&self, of: Labels<'_>, to: &mut MetricEncoder<'_>) -> fmt::Result {
        for (change, count) in StatusChange::ALL.iter().zip(&self.changes) {
            encode(to, [of[0], of[1], ("change", change.label())], count.get())?;
        }
        Ok(())
    }

    pub(super) fn transitions(&self, of: Labels<'_>, to: &mut MetricEncoder<'_>) -> fmt::Result {
        let mut counts = self.transitions.iter();
        for before in &*self.phases {
            for (after, count) in self.phases.iter().zip(&mut counts) {
                encode(to, [of[0], of[1], ("from", before), ("to", after)], count.get())?;
            }
        }
        Ok(())
    }

    pub(super) fn in_phase(&self, of: Labels<'_>, to: &mut MetricEncoder<'_>) -> fmt::Result {
        for (phase, histogram) in self.phases.iter().zip(&self.in_phase) {
            if !histogram.is_empty() {
                histogram.encode(to.encode_family(&[of[0], of[1], ("phase", &**phase)])?)?;
            }
        }
        Ok(())
    }

    pub(super) fn first_current(&self, of: Labels<'_>, to: &mut MetricEncoder<'_>) -> fmt::Result {
        if self.first_current.is_empty() {
            return Ok(());
        }
        self.first_current.encode(to.encode_family(&of)?)
    }
}
