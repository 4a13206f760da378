//! Leases of replicas: each server renews its own, and reads those of the others.

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, Preconditions};
use serde_json::json;

use super::error::unless;
use super::secret::FIELD_MANAGER;
use super::{Cluster, ClusterError};

/// `spec.leaseDurationSeconds`: for people and `doctor`; servers count the lists without a change.
pub(super) const LEASE_SECONDS: i64 = 40;

/// The Lease of a replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The name of the Lease.
    pub name: String,
    /// The name of the replica.
    pub holder: String,
    /// The fingerprint of the authority of its serving certificate; empty if it does not manage
    /// certificates.
    pub authority: String,
    /// When the replica renewed it, by its clock.
    pub renewed: Timestamp,
    /// The resourceVersion. It changes with each renewal, also if the clock of the replica stops.
    pub version: String,
}

impl Cluster {
    /// Creates or renews the Lease of a replica. By server-side apply, because then one request does both.
    ///
    /// # Errors
    /// When the API server rejects it or does not respond.
    pub async fn renew_lease(&self, namespace: &str, lease: &Lease) -> Result<(), ClusterError> {
        let Lease { name, holder, authority, renewed, .. } = lease;
        let object = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {
                "name": name,
                "labels": {LABEL: VALUE},
                "annotations": {AUTHORITY: authority},
            },
            "spec": {
                "holderIdentity": holder,
                "leaseDurationSeconds": LEASE_SECONDS,
                // A MicroTime has exactly six digits.
                "renewTime": format!("{renewed:.6}"),
            },
        });
        let what = format!("renew the Lease {namespace}/{name}");
        let (leases, options) =
            (self.lease_api(namespace), PatchParams::apply(FIELD_MANAGER).force());
        let renewed = self.ask(&what, leases.patch(name, &options, &Patch::Apply(object))).await;
        renewed.map_err(|error| with_reason(error, namespace)).map(|_| ())
    }

    /// The Leases of all replicas, including replicas that ended without removing their Lease.
    ///
    /// # Errors
    /// When they cannot be listed.
    pub async fn leases(&self, namespace: &str) -> Result<Vec<Lease>, ClusterError> {
        let what = format!("list the Leases of replicas in {namespace}");
        let options = ListParams::default().labels(&format!("{LABEL}={VALUE}"));
        let list = self.ask(&what, self.lease_api(namespace).list(&options)).await?;
        Ok(list.items.into_iter().filter_map(Lease::of).collect())
    }

    /// Deletes a Lease; only in this version, unless it is empty. Returns whether this version existed.
    ///
    /// # Errors
    /// When the API server rejects it or does not respond.
    pub async fn delete_lease(
        &self,
        namespace: &str,
        name: &str,
        version: &str,
    ) -> Result<bool, ClusterError> {
        let what = format!("delete the Lease {namespace}/{name}");
        let resource_version = (!version.is_empty()).then(|| version.to_owned());
        let preconditions = Some(Preconditions { resource_version, uid: None });
        let options = DeleteParams { preconditions, ..DeleteParams::default() };
        // 409: it was renewed.
        unless(&[404, 409], self.ask(&what, self.lease_api(namespace).delete(name, &options)).await)
    }

    fn lease_api(&self, namespace: &str) -> Api<v1::Lease> {
        Api::namespaced(self.client(), namespace)
    }
}

impl Lease {
    /// `None` for a Lease of something else with our label.
    fn of(lease: v1::Lease) -> Option<Self> {
        let v1::Lease { metadata, spec } = lease;
        let spec = spec?;
        Some(Self {
            name: metadata.name?,
            authority: metadata.annotations?.remove(AUTHORITY)?,
            version: metadata.resource_version?,
            holder: spec.holder_identity?,
            renewed: spec.renew_time?.0,
        })
    }
}

/// An apply that would create the Lease needs the permission to create it. The API server does not name
/// it: its reason is empty (kube-apiserver, endpoints/handlers/update.go, withAuthorization).
fn with_reason(mut error: ClusterError, namespace: &str) -> ClusterError {
    if let ClusterError::Rejected { code: 403, message, .. } = &mut error
        && message.trim_end().ends_with(" is forbidden:")
    {
        let text = format!("cannot create resource \"leases\" in the namespace \"{namespace}\"");
        *message = format!("{} {text}", message.trim_end());
    }
    error
}

const LABEL: &str = "app.kubernetes.io/name";
const VALUE: &str = "statusgate";
const AUTHORITY: &str = "statusgate.dev/authority";
