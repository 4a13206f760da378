//! `statusgate doctor`: does everything fit together?

use std::io;
use std::path::PathBuf;

use clap::ValueEnum;
use jiff::Timestamp;

use super::connection::{Connection, block_on};
use super::{Outcome, checks};
use crate::cluster::doctor::{Address, Examination};
use crate::policy::{self, PolicySet};

/// What `doctor` can be told.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Looks, and changes nothing: whether the schemas have what the policies fill in, \
                  whether the registrations ask about what the policies judge, and whether the \
                  registered CA verifies the certificate that is served.\n\n\
                  Exit code 0: no problem, perhaps warnings. 1: there is a problem. 2: the API \
                  server cannot be asked."
)]
pub struct Args {
    /// Policies: a file or a folder. May be repeated. Without it: the example policies.
    #[arg(long, value_name = "PATH")]
    policies: Vec<PathBuf>,

    #[command(flatten)]
    connection: Connection,

    /// The name of a registration. May be repeated. Default: those that look like statusgate's.
    #[arg(long = "registration", value_name = "NAME")]
    registrations: Vec<String>,

    /// Where statusgate is reached from here, such as a forwarded port. The certificate is still
    /// asked for under the name that the API server uses.
    #[arg(long, value_name = "URL")]
    url: Option<Address>,

    /// How it is told.
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Output {
    Table,
    Json,
}

/// Looks at a cluster.
///
/// # Errors
/// Policies that cannot be read, or an API server that cannot be asked.
#[expect(clippy::disallowed_methods, reason = "the edge: a command reads the clock once")]
pub fn run(args: &Args) -> anyhow::Result<Outcome> {
    let sources = policy::load(&args.policies)?;
    let policies = PolicySet::compile(&sources)?;
    let examination =
        Examination { registrations: args.registrations.clone(), address: args.url.clone() };
    let checks = block_on(async {
        let cluster = args.connection.open().await?;
        Ok(examination.run(&cluster, &policies, Timestamp::now()).await?)
    })?;
    let mut out = io::stdout().lock();
    match args.output {
        Output::Table => checks::print_table(&mut out, &checks)?,
        Output::Json => checks::print_json(&mut out, &checks)?,
    }
    Ok(if checks::has_problem(&checks) { Outcome::Findings } else { Outcome::Clean })
}
