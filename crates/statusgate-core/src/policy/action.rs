//! What happens when a rule is violated.

/// What happens when a rule is violated, mildest first: a ceiling is a minimum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
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
    /// All actions, the worst first.
    pub const WORST_FIRST: [Self; 4] = [Self::Deny, Self::Repair, Self::Warn, Self::Audit];

    /// As logs, metrics and tables spell it.
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
