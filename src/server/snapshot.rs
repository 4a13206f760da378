//! The policies in use and their counters.

use std::sync::Arc;

use crate::telemetry::{Count, Counters, Declared, Metrics};
use statusgate_core::engine::phase_names;
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
        let counters = metrics.counters(declared);
        for policy in each {
            for (id, rule) in policy.rules().filter(|(_, rule)| !rule.optional) {
                for action in policy.actions_of(rule) {
                    let counter = counters.finding(policy.name.index(), id.index(), action);
                    counter.into_iter().for_each(Count::create);
                }
            }
        }
        Self { policies: Arc::new(policies), counters }
    }
}
