//! `statusgate backfill`: stored objects brought up to date, through `/status`.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, anyhow};
use clap::ValueEnum;
use jiff::Timestamp;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use super::backfill_report::{Format, Teller};
use super::connection::{Connection, Selection, block_on};
use super::{Outcome, checks};
use crate::cluster::backfill::{Backfill, BackfillError, End, Journal, Plan, Scope, Shard};
use crate::cluster::{Check, Cluster, Level, Target, precheck};
use crate::policy::{self, PolicySet, Source};

/// What `backfill` can be told.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Does to every stored object what the mutating webhook would do at its next status \
                  write. A disagreement that is stored already stays.\n\n\
                  Exit code 0: every object is up to date (in a dry run: could be). 1: something was \
                  refused or failed, or a schema does not have what is filled in. 2: it could not be \
                  done, or was stopped; what was done until then is told, and kept in the journal."
)]
pub struct Args {
    /// Policies: a file or a folder. May be repeated. Without it: the example policies.
    #[arg(long, value_name = "PATH")]
    policies: Vec<PathBuf>,

    #[command(flatten)]
    connection: Connection,

    #[command(flatten)]
    selection: Selection,

    /// Write nothing; print what would change.
    #[arg(long)]
    dry_run: bool,

    /// Writes at a time.
    #[arg(long, value_name = "NUMBER", default_value = "8",
          value_parser = clap::value_parser!(u16).range(1..=256))]
    concurrency: u16,

    /// Requests for single objects a second, at most. 0 is no limit.
    #[arg(long, value_name = "NUMBER", default_value = "0", value_parser = parse_rate)]
    qps: f64,

    /// Only one of N equal parts, I from 0: for several processes beside one another.
    #[arg(long, value_name = "I/N", default_value_t = Shard::WHOLE)]
    shard: Shard,

    /// A journal of what was written. A run that was stopped goes on with it.
    #[arg(long, value_name = "FILE", conflicts_with = "dry_run")]
    resume: Option<PathBuf>,

    /// `table`: findings, and sums at the end. `json`: a line an object; the sums go to stderr.
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    Table,
    Json,
}

/// Brings objects up to date.
///
/// # Errors
/// Whatever keeps it from getting to the end.
pub fn run(args: &Args) -> anyhow::Result<Outcome> {
    let sources = policy::load(&args.policies)?;
    let policies = Arc::new(PolicySet::compile(&sources)?);
    block_on(backfill(args, &sources, policies))
}

async fn backfill(
    args: &Args,
    sources: &[Source],
    policies: Arc<PolicySet>,
) -> anyhow::Result<Outcome> {
    // Before anything else: a signal from here on is an orderly end.
    let mut stop = watch_signals()?;
    let prepared = tokio::select! {
        prepared = Prepared::ask(args, sources, &policies) => prepared?,
        Ok(_) = stop.wait_for(|stop| *stop) => return Err(stopped(args)),
    };
    let Prepared { cluster, targets, unavailable, mut journal, checks, plan, total } = prepared;
    let format = match (args.output, args.dry_run) {
        (Output::Json, dry_run) => Format::Json { dry_run },
        (Output::Table, true) => Format::Diff,
        (Output::Table, false) => Format::Findings,
    };
    let mut teller = Teller::new(Arc::clone(&policies), format, total);
    let run = Backfill::new(&cluster, policies, &plan, &mut journal, &mut teller, stop);
    let end = run.run(&targets).await;
    let told = teller.finish();
    let outcome = conclude(args, &unavailable, end)?;
    told.context("cannot write the report")?;
    let findings = teller.has_findings() || checks::has_problem(&checks);
    Ok(if findings { Outcome::Findings } else { outcome })
}

/// What has to be known before the first object.
struct Prepared {
    cluster: Cluster,
    targets: Vec<Target>,
    /// Groups that could not be asked.
    unavailable: Vec<String>,
    journal: Journal,
    checks: Vec<Check>,
    plan: Plan,
    total: Option<u64>,
}

impl Prepared {
    async fn ask(args: &Args, sources: &[Source], policies: &PolicySet) -> anyhow::Result<Self> {
        let cluster = args.connection.open().await?;
        let found = cluster.targets(policies).await?;
        let mut checks = precheck::gaps(&found);
        // First of all: they may be why there is nothing to go over.
        checks::complain(&mut io::stderr(), &checks)?;
        let unavailable = found.unavailable().map(str::to_owned).collect();
        let targets = args.selection.narrow(found.list, &found.gaps)?;
        checks::complain_of_nothing(&mut io::stderr(), &targets)?;
        let mut journal = open_journal(args, sources, &cluster).await?;
        let mut schemas = Vec::new();
        for target in &targets {
            let definition = cluster.definition(target).await?;
            journal.define(target, definition.uid());
            schemas.extend(precheck::schema(policies, target, &definition));
        }
        checks::complain(&mut io::stderr(), &schemas)?;
        checks.extend(schemas);
        let plan = Plan {
            query: args.selection.query(),
            shard: args.shard,
            concurrency: args.concurrency.into(),
            qps: args.qps,
            dry_run: args.dry_run,
            distrusted: problems(&checks),
            clock,
        };
        let left = targets.iter().filter(|target| journal.finished(target).is_none());
        let total = count(&cluster, left, &plan, args.shard).await;
        Ok(Self { cluster, targets, unavailable, journal, checks, plan, total })
    }
}

/// The end of a run as the end of the command.
fn conclude(
    args: &Args,
    unavailable: &[String],
    end: Result<End, BackfillError>,
) -> anyhow::Result<Outcome> {
    let End { stopped, failures } = match end {
        Ok(end) => end,
        // Not the broken pipe of a reader who has seen enough: objects are still waiting.
        Err(BackfillError::Report(error)) if !args.dry_run => {
            return Err(anyhow!("stopped: nobody reads the report any more ({error})"));
        }
        Err(error) => return Err(error.into()),
    };
    if stopped {
        return Err(self::stopped(args));
    }
    let groups = unavailable.iter();
    let groups = groups.map(|group| anyhow!("left out {group}: its server does not answer"));
    let mut failures = failures.into_iter().map(anyhow::Error::from).chain(groups);
    let Some(last) = failures.next_back() else { return Ok(Outcome::Clean) };
    for failure in failures {
        writeln!(io::stderr(), "{failure:#}")?;
    }
    Err(last)
}

fn stopped(args: &Args) -> anyhow::Error {
    let again = match &args.resume {
        Some(path) => format!("the same command goes on from {}", path.display()),
        None => "the same command goes on: what was written needs nothing".to_owned(),
    };
    anyhow!("stopped before the end; {again}")
}

async fn open_journal(
    args: &Args,
    sources: &[Source],
    cluster: &Cluster,
) -> anyhow::Result<Journal> {
    let Some(path) = &args.resume else { return Ok(Journal::default()) };
    let objects = format!("{}, shard {}", args.selection.describe(), args.shard);
    let documents = sources.iter().map(|source| source.text.as_str());
    let fingerprint = cluster.fingerprint().await?;
    let scope = Scope::new(cluster.server(), &fingerprint, documents, objects);
    Ok(Journal::open(path, &scope)?)
}

/// What has a problem.
fn problems(checks: &[Check]) -> Vec<String> {
    let problems = checks.iter().filter(|check| check.level == Level::Problem);
    problems.map(|check| check.subject.clone()).collect()
}

/// How many objects there are to go over; nothing where the server does not say.
async fn count(
    cluster: &Cluster,
    targets: impl Iterator<Item = &Target>,
    plan: &Plan,
    shard: Shard,
) -> Option<u64> {
    let mut total = 0;
    for target in targets {
        // What keeps this from being listed is told by the run itself.
        total += cluster.count(target, &plan.query).await.ok()??;
    }
    // Uids are spread evenly.
    Some(total.div_ceil(shard.count().into()))
}

/// Turns true at the first SIGINT or SIGTERM. The second one ends the process.
fn watch_signals() -> anyhow::Result<watch::Receiver<bool>> {
    let mut interrupt = signal(SignalKind::interrupt()).context("failed to listen to signals")?;
    let mut terminate = signal(SignalKind::terminate()).context("failed to listen to signals")?;
    let (sender, receiver) = watch::channel(false);
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if sender.send_replace(true) {
                // As safe as SIGKILL: the journal has every write that was confirmed.
                std::process::exit(2);
            }
            let _ = writeln!(io::stderr(), "stopping: what is being written is finished first");
        }
    });
    Ok(receiver)
}

fn parse_rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if rate == 0.0 || (0.01..=100_000.0).contains(&rate) => Ok(rate),
        _ => Err("it is a number of requests a second, such as 50 or 0.5".to_owned()),
    }
}

#[expect(clippy::disallowed_methods, reason = "the edge: a command reads the clock")]
fn clock() -> Timestamp {
    Timestamp::now()
}
