//! What happens when a rule is violated.

use std::borrow::Cow;
use std::cmp::Ordering;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use crate::model::Id;

/// What happens when a write introduces a disagreement between phase and conditions.
// The largest set of actions: every violation ends in one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Disagreement")]
pub enum Action {
    /// Rejects the write.
    Deny,
    /// Sets the phase that the conditions support, and warns.
    Repair,
    /// Warns the writer.
    Warn,
    /// Adds an audit annotation.
    Audit,
}

/// What happens on a violation.
// The schema of an action that cannot be a repair.
#[derive(JsonSchema)]
#[schemars(rename = "Action")]
pub enum FixedAction {
    /// Rejects the write.
    Deny,
    /// Warns the writer.
    Warn,
    /// Adds an audit annotation.
    Audit,
}

/// What happens on a violation of a convention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Disposition {
    /// What the policy configures as `disagreement` for the writer.
    Disagreement,
    /// Rejects the write.
    Deny,
    /// Warns the writer.
    Warn,
    /// Adds an audit annotation.
    Audit,
}

/// An action of a rule that is built into the engine. In a document it is a [`Disposition`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Sanction {
    /// What happens on a violation.
    pub action: Disposition,
    /// The rule id. Compiling sets it.
    #[serde(skip)]
    pub rule: Id,
}

/// The default of a check that warns. Null in a document, which is `None`, switches the check off.
#[expect(clippy::unnecessary_wraps, reason = "serde needs the type of the field")]
pub(crate) fn warn() -> Option<Sanction> {
    Some(Sanction { action: Disposition::Warn, rule: Id::default() })
}

/// The same of a check that rejects.
#[expect(clippy::unnecessary_wraps, reason = "serde needs the type of the field")]
pub(super) fn deny() -> Option<Sanction> {
    Some(Sanction { action: Disposition::Deny, rule: Id::default() })
}

impl JsonSchema for Sanction {
    fn schema_name() -> Cow<'static, str> {
        Disposition::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        Disposition::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Disposition::json_schema(generator)
    }
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

/// Mildest first: a ceiling is a minimum.
impl Ord for Action {
    fn cmp(&self, other: &Self) -> Ordering {
        (*other as u8).cmp(&(*self as u8))
    }
}

impl PartialOrd for Action {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Disposition {
    /// The action, if a disagreement leads to this one.
    pub const fn action(self, disagreement: Action) -> Action {
        match self {
            Self::Disagreement => disagreement,
            Self::Deny => Action::Deny,
            Self::Warn => Action::Warn,
            Self::Audit => Action::Audit,
        }
    }

    /// Whether a violation can reject a write, under some policy.
    pub const fn can_deny(self) -> bool {
        matches!(self, Self::Disagreement | Self::Deny)
    }
}
