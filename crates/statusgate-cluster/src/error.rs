//! Errors of requests to the API server.

use std::error::Error;
use std::io;

use tokio::task::JoinError;

/// A failed request to the API server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// An invalid kubeconfig.
    #[error("cannot use {from}")]
    BadConfig {
        /// The file, or the places where it was searched.
        from: String,
        /// The cause.
        source: Box<dyn Error + Send + Sync>,
    },
    /// No response: the connection was refused, broken, timed out or not trusted.
    #[error("cannot {what} at {server}")]
    Unreachable {
        /// `list xvshnredis.vshn.appcat.vshn.io`.
        what: String,
        /// The address.
        server: String,
        /// The cause.
        source: Box<dyn Error + Send + Sync>,
    },
    /// A response with an error status.
    #[error("cannot {what}: {}{message}", hint(*code))]
    Rejected {
        /// `list xvshnredis.vshn.appcat.vshn.io`.
        what: String,
        /// The HTTP status.
        code: u16,
        /// The message of the server.
        message: String,
    },
    /// A kind that was deleted.
    #[error("{resource} is no longer served: its CustomResourceDefinition was deleted")]
    KindRemoved {
        /// `xvshnredis.vshn.appcat.vshn.io`.
        resource: String,
    },
    /// A cluster without policy reports.
    #[error(
        "this cluster does not serve wgpolicyk8s.io/v1alpha2 or openreports.io/v1alpha1: install the CRDs of PolicyReport and ClusterPolicyReport or of Report and ClusterReport, or omit --write"
    )]
    NoReports,
    /// A response with an unexpected format.
    #[error("cannot {what}: invalid response")]
    BadAnswer {
        /// The request.
        what: String,
        /// The cause.
        source: serde_json::Error,
    },
}

impl ClusterError {
    /// The HTTP status of an error response.
    pub const fn code(&self) -> Option<u16> {
        match self {
            Self::Rejected { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// Whether the error concerns the whole server, and so all requests.
    pub const fn is_of_the_server(&self) -> bool {
        matches!(self, Self::Unreachable { .. })
            || matches!(self.code(), Some(401 | 408 | 429 | 500..=599))
    }
}

/// Why a backfill or an audit ended, or a kind is incomplete.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// A kind cannot be listed, or the API server rejects all writes.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The report cannot be written.
    #[error("cannot write the report")]
    Report(#[from] io::Error),
    /// All objects of a backfill fail.
    #[error("{count} objects failed in a row; the last error: {reason}")]
    Hopeless {
        /// The number of objects.
        count: u32,
        /// The last reason.
        reason: String,
    },
    /// A task panicked.
    #[error("a task ended unexpectedly: this is a bug in statusgate")]
    Lost(#[from] JoinError),
}

impl RunError {
    /// Whether it ends the run, and not only the current kind.
    pub(super) const fn is_of_everything(&self) -> bool {
        !matches!(self, Self::Cluster(error) if !error.is_of_the_server())
    }
}

/// What was read; `None` if it does not exist.
pub(super) fn unless_missing<T>(read: Result<T, ClusterError>) -> Result<Option<T>, ClusterError> {
    match read {
        Ok(found) => Ok(Some(found)),
        Err(ClusterError::Rejected { code: 404, .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether a write was done; `false` if it was rejected with one of these statuses.
pub(super) fn unless<T>(
    codes: &[u16],
    written: Result<T, ClusterError>,
) -> Result<bool, ClusterError> {
    match written {
        Ok(_) => Ok(true),
        Err(error) if error.code().is_some_and(|code| codes.contains(&code)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The meaning of an HTTP status.
const fn hint(code: u16) -> &'static str {
    match code {
        401 => "not logged in: ",
        403 => "not allowed: ",
        404 => "not found: ",
        429 => "the API server is overloaded: ",
        500..=599 => "the API server has a problem: ",
        _ => "",
    }
}
