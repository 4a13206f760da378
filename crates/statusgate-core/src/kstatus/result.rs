//! The result: a status, a message, and at most one standard condition.

use serde::Serialize;

/// The status of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum Status {
    /// The controller has not finished.
    InProgress,
    /// The object failed and does not recover by waiting.
    Failed,
    /// The object has its desired state, or nothing contradicts that.
    Current,
    /// The object is being deleted.
    Terminating,
}

impl Status {
    /// The spelling in kstatus.
    pub const fn name(self) -> &'static str {
        match self {
            Self::InProgress => "InProgress",
            Self::Failed => "Failed",
            Self::Current => "Current",
            Self::Terminating => "Terminating",
        }
    }
}

/// The result for one object. Serializes to the JSON of `Result` in kstatus.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KStatus {
    /// The status.
    pub status: Status,
    /// The reason in words. Often the message of a condition, which may be empty.
    pub message: String,
    /// `Reconciling` for InProgress, `Stalled` for Failed, otherwise empty.
    pub conditions: Vec<StandardCondition>,
}

/// A standard condition that the object should have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StandardCondition {
    /// `Reconciling` or `Stalled`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Always `True`: both have abnormal polarity, and absence means False.
    pub status: &'static str,
    /// Copied from the object; may be empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// May be empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// The condition of an object in progress.
pub(crate) const RECONCILING: &str = "Reconciling";
/// The condition of a failed object.
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
        let condition = StandardCondition {
            kind,
            status: "True",
            reason: reason.to_owned(),
            message: message.clone(),
        };
        Self { status, message, conditions: vec![condition] }
    }
}
