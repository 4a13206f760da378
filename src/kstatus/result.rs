//! What comes out: one of a few statuses, a sentence, and at most one standard condition.

use std::fmt;

use serde::Serialize;

/// What an object amounts to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum Status {
    /// Its controller has not finished.
    InProgress,
    /// It went wrong and does not mend by waiting.
    Failed,
    /// It is what its spec asks for, or nothing says otherwise.
    Current,
    /// It is being deleted.
    Terminating,
    /// kstatus cannot say. Never computed of an object: it is what callers of kstatus make of an
    /// error, and a value that [`super::aggregate`] knows.
    Unknown,
}

impl Status {
    /// As kstatus spells it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::InProgress => "InProgress",
            Self::Failed => "Failed",
            Self::Current => "Current",
            Self::Terminating => "Terminating",
            Self::Unknown => "Unknown",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

/// The result for one object. Serializes to the JSON of kstatus' own `Result`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KStatus {
    /// What the object amounts to.
    pub status: Status,
    /// Why, for a person. May be empty: it is often the condition's own message.
    pub message: String,
    /// `Reconciling` when in progress, `Stalled` when failed, else none.
    pub conditions: Vec<Condition>,
}

/// A standard condition that the object should carry, whether it does or not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Condition {
    /// `Reconciling` or `Stalled`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Always `True`: both speak of abnormal states, and their absence means False.
    pub status: &'static str,
    /// In CamelCase, but copied from the object, so that it may be anything or empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// For a person; may be empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// The condition of an object that is on its way.
pub(crate) const RECONCILING: &str = "Reconciling";
/// The condition of an object that will not get further by itself.
pub(crate) const STALLED: &str = "Stalled";

impl KStatus {
    pub(crate) fn current(message: impl Into<String>) -> Self {
        Self { status: Status::Current, message: message.into(), conditions: Vec::new() }
    }

    pub(crate) fn terminating() -> Self {
        let message = "Resource scheduled for deletion".to_owned();
        Self { status: Status::Terminating, message, conditions: Vec::new() }
    }

    pub(crate) fn in_progress(reason: &str, message: impl Into<String>) -> Self {
        Self::abnormal(Status::InProgress, RECONCILING, reason, message.into())
    }

    pub(crate) fn failed(reason: &str, message: impl Into<String>) -> Self {
        Self::abnormal(Status::Failed, STALLED, reason, message.into())
    }

    fn abnormal(status: Status, kind: &'static str, reason: &str, message: String) -> Self {
        let condition =
            Condition { kind, status: "True", reason: reason.to_owned(), message: message.clone() };
        Self { status, message, conditions: vec![condition] }
    }
}
