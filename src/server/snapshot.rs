//! The policies in use and their counters.

use crate::model::Webhook;
use crate::policy::PolicySet;
use crate::telemetry::{DecisionCounters, Metrics};

/// One loaded set. Requests read policies and counters from the same snapshot, so that an index
/// means the same policy in both.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) policies: PolicySet,
    mutate: DecisionCounters,
    validate: DecisionCounters,
}

impl Snapshot {
    pub(super) fn new(policies: PolicySet, metrics: &Metrics) -> Self {
        let mutate = metrics.mutate.decisions(policies.names());
        let validate = metrics.validate.decisions(policies.names());
        metrics.policies.set(i64::try_from(policies.names().count()).unwrap_or(i64::MAX));
        Self { policies, mutate, validate }
    }

    pub(super) const fn decisions(&self, webhook: Webhook) -> &DecisionCounters {
        match webhook {
            Webhook::Mutate => &self.mutate,
            Webhook::Validate => &self.validate,
        }
    }
}
