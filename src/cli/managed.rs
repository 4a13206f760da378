//! The flags of `serve` for the parts that it manages in a cluster.

use std::fs;
use std::path::Path;
use std::time::Duration;

use http::Uri;

use super::connection::Connection;
use super::time;
use crate::manager::{ManagedCertificate, ManagerOptions};
use crate::manifests::registrations::{Address, FailurePolicy};
use crate::tls::rotation::wanted_names;
use crate::values;

/// What the server manages in a cluster. Without these flags it calls no API.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Managed in the cluster")]
pub(super) struct Managed {
    #[command(flatten)]
    connection: Connection,

    /// The namespace of the server, with its Secret, Leases and Service. Default: that of the pod, or
    /// statusgate-system.
    #[arg(long, value_name = "NAME", value_parser = values::namespace)]
    namespace: Option<String>,

    /// Follow the StatusPolicy and StatusConvention objects of the cluster, in addition to --policies.
    #[arg(long)]
    watch_policies: bool,

    /// Create a serving certificate in a Secret, renew it, and write its CA into the registrations.
    #[arg(long)]
    manage_certificates: bool,

    /// The Secret of the serving certificate.
    #[arg(
        long,
        value_name = "NAME",
        default_value = "statusgate-tls",
        value_parser = values::dns_name
    )]
    certificate_secret: String,

    /// How long a serving certificate is valid. It is renewed when a third is left.
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "2160h",
        value_parser = values::positive_duration
    )]
    certificate_lifetime: Duration,

    /// Create the webhook registrations, and update their rules when policies or CRDs change.
    #[arg(long)]
    manage_webhooks: bool,

    /// The Service of the server, which new registrations call.
    #[arg(long, value_name = "NAME", default_value = "statusgate", value_parser = values::dns_name)]
    service: String,

    /// An address for registrations to call instead of the Service, for servers outside the cluster, such
    /// as https://192.0.2.7:8443. All servers need the same.
    #[arg(long, value_name = "URL", value_parser = values::https_url)]
    webhook_url: Option<String>,

    /// The failure policy of new registrations. The checks of agreement and of policies are always Ignore.
    /// Existing registrations keep theirs.
    #[arg(long, value_name = "Ignore|Fail", ignore_case = true, default_value = "Ignore")]
    failure_policy: FailurePolicy,
}

impl Managed {
    /// The kubeconfig, if it is not the default.
    pub(super) fn kubeconfig(&self) -> Option<&Path> {
        self.connection.kubeconfig()
    }

    /// The context, if it is not the current one.
    pub(super) fn context(&self) -> Option<&str> {
        self.connection.context()
    }

    /// Whether anything is managed.
    pub(super) const fn is_used(&self) -> bool {
        self.watch_policies || self.manage_certificates || self.manage_webhooks
    }

    /// The options of the manager. `port` identifies the server among those of its host.
    pub(super) fn options(&self, port: &str) -> ManagerOptions {
        let namespace = self.namespace.clone().or_else(namespace_of_the_pod);
        let namespace = namespace.unwrap_or_else(|| "statusgate-system".to_owned());
        let host = self.webhook_url.as_deref().and_then(|url| url.parse::<Uri>().ok());
        let host = host.as_ref().and_then(Uri::host);
        ManagerOptions {
            names: wanted_names(&self.service, &namespace, host),
            replica: format!("{}-{port}", host_name()),
            address: match &self.webhook_url {
                Some(url) => Address::Url(url.clone()),
                None => Address::Service(self.service.clone()),
            },
            namespace,
            watch_policies: self.watch_policies,
            certificate: self.manage_certificates.then(|| ManagedCertificate {
                secret: self.certificate_secret.clone(),
                lifetime: self.certificate_lifetime,
            }),
            registrations: self.manage_webhooks.then_some(self.failure_policy),
            clock: time::clock,
        }
    }
}

/// The namespace of the service account of this pod.
fn namespace_of_the_pod() -> Option<String> {
    let text =
        fs::read_to_string("/var/run/secrets/kubernetes.io/serviceaccount/namespace").ok()?;
    values::namespace(text.trim()).ok()
}

/// The name of this host (in a pod, the name of the pod) as a part of the name of an object.
fn host_name() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let valid = |letter: char| {
        if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' }
    };
    let name: String = name.trim().chars().take(63).map(valid).collect();
    let name = name.trim_matches('-');
    if name.is_empty() { "statusgate".to_owned() } else { name.to_owned() }
}
