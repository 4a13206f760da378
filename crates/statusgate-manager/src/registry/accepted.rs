//! The last accepted text of a document, in its status.
//!
//! It survives restarts: the text of an earlier generation is nowhere else. A replica that starts compiles
//! these texts first, and treats all other texts as changes, as running replicas do. So all replicas enforce
//! the same, even if documents changed while no replica ran.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Document, DocumentId, Entry, Problem, Registry, Spec};
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
    /// The document with the accepted text of the status, if it is newer than the one in use.
    pub(super) fn unused(&self) -> Option<Arc<Document>> {
        let (latest, accepted) = (self.latest.as_ref()?, self.status.last_accepted.as_ref()?);
        let generation = accepted.generation;
        if self.used_generation() >= Some(generation) || generation > latest.generation {
            return None;
        }
        if generation == latest.generation {
            // Only its spec counts: others may have changed the status.
            return Some(Arc::clone(latest));
        }
        let (uid, created) = (latest.uid.clone(), latest.created.clone());
        let document = Document::new(latest.id.clone(), &accepted.spec.tree());
        Some(Arc::new(Document { uid, created, generation, ..document }))
    }
}

impl Registry {
    /// Puts into use the accepted texts that are newer than those in use and that compile. The status is not
    /// trusted: anyone with the right to write it may have changed it. Returns the problems of the others.
    pub(super) fn restore<T>(
        &mut self,
        compile: &mut impl FnMut(Vec<Source>) -> Result<T, Diagnostics>,
    ) -> Vec<(DocumentId, Problem)> {
        let mut past = self.clone();
        let (mut is_new, mut is_past) = (false, false);
        for entry in past.entries.values_mut().filter(|entry| entry.latest.is_some()) {
            let unused = entry.unused();
            is_new |= unused.is_some();
            let accepted = unused.or_else(|| entry.used.clone());
            is_past |= accepted != entry.latest;
            entry.latest = accepted;
        }
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
            let entry = self.entries.get_mut(&id);
            if let Some(Entry {
                latest: Some(latest),
                used: None,
                problem: Some(problem),
                status,
                ..
            }) = entry
                && let Some(LastAccepted { generation, .. }) = status.last_accepted
                && generation < latest.generation
            {
                problem.message.push_str(&format!(
                    "\n\nThe spec of generation {generation} in status.lastAccepted is not accepted either:\n\n{message}"
                ));
            }
        }
    }
}
