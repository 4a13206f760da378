//! The results of `doctor`, and the warnings before a backfill.

use std::fmt::Display;

use serde::Serialize;

/// One result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CheckResult {
    /// The id of the check, for scripts: `schema`, `ca-bundle`.
    #[serde(rename = "check")]
    pub id: &'static str,
    /// Its severity.
    pub level: Level,
    /// What was checked: a resource, a registration.
    #[serde(rename = "of")]
    pub subject: String,
    /// What was found.
    #[serde(rename = "found")]
    pub message: String,
    /// The fix; empty if none is needed.
    pub help: String,
}

/// The severity of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Correct.
    Ok,
    /// It works, but probably not as intended; or it could not be checked.
    Warning,
    /// It does not work.
    Problem,
}

impl Level {
    /// Its name in the output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

impl CheckResult {
    /// A correct result.
    pub fn ok(id: &'static str, subject: impl Into<String>, message: impl Into<String>) -> Self {
        let (subject, message) = (subject.into(), message.into());
        Self { id, level: Level::Ok, subject, message, help: String::new() }
    }

    /// A warning.
    pub fn warning(
        id: &'static str,
        subject: impl Into<String>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        let (subject, message, help) = (subject.into(), message.into(), help.into());
        Self { id, level: Level::Warning, subject, message, help }
    }

    /// A problem.
    pub fn problem(
        id: &'static str,
        subject: impl Into<String>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        Self { level: Level::Problem, ..Self::warning(id, subject, message, help) }
    }

    /// A warning that something could not be read. `verb`: what this account would have to do.
    pub fn not_checked(
        id: &'static str,
        subject: impl Into<String>,
        reason: impl Display,
        verb: &str,
    ) -> Self {
        let (message, help) =
            (format!("not checked: {reason}"), format!("allow this account to {verb}"));
        Self::warning(id, subject, message, help)
    }
}
