//! What happens when a rule is violated.

/// What happens when a rule is violated, mildest first: a ceiling is a minimum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// An audit annotation and a metric.
    Audit,
    /// A warning to the writer.
    Warn,
    /// The mutating webhook sets the phase that the evidence supports, and warns. Only a
    /// disagreement can be repaired.
    Repair,
    /// The write is rejected.
    Deny,
}

/// The action of a rule, as its document declares it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// Always this.
    Fixed(Action),
    /// What the policy configures as `disagreement` for this writer.
    Disagreement,
}

impl Action {
    /// As logs, metrics and tables spell it.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Audit => "audit",
            Self::Warn => "warn",
            Self::Repair => "repair",
            Self::Deny => "deny",
        }
    }
}
