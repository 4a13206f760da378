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
    /// The write is refused.
    Deny,
}

/// What a rule says about its own action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// Always this.
    Fixed(Action),
    /// What the policy says of disagreements for this writer.
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

impl Disposition {
    /// Whether a violation can reject a write, under some policy.
    pub(crate) fn can_deny(self) -> bool {
        matches!(self, Self::Disagreement | Self::Fixed(Action::Deny))
    }
}
