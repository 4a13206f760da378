//! What the manager is asked to do.

use std::time::Duration;

use jiff::Timestamp;

use crate::manifests::registrations::{Address, FailurePolicy};

/// The managed parts of a server.
#[derive(Clone, Debug)]
pub struct ManagerOptions {
    /// The namespace of the server: of its Secret, its Leases and its Service.
    pub namespace: String,
    /// The name of this replica.
    pub replica: String,
    /// Where API servers reach the replicas.
    pub address: Address,
    /// The DNS names and IP addresses in that address.
    pub names: Vec<String>,
    /// Whether policies and conventions are read from the cluster.
    pub watch_policies: bool,
    /// The serving certificate, if it is managed.
    pub certificate: Option<ManagedCertificate>,
    /// The failure policy of new registrations, if registrations are managed.
    pub registrations: Option<FailurePolicy>,
    /// The wall clock.
    pub clock: fn() -> Timestamp,
}

/// A serving certificate in a Secret, which the replicas create and rotate.
#[derive(Clone, Debug)]
pub struct ManagedCertificate {
    /// The name of the Secret.
    pub secret: String,
    /// How long a serving certificate is valid.
    pub lifetime: Duration,
}
