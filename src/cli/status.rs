//! `statusgate status`: what the status of an object means: its health, its phase and the kstatus result.

mod record;
mod table;

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::PathBuf;

use anyhow::bail;

use self::record::Record;
use super::input::Input;
use super::output::{Output, json_lines, stdout};
use super::plurals::{Plurals, read_crds};
use super::policies::Policies;
use super::time::Now;
use super::{Outcome, say};
use statusgate_core::source::{self, Manifests};

/// The arguments of `status`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit code 0: no object has failed. 1: the health of an object is failed, kstatus returns an \
                  error, or its policy does not admit its phase. 2: a file, a document or a policy \
                  cannot be read; the other objects are printed."
)]
pub(super) struct Args {
    #[command(flatten)]
    input: Input,

    #[command(flatten)]
    policies: Policies,

    /// CustomResourceDefinitions, for the plurals of kinds. May be repeated. Default: the plurals in
    /// the policies, otherwise a guess.
    #[arg(long, value_name = "PATH")]
    crds: Vec<PathBuf>,

    /// `table`: with short messages. `json`: one object per line, with full messages.
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,

    #[command(flatten)]
    now: Now,
}

/// Prints the result of each object.
///
/// # Errors
/// When the policies, a file or a document cannot be read. All other objects are printed.
pub(super) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let policies = args.policies.load()?;
    let now = args.now.get().as_second();
    // The default is standard input, except for a terminal: there the command would seem to hang.
    args.input.check_stdin(&[&args.crds])?;
    let plurals = Plurals::of(read_crds(&args.crds, args.input.recursive)?);
    let (files, unread) = args.input.open((!io::stdin().is_terminal()).then_some("-"))?;
    let manifests = Manifests::read(&files);
    manifests.warnings().iter().for_each(say);
    let mistakes = unread.iter().chain(manifests.mistakes());
    let mut mistakes: Vec<String> = mistakes.map(|mistake| format!("{mistake:#}")).collect();
    let mut records = Vec::with_capacity(manifests.iter().len());
    for manifest in manifests.iter() {
        match Record::of(&manifest, &policies, &plurals, now) {
            Ok(record) => records.push(record),
            Err(error) => {
                mistakes.push(format!("{:#}", manifest.mistake("", source::reason(&error))))
            }
        }
    }
    let mut out = BufWriter::new(stdout(args.output == Output::Table));
    match args.output {
        Output::Table => table::write(&records, &mut out)?,
        Output::Json => json_lines(&mut out, &records)?,
    }
    out.flush()?;
    if !mistakes.is_empty() {
        bail!("{}", mistakes.join("\n"));
    }
    Ok(Outcome::of(records.iter().any(Record::is_bad)))
}
