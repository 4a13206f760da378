//! The two admission webhooks.

/// An admission webhook. The API server calls the mutating one first, and the validating one after
/// its own schema validation, so they may get different objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Webhook {
    /// `POST /mutate`: sets defaults, imposes values and repairs. It never rejects.
    Mutate,
    /// `POST /validate`: judges. It never patches.
    Validate,
}

impl Webhook {
    /// The name used in paths, flags, logs and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mutate => "mutate",
            Self::Validate => "validate",
        }
    }
}
