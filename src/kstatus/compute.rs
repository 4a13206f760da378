//! The decision: what all objects have in common, then the kind's own rules, then `Ready`.

use crate::model::Json;

use super::fields::{Condition, Fields};
use super::result::{RECONCILING, STALLED};
use super::{ComputeError, KStatus, builtin};

/// What kstatus says of a whole object.
///
/// `now`, in Unix seconds, is asked of only for a Pod that finds no node: it has 15 seconds from its
/// creation before it counts as failed.
///
/// # Errors
/// When a field that kstatus reads strictly is of another type; see [`ComputeError`].
pub fn compute(object: &Json<'_>, now: i64) -> Result<KStatus, ComputeError> {
    let fields = Fields::new(object);
    if fields.strict_text("metadata.deletionTimestamp")?.is_some_and(|time| !time.is_empty()) {
        return Ok(KStatus::terminating());
    }
    if let Some(result) = generation(&fields)? {
        return Ok(result);
    }
    let conditions = fields.conditions()?;
    if let Some(result) = standard(&conditions) {
        return Ok(result);
    }
    if let Some(result) = builtin::compute(&fields, &conditions, now) {
        return result;
    }
    Ok(ready(&conditions).unwrap_or_else(|| KStatus::current("Resource is current")))
}

/// An object that its controller has not looked at since it was changed. Without a generation there
/// is nothing to compare, and `observedGeneration` may then be anything.
fn generation(fields: &Fields<'_, '_>) -> Result<Option<KStatus>, ComputeError> {
    let Some(generation) = fields.strict_integer("metadata.generation")? else { return Ok(None) };
    let Some(observed) = fields.strict_integer("status.observedGeneration")? else {
        return Ok(None);
    };
    if observed == generation {
        return Ok(None);
    }
    let kind = fields.text("kind", "");
    let message =
        format!("{kind} generation is {generation}, but latest observed generation is {observed}");
    Ok(Some(KStatus::in_progress("LatestGenerationNotObserved", message)))
}

/// The first standard condition that is True. The order is the list's own: of an object that is both
/// reconciling and stalled, whichever its controller wrote first counts.
fn standard(conditions: &[Condition<'_>]) -> Option<KStatus> {
    conditions.iter().filter(|condition| condition.is_true()).find_map(|condition| match condition
        .kind
    {
        RECONCILING => Some(KStatus::in_progress(condition.reason, condition.message)),
        STALLED => Some(KStatus::failed(condition.reason, condition.message)),
        _ => None,
    })
}

/// The first `Ready` with one of the three statuses; a `Ready` with any other is passed over.
fn ready(conditions: &[Condition<'_>]) -> Option<KStatus> {
    conditions.iter().filter(|condition| condition.kind == "Ready").find_map(|condition| {
        match condition.status {
            "True" => Some(KStatus::current("Resource is Ready")),
            "False" | "Unknown" => Some(KStatus::in_progress(condition.reason, condition.message)),
            _ => None,
        }
    })
}
