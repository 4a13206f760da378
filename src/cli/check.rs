//! `statusgate check`: judges manifests like the webhooks.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use anyhow::bail;
use jiff::Timestamp;
use serde_json::Value;

use super::action::{LIMITS, fail_on, one_of};
use super::entry::ObjectEntry;
use super::filter::Filter;
use super::input::Input;
use super::output::stdout;
use super::plurals::{Plurals, read_schemas, with_new};
use super::policies::{Policies, following, mistakes_in_selectors};
use super::report::{Checked, Format, Located, Report, plural};
use super::time::Now;
use super::{Outcome, say};
use statusgate_cluster::manifests::resource::CustomResource;
use statusgate_core::documents::PolicySpec;
use statusgate_core::engine::{self, Action, Found, Rehearsal, Review};
use statusgate_core::model::Writer;
use statusgate_core::policy::{Diagnostics, PolicySet};
use statusgate_core::request::{Request, writer};
use statusgate_core::schema::{NEWEST, minor_of};
use statusgate_core::source::{
    Diagnostic, Manifest, Manifests, Members, ObjectKey, Record, Stored,
};
use statusgate_server::files;

/// The arguments of `check`.
#[derive(Debug, clap::Parser)]
#[command(
    after_help = "Exit code 0: no finding at or above --fail-on. 1: findings. 2: some documents could \
                  not be used, and the results of the others are printed; or no object was judged."
)]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) input: Input,

    /// The previous objects. They determine transitions, and only new violations are findings.
    /// Matched by group, kind, namespace and name; an object without a match is new, and an old one
    /// without a match is an error. May be repeated.
    #[arg(long, value_name = "FILE")]
    pub(super) old: Vec<PathBuf>,

    /// Each object is the stored object of the next one with the same group, kind, namespace, name and
    /// uid. A watch and an audit log are sequences without this flag.
    #[arg(long)]
    pub(super) sequence: bool,

    #[command(flatten)]
    pub(super) judging: Judging,

    /// Judge as if this user wrote, such as system:serviceaccount:crossplane-system:crossplane.
    #[arg(long = "as", value_name = "USER", default_value = "", hide_default_value = true)]
    pub(super) user: String,

    /// A group of that user. May be repeated.
    #[arg(long = "as-group", value_name = "GROUP", requires = "user")]
    pub(super) groups: Vec<String>,

    /// Judge the objects as they are, not what the mutating webhook would make of them.
    #[arg(long)]
    pub(super) no_mutate: bool,

    /// Exit with 2 on files of a folder that hold no manifests, such as the values and templates of a chart.
    /// Otherwise they are skipped and counted.
    #[arg(long)]
    pub(super) strict: bool,

    #[command(flatten)]
    pub(super) now: Now,

    #[command(flatten)]
    pub(super) reporting: Reporting,
}

/// What to judge by.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Judging {
    #[command(flatten)]
    policies: Policies,

    /// Judge every object by this convention only. --policies may still contain conventions.
    #[arg(long, value_name = "NAME")]
    convention: Option<String>,

    /// With --convention: the strongest action of any rule, as in a policy. Case does not matter.
    #[arg(long, value_name = "ACTION", ignore_case = true, value_parser = one_of(LIMITS, Action::label),
          requires = "convention")]
    enforcement: Option<Action>,

    /// With --convention: what happens on a disagreement of phase and conditions, as in a policy. Case does
    /// not matter.
    #[arg(long, value_name = "ACTION", ignore_case = true, value_parser = one_of(Action::WORST_FIRST, Action::label),
          requires = "convention")]
    disagreement: Option<Action>,

    /// CustomResourceDefinitions, for the plurals of kinds and the status subresource. Their schemas are the new
    /// ones of an upgrade: the findings crd/… are what the API server will reject. May be repeated.
    #[arg(long, value_name = "PATH")]
    pub(super) crds: Vec<PathBuf>,

    /// The version of the API server that gets these CRDs, such as 1.33: older ones forgive less. Default: the newest.
    #[arg(long, value_name = "VERSION", requires = "crds", value_parser = minor_of)]
    pub(super) kubernetes_version: Option<u32>,
}

/// What to report.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Reporting {
    /// The mildest action that causes exit code 1; `warn` includes repairs. `unjudged`: also an object that
    /// no policy selects, or no object at all. May be repeated. Case does not matter. Default: deny.
    #[arg(long, value_name = "ACTION", ignore_case = true, value_parser = fail_on(), value_delimiter = ',')]
    fail_on: Vec<Option<Action>>,

    #[command(flatten)]
    filter: Filter,

    /// Print a table with one row per rule instead of the findings.
    #[arg(long)]
    summary: bool,

    /// The output format.
    #[arg(short, long, value_enum, default_value = "table")]
    output: Format,

    /// Also print the objects that no policy selects and the changes of the mutating webhook.
    #[arg(short, long)]
    verbose: bool,
}

impl Judging {
    /// The policies.
    pub(super) fn policies(&self) -> anyhow::Result<PolicySet> {
        let spec = self.convention.as_deref().map(|name| PolicySpec {
            enforcement: self.enforcement,
            disagreement: self.disagreement,
            ..PolicySpec::for_everything(name)
        });
        following(&self.policies.paths, spec)
    }

    /// Whether the policies are those of the user.
    pub(super) const fn has_policies(&self) -> bool {
        !self.policies.paths.is_empty()
    }

    /// The names in the selectors of the policies that no CRD has. The example policies select more than
    /// one product has.
    fn unserved(
        &self,
        policies: &PolicySet,
        crds: &[CustomResource],
    ) -> anyhow::Result<Diagnostics> {
        if self.convention.is_some() || !self.has_policies() || crds.is_empty() {
            return Ok(Diagnostics::default());
        }
        let sources = files::load_policies(&self.policies.paths)?;
        Ok(mistakes_in_selectors(&sources, policies, crds))
    }
}

impl Reporting {
    /// Rejects flags that contradict each other or the policies.
    pub(super) fn check(&self, policies: &PolicySet, given: bool) -> anyhow::Result<()> {
        if self.summary && self.output != Format::Table {
            bail!("--summary requires -o table");
        }
        self.filter.check(policies, given)
    }
}

/// Judges the objects of files.
///
/// # Errors
/// When the policies are invalid, or a document cannot be read. All other objects are printed.
pub(super) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let Args { judging, reporting, .. } = args;
    args.input.check_stdin(&[&args.old, &judging.crds])?;
    let policies = judging.policies()?;
    let minor = judging.kubernetes_version.unwrap_or(NEWEST);
    let (crds, versions) = read_schemas(&judging.crds, args.input.recursive, minor)?;
    let policies = with_new(policies, versions);
    reporting.check(&policies, judging.has_policies())?;
    let (files, unread) = args.input.open(None)?;
    let mut mistakes: Vec<_> = judging.unserved(&policies, &crds)?.into_iter().collect();
    let plurals = Plurals::of(crds);
    let (old_files, more) = files::open(&args.old, args.input.recursive, &[]);
    mistakes.extend(more);
    let old = Manifests::read(&old_files);
    mistakes.extend_from_slice(old.mistakes());
    mistakes.extend(unread);
    let mut manifests = Manifests::read(&files);
    let others = if args.strict { Vec::new() } else { manifests.take_others() };
    let (named, skipped): (Vec<_>, Vec<_>) =
        others.into_iter().partition(|other| args.input.names(&other.file));
    mistakes.extend(named);
    mistakes.extend_from_slice(manifests.mistakes());
    old.warnings().iter().chain(manifests.warnings()).for_each(say);

    let now = args.now.get();
    let (old, more) = by_key(&old, &manifests);
    mistakes.extend(more);
    let is_sequence = args.sequence || manifests.iter().any(|manifest| manifest.record.is_some());
    let counts_stored = is_sequence || !args.old.is_empty();
    let (policies, plurals) = (&policies, &plurals);
    let old = Stored::new(old, args.sequence);
    let mut bench = Bench { args, policies, plurals, old, stored: 0, now, mistakes };
    let mut objects = Vec::with_capacity(manifests.iter().len());
    let mut doubts = BTreeSet::new();
    for manifest in manifests.iter() {
        let Some(judged) = bench.judge(&manifest) else { continue };
        // A recorded request has the plural.
        let is_derived = manifest.record.and_then(Record::request).is_none();
        if is_derived && judged.entry.unjudged.is_none() {
            doubts.extend(plurals.doubt(manifest.identity, policies));
        }
        objects.push(judged);
    }
    objects.extend(manifests.references().filter_map(|reference| bench.unjudged(&reference)));
    let Bench { stored, mistakes, .. } = bench;
    doubts.iter().for_each(say);
    let filtered_out = reporting.filter.apply(&mut objects)?;
    let mut skipped: Vec<Box<str>> = skipped.into_iter().map(|other| other.file).collect();
    skipped.dedup();
    let report = Report {
        files: files.into_iter().map(|file| file.name).collect(),
        policies,
        objects,
        mistakes,
        skipped,
        stored: counts_stored.then_some(stored),
        filtered_out,
        fail_on: reporting.fail_on.iter().copied().flatten().min().unwrap_or(Action::Deny),
        unjudged_fails: reporting.fail_on.contains(&None),
        summary: reporting.summary,
        verbose: reporting.verbose,
    };
    let mut out = BufWriter::new(stdout(reporting.output == Format::Table));
    report.write(reporting.output, &mut out)?;
    out.flush()?;
    if !report.mistakes.is_empty() {
        // GitHub shows both streams in one log, and its annotations contain the mistakes.
        report.mistakes.iter().filter(|_| reporting.output != Format::Github).for_each(say);
        bail!("{} could not be used", plural(report.mistakes.len(), "document"));
    }
    match report.unproven() {
        Some(why) if report.unjudged_fails => say(why),
        Some(why) => bail!("{why}"),
        None => {}
    }
    Ok(Outcome::of(report.fails()))
}

/// The inputs that are the same for all objects, and what is counted.
struct Bench<'d> {
    args: &'d Args,
    policies: &'d PolicySet,
    plurals: &'d Plurals,
    old: Stored<'d>,
    /// The objects with a stored object.
    stored: usize,
    now: Timestamp,
    mistakes: Vec<Diagnostic>,
}

impl<'d> Bench<'d> {
    /// The result for one object. `None` for an object that the engine rejects, and for the recorded write
    /// of something else than a status, unless a policy selects it.
    fn judge(&mut self, manifest: &Manifest<'d>) -> Option<Checked> {
        let Args { user, groups, no_mutate, .. } = self.args;
        let old = self.old.of(manifest);
        let request = Request::of(manifest, old, writer(user, groups));
        let (recorded, time) = (request.recorded, request.time());
        let served = self.plurals.served(manifest.identity, self.policies);
        let subject = request.subject(self.policies, served);
        let mut entry = ObjectEntry::of(manifest, self.policies, subject.as_ref());
        let is_unselected = recorded.is_some() && subject.is_ok() && entry.policies.is_empty();
        if is_unselected && status(manifest) == old.as_ref().and_then(status) {
            return None;
        }
        self.stored += usize::from(old.is_some());
        let subject = match subject {
            Ok(subject) => subject,
            Err(unfit) => {
                let at = old.filter(|_| unfit.is_old).unwrap_or(*manifest);
                let message = format!("this cannot be judged: {unfit}");
                self.mistakes.push(at.mistake(unfit.field, message));
                return Some(Checked { entry, findings: vec![], patch: vec![] });
            }
        };
        let now = self.args.now.given().or(time).unwrap_or(self.now);
        // A recorded write is judged also without one.
        let has_status = recorded.is_some() || !subject.has_no_status();
        let defined = self.policies.defined().get(&subject.resource);
        let policy = entry.policies.first().map_or("", String::as_str);
        let has_subresource = subject.subresource == "status";
        let rehearsal = defined.map(|defined| Rehearsal { defined, policy, has_subresource });
        let review = engine::review(self.policies, subject, !no_mutate, now)
            .map_err(|error| self.mistakes.push(manifest.mistake("", error.to_string())));
        let Review { mut findings, patch, status, .. } = review.ok()?;
        findings.extend(rehearsal.iter().flat_map(|rehearsal| {
            rehearsed(rehearsal, manifest.text, old.map(|old| old.text), status.as_ref())
        }));
        let mut places = manifest.places();
        let findings = findings.into_iter().map(|found| {
            let place = places.at(&found.field);
            Located { found, place }
        });
        // In the order of the document.
        let mut findings: Vec<_> = findings.collect();
        findings.sort_by_key(|Located { place, .. }| (place.line, place.column));
        if !has_status && findings.is_empty() {
            entry.unjudged.get_or_insert_with(|| "it has no status".to_owned());
        }
        Some(Checked { entry, findings, patch })
    }

    /// A status write without its object.
    fn unjudged(&self, reference: &Manifest<'_>) -> Option<Checked> {
        let request = Request { object: "{}", ..Request::of(reference, None, Writer::default()) };
        let recorded = request.recorded;
        let served = self.plurals.served(reference.identity, self.policies);
        let subject = request.subject(self.policies, served);
        let mut entry = ObjectEntry::of(reference, self.policies, subject.as_ref());
        if !entry.policies.is_empty() {
            entry.policies.clear();
            let reason = if recorded.is_some_and(|request| request.is_truncated) {
                "the API server truncated the audit event; raise --audit-log-truncate-max-event-size"
            } else {
                "the audit event has no object; log it at level RequestResponse"
            };
            entry.unjudged = Some(reason.to_owned());
        } else if recorded.is_none_or(|request| request.subresource != "status") {
            return None;
        }
        Some(Checked { entry, findings: vec![], patch: vec![] })
    }
}

/// What the API server does with a new schema: to a write, if there is a stored object, and otherwise to the object as
/// a stored one. `status`: as the mutating webhook leaves it.
fn rehearsed(
    rehearsal: &Rehearsal<'_>,
    object: &str,
    stored: Option<&str>,
    status: Option<&Value>,
) -> Vec<Found> {
    // Both were read before.
    let object: Value = serde_json::from_str(object).unwrap_or_default();
    match stored {
        Some(stored) => rehearsal.write(&object, &serde_json::from_str(stored).unwrap_or_default()),
        None => {
            let backfilled = status.map(|status| {
                let mut object = object.clone();
                object["status"] = status.clone();
                object
            });
            rehearsal.stored(&object, backfilled.as_ref())
        }
    }
}

fn status<'m>(manifest: &Manifest<'m>) -> Option<&'m str> {
    Members::parse(manifest.text)?.get("status")
}

/// The old objects, and those of them that are useless: a key that is taken, or that no new object has.
fn by_key<'m>(
    old: &'m Manifests<'_>,
    new: &Manifests<'_>,
) -> (HashMap<ObjectKey<'m>, Manifest<'m>>, Vec<Diagnostic>) {
    let wanted: HashSet<ObjectKey<'_>> = new.iter().map(|manifest| manifest.key()).collect();
    let (mut all, mut mistakes) = (HashMap::new(), Vec::new());
    for manifest in old.iter() {
        let key = manifest.key();
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
