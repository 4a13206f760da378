//! `statusgate doctor`: checks that an installation is consistent.

use std::io;

use super::connection::{Connection, block_on};
use super::output::Output;
use super::policies::Policies;
use super::{Outcome, checks, time};
use crate::cluster::doctor::{Address, Examination};

/// The arguments of `doctor`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Changes nothing. Checks that the CRDs declare the fields that the policies set, \
                  that the webhook registrations match the resources that the policies select, and \
                  that the registered CA verifies the served certificate.\n\n\
                  Exit code 0: no problem; there may be warnings. 1: there is a problem. 2: the API \
                  server does not respond."
)]
pub struct Args {
    #[command(flatten)]
    policies: Policies,

    #[command(flatten)]
    connection: Connection,

    /// The name of a registration. May be repeated. Default: registrations that look like those of
    /// statusgate.
    #[arg(long = "registration", value_name = "NAME")]
    registrations: Vec<String>,

    /// Where to reach statusgate from here, such as a forwarded port. The certificate must still be
    /// valid for the name that the API server uses.
    #[arg(long, value_name = "URL")]
    url: Option<Address>,

    /// The output format.
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
}

/// Checks an installation.
///
/// # Errors
/// Policies that cannot be read, or an API server that does not respond.
pub fn run(args: &Args) -> anyhow::Result<Outcome> {
    let policies = args.policies.load()?;
    let examination =
        Examination { registrations: args.registrations.clone(), address: args.url.clone() };
    let checks = block_on(async {
        let cluster = args.connection.open().await?;
        Ok(examination.run(&cluster, &policies, time::clock()).await?)
    })?;
    let mut out = io::stdout().lock();
    match args.output {
        Output::Table => checks::print_table(&mut out, &checks)?,
        Output::Json => checks::print_json(&mut out, &checks)?,
    }
    Ok(Outcome::of(checks::has_problem(&checks)))
}
