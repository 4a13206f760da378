//! `statusgate lint`: whether conventions, and policies beside them, are sound, with a witness for each fault.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::ValueEnum;
use serde_json::{Value, json};

use super::{Outcome, explain};
use crate::lint::{self, Remark, Report};
use crate::policy::{Diagnostics, PolicySet, Source};
use crate::server::policy_files;

/// The arguments of `lint`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit code 0: everything is sound (there may be notes). 1: a mistake in a \
                        document, or a fault. 2: something cannot be read, or there is no such \
                        convention.")]
pub struct Args {
    /// Files or folders with StatusConvention and StatusPolicy documents. Without any: all built-in
    /// conventions. A policy is judged by what it adds to its convention.
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,

    /// A built-in convention. May be repeated.
    #[arg(long, value_name = "NAME")]
    convention: Vec<String>,

    /// How to print what was found.
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    Table,
    Json,
}

/// Judges conventions and policies.
///
/// # Errors
/// When documents cannot be read, or there is no such convention.
pub fn run(args: &Args) -> anyhow::Result<Outcome> {
    let sources = match args.paths.as_slice() {
        [] => Vec::new(),
        paths => policy_files::load(paths).context("failed to read the documents")?,
    };
    let mut out = io::stdout().lock();
    let found = match judge(args, &sources)? {
        Ok(found) => found,
        Err(mistakes) => {
            match args.output {
                Output::Table => writeln!(out, "{mistakes}")?,
                Output::Json => {
                    let mistakes = mistakes.to_json();
                    let whole = json!({"mistakes": mistakes, "conventions": [], "policies": []});
                    writeln!(out, "{whole:#}")?;
                }
            }
            return Ok(Outcome::Findings);
        }
    };
    match args.output {
        Output::Table => out.write_all(as_text(&found).as_bytes())?,
        Output::Json => {
            let all = |reports: &[Report]| reports.iter().map(as_json).collect::<Value>();
            let (conventions, policies) = (all(&found.conventions), all(&found.policies));
            let whole = json!({"mistakes": [], "conventions": conventions, "policies": policies});
            writeln!(out, "{whole:#}")?;
        }
    }
    let sound = !found.conventions.iter().chain(&found.policies).any(Report::has_faults);
    Ok(if sound { Outcome::Clean } else { Outcome::Findings })
}

/// What was found.
struct Found {
    conventions: Vec<Report>,
    policies: Vec<Report>,
}

fn judge(args: &Args, sources: &[Source]) -> anyhow::Result<Result<Found, Diagnostics>> {
    // Mistakes are findings; names are the command line's own.
    let all = match PolicySet::compile(sources) {
        Ok(all) => all,
        Err(mistakes) => return Ok(Err(mistakes)),
    };
    let built_in = lint::built_in()?;
    for name in &args.convention {
        if !built_in.contains(name) {
            bail!("{}", explain::unknown(name, built_in.iter().map(String::as_str)));
        }
    }
    let mut names = match (args.paths.as_slice(), args.convention.as_slice()) {
        ([], []) => built_in,
        (_, named) => named.to_vec(),
    };
    names.extend(lint::declared(sources)?);
    let conventions = names.iter().map(|name| lint::lint(sources, name)).collect();
    let policies = all.names().map(|name| lint::lint_policy(sources, name));
    let policies = policies.filter_map(Result::transpose).collect::<Result<_, _>>();
    let both = |conventions| Ok(Found { conventions, policies: policies? });
    Ok(Result::and_then(conventions, both))
}

fn as_text(found: &Found) -> String {
    let mut text = String::new();
    let conventions = found.conventions.iter().map(|report| ("", report));
    let policies = found.policies.iter().map(|report| ("policy ", report));
    for (what, report) in conventions.chain(policies) {
        let (faults, notes) = parts(report);
        let count = |count: usize, what: &str| match count {
            0 => format!("no {what}s"),
            1 => format!("1 {what}"),
            _ => format!("{count} {what}s"),
        };
        let (name, combinations) = (&report.name, report.combinations);
        let (found, noted) = (count(faults.len(), "fault"), count(notes.len(), "note"));
        text.push_str(&format!("{what}{name}: {found}, {noted} ({combinations} combinations)\n"));
        for (word, remarks) in [("fault", faults), ("note", notes)] {
            for remark in remarks {
                let rules = remark.rules.iter().map(|rule| format!(" [{rule}]"));
                let (kind, message) = (remark.kind.name(), &remark.message);
                let rules = rules.collect::<String>();
                text.push_str(&format!("  {word} {kind}: {message}{rules}\n"));
                for line in remark.witness.iter().flat_map(|witness| witness.lines()) {
                    text.push_str(&format!("      {line}\n"));
                }
            }
        }
    }
    if text.is_empty() {
        text.push_str("there is neither a convention nor a policy in these documents\n");
    }
    text
}

fn parts(report: &Report) -> (Vec<&Remark>, Vec<&Remark>) {
    report.remarks.iter().partition(|remark| remark.kind.is_fault())
}

fn as_json(report: &Report) -> Value {
    let (faults, notes) = parts(report);
    let list = |remarks: Vec<&Remark>| -> Value {
        remarks
            .into_iter()
            .map(|remark| {
                json!({
                    "kind": remark.kind.name(),
                    "rules": remark.rules,
                    "message": remark.message,
                    "witness": remark.witness,
                })
            })
            .collect()
    };
    json!({
        "name": report.name,
        "combinations": report.combinations,
        "faults": list(faults),
        "notes": list(notes),
    })
}
