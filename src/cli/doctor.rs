//! `statusgate doctor`: checks that an installation is consistent.

use super::connection::{Connection, block_on};
use super::in_use::{InUse, PoliciesInUse};
use super::output::{Output, stdout};
use super::{Outcome, checks, time};
use crate::cluster::CheckResult;
use crate::cluster::doctor::Examination;

/// The arguments of `doctor`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Changes nothing. Checks that the CRDs declare the fields that the policies set, \
                  that the webhook registrations match the resources that the policies select, and \
                  that the registered CA verifies the served certificate. Of servers with managed \
                  parts, checks their CRDs, their Leases and the Secret of the certificate.\n\n\
                  Exit code 0: no problem; there may be warnings. 1: there is a problem. 2: the API \
                  server does not respond."
)]
pub struct Args {
    #[command(flatten)]
    policies: PoliciesInUse,

    #[command(flatten)]
    connection: Connection,

    #[command(flatten)]
    examination: Examination,

    /// The output format.
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
}

/// Checks an installation.
///
/// # Errors
/// Policies that cannot be read, or an API server that does not respond.
pub fn run(args: &Args) -> anyhow::Result<Outcome> {
    let checks = block_on(examine(args))?;
    let mut out = stdout(args.output == Output::Table);
    match args.output {
        Output::Table => checks::print_table(&mut out, &checks)?,
        Output::Json => checks::print_json(&mut out, &checks)?,
    }
    Ok(Outcome::of(checks::has_problem(&checks)))
}

async fn examine(args: &Args) -> anyhow::Result<Vec<CheckResult>> {
    let (cluster, InUse { policies, documents, .. }) = args.policies.open(&args.connection).await?;
    Ok(args.examination.run(&cluster, &policies, &documents, time::clock()).await?)
}
