//! What can go wrong between us and the API server.

use std::error::Error;

/// Why the API server could not be asked, or what it answered instead.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// A kubeconfig that cannot be read or does not lead to a server.
    #[error("cannot use {from}")]
    BadConfig {
        /// The file, or where it was looked for.
        from: String,
        /// What is wrong with it.
        source: Box<dyn Error + Send + Sync>,
    },
    /// No answer: refused, cut off, timed out, or not trusted.
    #[error("cannot {what} at {server}")]
    Unreachable {
        /// `list xvshnredis.vshn.appcat.vshn.io`.
        what: String,
        /// The address.
        server: String,
        /// Why.
        source: Box<dyn Error + Send + Sync>,
    },
    /// An answer that is a refusal.
    #[error("cannot {what}: {}{message}", hint(*code))]
    Refused {
        /// `list xvshnredis.vshn.appcat.vshn.io`.
        what: String,
        /// The HTTP status.
        code: u16,
        /// The server's own words.
        message: String,
    },
    /// A kind that is not served any more.
    #[error("{resource} is no longer served: its CustomResourceDefinition was deleted")]
    KindRemoved {
        /// `xvshnredis.vshn.appcat.vshn.io`.
        resource: String,
    },
    /// A cluster without the kinds of policy reports.
    #[error(
        "this cluster does not serve wgpolicyk8s.io/v1alpha2: install the PolicyReport and ClusterPolicyReport CRDs, or omit --write and apply the output of -o policyreport"
    )]
    NoReports,
    /// An answer that is not what the API promises.
    #[error("cannot {what}: invalid response")]
    BadAnswer {
        /// What was asked.
        what: String,
        /// Where it stops making sense.
        source: serde_json::Error,
    },
}

impl ClusterError {
    /// The HTTP status of a refusal.
    #[must_use]
    pub const fn code(&self) -> Option<u16> {
        match self {
            Self::Refused { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// Whether the server itself is out of reach, and so everything is.
    #[must_use]
    pub const fn is_of_the_server(&self) -> bool {
        matches!(self, Self::Unreachable { .. })
            || matches!(self.code(), Some(401 | 408 | 429 | 500..=599))
    }
}

/// An error with its causes, in one line. Some libraries tell the cause themselves; once is enough.
#[must_use]
pub fn told(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.ends_with(&said) {
            text.push_str(&format!(": {said}"));
        }
        cause = error.source();
    }
    text
}

/// What the number means to a person, where the server's words may not say it.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Layer {
        text: &'static str,
        source: Option<Box<Self>>,
    }

    #[test]
    fn a_cause_is_told_once() {
        let layer = |text, source: Option<Layer>| Layer { text, source: source.map(Box::new) };
        let inner = || layer("no such file", None);
        let middle = || layer("cannot read x: no such file", Some(inner()));
        assert_eq!(told(&middle()), "cannot read x: no such file");
        let outer = layer("cannot use the kubeconfig", Some(middle()));
        assert_eq!(told(&outer), "cannot use the kubeconfig: cannot read x: no such file");
        assert_eq!(told(&layer("a", Some(inner()))), "a: no such file");
    }
}
