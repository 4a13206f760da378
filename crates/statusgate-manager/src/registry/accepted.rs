//! The last accepted text of a document, in its status.
//!
//! It survives restarts: the text of an earlier generation is nowhere else. A replica that starts compiles
//! these texts first, and treats all other texts as changes, as running replicas do. So all replicas enforce
//! the same, even if documents changed while no replica ran.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Document, DocumentId, Entry, Problem, Registry, Spec, are_same};
use statusgate_core::policy::{Diagnostics, Source};

/// Bytes of the text of a document. etcd accepts 1.5 MiB for an object, which has its spec twice then, and a third time in
/// an annotation after a client-side `kubectl apply`.
pub const MAX_TEXT: usize = 256 << 10;

/// `status.lastAccepted`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LastAccepted {
    /// The generation that was accepted.
    pub generation: i64,
    /// The spec of this generation.
    pub spec: Spec,
}

impl LastAccepted {
    /// Of an accepted document; `None` if it is too large.
    pub fn of(document: &Document) -> Option<Self> {
        let Document { generation, spec, source, .. } = document;
        let fits = source.text.len() <= MAX_TEXT;
        fits.then(|| Self { generation: *generation, spec: spec.clone() })
    }
}

impl Entry {
    /// The accepted text of the status, if it is newer than the one in use.
    fn unused(&self) -> Option<&Arc<Document>> {
        let used = self.used_generation();
        self.accepted.as_ref().filter(|accepted| used < Some(accepted.generation))
    }
}

impl Registry {
    /// Sets the accepted text that the status of a document has. Returns whether it is to be compiled.
    /// Nothing is compiled.
    pub fn set_accepted(&mut self, id: &DocumentId, accepted: Option<LastAccepted>) -> bool {
        let Some(entry) = self.entries.get_mut(id) else { return false };
        let Some(latest) = &entry.latest else { return false };
        let accepted = accepted.and_then(|LastAccepted { generation, spec }| {
            if generation == latest.generation {
                // Only its spec counts: others may have changed the status.
                return Some(Arc::clone(latest));
            }
            let (uid, created) = (latest.uid.clone(), latest.created.clone());
            let document = Document::new(id.clone(), &spec.tree());
            let document = Document { uid, created, generation, ..document };
            (generation < latest.generation).then(|| Arc::new(document))
        });
        let changed = entry.accepted != accepted;
        entry.accepted = accepted;
        changed && entry.unused().is_some()
    }

    /// Puts into use the accepted texts that are newer than those in use and that compile. The status is not
    /// trusted: anyone with the right to write it may have changed it. Returns the problems of the others.
    pub(super) fn restore<T>(
        &mut self,
        compile: &mut impl FnMut(Vec<Source>) -> Result<T, Diagnostics>,
    ) -> Vec<(DocumentId, Problem)> {
        let mut past = self.clone();
        let mut is_past = false;
        for entry in past.entries.values_mut().filter(|entry| entry.latest.is_some()) {
            let accepted = entry.unused().or(entry.used.as_ref()).cloned();
            is_past |= accepted != entry.latest;
            entry.latest = accepted;
        }
        let is_new = self.entries.values().any(|entry| entry.unused().is_some());
        // After most starts, the latest texts are the accepted ones: compiling once is enough.
        if !is_new || !is_past {
            return Vec::new();
        }
        past.settle_latest(compile);
        let mut problems = Vec::new();
        for (id, past) in past.entries {
            if let Some(entry) = self.entries.get_mut(&id) {
                entry.used = past.used;
                problems.extend(past.problem.map(|problem| (id, problem)));
            }
        }
        problems
    }

    /// Reports that the accepted texts of statuses cannot be used either.
    pub(super) fn report(&mut self, problems: Vec<(DocumentId, Problem)>) {
        for (id, Problem { message, .. }) in problems {
            let Some(entry) = self.entries.get_mut(&id) else { continue };
            let accepted = entry.accepted.as_deref().zip(entry.latest.as_deref());
            let earlier =
                accepted.filter(|(accepted, latest)| !are_same(Some(accepted), Some(latest)));
            if let (Some((accepted, _)), None, Some(problem)) =
                (earlier, &entry.used, &mut entry.problem)
            {
                problem.message.push_str(&format!(
                    "\n\nThe spec of generation {} in status.lastAccepted is not accepted either:\n\n{message}",
                    accepted.generation
                ));
            }
        }
    }
}
