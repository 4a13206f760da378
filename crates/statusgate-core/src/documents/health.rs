//! The health of a status: what it means for those who read it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ListPointer, Name, StatusPointer};
use crate::language::Predicate;

/// What a status means.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum HealthStatus {
    /// The object has the state that its spec asks for.
    Current,
    /// The controller is working on it.
    InProgress,
    /// The controller did not reach the state that the spec asks for.
    Failed,
    /// The object is paused, on request or until something else happens.
    Suspended,
    /// The object is being deleted.
    Terminating,
    /// The status does not say.
    Unknown,
}

document! {
    /// What a status means for its readers: Argo CD, Flux, portals. The first of these that applies counts:
    /// `metadata.deletionTimestamp` (terminating), rules with `evenIfStale`, an observedGeneration that is
    /// behind (inProgress), the other rules with the health of the phase, a condition that observed an older
    /// generation (inProgress), and the default.
    #[derive(Default)]
    #[schemars(extend("x-merge" = "keys"))]
    pub struct Health {
        /// The health if no rule applies. Default: inProgress.
        default?: HealthStatus,
        /// The field with the message of the phase.
        message?: StatusPointer,
        /// The first rule that definitely holds counts. The health of the phase comes after these rules, and
        /// inherited rules come last. A rule that has only the name `phase` moves the health of the phase to
        /// its place.
        #[schemars(extend("x-merge" = "above"))]
        rules = Vec<HealthRule>,
    }

    /// A rule about health.
    #[schemars(extend("x-merge" = "keys", "x-name" = "name"))]
    pub struct HealthRule {
        /// The name, which is the reason if neither a field nor a condition has a message.
        name: Name,
        /// The health.
        is?: HealthStatus,
        /// With `is: failed`: the controller tries again by itself. Default: false.
        retried = bool,
        /// The rule also counts while observedGeneration is behind, because it is about the spec. Such rules
        /// come first. Default: false.
        even_if_stale = bool,
        /// The list of conditions that the predicate reads. Inside another list, some element must have conditions
        /// for which it holds. Default: the first one.
        #[serde(rename = "in")]
        list?: ListPointer,
        /// When it applies. Conditions that observed an older generation are no evidence.
        when?: Predicate,
        /// The field with the reason. Default: the message of the first condition that made the rule true.
        message?: StatusPointer,
        /// Where the rule comes from.
        source = String,
    }

    /// The health of a phase, if a failure is retried.
    pub struct RetriedHealth {
        /// The health.
        is: HealthStatus,
        /// With `is: failed`: the controller tries again by itself. Default: false.
        retried = bool,
    }
}

/// The health of a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(extend("x-help" = "write one of the six words, or {is: failed, retried: true}"))]
pub enum PhaseHealth {
    /// The health.
    Is(HealthStatus),
    /// The health, if a failure is retried.
    Retried(RetriedHealth),
}

impl HealthStatus {
    /// All, in the order of reports.
    pub const WORST_FIRST: [Self; 6] = [
        Self::Failed,
        Self::Unknown,
        Self::InProgress,
        Self::Terminating,
        Self::Suspended,
        Self::Current,
    ];

    /// The spelling in documents and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Current => "current",
            Self::InProgress => "inProgress",
            Self::Failed => "failed",
            Self::Suspended => "suspended",
            Self::Terminating => "terminating",
            Self::Unknown => "unknown",
        }
    }
}
