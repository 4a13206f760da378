//! Bringing stored objects up to date: what the mutating webhook would do, written through
//! `/status`.
//!
//! One task lists and judges, which costs microseconds an object; a fixed number of others
//! write. The next page is fetched while the objects of this one are written. Everything that is
//! remembered and told passes through the one task, so there are no locks, and an order: an object
//! is in the journal before anyone hears of it.

mod change;
mod journal;
mod judge;
mod pace;
mod scope;
mod shard;
mod write;
mod writers;

use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use jiff::Timestamp;
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub use change::Change;
pub use journal::{Journal, JournalError};
pub use judge::WRITER;
pub use scope::Scope;
pub use shard::{Shard, ShardError};

use self::journal::key;
use self::judge::{Named, Todo, judge};
use self::pace::Pace;
use self::write::{Abort, Desk, Written};
use self::writers::Writers;
use super::{Cluster, ClusterError, Identity, Page, Pages, Query, Target};
use crate::policy::PolicySet;

/// How a backfill is to go about it.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Which objects.
    pub query: Query,
    /// Which part of them.
    pub shard: Shard,
    /// Writes at a time.
    pub concurrency: usize,
    /// Requests for single objects a second; 0 is no limit.
    pub qps: f64,
    /// Whether nothing is to be written.
    pub dry_run: bool,
    /// Targets, by name, whose schema does not have everything that is filled in. Pruning is
    /// silent, so there each object is read again after it was written.
    pub distrusted: Vec<String>,
    /// Where the time comes from.
    pub clock: fn() -> Timestamp,
}

/// What became of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was written; in a dry run: it would be.
    Patched,
    /// There was nothing to do.
    Unchanged,
    /// An earlier run wrote it: the journal says so.
    Earlier,
    /// It was deleted meanwhile.
    Deleted,
    /// The API server, a schema or another webhook did not take the patch.
    Rejected(String),
    /// It could not be written or judged.
    Failed(String),
}

/// One object and what became of it.
#[derive(Debug)]
pub struct Report<'r> {
    /// What it is one of.
    pub target: &'r Target,
    /// The policies that judged it, by their place in the set.
    pub policies: &'r [u16],
    /// `metadata.namespace`; empty for cluster-scoped objects.
    pub namespace: &'r str,
    /// `metadata.name`.
    pub name: &'r str,
    /// `metadata.uid`.
    pub uid: &'r str,
    /// What became of it.
    pub outcome: &'r Outcome,
    /// How often somebody else was faster.
    pub conflicts: u32,
    /// What is different now, or would be.
    pub changes: &'r [Change],
}

/// Who is told.
pub trait Audience {
    /// An object is done with.
    ///
    /// # Errors
    /// When it cannot be passed on, which ends the run.
    fn object(&mut self, report: &Report<'_>) -> io::Result<()>;

    /// An earlier run got to the end of a target with nothing refused, and wrote so many of its
    /// objects: it is not listed again.
    fn finished_earlier(&mut self, _target: &Target, _patched: u64) {}

    /// Somebody may want to hear from us: called now and then, also when nothing happens.
    fn tick(&mut self) {}
}

/// How a run ended.
#[derive(Debug, Default)]
pub struct End {
    /// Whether it was stopped before it was done.
    pub stopped: bool,
    /// Kinds that could not be gone over to the end, and why.
    pub failures: Vec<ClusterError>,
}

/// What ends a run at once.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackfillError {
    /// The API server takes no writes.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// What was done cannot be written down.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// What was done cannot be told.
    #[error("cannot write the report")]
    Report(#[from] io::Error),
    /// Everything fails.
    #[error("{count} objects failed in a row; the last error: {reason}")]
    Hopeless {
        /// How many.
        count: u32,
        /// The last reason.
        reason: String,
    },
    /// A task of ours did not come to its end.
    #[error("a task ended unexpectedly: this is a bug in statusgate")]
    Lost(#[from] tokio::task::JoinError),
}

impl BackfillError {
    /// Whether it ends the run, and not only that of one target.
    const fn is_of_everything(&self) -> bool {
        !matches!(self, Self::Cluster(error) if !error.is_of_the_server())
    }
}

/// A backfill.
pub struct Backfill<'a> {
    desk: Arc<Desk>,
    plan: &'a Plan,
    journal: &'a mut Journal,
    audience: &'a mut dyn Audience,
    stop: watch::Receiver<bool>,
    writers: Writers,
    syncing: Option<JoinHandle<Result<(), JournalError>>>,
    failed_in_a_row: u32,
    /// Objects of the present target that were deleted meanwhile.
    gone: u64,
    /// Objects of the present target that were refused or failed.
    undone: u64,
    /// The resourceVersion of the last object of the present target that was written.
    version: Option<String>,
}

impl<'a> Backfill<'a> {
    /// Prepares a run. `stop` turns true when it is to end; what is being written is finished.
    pub fn new(
        cluster: &Cluster,
        policies: Arc<PolicySet>,
        plan: &'a Plan,
        journal: &'a mut Journal,
        audience: &'a mut dyn Audience,
        stop: watch::Receiver<bool>,
    ) -> Self {
        let desk = Arc::new(Desk {
            cluster: cluster.clone(),
            policies,
            clock: plan.clock,
            pace: Pace::new(plan.qps),
            stop: stop.clone(),
            hopeless: watch::Sender::new(false),
            distrusted: plan.distrusted.clone(),
            allowed: AtomicBool::new(false),
            allowed_to_read: AtomicBool::new(false),
        });
        let writers = Writers::start(&desk, plan.concurrency);
        Self {
            desk,
            plan,
            journal,
            audience,
            stop,
            writers,
            syncing: None,
            failed_in_a_row: 0,
            gone: 0,
            undone: 0,
            version: None,
        }
    }

    /// Goes over the targets, one after the other. A kind that cannot be listed does not end it:
    /// the others are done, and the end tells.
    ///
    /// # Errors
    /// When going on makes no sense. What was done until then is in the journal and was told.
    pub async fn run(mut self, targets: &[Target]) -> Result<End, BackfillError> {
        let mut end = End::default();
        let cluster = self.desk.cluster.clone();
        for target in targets {
            (self.gone, self.undone, self.version) = (0, 0, None);
            if *self.stop.borrow() {
                break;
            }
            if let Some(patched) = self.journal.finished(target) {
                self.audience.finished_earlier(target, patched);
                continue;
            }
            self.desk.hopeless.send_replace(false);
            let outcome = self.go_over(target).await;
            if outcome.as_ref().is_err_and(BackfillError::is_of_everything) {
                self.desk.hopeless.send_replace(true);
            }
            // Whatever happened: what has been sent is waited for, and noted.
            let drained = self.drain(target).await;
            let outcome = match outcome {
                // Objects that are gone may be gone with their kind.
                Ok(()) if self.gone > 0 && cluster.is_removed(target).await => {
                    Err(ClusterError::KindRemoved { resource: target.name() }.into())
                }
                outcome => outcome,
            };
            let mut failure = None;
            for error in [outcome.err(), drained.err()].into_iter().flatten() {
                match error {
                    BackfillError::Cluster(error) if !error.is_of_the_server() => {
                        // The writers that were under way say the same.
                        failure.get_or_insert(error);
                    }
                    error => {
                        self.journal.sync()?;
                        return Err(error);
                    }
                }
            }
            match failure {
                Some(failure) => end.failures.push(failure),
                // What was refused the next run tries again: the schema or the webhook that did not
                // take it may have been mended since.
                None if *self.stop.borrow() || self.undone > 0 => {}
                None => self.journal.note_finished(target)?,
            }
        }
        self.journal.sync()?;
        end.stopped = *self.stop.borrow();
        Ok(end)
    }

    async fn go_over(&mut self, target: &Target) -> Result<(), BackfillError> {
        let shared = Arc::new(target.clone());
        // Sixteen bytes an object: a list that has to begin anew brings all of them again.
        let mut seen = HashSet::new();
        let mut load = load(self.desk.cluster.pages(target, &self.plan.query).growing(), None);
        while let Some((pages, page)) = self.await_page(target, load).await? {
            let Some(page) = page? else { break };
            // Little is had at once, and cheaply, as it is since a write: then that is waited for.
            let waits = pages.are_little() && !self.plan.dry_run;
            let mut ahead =
                if waits { Ahead::Waits(Box::new(pages)) } else { Ahead::of(pages, None) };
            let bad = |source| ClusterError::BadAnswer {
                what: format!("list {}", target.name()),
                source,
            };
            for text in page.items().map_err(bad)? {
                let uid = Identity::parse(text).map_err(bad)?.uid;
                if self.plan.shard.holds(&uid) && seen.insert(key(&uid)) {
                    self.object(&shared, text).await?;
                    ahead = ahead.after(self.version.as_deref());
                }
                if *self.stop.borrow() {
                    return Ok(());
                }
            }
            self.begin_sync().await?;
            while ahead.waits() && !self.writers.are_idle() {
                self.await_written(target).await?;
                ahead = ahead.after(self.version.as_deref());
            }
            load = ahead.load();
        }
        Ok(())
    }

    /// Has the journal put on the disk, beside everything else. Not again before the last time is
    /// over.
    async fn begin_sync(&mut self) -> Result<(), BackfillError> {
        if self.syncing.as_ref().is_some_and(|syncing| !syncing.is_finished()) {
            return Ok(());
        }
        if let Some(syncing) = self.syncing.take() {
            syncing.await??;
        }
        self.syncing = self.journal.syncer().map(tokio::task::spawn_blocking);
        Ok(())
    }

    /// Waits for a page, and meanwhile for what is being written. Nothing, where the run is to end.
    async fn await_page(
        &mut self,
        target: &Target,
        mut load: Load,
    ) -> Result<Option<(Pages, Result<Option<Page>, ClusterError>)>, BackfillError> {
        let mut stop = self.stop.clone();
        loop {
            tokio::select! {
                loaded = &mut load => return Ok(Some(loaded?)),
                written = self.writers.next() => self.tell(target, written?)?,
                Ok(_) = stop.wait_for(|stop| *stop) => {
                    load.abort();
                    return Ok(None);
                }
                () = tokio::time::sleep(TICK) => self.audience.tick(),
            }
        }
    }

    async fn object(&mut self, target: &Arc<Target>, text: &str) -> Result<(), BackfillError> {
        let judged = judge(&self.desk.policies, target, text, (self.plan.clock)());
        let bad =
            |source| ClusterError::BadAnswer { what: format!("list {}", target.name()), source };
        let judged = judged.map_err(bad)?;
        let earlier = self.journal.has_patched(target, &judged.object.uid);
        let outcome = match &judged.todo {
            _ if earlier => Outcome::Earlier,
            Todo::Nothing => Outcome::Unchanged,
            Todo::Broken(reason) => Outcome::Failed(reason.clone()),
            Todo::Patch { .. } if self.plan.dry_run => Outcome::Patched,
            Todo::Patch { .. } => {
                while self.writers.are_busy() {
                    self.await_written(target).await?;
                }
                self.writers.take(Arc::clone(target), judged).await;
                return Ok(());
            }
        };
        let changes = match judged.todo {
            Todo::Patch { changes, .. } => changes,
            Todo::Nothing | Todo::Broken(_) => Vec::new(),
        };
        let (object, policies) = (judged.object, judged.policies);
        let (conflicts, version, end) = (0, None, Ok(outcome));
        self.tell(target, Written { object, policies, changes, conflicts, version, end })
    }

    /// Notes and tells what became of an object.
    fn tell(&mut self, target: &Target, written: Written) -> Result<(), BackfillError> {
        let Written { object, policies, changes, conflicts, version, end } = written;
        self.version = version.or_else(|| self.version.take());
        let outcome = match end {
            Ok(outcome) => outcome,
            // Left as it is, and found again by the next run.
            Err(Abort::Stopped) => return Ok(()),
            Err(Abort::Hopeless(error)) => return Err(error.into()),
        };
        let Named { namespace, name, uid, .. } = &object;
        self.gone += u64::from(outcome == Outcome::Deleted);
        self.undone += u64::from(matches!(outcome, Outcome::Rejected(_) | Outcome::Failed(_)));
        if outcome == Outcome::Patched && !self.plan.dry_run {
            self.journal.note_patched(target, uid)?;
        }
        let outcome = &outcome;
        let (policies, changes) = (&*policies, &*changes);
        self.audience.object(&Report {
            target,
            policies,
            namespace,
            name,
            uid,
            outcome,
            conflicts,
            changes,
        })?;
        match outcome {
            Outcome::Failed(reason) => {
                self.failed_in_a_row += 1;
                if self.failed_in_a_row >= MAX_FAILED_IN_A_ROW {
                    let (count, reason) = (self.failed_in_a_row, reason.clone());
                    return Err(BackfillError::Hopeless { count, reason });
                }
            }
            _ => self.failed_in_a_row = 0,
        }
        Ok(())
    }

    /// Waits for what is being written. All of it, even when something fails in between.
    async fn drain(&mut self, target: &Target) -> Result<(), BackfillError> {
        let mut first = Ok(());
        while !self.writers.are_idle() {
            let told = self.await_written(target).await;
            // Without a writer there is nothing more to wait for.
            let lost = matches!(told, Err(BackfillError::Lost(_)));
            first = first.and(told);
            if lost {
                break;
            }
        }
        first
    }

    /// Waits until one more object is written.
    async fn await_written(&mut self, target: &Target) -> Result<(), BackfillError> {
        loop {
            tokio::select! {
                written = self.writers.next() => return self.tell(target, written?),
                () = tokio::time::sleep(TICK) => self.audience.tick(),
            }
        }
    }
}

/// The page behind the present one.
enum Ahead {
    /// It is asked for once an object was written.
    Waits(Box<Pages>),
    Loads(Load),
}

impl Ahead {
    fn of(pages: Pages, since: Option<&str>) -> Self {
        Self::Loads(load(pages, since.map(str::to_owned)))
    }

    const fn waits(&self) -> bool {
        matches!(self, Self::Waits(_))
    }

    /// Asked for, if an object was written with this version.
    fn after(self, version: Option<&str>) -> Self {
        match self {
            Self::Waits(pages) if version.is_some() => Self::of(*pages, version),
            ahead => ahead,
        }
    }

    /// Asked for, whatever was written.
    fn load(self) -> Load {
        match self {
            Self::Waits(pages) => load(*pages, None),
            Self::Loads(load) => load,
        }
    }
}

type Load = JoinHandle<(Pages, Result<Option<Page>, ClusterError>)>;

fn load(mut pages: Pages, since: Option<String>) -> Load {
    tokio::spawn(async move {
        let page = match since {
            Some(version) => pages.all(&version).await,
            None => pages.next().await,
        };
        (pages, page)
    })
}

const TICK: std::time::Duration = std::time::Duration::from_millis(500);

/// A webhook that is down with `failurePolicy: Fail` fails everything, and each try takes long.
const MAX_FAILED_IN_A_ROW: u32 = 50;
