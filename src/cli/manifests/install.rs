//! `statusgate manifests install`: everything that installs statusgate, for `kubectl apply -f -`.

use clap::ValueEnum;

use super::super::{Outcome, print};
use crate::manifests::install::Installation;
use crate::manifests::{crds, yaml};

/// The arguments of `manifests install`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
        statusgate manifests install --image registry.example.org/statusgate:0.1.0 | kubectl apply -f -\n  \
        statusgate manifests install --image … --certificates cert-manager | kubectl apply -f -")]
pub(super) struct Args {
    #[command(flatten)]
    installation: Installation,

    /// Leave out a part. May be repeated.
    #[arg(long, value_enum, value_name = "PART")]
    without: Vec<Part>,
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
            watch_policies: self.has(Part::WatchPolicies),
            manage_webhooks: self.has(Part::ManageWebhooks),
            ..self.installation.clone()
        }
    }
}

/// Prints the objects.
///
/// # Errors
/// When stdout cannot be written.
pub(super) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let mut text = args.installation().print()?;
    if args.has(Part::Crds) && args.has(Part::WatchPolicies) {
        text = format!("{}---\n{text}", yaml::print(&crds::crds())?);
    }
    print(&text)
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
}
