//! `statusgate backfill`: sets missing defaults of stored objects, through `/status`.

use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use tokio::sync::watch;

use super::backfill_report::Reporter;
use super::connection::block_on;
use super::output::Output;
use super::policies::judging;
use super::signals::Signals;
use super::survey::{Survey, SurveyArgs};
use super::{NO_REPORT, Outcome, checks, fail_with, say, time};
use statusgate_cluster::backfill::{BackfillRun, End, Plan, Shard};
use statusgate_cluster::{CheckResult, Level, RunError, precheck};
use statusgate_core::policy::PolicySet;
use statusgate_server::files;

/// The arguments of `backfill`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Makes the change to each stored object that the mutating webhook would make at the \
                  next status write. Without --repair, a stored disagreement between phase and \
                  conditions stays.\n\n\
                  Exit code 0: all objects are up to date (with --dry-run: can be updated). 1: an object \
                  was rejected or failed, or a CRD does not declare a field that has a default. 2: \
                  backfill failed or was stopped; the report contains the completed writes. The same \
                  command continues a stopped run."
)]
pub(super) struct Args {
    #[command(flatten)]
    on: SurveyArgs,

    /// Print the changes, but write nothing.
    #[arg(long)]
    pub(super) dry_run: bool,

    /// Also set the phase that the conditions support where the stored phase disagrees with them, as
    /// `disagreement: Repair` would. Preview with --dry-run.
    #[arg(long)]
    pub(super) repair: bool,

    /// The number of concurrent writes.
    #[arg(long, value_name = "NUMBER", default_value = "8",
          value_parser = clap::value_parser!(u16).range(1..=256))]
    concurrency: u16,

    /// The maximum number of requests for single objects per second. 0: no limit.
    #[arg(long, value_name = "NUMBER", default_value = "0", value_parser = rate)]
    qps: f64,

    /// Process only part I of N equal parts, starting at 0. Use it to run several processes.
    #[arg(long, value_name = "I/N", default_value_t = Shard::WHOLE)]
    shard: Shard,

    /// `table`: findings, then totals. `json`: one line per object, as soon as it is processed; totals on
    /// stderr.
    #[arg(short, long, value_enum, default_value = "table")]
    pub(super) output: Output,
}

/// Sets the defaults of stored objects.
///
/// # Errors
/// When the run ends early.
pub(super) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let policies = judging(&files::load_policies_or_examples(&args.on.policies.paths)?)?;
    let policies = if args.repair { policies.repairing() } else { policies };
    block_on(backfill(args, Arc::new(policies)))
}

async fn backfill(args: &Args, policies: Arc<PolicySet>) -> anyhow::Result<Outcome> {
    // First of all: from here on, a signal leads to an orderly end.
    let mut stop = watch_signals()?;
    let prepared = tokio::select! {
        prepared = Prepared::new(args, &policies) => prepared?,
        Ok(_) = stop.wait_for(|stop| *stop) => bail!(STOPPED),
    };
    let Prepared { survey, checks, plan, total } = prepared;
    let mut reporter = Reporter::new(args, Arc::clone(&policies), total);
    let run = BackfillRun::new(&survey.cluster, policies, plan, &mut reporter, stop);
    let end = run.run(&survey.targets).await;
    let printed = reporter.finish();
    conclude(args, &survey.unavailable, end)?;
    printed.context(NO_REPORT)?;
    Ok(Outcome::of(reporter.has_findings() || checks::has_problem(&checks)))
}

/// The state before the first object.
struct Prepared {
    survey: Survey,
    checks: Vec<CheckResult>,
    plan: Plan,
    total: Option<u64>,
}

impl Prepared {
    async fn new(args: &Args, policies: &PolicySet) -> anyhow::Result<Self> {
        let survey = args.on.print(policies).await?;
        let mut checks = Vec::new();
        for target in &survey.targets {
            let definition = survey.cluster.definition(target).await?;
            checks.extend(precheck::schema(policies, target, &definition));
        }
        checks::complain(&checks);
        let problems = checks.iter().filter(|check| check.level == Level::Problem);
        let plan = Plan {
            query: args.on.selection.query(),
            shard: args.shard,
            concurrency: args.concurrency.into(),
            qps: args.qps,
            dry_run: args.dry_run,
            distrusted: problems.map(|check| check.subject.clone()).collect(),
            clock: time::clock,
        };
        let objects = survey.count(&plan.query).await;
        // The hash spreads uids evenly over the shards.
        let total = objects.map(|objects| objects.div_ceil(args.shard.count().into()));
        checks.extend_from_slice(&survey.gaps);
        Ok(Self { survey, checks, plan, total })
    }
}

/// Turns the end of a run into an error if it is incomplete.
fn conclude(args: &Args, unavailable: &[String], end: Result<End, RunError>) -> anyhow::Result<()> {
    let End { stopped, failures } = match end {
        Ok(end) => end,
        // A closed pipe is an error here: objects remain.
        Err(RunError::Report(error)) if !args.dry_run => {
            return Err(anyhow!("stopped: cannot write the report ({error})"));
        }
        Err(RunError::Report(error)) => return Err(error).context(NO_REPORT),
        Err(error) => return Err(error.into()),
    };
    if stopped {
        bail!(STOPPED);
    }
    let groups = unavailable.iter();
    let groups = groups.map(|group| anyhow!("skipped {group}: its server does not respond"));
    fail_with(failures.into_iter().map(anyhow::Error::from).chain(groups))
}

/// Turns true at the first signal. The second signal ends the process.
fn watch_signals() -> anyhow::Result<watch::Receiver<bool>> {
    let mut signals = Signals::listen()?;
    let (sender, receiver) = watch::channel(false);
    tokio::spawn(async move {
        loop {
            signals.next().await;
            if sender.send_replace(true) {
                // As safe as SIGKILL: the next run finds what is left.
                std::process::exit(2);
            }
            say("stopping after the writes in progress");
        }
    });
    Ok(receiver)
}

const STOPPED: &str = "stopped before the end; run the same command to continue";

/// Reads a number of requests per second; 0 means no limit.
fn rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if rate == 0.0 || (0.01..=100_000.0).contains(&rate) => Ok(rate),
        _ => Err("expected a number of requests per second, such as 50 or 0.5".to_owned()),
    }
}
