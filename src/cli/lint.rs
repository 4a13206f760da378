//! `statusgate lint`: checks that conventions and policies are sound, with a witness for each fault.

use std::collections::BTreeSet;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::sync::Arc;

use anstyle::AnsiColor;
use anyhow::bail;
use serde_json::{Value, json};

use super::output::{Output, painted, stdout};
use super::plurals::read_schemas;
use super::policies::{compile, mistakes_in_selectors};
use super::report::plural;
use super::{Outcome, explain, say};
use statusgate_analysis::lint::{self, Kind, Report};
use statusgate_cluster::manifests::selectors::left_out;
use statusgate_core::policy::{Diagnostics, PolicySet, Source};
use statusgate_core::schema::NEWEST;
use statusgate_server::files;

/// The arguments of `lint`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit code 0: everything is sound (there may be notes). 1: a mistake in a \
                        document, or a fault. 2: something cannot be read, or there is no such \
                        convention. `statusgate explain lint/KIND` explains a kind of fault or note, with an example.")]
pub(super) struct Args {
    /// Files or folders with StatusConvention and StatusPolicy documents. Without any: all built-in
    /// conventions. A policy is judged by what it adds to its convention.
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,

    /// A built-in convention. May be repeated.
    #[arg(long, value_name = "NAME")]
    convention: Vec<String>,

    /// CustomResourceDefinitions: they must have what the policies select, and the fields that the
    /// documents name. May be repeated.
    #[arg(long, value_name = "PATH", requires = "paths")]
    crds: Vec<PathBuf>,

    /// How to print what was found.
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
}

/// Judges conventions and policies.
///
/// # Errors
/// When documents cannot be read, or there is no such convention.
pub(super) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let sources = files::load_policies(&args.paths)?;
    let (found, mistakes) = match judge(args, &sources) {
        Ok(found) => (found, Diagnostics::default()),
        // Mistakes in documents are findings; an unknown name is an error of the command line.
        Err(error) => (Found::default(), error.downcast::<Diagnostics>()?),
    };
    let mut out = BufWriter::new(stdout(args.output == Output::Table));
    match args.output {
        Output::Table if !mistakes.is_empty() => writeln!(out, "{mistakes:#}")?,
        Output::Table => write(&found, &mut out)?,
        Output::Json => {
            let all = |reports: &[Report]| reports.iter().map(Report::to_json).collect::<Value>();
            let (conventions, policies) = (all(&found.conventions), all(&found.policies));
            let mistakes = mistakes.to_json();
            let whole =
                json!({"mistakes": mistakes, "conventions": conventions, "policies": policies});
            writeln!(out, "{whole:#}")?;
        }
    }
    out.flush()?;
    let mut reports = found.conventions.iter().chain(&found.policies);
    Ok(Outcome::of(!mistakes.is_empty() || reports.any(Report::has_faults)))
}

/// What was found.
#[derive(Default)]
struct Found {
    conventions: Vec<Report>,
    policies: Vec<Report>,
}

/// # Errors
/// Mistakes in the documents as [`Diagnostics`].
fn judge(args: &Args, sources: &[Source]) -> anyhow::Result<Found> {
    let policies = compile(sources)?;
    if !args.paths.is_empty()
        && policies.policies().is_empty()
        && policies.given_names().next().is_none()
    {
        bail!("there is neither a convention nor a policy in these documents");
    }
    let (resources, defined) = read_schemas(&args.crds, true, NEWEST)?;
    if !resources.is_empty() {
        for left_out in left_out(&policies, &resources) {
            say(format_args!("{}", left_out.describe()));
        }
        for version in &defined {
            for policy in policies.policies().iter().filter(|policy| version.is_selected(policy)) {
                for list in version.lists_without_key(policy) {
                    say(format_args!(
                        "note: {} of {} is no list of type map with the key {}: an apply of one {} replaces all",
                        list.path.field(),
                        version.name,
                        list.key().join(", "),
                        list.noun(),
                    ));
                }
            }
        }
        for mistakes in [
            mistakes_in_selectors(sources, &policies, &resources),
            policies.mistakes_in_pointers(sources, &defined),
            policies.mistakes_in_settings(sources, &defined),
        ] {
            if !mistakes.is_empty() {
                return Err(mistakes.into());
            }
        }
    }
    let policies = policies.with_defined(Arc::new(defined.into_iter().collect()));
    for name in &args.convention {
        if !PolicySet::built_in_names().any(|known| known == name) {
            bail!("{}", explain::unknown(name, PolicySet::built_in_names()));
        }
    }
    let named: Vec<&str> = match (args.paths.as_slice(), args.convention.as_slice()) {
        ([], []) => PolicySet::built_in_names().collect(),
        (_, named) => named.iter().map(String::as_str).collect(),
    };
    let names = named.into_iter().chain(policies.given_names());
    let conventions = names.map(|name| lint::lint(&policies, name)).collect::<Result<_, _>>()?;
    let linted = policies.policies().iter().map(|policy| lint::lint_policy(&policies, policy));
    Ok(Found { conventions, policies: linted.collect() })
}

fn write(found: &Found, out: &mut impl Write) -> io::Result<()> {
    let conventions = found.conventions.iter().map(|report| ("", report));
    let policies = found.policies.iter().map(|report| ("policy ", report));
    let mut kinds: BTreeSet<Kind> = BTreeSet::new();
    for (what, report) in conventions.chain(policies) {
        let (faults, notes) = report.parts();
        let count = |count: usize, what: &str| match count {
            0 => format!("no {what}s"),
            _ => plural(count, what),
        };
        let (found, noted) = (count(faults.len(), "fault"), count(notes.len(), "note"));
        let (name, tried) = (&report.name, plural(report.combinations, "combination"));
        writeln!(out, "{what}{name}: {found}, {noted} ({tried})")?;
        for remark in faults.into_iter().chain(notes) {
            kinds.insert(remark.kind);
            let color = if remark.kind.is_fault() { AnsiColor::Red } else { AnsiColor::Cyan };
            let line = remark.to_string();
            let (word, rest) = line.split_once(' ').unwrap_or((&line, ""));
            writeln!(out, "  {} {rest}", painted(word, color))?;
            for line in remark.witness.iter().flat_map(|witness| witness.lines()) {
                writeln!(out, "      {line}")?;
            }
        }
    }
    kinds.iter().try_for_each(|kind| writeln!(out, "help lint/{}: {}", kind.name(), kind.help()))
}
