//! `statusgate doctor`: checks that an installation is consistent.

use std::io::Write;

use serde_json::json;

use super::connection::{Connection, block_on};
use super::in_use::{InUse, PoliciesInUse};
use super::output::{Output, stdout};
use super::{Outcome, checks, time};
use statusgate_cluster::doctor::Examination;

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
pub(super) struct Args {
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
pub(super) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let checks = block_on(async {
        let (cluster, in_use) = args.policies.open(&args.connection).await?;
        let InUse { policies, sources, documents } = in_use;
        let examination = &args.examination;
        Ok(examination.run(&cluster, &policies, &sources, &documents, time::clock()).await?)
    })?;
    let mut out = stdout(args.output == Output::Table);
    match args.output {
        Output::Table => checks::print_table(&mut out, &checks)?,
        Output::Json => writeln!(out, "{:#}", json!({"checks": checks}))?,
    }
    Ok(Outcome::of(checks::has_problem(&checks)))
}
