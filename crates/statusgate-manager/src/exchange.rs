//! The values that the parts of the manager exchange.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::watch;

use statusgate_cluster::manifests::coverage::Coverage;
use statusgate_core::policy::PolicySet;

/// A value for each thing that one part knows and others need. Each is written by one part only.
#[derive(Debug)]
pub struct Exchange {
    /// The policies in use, those of files included. For the registrations.
    pub policies: watch::Sender<Arc<PolicySet>>,
    /// The PEM certificates that each caBundle has to contain; empty while this server does not manage
    /// certificates. From the certificates; for the registrations.
    pub authorities: watch::Sender<String>,
    /// The fingerprint of the authority of the serving certificate; empty while it is not managed. From the
    /// certificates; for the Lease of this replica.
    pub served: watch::Sender<String>,
    /// The caBundle of each webhook of our registrations, as PEM; `None` until they were read. From the
    /// registrations; for the certificates.
    pub registered: watch::Sender<Option<Vec<String>>>,
    /// How the registrations cover the resources of policies; `None` until it is known. From the
    /// registrations; for the status of policies.
    pub coverage: watch::Sender<Option<Covered>>,
    /// The replicas that may serve, this one included. From their Leases; for the certificates and the
    /// status of policies.
    pub replicas: watch::Sender<Vec<Replica>>,
}

impl Exchange {
    /// Nothing is known but the policies.
    pub fn new(policies: watch::Sender<Arc<PolicySet>>) -> Self {
        Self {
            policies,
            authorities: watch::Sender::default(),
            served: watch::Sender::default(),
            registered: watch::Sender::default(),
            coverage: watch::Sender::default(),
            replicas: watch::Sender::default(),
        }
    }
}

/// How the registrations cover the resources of some policies.
#[derive(Clone, Debug)]
pub struct Covered {
    /// The policies in use when the registrations were read.
    pub of: Arc<PolicySet>,
    /// By the name of the policy. One is absent while API servers may not have read the registrations.
    pub policies: BTreeMap<String, Coverage>,
}

impl PartialEq for Covered {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.of, &other.of) && self.policies == other.policies
    }
}

/// A server with a Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replica {
    /// Its name, unique in the namespace: in a pod the name of the pod and the port.
    pub name: String,
    /// The SHA-256 fingerprint of the authority that signed its serving certificate, as hex; empty if it
    /// does not manage certificates.
    pub authority: String,
    /// Whether it renews its Lease. Otherwise it has ended, or it serves without a path to the API server.
    pub is_live: bool,
}
