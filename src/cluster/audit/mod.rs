//! Judging stored objects: as the webhooks would judge this very state if it were written for the
//! first time.
//!
//! One task lists and judges; the next page is fetched meanwhile. What is kept is counts, a few
//! examples a rule and, where reports are wanted, a bounded number of results: the memory of an
//! audit does not grow with the cluster.
//!
//! A watch is this repeated, and not a stream of changes: a disagreement begins to last while
//! nothing changes, so that every object has to be looked at again anyway, or to be remembered.

mod judge;
mod lasting;
mod report;
mod store;
mod tally;

use std::collections::HashSet;
use std::io;

use jiff::Timestamp;

pub use judge::{Judge, Judged, State};
pub use report::{REPORT_NAME, Reports};
pub use store::{Scope, Store, Stored};
pub use tally::{Example, Row, RuleSums, Tally};

use super::{Cluster, ClusterError, Identity, Page, Pages, Query, Target};
use crate::policy::PolicySet;

/// How an audit is to go about it.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Which objects.
    pub query: Query,
    /// How many seconds a disagreement must have lasted to count; where there is none, all count.
    pub older_than: Option<i64>,
    /// Objects to name for each rule.
    pub examples: usize,
    /// Whether results for reports are collected.
    pub reports: bool,
    /// Where the time comes from.
    pub clock: fn() -> Timestamp,
}

/// Who is told.
pub trait Audience {
    /// An object was judged.
    ///
    /// # Errors
    /// When it cannot be passed on, which ends the run.
    fn object(&mut self, target: &Target, judged: &Judged<'_>) -> io::Result<()>;
}

/// What an audit found.
#[derive(Debug, Default)]
pub struct Findings {
    /// The counts.
    pub tally: Tally,
    /// The results for reports, where they were wanted.
    pub reports: Reports,
    /// Kinds that could not be gone over to the end, and why.
    pub failures: Vec<ClusterError>,
}

/// Goes over the targets, one after the other. A kind that cannot be listed does not end it: the
/// others are judged, and the findings tell. A server that is out of reach does, for it is so for
/// all of them.
///
/// # Errors
/// When the audience cannot be told.
pub async fn audit(
    cluster: &Cluster,
    policies: &PolicySet,
    plan: &Plan,
    targets: &[Target],
    audience: &mut (dyn Audience + Send),
) -> io::Result<Findings> {
    let judge = Judge::new(policies, plan.older_than);
    let tally = Tally::new(policies, targets, plan.examples);
    let mut findings = Findings { tally, ..Findings::default() };
    for (index, target) in targets.iter().enumerate() {
        let mut run = Run { judge: &judge, plan, target, index, findings: &mut findings };
        match run.go_over(cluster, audience).await {
            Ok(()) => findings.tally.complete(index),
            Err(Abort::Report(error)) => return Err(error),
            Err(Abort::Cluster(error)) => {
                let hopeless = error.is_of_the_server();
                findings.failures.push(error);
                if hopeless {
                    break;
                }
            }
        }
    }
    Ok(findings)
}

/// One target, gone over.
struct Run<'r, 'p> {
    judge: &'r Judge<'p>,
    plan: &'r Plan,
    target: &'r Target,
    index: usize,
    findings: &'r mut Findings,
}

enum Abort {
    Cluster(ClusterError),
    Report(io::Error),
}

impl Run<'_, '_> {
    async fn go_over(
        &mut self,
        cluster: &Cluster,
        audience: &mut (dyn Audience + Send),
    ) -> Result<(), Abort> {
        // Sixteen bytes an object: a list that has to begin anew brings all of them again.
        let mut seen = HashSet::new();
        let mut load = load(cluster.pages(self.target, &self.plan.query).growing());
        loop {
            let (pages, page) = load.await.map_err(|error| Abort::Report(error.into()))?;
            let Some(page) = page.map_err(Abort::Cluster)? else { return Ok(()) };
            load = self::load(pages);
            for text in page.items().map_err(|source| self.bad(source))? {
                let now = (self.plan.clock)();
                let judged = self.judge.object(self.target, text, now);
                let judged = judged.map_err(|source| self.bad(source))?;
                if seen.insert(key(&judged.identity)) {
                    self.note(&judged);
                    audience.object(self.target, &judged).map_err(Abort::Report)?;
                }
            }
        }
    }

    fn note(&mut self, judged: &Judged<'_>) {
        self.findings.tally.add(self.index, judged);
        if self.plan.reports {
            self.findings.reports.add(self.target, judged);
        }
    }

    fn bad(&self, source: serde_json::Error) -> Abort {
        Abort::Cluster(ClusterError::BadAnswer {
            what: format!("list {}", self.target.name()),
            source,
        })
    }
}

type Load = tokio::task::JoinHandle<(Pages, Result<Option<Page>, ClusterError>)>;

fn load(mut pages: Pages) -> Load {
    tokio::spawn(async move {
        let page = pages.next().await;
        (pages, page)
    })
}

/// A uid in sixteen bytes: the number that it is. What is none (an aggregated API may send what it
/// likes) is hashed.
fn key(identity: &Identity<'_>) -> u128 {
    let digits: String = identity.uid.chars().filter(|sign| *sign != '-').collect();
    if let (32, Ok(number)) = (digits.len(), u128::from_str_radix(&digits, 16)) {
        return number;
    }
    let text = format!("{}\n{}", identity.uid, identity.path());
    // FNV-1a: the same for the same text at every run, and nobody gains by a collision.
    text.bytes().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, |hash, byte| {
        (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_told_apart_by_uid_and_where_there_is_none_by_name() {
        let of = |uid: &str, name: &str| {
            key(&Identity {
                uid: uid.to_owned().into(),
                name: name.to_owned().into(),
                ..Identity::default()
            })
        };
        let uid = "6f1c2d3e-0000-4000-8000-00000000000a";
        assert_eq!(of(uid, "a"), of(uid, "b"));
        assert_eq!(of(uid, "a"), 0x6f1c_2d3e_0000_4000_8000_0000_0000_000a);
        assert_ne!(of("", "a"), of("", "b"));
    }
}
