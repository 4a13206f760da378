//! The admission webhooks.

/// An admission webhook. The API server calls the mutating one first, and a validating one after its own
/// schema validation, so they may get different objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Webhook {
    /// Sets defaults, imposes values and repairs. It never rejects.
    Mutate,
    /// Judges by all rules. It never patches.
    Validate,
    /// Judges by all rules except the disagreements between phase and conditions. Together with
    /// [`Self::Agreement`] the same as [`Self::Validate`].
    Mandatory,
    /// Judges only the disagreements between phase and conditions.
    Agreement,
}

impl Webhook {
    /// All webhooks, by their discriminants.
    pub const ALL: [Self; 4] = [Self::Mutate, Self::Validate, Self::Mandatory, Self::Agreement];

    /// The name used in flags, logs and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mutate => "mutate",
            Self::Validate => "validate",
            Self::Mandatory => "mandatory",
            Self::Agreement => "agreement",
        }
    }

    /// The path of its requests.
    pub const fn path(self) -> &'static str {
        match self {
            Self::Mutate => "/mutate",
            Self::Validate => "/validate",
            Self::Mandatory => "/validate/mandatory",
            Self::Agreement => "/validate/agreement",
        }
    }
}
