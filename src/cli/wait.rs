//! `statusgate wait`: waits in a cluster until objects have a health, as `kubectl wait` waits for conditions.

use std::fmt;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use clap::builder::NonEmptyStringValueParser;
use serde::Serialize;
use tokio::time::{Instant, sleep};

use super::connection::{Connection, block_on};
use super::output::{Output, json_lines};
use super::policies::Policies;
use super::scope::{Named, Place, Scope};
use super::{NO_REPORT, Outcome, explain, fail_with, say, time};
use statusgate_cluster::{Cluster, Otherwise, Patience, Target};
use statusgate_core::engine::{Health, HealthClass, HealthStatus, Unproven};
use statusgate_core::model::Object;
use statusgate_core::policy::PolicySet;
use statusgate_core::source::{Identity, Manifests, one_line};
use statusgate_core::values;
use statusgate_server::files;

/// The arguments of `wait`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Health is that of the first policy with a convention that defines it. Without one, a \
                  custom resource is at best unknown: name its --convention; other kinds have their kstatus \
                  result. Prints each change of health and reason on stderr, and each object \
                  that has the health on stdout. An object that does not exist is waited for. Ends early if \
                  an object has failed and its controller does not retry, or was deleted. Needs the \
                  permission to get the objects; with --selector, --all or --all-namespaces also to list \
                  them.\n\n\
                  A status that is not newer than the spec, and names no generation, may be about an older \
                  spec. Then it counts after --settle. The times are those in metadata.managedFields.\n\n\
                  Exit code 0: all objects have the health. 1: the time is over, an object has \
                  failed or was deleted. 2: a kind is unknown, or the cluster, a file or the \
                  policies cannot be read."
)]
pub(super) struct Args {
    /// The objects, as for kubectl. TYPE is a plural, a singular, a kind or a short name, each with or
    /// without its group, or TYPE.VERSION.GROUP.
    #[arg(value_name = "TYPE/NAME | TYPE [NAME]", required_unless_present = "files",
          value_parser = NonEmptyStringValueParser::new())]
    objects: Vec<String>,

    /// The objects of manifests: a file, a folder, or `-` for standard input, such as the output of `helm
    /// get manifest`. May be repeated.
    #[arg(short = 'f', long = "file", visible_alias = "filename", value_name = "FILE",
          conflicts_with_all = ["objects", "selector", "all", "all_namespaces"])]
    files: Vec<PathBuf>,

    /// With --file: include subfolders.
    #[arg(short = 'R', long, requires = "files")]
    recursive: bool,

    #[command(flatten)]
    scope: Scope,

    /// All objects of the TYPE. Those that exist when the first one exists are waited for.
    #[arg(long, conflicts_with = "selector")]
    all: bool,

    /// The health to wait for. A deleted object counts as terminating. May be repeated: one of them.
    #[arg(long = "for", value_name = "health=WORD", default_value = "health=current",
          value_parser = wanted)]
    wanted: Vec<HealthStatus>,

    /// How long to wait. 0s: look once.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = values::duration)]
    timeout: Duration,

    /// How long to wait, after a change of the spec, for a status that is newer. 0s: believe the status.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = values::duration)]
    settle: Duration,

    #[command(flatten)]
    policies: Policies,

    /// The convention of custom resources that no policy selects: a built-in one, one of --policies, or `generic`: a
    /// guess from the words of the status.
    #[arg(long, value_name = "NAME")]
    convention: Option<String>,

    #[command(flatten)]
    connection: Connection,

    /// `table`: one line when an object has the health. `json`: one line per object at the end.
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
}

/// Waits.
///
/// # Errors
/// Invalid arguments or policies, an unknown kind, or an API server that does not respond.
pub(super) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let judging = args.judging()?;
    let named = args.named()?;
    block_on(async {
        let cluster = args.connection.open().await?;
        let start = Instant::now();
        let mut objects = args.find(&named, &cluster, &judging.policies, start).await?;
        if objects.is_empty() {
            say("no object matches");
            return Ok(Outcome::Findings);
        }
        let outcome = args.wait(&mut objects, &cluster, &judging, start).await;
        if args.output == Output::Json {
            let read = objects.iter().filter(|object| object.is_read);
            json_lines(&mut io::stdout(), read).context(NO_REPORT)?;
        }
        outcome
    })
}

/// What decides about the health of an object.
struct Judging {
    policies: PolicySet,
    /// What decides about custom resources that no policy selects.
    otherwise: Option<Otherwise>,
}

impl Args {
    fn judging(&self) -> anyhow::Result<Judging> {
        let policies = self.policies.load()?;
        let known = policies.conventions();
        let otherwise = match &self.convention {
            Some(name) => match known.get(name) {
                Some(found) if found.health.is_some() => {
                    Some(Otherwise::Convention(Arc::clone(found)))
                }
                Some(_) => bail!("convention {name} has no health"),
                None if name == GENERIC => Some(Otherwise::Guess),
                None => {
                    let names = known.keys().map(String::as_str).chain([GENERIC]);
                    bail!("{}", explain::unknown(name, names))
                }
            },
            None => None,
        };
        Ok(Judging { policies, otherwise })
    }

    /// The objects of the command line or of manifests.
    fn named(&self) -> anyhow::Result<Vec<Named>> {
        if !self.files.is_empty() {
            return self.manifests();
        }
        let named = Named::read(&self.objects)?;
        match (self.all || self.scope.selects(), named.as_slice()) {
            (true, [one]) if !one.has_name() => Ok(named),
            (true, _) => {
                bail!("--selector, --all and --all-namespaces need one TYPE, without a name")
            }
            (false, [one]) if !one.has_name() => {
                bail!("which {}? Add names, --selector or --all", self.objects.join(" "))
            }
            _ => Ok(named),
        }
    }

    /// The objects of manifests.
    fn manifests(&self) -> anyhow::Result<Vec<Named>> {
        let (files, unread) = files::open(&self.files, self.recursive, &[]);
        let manifests = Manifests::read(&files);
        let mistakes = unread.iter().chain(manifests.mistakes());
        fail_with(mistakes.map(|mistake| anyhow!("{mistake}")))?;
        let mut named = Vec::with_capacity(manifests.iter().len());
        for manifest in manifests.iter() {
            if manifest.identity.name.is_empty() {
                let mistake = manifest.mistake("metadata", "an object without a name".to_owned());
                bail!("{mistake}");
            }
            named.push(Named::of(manifest.identity));
        }
        if named.is_empty() {
            bail!("there is no object to wait for");
        }
        Ok(named)
    }

    /// The objects, by discovery. Selected ones are listed until there is one, or the time is over.
    async fn find(
        &self,
        named: &[Named],
        cluster: &Cluster,
        policies: &PolicySet,
        start: Instant,
    ) -> anyhow::Result<Vec<Waiting>> {
        let places = self.scope.find(named, cluster, policies).await?;
        loop {
            let mut objects = Vec::new();
            for place in &places {
                match &place.name {
                    Some(name) => objects.push(Waiting::new(place, &place.namespace, name)),
                    None => self.list(cluster, place, &mut objects).await?,
                }
            }
            let left = self.timeout.saturating_sub(start.elapsed());
            if !objects.is_empty() || left.is_zero() {
                return Ok(objects);
            }
            sleep(EVERY.min(left)).await;
        }
    }

    /// Adds all objects of a kind that are selected.
    async fn list(
        &self,
        cluster: &Cluster,
        place: &Place,
        objects: &mut Vec<Waiting>,
    ) -> anyhow::Result<()> {
        let mut pages = cluster.pages(&place.target, &self.scope.query(place));
        while let Some(page) = pages.next().await? {
            for text in page.items() {
                let metadata = Object::parse(text)?.metadata;
                objects.push(Waiting::new(place, &metadata.namespace, &metadata.name));
            }
            if objects.len() > MAX_OBJECTS {
                bail!(
                    "more than {MAX_OBJECTS} objects: wait for fewer, by a namespace or a selector"
                );
            }
        }
        Ok(())
    }

    /// Whether it is no use to wait any longer. A failed object can still be deleted.
    fn is_end(&self, class: HealthClass) -> bool {
        class.is_final_failure() && !self.wanted.contains(&HealthStatus::Terminating)
    }

    /// Polls. A watch would need a resume after each error of the API server, its own reader of objects and
    /// the permission to watch; a health that lasts less than a second is none to wait for.
    async fn wait(
        &self,
        objects: &mut [Waiting],
        cluster: &Cluster,
        judging: &Judging,
        start: Instant,
    ) -> anyhow::Result<Outcome> {
        loop {
            let mut failed = Ok(());
            for object in objects.iter_mut().filter(|object| !object.is_met) {
                match object.read(cluster, judging, self).await {
                    Ok(None) if object.is_met && self.output == Output::Table => {
                        let word = object.health.as_ref().map_or("", |of| of.class.is.name());
                        writeln!(io::stdout(), "{object} is {word}").context(NO_REPORT)?;
                    }
                    Ok(None) => {}
                    Ok(Some(end)) => {
                        say(format_args!("{object} {end}"));
                        return Ok(Outcome::Findings);
                    }
                    // The API server may restart while objects are waited for.
                    Err(error) if object.is_read => failed = Err(error),
                    Err(error) => return Err(error),
                }
            }
            if objects.iter().all(|object| object.is_met) {
                return Ok(Outcome::Clean);
            }
            let left = self.timeout.saturating_sub(start.elapsed());
            if left.is_zero() {
                let unmet = objects.iter().filter(|object| !object.is_met);
                unmet
                    .for_each(|object| say(format_args!("timed out: {object} {}", object.state())));
                return failed.map(|()| Outcome::Findings);
            }
            sleep(EVERY.min(left)).await;
        }
    }
}

/// One object. As JSON, it is one line.
#[derive(Serialize)]
struct Waiting {
    #[serde(skip)]
    target: Target,
    #[serde(flatten)]
    identity: Identity,
    #[serde(skip)]
    is_read: bool,
    /// `None` if it does not exist.
    #[serde(flatten)]
    health: Option<Health>,
    /// A status that may be about an older spec, and since when this is known.
    #[serde(skip)]
    unproven: Option<(Unproven, Instant)>,
    #[serde(skip)]
    is_met: bool,
}

impl Waiting {
    fn new(place: &Place, namespace: &str, name: &str) -> Self {
        let identity = Identity {
            api_version: place.target.api_version(),
            kind: place.target.kind.clone(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        let target = place.target.clone();
        Self { target, identity, is_read: false, health: None, unproven: None, is_met: false }
    }

    /// Reads the object and prints a change. Returns why it is no use to wait any longer.
    async fn read(
        &mut self,
        cluster: &Cluster,
        judging: &Judging,
        args: &Args,
    ) -> anyhow::Result<Option<String>> {
        let patience = if self.is_read { Patience::NONE } else { Patience::SHORT };
        let Identity { namespace, name, .. } = &self.identity;
        let body = cluster.object(&self.target, namespace, name, patience).await?;
        let is_first = !std::mem::replace(&mut self.is_read, true);
        let health = match body {
            Some(body) => Some(self.health(std::str::from_utf8(&body)?, judging, args)?),
            None if args.wanted.contains(&HealthStatus::Terminating) => Some(Health {
                class: HealthClass { is: HealthStatus::Terminating, retried: false },
                reason: "it was deleted".to_owned(),
            }),
            None if self.health.is_some() => return Ok(Some("was deleted".to_owned())),
            None => None,
        };
        let is_changed = is_first || self.health != health;
        self.health = health;
        let class = self.health.as_ref().map(|health| health.class);
        self.is_met = class.is_some_and(|class| args.wanted.contains(&class.is));
        if !self.is_met && class.is_some_and(|class| args.is_end(class)) {
            return Ok(Some(self.state()));
        }
        if is_changed && !self.is_met {
            let Identity { name, .. } = &self.identity;
            let state = self.health.as_ref().map_or_else(|| MISSING.to_owned(), words);
            say(format_args!("{}/{name}: {state}", self.target.plural));
        }
        Ok(None)
    }

    /// The health of the object. One that would end the wait, of a status that may be about an older spec, is in
    /// progress until it has settled.
    fn health(&mut self, text: &str, judging: &Judging, args: &Args) -> anyhow::Result<Health> {
        let now = time::clock();
        let found = self.target.health(&judging.policies, judging.otherwise.as_ref(), text, now);
        let (mut health, unproven) = found.with_context(|| format!("invalid object {self}"))?;
        let is = health.class.is;
        if is == HealthStatus::Unknown
            && self.target.policies.is_empty()
            && judging.otherwise.is_none()
        {
            health.reason.push_str("; --convention NAME chooses a convention");
        }
        let counts = args.wanted.contains(&is) || args.is_end(health.class);
        let settles = counts && is != HealthStatus::Terminating && !args.settle.is_zero();
        let Some(unproven) = unproven.filter(|_| settles) else { return Ok(health) };
        let since = match self.unproven {
            Some((known, since)) if known == unproven => since,
            _ => Instant::now(),
        };
        self.unproven = Some((unproven, since));
        // The clocks may differ: what was watched for this time has settled, too.
        let settle = i64::try_from(args.settle.as_secs()).unwrap_or(i64::MAX);
        let is_old = now.as_second().saturating_sub(unproven.spec) > settle;
        if is_old || since.elapsed() >= args.settle {
            return Ok(health);
        }
        let reason = format!(
            "unproven: the status ({}) is not newer than the spec; it counts {:?} after the change of the spec",
            words(&health),
            args.settle
        );
        let class = HealthClass { is: HealthStatus::InProgress, retried: false };
        Ok(Health { class, reason })
    }

    /// `is inProgress: waiting for the release`.
    fn state(&self) -> String {
        self.health.as_ref().map_or_else(|| MISSING.to_owned(), |of| format!("is {}", words(of)))
    }
}

/// `vshnredis.vshn.appcat.vshn.io/cache`, as kubectl prints it.
impl fmt::Display for Waiting {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.target.name(), self.identity.name)
    }
}

/// `inProgress: waiting for the release`.
fn words(health: &Health) -> String {
    one_line(&format!("{}: {}", health.class, health.reason))
}

/// Reads the value of `--for`.
fn wanted(text: &str) -> Result<HealthStatus, String> {
    let word = text.strip_prefix("health=");
    let found = HealthStatus::WORST_FIRST.into_iter().find(|health| word == Some(health.name()));
    found.ok_or_else(|| {
        let words = HealthStatus::WORST_FIRST.map(HealthStatus::name);
        format!("expected health= and one of {}", words.join(", "))
    })
}

/// The name of the guess among the conventions.
const GENERIC: &str = "generic";

/// The state of an object that was not created yet.
const MISSING: &str = "does not exist";

/// Between two reads of an object.
const EVERY: Duration = Duration::from_secs(1);

/// Each is read once per second.
const MAX_OBJECTS: usize = 1000;
