//! `statusgate audit`: judges stored objects, once or repeatedly.

mod table;
mod watch;

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::ValueEnum;

use super::action::{LIMITS, one_of};
use super::connection::block_on;
use super::output::stdout;
use super::plurals::{read_schemas, with_new};
use super::progress::Progress;
use super::survey::{Survey, SurveyArgs};
use super::{NO_REPORT, Outcome, checks, fail_with, say, time};
use statusgate_cluster::RunError;
use statusgate_cluster::audit::{Findings, Plan, ReportApi, ReportCounts, Store, audit, json};
use statusgate_core::causes::with_causes;
use statusgate_core::engine::{Action, HealthStatus};
use statusgate_core::policy::PolicySet;
use statusgate_core::schema::minor_of;
use statusgate_core::values;

/// The arguments of `audit`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Judges each stored object as if its status were written for the first time, by an \
                  unnamed user. Changes no object. Without --policies, resources that the example policies \
                  name and the cluster does not serve are left out without a note.\n\n\
                  Exit code 0: no finding at or above --fail-on, and no object with a health of \
                  --fail-on-health. 1: otherwise. 2: some objects could not \
                  be judged; the results of the others are printed. With --watch: 0 after SIGTERM."
)]
pub(super) struct Args {
    #[command(flatten)]
    on: SurveyArgs,

    /// New CustomResourceDefinitions: files or folders. The findings crd/… are what the API server will reject, as its
    /// version does. May be repeated.
    #[arg(long, value_name = "PATH", conflicts_with_all = ["watch", "write"])]
    crds: Vec<PathBuf>,

    /// Judge these CRDs as this version of the API server, such as 1.33: older ones forgive less. Default: the version of the cluster.
    #[arg(long, value_name = "VERSION", requires = "crds", value_parser = minor_of)]
    kubernetes_version: Option<u32>,

    /// Count a disagreement between phase and conditions only if the newest transition time of the
    /// object is older than this. Default: count all; with --watch: 10m.
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    older_than: Option<Duration>,

    /// The mildest action that causes exit code 1. `warn` includes repairs. Case does not matter.
    #[arg(long, value_name = "ACTION", ignore_case = true, default_value = "deny",
          value_parser = one_of(LIMITS, Action::label))]
    fail_on: Action,

    /// A health of an object that causes exit code 1, too. May be repeated.
    #[arg(long, value_name = "HEALTH", ignore_case = true,
          value_parser = one_of(HealthStatus::WORST_FIRST, HealthStatus::name))]
    fail_on_health: Vec<HealthStatus>,

    /// `table`: counts, and examples for each rule. `json`: one line per object, and one with the
    /// counts. `policyreport`: a List of wgpolicyk8s.io/v1alpha2 documents. `openreports`: a List of
    /// openreports.io/v1alpha1 documents.
    #[arg(short, long, value_enum, default_value = "table", conflicts_with = "watch")]
    output: Output,

    /// The number of example objects for each rule in the table.
    #[arg(long, value_name = "NUMBER", default_value = "3")]
    examples: u16,

    /// Store the results as one PolicyReport per namespace and one ClusterPolicyReport, or as Reports of
    /// openreports.io if the cluster serves only these. Deletes the reports of namespaces that no
    /// longer have judged objects.
    #[arg(long)]
    write: bool,

    /// Repeat the audit, and serve the counts as metrics.
    #[arg(long)]
    watch: bool,

    /// The time from the start of one pass to the start of the next.
    #[arg(long, value_name = "DURATION", default_value = "60s", requires = "watch",
          value_parser = values::positive_duration)]
    interval: Duration,

    /// With --watch: address and port for /metrics, /healthz, /livez and /readyz (plain HTTP).
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080", requires = "watch")]
    probe_listen: SocketAddr,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    Table,
    Json,
    #[value(name = "policyreport")]
    PolicyReport,
    #[value(name = "openreports")]
    OpenReports,
}

impl Output {
    /// The API of the reports that are printed.
    const fn reports(self) -> Option<ReportApi> {
        match self {
            Self::Table | Self::Json => None,
            Self::PolicyReport => Some(ReportApi::PolicyReport),
            Self::OpenReports => Some(ReportApi::OpenReports),
        }
    }
}

/// Judges stored objects.
///
/// # Errors
/// When some objects could not be judged, or the report cannot be written.
pub(super) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let policies = args.on.policies.load()?;
    if args.write && args.on.selection.is_partial() {
        bail!(
            "--write needs all objects of a namespace: it does not work with --selector, --resource \
             or --kind"
        );
    }
    if args.watch {
        return watch::run(args, policies);
    }
    block_on(once(args, policies))
}

async fn once(args: &Args, policies: PolicySet) -> anyhow::Result<Outcome> {
    let survey = args.on.print(&policies).await?;
    let minor = args.kubernetes_version.unwrap_or_else(|| survey.cluster.minor());
    let (_, versions) = read_schemas(&args.crds, true, minor)?;
    let policies = &with_new(policies, versions);
    let mut store = if args.write { Some(Store::find(&survey.cluster).await?) } else { None };
    let plan = args.plan(args.older_than);
    let total = survey.count(&plan.query).await;
    let mut progress = Progress::new("audit", total);
    let mut printed = Ok(());
    let (cluster, targets) = (&survey.cluster, &survey.targets);
    let findings = audit(cluster, policies, &plan, targets, &mut |target, judged| {
        if args.output == Output::Json && printed.is_ok() {
            let line = json::object(policies, target, judged);
            let result = progress.aside(|| writeln!(io::stdout(), "{line}"));
            // `--write` needs all objects.
            if args.write { printed = result } else { result? }
        }
        progress.advance(1);
        progress.tick(|| target.name());
        Ok(())
    })
    .await;
    progress.finish();
    let findings = match findings {
        Err(RunError::Report(error)) => return Err(error).context(NO_REPORT),
        findings => findings?,
    };
    let printed = printed.and_then(|()| print(args, &findings));
    if let Some(store) = &mut store {
        let stored = write(args, &survey, store, &findings).await?;
        let ReportCounts { written, deleted, failures, .. } = stored;
        say(format_args!("{written} reports written, {deleted} deleted"));
        fail_with(failures.iter().map(|failure| anyhow::Error::msg(with_causes(failure))))?;
    }
    printed.context(NO_REPORT)?;
    let mut errors = survey.unreached(&findings);
    let (broken, examples) = &findings.tally.broken;
    if *broken > 0 {
        errors.push(format!("{broken} objects could not be judged: {}", examples.join("; ")));
    }
    fail_with(errors.into_iter().map(anyhow::Error::msg))?;
    let fails = findings.tally.worst().is_some_and(|worst| worst >= args.fail_on)
        || args.fail_on_health.iter().any(|health| findings.tally.has_health(*health));
    // A policy with the wrong statusSubresource judges nothing; this must not pass as clean.
    Ok(Outcome::of(fails || checks::has_problem(&survey.gaps)))
}

fn print(args: &Args, findings: &Findings) -> io::Result<()> {
    let mut out = stdout(args.output == Output::Table);
    if let Some(api) = args.output.reports() {
        // A List, for kubectl. Written document by document to save memory.
        write!(out, "{{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[")?;
        for (number, (_, document)) in findings.reports.documents(api).enumerate() {
            let comma = if number == 0 { "" } else { "," };
            write!(out, "{comma}\n{document}")?;
        }
        writeln!(out, "\n]}}")?;
    } else if args.output == Output::Json {
        writeln!(out, "{}", json::summary(findings))?;
    } else {
        table::write(&mut out, findings, args.older_than)?;
    }
    out.flush()
}

impl Args {
    fn plan(&self, older_than: Option<Duration>) -> Plan {
        Plan {
            query: self.on.selection.query(),
            older_than: older_than.map(|of| i64::try_from(of.as_secs()).unwrap_or(i64::MAX)),
            examples: self.examples.into(),
            reports: self.write || self.output.reports().is_some(),
            clock: time::clock,
        }
    }
}

/// Stores the reports of a complete pass. An incomplete one would delete results that it did not see.
async fn write(
    args: &Args,
    survey: &Survey,
    store: &mut Store,
    findings: &Findings,
) -> anyhow::Result<ReportCounts> {
    // An error in a policy must not delete the stored reports.
    if survey.targets.is_empty() {
        bail!("no report was written: no resource could be judged");
    }
    if let Some(reason) = survey.unreached(findings).pop() {
        bail!("no report was written: the audit is incomplete: {reason}");
    }
    let namespace = args.on.selection.query().namespace;
    Ok(store.write(&survey.cluster, &findings.reports, &namespace).await?)
}
