//! `statusgate status`: what an object's status amounts to, by kstatus and by its policy.

mod record;
mod table;

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::PathBuf;

use anyhow::bail;
use clap::ValueEnum;
use jiff::Timestamp;

use self::record::Record;
use super::input::Input;
use super::plurals::Plurals;
use super::{Outcome, time};
use crate::policy::{self, PolicySet};
use crate::source::{self, Manifests};

/// What `status` can be told.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit code 0: nothing has failed. 1: an object is Failed to kstatus or an error in \
                  it, or its phase is one that its policy does not admit. 2: a file, a document or a \
                  policy cannot be read; what could be read is printed before."
)]
pub struct Args {
    #[command(flatten)]
    input: Input,

    /// Policies: a file or a folder. May be repeated. Without it: the example policies.
    #[arg(long, value_name = "PATH")]
    policies: Vec<PathBuf>,

    /// CustomResourceDefinitions, for the plurals of kinds. May be repeated. Without it: what the
    /// policies name, else a guess.
    #[arg(long, value_name = "PATH")]
    crds: Vec<PathBuf>,

    /// `table`: for a person, shortened. `json`: one object a line, whole.
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,

    /// The time to judge by (RFC 3339). Only a Pod that finds no node depends on it. Default: the
    /// clock.
    #[arg(long, value_name = "TIME", value_parser = time::parse)]
    now: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    Table,
    Json,
}

/// Says of every object what its status amounts to.
///
/// # Errors
/// When policies, a file or a document cannot be read. All other objects are printed before.
pub fn run(args: &Args) -> anyhow::Result<Outcome> {
    let sources = policy::load(&args.policies)?;
    let policies = PolicySet::compile(&sources)?;
    #[expect(clippy::disallowed_methods, reason = "the edge: a command reads the clock once")]
    let now = args.now.unwrap_or_else(Timestamp::now).as_second();
    // A pipe need not be named. A terminal would be waited for, and nobody knows what for.
    args.input.check_stdin(&[&args.crds])?;
    let (files, unread) = args.input.open((!io::stdin().is_terminal()).then_some("-"))?;
    let manifests = Manifests::read(&files);
    let (crd_files, unread_crds) = source::open(&args.crds, args.input.recursive);
    let crds = Manifests::read(&crd_files);
    let (plurals, no_crds) = Plurals::of_crds(&crds);
    let mistakes = unread_crds.iter().chain(crds.mistakes()).chain(&no_crds);
    let mistakes = mistakes.chain(&unread).chain(manifests.mistakes());
    let mut mistakes: Vec<String> = mistakes.map(ToString::to_string).collect();
    let mut records = Vec::with_capacity(manifests.iter().len());
    for manifest in manifests.iter() {
        match Record::of(&manifest, &policies, &plurals, now) {
            Ok(record) => records.push(record),
            Err(error) => mistakes.push(manifest.mistake("", source::reason(&error)).to_string()),
        }
    }
    let mut out = BufWriter::new(io::stdout().lock());
    match args.output {
        Output::Table => table::write(&records, &mut out)?,
        Output::Json => {
            for record in &records {
                serde_json::to_writer(&mut out, record).map_err(io::Error::from)?;
                out.write_all(b"\n")?;
            }
        }
    }
    out.flush()?;
    if !mistakes.is_empty() {
        bail!("{}", mistakes.join("\n"));
    }
    let bad = records.iter().any(Record::is_bad);
    Ok(if bad { Outcome::Findings } else { Outcome::Clean })
}
