//! What happens when a rule is violated.

use crate::source::tree::{Node, Problems};

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

    /// Reads an action that any rule can have.
    pub(crate) fn read(node: &Node, problems: &Problems) -> Option<Self> {
        problems.word(node, &[("Deny", Self::Deny), ("Warn", Self::Warn), ("Audit", Self::Audit)])
    }

    /// Reads an action on a disagreement.
    pub(crate) fn read_disagreement(node: &Node, problems: &Problems) -> Option<Self> {
        problems.word(
            node,
            &[
                ("Deny", Self::Deny),
                ("Repair", Self::Repair),
                ("Warn", Self::Warn),
                ("Audit", Self::Audit),
            ],
        )
    }
}

impl Disposition {
    /// Reads the action of a convention's rule.
    pub(crate) fn read(node: &Node, problems: &Problems) -> Option<Self> {
        problems.word(
            node,
            &[
                ("Disagreement", Self::Disagreement),
                ("Deny", Self::Fixed(Action::Deny)),
                ("Warn", Self::Fixed(Action::Warn)),
                ("Audit", Self::Fixed(Action::Audit)),
            ],
        )
    }
}
