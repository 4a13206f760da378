//! What the manager is asked to do.

use std::fs;
use std::time::Duration;

use clap::Parser;
use http::Uri;
use jiff::SignedDuration;

use statusgate_cluster::manifests::registrations::{Address, FailurePolicy, https_url};
use statusgate_core::values;
use statusgate_tls::rotation::{Lifetimes, wanted_names};

/// What the server manages in a cluster. Without these flags it calls no API.
#[derive(Clone, Debug, Parser)]
#[command(next_help_heading = "Managed in the cluster")]
pub struct ManagerOptions {
    /// The namespace of the server, with its Secret, Leases and Service. Default: that of the pod, or
    /// statusgate-system.
    #[arg(long, value_name = "NAME", default_value_t = own_namespace(), hide_default_value = true,
          value_parser = values::namespace)]
    pub namespace: String,

    /// Follow the StatusPolicy and StatusConvention objects of the cluster, in addition to --policies.
    #[arg(long)]
    pub watch_policies: bool,

    /// Create a serving certificate in a Secret, renew it, and write its CA into the registrations.
    #[arg(long)]
    pub manage_certificates: bool,

    /// The Secret of the serving certificate.
    #[arg(long, value_name = "NAME", default_value = "statusgate-tls", value_parser = values::dns_name)]
    pub certificate_secret: String,

    /// How long a serving certificate is valid. It is renewed when a third is left.
    #[arg(long, value_name = "DURATION", default_value = "2160h", value_parser = values::positive_duration)]
    pub certificate_lifetime: Duration,

    /// Create the webhook registrations, and update their rules when policies or CRDs change.
    #[arg(long)]
    pub manage_webhooks: bool,

    /// The Service of the server, which new registrations call.
    #[arg(long, value_name = "NAME", default_value = "statusgate", value_parser = values::dns_name)]
    pub service: String,

    /// An address for registrations to call instead of the Service, for servers outside the cluster, such
    /// as https://192.0.2.7:8443. All servers need the same.
    #[arg(long, value_name = "URL", value_parser = https_url)]
    pub webhook_url: Option<String>,

    /// The failure policy of new registrations. That of the webhook for policies is always Ignore. Existing
    /// registrations keep theirs.
    #[arg(long, value_name = "Ignore|Fail", ignore_case = true, default_value = "Ignore")]
    pub failure_policy: FailurePolicy,

    /// The name of this replica, unique in the namespace.
    #[arg(skip)]
    pub replica: String,
}

impl ManagerOptions {
    /// Nothing is managed, and everything else has its default.
    pub fn new(replica: &str) -> Self {
        Self { replica: replica.to_owned(), ..Self::parse_from([""]) }
    }

    /// Whether anything is managed.
    pub const fn is_used(&self) -> bool {
        self.watch_policies || self.manage_certificates || self.manage_webhooks
    }

    /// Where API servers reach the replicas.
    pub fn address(&self) -> Address {
        match &self.webhook_url {
            Some(url) => Address::Url(url.clone()),
            None => Address::Service(self.service.clone()),
        }
    }

    /// The DNS names and IP addresses in that address.
    pub fn names(&self) -> Vec<String> {
        let url = self.webhook_url.as_deref().and_then(|url| url.parse::<Uri>().ok());
        wanted_names(&self.service, &self.namespace, url.as_ref().and_then(Uri::host))
    }

    /// The times of the rotation.
    pub fn lifetimes(&self) -> Lifetimes {
        let leaf = SignedDuration::try_from(self.certificate_lifetime);
        Lifetimes::of_leaf(leaf.unwrap_or(SignedDuration::MAX))
    }
}

/// The namespace of the service account of this pod.
fn own_namespace() -> String {
    let text = fs::read_to_string("/var/run/secrets/kubernetes.io/serviceaccount/namespace");
    let name = text.ok().and_then(|text| values::namespace(text.trim()).ok());
    name.unwrap_or_else(|| "statusgate-system".to_owned())
}

/// The name of this host (in a pod, the name of the pod) as a part of the name of an object.
pub fn host_name() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let letters = name.trim().chars().take(63).map(|letter| {
        if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' }
    });
    let label: String = letters.collect();
    let name = label.trim_matches('-');
    if name.is_empty() { "statusgate".to_owned() } else { name.to_owned() }
}
