//! What the server may do in the cluster: one role for each capability.

use serde_json::{Value, json};

use super::{Installation, NAME, SECRET, labels};
use crate::manifests::registrations::{DOCUMENTS_NAME, OBJECTS};

/// A thing that the server does in the cluster, and that needs permissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// Read policies and conventions and write their status.
    WatchPolicies,
    /// Create the registrations, and make their rules from policies and CRDs.
    ManageWebhooks,
    /// Create and renew the certificate.
    ManageCertificates,
    /// Update the registrations: rules and caBundles.
    Registrations,
    /// Announce this replica and see the others.
    Replicas,
}

impl Capability {
    /// All capabilities.
    pub const ALL: [Self; 5] = [
        Self::WatchPolicies,
        Self::ManageWebhooks,
        Self::ManageCertificates,
        Self::Registrations,
        Self::Replicas,
    ];

    /// The name of its role.
    pub const fn role(self) -> &'static str {
        match self {
            Self::WatchPolicies => "statusgate-watch-policies",
            Self::ManageWebhooks => "statusgate-manage-webhooks",
            Self::ManageCertificates => "statusgate-manage-certificates",
            Self::Registrations => "statusgate-registrations",
            Self::Replicas => "statusgate-replicas",
        }
    }

    /// Whether its role is valid in the namespace of the server only.
    pub const fn is_namespaced(self) -> bool {
        matches!(self, Self::ManageCertificates | Self::Replicas)
    }
}

/// The rules of the role of a capability, with comments.
pub fn permissions(capability: Capability) -> Value {
    match capability {
        Capability::WatchPolicies => json!([
            {
                "apiGroups": ["statusgate.dev"],
                "resources": ["statusconventions", "statuspolicies"],
                "verbs": ["list", "watch"],
            },
            {
                "#": "Server-side apply is a patch.",
                "apiGroups": ["statusgate.dev"],
                "resources": ["statusconventions/status", "statuspolicies/status"],
                "verbs": ["patch"],
            },
        ]),
        Capability::ManageWebhooks => json!([
            {
                "#": "The plurals, versions and subresources of the kinds that policies name.",
                "apiGroups": ["apiextensions.k8s.io"],
                "resources": ["customresourcedefinitions"],
                "verbs": ["get", "list", "watch"],
            },
            {
                "#": "RBAC cannot restrict `create` to names.",
                "apiGroups": ["admissionregistration.k8s.io"],
                "resources": ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
                "verbs": ["create"],
            },
        ]),
        Capability::ManageCertificates => json!([
            {
                "#": "RBAC cannot restrict `create` to a name.",
                "apiGroups": [""],
                "resources": ["secrets"],
                "verbs": ["create"],
            },
            {
                "apiGroups": [""],
                "resources": ["secrets"],
                "resourceNames": [SECRET],
                "verbs": ["get", "list", "update", "watch"],
            },
        ]),
        Capability::Registrations => json!([
            {
                "#": "A list or a watch of one name is allowed.",
                "apiGroups": ["admissionregistration.k8s.io"],
                "resources": ["mutatingwebhookconfigurations"],
                "resourceNames": [OBJECTS],
                "verbs": ["get", "list", "patch", "watch"],
            },
            {
                "apiGroups": ["admissionregistration.k8s.io"],
                "resources": ["validatingwebhookconfigurations"],
                "resourceNames": [OBJECTS, DOCUMENTS_NAME],
                "verbs": ["get", "list", "patch", "watch"],
            },
        ]),
        Capability::Replicas => json!([
            {
                "#": "One Lease for each replica, with the name of the replica. Any replica deletes those of replicas that ended.",
                "apiGroups": ["coordination.k8s.io"],
                "resources": ["leases"],
                "verbs": ["create", "delete", "list", "patch"],
            },
        ]),
    }
}

/// The roles and their bindings.
pub(super) fn objects(installation: &Installation) -> Vec<Value> {
    installation
        .capabilities()
        .into_iter()
        .flat_map(|capability| granted(installation, capability))
        .collect()
}

fn granted(installation: &Installation, capability: Capability) -> [Value; 2] {
    let (role, binding, metadata) = if capability.is_namespaced() {
        ("Role", "RoleBinding", installation.metadata(capability.role()))
    } else {
        let metadata = json!({"name": capability.role(), "labels": labels()});
        ("ClusterRole", "ClusterRoleBinding", metadata)
    };
    [
        json!({
            "#": about(capability),
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": role,
            "metadata": metadata,
            "rules": permissions(capability),
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": binding,
            "metadata": metadata,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role, "name": capability.role()},
            "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": installation.namespace}],
        }),
    ]
}

const fn about(capability: Capability) -> &'static str {
    match capability {
        Capability::WatchPolicies => {
            "--watch-policies: read policies and conventions, and write their status."
        }
        Capability::ManageWebhooks => {
            "--manage-webhooks: create the registrations, and make their rules from policies and CRDs."
        }
        Capability::Registrations => {
            "--manage-webhooks and --manage-certificates: update the rules and the caBundles of the registrations."
        }
        Capability::ManageCertificates => {
            "--manage-certificates: create and renew the certificate, in one Secret."
        }
        Capability::Replicas => {
            "The replicas announce themselves: for the status of policies, and for the rotation of certificates."
        }
    }
}
