//! Writes the statuses of documents.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use super::{Documents, SharedRegistry};
use crate::conditions::{Condition, Registered};
use crate::context::{Context, Trouble};
use crate::registry::DocumentId;
use crate::writes::{View, Write};
use statusgate_cluster::{ClusterError, StatusTarget};

/// Writes the entries of this replica and the conditions of all documents.
pub(super) struct StatusWriter {
    context: Context,
    shared: SharedRegistry,
    changed: Arc<Notify>,
    /// What was written last, by document.
    written: BTreeMap<DocumentId, LastWrites>,
    trouble: Trouble,
    /// When the registrations were read last.
    read: Instant,
}

/// The last writes of a document.
#[derive(Default)]
struct LastWrites {
    /// The `resourceVersion` before our last write. Nothing is written until the watch has shown another.
    version: String,
    /// The hash of the conditions, when they were written, and how long they are not repeated.
    conditions: Option<(u64, Instant, Duration)>,
    /// Since when the stored conditions differ from the computed ones.
    differs: Option<Instant>,
}

/// How long changes are collected. The other replicas write their entries at the same time; conditions
/// after that are written once.
const COLLECT: Duration = Duration::from_millis(300);

/// Requests at the same time.
const IN_FLIGHT: usize = 4;

/// How long a replica does not repeat conditions that another one has replaced. Both may see other replicas
/// or registrations for some time, and must not take turns.
const REPEAT: Duration = Duration::from_secs(30);
const LONGEST_REPEAT: Duration = Duration::from_secs(600);

/// How long a replica leaves the conditions to the first one.
const TURN: Duration = Duration::from_secs(5);

/// How long the conditions of a document wait for the registrations to be read after a change. Until then, the
/// status is about an earlier generation, or stays as another replica wrote it.
const UNREAD: Duration = Duration::from_secs(5);

/// The delay after a failure.
const AFTER_FAILURE: Duration = Duration::from_secs(2);

/// The manager of the fields that any replica writes. Replicas add their name for their own entry.
const MANAGER: &str = "statusgate";

/// The limit of the API server for the name of a field manager.
const MAX_MANAGER: usize = 128;

struct Job {
    id: DocumentId,
    target: StatusTarget,
    version: String,
    write: Write,
}

impl StatusWriter {
    pub(super) fn of(documents: &Documents) -> Self {
        Self {
            context: documents.context.clone(),
            shared: documents.shared.clone(),
            changed: Arc::clone(&documents.changed),
            written: BTreeMap::new(),
            trouble: Trouble::default(),
            read: Instant::now(),
        }
    }

    pub(super) async fn run(mut self) {
        let mut replicas = self.context.exchange.replicas.subscribe();
        let mut coverage = self.context.exchange.coverage.subscribe();
        loop {
            tokio::select! {
                () = self.changed.notified() => {}
                // The senders live as long as the exchange.
                _ = replicas.changed() => {}
                _ = coverage.changed() => coverage.mark_changed(),
            }
            sleep(COLLECT).await;
            replicas.mark_unchanged();
            if coverage.has_changed().unwrap_or_default() {
                coverage.mark_unchanged();
                self.read = Instant::now();
            }
            let jobs = self.jobs(self.context.now());
            let what = "write the status of a document";
            match self.perform(jobs).await {
                Ok(()) => self.trouble.end(what),
                Err(error) => {
                    self.trouble.begin(what, &error);
                    sleep(AFTER_FAILURE).await;
                    self.changed.notify_one();
                }
            }
        }
    }

    /// The writes that are needed now.
    fn jobs(&mut self, now: Timestamp) -> Vec<Job> {
        let Context { exchange, options, .. } = &self.context;
        let replicas = exchange.replicas.borrow().clone();
        let live = replicas.into_iter().filter(|replica| replica.is_live);
        let mut live: Vec<String> = live.map(|replica| replica.name).collect();
        live.sort_unstable();
        let registry = self.shared.lock();
        // Locked before: policies are in use before the registry shows it.
        let in_use = Arc::clone(&exchange.policies.borrow());
        let coverage = exchange.coverage.borrow().clone();
        let coverage = coverage.filter(|coverage| Arc::ptr_eq(&coverage.of, &in_use));
        let coverage = coverage.map(|known| registry.with_conventions(&known.policies));
        let view = View {
            own: &options.replica,
            live: &live,
            manages_registrations: options.manage_webhooks,
            coverage: coverage.as_ref(),
        };
        let is_late = self.read.elapsed() >= UNREAD;
        self.written.retain(|id, _| registry.get(id).is_some_and(|entry| entry.latest.is_some()));
        let mut jobs = Vec::new();
        for (id, entry) in registry.entries() {
            let Some(latest) = &entry.latest else { continue };
            let written = self.written.entry(id.clone()).or_default();
            if written.version == entry.version {
                continue;
            }
            let writes = view.writes(id, entry, now);
            if !writes.iter().any(|write| matches!(write, Write::Conditions(..))) {
                written.differs = None;
            }
            for write in writes {
                if let Write::Conditions(_, conditions, _) = &write {
                    let is_known = is_late || view.registered(id) != Registered::NotRead;
                    if !is_known || !written.may_write(conditions, view.is_first(id)) {
                        continue;
                    }
                }
                let version = matches!(write, Write::Conditions(..)).then(|| entry.version.clone());
                let (name, uid) = (id.name.clone(), latest.uid.clone());
                let target = StatusTarget { name, uid, version };
                jobs.push(Job { id: id.clone(), target, version: entry.version.clone(), write });
            }
        }
        jobs
    }

    /// Writes until an error concerns more than one document.
    async fn perform(&mut self, jobs: Vec<Job>) -> Result<(), ClusterError> {
        let cluster = &self.context.cluster;
        let mut results = stream::iter(jobs)
            .map(async |job| {
                let (manager, status) = job.write.body();
                let of = job.id.kind;
                let done =
                    cluster.apply_document_status(of, &job.target, &manager, status.as_ref()).await;
                (job, done)
            })
            .buffer_unordered(IN_FLIGHT);
        let mut failed = None;
        while let Some((job, done)) = results.next().await {
            match done {
                Ok(()) => self.written.entry(job.id).or_default().note(job.version, &job.write),
                Err(error) if matches!(error.code(), Some(400 | 413 | 422)) => failed = Some(error),
                Err(error) => return Err(error),
            }
        }
        failed.map_or(Ok(()), Err)
    }
}

impl LastWrites {
    /// Whether conditions may be written that are not stored.
    fn may_write(&mut self, conditions: &[Condition], is_first: bool) -> bool {
        let differs = *self.differs.get_or_insert_with(Instant::now);
        if !is_first && differs.elapsed() < TURN {
            return false;
        }
        match &self.conditions {
            Some((last, at, wait)) if *last == hash(conditions) => at.elapsed() >= *wait,
            _ => true,
        }
    }

    fn note(&mut self, version: String, write: &Write) {
        self.version = version;
        if let Write::Conditions(_, conditions, _) = write {
            let conditions = hash(conditions);
            let wait = match &self.conditions {
                Some((last, _, wait)) if *last == conditions => (*wait * 2).min(LONGEST_REPEAT),
                _ => REPEAT,
            };
            self.conditions = Some((conditions, Instant::now(), wait));
        }
    }
}

/// A hash of conditions without their times. It takes less memory than the conditions.
fn hash(conditions: &[Condition]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for Condition { r#type, status, observed_generation, reason, message, .. } in conditions {
        (r#type, status, observed_generation, reason, message).hash(&mut hasher);
    }
    hasher.finish()
}

impl Write {
    /// The field manager, and the status that it applies.
    fn body(&self) -> (String, Option<Value>) {
        match self {
            Self::Entry(replica, entry) => {
                // Pods of one Deployment differ in the end of their names.
                let room = MAX_MANAGER - MANAGER.len() - 1;
                let cut = replica.len().saturating_sub(room);
                let end = replica.get(cut..).unwrap_or_default();
                let manager = format!("{MANAGER}-{end}");
                (manager, entry.as_ref().map(|entry| json!({"replicas": [entry]})))
            }
            Self::Conditions(generation, conditions, accepted) => {
                let mut status =
                    json!({"observedGeneration": generation, "conditions": conditions});
                if let Some(accepted) = accepted {
                    status["lastAccepted"] = json!(accepted);
                }
                (MANAGER.to_owned(), Some(status))
            }
        }
    }
}
