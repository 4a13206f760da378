//! Keeps the policies in use equal to the documents of the cluster, and writes their status.
//!
//! Two loops share what is known: one reads the watches and compiles, the other writes statuses. So a
//! change is live soon, even while many statuses are to be written.

mod status;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::exchange::Exchange;
use super::registry::{Document, DocumentId, Registry};
use super::trouble::Trouble;
use super::writes::Seen;
use crate::cluster::{Cluster, DocumentEvent, DocumentType, DocumentWatch, StoredDocument};
use crate::manifests::crds::plural;
use crate::server::PolicyStore;
use crate::telemetry::Metrics;
use statusgate_core::documents::DocumentKind;
use statusgate_core::policy::Source;

/// What is known of the documents.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// Their texts.
    pub(super) registry: Registry,
    /// Everything else.
    seen: BTreeMap<DocumentId, Seen>,
}

/// What the loops and the webhook for documents share.
#[derive(Clone, Debug, Default)]
pub struct Shared(Arc<Mutex<Known>>);

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The policies in the cluster.
pub struct Documents {
    cluster: Cluster,
    exchange: Arc<Exchange>,
    store: PolicyStore,
    metrics: Arc<Metrics>,
    /// The name of this replica.
    replica: String,
    manages_registrations: bool,
    /// The wall clock.
    clock: fn() -> Timestamp,
    watches: [Kind; 2],
    shared: Shared,
    /// The files with which the documents were compiled.
    files: Vec<Source>,
    /// Something of a status may have to be written.
    changed: Arc<Notify>,
}

/// A watch and what it has reported.
#[derive(Debug)]
struct Kind {
    kind: DocumentKind,
    watch: DocumentWatch,
    /// Whether there was a complete list.
    is_listed: bool,
    /// Whether its definition was missing at the last attempt.
    is_missing: bool,
    trouble: Trouble,
}

/// Changes within this time are compiled together.
const DEBOUNCE: Duration = Duration::from_millis(100);

/// How long a missing CustomResourceDefinition delays the start. A restarted API server does not know its
/// custom resources for some moments.
const NOT_INSTALLED: Duration = Duration::from_secs(2);

/// How often files and the times of replicas are looked at.
const TICK: Duration = Duration::from_secs(10);

/// The documents of the cluster, in metrics.
const DOCUMENTS: &str = "documents";

/// How the API server names a kind of document.
pub const fn document_type(kind: DocumentKind) -> DocumentType {
    DocumentType { kind: kind.name(), plural: plural(kind) }
}

impl Documents {
    /// Reads all documents and puts them into use. Waits for the API server, because a server without its
    /// policies would accept everything.
    pub async fn first(
        cluster: Cluster,
        exchange: Arc<Exchange>,
        store: PolicyStore,
        metrics: Arc<Metrics>,
        replica: &str,
        manages_registrations: bool,
        clock: fn() -> Timestamp,
    ) -> Self {
        let kind = |kind| Kind {
            kind,
            watch: cluster.watch_documents(document_type(kind)),
            is_listed: false,
            is_missing: false,
            trouble: Trouble::default(),
        };
        let watches = [DocumentKind::StatusConvention, DocumentKind::StatusPolicy].map(kind);
        let replica = replica.to_owned();
        let (shared, changed, files) = (Shared::default(), Arc::default(), Vec::new());
        let mut documents = Self {
            cluster,
            exchange,
            store,
            metrics,
            replica,
            manages_registrations,
            clock,
            watches,
            shared,
            files,
            changed,
        };
        let patience = Instant::now() + NOT_INSTALLED;
        let is_known =
            |kind: &Kind| kind.is_listed || kind.is_missing && Instant::now() >= patience;
        while !documents.watches.iter().all(is_known) {
            documents.next().await;
        }
        documents.settle().await;
        documents
    }

    /// What the webhook for documents needs.
    pub fn shared(&self) -> Shared {
        self.shared.clone()
    }

    /// Follows the documents until the future is dropped.
    pub async fn run(mut self) {
        let status = status::StatusWriter::of(&self);
        tokio::join!(self.follow(), status.run());
    }

    async fn follow(&mut self) {
        let mut settle_at = None;
        let mut tick = tokio::time::interval(TICK);
        loop {
            let due = settle_at;
            tokio::select! {
                changed = self.next() => {
                    if changed && settle_at.is_none() {
                        settle_at = Some(Instant::now() + DEBOUNCE);
                    }
                }
                () = async { sleep_until(due.unwrap_or_else(Instant::now)).await }, if due.is_some() => {
                    settle_at = None;
                    self.settle().await;
                }
                _ = tick.tick() => {
                    // A document may be valid only with the changed files.
                    if self.store.files() != self.files {
                        self.settle().await;
                    }
                    self.changed.notify_one();
                }
            }
        }
    }

    /// Waits for an event. Returns whether a document has changed.
    async fn next(&mut self) -> bool {
        let [first, second] = &mut self.watches;
        let (kind, event) = tokio::select! {
            event = first.watch.next() => (first, event),
            event = second.watch.next() => (second, event),
        };
        let watch = plural(kind.kind);
        match &event {
            DocumentEvent::NotInstalled | DocumentEvent::Failed(_) => {
                self.metrics.watch_failed(watch);
            }
            _ => self.metrics.watch_event(watch, (self.clock)().as_second()),
        }
        let changed = kind.note(event, &mut self.shared.lock());
        self.changed.notify_one();
        changed
    }

    /// Compiles the documents and puts them into use.
    async fn settle(&mut self) {
        let mut registry = self.shared.lock().registry.clone();
        self.files = self.store.files();
        let store = self.store.clone();
        // Compiling would delay the requests of a worker.
        let settled = tokio::task::spawn_blocking(move || {
            let set = registry.settle(|documents| store.replace_documents(documents));
            (registry, set)
        });
        let (registry, set) = match settled.await {
            Ok(settled) => settled,
            Err(error) => {
                tracing::error!(%error, "the documents of the cluster were not compiled: a bug in statusgate");
                return;
            }
        };
        let now = (self.clock)();
        for kind in [DocumentKind::StatusConvention, DocumentKind::StatusPolicy] {
            let (accepted, rejected) = registry.counts(kind);
            self.metrics.documents(kind.name(), accepted, rejected);
        }
        self.shared.lock().accept(registry, now);
        match set {
            Some(set) => {
                self.metrics.reloaded(DOCUMENTS, now.as_second());
                let policies = set.policies().len();
                tracing::info!(policies, "loaded the documents of the cluster");
            }
            None => {
                self.metrics.reload_failed(DOCUMENTS);
                tracing::error!(
                    "the documents of the cluster do not compile with the policy files; the last valid ones stay in use"
                );
            }
        }
        self.changed.notify_one();
    }
}

impl Kind {
    /// Takes over what a watch reports. Returns whether a document has changed.
    fn note(&mut self, event: DocumentEvent, known: &mut Known) -> bool {
        let id = |name: String| DocumentId { kind: self.kind, name };
        let what = format!("watch the {}", plural(self.kind));
        self.is_missing = matches!(event, DocumentEvent::NotInstalled);
        match &event {
            DocumentEvent::NotInstalled => self.trouble.begin_with(&what, MISSING.to_owned()),
            DocumentEvent::Failed(error) => self.trouble.begin(&what, error),
            _ => self.trouble.end(&what),
        }
        match event {
            DocumentEvent::All(documents) => {
                self.is_listed = true;
                let names: BTreeSet<&str> =
                    documents.iter().map(|document| document.name.as_str()).collect();
                let gone = known.registry.entries().map(|(id, _)| id.clone());
                let gone: Vec<DocumentId> = gone
                    .filter(|id| id.kind == self.kind && !names.contains(id.name.as_str()))
                    .collect();
                let mut changed = false;
                for id in gone {
                    changed |= known.remove(&id);
                }
                for document in documents {
                    changed |= known.put(&id(document.name.clone()), document);
                }
                changed
            }
            DocumentEvent::Put(document) => known.put(&id(document.name.clone()), document),
            DocumentEvent::Removed(name) => known.remove(&id(name)),
            DocumentEvent::NotInstalled | DocumentEvent::Failed(_) => false,
        }
    }
}

/// The message about a missing CustomResourceDefinition.
const MISSING: &str =
    "the CustomResourceDefinition is not installed: see statusgate manifests crds";

impl Known {
    fn put(&mut self, id: &DocumentId, stored: StoredDocument) -> bool {
        let StoredDocument { uid, generation, resource_version, created, spec, status, .. } =
            stored;
        let seen = self.seen.entry(id.clone()).or_default();
        seen.uid.clone_from(&uid);
        seen.version = resource_version;
        seen.status = serde_json::from_value(status).unwrap_or_default();
        // Most events are about a status.
        let accepted = seen.status.last_accepted.clone();
        let latest = self.registry.get(id).and_then(|entry| entry.latest.as_ref());
        let same =
            latest.is_some_and(|latest| (&latest.uid, latest.generation) == (&uid, generation));
        let changed = !same && {
            let document = Document::new(id.clone(), &spec);
            self.registry.set(id, Some(Document { uid, generation, created, ..document }))
        };
        self.registry.set_accepted(id, accepted) || changed
    }

    fn remove(&mut self, id: &DocumentId) -> bool {
        self.seen.remove(id);
        self.registry.set(id, None)
    }

    /// Stores the new registry, and logs the documents that are not accepted.
    fn accept(&mut self, registry: Registry, now: Timestamp) {
        for (id, entry) in registry.entries() {
            let before = self.registry.get(id);
            if before.and_then(|before| before.used_generation()) != entry.used_generation()
                && let Some(seen) = self.seen.get_mut(id)
            {
                seen.loaded = now;
            }
            match (&entry.problem, before.and_then(|before| before.problem.as_ref())) {
                (Some(problem), before) if Some(problem) != before => {
                    let (document, message) = (id.to_string(), &problem.message);
                    tracing::warn!(document, message, "the document is not accepted");
                }
                _ => {}
            }
        }
        self.registry = registry;
    }
}
