//! Jobs.

use super::fields::{Condition, Fields};
use super::{Fork, KStatus};

/// A running Job is Current: kstatus checks that it was started, not that it is complete.
pub(crate) fn compute(
    fields: &Fields<'_, '_>,
    conditions: &[Condition<'_>],
    fork: Fork,
) -> KStatus {
    let parallelism = fields.integer("spec.parallelism", 1);
    let completions = fields.integer("spec.completions", parallelism);
    let succeeded = fields.integer("status.succeeded", 0);
    let active = fields.integer("status.active", 0);
    let failed = fields.integer("status.failed", 0);
    for condition in conditions.iter().filter(|condition| condition.is_true()) {
        match condition.kind {
            "Complete" => {
                let message = format!("Job Completed. succeeded: {succeeded}/{completions}");
                return KStatus::current(message);
            }
            "Failed" => {
                let message = format!("Job Failed. failed: {failed}/{completions}");
                return KStatus::failed("JobFailed", message);
            }
            // Only if spec and status agree: otherwise the Job is about to be suspended or resumed.
            "Suspended" if fork == Fork::KubernetesSigs && fields.is_true("spec.suspend") => {
                return KStatus::current("Job is suspended");
            }
            _ => {}
        }
    }
    if fields.text("status.startTime", "").is_empty() {
        return KStatus::in_progress("JobNotStarted", "Job not started");
    }
    KStatus::current(format!(
        "Job in progress. success:{succeeded}, active: {active}, failed: {failed}"
    ))
}
