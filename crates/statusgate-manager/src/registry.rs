//! The documents of the cluster, and which of their texts are in use.
//!
//! All documents are compiled together. If they have mistakes, the changed documents that cause them fall
//! back to the texts that were accepted last, so that a mistake in one document stops no other change.

mod accepted;

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::conditions::Status;
use statusgate_cluster::StoredDocument;
use statusgate_cluster::manifests::coverage::Coverage;
use statusgate_cluster::manifests::crds::{GROUP, VERSION};
use statusgate_core::documents::DocumentKind;
use statusgate_core::policy::{Conflict, Diagnostic, Diagnostics, PolicySet, Source};

pub use self::accepted::{LastAccepted, MAX_TEXT};

/// What identifies a document.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DocumentId {
    /// Its kind.
    pub kind: DocumentKind,
    /// `metadata.name`.
    pub name: String,
}

/// `StatusPolicy/NAME`: the file name in messages.
impl fmt::Display for DocumentId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.kind.name(), self.name)
    }
}

/// One generation of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// What identifies it.
    pub id: DocumentId,
    /// `metadata.uid`: another one if the document was deleted and created again.
    pub uid: String,
    /// `metadata.generation`.
    pub generation: i64,
    /// `metadata.creationTimestamp`, as the API server writes it.
    pub created: String,
    /// `spec`.
    pub spec: Spec,
    /// The document without what only the API server needs, as YAML.
    pub source: Source,
    /// The convention that it follows or extends.
    pub convention: Option<String>,
}

/// A `spec` as JSON text, with sorted keys. Each map of a tree has room for eleven members.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Spec(Box<RawValue>);

impl Spec {
    /// The text of a tree.
    pub fn of(spec: &Value) -> Self {
        // A tree of JSON values always has a text.
        Self(to_raw_value(spec).unwrap_or_default())
    }

    fn tree(&self) -> Value {
        // It was read from a tree.
        serde_json::from_str(self.0.get()).unwrap_or_default()
    }
}

impl PartialEq for Spec {
    fn eq(&self, other: &Self) -> bool {
        self.0.get() == other.0.get()
    }
}

impl Eq for Spec {}

impl Document {
    /// A document with a `spec`, as the API server has it.
    pub fn new(id: DocumentId, spec: &Value) -> Self {
        let document = json!({
            "apiVersion": format!("{GROUP}/{VERSION}"),
            "kind": id.kind.name(),
            "metadata": {"name": id.name},
            "spec": spec,
        });
        // JSON has no value that YAML lacks. The compiler would report an empty document.
        let text = serde_saphyr::to_string(&document).unwrap_or_default();
        let convention = match id.kind {
            DocumentKind::StatusPolicy => "convention",
            DocumentKind::StatusConvention => "extends",
        };
        let convention = spec.get(convention).and_then(Value::as_str).map(str::to_owned);
        let source = Source::new(id.to_string(), text);
        let (uid, created) = (String::new(), String::new());
        let spec = Spec::of(spec);
        Self { id, uid, generation: 0, created, spec, source, convention }
    }
}

/// Names both policies, and which one owns the phase.
pub(super) fn conflict_message(conflict: &Conflict<'_>, in_cluster: bool) -> String {
    let Conflict { owner, policy, resource } = conflict;
    let reason = if in_cluster { "is older" } else { "is in a file" };
    format!(
        "policies \"{}\" and \"{}\" both configure the phase of {resource}: \"{}\" {reason} and owns it",
        policy.name, owner.name, owner.name
    )
}

/// Whether both are the same generation of one object, or none.
fn are_same(one: Option<&Document>, other: Option<&Document>) -> bool {
    one.map(|of| (&of.uid, of.generation)) == other.map(|of| (&of.uid, of.generation))
}

/// Why the latest generation of a document is not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The kind of problem.
    pub kind: ProblemKind,
    /// The mistakes as `statusgate lint` prints them, or a sentence.
    pub message: String,
}

/// The kinds of problems.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProblemKind {
    /// The document has mistakes.
    Invalid,
    /// Other documents have mistakes because of it.
    BreaksOthers,
    /// The convention that it needs is not accepted.
    ConventionNotAccepted,
    /// The convention that it needs was deleted. Its last text stays in use.
    ConventionDeleted,
    /// An older document owns the phase of some of its resources. For everything else, it is in use.
    Conflict,
}

/// A document, and what is in use of it.
#[derive(Clone, Debug, Default)]
pub struct Entry {
    /// The document in the cluster; `None` if it was deleted, but is still needed.
    pub latest: Option<Arc<Document>>,
    /// The one in use, perhaps an earlier one.
    pub used: Option<Arc<Document>>,
    /// The text in `status.lastAccepted` of the latest one. Anyone with the right to write the status may
    /// have changed it.
    pub(super) accepted: Option<Arc<Document>>,
    /// Why the latest one is not accepted.
    pub problem: Option<Problem>,
    /// `metadata.resourceVersion` of the latest one.
    pub version: String,
    /// `status` of the latest one. It may contain a text.
    pub status: Arc<Status>,
    /// When this replica loaded the generation that it enforces.
    pub loaded: Timestamp,
}

impl Entry {
    fn is_changed(&self) -> bool {
        !are_same(self.latest.as_deref(), self.used.as_deref())
    }

    /// The generation in use of the object that is in the cluster.
    pub fn used_generation(&self) -> Option<i64> {
        let (latest, used) = (self.latest.as_ref()?, self.used.as_ref()?);
        (latest.uid == used.uid).then_some(used.generation)
    }
}

/// All documents of the cluster.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    entries: BTreeMap<DocumentId, Entry>,
}

/// The documents that fall back to the last accepted text. Those without one are left out.
type Rejected = BTreeMap<DocumentId, Problem>;

impl Registry {
    /// All documents and deleted ones that are still in use.
    pub fn entries(&self) -> impl Iterator<Item = (&DocumentId, &Entry)> {
        self.entries.iter()
    }

    /// A document.
    pub fn get(&self, id: &DocumentId) -> Option<&Entry> {
        self.entries.get(id)
    }

    /// How many documents of a kind are in the cluster: those that are accepted, and the others.
    pub fn counts(&self, kind: DocumentKind) -> (usize, usize) {
        let of_kind = self.entries.iter().filter(|(id, _)| id.kind == kind);
        let stored = of_kind.filter(|(_, entry)| entry.latest.is_some());
        let (rejected, accepted): (Vec<_>, Vec<_>) =
            stored.partition(|(_, entry)| entry.problem.is_some());
        (accepted.len(), rejected.len())
    }

    /// The texts in use, with that of a document in its place.
    pub fn used_with(&self, document: &Document) -> Vec<Source> {
        let stored = self.get(&document.id).and_then(|entry| entry.latest.as_ref());
        let stored = stored.map(|stored| stored.created.clone());
        // A new document is the youngest.
        let created = stored.unwrap_or_else(|| "~".to_owned());
        let document = Document { created, ..document.clone() };
        let others = self.entries.iter().filter(|(other, _)| **other != document.id);
        let others = others.filter_map(|(_, entry)| entry.used.as_deref());
        by_age(others.chain([&document]))
    }

    /// Adds to the coverage of policies that of the conventions in use: of all policies that follow one. It is
    /// absent while that of one policy is.
    pub fn with_conventions(
        &self,
        policies: &BTreeMap<String, Coverage>,
    ) -> BTreeMap<DocumentId, Coverage> {
        let id = |kind, name: &String| DocumentId { kind, name: name.clone() };
        let is_convention = |id: &&DocumentId| id.kind == DocumentKind::StatusConvention;
        let conventions = self.entries.keys().filter(is_convention);
        let mut known: BTreeMap<DocumentId, Option<Coverage>> =
            conventions.map(|id| (id.clone(), Some(Coverage::default()))).collect();
        for (policy, entry) in self.entries.iter().filter(|(id, _)| !is_convention(id)) {
            let of_policy = policies.get(&policy.name);
            let mut next = entry.used.as_ref().and_then(|used| used.convention.clone());
            // An invalid text that is not in use may extend itself.
            for _ in 0..known.len() {
                let Some(name) = next else { break };
                let convention = id(DocumentKind::StatusConvention, &name);
                if let Some(coverage) = known.get_mut(&convention) {
                    *coverage = coverage.take().zip(of_policy).map(|(mut all, of)| {
                        all.add(of);
                        all
                    });
                }
                let used = self.entries.get(&convention).and_then(|entry| entry.used.as_ref());
                next = used.and_then(|used| used.convention.clone());
            }
        }
        let conventions = known.into_iter().filter_map(|(id, known)| Some((id, known?)));
        let of_policies = policies
            .iter()
            .map(|(name, coverage)| (id(DocumentKind::StatusPolicy, name), coverage.clone()));
        of_policies.chain(conventions).collect()
    }

    /// Whether the latest documents are compiled: all of them but the rejected ones.
    pub fn is_settled(&self) -> bool {
        let is_open =
            |entry: &Entry| entry.latest.is_some() && entry.problem.is_none() && entry.is_changed();
        !self.entries.values().any(is_open)
    }

    /// Takes over a document. Returns whether its text has changed. Nothing is compiled.
    pub fn put(&mut self, id: &DocumentId, stored: StoredDocument) -> bool {
        let StoredDocument { uid, generation, resource_version, created, spec, status, .. } =
            stored;
        let latest = self.get(id).and_then(|entry| entry.latest.as_ref());
        // Most events are about a status.
        let same =
            latest.is_some_and(|latest| (&latest.uid, latest.generation) == (&uid, generation));
        let changed = !same && {
            let document = Document::new(id.clone(), &spec);
            self.set(id, Some(Document { uid, generation, created, ..document }))
        };
        let status: Status = serde_json::from_value(status).unwrap_or_default();
        let accepted = status.last_accepted.clone();
        if let Some(entry) = self.entries.get_mut(id) {
            (entry.version, entry.status) = (resource_version, Arc::new(status));
        }
        self.set_accepted(id, accepted) || changed
    }

    /// Sets or (with `None`) removes a document. Returns whether this is a change. Nothing is compiled.
    pub fn set(&mut self, id: &DocumentId, document: Option<Document>) -> bool {
        let entry = self.entries.entry(id.clone()).or_default();
        let same = are_same(entry.latest.as_deref(), document.as_ref());
        if !same {
            entry.latest = document.map(Arc::new);
            entry.accepted = None;
        }
        if entry.latest.is_none() && entry.used.is_none() {
            self.entries.remove(id);
        }
        !same
    }

    /// Compiles the latest documents, without those that cannot be accepted. `compile` is called until it
    /// succeeds, with fewer changes each time; the last call has what is in use afterwards. `None` if it
    /// does not even accept the texts in use; then these stay in use.
    pub fn settle<T: Borrow<PolicySet>>(
        &mut self,
        mut compile: impl FnMut(Vec<Source>) -> Result<T, Diagnostics>,
    ) -> Option<T> {
        let problems = self.restore(&mut compile);
        let compiled = self.settle_latest(&mut compile);
        self.report(problems);
        if let Some(compiled) = &compiled {
            self.report_conflicts(compiled.borrow());
        }
        compiled
    }

    /// Reports the conflicts of documents that have no other problem.
    fn report_conflicts(&mut self, policies: &PolicySet) {
        let mut messages: BTreeMap<DocumentId, Vec<String>> = BTreeMap::new();
        for conflict in policies.conflicts(None) {
            let id =
                |name: &str| DocumentId { kind: DocumentKind::StatusPolicy, name: name.to_owned() };
            let in_cluster = self.entries.contains_key(&id(&conflict.owner.name));
            let message = conflict_message(&conflict, in_cluster);
            messages.entry(id(&conflict.policy.name)).or_default().push(message);
        }
        for (id, messages) in messages {
            let entry = self.entries.get_mut(&id).filter(|entry| entry.problem.is_none());
            if let Some(entry) = entry.filter(|entry| entry.latest.is_some()) {
                let kind = ProblemKind::Conflict;
                entry.problem = Some(Problem { kind, message: messages.join("\n") });
            }
        }
    }

    /// Sets when the generations were loaded that `before` did not use.
    pub fn set_loaded(&mut self, before: &Self, now: Timestamp) {
        for (id, entry) in &mut self.entries {
            let generation = before.get(id).and_then(Entry::used_generation);
            if entry.used_generation() != generation {
                entry.loaded = now;
            }
        }
    }

    fn settle_latest<T>(
        &mut self,
        compile: &mut impl FnMut(Vec<Source>) -> Result<T, Diagnostics>,
    ) -> Option<T> {
        let kept = self.still_needed();
        let mut rejected = Rejected::new();
        loop {
            let mistakes = match compile(self.sources(&rejected, &kept)) {
                Ok(compiled) => {
                    self.accept(rejected, &kept);
                    return Some(compiled);
                }
                Err(mistakes) => mistakes,
            };
            let open = self.open(&rejected, &kept);
            let blamed: Rejected = open
                .iter()
                .filter_map(|id| Some((id.clone(), self.own_problem(id, &mistakes, &rejected)?)))
                .collect();
            if !blamed.is_empty() {
                rejected.extend(blamed);
                continue;
            }
            let problem =
                Problem { kind: ProblemKind::BreaksOthers, message: mistakes.to_string() };
            match self.culprit(open, &rejected, &kept, compile) {
                Some(id) => rejected.insert(id, problem),
                None => {
                    for entry in self.entries.values_mut().filter(|entry| entry.is_changed()) {
                        entry.problem = Some(problem.clone());
                    }
                    return None;
                }
            };
        }
    }

    /// The deleted conventions that documents still need.
    fn still_needed(&self) -> BTreeSet<DocumentId> {
        let mut kept = BTreeSet::new();
        loop {
            let texts = self.entries.iter().flat_map(|(id, Entry { latest, used, .. })| {
                // An earlier text is needed while the latest one is not accepted.
                let is_kept = latest.is_some() || kept.contains(id);
                let used = used.as_ref().filter(|_| is_kept);
                latest.iter().chain(used)
            });
            let needed: BTreeSet<&str> =
                texts.filter_map(|document| document.convention.as_deref()).collect();
            let more: BTreeSet<DocumentId> = self
                .entries
                .iter()
                .filter(|(id, entry)| {
                    id.kind == DocumentKind::StatusConvention
                        && entry.latest.is_none()
                        && needed.contains(id.name.as_str())
                })
                .map(|(id, _)| id.clone())
                .collect();
            if more == kept {
                return kept;
            }
            kept = more;
        }
    }

    fn sources(&self, rejected: &Rejected, kept: &BTreeSet<DocumentId>) -> Vec<Source> {
        let chosen = self.entries.iter().filter_map(|(id, entry)| {
            let falls_back = rejected.contains_key(id) || kept.contains(id);
            let document = if falls_back { entry.used.as_ref() } else { entry.latest.as_ref() };
            document.map(|document| &**document)
        });
        by_age(chosen)
    }

    /// The changes that were not reverted, newest first.
    fn open(&self, rejected: &Rejected, kept: &BTreeSet<DocumentId>) -> Vec<DocumentId> {
        let changed = self.entries.iter().filter(|(id, entry)| {
            entry.is_changed() && !rejected.contains_key(id) && !kept.contains(id)
        });
        let mut changed: Vec<(&str, &DocumentId)> = changed
            .map(|(id, entry)| (entry.latest.as_ref().map_or("", |new| new.created.as_str()), id))
            .collect();
        changed.sort_by(|a, b| b.cmp(a));
        changed.into_iter().map(|(_, id)| id.clone()).collect()
    }

    /// The mistakes of a document, if there are some.
    fn own_problem(
        &self,
        id: &DocumentId,
        mistakes: &Diagnostics,
        rejected: &Rejected,
    ) -> Option<Problem> {
        let own = mistakes.filter(|mistake| is_of(id, mistake));
        if own.is_empty() {
            return None;
        }
        let missing = self.convention_of(id).filter(|(id, entry)| {
            rejected.contains_key(id) && entry.used.is_none() && entry.latest.is_some()
        });
        Some(match missing {
            None => Problem { kind: ProblemKind::Invalid, message: own.to_string() },
            Some((convention, _)) => Problem {
                kind: ProblemKind::ConventionNotAccepted,
                message: format!("{convention} is not accepted: see its status\n\n{own}"),
            },
        })
    }

    /// The convention that the latest text of a document needs, if it is one of the cluster.
    fn convention_of(&self, id: &DocumentId) -> Option<(&DocumentId, &Entry)> {
        let name = self.entries.get(id)?.latest.as_ref()?.convention.clone()?;
        self.entries.get_key_value(&DocumentId { kind: DocumentKind::StatusConvention, name })
    }

    /// Rejects the open changes one after another until the rest compiles, and returns the last one that was
    /// rejected. The caller rejects only this one, and tries the others again.
    fn culprit<T>(
        &self,
        open: Vec<DocumentId>,
        rejected: &Rejected,
        kept: &BTreeSet<DocumentId>,
        compile: &mut impl FnMut(Vec<Source>) -> Result<T, Diagnostics>,
    ) -> Option<DocumentId> {
        let mut rejected = rejected.clone();
        let without = Problem { kind: ProblemKind::BreaksOthers, message: String::new() };
        open.into_iter().find(|id| {
            rejected.insert(id.clone(), without.clone());
            compile(self.sources(&rejected, kept)).is_ok()
        })
    }

    fn accept(&mut self, mut rejected: Rejected, kept: &BTreeSet<DocumentId>) {
        for (id, entry) in &mut self.entries {
            entry.problem = rejected.remove(id);
            if entry.problem.is_none() && !kept.contains(id) {
                entry.used.clone_from(&entry.latest);
            }
        }
        self.entries.retain(|_, entry| entry.latest.is_some() || entry.used.is_some());
        for convention in kept {
            let name = Some(&convention.name);
            for entry in self.entries.values_mut() {
                let needs =
                    entry.latest.as_ref().is_some_and(|new| new.convention.as_ref() == name);
                if needs && entry.problem.is_none() {
                    entry.problem = Some(Problem {
                        kind: ProblemKind::ConventionDeleted,
                        message: format!(
                            "{convention} was deleted; its last text stays in use until statusgate \
                             restarts: create it again, or change this document"
                        ),
                    });
                }
            }
        }
    }
}

/// The texts, the oldest first: it owns a phase that others configure too. As in the Gateway API.
fn by_age<'d>(documents: impl Iterator<Item = &'d Document>) -> Vec<Source> {
    let mut documents: Vec<&Document> = documents.collect();
    documents.sort_by_key(|document| (&document.created, &document.id));
    documents.into_iter().map(|document| document.source.clone()).collect()
}

/// Whether a document has a mistake: in its text, or in a text that it inherits.
fn is_of(id: &DocumentId, mistake: &Diagnostic) -> bool {
    match &mistake.inherited_by {
        Some(heir) => id.kind == DocumentKind::StatusConvention && *heir == id.name,
        None => *mistake.file == *id.to_string(),
    }
}

#[cfg(test)]
mod tests;
