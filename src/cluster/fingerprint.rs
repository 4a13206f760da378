//! Identifies a cluster. Its address does not: a local cluster is recreated at the same port, and a
//! tunnel may lead to another cluster.

use k8s_openapi::api::core::v1::Namespace;
use kube::Api;

use super::hash::fnv1a_128;
use super::{Cluster, ClusterError};

impl Cluster {
    /// A text that distinguishes this cluster from others at the same address: the uid of the
    /// namespace `kube-system`, which lives as long as the cluster. If the account may not read the
    /// namespace: the certificate authority, because most tools create one per cluster.
    ///
    /// # Errors
    /// When the API server does not respond. Missing permission is not an error.
    pub async fn fingerprint(&self) -> Result<String, ClusterError> {
        let namespaces: Api<Namespace> = Api::all(self.client());
        let (what, get) = ("get the namespace kube-system", || namespaces.get("kube-system"));
        match self.ask_again(what, get).await {
            Ok(Namespace { metadata, .. }) => {
                Ok(format!("the kube-system {}", metadata.uid.unwrap_or_default()))
            }
            Err(ClusterError::Rejected { code: 401 | 403 | 404, .. }) => {
                Ok(by_authority(&self.authority.concat()))
            }
            Err(error) => Err(error),
        }
    }
}

fn by_authority(certificates: &[u8]) -> String {
    match certificates {
        [] => "no identifier".to_owned(),
        _ => format!("the certificate authority {:032x}", fnv1a_128(certificates)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorities_differ() {
        assert_ne!(by_authority(b"one"), by_authority(b"two"));
        assert_eq!(by_authority(b""), "no identifier");
    }
}
