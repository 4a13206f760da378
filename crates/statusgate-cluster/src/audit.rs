//! Judges stored objects as if their status were written for the first time.
//!
//! One task lists and judges, and fetches the next page in the background. It keeps counts, a few
//! examples per rule and, for reports, a bounded number of results: memory does not grow with the
//! cluster.
//!
//! `--watch` repeats the audit instead of watching changes: a disagreement becomes persistent while its
//! object does not change, so every object has to be read again anyway.

pub mod json;
mod judge;
mod report;
mod store;
mod tally;

use std::io;

use jiff::Timestamp;

pub use judge::{Audited, Judge, State};
pub use report::{REPORT_NAME, ReportApi, Reports};
pub use store::{ReportCounts, Store};
pub use tally::{Example, Reason, Row, RuleSums, Tally};

use super::identity::Seen;
use super::{Cluster, ClusterError, Query, RunError, Target};
use statusgate_core::policy::PolicySet;

/// The settings of an audit.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Which objects.
    pub query: Query,
    /// Only disagreements older than this number of seconds count. `None`: all count.
    pub older_than: Option<i64>,
    /// The number of example objects per rule.
    pub examples: usize,
    /// Whether to collect results for reports.
    pub reports: bool,
    /// The clock.
    pub clock: fn() -> Timestamp,
}

/// The result of an audit.
#[derive(Debug, Default)]
pub struct Findings {
    /// The counts.
    pub tally: Tally,
    /// The results for reports, if requested.
    pub reports: Reports,
    /// The reasons why kinds are incomplete.
    pub failures: Vec<ClusterError>,
}

/// Receives each judged object. Its error ends the audit.
pub type OnObject<'a> = dyn FnMut(&Target, &Audited<'_>) -> io::Result<()> + 'a;

/// Judges the objects of the targets. After a failure of one kind, the audit continues with the next;
/// a failure of the server ends it. The findings contain these failures.
///
/// # Errors
/// Those of `on_object`, and a panic.
pub async fn audit(
    cluster: &Cluster,
    policies: &PolicySet,
    plan: &Plan,
    targets: &[Target],
    on_object: &mut OnObject<'_>,
) -> Result<Findings, RunError> {
    let judge = Judge::new(policies, plan.older_than);
    let tally = Tally::new(policies, targets, plan.examples);
    let mut findings = Findings { tally, ..Findings::default() };
    for (index, target) in targets.iter().enumerate() {
        let listed = list(cluster, &judge, plan, target, &mut |judged| {
            findings.tally.add(index, judged);
            if plan.reports {
                findings.reports.add(target, judged);
            }
            on_object(target, judged)
        })
        .await;
        match listed {
            Ok(()) => findings.tally.complete(index),
            Err(RunError::Cluster(error)) => {
                let ends = error.is_of_the_server();
                findings.failures.push(error);
                if ends {
                    break;
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(findings)
}

async fn list(
    cluster: &Cluster,
    judge: &Judge<'_>,
    plan: &Plan,
    target: &Target,
    note: &mut dyn FnMut(&Audited<'_>) -> io::Result<()>,
) -> Result<(), RunError> {
    let mut seen = Seen::default();
    let mut load = cluster.pages(target, &plan.query).growing().load(None);
    loop {
        let (pages, page) = load.await?;
        let Some(page) = page? else { return Ok(()) };
        load = pages.load(None);
        for text in page.items() {
            let judged = judge.object(target, text, (plan.clock)());
            let judged = judged.map_err(|source| target.bad_list(source))?;
            if seen.insert(&judged.metadata) {
                note(&judged)?;
            }
        }
    }
}
