//! `statusgate manifests`: what is applied to a cluster, as YAML.

mod install;
mod registrations;

use clap::Subcommand;

use super::schema::Kind;
use super::{Outcome, print};
use crate::manifests::crds;

/// The arguments of `manifests`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    which: Which,
}

#[derive(Debug, Subcommand)]
enum Which {
    /// Print the CustomResourceDefinitions of StatusPolicy and StatusConvention.
    Crds {
        /// Only the definition of this kind.
        #[arg(value_enum)]
        kind: Option<Kind>,
    },
    /// Print everything that installs statusgate.
    Install(install::Args),
    /// Print the webhook registrations for policies.
    Registrations(registrations::Args),
}

/// Prints manifests.
///
/// # Errors
/// When standard output cannot be written, and those of the command.
pub(super) fn run(args: &Args) -> anyhow::Result<Outcome> {
    match &args.which {
        Which::Crds { kind } => print_crds(*kind),
        Which::Install(args) => install::run(args),
        Which::Registrations(args) => registrations::run(args),
    }
}

fn print_crds(kind: Option<Kind>) -> anyhow::Result<Outcome> {
    let definitions = match kind {
        None => crds::crds().to_vec(),
        Some(kind) => vec![crds::crd(kind.document())],
    };
    let texts: Result<Vec<String>, _> = definitions.iter().map(serde_saphyr::to_string).collect();
    print(&texts?.join("---\n"))
}
