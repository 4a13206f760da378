//! The policies in use and their counters.

use std::sync::Arc;

use crate::telemetry::{Count, Counters, Declared, Metrics, Names};
use statusgate_core::engine::{Action, Change, phase_names};
use statusgate_core::policy::PolicySet;

/// One loaded set. Requests read policies and counters from the same snapshot, so that a position
/// means the same policy in both.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) policies: Arc<PolicySet>,
    pub(super) counters: Counters,
}

impl Snapshot {
    /// Creates the counters of all findings that are to be expected, so that `increase()` sees the
    /// first one too.
    pub(super) fn new(policies: PolicySet, metrics: &Metrics) -> Self {
        let each = policies.policies();
        metrics.server.policies.set(i64::try_from(each.len()).unwrap_or(i64::MAX));
        let declared = each.iter().map(|policy| Declared {
            name: &policy.name,
            rules: policy.rules().map(|(id, _)| id.to_string()).collect(),
            resources: policy.resource_names().collect(),
            phases: phase_names(&policy.convention).map(str::to_owned).collect(),
        });
        let counters = metrics.counters(NAMES, declared);
        for policy in each {
            for (id, rule) in policy.rules().filter(|(_, rule)| !rule.optional) {
                for action in policy.actions_of(rule) {
                    let counter =
                        counters.finding(policy.name.index(), id.index(), action as usize);
                    counter.into_iter().for_each(Count::create);
                }
            }
        }
        Self { policies: Arc::new(policies), counters }
    }
}

/// The labels of actions and changes, by their position.
const NAMES: Names = Names {
    actions: {
        let [deny, repair, warn, audit] = Action::WORST_FIRST;
        [deny.label(), repair.label(), warn.label(), audit.label()]
    },
    changes: {
        let [default, imposed, repair, time, restored] = Change::ALL;
        [default.label(), imposed.label(), repair.label(), time.label(), restored.label()]
    },
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_label_is_at_the_position_of_its_action_or_change() {
        for change in Change::ALL {
            assert_eq!(NAMES.changes[change as usize], change.label());
        }
        for action in Action::WORST_FIRST {
            assert_eq!(NAMES.actions[action as usize], action.label());
        }
    }
}
