//! `statusgate check`: judges manifests like the webhooks.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use anyhow::bail;
use jiff::Timestamp;

use super::action::{FailOn, Limit, OneAction};
use super::entry::Entry;
use super::filter::Filter;
use super::input::Input;
use super::output::stdout;
use super::plurals::{Plurals, read_crds};
use super::policies::{Policies, following};
use super::report::{Format, Judged, Located, Report, plural};
use super::request::Request;
use super::time::Now;
use super::writer::writer;
use super::{Outcome, say};
use crate::files::open;
use statusgate_core::documents::PolicySpec;
use statusgate_core::engine::{self, Review};
use statusgate_core::policy::PolicySet;
use statusgate_core::source::{Diagnostic, Manifest, Manifests};

/// The arguments of `check`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit code 0: no finding at or above --fail-on. 1: findings. 2: some documents could \
                  not be used; the results of the others are printed."
)]
pub struct Args {
    #[command(flatten)]
    input: Input,

    /// The previous objects. They determine transitions, and only new violations are findings.
    /// Matched by group, kind, namespace and name; an object without a match is new, and an old one
    /// without a match is an error. May be repeated.
    #[arg(long, value_name = "FILE")]
    old: Vec<PathBuf>,

    #[command(flatten)]
    policies: Policies,

    /// Judge every object by this convention only. --policies may still contain conventions.
    #[arg(long, value_name = "NAME")]
    convention: Option<String>,

    /// With --convention: the strongest action of any rule, as in a policy. Case does not matter.
    #[arg(long, value_name = "ACTION", value_enum, ignore_case = true, requires = "convention")]
    enforcement: Option<Limit>,

    /// With --convention: what happens on a disagreement of phase and conditions, as in a policy. Case does
    /// not matter.
    #[arg(long, value_name = "ACTION", value_enum, ignore_case = true, requires = "convention")]
    disagreement: Option<OneAction>,

    /// CustomResourceDefinitions, for the plurals of kinds and the status subresource. May be
    /// repeated.
    #[arg(long, value_name = "PATH")]
    crds: Vec<PathBuf>,

    /// Judge as if this user wrote, such as system:serviceaccount:crossplane-system:crossplane.
    #[arg(long = "as", value_name = "USER", default_value = "", hide_default_value = true)]
    user: String,

    /// A group of that user. May be repeated.
    #[arg(long = "as-group", value_name = "GROUP", requires = "user")]
    groups: Vec<String>,

    /// Judge the objects as they are, not what the mutating webhook would make of them.
    #[arg(long)]
    no_mutate: bool,

    /// The mildest action that causes exit code 1; `warn` includes repairs. `unjudged`: also an object that
    /// no policy selects, or no object at all. May be repeated. Case does not matter. Default: deny.
    #[arg(long, value_name = "ACTION", value_enum, ignore_case = true, value_delimiter = ',')]
    fail_on: Vec<FailOn>,

    /// Exit with 2 on files that hold no manifests, such as the values and templates of a chart. Otherwise
    /// they are skipped and counted.
    #[arg(long)]
    strict: bool,

    #[command(flatten)]
    filter: Filter,

    /// Print a table with one row per rule instead of the findings.
    #[arg(long)]
    summary: bool,

    #[command(flatten)]
    now: Now,

    /// The output format.
    #[arg(short, long, value_enum, default_value = "table")]
    output: Format,

    /// Also print the objects that no policy selects and the changes of the mutating webhook.
    #[arg(short, long)]
    verbose: bool,
}

/// Judges the objects of files.
///
/// # Errors
/// When the policies are invalid, or a document cannot be read. All other objects are printed.
pub fn run(args: &Args) -> anyhow::Result<Outcome> {
    args.input.check_stdin(&[&args.old, &args.crds])?;
    if args.summary && args.output != Format::Table {
        bail!("--summary requires -o table");
    }
    let spec = args.convention.as_deref().map(|name| PolicySpec {
        enforcement: args.enforcement.map(Limit::action),
        disagreement: args.disagreement.map(OneAction::action),
        ..PolicySpec::for_everything(name)
    });
    let policies = following(&args.policies.paths, spec)?;
    args.filter.check(&policies, !args.policies.paths.is_empty())?;
    let (files, unread) = args.input.open(None)?;
    let crds = read_crds(&args.crds, args.input.recursive)?;
    let mut mistakes = match args.convention {
        None if !crds.is_empty() => args.policies.unserved(&policies, &crds)?,
        _ => Vec::new(),
    };
    let plurals = Plurals::of(crds);
    let (old_files, more) = open(&args.old, args.input.recursive, &[]);
    mistakes.extend(more);
    let old = Manifests::read(&old_files);
    mistakes.extend_from_slice(old.mistakes());
    mistakes.extend(unread);
    let mut manifests = Manifests::read(&files);
    let skipped = if args.strict { Vec::new() } else { manifests.take_others() };
    mistakes.extend_from_slice(manifests.mistakes());
    old.warnings().iter().chain(manifests.warnings()).for_each(say);

    let now = args.now.get();
    let (old, more) = by_key(&old, &manifests);
    mistakes.extend(more);
    let bench = Bench { args, policies: &policies, plurals: &plurals, old, now };
    let mut objects = Vec::with_capacity(manifests.iter().len());
    let (mut stored, mut doubts) = (0, BTreeSet::new());
    for manifest in manifests.iter() {
        stored += usize::from(bench.old.contains_key(&key(&manifest)));
        match bench.judge(&manifest) {
            Ok((judged, mistake)) => {
                if judged.entry.unjudged.is_none() {
                    doubts.extend(plurals.doubt(manifest.identity, &policies));
                }
                objects.push(judged);
                mistakes.extend(mistake);
            }
            Err(mistake) => mistakes.push(mistake),
        }
    }
    doubts.iter().for_each(say);
    let filtered_out = args.filter.apply(&mut objects);
    let mut skipped: Vec<Box<str>> = skipped.into_iter().map(|other| other.file).collect();
    skipped.dedup();
    let report = Report {
        files: files.into_iter().map(|file| file.name).collect(),
        policies: &policies,
        objects,
        mistakes,
        skipped,
        stored: (!args.old.is_empty()).then_some(stored),
        filtered_out,
        fail_on: FailOn::limit(&args.fail_on),
        unjudged_fails: args.fail_on.contains(&FailOn::Unjudged),
        summary: args.summary,
        verbose: args.verbose,
    };
    let mut out = BufWriter::new(stdout(args.output == Format::Table));
    report.write(args.output, &mut out)?;
    out.flush()?;
    if !report.mistakes.is_empty() {
        // GitHub shows both streams in one log, and its annotations contain the mistakes.
        report.mistakes.iter().filter(|_| args.output != Format::Github).for_each(say);
        bail!("{} could not be used", plural(report.mistakes.len(), "document"));
    }
    if report.lacks_judgement() {
        say("not everything was judged, and --fail-on has unjudged");
    }
    Ok(Outcome::of(report.fails()))
}

/// The inputs that are the same for all objects.
struct Bench<'d> {
    args: &'d Args,
    policies: &'d PolicySet,
    plurals: &'d Plurals,
    old: HashMap<Key<'d>, Manifest<'d>>,
    now: Timestamp,
}

/// Group, kind, namespace and name. Without the version: all versions show the same object.
type Key<'d> = (&'d str, &'d str, &'d str, &'d str);

impl Bench<'_> {
    /// The result for one object, and the mistake in it that makes it unfit to be judged.
    fn judge(&self, manifest: &Manifest<'_>) -> Result<(Judged, Option<Diagnostic>), Diagnostic> {
        let Args { user, groups, no_mutate, .. } = self.args;
        let old = self.old.get(&key(manifest));
        let request = Request {
            identity: manifest.identity,
            object: manifest.text,
            old: old.map(|old| old.text),
            writer: writer(user, groups),
        };
        let subject = request.subject(self.policies, self.plurals);
        let entry = Entry::of(manifest, self.policies, subject.as_ref());
        let subject = match subject {
            Ok(subject) => subject,
            Err(unfit) => {
                let at = old.filter(|_| unfit.is_old).unwrap_or(manifest);
                let mistake = at.mistake(unfit.field, format!("this cannot be judged: {unfit}"));
                return Ok((Judged { entry, findings: vec![], patch: vec![] }, Some(mistake)));
            }
        };
        let review = engine::review(self.policies, subject, !no_mutate, self.now);
        let Review { findings, patch, .. } =
            review.map_err(|error| manifest.mistake("", error.to_string()))?;
        let mut places = manifest.places();
        let findings = findings.into_iter().map(|found| {
            let place = places.at(&found.field);
            Located { found, place }
        });
        // In the order of the document.
        let mut findings: Vec<_> = findings.collect();
        findings.sort_by_key(|Located { place, .. }| (place.line, place.column));
        Ok((Judged { entry, findings, patch }, None))
    }
}

fn key<'m>(manifest: &Manifest<'m>) -> Key<'m> {
    let identity = manifest.identity;
    (identity.group(), &identity.kind, &identity.namespace, &identity.name)
}

/// The old objects, and those of them that are useless: a key that is taken, or that no new object has.
fn by_key<'m>(
    old: &'m Manifests<'_>,
    new: &Manifests<'_>,
) -> (HashMap<Key<'m>, Manifest<'m>>, Vec<Diagnostic>) {
    let wanted: HashSet<Key<'_>> = new.iter().map(|manifest| key(&manifest)).collect();
    let (mut all, mut mistakes) = (HashMap::new(), Vec::new());
    for manifest in old.iter() {
        let key = key(&manifest);
        if !wanted.contains(&key) {
            let message = "no new object has the group, kind, namespace and name of this old one";
            mistakes.push(manifest.mistake("", message.to_owned()));
        } else if all.insert(key, manifest).is_some() {
            let message = "there is an old object of this group, kind, namespace and name already";
            mistakes.push(manifest.mistake("", message.to_owned()));
        }
    }
    (all, mistakes)
}
