//! An audit again and again: the counts as metrics, for an alert on what lasts.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{MissedTickBehavior, interval};

use super::super::Outcome;
use super::super::connection::block_on;
use super::{Args, Found, Output, Pass, clock};
use crate::cluster::audit::{Audience, Findings, Judged, Store, Stored};
use crate::cluster::{Check, Target, told};
use crate::engine::Action;
use crate::policy::PolicySet;
use crate::server::{ProbePort, Readiness};
use crate::telemetry::logs::{self, Format, Logs};
use crate::telemetry::{AuditMetrics, AuditNumbers, PolicyLabels};

/// Audits until a signal ends it.
pub(super) fn run(args: &Args, policies: PolicySet) -> anyhow::Result<Outcome> {
    let _logs = Logs::start(Format::for_stderr(), "info")?;
    logs::log_panics_without_their_message();
    block_on(watch(args, policies))?;
    Ok(Outcome::Clean)
}

async fn watch(args: &Args, policies: PolicySet) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("failed to listen to signals")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("failed to listen to signals")?;
    let metrics = Arc::new(AuditMetrics::default());
    let readiness = Readiness::blocked_by([NO_PASS]);
    let port = ProbePort::open(args.probe_listen, false, readiness.clone(), metrics.clone())?;
    // What is wrong from the start is a mistake, and a person's to see; what goes wrong later
    // passes, and an alert's.
    let cluster = args.connection.open().await?;
    let store = match args.write {
        true => Some(Store::find(&cluster).await?),
        false => None,
    };
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
    // A pass in progress is dropped: it reads, and a report that was not written is the next one's.
    tokio::select! {
        () = watching => {}
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    tracing::info!("shutting down");
    port.close().await;
    Ok(())
}

/// What outlives a pass.
struct Watch<'a> {
    args: &'a Args,
    policies: PolicySet,
    metrics: Arc<AuditMetrics>,
    store: Option<Store>,
    /// What nobody judged in the last pass.
    gaps: Vec<Check>,
}

impl Watch<'_> {
    /// One pass; whether there is something to show.
    async fn pass(&mut self) -> bool {
        let loaded = self.args.load_policies();
        self.metrics.policies(loaded.is_err());
        match loaded {
            Ok(policies) => self.policies = policies,
            Err(error) => {
                tracing::error!(
                    error = format!("{error:#}"),
                    "broken policies, the last good ones stay"
                );
            }
        }
        match self.try_pass().await {
            Ok(()) => true,
            Err(error) => {
                tracing::error!(error = format!("{error:#}"), "a pass failed");
                self.metrics.failed();
                false
            }
        }
    }

    async fn try_pass(&mut self) -> anyhow::Result<()> {
        let start = Instant::now();
        let older_than = self.args.older_than.unwrap_or(LASTING);
        let found = Found::ask(self.args, &self.policies).await?;
        self.tell_gaps(&found.gaps);
        let pass = found.narrow(self.args, Some(older_than), Output::Table)?;
        let findings = pass.run(&self.policies, &mut Nobody).await?;
        let mut numbers = numbers(&findings);
        numbers.gaps = count_gaps(&pass.gaps);
        numbers.unlisted.extend(pass.unavailable.iter().cloned());
        numbers.seconds = start.elapsed().as_secs_f64();
        numbers.now = clock().as_second();
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
        // The numbers are shown before: a server that does not take reports may take its time.
        self.write(&pass, &findings).await;
        Ok(())
    }

    /// Says what nobody judges, each thing once for as long as it stays so.
    fn tell_gaps(&mut self, gaps: &[Check]) {
        for check in gaps.iter().filter(|check| !self.gaps.contains(check)) {
            let Check { subject, message, help, .. } = check;
            tracing::warn!(of = subject, found = message, help, "not judged");
        }
        for check in self.gaps.iter().filter(|check| !gaps.contains(check)) {
            tracing::info!(of = check.subject, was = check.message, "no longer so");
        }
        self.gaps = gaps.to_vec();
    }

    async fn write(&mut self, pass: &Pass, findings: &Findings) {
        let Some(store) = &mut self.store else { return };
        let failed = match pass.write(self.args, store, findings).await {
            Ok(stored) => {
                for failure in &stored.failures {
                    tracing::error!(error = told(failure), "a report could not be stored");
                }
                let Stored { written, unchanged, deleted, failures } = stored;
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

/// In a watch nobody is told of single objects.
struct Nobody;

impl Audience for Nobody {
    fn object(&mut self, _: &Target, _: &Judged<'_>) -> io::Result<()> {
        Ok(())
    }
}

/// How many of each kind. Those without a gap are there, too: an alert wants a zero.
fn count_gaps(gaps: &[Check]) -> Vec<(&'static str, u64)> {
    let count = |id: &str| gaps.iter().filter(|check| check.id == id).count() as u64;
    ["served", "subresource", "api-group"].map(|id| (id, count(id))).into()
}

/// The counts as metrics. What was not gone over to the end is left out: half a number would end an
/// alert that is right.
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

/// The reason of `/readyz` before the first pass has ended.
const NO_PASS: &str = "the first pass is not over";

/// Longer than any controller needs to write phase and conditions one after the other, and than
/// most take to try again.
const LASTING: Duration = Duration::from_secs(600);
