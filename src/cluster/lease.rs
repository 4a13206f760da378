//! Leases of replicas: each server renews its own, and reads those of the others.

use http::Method;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;

use super::call::Call;
use super::{Cluster, ClusterError, Patience};

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
    /// The resourceVersion. It changes with each renewal, also if the clock of the replica stands still.
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
        let path = format!("{}?fieldManager=statusgate&force=true", path(namespace, name));
        let format = "application/apply-patch+yaml";
        let call =
            Call { method: Method::PATCH, path: &path, format, body: object.to_string().into() };
        match self.send(&call).await {
            Ok(answer) if answer.status < 300 => Ok(()),
            reply => Err(with_reason(self.failed(&what, reply), namespace)),
        }
    }

    /// The Leases of all replicas, also of those that ended without removing theirs.
    ///
    /// # Errors
    /// When they cannot be listed.
    pub async fn leases(&self, namespace: &str) -> Result<Vec<Lease>, ClusterError> {
        let what = format!("list the Leases of replicas in {namespace}");
        let path = format!("{}?labelSelector={LABEL}%3D{VALUE}", path(namespace, ""));
        let list: List = self.read_as(&what, &path, Patience::NONE).await?;
        Ok(list.items.into_iter().filter_map(Item::lease).collect())
    }

    /// Deletes a Lease; only in this version, unless it is empty. A missing one is no error.
    ///
    /// # Errors
    /// When the API server rejects it or does not respond.
    pub async fn delete_lease(
        &self,
        namespace: &str,
        name: &str,
        version: &str,
    ) -> Result<(), ClusterError> {
        let mut options = json!({"apiVersion": "v1", "kind": "DeleteOptions"});
        if !version.is_empty() {
            options["preconditions"] = json!({"resourceVersion": version});
        }
        let (what, path) = (format!("delete the Lease {namespace}/{name}"), path(namespace, name));
        let (method, format) = (Method::DELETE, "application/json");
        let call = Call { method, path: &path, format, body: options.to_string().into() };
        match self.send(&call).await {
            // 409: it was renewed.
            Ok(answer) if answer.status < 300 || matches!(answer.status, 404 | 409) => Ok(()),
            reply => Err(self.failed(&what, reply)),
        }
    }
}

#[derive(Deserialize)]
struct List {
    items: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    metadata: k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
    spec: Option<k8s_openapi::api::coordination::v1::LeaseSpec>,
}

impl Item {
    /// `None` for a Lease of something else with our label.
    fn lease(self) -> Option<Lease> {
        let Self { metadata, spec } = self;
        let spec = spec?;
        Some(Lease {
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

fn path(namespace: &str, name: &str) -> String {
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases");
    if name.is_empty() { path } else { format!("{path}/{name}") }
}

const LABEL: &str = "app.kubernetes.io/name";
const VALUE: &str = "statusgate";
const AUTHORITY: &str = "statusgate.dev/authority";
