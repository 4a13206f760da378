//! Which cluster this is. An address does not say it: a cluster on a desk is made anew at the port of
//! the last one, and a tunnel leads elsewhere tomorrow.

use super::{Cluster, ClusterError, Identity, Patience};

/// What tells a cluster from another one at the same address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fingerprint {
    /// The uid of the namespace `kube-system`, which lives as long as its cluster does.
    Namespace(String),
    /// The certificates of the authority that vouches for the server, where the namespace may not be
    /// read. Most tools make a new one for each cluster.
    Authority(Vec<u8>),
    /// There is neither.
    Nothing,
}

impl Cluster {
    /// What tells this cluster from another one at the same address.
    ///
    /// # Errors
    /// When the API server does not answer. That this account may not ask is no failure.
    pub async fn fingerprint(&self) -> Result<Fingerprint, ClusterError> {
        let what = "get the namespace kube-system";
        let body = match self.read(what, NAMESPACE, Patience::SHORT).await {
            Ok(body) => body,
            Err(ClusterError::Refused { code: 401 | 403 | 404, .. }) => {
                return Ok(match self.authority() {
                    [] => Fingerprint::Nothing,
                    authority => Fingerprint::Authority(authority.concat()),
                });
            }
            Err(error) => return Err(error),
        };
        let text = std::str::from_utf8(&body).unwrap_or_default();
        let identity = Identity::parse(text)
            .map_err(|source| ClusterError::BadAnswer { what: what.to_owned(), source })?;
        Ok(Fingerprint::Namespace(identity.uid.into_owned()))
    }
}

const NAMESPACE: &str = "/api/v1/namespaces/kube-system";
