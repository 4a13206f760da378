//! Keeps the policies in use equal to the documents of the cluster, and writes their status.
//!
//! Two loops share what is known: one reads the watches and compiles, the other writes statuses. So a
//! change is live soon, even while many statuses are to be written.

mod status;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::context::{Context, Trouble};
use super::registry::{DocumentId, Registry};
use statusgate_cluster::manifests::crds::plural;
use statusgate_cluster::{DocumentEvent, DocumentWatch};
use statusgate_core::causes::with_causes;
use statusgate_core::documents::DocumentKind;
use statusgate_core::policy::Source;

/// What the loops and the webhook for documents share.
#[derive(Clone, Debug, Default)]
pub struct SharedRegistry(Arc<Mutex<Registry>>);

impl SharedRegistry {
    pub(super) fn lock(&self) -> MutexGuard<'_, Registry> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The policies in the cluster.
pub struct Documents {
    context: Context,
    watches: [WatchedKind; 2],
    shared: SharedRegistry,
    /// The files with which the documents were compiled.
    files: Vec<Source>,
    /// Something of a status may have to be written.
    changed: Arc<Notify>,
}

/// A watch and what it has reported.
struct WatchedKind {
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

impl Documents {
    /// Reads all documents and puts them into use. Waits for the API server, because a server without its
    /// policies would accept everything.
    pub async fn first(context: Context) -> Self {
        let kinds = [DocumentKind::StatusConvention, DocumentKind::StatusPolicy];
        let watches = kinds.map(|kind| WatchedKind {
            kind,
            watch: context.cluster.watch_documents(kind),
            is_listed: false,
            is_missing: false,
            trouble: Trouble::default(),
        });
        let (shared, changed, files) = (SharedRegistry::default(), Arc::default(), Vec::new());
        let mut documents = Self { context, watches, shared, files, changed };
        let patience = Instant::now() + NOT_INSTALLED;
        while !documents.watches.iter().all(|kind| kind.is_known(patience)) {
            documents.next().await;
        }
        documents.settle().await;
        documents
    }

    /// What the webhook for documents needs.
    pub fn shared(&self) -> SharedRegistry {
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
                    if self.context.store.files() != self.files {
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
        let result = match &event {
            DocumentEvent::NotInstalled => Err(MISSING.to_owned()),
            DocumentEvent::Failed(error) => Err(with_causes(error)),
            _ => Ok(()),
        };
        let what = format!("watch the {watch}");
        self.context.watched(&result, watch, &what, &mut kind.trouble);
        let changed = kind.note(event, &mut self.shared.lock());
        self.changed.notify_one();
        changed
    }

    /// Compiles the documents and puts them into use.
    async fn settle(&mut self) {
        let mut registry = self.shared.lock().clone();
        self.files = self.context.store.files();
        let store = self.context.store.clone();
        // Compiling would delay the requests of a worker.
        let settled = tokio::task::spawn_blocking(move || {
            let set = registry.settle(|documents| store.replace_documents(documents));
            (registry, set)
        });
        let (mut registry, set) = match settled.await {
            Ok(settled) => settled,
            Err(error) => {
                tracing::error!(%error, "the documents of the cluster were not compiled: a bug in statusgate");
                return;
            }
        };
        let now = self.context.now();
        for kind in [DocumentKind::StatusConvention, DocumentKind::StatusPolicy] {
            let (accepted, rejected) = registry.counts(kind);
            self.context.metrics.documents(kind.name(), accepted, rejected);
        }
        let mut known = self.shared.lock();
        registry.set_loaded(&known, now);
        log_problems(&registry, &known);
        *known = registry;
        drop(known);
        match set {
            Some(set) => {
                self.context.metrics.reloaded(DOCUMENTS, now.as_second());
                let policies = set.policies().len();
                tracing::info!(policies, "loaded the documents of the cluster");
            }
            None => {
                self.context.metrics.reload_failed(DOCUMENTS);
                tracing::error!(
                    "the documents of the cluster do not compile with the policy files; the last valid ones stay in use"
                );
            }
        }
        self.changed.notify_one();
    }
}

impl WatchedKind {
    /// Whether there was a complete list, or the definition is still missing at this time.
    fn is_known(&self, patience: Instant) -> bool {
        self.is_listed || self.is_missing && Instant::now() >= patience
    }

    /// Takes over what a watch reports. Returns whether a document has changed.
    fn note(&mut self, event: DocumentEvent, registry: &mut Registry) -> bool {
        let id = |name: String| DocumentId { kind: self.kind, name };
        self.is_missing = matches!(event, DocumentEvent::NotInstalled);
        match event {
            DocumentEvent::All(documents) => {
                self.is_listed = true;
                let names: BTreeSet<&str> =
                    documents.iter().map(|document| document.name.as_str()).collect();
                let gone = registry.entries().map(|(id, _)| id.clone());
                let gone: Vec<DocumentId> = gone
                    .filter(|id| id.kind == self.kind && !names.contains(id.name.as_str()))
                    .collect();
                let mut changed = false;
                for id in gone {
                    changed |= registry.set(&id, None);
                }
                for document in documents {
                    changed |= registry.put(&id(document.name.clone()), document);
                }
                changed
            }
            DocumentEvent::Put(document) => registry.put(&id(document.name.clone()), document),
            DocumentEvent::Removed(name) => registry.set(&id(name), None),
            DocumentEvent::NotInstalled | DocumentEvent::Failed(_) => false,
        }
    }
}

/// The message about a missing CustomResourceDefinition.
const MISSING: &str =
    "the CustomResourceDefinition is not installed: see statusgate manifests crds";

/// Logs the documents that are no longer accepted, or for another reason.
fn log_problems(registry: &Registry, before: &Registry) {
    for (id, entry) in registry.entries() {
        let before = before.get(id).and_then(|before| before.problem.as_ref());
        if let Some(problem) = entry.problem.as_ref().filter(|problem| Some(*problem) != before) {
            let (document, message) = (id.to_string(), &problem.message);
            tracing::warn!(document, message, "the document is not accepted");
        }
    }
}
