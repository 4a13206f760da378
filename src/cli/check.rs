//! `statusgate check`: judges manifests like the webhooks.

use std::collections::HashMap;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use anyhow::bail;
use jiff::Timestamp;

use super::fail_on::FailOn;
use super::input::Input;
use super::plurals::Plurals;
use super::policies::Policies;
use super::report::{Format, Judged, Located, Report, plural};
use super::request::Request;
use super::time::Now;
use super::writer::writer;
use super::{Outcome, explain, say};
use crate::documents::PolicySpec;
use crate::engine::{self, Review};
use crate::policy::{self, PolicySet};
use crate::source::{Diagnostic, Manifest, Manifests, in_parallel, open};

/// The arguments of `check`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit code 0: no finding at or above --fail-on. 1: findings. 2: some documents could \
                  not be read; the results of the others are printed."
)]
pub struct Args {
    #[command(flatten)]
    input: Input,

    /// The previous objects. They determine transitions, and only new violations are findings.
    /// Matched by group, kind, namespace and name; an object without a match is new. May be repeated.
    #[arg(long, value_name = "FILE")]
    old: Vec<PathBuf>,

    #[command(flatten)]
    policies: Policies,

    /// Judge every object by this convention only. --policies may still contain conventions.
    #[arg(long, value_name = "NAME")]
    convention: Option<String>,

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

    /// The mildest action that causes exit code 1.
    #[arg(long, value_name = "ACTION", value_enum, ignore_case = true, default_value = "Deny")]
    fail_on: FailOn,

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
    let policies = policies(&args.policies.paths, args.convention.as_deref())?;
    let (files, unread) = args.input.open(None)?;
    let (plurals, mut mistakes) = args.input.plurals(&args.crds);
    let (old_files, more) = open(&args.old, args.input.recursive);
    mistakes.extend(more);
    let old = Manifests::read(&old_files);
    mistakes.extend_from_slice(old.mistakes());
    mistakes.extend(unread);
    let manifests = Manifests::read(&files);
    mistakes.extend_from_slice(manifests.mistakes());
    old.warnings().iter().chain(manifests.warnings()).for_each(say);

    let now = args.now.get();
    let bench = Bench { args, policies: &policies, plurals: &plurals, old: by_key(&old), now };
    let list: Vec<Manifest<'_>> = manifests.iter().collect();
    let mut objects = Vec::with_capacity(list.len());
    for judged in in_parallel(&list, |manifest| bench.judge(manifest)) {
        match judged {
            Ok(judged) => objects.push(judged),
            Err(mistake) => mistakes.push(mistake),
        }
    }
    let report = Report {
        files: files.into_iter().map(|file| file.name).collect(),
        policies: &policies,
        objects,
        mistakes,
        fail_on: args.fail_on,
        verbose: args.verbose,
    };
    let mut out = BufWriter::new(io::stdout().lock());
    report.write(args.output, &mut out)?;
    out.flush()?;
    if !report.mistakes.is_empty() {
        // GitHub shows both streams in one log, and its annotations contain the mistakes.
        report.mistakes.iter().filter(|_| args.output != Format::Github).for_each(say);
        bail!("{} could not be read", plural(report.mistakes.len(), "document"));
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
    fn judge(&self, manifest: &Manifest<'_>) -> Result<Judged, Diagnostic> {
        let Args { user, groups, no_mutate, .. } = self.args;
        let old = self.old.get(&key(manifest));
        let request = Request {
            identity: manifest.identity,
            object: manifest.text,
            old: old.map(|old| old.text),
            writer: writer(user, groups),
        };
        let subject = request.subject(self.policies, self.plurals).map_err(|unfit| {
            let at = old.filter(|_| unfit.is_old).unwrap_or(manifest);
            at.mistake(unfit.field, format!("this cannot be judged: {unfit}"))
        })?;
        let review = engine::review(self.policies, subject, !no_mutate, self.now);
        let Review { policies, findings, patch, .. } =
            review.map_err(|error| manifest.mistake("", error.to_string()))?;
        let mut places = manifest.places();
        let findings = findings.into_iter().map(|found| {
            let place = places.at(&found.field);
            Located { found, place }
        });
        // In the order of the document.
        let mut findings: Vec<_> = findings.collect();
        findings.sort_by_key(|Located { place, .. }| (place.line, place.column));
        Ok(Judged {
            file: manifest.file.to_owned(),
            document: manifest.document,
            item: manifest.item,
            identity: manifest.identity.clone(),
            findings,
            policies: self.policies.names_of(&policies).map(str::to_owned).collect(),
            patch,
        })
    }
}

fn key<'m>(manifest: &Manifest<'m>) -> Key<'m> {
    let identity = manifest.identity;
    (identity.group(), &identity.kind, &identity.namespace, &identity.name)
}

fn by_key<'m>(manifests: &'m Manifests<'_>) -> HashMap<Key<'m>, Manifest<'m>> {
    manifests.iter().map(|manifest| (key(&manifest), manifest)).collect()
}

/// The policies of some paths, or one policy that applies a convention to every object.
pub(super) fn policies(paths: &[PathBuf], convention: Option<&str>) -> anyhow::Result<PolicySet> {
    let Some(name) = convention else {
        return Ok(PolicySet::compile(&policy::load(paths)?)?);
    };
    let sources = policy::load_files(paths)?;
    // First compile these alone: errors then show their location.
    let given = PolicySet::compile(&sources)?;
    if !given.conventions().contains_key(name) {
        bail!("{}", explain::unknown(name, given.conventions().keys().map(String::as_str)));
    }
    Ok(given.with_policies(&[("all", PolicySpec::for_everything(name))])?)
}
