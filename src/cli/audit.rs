//! `statusgate audit`: stored objects judged, once or again and again.

mod json;
mod table;
mod watch;

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::ValueEnum;
use jiff::Timestamp;

use super::connection::{Connection, Selection, block_on};
use super::fail_on::FailOn;
use super::progress::Progress;
use super::{Outcome, checks, duration};
use crate::cluster::audit::{Audience, Findings, Judged, Plan, Scope, Store, Stored, audit};
use crate::cluster::{Check, Cluster, Target, Targets, precheck, told};
use crate::policy::{self, PolicySet};

/// What `audit` can be told.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Judges every stored object as the webhooks would judge this very state if it were \
                  written for the first time, as a write of nobody in particular. Changes no object.\n\n\
                  Exit code 0: nothing at or above --fail-on. 1: findings. 2: something could not be \
                  judged; everything else was, and is printed all the same. With --watch: 0 after \
                  SIGTERM."
)]
pub struct Args {
    /// Policies: a file or a folder. May be repeated. Without it: the example policies.
    #[arg(long, value_name = "PATH")]
    policies: Vec<PathBuf>,

    #[command(flatten)]
    connection: Connection,

    #[command(flatten)]
    selection: Selection,

    /// Count a disagreement (of phase and conditions) only where the newest transition time of the
    /// object is older than this. Default: all count; with --watch: 10m.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    older_than: Option<Duration>,

    /// The mildest finding that gives exit code 1.
    #[arg(long, value_name = "ACTION", value_enum, ignore_case = true, default_value = "Deny")]
    fail_on: FailOn,

    /// How it is told. `table`: counts, and examples for each rule. `json`: a line an object, and
    /// one with the counts. `policyreport`: a List of wgpolicyk8s.io/v1alpha2 documents.
    #[arg(short, long, value_enum, default_value = "table", conflicts_with = "watch")]
    output: Output,

    /// Objects to name for each rule in the table.
    #[arg(long, value_name = "NUMBER", default_value = "3")]
    examples: u16,

    /// Store the reports: one PolicyReport a namespace, one ClusterPolicyReport. Those of
    /// namespaces where nothing is judged any more are deleted.
    #[arg(long)]
    write: bool,

    /// Go on: audit again and again, and show the counts as metrics.
    #[arg(long)]
    watch: bool,

    /// From the begin of one pass to that of the next.
    #[arg(long, value_name = "DURATION", default_value = "60s", requires = "watch",
          value_parser = duration::parse_positive)]
    interval: Duration,

    /// Address and port for /metrics, /healthz, /livez and /readyz (plain HTTP) of a watch.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080", requires = "watch")]
    probe_listen: SocketAddr,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    Table,
    Json,
    #[value(name = "policyreport")]
    PolicyReport,
}

/// Judges stored objects.
///
/// # Errors
/// When something could not be judged, or not be told.
pub fn run(args: &Args) -> anyhow::Result<Outcome> {
    let policies = args.load_policies()?;
    args.check()?;
    if args.watch {
        return watch::run(args, policies);
    }
    block_on(once(args, &policies))
}

async fn once(args: &Args, policies: &PolicySet) -> anyhow::Result<Outcome> {
    let found = Found::ask(args, policies).await?;
    checks::complain(&mut io::stderr(), &found.gaps)?;
    let pass = found.narrow(args, args.older_than, args.output)?;
    checks::complain_of_nothing(&mut io::stderr(), &pass.targets)?;
    let mut store = match args.write {
        true => Some(Store::find(&pass.cluster).await?),
        false => None,
    };
    let total = pass.count().await;
    let mut teller =
        Teller { policies, output: args.output, progress: Progress::new("audit", total) };
    let findings = pass.run(policies, &mut teller).await;
    teller.progress.finish();
    let findings = findings.context("cannot write the report")?;
    print(args, &findings).context("cannot write the report")?;
    if let Some(store) = &mut store {
        let stored = pass.write(args, store, &findings).await?;
        let Stored { written, deleted, mut failures, .. } = stored;
        writeln!(io::stderr(), "{written} reports written, {deleted} deleted")?;
        if let Some(last) = failures.pop() {
            for failure in failures {
                writeln!(io::stderr(), "{}", told(&failure))?;
            }
            return Err(last.into());
        }
    }
    pass.conclude(&findings)?;
    let fails = findings.tally.worst().is_some_and(|worst| args.fail_on.includes(worst));
    // A policy that looks at the wrong request judges nothing, which must not pass for clean.
    Ok(if fails || checks::has_problem(&pass.gaps) { Outcome::Findings } else { Outcome::Clean })
}

fn print(args: &Args, findings: &Findings) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match args.output {
        Output::Table => table::write(&mut out, findings, args.older_than)?,
        Output::Json => writeln!(out, "{}", json::summary(findings))?,
        Output::PolicyReport => {
            // A List, which kubectl applies; one document after the other, for there may be many.
            write!(out, "{{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[")?;
            for (number, (_, document)) in findings.reports.documents().enumerate() {
                let comma = if number == 0 { "" } else { "," };
                write!(out, "{comma}\n{document}")?;
            }
            writeln!(out, "\n]}}")?;
        }
    }
    out.flush()
}

impl Args {
    fn load_policies(&self) -> anyhow::Result<PolicySet> {
        let sources = policy::load(&self.policies)?;
        Ok(PolicySet::compile(&sources)?)
    }

    /// What clap cannot see.
    fn check(&self) -> anyhow::Result<()> {
        if self.write && self.selection.is_partial() {
            bail!(
                "--write takes all objects of a namespace: with --selector, --resource or --kind a \
                 report would lose what is left out (--namespace is fine)"
            );
        }
        Ok(())
    }

    fn scope(&self) -> Scope {
        match self.selection.query().namespace {
            namespace if namespace.is_empty() => Scope::Everything,
            namespace => Scope::Namespace(namespace),
        }
    }
}

/// What the policies mean in the cluster. The gaps are there to be told before anything else: they may
/// be why nothing is left.
struct Found {
    cluster: Cluster,
    targets: Targets,
    gaps: Vec<Check>,
}

/// One pass over everything that is selected.
struct Pass {
    cluster: Cluster,
    targets: Vec<Target>,
    gaps: Vec<Check>,
    /// API groups whose server does not answer.
    unavailable: Vec<String>,
    plan: Plan,
}

impl Found {
    async fn ask(args: &Args, policies: &PolicySet) -> anyhow::Result<Self> {
        let cluster = args.connection.open().await?;
        let targets = cluster.targets(policies).await?;
        let gaps = precheck::gaps(&targets);
        Ok(Self { cluster, targets, gaps })
    }

    fn narrow(
        self,
        args: &Args,
        older_than: Option<Duration>,
        output: Output,
    ) -> anyhow::Result<Pass> {
        let Self { cluster, targets, gaps } = self;
        let unavailable = targets.unavailable().map(str::to_owned).collect();
        let targets = args.selection.narrow(targets.list, &targets.gaps)?;
        let seconds = |duration: Duration| i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
        let plan = Plan {
            query: args.selection.query(),
            older_than: older_than.map(seconds),
            examples: args.examples.into(),
            reports: args.write || output == Output::PolicyReport,
            clock,
        };
        Ok(Pass { cluster, targets, gaps, unavailable, plan })
    }
}

impl Pass {
    async fn run(
        &self,
        policies: &PolicySet,
        audience: &mut (dyn Audience + Send),
    ) -> io::Result<Findings> {
        audit(&self.cluster, policies, &self.plan, &self.targets, audience).await
    }

    /// How many objects there are; nothing where the server does not say.
    async fn count(&self) -> Option<u64> {
        let mut total = 0;
        for target in &self.targets {
            // What keeps this from being listed is told by the run itself.
            total += self.cluster.count(target, &self.plan.query).await.ok()??;
        }
        Some(total)
    }

    /// Stores the reports of a pass that reached everything: one that did not would take away what
    /// it has not seen.
    async fn write(
        &self,
        args: &Args,
        store: &mut Store,
        findings: &Findings,
    ) -> anyhow::Result<Stored> {
        // The reports of before would be deleted for a mistake in a policy.
        if self.targets.is_empty() {
            bail!("no report was written, for nothing could be judged");
        }
        if let Some(reason) = self.unreached(findings).pop() {
            bail!("no report was written, for not everything could be judged: {reason}");
        }
        Ok(store.write(&self.cluster, &findings.reports, &args.scope()).await?)
    }

    /// What could not be judged, as an error: all but the last are printed.
    fn conclude(&self, findings: &Findings) -> anyhow::Result<()> {
        let mut said = self.unreached(findings);
        let (broken, examples) = &findings.tally.broken;
        if *broken > 0 {
            said.push(format!("{broken} objects could not be judged: {}", examples.join("; ")));
        }
        let Some(last) = said.pop() else { return Ok(()) };
        for line in said {
            writeln!(io::stderr(), "{line}")?;
        }
        bail!(last)
    }

    /// The kinds and groups that could not be listed, and why.
    fn unreached(&self, findings: &Findings) -> Vec<String> {
        let groups = self.unavailable.iter();
        let groups =
            groups.map(|group| format!("cannot judge {group}: its server does not answer"));
        findings.failures.iter().map(|failure| told(failure)).chain(groups).collect()
    }
}

/// Tells of objects as they come.
struct Teller<'p> {
    policies: &'p PolicySet,
    output: Output,
    progress: Progress,
}

impl Audience for Teller<'_> {
    fn object(&mut self, target: &Target, judged: &Judged<'_>) -> io::Result<()> {
        if self.output == Output::Json {
            let line = json::object(self.policies, target, judged);
            self.progress.aside(|| writeln!(io::stdout(), "{line}"))?;
        }
        self.progress.advance(1);
        self.progress.tick(|| target.name());
        Ok(())
    }
}

#[expect(clippy::disallowed_methods, reason = "the edge: a command reads the clock")]
fn clock() -> Timestamp {
    Timestamp::now()
}
