//! Sets the defaults of stored objects: writes the changes of the mutating webhook through `/status`.
//!
//! One task lists and judges, which takes microseconds per object; a limited number of others write. The
//! next page is fetched while the objects of this one are written. Only the one task reports, so there are
//! no locks, and it reports each write when it is confirmed: a killed run lacks at most the reports of the
//! writes in progress. The next run finds nothing to do for what was written.

mod change;
mod judge;
mod pace;
mod shard;
mod write;
mod writers;

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use jiff::Timestamp;
use tokio::sync::watch;

pub use change::ChangedValue;
pub use judge::{Named, WRITER};
pub use shard::{Shard, ShardError};

use self::judge::judge;
use self::pace::Pace;
use self::write::{Abort, Shared, WriteResult};
use self::writers::Writers;
use super::identity::{Seen, read_object};
use super::pages::Load;
use super::{Cluster, ClusterError, Page, Pages, Query, RunError, Target};
use statusgate_core::model::Object;
use statusgate_core::policy::PolicySet;

/// The settings of a backfill.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Which objects.
    pub query: Query,
    /// Which shard of them.
    pub shard: Shard,
    /// The number of concurrent writes.
    pub concurrency: usize,
    /// The maximum number of requests for single objects per second; 0: no limit.
    pub qps: f64,
    /// Whether to write nothing.
    pub dry_run: bool,
    /// The names of targets with schema problems. The API server prunes silently, so their objects are
    /// read again after each write.
    pub distrusted: Vec<String>,
    /// The clock.
    pub clock: fn() -> Timestamp,
}

/// The outcome for one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was written; in a dry run: it would be written.
    Patched,
    /// It needs no change.
    Unchanged,
    /// It was deleted during the run.
    Deleted,
    /// The API server, a schema or another webhook rejected the patch.
    Rejected(String),
    /// It could not be written or judged.
    Failed(String),
}

/// One object and its outcome.
#[derive(Clone, Debug)]
pub struct ObjectReport {
    /// The object.
    pub object: Named,
    /// The policies that judged it, by their index in the set.
    pub policies: Vec<u16>,
    /// Its outcome.
    pub outcome: Outcome,
    /// The message about the phase, if it was repaired, or would be.
    pub repair: Option<String>,
    /// How often another client wrote it first.
    pub conflicts: u32,
    /// The changes that were made, or would be made.
    pub changes: Vec<ChangedValue>,
}

/// Receives the results.
pub trait Audience {
    /// An object was processed.
    ///
    /// # Errors
    /// When the report cannot be written. This ends the run.
    fn object(&mut self, target: &Target, report: &ObjectReport) -> io::Result<()>;

    /// Called regularly, for progress output.
    fn tick(&mut self) {}
}

/// How a run ended.
#[derive(Debug, Default)]
pub struct End {
    /// Whether it was stopped before the end.
    pub stopped: bool,
    /// The reasons why kinds are incomplete.
    pub failures: Vec<ClusterError>,
}

/// A run.
pub struct BackfillRun<'a> {
    shared: Arc<Shared>,
    audience: &'a mut dyn Audience,
    writers: Writers,
    failed_in_a_row: u32,
    /// Deleted objects of the current target.
    deleted: u64,
    /// The resourceVersion of the last written object of the current target.
    version: Option<String>,
}

impl<'a> BackfillRun<'a> {
    /// Prepares a run. When `stop` turns true, the run ends after the writes in progress.
    pub fn new(
        cluster: &Cluster,
        policies: Arc<PolicySet>,
        plan: Plan,
        audience: &'a mut dyn Audience,
        stop: watch::Receiver<bool>,
    ) -> Self {
        let shared = Arc::new(Shared {
            cluster: cluster.clone(),
            policies,
            pace: Pace::new(plan.qps),
            plan,
            stop,
            hopeless: watch::Sender::new(false),
            allowed: AtomicBool::new(false),
            allowed_to_read: AtomicBool::new(false),
        });
        Self {
            writers: Writers::new(Arc::clone(&shared)),
            shared,
            audience,
            failed_in_a_row: 0,
            deleted: 0,
            version: None,
        }
    }

    /// Processes the targets in order. After a failure of one kind, the run continues with the next.
    ///
    /// # Errors
    /// When the run cannot continue. The report contains the completed writes.
    pub async fn run(mut self, targets: &[Target]) -> Result<End, RunError> {
        let mut end = End::default();
        for target in targets {
            (self.deleted, self.version) = (0, None);
            if self.is_stopped() {
                break;
            }
            self.shared.hopeless.send_replace(false);
            let outcome = self.go_over(target).await;
            if outcome.as_ref().is_err_and(RunError::is_of_everything) {
                self.shared.hopeless.send_replace(true);
            }
            // In any case, wait for the requests in flight and record their results.
            let drained = self.drain(target).await;
            let outcome = match outcome {
                // Objects may have been deleted with their kind.
                Ok(()) if self.deleted > 0 && self.shared.cluster.is_removed(target).await => {
                    Err(ClusterError::KindRemoved { resource: target.name() }.into())
                }
                outcome => outcome,
            };
            let mut failure = None;
            for error in [outcome.err(), drained.err()].into_iter().flatten() {
                match error {
                    RunError::Cluster(error) if !error.is_of_the_server() => {
                        // Writers in progress report the same failure.
                        failure.get_or_insert(error);
                    }
                    error => return Err(error),
                }
            }
            end.failures.extend(failure);
        }
        end.stopped = self.is_stopped();
        Ok(end)
    }

    fn is_stopped(&self) -> bool {
        *self.shared.stop.borrow()
    }

    async fn go_over(&mut self, target: &Target) -> Result<(), RunError> {
        let (shared, owned) = (Arc::clone(&self.shared), Arc::new(target.clone()));
        let mut seen = Seen::default();
        let Shared { cluster, plan, .. } = &*shared;
        let mut load = cluster.pages(target, &plan.query).growing().load(None);
        while let Some((pages, page)) = self.await_page(target, load).await? {
            // A small rest is cheaper as one list that is not older than a write. So wait for a write first.
            let waits = pages.are_little() && !plan.dry_run;
            let mut ahead =
                if waits { Ahead::Waits(Box::new(pages)) } else { Ahead::Loads(pages.load(None)) };
            for text in page.items() {
                let object = read_object(text).map_err(|source| target.bad_list(source))?;
                let metadata = &object.metadata;
                if plan.shard.holds(&metadata.uid) && seen.insert(metadata) {
                    self.object(&owned, object).await?;
                    ahead = ahead.after(self.version.as_deref());
                }
                if self.is_stopped() {
                    return Ok(());
                }
            }
            while ahead.waits() && !self.writers.are_idle() {
                self.await_written(target).await?;
                ahead = ahead.after(self.version.as_deref());
            }
            load = ahead.load();
        }
        Ok(())
    }

    /// Waits for a page, and records written objects meanwhile. `None` after the last one, or if the run
    /// must end.
    async fn await_page(
        &mut self,
        target: &Target,
        mut load: Load,
    ) -> Result<Option<(Pages, Page)>, RunError> {
        let mut stop = self.shared.stop.clone();
        loop {
            tokio::select! {
                loaded = &mut load => {
                    let (pages, page) = loaded?;
                    return Ok(page?.map(|page| (pages, page)));
                }
                written = self.writers.next() => self.record(target, written?)?,
                Ok(_) = stop.wait_for(|stop| *stop) => {
                    load.abort();
                    return Ok(None);
                }
                () = tokio::time::sleep(TICK) => self.audience.tick(),
            }
        }
    }

    async fn object(&mut self, target: &Arc<Target>, object: Object<'_>) -> Result<(), RunError> {
        let Shared { policies, plan, .. } = &*self.shared;
        let judged = judge(policies, target, object, (plan.clock)());
        if judged.patch.is_none() || plan.dry_run {
            return self.record(target, WriteResult { version: None, end: Ok(judged.report) });
        }
        while self.writers.are_busy() {
            self.await_written(target).await?;
        }
        self.writers.take(Arc::clone(target), judged);
        Ok(())
    }

    /// Reports the outcome of an object.
    fn record(&mut self, target: &Target, written: WriteResult) -> Result<(), RunError> {
        let WriteResult { version, end } = written;
        self.version = version.or_else(|| self.version.take());
        let report = match end {
            Ok(report) => report,
            // The next run finds it again.
            Err(Abort::Stopped) => return Ok(()),
            Err(Abort::Hopeless(error)) => return Err(error.into()),
        };
        let outcome = &report.outcome;
        self.deleted += u64::from(*outcome == Outcome::Deleted);
        self.audience.object(target, &report)?;
        let Outcome::Failed(reason) = outcome else {
            self.failed_in_a_row = 0;
            return Ok(());
        };
        self.failed_in_a_row += 1;
        if self.failed_in_a_row < MAX_FAILED_IN_A_ROW {
            return Ok(());
        }
        Err(RunError::Hopeless { count: self.failed_in_a_row, reason: reason.clone() })
    }

    /// Waits for all writes in progress, even if one fails.
    async fn drain(&mut self, target: &Target) -> Result<(), RunError> {
        let mut first = Ok(());
        while !self.writers.are_idle() {
            first = first.and(self.await_written(target).await);
        }
        first
    }

    /// Waits until one more object was written.
    async fn await_written(&mut self, target: &Target) -> Result<(), RunError> {
        loop {
            tokio::select! {
                written = self.writers.next() => return self.record(target, written?),
                () = tokio::time::sleep(TICK) => self.audience.tick(),
            }
        }
    }
}

/// The next page.
enum Ahead {
    /// It is requested after the first write.
    Waits(Box<Pages>),
    Loads(Load),
}

impl Ahead {
    const fn waits(&self) -> bool {
        matches!(self, Self::Waits(_))
    }

    /// Requests it if an object was written with this version.
    fn after(self, version: Option<&str>) -> Self {
        match self {
            Self::Waits(pages) if version.is_some() => {
                Self::Loads(pages.load(version.map(str::to_owned)))
            }
            ahead => ahead,
        }
    }

    /// Requests it in any case.
    fn load(self) -> Load {
        match self {
            Self::Waits(pages) => pages.load(None),
            Self::Loads(load) => load,
        }
    }
}

const TICK: std::time::Duration = std::time::Duration::from_millis(500);

/// A webhook that is down with `failurePolicy: Fail` fails all objects, and each attempt is slow.
const MAX_FAILED_IN_A_ROW: u32 = 50;
