//! `statusgate status`: what the status of an object means: its health, its phase and the kstatus result.

mod table;

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::PathBuf;

use anyhow::bail;
use serde::Serialize;

use super::action::one_of;
use super::entry::ObjectEntry;
use super::input::Input;
use super::output::{Output, json_lines, stdout};
use super::plurals::{Plurals, read_crds};
use super::policies::Policies;
use super::time::Now;
use super::{Outcome, say};
use statusgate_core::engine::{HealthStatus, Reading};
use statusgate_core::kstatus::Fork;
use statusgate_core::model::{Json, Writer};
use statusgate_core::policy::PolicySet;
use statusgate_core::request::Request;
use statusgate_core::source::{self, Identity, Manifest, Manifests};

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

    /// The kstatus in the result: `kubernetes-sigs` as in kpt, or `fluxcd` as in Flux and Helm 4.
    #[arg(long, value_name = "NAME", default_value = Fork::default().name(),
          value_parser = one_of(Fork::ALL, Fork::name))]
    kstatus: Fork,

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
        match Record::of(&manifest, &policies, &plurals, now, args.kstatus) {
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

/// One object, and what readers see of it. As JSON, it is one line.
#[derive(Debug, Serialize)]
struct Record<'m> {
    #[serde(flatten)]
    entry: ObjectEntry,
    #[serde(flatten)]
    reading: Reading<'m>,
}

impl<'m> Record<'m> {
    /// # Errors
    /// When the object exceeds the limits of the JSON reader.
    fn of(
        manifest: &Manifest<'m>,
        policies: &'m PolicySet,
        plurals: &Plurals,
        now: i64,
        fork: Fork,
    ) -> Result<Self, serde_json::Error> {
        let identity = manifest.identity;
        let mut tree = Json::parse(manifest.text)?;
        inherit(&mut tree, identity);
        let (object, writer) = (manifest.text, Writer::default());
        let recorded = manifest.record.and_then(source::Record::request);
        let request = Request { identity, object, old: None, writer, recorded };
        let subject = request.subject(policies, plurals.served(identity, policies));
        let entry = ObjectEntry::of(manifest, policies, subject.as_ref());
        // Invalid metadata: no policy can judge the object, and kstatus reports an error.
        let reading = Reading::of(&tree, subject.as_ref().ok(), policies, now, fork);
        Ok(Self { entry, reading })
    }

    /// Whether the object needs attention.
    fn is_bad(&self) -> bool {
        self.reading.health.class.is == HealthStatus::Failed
            || self.reading.result.is_err()
            || self.reading.standings().any(|(_, standing)| standing.contradiction.is_some())
    }
}

/// Items of a List from the API server have no apiVersion and kind. They inherit those of the List.
fn inherit<'j>(tree: &mut Json<'j>, identity: &'j Identity) {
    for (name, value) in [("apiVersion", &identity.api_version), ("kind", &identity.kind)] {
        if tree.get(name).is_none()
            && let Json::Object(members) = tree
        {
            members.insert(name.into(), Json::String(value.as_str().into()));
        }
    }
}
