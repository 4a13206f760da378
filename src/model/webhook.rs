//! The two doors a request can come through.

/// Which of the two admission webhooks was called. The API server calls the mutating one first and
/// the validating one after its own schema validation, so they may see different objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Webhook {
    /// `POST /mutate`: fills in, imposes, repairs. It never refuses.
    Mutate,
    /// `POST /validate`: judges. It never patches.
    Validate,
}

impl Webhook {
    /// The name used in paths, flags, logs and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mutate => "mutate",
            Self::Validate => "validate",
        }
    }
}
