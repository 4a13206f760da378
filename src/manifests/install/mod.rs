//! The objects of an installation: `statusgate manifests install`.
//!
//! `deploy/` holds the output of this module for some settings, and the Helm chart renders the same
//! objects; tests compare both with it.

mod certificates;
mod network;
mod permissions;
mod workload;

use serde_json::{Value, json};

use super::registrations::FailurePolicy;
use super::yaml::without_comments;
use crate::values;

pub use permissions::{Capability, permissions};

/// The name of the Deployment, of the Service and of most other objects.
pub const NAME: &str = "statusgate";

/// The Secret with the serving certificate.
pub const SECRET: &str = "statusgate-tls";

/// The ConfigMap with the policies of a server that does not watch policies.
pub const POLICIES: &str = "statusgate-policies";

/// The settings of an installation, which are also arguments of `manifests install`.
#[derive(Clone, Debug, PartialEq, Eq, clap::Args)]
pub struct Installation {
    /// The namespace of the server.
    #[arg(long, value_name = "NAME", default_value = "statusgate-system", value_parser = values::namespace)]
    pub namespace: String,

    /// The image of the server. No public registry has one: build the Dockerfile and push the image.
    #[arg(long, value_name = "IMAGE", default_value = concat!("statusgate:", env!("CARGO_PKG_VERSION")))]
    pub image: String,

    /// Where the serving certificate is from.
    #[arg(long, value_enum, value_name = "SOURCE", default_value = "managed")]
    pub certificates: Certificates,

    /// The number of pods.
    #[arg(long, value_name = "NUMBER", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    pub replicas: u32,

    /// Whether the server reads policies from the cluster. Otherwise it reads them from the ConfigMap
    /// [`POLICIES`].
    #[arg(skip = true)]
    pub watch_policies: bool,

    /// Whether the server keeps the webhook registrations up to date.
    #[arg(skip = true)]
    pub manage_webhooks: bool,

    /// What API servers do with a write while no replica answers. For new registrations; `kubectl edit`
    /// changes existing ones.
    #[arg(long, value_name = "Ignore|Fail", ignore_case = true, default_value = "Ignore")]
    pub failure_policy: FailurePolicy,

    /// The priority class of the pods, for example system-cluster-critical.
    #[arg(long, value_name = "NAME", value_parser = values::dns_name)]
    pub priority_class: Option<String>,

    /// The oldest API server that has to accept the objects. Before 1.21, it does not serve version v1 of
    /// the PodDisruptionBudget.
    #[arg(long, value_name = "VERSION", default_value = "1.27", value_parser = KubernetesVersion::parse)]
    pub kubernetes_version: KubernetesVersion,
}

/// The source of the serving certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Certificates {
    /// The server creates and renews it, in the Secret statusgate-tls.
    Managed,
    /// cert-manager creates and renews it.
    CertManager,
    /// You create the Secret statusgate-tls, and the caBundle of the registrations.
    Files,
}

/// The minor version of Kubernetes 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KubernetesVersion(pub u32);

impl KubernetesVersion {
    /// Reads `1.27`, `v1.27` or `1.27.3`.
    fn parse(text: &str) -> Result<Self, String> {
        let minor = text.strip_prefix('v').unwrap_or(text).strip_prefix("1.");
        let minor = minor.and_then(|rest| rest.split('.').next()?.parse().ok());
        let wrong = || format!("{text:?} is not a version of Kubernetes such as 1.27");
        minor.map(Self).ok_or_else(wrong)
    }
}

impl Installation {
    /// The objects, in the order to create them, with comments for [`super::yaml::print`]. The CRDs are
    /// not among them.
    pub fn commented(&self) -> Vec<Value> {
        let mut objects = vec![self.namespace_object(), self.service_account()];
        objects.extend(permissions::objects(self));
        objects.extend(certificates::objects(self));
        objects.push(workload::deployment(self));
        objects.extend(network::objects(self));
        objects
    }

    /// The objects.
    pub fn objects(&self) -> Vec<Value> {
        self.commented().into_iter().map(without_comments).collect()
    }

    /// What the server does in the cluster.
    pub fn capabilities(&self) -> Vec<Capability> {
        let managed = self.certificates == Certificates::Managed;
        let all = [
            (Capability::WatchPolicies, self.watch_policies),
            (Capability::ManageWebhooks, self.manage_webhooks),
            (Capability::ManageCertificates, managed),
            (Capability::Registrations, self.manage_webhooks || managed),
            (Capability::Replicas, self.watch_policies || managed),
        ];
        all.into_iter().filter(|(_, enabled)| *enabled).map(|(capability, _)| capability).collect()
    }

    fn calls_the_api(&self) -> bool {
        !self.capabilities().is_empty()
    }

    fn metadata(&self, name: &str) -> Value {
        json!({"name": name, "namespace": self.namespace, "labels": labels()})
    }

    fn namespace_object(&self) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {
                "name": self.namespace,
                "labels": {
                    "app.kubernetes.io/name": NAME,
                    "#kubernetes.io/metadata.name": "The selectors of the registrations exclude this namespace by this label. \
                        API servers set it since 1.21.",
                    "kubernetes.io/metadata.name": self.namespace,
                    "#pod-security.kubernetes.io/audit": "Clusters without Pod Security admission ignore these labels.",
                    "pod-security.kubernetes.io/audit": "restricted",
                    "pod-security.kubernetes.io/enforce": "restricted",
                    "pod-security.kubernetes.io/warn": "restricted",
                },
            },
        })
    }

    fn service_account(&self) -> Value {
        json!({
            "#": "A separate account: with `default`, the server would inherit the rights that others grant to that account.",
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": self.metadata(NAME),
            "#automountServiceAccountToken": "The pods of the server ask for the token themselves, if they need it.",
            "automountServiceAccountToken": false,
        })
    }
}

/// The label of every object. It also selects the pods.
fn labels() -> Value {
    json!({"app.kubernetes.io/name": NAME})
}

fn selector() -> Value {
    json!({"matchLabels": labels()})
}

#[cfg(test)]
mod tests;
