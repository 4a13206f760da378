//! `statusgate status`: what the status of an object means: its health, its phase and the kstatus result.

mod table;

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::PathBuf;

use anyhow::bail;
use serde::Serialize;

use super::action::one_of;
use super::connection::{Connection, block_on};
use super::entry::ObjectEntry;
use super::input::Input;
use super::output::{Output, json_lines, stdout};
use super::plurals::{Plurals, read_crds};
use super::policies::Policies;
use super::scope::{Named, Place, Scope};
use super::time::Now;
use super::{Outcome, say};
use statusgate_cluster::{Cluster, Patience, Target};
use statusgate_core::causes::with_causes;
use statusgate_core::engine::{HealthStatus, Reading};
use statusgate_core::kstatus::Fork;
use statusgate_core::model::{Json, Object, Subject, Writer};
use statusgate_core::policy::PolicySet;
use statusgate_core::request::{Request, Served, Unfit};
use statusgate_core::source::{self, Identity, Manifests};

/// The arguments of `status`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "With --namespace, --all-namespaces, --selector, --kubeconfig or --context, the words are \
                  objects of a cluster: TYPE, TYPE NAME or TYPE/NAME, as for kubectl. Otherwise they are \
                  files.\n\n\
                  Exit code 0: no object has failed. 1: the health of an object is failed, kstatus returns an \
                  error, or its policy does not admit its phase. 2: a file, a document, an object or a policy \
                  cannot be read; the other objects are printed."
)]
pub(super) struct Args {
    #[command(flatten)]
    input: Input,

    #[command(flatten)]
    scope: Scope,

    #[command(flatten)]
    policies: Policies,

    /// CustomResourceDefinitions, for the plurals of kinds. May be repeated. Default: the plurals in
    /// the policies, otherwise a guess.
    #[arg(long, value_name = "PATH")]
    crds: Vec<PathBuf>,

    #[command(flatten)]
    connection: Connection,

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
/// When the policies, a file, a document or the cluster cannot be read. All other objects are printed.
pub(super) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let policies = args.policies.load()?;
    let now = args.now.get().as_second();
    let (fork, records, mistakes) = (args.kstatus, Vec::new(), Vec::new());
    let mut found = Found { policies: &policies, now, fork, records, mistakes };
    if args.is_of_cluster() {
        let named = args.named()?;
        block_on(found.read_cluster(args, &named))?;
    } else {
        found.read_files(args)?;
    }
    let mut out = BufWriter::new(stdout(args.output == Output::Table));
    match args.output {
        Output::Table => table::write(&found.records, found.now, &mut out)?,
        Output::Json => json_lines(&mut out, &found.records)?,
    }
    out.flush()?;
    if !found.mistakes.is_empty() {
        bail!("{}", found.mistakes.join("\n"));
    }
    Ok(Outcome::of(found.records.iter().any(Record::is_bad)))
}

impl Args {
    /// Whether the words are objects of a cluster.
    const fn is_of_cluster(&self) -> bool {
        let Connection { kubeconfig, context } = &self.connection;
        self.scope.is_given() || kubeconfig.is_some() || context.is_some()
    }

    /// The objects of a cluster.
    fn named(&self) -> anyhow::Result<Vec<Named>> {
        let words = self.input.words()?;
        if words.is_empty() {
            bail!("which objects? Name a TYPE, such as deployments");
        }
        let named = Named::read(&words)?;
        if self.scope.selects() && named.iter().any(Named::has_name) {
            bail!("--selector and --all-namespaces need one TYPE, without a name");
        }
        Ok(named)
    }
}

/// The objects that were read, and what could not be read.
struct Found<'p> {
    policies: &'p PolicySet,
    now: i64,
    fork: Fork,
    records: Vec<Record<'p>>,
    mistakes: Vec<String>,
}

impl<'p> Found<'p> {
    fn read_files(&mut self, args: &Args) -> anyhow::Result<()> {
        // The default is standard input, except for a terminal: there the command would seem to hang.
        args.input.check_stdin(&[&args.crds])?;
        let plurals = Plurals::of(read_crds(&args.crds, args.input.recursive)?);
        let (files, unread) = args.input.open((!io::stdin().is_terminal()).then_some("-"))?;
        let manifests = Manifests::read(&files);
        manifests.warnings().iter().for_each(say);
        let mistakes = unread.iter().chain(manifests.mistakes());
        self.mistakes.extend(mistakes.map(|mistake| format!("{mistake:#}")));
        let policies = self.policies;
        for manifest in manifests.iter() {
            let request = Request::of(&manifest, None, Writer::default());
            let served = plurals.served(manifest.identity, policies);
            let record = self
                .record(request, served, |subject| ObjectEntry::of(&manifest, policies, subject));
            match record {
                Ok(record) => self.records.push(record),
                Err(error) => {
                    let mistake = manifest.mistake("", source::reason(&error));
                    self.mistakes.push(format!("{mistake:#}"));
                }
            }
        }
        Ok(())
    }

    async fn read_cluster(&mut self, args: &Args, named: &[Named]) -> anyhow::Result<()> {
        let cluster = args.connection.open().await?;
        for place in args.scope.find(named, &cluster, self.policies).await? {
            let Place { target, namespace, name } = &place;
            let Some(name) = name else {
                self.read_all(&cluster, &place, &args.scope).await;
                continue;
            };
            match cluster.object(target, namespace, name, Patience::SHORT).await? {
                Some(body) => self.add(target, std::str::from_utf8(&body)?),
                None => self.mistakes.push(format!("{}/{name} does not exist", target.name())),
            }
        }
        Ok(())
    }

    /// Reads page by page: of an object, only its record is kept.
    async fn read_all(&mut self, cluster: &Cluster, place: &Place, scope: &Scope) {
        let mut pages = cluster.pages(&place.target, &scope.query(place));
        loop {
            match pages.next().await {
                Ok(None) => return,
                Ok(Some(page)) => page.items().for_each(|text| self.add(&place.target, text)),
                Err(error) => return self.mistakes.push(with_causes(&error)),
            }
            if self.records.len() > MAX_OBJECTS {
                self.records.truncate(MAX_OBJECTS);
                return self.mistakes.push(format!(
                    "only the first {MAX_OBJECTS} objects are read: name a namespace or a selector"
                ));
            }
        }
    }

    fn add(&mut self, target: &Target, text: &str) {
        match self.stored(target, text) {
            Ok(record) => self.records.push(record),
            Err(error) => self.mistakes.push(format!("{}: {error:#}", target.name())),
        }
    }

    /// An object of a cluster.
    fn stored(&self, target: &Target, object: &str) -> anyhow::Result<Record<'p>> {
        let metadata = Object::parse(object)?.metadata;
        let identity = &Identity {
            api_version: target.api_version(),
            kind: target.kind.clone(),
            namespace: metadata.namespace.into_owned(),
            name: metadata.name.into_owned(),
        };
        let (writer, recorded) = (Writer::default(), None);
        let request = Request { identity, object, old: None, writer, recorded };
        let has_status = Some(target.status_subresource);
        let served = Served { plural: target.plural.clone(), has_status };
        Ok(self.record(request, served, |subject| {
            ObjectEntry::stored(identity, self.policies, subject)
        })?)
    }

    /// What readers see of an object.
    ///
    /// # Errors
    /// When the object exceeds the limits of the JSON reader.
    fn record(
        &self,
        request: Request<'_>,
        served: Served,
        entry: impl FnOnce(Result<&Subject<'_>, &Unfit>) -> ObjectEntry,
    ) -> serde_json::Result<Record<'p>> {
        let tree = tree(request.object, request.identity)?;
        let subject = request.subject(self.policies, served);
        let entry = entry(subject.as_ref());
        // Invalid metadata: no policy can judge the object, and kstatus reports an error.
        let subject = subject.as_ref().ok();
        let reading = Reading::of(&tree, subject, self.policies, self.now, self.fork);
        Ok(Record { entry, reading })
    }
}

/// One object, and what readers see of it. As JSON, it is one line.
#[derive(Debug, Serialize)]
struct Record<'p> {
    #[serde(flatten)]
    entry: ObjectEntry,
    #[serde(flatten)]
    reading: Reading<'p>,
}

impl Record<'_> {
    /// Whether the object needs attention.
    fn is_bad(&self) -> bool {
        self.reading.health.class.is == HealthStatus::Failed
            || self.reading.result.is_err()
            || self.reading.standings().any(|(_, standing)| standing.contradiction.is_some())
    }
}

/// The object. Items of a List from the API server have no apiVersion and kind: they inherit those of the List.
fn tree<'j>(text: &'j str, identity: &'j Identity) -> Result<Json<'j>, serde_json::Error> {
    let mut tree = Json::parse(text)?;
    for (name, value) in [("apiVersion", &identity.api_version), ("kind", &identity.kind)] {
        if tree.get(name).is_none()
            && let Json::Object(members) = &mut tree
        {
            members.insert(name.into(), Json::String(value.as_str().into()));
        }
    }
    Ok(tree)
}

/// Each record has about a kilobyte.
const MAX_OBJECTS: usize = 20_000;
