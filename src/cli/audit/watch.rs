//! `audit --watch`: repeats the audit and serves the counts as metrics.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::{MissedTickBehavior, interval};

use super::super::connection::block_on;
use super::super::signals::Signals;
use super::super::survey::{Survey, SurveyArgs};
use super::super::{Outcome, time};
use super::Args;
use statusgate_cluster::CheckResult;
use statusgate_cluster::audit::{Findings, ReportCounts, Row, Store, audit};
use statusgate_core::causes::with_causes;
use statusgate_core::engine::Action;
use statusgate_core::policy::PolicySet;
use statusgate_server::telemetry::logs::{self, Format, Logs};
use statusgate_server::telemetry::{AuditGauge, AuditMetrics};
use statusgate_server::{ProbePort, Readiness};

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
    let cluster = args.on.connection.open().await?;
    let store = if args.write { Some(Store::find(&cluster).await?) } else { None };
    tracing::info!(probe_address = %port.address, interval = ?args.interval, "watching");
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
    gaps: Vec<CheckResult>,
}

impl Watch<'_> {
    /// Runs one pass. Returns whether it succeeded.
    async fn pass(&mut self) -> bool {
        let loaded = self.args.on.policies.load();
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
        let SurveyArgs { connection, selection, .. } = &self.args.on;
        let cluster = connection.open().await?;
        let given = !self.args.on.policies.paths.is_empty();
        let survey = Survey::of(cluster, &self.policies, given, selection, |found| {
            log_gaps(&self.gaps, found);
            self.gaps = found.to_vec();
        })
        .await?;
        let Survey { cluster, targets, .. } = &survey;
        let findings = audit(cluster, &self.policies, &plan, targets, &mut |_, _| Ok(())).await?;
        let unlisted = unlisted(&findings, &survey);
        let success = unlisted.is_empty().then(|| time::clock().as_second());
        let seconds = start.elapsed().as_secs_f64();
        let gauges = gauges(&findings, &unlisted, &survey.gaps);
        self.metrics.show(gauges, seconds, success);
        for failure in &findings.failures {
            tracing::error!(error = with_causes(failure), "a kind could not be judged");
        }
        let count = |action| findings.tally.found.get(&action).copied().unwrap_or_default();
        tracing::info!(
            objects = findings.tally.objects,
            deny = count(Action::Deny),
            repair = count(Action::Repair),
            warn = count(Action::Warn),
            audit = count(Action::Audit),
            lasting = complete(&findings).iter().map(|row| row.lasting).sum::<u64>(),
            seconds,
            "audited"
        );
        // After the metrics: a server that rejects reports may be slow.
        self.write(&survey, &findings).await;
        Ok(())
    }

    async fn write(&mut self, survey: &Survey, findings: &Findings) {
        let Some(store) = &mut self.store else { return };
        let failed = match super::write(self.args, survey, store, findings).await {
            Ok(ReportCounts { written, unchanged, deleted, failures }) => {
                for failure in &failures {
                    tracing::error!(error = with_causes(failure), "a report could not be stored");
                }
                tracing::debug!(written, unchanged, deleted, "reports");
                failures.len()
            }
            Err(error) => {
                tracing::error!(error = format!("{error:#}"), "no more reports could be stored");
                findings.reports.count().max(1)
            }
        };
        self.metrics.reports(failed);
    }
}

/// Logs the gaps that are new or resolved since the last pass.
fn log_gaps(known: &[CheckResult], found: &[CheckResult]) {
    for check in found.iter().filter(|check| !known.contains(check)) {
        let CheckResult { subject, message, help, .. } = check;
        tracing::warn!(of = subject, found = message, help, "not judged");
    }
    for check in known.iter().filter(|check| !found.contains(check)) {
        tracing::info!(of = check.subject, was = check.message, "resolved");
    }
}

/// The resources and groups that could not be listed, each once.
fn unlisted(findings: &Findings, survey: &Survey) -> BTreeSet<String> {
    let rows = findings.tally.worst_first().into_iter().filter(|row| !row.complete);
    rows.map(|row| row.target.name()).chain(survey.unavailable.iter().cloned()).collect()
}

/// The kinds with metrics. Incomplete kinds are omitted: a number that is too low would end a correct
/// alert.
fn complete(findings: &Findings) -> Vec<&Row> {
    findings.tally.worst_first().into_iter().filter(|row| row.complete).collect()
}

/// Labels and values of one policy and resource.
type Values<'r> = Vec<(Vec<(&'static str, &'r str)>, u64)>;

/// The metrics of a pass.
fn gauges(
    findings: &Findings,
    unlisted: &BTreeSet<String>,
    gaps: &[CheckResult],
) -> Vec<AuditGauge> {
    let rows = complete(findings);
    let gauge = |name, help, values: for<'r> fn(&'r Row) -> Values<'r>| {
        let values = rows.iter().flat_map(|row| {
            let of = [("policy", row.policy.clone()), ("resource", row.target.name())];
            values(row).into_iter().map(move |(more, value)| {
                let more = more.into_iter().map(|(name, value)| (name, value.to_owned()));
                (of.iter().cloned().chain(more).collect(), value)
            })
        });
        AuditGauge { name, help, values: values.collect() }
    };
    // Including zeros: alerts need them.
    let gaps = ["served", "subresource", "api-group"].map(|id| {
        let count = gaps.iter().filter(|check| check.id == id).count() as u64;
        (vec![("check", id.to_owned())], count)
    });
    vec![
        gauge("objects", "Objects by their stored phase", |row| {
            row.phases.iter().map(|(phase, count)| (vec![("phase", &**phase)], *count)).collect()
        }),
        gauge("health", "Objects by namespace and health", by_namespace),
        gauge("conditions", "Conditions by type and status", |row| {
            let conditions = row.conditions.iter().map(|((kind, status), count)| {
                (vec![("type", &**kind), ("status", *status)], *count)
            });
            conditions.collect()
        }),
        gauge("findings", "Objects with a finding, by rule and action", |row| {
            let rules = row.rules.iter().map(|((rule, action), sums)| {
                (vec![("rule", &**rule), ("action", action.label())], sums.objects)
            });
            rules.collect()
        }),
        gauge("disagreements", "Objects with a disagreement, new or not", |row| {
            vec![(Vec::new(), row.disagreements)]
        }),
        gauge(
            "lasting_disagreements",
            "Objects with a disagreement that persists for longer than --older-than",
            |row| vec![(Vec::new(), row.lasting)],
        ),
        gauge("to_backfill", "Objects that backfill would change", |row| {
            vec![(Vec::new(), row.backfill)]
        }),
        AuditGauge {
            name: "unlisted",
            help: "1 for a resource that could not be listed",
            values: unlisted.iter().map(|name| (vec![("resource", name.clone())], 1)).collect(),
        },
        AuditGauge {
            name: "gaps",
            help: "Resources that policies name but the audit skipped, by check",
            values: gaps.into(),
        },
        AuditGauge {
            name: "unjudged",
            help: "Objects that could not be judged",
            values: vec![(Vec::new(), findings.tally.broken.0)],
        },
    ]
}

fn by_namespace(row: &Row) -> Values<'_> {
    let values = row.namespaces.iter().map(|((namespace, class), count)| {
        let retried = if class.retried { "true" } else { "false" };
        let namespace = ("namespace", namespace.as_str());
        (vec![namespace, ("health", class.is.name()), ("retried", retried)], *count)
    });
    values.collect()
}

/// The reason of `/readyz` before the end of the first pass.
const NO_PASS: &str = "the first pass has not finished";

/// Longer than controllers need to write phase and conditions in sequence, and than most retries.
const LASTING: Duration = Duration::from_secs(600);

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use statusgate_core::engine::{HealthClass, HealthStatus};
    use statusgate_server::telemetry::Scrape;

    #[test]
    fn health_is_exposed_by_namespace() {
        let class = |is, retried| HealthClass { is, retried };
        let namespaces = BTreeMap::from([
            (("shop".to_owned(), class(HealthStatus::Failed, true)), 2),
            (("shop".to_owned(), class(HealthStatus::Failed, false)), 1),
        ]);
        let row = Row { namespaces, ..Row::default() };
        let shop = [("namespace", "shop"), ("health", "failed")];
        let labels = |retried| [&shop[..], &[("retried", retried)]].concat();
        assert_eq!(by_namespace(&row), [(labels("false"), 1), (labels("true"), 2)]);
    }

    #[test]
    fn gaps_and_unjudged_objects_are_exposed_without_any_object() {
        let metrics = AuditMetrics::default();
        let unlisted = BTreeSet::from(["bars.a.io".to_owned()]);
        metrics.show(gauges(&Findings::default(), &unlisted, &[]), 0.5, None);
        let text = metrics.encode().unwrap();
        for line in [
            r#"statusgate_audit_unlisted{resource="bars.a.io"} 1"#,
            r#"statusgate_audit_gaps{check="subresource"} 0"#,
            "statusgate_audit_unjudged 0",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
        }
    }
}
