//! Identifies a cluster. Its address does not: a local cluster is recreated at the same port, and a
//! tunnel may lead to another cluster.

use super::hash::fnv1a_128;
use super::identity::read_object;
use super::{Cluster, ClusterError, Patience};

impl Cluster {
    /// A text that distinguishes this cluster from others at the same address: the uid of the
    /// namespace `kube-system`, which lives as long as the cluster. If the account may not read the
    /// namespace: the certificate authority, because most tools create one per cluster.
    ///
    /// # Errors
    /// When the API server does not respond. Missing permission is not an error.
    pub async fn fingerprint(&self) -> Result<String, ClusterError> {
        let what = "get the namespace kube-system";
        let body = match self.read(what, NAMESPACE, Patience::SHORT).await {
            Ok(body) => body,
            Err(ClusterError::Rejected { code: 401 | 403 | 404, .. }) => {
                return Ok(by_authority(&self.authority().concat()));
            }
            Err(error) => return Err(error),
        };
        let text = std::str::from_utf8(&body).unwrap_or_default();
        let object = read_object(text)
            .map_err(|source| ClusterError::BadAnswer { what: what.to_owned(), source })?;
        Ok(format!("the kube-system {}", object.metadata.uid))
    }
}

fn by_authority(certificates: &[u8]) -> String {
    match certificates {
        [] => "no identifier".to_owned(),
        _ => format!("the certificate authority {:032x}", fnv1a_128(certificates)),
    }
}

const NAMESPACE: &str = "/api/v1/namespaces/kube-system";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorities_differ() {
        assert_ne!(by_authority(b"one"), by_authority(b"two"));
        assert_eq!(by_authority(b""), "no identifier");
    }
}
