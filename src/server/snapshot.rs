//! The policies in use and their counters.

use crate::engine::Action;
use crate::policy::PolicySet;
use crate::telemetry::{Count, Counters, Metrics};

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
        let ids =
            each.iter().map(|policy| (&*policy.name, policy.rules().map(|(id, _)| id.to_string())));
        let counters = metrics.counters(ACTIONS, ids);
        for policy in each {
            for (id, rule) in policy.rules().filter(|(_, rule)| !rule.optional) {
                for action in policy.actions_of(rule) {
                    let counter =
                        counters.finding(policy.name.index(), id.index(), action as usize);
                    counter.into_iter().for_each(Count::create);
                }
            }
        }
        Self { policies, counters }
    }
}

/// The labels of actions, by their position.
const ACTIONS: [&str; 4] =
    [Action::Audit.label(), Action::Warn.label(), Action::Repair.label(), Action::Deny.label()];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_label_is_at_the_position_of_its_action() {
        for action in Action::WORST_FIRST {
            assert_eq!(ACTIONS[action as usize], action.label());
        }
    }
}
