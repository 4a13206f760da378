//! The subject of a run: it decides whether the run may continue with a journal.

use serde::{Deserialize, Serialize};

use crate::cluster::hash::fnv1a_128;

/// The subject of a run. A journal is valid only for runs with the same scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scope {
    /// The address of the API server.
    server: String,
    /// [`crate::cluster::Cluster::fingerprint`].
    cluster: String,
    /// A digest of the policy documents.
    policies: String,
    /// Namespace, selector, kinds and shard.
    objects: String,
}

impl Scope {
    /// The scope of a run with these documents over these objects.
    pub fn new<'t>(
        server: &str,
        cluster: String,
        documents: impl Iterator<Item = &'t str>,
        objects: String,
    ) -> Self {
        // The zeros: moving text from one file to the next changes the digest.
        let text: Vec<u8> = documents.flat_map(|document| document.bytes().chain([0])).collect();
        let policies = format!("{:032x}", fnv1a_128(&text));
        Self { server: server.to_owned(), cluster, policies, objects }
    }

    /// How this differs from the scope of the current run: `a run …`.
    pub(super) fn differs(&self, current: &Self) -> Option<String> {
        if self.server != current.server {
            let (one, other) = (&self.server, &current.server);
            Some(format!("against the API server {one}; this run is against {other}"))
        } else if self.cluster != current.cluster {
            // Also if another account identifies the same cluster differently: clusters that cannot
            // be compared must not count as equal.
            let (one, other) = (&self.cluster, &current.cluster);
            Some(format!(
                "against a cluster with {one}; the cluster at this address now has {other}"
            ))
        } else if self.policies != current.policies {
            Some("with other policies".to_owned())
        } else if self.objects != current.objects {
            Some(format!("over {}; this run is over {}", self.objects, current.objects))
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_difference_is_named() {
        let scope = |documents: &[&str]| {
            let (cluster, objects) = ("one".to_owned(), "everything".to_owned());
            Scope::new("https://here/", cluster, documents.iter().copied(), objects)
        };
        let current = scope(&["p", "q"]);
        assert_eq!(current.differs(&current), None);
        let differs = |scope: Scope| scope.differs(&current).unwrap();
        assert_eq!(differs(scope(&["pq"])), "with other policies");
        let objects = Scope { objects: "shard 1/2".into(), ..current.clone() };
        assert_eq!(differs(objects), "over shard 1/2; this run is over everything");
        let server = Scope { server: "https://there/".into(), ..current.clone() };
        assert_eq!(
            differs(server),
            "against the API server https://there/; this run is against https://here/"
        );
        let cluster = Scope { cluster: "two".into(), ..current.clone() };
        assert_eq!(
            differs(cluster),
            "against a cluster with two; the cluster at this address now has one"
        );
    }
}
