//! The decision: rules for all objects, then those of the kind, then the condition `Ready`.

use crate::model::Json;

use super::fields::{Condition, Fields};
use super::result::{RECONCILING, STALLED};
use super::{ComputeError, KStatus, builtin};

/// The repository of a kstatus. Their results differ for suspended Jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fork {
    /// kubernetes-sigs/cli-utils, as in kpt.
    #[default]
    KubernetesSigs,
    /// fluxcd/cli-utils, as in Flux and Helm 4.
    Fluxcd,
}

impl Fork {
    /// All.
    pub const ALL: [Self; 2] = [Self::KubernetesSigs, Self::Fluxcd];

    /// The owner of the repository.
    pub const fn name(self) -> &'static str {
        match self {
            Self::KubernetesSigs => "kubernetes-sigs",
            Self::Fluxcd => "fluxcd",
        }
    }
}

/// The kstatus result of an object.
///
/// `now`, in Unix seconds, matters only for a Pod that cannot be scheduled: it fails 15 seconds after
/// its creation.
///
/// # Errors
/// A field that kstatus reads strictly has another type; see [`ComputeError`].
pub fn compute(object: &Json<'_>, now: i64, fork: Fork) -> Result<KStatus, ComputeError> {
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
    if let Some(result) = builtin::compute(&fields, &conditions, now, fork) {
        return result;
    }
    Ok(ready(&conditions).unwrap_or_else(|| KStatus::current("Resource is current")))
}

/// InProgress if the controller has not observed the current generation. Without a generation,
/// `observedGeneration` is ignored.
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

/// The first standard condition that is True, in list order: of Reconciling and Stalled, the first
/// one counts.
fn standard(conditions: &[Condition<'_>]) -> Option<KStatus> {
    conditions.iter().filter(|condition| condition.is_true()).find_map(|condition| match condition
        .kind
    {
        RECONCILING => Some(KStatus::in_progress(condition.reason, condition.message)),
        STALLED => Some(KStatus::failed(condition.reason, condition.message)),
        _ => None,
    })
}

/// The first `Ready` with a valid status.
fn ready(conditions: &[Condition<'_>]) -> Option<KStatus> {
    conditions.iter().filter(|condition| condition.kind == "Ready").find_map(|condition| {
        match condition.status {
            "True" => Some(KStatus::current("Resource is Ready")),
            "False" | "Unknown" => Some(KStatus::in_progress(condition.reason, condition.message)),
            _ => None,
        }
    })
}
