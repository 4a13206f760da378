//! `statusgate manifests`: what is applied to a cluster, as YAML.

mod crds;
mod install;
mod registrations;

use clap::Subcommand;

use super::Outcome;

/// The arguments of `manifests`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    which: Which,
}

#[derive(Debug, Subcommand)]
enum Which {
    /// Print the CustomResourceDefinitions of StatusPolicy and StatusConvention.
    Crds(crds::Args),
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
        Which::Crds(args) => crds::run(args),
        Which::Install(args) => install::run(args),
        Which::Registrations(args) => registrations::run(args),
    }
}
