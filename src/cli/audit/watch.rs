//! `audit --watch`: repeats the audit and serves the counts as metrics.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::{MissedTickBehavior, interval};

use super::super::connection::block_on;
use super::super::signals::Signals;
use super::super::survey::Survey;
use super::super::{Outcome, time};
use super::Args;
use crate::cluster::audit::{Findings, Store, Stored, audit};
use crate::cluster::{Check, told};
use crate::engine::Action;
use crate::policy::PolicySet;
use crate::server::{ProbePort, Readiness};
use crate::telemetry::logs::{self, Format, Logs};
use crate::telemetry::{AuditMetrics, AuditNumbers, PolicyLabels};

/// Audits until a signal arrives.
pub(super) fn run(args: &Args, policies: PolicySet) -> anyhow::Result<Outcome> {
    let _logs = Logs::start(Format::for_stderr(), "info")?;
    logs::log_panics_without_their_message();
    block_on(watch(args, policies))?;
    Ok(Outcome::Clean)
}

async fn watch(args: &Args, policies: PolicySet) -> anyhow::Result<()> {
    let mut signals = Signals::listen()?;
    let metrics = Arc::new(AuditMetrics::default());
    let readiness = Readiness::blocked_by([NO_PASS]);
    let port = ProbePort::open(args.probe_listen, false, readiness.clone(), metrics.clone())?;
    // An error at the start is a configuration error and ends the process. Later errors are logged
    // and counted.
    let cluster = args.connection.open().await?;
    let store = if args.write { Some(Store::find(&cluster).await?) } else { None };
    tracing::info!(probe_address = %port.address(), interval = ?args.interval, "watching");
    let mut watch = Watch { args, policies, metrics, store, gaps: Vec::new() };
    let mut passes = interval(args.interval);
    passes.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let watching = async {
        loop {
            passes.tick().await;
            if watch.pass().await {
                readiness.unblock(NO_PASS);
            }
        }
    };
    // A signal cancels the pass in progress: it only reads, and the next run writes its reports.
    tokio::select! {
        () = watching => {}
        () = signals.next() => {}
    }
    tracing::info!("shutting down");
    port.close().await;
    Ok(())
}

/// The state between passes.
struct Watch<'a> {
    args: &'a Args,
    policies: PolicySet,
    metrics: Arc<AuditMetrics>,
    store: Option<Store>,
    /// The gaps of the last pass.
    gaps: Vec<Check>,
}

impl Watch<'_> {
    /// Runs one pass. Returns whether it succeeded.
    async fn pass(&mut self) -> bool {
        let loaded = self.args.policies.load();
        self.metrics.policies(loaded.is_err());
        match loaded {
            Ok(policies) => self.policies = policies,
            Err(error) => {
                let error = format!("{error:#}");
                tracing::error!(error, "invalid policies: keeping the last valid ones");
            }
        }
        let result = self.try_pass().await;
        if let Err(error) = &result {
            tracing::error!(error = format!("{error:#}"), "a pass failed");
            self.metrics.failed();
        }
        result.is_ok()
    }

    async fn try_pass(&mut self) -> anyhow::Result<()> {
        let start = Instant::now();
        let plan = self.args.plan(Some(self.args.older_than.unwrap_or(LASTING)));
        let Args { connection, selection, .. } = self.args;
        let report = |found: &[Check]| {
            log_gaps(&self.gaps, found);
            self.gaps = found.to_vec();
        };
        let survey = Survey::make(connection, selection, &self.policies, report).await?;
        let Survey { cluster, targets, .. } = &survey;
        let findings = audit(cluster, &self.policies, &plan, targets, &mut |_, _| Ok(())).await?;
        let mut numbers = numbers(&findings);
        numbers.gaps = count_gaps(&survey.gaps);
        numbers.unlisted.extend(survey.unavailable.iter().cloned());
        numbers.seconds = start.elapsed().as_secs_f64();
        numbers.now = time::clock().as_second();
        self.metrics.show(&numbers);
        for failure in &findings.failures {
            tracing::error!(error = told(failure), "a kind could not be judged");
        }
        let count = |action| findings.tally.found.get(&action).copied().unwrap_or_default();
        tracing::info!(
            objects = findings.tally.objects,
            deny = count(Action::Deny),
            repair = count(Action::Repair),
            warn = count(Action::Warn),
            audit = count(Action::Audit),
            lasting = numbers.disagreements.iter().map(|(.., lasting)| lasting).sum::<u64>(),
            seconds = numbers.seconds,
            "audited"
        );
        // After the metrics: a server that rejects reports may be slow.
        self.write(&survey, &findings).await;
        Ok(())
    }

    async fn write(&mut self, survey: &Survey, findings: &Findings) {
        let Some(store) = &mut self.store else { return };
        let failed = match super::write(self.args, survey, store, findings).await {
            Ok(Stored { written, unchanged, deleted, failures }) => {
                for failure in &failures {
                    tracing::error!(error = told(failure), "a report could not be stored");
                }
                tracing::debug!(written, unchanged, deleted, "reports");
                failures.len()
            }
            Err(error) => {
                tracing::error!(error = format!("{error:#}"), "no more reports could be stored");
                findings.reports.documents().count().max(1)
            }
        };
        self.metrics.reports(failed);
    }
}

/// Logs the gaps that are new or resolved since the last pass.
fn log_gaps(known: &[Check], found: &[Check]) {
    for check in found.iter().filter(|check| !known.contains(check)) {
        let Check { subject, message, help, .. } = check;
        tracing::warn!(of = subject, found = message, help, "not judged");
    }
    for check in known.iter().filter(|check| !found.contains(check)) {
        tracing::info!(of = check.subject, was = check.message, "resolved");
    }
}

/// The number of gaps per check, including zeros: alerts need them.
fn count_gaps(gaps: &[Check]) -> Vec<(&'static str, u64)> {
    let count = |id: &str| gaps.iter().filter(|check| check.id == id).count() as u64;
    ["served", "subresource", "api-group"].map(|id| (id, count(id))).into()
}

/// The counts as metrics. Incomplete kinds are omitted: a number that is too low would end a correct
/// alert.
fn numbers(findings: &Findings) -> AuditNumbers {
    let mut numbers = AuditNumbers { unjudged: findings.tally.broken.0, ..AuditNumbers::default() };
    for row in findings.tally.worst_first() {
        let resource = row.target.name();
        if !row.complete {
            if !numbers.unlisted.contains(&resource) {
                numbers.unlisted.push(resource);
            }
            continue;
        }
        let of = PolicyLabels { policy: row.policy.clone(), resource };
        let phases = row.phases.iter().map(|(phase, count)| (of.clone(), phase.clone(), *count));
        numbers.objects.extend(phases);
        let conditions =
            row.conditions.iter().map(|(key, count)| (of.clone(), key.clone(), *count));
        numbers.conditions.extend(conditions);
        let findings = row.rules.iter().map(|((rule, action), sums)| {
            (of.clone(), (rule.clone(), action.label()), sums.objects)
        });
        numbers.findings.extend(findings);
        numbers.disagreements.push((of.clone(), row.disagreements, row.lasting));
        numbers.to_fill_in.push((of, row.fills_in));
    }
    numbers
}

/// The reason of `/readyz` before the end of the first pass.
const NO_PASS: &str = "the first pass has not finished";

/// Longer than controllers need to write phase and conditions in sequence, and than most retries.
const LASTING: Duration = Duration::from_secs(600);
