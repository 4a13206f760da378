//! `statusgate wait`: waits in a cluster until objects have a health, as `kubectl wait` waits for conditions.

use std::fmt;
use std::io::{self, Write};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::builder::NonEmptyStringValueParser;
use serde::Serialize;
use tokio::time::{Instant, sleep};

use super::connection::{Connection, block_on};
use super::output::{Output, json_lines};
use super::policies::Policies;
use super::{NO_REPORT, Outcome, say, time};
use statusgate_cluster::{Cluster, Patience, Query, Target};
use statusgate_core::causes::with_causes;
use statusgate_core::engine::{Health, HealthClass, HealthStatus};
use statusgate_core::model::Object;
use statusgate_core::policy::PolicySet;
use statusgate_core::source::{Identity, one_line};
use statusgate_core::values;

/// The arguments of `wait`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Health is that of the first policy with a convention that defines it, otherwise the \
                  kstatus result. Prints each change of health and reason on stderr, and each object \
                  that has the health on stdout. Ends early if an object has failed and its controller \
                  does not retry. Needs the permission to get the objects; with --selector or --all \
                  also to list them.\n\n\
                  Exit code 0: all objects have the health. 1: the time is over, an object has \
                  failed, does not exist or was deleted. 2: the kind is unknown, or the cluster or the \
                  policies cannot be read."
)]
pub(super) struct Args {
    /// The objects, as for kubectl. TYPE is a plural, a singular, a kind or a short name, each with or
    /// without its group.
    #[arg(value_name = "TYPE/NAME | TYPE [NAME]", required = true,
          value_parser = NonEmptyStringValueParser::new())]
    objects: Vec<String>,

    /// All objects of the TYPE that match this label selector now.
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    selector: Option<String>,

    /// All objects of the TYPE that exist now.
    #[arg(long, conflicts_with = "selector")]
    all: bool,

    /// The namespace. Default: that of the context.
    #[arg(short, long, value_name = "NAME", value_parser = values::namespace)]
    namespace: Option<String>,

    /// The health to wait for. A deleted object counts as terminating.
    #[arg(long = "for", value_name = "health=WORD", default_value = "health=current",
          value_parser = wanted)]
    wanted: HealthStatus,

    /// How long to wait. 0s: look once.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = values::duration)]
    timeout: Duration,

    #[command(flatten)]
    policies: Policies,

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
    let policies = args.policies.load()?;
    let named = args.named()?;
    block_on(async {
        let cluster = args.connection.open().await?;
        let mut objects = args.find(&named, &cluster, &policies).await?;
        if objects.is_empty() {
            say("no object matches");
            return Ok(Outcome::Findings);
        }
        let outcome = args.wait(&mut objects, &cluster, &policies).await;
        if args.output == Output::Json {
            let read = objects.iter().filter(|object| object.health.is_some());
            json_lines(&mut io::stdout(), read).context(NO_REPORT)?;
        }
        outcome
    })
}

impl Args {
    /// The types of the command line and the names of their objects; no name with a selector.
    fn named(&self) -> anyhow::Result<Vec<(&str, Option<&str>)>> {
        let selects = self.all || self.selector.is_some();
        match self.objects.as_slice() {
            [kind] if selects && !kind.contains('/') => Ok(vec![(kind, None)]),
            _ if selects => bail!("--selector and --all need one TYPE, without a name"),
            [kind, names @ ..] if names.iter().chain([kind]).all(|word| !word.contains('/')) => {
                if names.is_empty() {
                    bail!("which {kind}? Add names, --selector or --all");
                }
                Ok(names.iter().map(|name| (kind.as_str(), Some(name.as_str()))).collect())
            }
            words => words.iter().map(|word| kind_and_name(word)).collect(),
        }
    }

    /// The objects, by discovery and with a selector by a list.
    async fn find(
        &self,
        named: &[(&str, Option<&str>)],
        cluster: &Cluster,
        policies: &PolicySet,
    ) -> anyhow::Result<Vec<Waiting>> {
        let kinds: Vec<&str> = named.iter().map(|(kind, _)| *kind).collect();
        let kinds = cluster.kinds(&kinds).await?;
        let of_context = self.namespace.as_deref().unwrap_or_else(|| cluster.namespace());
        let mut objects = Vec::new();
        for (kind, name) in named {
            let Some(target) = kinds.find(kind, policies) else {
                kinds.unavailable.iter().for_each(|(_, error)| say(with_causes(error)));
                bail!("the cluster does not serve {kind}");
            };
            let namespace = if target.namespaced { of_context } else { "" };
            let names = match name {
                Some(name) => vec![(*name).to_owned()],
                None => self.names(cluster, &target, namespace).await?,
            };
            objects.extend(names.into_iter().map(|name| {
                let (api_version, kind) = (target.api_version(), target.kind.clone());
                let identity =
                    Identity { api_version, kind, namespace: namespace.to_owned(), name };
                Waiting { target: target.clone(), identity, health: None, is_met: false }
            }));
        }
        Ok(objects)
    }

    /// The names of the objects that the selector matches.
    async fn names(
        &self,
        cluster: &Cluster,
        target: &Target,
        namespace: &str,
    ) -> anyhow::Result<Vec<String>> {
        let selector = self.selector.clone().unwrap_or_default();
        let query = Query { namespace: namespace.to_owned(), selector, ..Query::default() };
        let mut pages = cluster.pages(target, &query);
        let mut names = Vec::new();
        while let Some(page) = pages.next().await? {
            for text in page.items() {
                names.push(Object::parse(text)?.metadata.name.into_owned());
            }
        }
        Ok(names)
    }

    /// Polls. A watch would need a resume after each error of the API server, its own reader of objects and
    /// the permission to watch; a health that lasts less than a second is none to wait for.
    async fn wait(
        &self,
        objects: &mut [Waiting],
        cluster: &Cluster,
        policies: &PolicySet,
    ) -> anyhow::Result<Outcome> {
        let start = Instant::now();
        loop {
            let mut failed = Ok(());
            for object in objects.iter_mut().filter(|object| !object.is_met) {
                match object.read(cluster, policies, self.wanted).await {
                    Ok(None) if object.is_met && self.output == Output::Table => {
                        let word = self.wanted.name();
                        writeln!(io::stdout(), "{object} is {word}").context(NO_REPORT)?;
                    }
                    Ok(None) => {}
                    Ok(Some(end)) => {
                        say(format_args!("{object} {end}"));
                        return Ok(Outcome::Findings);
                    }
                    // The API server may restart while objects are waited for.
                    Err(error) if object.health.is_some() => failed = Err(error),
                    Err(error) => return Err(error),
                }
            }
            if objects.iter().all(|object| object.is_met) {
                return Ok(Outcome::Clean);
            }
            let left = self.timeout.saturating_sub(start.elapsed());
            if left.is_zero() {
                let unmet = objects.iter().filter(|object| !object.is_met);
                unmet.for_each(|object| {
                    say(format_args!("timed out: {object} is {}", object.state()))
                });
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
    /// `None` until it is read.
    #[serde(flatten)]
    health: Option<Health>,
    #[serde(skip)]
    is_met: bool,
}

impl Waiting {
    /// Reads the object and prints a change. Returns why it is no use to wait any longer.
    async fn read(
        &mut self,
        cluster: &Cluster,
        policies: &PolicySet,
        wanted: HealthStatus,
    ) -> anyhow::Result<Option<String>> {
        let patience = if self.health.is_none() { Patience::SHORT } else { Patience::NONE };
        let Identity { namespace, name, .. } = &self.identity;
        let body = cluster.object(&self.target, namespace, name, patience).await?;
        let health = match body {
            Some(body) => {
                let text = std::str::from_utf8(&body)?;
                let health = self.target.health(policies, text, time::clock());
                health.with_context(|| format!("invalid object {self}"))?
            }
            None if self.health.is_none() => return Ok(Some("does not exist".to_owned())),
            None if wanted == HealthStatus::Terminating => Health {
                class: HealthClass { is: wanted, retried: false },
                reason: "it was deleted".to_owned(),
            },
            None => return Ok(Some("was deleted".to_owned())),
        };
        let changed = self.health.as_ref() != Some(&health);
        self.is_met = health.class.is == wanted;
        // A failed object can still be deleted.
        let is_final = health.class.is_final_failure() && wanted != HealthStatus::Terminating;
        self.health = Some(health);
        if is_final && !self.is_met {
            return Ok(Some(format!("is {}", self.state())));
        }
        if changed && !self.is_met {
            say(format_args!("{}/{}: {}", self.target.plural, self.identity.name, self.state()));
        }
        Ok(None)
    }

    /// `inProgress: waiting for the release`.
    fn state(&self) -> String {
        let state = self.health.iter().map(|health| format!("{}: {}", health.class, health.reason));
        one_line(&state.collect::<String>())
    }
}

/// `vshnredis.vshn.appcat.vshn.io/cache`, as kubectl prints it.
impl fmt::Display for Waiting {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.target.name(), self.identity.name)
    }
}

/// Reads `TYPE/NAME`.
fn kind_and_name(word: &str) -> anyhow::Result<(&str, Option<&str>)> {
    match word.split_once('/') {
        Some((kind, name)) if !kind.is_empty() && !name.is_empty() && !name.contains('/') => {
            Ok((kind, Some(name)))
        }
        _ => bail!("{word:?} is not TYPE/NAME"),
    }
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

/// Between two reads of an object.
const EVERY: Duration = Duration::from_secs(1);
