//! What a look at the cluster found: the rows of `doctor`, and the warnings before a backfill.

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What it is about, one word or two for a script: `schema-field`, `ca-bundle`.
    pub id: &'static str,
    /// How it is.
    pub level: Level,
    /// What was looked at: a resource, a registration.
    pub subject: String,
    /// What was found.
    pub message: String,
    /// What to do about it; empty where there is nothing to do.
    pub help: String,
}

/// How a thing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// As it should be.
    Ok,
    /// It works, but probably not as somebody means it to, or it could not be looked at.
    Warning,
    /// It does not work.
    Problem,
}

impl Level {
    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

impl Check {
    /// Something that is as it should be.
    #[must_use]
    pub fn ok(id: &'static str, subject: impl Into<String>, message: impl Into<String>) -> Self {
        let (subject, message) = (subject.into(), message.into());
        Self { id, level: Level::Ok, subject, message, help: String::new() }
    }

    /// Something that somebody should look at.
    #[must_use]
    pub fn warning(
        id: &'static str,
        subject: impl Into<String>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        let (subject, message, help) = (subject.into(), message.into(), help.into());
        Self { id, level: Level::Warning, subject, message, help }
    }

    /// Something that does not work.
    #[must_use]
    pub fn problem(
        id: &'static str,
        subject: impl Into<String>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        Self { level: Level::Problem, ..Self::warning(id, subject, message, help) }
    }
}
