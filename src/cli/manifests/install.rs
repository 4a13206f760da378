//! `statusgate manifests install`: everything that installs statusgate, for `kubectl apply -f -`.

use std::io::{self, Write};

use clap::ValueEnum;

use super::super::Outcome;
use crate::manifests::install::{Certificates, Installation, Version};
use crate::manifests::registrations::FailurePolicy;
use crate::manifests::{crds, yaml};
use crate::values;

/// The arguments of `manifests install`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
        statusgate manifests install --image registry.example.org/statusgate:0.1.0 | kubectl apply -f -\n  \
        statusgate manifests install --image … --certificates cert-manager | kubectl apply -f -")]
pub(super) struct Args {
    /// The namespace of the server.
    #[arg(long, value_name = "NAME", default_value = "statusgate-system",
          value_parser = values::namespace)]
    namespace: String,

    /// The image of the server. No public registry has one: build the Dockerfile and push the image.
    #[arg(long, value_name = "IMAGE", default_value = concat!("statusgate:", env!("CARGO_PKG_VERSION")))]
    image: String,

    /// Where the serving certificate is from.
    #[arg(long, value_enum, value_name = "SOURCE", default_value = "managed")]
    certificates: CertificateProvider,

    /// The number of pods.
    #[arg(long, value_name = "NUMBER", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    replicas: u32,

    /// What API servers do with a write while no replica answers: store it unjudged, or reject it. For new
    /// registrations; `kubectl edit` changes existing ones.
    #[arg(long, value_name = "Ignore|Fail", default_value = "Ignore", value_parser = values::failure_policy)]
    failure_policy: FailurePolicy,

    /// The priority class of the pods, for example system-cluster-critical.
    #[arg(long, value_name = "NAME", value_parser = values::dns_name)]
    priority_class: Option<String>,

    /// Leave out a part. May be repeated.
    #[arg(long, value_enum, value_name = "PART")]
    without: Vec<Part>,

    /// The oldest API server that has to accept the objects. Before 1.21, it does not serve version v1 of
    /// the PodDisruptionBudget.
    #[arg(long, value_name = "VERSION", default_value = "1.27", value_parser = version)]
    kubernetes_version: Version,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum CertificateProvider {
    /// The server creates and renews it, in the Secret statusgate-tls.
    Managed,
    /// cert-manager creates and renews it.
    CertManager,
    /// You create the Secret statusgate-tls, and the caBundle of the registrations.
    Files,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// The CRDs of StatusPolicy and StatusConvention.
    Crds,
    /// Policies in the cluster, with their CRDs: the server reads the ConfigMap statusgate-policies.
    WatchPolicies,
    /// Managed registrations: print them with `statusgate manifests registrations`.
    ManageWebhooks,
}

impl Args {
    fn has(&self, part: Part) -> bool {
        !self.without.contains(&part)
    }

    fn installation(&self) -> Installation {
        Installation {
            namespace: self.namespace.clone(),
            image: self.image.clone(),
            replicas: self.replicas,
            certificates: match self.certificates {
                CertificateProvider::Managed => Certificates::Managed,
                CertificateProvider::CertManager => Certificates::CertManager,
                CertificateProvider::Files => Certificates::Files,
            },
            watch_policies: self.has(Part::WatchPolicies),
            manage_webhooks: self.has(Part::ManageWebhooks),
            failure_policy: self.failure_policy,
            priority_class: self.priority_class.clone(),
            kubernetes: self.kubernetes_version,
        }
    }
}

/// Prints the objects.
///
/// # Errors
/// When stdout cannot be written.
pub(super) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let mut objects = Vec::new();
    if args.has(Part::Crds) && args.has(Part::WatchPolicies) {
        objects.extend(crds::crds());
    }
    objects.extend(args.installation().commented());
    io::stdout().lock().write_all(yaml::print(&objects).as_bytes())?;
    Ok(Outcome::Clean)
}

/// Reads `1.27`, `v1.27` or `1.27.3`.
fn version(text: &str) -> Result<Version, String> {
    let minor = text.strip_prefix('v').unwrap_or(text).strip_prefix("1.");
    let minor = minor.and_then(|rest| rest.split('.').next()?.parse().ok());
    minor
        .map(Version)
        .ok_or_else(|| format!("{text:?} is not a version of Kubernetes such as 1.27"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::Value;

    use super::*;
    use crate::cli::Cli;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn the_server_accepts_the_arguments_of_the_deployment() {
        for source in ["managed", "cert-manager", "files"] {
            for parts in [
                &[][..],
                &["watch-policies"],
                &["manage-webhooks"],
                &["watch-policies", "manage-webhooks"],
            ] {
                let mut line = vec!["install", "--failure-policy=fail", "--certificates", source];
                line.extend(parts.iter().flat_map(|part| ["--without", part]));
                let objects = Line::parse_from(line).args.installation().objects();
                let deployment =
                    objects.iter().find(|object| object["kind"] == "Deployment").unwrap();
                let arguments = &deployment["spec"]["template"]["spec"]["containers"][0]["args"];
                let arguments = arguments.as_array().unwrap().iter().filter_map(Value::as_str);
                let read = Cli::try_parse_from(["statusgate"].into_iter().chain(arguments));
                assert!(read.is_ok(), "{source} without {parts:?}: {}", read.unwrap_err());
            }
        }
    }

    #[test]
    fn a_version_is_a_minor_version_of_kubernetes_1() {
        for text in ["1.27", "v1.27", "1.27.3", "v1.27.3"] {
            assert_eq!(version(text), Ok(Version(27)), "{text}");
        }
        for text in ["", "1", "1.", "2.27", "1.x", "27"] {
            assert!(version(text).is_err(), "{text}");
        }
    }
}
