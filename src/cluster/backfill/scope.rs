//! What a run is about: whether it may go on with the journal of another one.

use serde::{Deserialize, Serialize};

use super::shard::fnv1a_128;
use crate::cluster::Fingerprint;

/// What a run is about. One that differs cannot go on with another's journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scope {
    /// The address of the API server.
    server: String,
    /// What tells the cluster from another one at this address, in words.
    cluster: String,
    /// A digest of the policy documents.
    policies: String,
    /// Namespace, selector, kinds and shard.
    objects: String,
}

impl Scope {
    /// The scope of a run with these documents over these objects.
    #[must_use]
    pub fn new<'t>(
        server: &str,
        cluster: &Fingerprint,
        documents: impl Iterator<Item = &'t str>,
        objects: String,
    ) -> Self {
        let mut text = Vec::new();
        for document in documents {
            text.extend_from_slice(document.as_bytes());
            // So that moving text from one file to the next makes a difference.
            text.push(0);
        }
        Self {
            server: server.to_owned(),
            cluster: words(cluster),
            policies: format!("{:032x}", fnv1a_128(&text)),
            objects,
        }
    }

    /// How this differs from the scope of the present run: `of a run …`.
    pub(super) fn differs(&self, present: &Self) -> Option<String> {
        if self.server != present.server {
            Some(format!(
                "against the API server {}; this run is against {}",
                self.server, present.server
            ))
        } else if self.cluster != present.cluster {
            // Also where the same cluster was known by something else, because the account was another
            // one: what cannot be told apart must not pass for the same.
            Some(format!(
                "against a cluster with {}; the cluster at this address now has {}",
                self.cluster, present.cluster
            ))
        } else if self.policies != present.policies {
            Some("with other policies".to_owned())
        } else if self.objects != present.objects {
            Some(format!("over {}; this run is over {}", self.objects, present.objects))
        } else {
            None
        }
    }
}

fn words(cluster: &Fingerprint) -> String {
    match cluster {
        Fingerprint::Namespace(uid) => format!("the kube-system {uid}"),
        Fingerprint::Authority(certificates) => {
            format!("the certificate authority {:032x}", fnv1a_128(certificates))
        }
        Fingerprint::Nothing => "no identifier".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(cluster: &Fingerprint, documents: &[&str]) -> Scope {
        Scope::new("https://here/", cluster, documents.iter().copied(), "everything".into())
    }

    fn namespace(uid: &str) -> Fingerprint {
        Fingerprint::Namespace(uid.to_owned())
    }

    #[test]
    fn what_differs_is_named() {
        let present = scope(&namespace("one"), &["p", "q"]);
        assert_eq!(present.differs(&present), None);
        let differs = |scope: Scope| scope.differs(&present).unwrap();
        assert_eq!(differs(scope(&namespace("one"), &["pq"])), "with other policies");
        let objects = Scope { objects: "shard 1/2".into(), ..present.clone() };
        assert_eq!(differs(objects), "over shard 1/2; this run is over everything");
        let server = Scope { server: "https://there/".into(), ..present.clone() };
        assert_eq!(
            differs(server),
            "against the API server https://there/; this run is against https://here/"
        );
    }

    #[test]
    fn another_cluster_at_the_same_address_is_another_one() {
        let authority = |bytes: &[u8]| Fingerprint::Authority(bytes.to_owned());
        let all = [
            namespace("one"),
            namespace("two"),
            authority(b"one"),
            authority(b"two"),
            Fingerprint::Nothing,
        ];
        for (index, one) in all.iter().enumerate() {
            for (other_index, other) in all.iter().enumerate() {
                let differs = scope(one, &[]).differs(&scope(other, &[]));
                assert_eq!(differs.is_none(), index == other_index, "{one:?} {other:?}");
            }
        }
        assert_eq!(
            scope(&all[0], &[]).differs(&scope(&all[1], &[])).unwrap(),
            "against a cluster with the kube-system one; the cluster at this address now has the kube-system \
             two"
        );
    }
}
