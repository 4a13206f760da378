//! The policies in use and their counters.

use crate::engine::Action;
use crate::policy::{Id, PolicySet};
use crate::telemetry::{Counters, Label, Metrics};

/// One loaded set. Requests read policies and counters from the same snapshot, so that a position
/// means the same policy in both.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) policies: PolicySet,
    pub(super) counters: Counters,
}

impl Snapshot {
    /// Creates the counters of all findings that are to be expected, so that `increase()` sees the
    /// first one too.
    pub(super) fn new(policies: PolicySet, metrics: &Metrics) -> Self {
        let each = policies.policies();
        metrics.policies.set(i64::try_from(each.len()).unwrap_or(i64::MAX));
        let counters =
            metrics.counters(each.iter().map(|policy| (&*policy.name, policy.rules().count())));
        for policy in each {
            for (id, rule) in policy.rules().filter(|(_, rule)| !rule.optional) {
                for action in policy.actions_of(rule) {
                    let _created =
                        counters.finding(label(&policy.name), label(&id), of_action(action));
                }
            }
        }
        Self { policies, counters }
    }
}

pub(super) fn label(id: &Id) -> Label<'_> {
    Label { name: id.as_str(), index: id.index() }
}

pub(super) const fn of_action(action: Action) -> Label<'static> {
    Label { name: action.label(), index: action as usize }
}
