//! `statusgate manifests`: what is applied to a cluster, as YAML.

mod registrations;

use clap::Subcommand;

use super::schema::SchemaKind;
use super::{Outcome, print};
use statusgate_cluster::manifests::install::{Installation, Part};
use statusgate_cluster::manifests::{crds, yaml};

/// The commands of `manifests`.
#[derive(Debug, Subcommand)]
pub(super) enum Args {
    /// Print the CustomResourceDefinitions of StatusPolicy and StatusConvention.
    Crds {
        /// Only the definition of this kind.
        #[arg(value_enum)]
        kind: Option<SchemaKind>,
    },
    /// Print everything that installs statusgate.
    #[command(after_help = "Examples:\n  \
        statusgate manifests install --image registry.example.org/statusgate:0.1.0 | kubectl apply -f -\n  \
        statusgate manifests install --image … --certificates cert-manager | kubectl apply -f -")]
    Install(Installation),
    /// Print the webhook registrations for policies.
    Registrations(registrations::Args),
}

/// Prints manifests.
///
/// # Errors
/// When standard output cannot be written, and those of the command.
pub(super) fn run(args: &Args) -> anyhow::Result<Outcome> {
    match args {
        Args::Crds { kind } => print_crds(*kind),
        Args::Install(installation) => print_installation(installation),
        Args::Registrations(args) => registrations::run(args),
    }
}

fn print_crds(kind: Option<SchemaKind>) -> anyhow::Result<Outcome> {
    let definitions = match kind {
        None => crds::crds().to_vec(),
        Some(kind) => vec![crds::crd(kind.document())],
    };
    let texts: Result<Vec<String>, _> = definitions.iter().map(serde_saphyr::to_string).collect();
    print(&texts?.join("---\n"))
}

fn print_installation(installation: &Installation) -> anyhow::Result<Outcome> {
    let mut text = installation.print()?;
    if installation.includes(Part::Crds) && installation.includes(Part::WatchPolicies) {
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
        installation: Installation,
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
                let installation = Line::parse_from(line).installation.print().unwrap();
                let objects: Vec<Value> = serde_saphyr::from_multiple(&installation).unwrap();
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
