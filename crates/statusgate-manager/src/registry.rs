//! The documents of the cluster, and which of their texts are in use.
//!
//! All documents are compiled together. If they have mistakes, the changed documents that cause them fall
//! back to the texts that were accepted last, so that a mistake in one document stops no other change. A
//! changed document causes its own mistakes, and a changed convention those of the documents that need it.

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

impl DocumentId {
    fn policy(name: &str) -> Self {
        Self { kind: DocumentKind::StatusPolicy, name: name.to_owned() }
    }

    fn convention(name: &str) -> Self {
        Self { kind: DocumentKind::StatusConvention, name: name.to_owned() }
    }
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
    /// The names of the conventions that it follows, extends or is like.
    pub conventions: Vec<String>,
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
        let lists = spec["conditions"].as_array().into_iter().flatten();
        let conventions = [&spec["convention"], &spec["extends"]]
            .into_iter()
            .chain(lists.map(|list| &list["like"]))
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect();
        let source = Source::new(id.to_string(), text);
        let (uid, created) = (String::new(), String::new());
        let spec = Spec::of(spec);
        Self { id, uid, generation: 0, created, spec, source, conventions }
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
    /// Documents that need it have mistakes because of it.
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
    /// Why the latest one is not accepted.
    pub problem: Option<Problem>,
    /// `metadata.resourceVersion` of the latest one.
    pub version: String,
    /// `status` of the latest one. Anyone with the right to write it may have changed the accepted text.
    pub status: Arc<Status>,
    /// When this replica loaded the generation that it enforces.
    pub loaded: Timestamp,
}

impl Entry {
    fn is_changed(&self) -> bool {
        !are_same(self.latest.as_deref(), self.used.as_deref())
    }

    /// The latest text, and the one in use, which is needed while the latest one is not accepted.
    fn texts(&self) -> impl Iterator<Item = &Document> {
        [&self.latest, &self.used].into_iter().flatten().map(|text| &**text)
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

/// The documents that keep the text in use, and why: changes with problems, and deleted conventions that others
/// need. Those without a text in use are left out.
type Held = BTreeMap<DocumentId, Problem>;

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
        let is_convention = |id: &&DocumentId| id.kind == DocumentKind::StatusConvention;
        let conventions = self.entries.keys().filter(is_convention);
        let mut known: BTreeMap<DocumentId, Option<Coverage>> =
            conventions.map(|id| (id.clone(), Some(Coverage::default()))).collect();
        for (policy, entry) in self.entries.iter().filter(|(id, _)| !is_convention(id)) {
            let of_policy = policies.get(&policy.name);
            let Some(used) = &entry.used else { continue };
            for name in self.needed(&used.conventions, |_, entry| entry.used.as_deref()) {
                if let Some(coverage) = known.get_mut(&DocumentId::convention(name)) {
                    *coverage = coverage.take().zip(of_policy).map(|(mut all, of)| {
                        all.add(of);
                        all
                    });
                }
            }
        }
        let conventions = known.into_iter().filter_map(|(id, known)| Some((id, known?)));
        let of_policies =
            policies.iter().map(|(name, coverage)| (DocumentId::policy(name), coverage.clone()));
        of_policies.chain(conventions).collect()
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
        let Some(entry) = self.entries.get_mut(id) else { return changed };
        let is_same = entry.status.last_accepted == status.last_accepted;
        (entry.version, entry.status) = (resource_version, Arc::new(status));
        changed || (!is_same && entry.unused().is_some())
    }

    /// Sets or (with `None`) removes a document. Returns whether this is a change. Nothing is compiled.
    pub fn set(&mut self, id: &DocumentId, document: Option<Document>) -> bool {
        let entry = self.entries.entry(id.clone()).or_default();
        let same = are_same(entry.latest.as_deref(), document.as_ref());
        if !same {
            entry.latest = document.map(Arc::new);
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
            let owner = DocumentId::policy(&conflict.owner.name);
            let message = conflict_message(&conflict, self.entries.contains_key(&owner));
            let policy = DocumentId::policy(&conflict.policy.name);
            messages.entry(policy).or_default().push(message);
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
        let mut held = self.still_needed();
        loop {
            let mistakes = match compile(self.sources(&held)) {
                Ok(compiled) => {
                    self.accept(&held);
                    return Some(compiled);
                }
                Err(mistakes) => mistakes,
            };
            let causes = self.causes(&mistakes, &held);
            if causes.is_empty() {
                let (kind, message) = (ProblemKind::BreaksOthers, mistakes.to_string());
                for entry in self.entries.values_mut().filter(|entry| entry.is_changed()) {
                    entry.problem = Some(Problem { kind, message: message.clone() });
                }
                return None;
            }
            held.extend(causes);
        }
    }

    /// The deleted conventions that documents still need.
    fn still_needed(&self) -> Held {
        let stored = self.entries.values().filter(|entry| entry.latest.is_some());
        let names = stored.flat_map(Entry::texts).flat_map(|text| &text.conventions);
        let needed = self.needed(names, |_, entry| entry.texts());
        let deleted = needed.into_iter().map(DocumentId::convention).filter_map(|id| {
            let message = format!(
                "{id} was deleted; its last text stays in use until statusgate restarts: create it again, or \
                 change this document"
            );
            let problem = Problem { kind: ProblemKind::ConventionDeleted, message };
            self.get(&id)?.latest.is_none().then_some((id, problem))
        });
        deleted.collect()
    }

    /// These conventions, and those that their texts need.
    fn needed<'r, T: IntoIterator<Item = &'r Document>>(
        &'r self,
        names: impl IntoIterator<Item = &'r String>,
        texts: impl Fn(&'r DocumentId, &'r Entry) -> T,
    ) -> BTreeSet<&'r str> {
        let mut found = BTreeSet::new();
        let mut open: Vec<&String> = names.into_iter().collect();
        while let Some(name) = open.pop() {
            // Two conventions may be like each other, and an invalid one may extend itself.
            if found.insert(name.as_str()) {
                let entry = self.entries.get_key_value(&DocumentId::convention(name));
                let texts = entry.into_iter().flat_map(|(id, entry)| texts(id, entry));
                open.extend(texts.flat_map(|text| &text.conventions));
            }
        }
        found
    }

    /// The text of a document that is compiled.
    fn text<'r>(id: &DocumentId, entry: &'r Entry, held: &Held) -> Option<&'r Document> {
        let document = if held.contains_key(id) { &entry.used } else { &entry.latest };
        document.as_deref()
    }

    fn sources(&self, held: &Held) -> Vec<Source> {
        by_age(self.entries.iter().filter_map(|(id, entry)| Self::text(id, entry, held)))
    }

    /// The changes that cause mistakes, and their problems: first those of changed documents themselves. A
    /// document that did not change has mistakes because of a convention.
    fn causes(&self, mistakes: &Diagnostics, held: &Held) -> Held {
        let is_open =
            |(id, entry): &(&DocumentId, &Entry)| entry.is_changed() && !held.contains_key(*id);
        let (mut causes, mut names) = (Held::new(), Vec::new());
        for (id, entry) in &self.entries {
            let own = mistakes.filter(|mistake| is_of(id, mistake));
            if own.is_empty() {
                continue;
            }
            if is_open(&(id, entry)) {
                causes.insert(id.clone(), self.own_problem(entry, &own, held));
            }
            // The rules of a policy need ids that the convention of its name does not have.
            names.push(&id.name);
            let text = Self::text(id, entry, held);
            names.extend(text.into_iter().flat_map(|text| &text.conventions));
        }
        if causes.is_empty() {
            // What a file needs is not known.
            let is_of_file = names.is_empty();
            let needed = self.needed(names, |id, entry| Self::text(id, entry, held));
            let (kind, message) = (ProblemKind::BreaksOthers, mistakes.to_string());
            let suspects = self.entries.iter().filter(is_open).filter(|(id, _)| {
                id.kind == DocumentKind::StatusConvention
                    && (is_of_file || needed.contains(&*id.name))
            });
            // One that waits already does not make the later changes of others wait.
            let waits = suspects.clone().any(|(_, entry)| entry.problem.is_some());
            for (id, _) in suspects.filter(|(_, entry)| entry.problem.is_some() == waits) {
                causes.insert(id.clone(), Problem { kind, message: message.clone() });
            }
        }
        causes
    }

    /// The problem of a document with these mistakes.
    fn own_problem(&self, entry: &Entry, mistakes: &Diagnostics, held: &Held) -> Problem {
        let named = entry.latest.iter().flat_map(|latest| &latest.conventions);
        let missing = named.map(|name| DocumentId::convention(name)).find(|id| {
            held.contains_key(id) && self.get(id).is_some_and(|entry| entry.used.is_none())
        });
        match missing {
            None => Problem { kind: ProblemKind::Invalid, message: mistakes.to_string() },
            Some(convention) => Problem {
                kind: ProblemKind::ConventionNotAccepted,
                message: format!("{convention} is not accepted: see its status\n\n{mistakes}"),
            },
        }
    }

    fn accept(&mut self, held: &Held) {
        self.entries.retain(|id, entry| {
            let is_deleted = |problem: &&Problem| problem.kind == ProblemKind::ConventionDeleted;
            let own = held.get(id);
            if own.is_none() {
                entry.used.clone_from(&entry.latest);
            }
            let mut deleted = entry
                .latest
                .iter()
                .flat_map(|latest| &latest.conventions)
                .filter_map(|name| held.get(&DocumentId::convention(name)))
                .filter(is_deleted);
            entry.problem = own.filter(|own| !is_deleted(own)).or_else(|| deleted.next()).cloned();
            entry.latest.is_some() || entry.used.is_some()
        });
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
        None => mistake.file.split_once('/') == Some((id.kind.name(), &*id.name)),
    }
}

#[cfg(test)]
mod tests;
