//! The controllers of Pods. Their counts must reach those of the spec.
//!
//! Each function checks its counts in a fixed order; the first one that lags is the reason. A count
//! with the wrong type is absent. The arithmetic wraps as in Go, because a status can contain any
//! 64-bit integer.

use super::fields::{Condition, Fields};
use super::{ComputeError, KStatus};

/// The value for "no deadline". Without a deadline, the Deployment controller writes no `Progressing`.
const NO_DEADLINE: i64 = i32::MAX as i64;

/// A Deployment fails when its progress deadline is exceeded.
pub(crate) fn deployment(fields: &Fields<'_, '_>, conditions: &[Condition<'_>]) -> KStatus {
    let mut progressing =
        fields.integer("spec.progressDeadlineSeconds", NO_DEADLINE) == NO_DEADLINE;
    let mut available = false;
    for condition in conditions {
        match condition.kind {
            // kstatus ignores its status.
            "Progressing" if condition.reason == "ProgressDeadlineExceeded" => {
                let mut result = KStatus::failed(condition.reason, condition.message);
                "Progress deadline exceeded".clone_into(&mut result.message);
                return result;
            }
            "Progressing" => {
                progressing |= condition.is_true() && condition.reason == "NewReplicaSetAvailable";
            }
            "Available" => available |= condition.is_true(),
            _ => {}
        }
    }
    let wanted = fields.integer("spec.replicas", 1);
    let replicas = fields.integer("status.replicas", 0);
    let updated = fields.integer("status.updatedReplicas", 0);
    let ready = fields.integer("status.readyReplicas", 0);
    let available_replicas = fields.integer("status.availableReplicas", 0);
    let lag = lags("LessReplicas", "Replicas", replicas, wanted)
        .or_else(|| lags("LessUpdated", "Updated", updated, wanted))
        .or_else(|| extra_pods(replicas, wanted))
        .or_else(|| lags("LessAvailable", "Available", available_replicas, updated))
        .or_else(|| lags("LessReady", "Ready", ready, wanted));
    match lag {
        Some(lag) => lag,
        None if !progressing => {
            KStatus::in_progress("ReplicaSetNotAvailable", "ReplicaSet not Available")
        }
        None if !available => {
            KStatus::in_progress("DeploymentNotAvailable", "Deployment not Available")
        }
        None => KStatus::current(format!("Deployment is available. Replicas: {replicas}")),
    }
}

/// A ReplicaSet that cannot create Pods is InProgress: the controller retries.
pub(crate) fn replica_set(fields: &Fields<'_, '_>, conditions: &[Condition<'_>]) -> KStatus {
    let mut failures = conditions.iter().filter(|condition| condition.kind == "ReplicaFailure");
    if failures.any(Condition::is_true) {
        let message = "Replica Failure condition. Check Pods";
        return KStatus::in_progress("ReplicaFailure", message);
    }
    let wanted = fields.integer("spec.replicas", 1);
    let replicas = fields.integer("status.replicas", 0);
    let ready = fields.integer("status.readyReplicas", 0);
    let available = fields.integer("status.availableReplicas", 0);
    let labelled = fields.integer("status.fullyLabeledReplicas", 0);
    lags("LessLabelled", "Labelled", labelled, wanted)
        .or_else(|| lags("LessAvailable", "Available", available, wanted))
        .or_else(|| lags("LessReady", "Ready", ready, wanted))
        .or_else(|| extra_pods(replicas, wanted))
        .unwrap_or_else(|| {
            KStatus::current(format!("ReplicaSet is available. Replicas: {replicas}"))
        })
}

/// A StatefulSet never fails: its controller writes no conditions.
pub(crate) fn stateful_set(fields: &Fields<'_, '_>) -> KStatus {
    if fields.text("spec.updateStrategy.type", "") == "OnDelete" {
        return KStatus::current("StatefulSet is using the ondelete update strategy");
    }
    let wanted = fields.integer("spec.replicas", 1);
    let ready = fields.integer("status.readyReplicas", 0);
    let current = fields.integer("status.currentReplicas", 0);
    let updated = fields.integer("status.updatedReplicas", 0);
    let replicas = fields.integer("status.replicas", 0);
    let partition = fields.integer("spec.updateStrategy.rollingUpdate.partition", -1);
    let lag = lags("LessReplicas", "Replicas", replicas, wanted)
        .or_else(|| lags("LessReady", "Ready", ready, wanted))
        .or_else(|| extra_pods(replicas, wanted));
    if let Some(lag) = lag {
        return lag;
    }
    // kstatus uses -1 for an absent partition.
    if partition != -1 {
        let above = wanted.wrapping_sub(partition);
        return lags("PartitionRollout", "updated", updated, above).unwrap_or_else(|| {
            KStatus::current(format!("Partition rollout complete. updated: {updated}"))
        });
    }
    if let Some(lag) = lags("LessCurrent", "current", current, wanted) {
        return lag;
    }
    if fields.text("status.currentRevision", "") != fields.text("status.updateRevision", "") {
        let message = "Waiting for updated revision to match current";
        return KStatus::in_progress("RevisionMismatch", message);
    }
    KStatus::current(format!("All replicas scheduled as expected. Replicas: {replicas}"))
}

/// A DaemonSet must have a generation and an observed generation.
pub(crate) fn daemon_set(fields: &Fields<'_, '_>) -> Result<KStatus, ComputeError> {
    for (path, reason) in [
        ("metadata.generation", "NoGeneration"),
        ("status.observedGeneration", "NoObservedGeneration"),
    ] {
        if fields.strict_integer(path)?.is_none() {
            let message = format!("{} {path} not found", fields.text("kind", ""));
            return Ok(KStatus::in_progress(reason, message));
        }
    }
    let wanted = fields.integer("status.desiredNumberScheduled", -1);
    let current = fields.integer("status.currentNumberScheduled", 0);
    let updated = fields.integer("status.updatedNumberScheduled", 0);
    let available = fields.integer("status.numberAvailable", 0);
    let ready = fields.integer("status.numberReady", 0);
    if wanted == -1 {
        let message = "Missing .status.desiredNumberScheduled";
        return Ok(KStatus::in_progress("NoDesiredNumber", message));
    }
    Ok(lags("LessCurrent", "Current", current, wanted)
        .or_else(|| lags("LessUpdated", "Updated", updated, wanted))
        .or_else(|| lags("LessAvailable", "Available", available, wanted))
        .or_else(|| lags("LessReady", "Ready", ready, wanted))
        .unwrap_or_else(|| {
            KStatus::current(format!("All replicas scheduled as expected. Replicas: {wanted}"))
        }))
}

/// Fewer than wanted.
fn lags(reason: &str, what: &str, actual: i64, wanted: i64) -> Option<KStatus> {
    (wanted > actual).then(|| KStatus::in_progress(reason, format!("{what}: {actual}/{wanted}")))
}

/// More than wanted.
fn extra_pods(replicas: i64, wanted: i64) -> Option<KStatus> {
    (replicas > wanted).then(|| {
        let extra = replicas.wrapping_sub(wanted);
        KStatus::in_progress("ExtraPods", format!("Pending termination: {extra}"))
    })
}
