//! Pods.

use crate::model::{GO_ZERO_TIME, Json, parse_rfc3339};

use super::fields::{Condition, Fields, OBJECT, TEXT, asserted, wrong_type};
use super::{ComputeError, KStatus};

/// How long a Pod may be unschedulable before it counts as failed (`ScheduleWindow` in kstatus).
const SCHEDULE_WINDOW_SECONDS: i64 = 15;

/// A Pod by its phase. A completed Pod is Current, even if it failed.
pub(crate) fn compute(
    fields: &Fields<'_, '_>,
    conditions: &[Condition<'_>],
    now: i64,
) -> Result<KStatus, ComputeError> {
    Ok(match fields.text("status.phase", "") {
        "Succeeded" => KStatus::current("Pod has completed successfully"),
        "Failed" => KStatus::current("Pod has completed, but not successfully"),
        "Running" => running(fields, conditions)?,
        "Pending" => pending(fields, conditions, now),
        "" => KStatus::in_progress("PodNotObserved", "Pod phase not available"),
        phase => return Err(ComputeError::PodPhase { phase: phase.to_owned() }),
    })
}

fn running(fields: &Fields<'_, '_>, conditions: &[Condition<'_>]) -> Result<KStatus, ComputeError> {
    if conditions.iter().any(|condition| condition.kind == "Ready" && condition.is_true()) {
        return Ok(KStatus::current("Pod is Ready"));
    }
    let looping = crash_looping(fields)?;
    if looping.is_empty() {
        let message = "Pod is running but is not Ready";
        return Ok(KStatus::in_progress("PodRunningNotReady", message));
    }
    let message = format!("Containers in CrashLoop state: {}", looping.join(","));
    Ok(KStatus::failed("ContainerCrashLooping", message))
}

fn pending(fields: &Fields<'_, '_>, conditions: &[Condition<'_>], now: i64) -> KStatus {
    // Only the first PodScheduled that is False counts.
    let unscheduled = conditions
        .iter()
        .find(|condition| condition.kind == "PodScheduled" && condition.is_false());
    if unscheduled.is_none_or(|condition| condition.reason != "Unschedulable") {
        return KStatus::in_progress("PodPending", "Pod is in the Pending phase");
    }
    // An absent or invalid creation time is Go's zero time.
    let created = parse_rfc3339(fields.text("metadata.creationTimestamp", ""));
    if now.saturating_sub(SCHEDULE_WINDOW_SECONDS) < created.unwrap_or(GO_ZERO_TIME) {
        return KStatus::in_progress("PodNotScheduled", "Pod has not been scheduled");
    }
    KStatus::failed("PodUnschedulable", "Pod could not be scheduled")
}

/// The names of the containers that wait in a crash loop. kstatus ignores init containers.
///
/// The Go code asserts the type of each member it reads and panics if one is wrong. It skips a
/// container without a name, a state or a reason to wait.
fn crash_looping<'j>(fields: &Fields<'j, '_>) -> Result<Vec<&'j str>, ComputeError> {
    let statuses = fields.strict_list("status.containerStatuses")?.unwrap_or_default();
    let mut looping = Vec::new();
    for (index, container) in statuses.iter().enumerate() {
        let path = format!("status.containerStatuses[{index}]");
        if object(container).is_none() {
            return Err(wrong_type(path, container, OBJECT));
        }
        let Some(name) = asserted(container, "name", &path, (Json::as_str, TEXT))? else {
            continue;
        };
        let Some(state) = asserted(container, "state", &path, (object, OBJECT))? else {
            continue;
        };
        let path = format!("{path}.state");
        let Some(waiting) = asserted(state, "waiting", &path, (object, OBJECT))? else {
            continue;
        };
        let path = format!("{path}.waiting");
        let reason = asserted(waiting, "reason", &path, (Json::as_str, TEXT))?;
        if reason == Some("CrashLoopBackOff") {
            looping.push(name);
        }
    }
    Ok(looping)
}

fn object<'j, 'a>(value: &'j Json<'a>) -> Option<&'j Json<'a>> {
    matches!(value, Json::Object(_)).then_some(value)
}
