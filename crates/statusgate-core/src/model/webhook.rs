//! The admission webhooks.

/// An admission webhook. The API server calls the mutating one first, and a validating one after its own
/// schema validation, so they may get different objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Webhook {
    /// Sets defaults, imposes values and repairs. It never rejects.
    Mutate,
    /// Judges by all rules. It never patches.
    Validate,
}

impl Webhook {
    /// All webhooks, by their discriminants.
    pub const ALL: [Self; 2] = [Self::Mutate, Self::Validate];

    /// The name used in flags, logs and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mutate => "mutate",
            Self::Validate => "validate",
        }
    }

    /// The path of its requests.
    pub const fn path(self) -> &'static str {
        match self {
            Self::Mutate => "/mutate",
            Self::Validate => "/validate",
        }
    }
}
