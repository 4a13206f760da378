//! Which writes the status of the documents needs. Pure: from what is known to a list of writes.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use jiff::Timestamp;

use super::conditions::{Condition, DocumentState, Registered, ReplicaEntry, seconds};
use super::registry::{DocumentId, Entry, LastAccepted};
use statusgate_cluster::manifests::coverage::Coverage;
use statusgate_core::documents::DocumentKind;

/// What a write changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Write {
    /// The entry of a replica; `None` removes it.
    Entry(String, Option<ReplicaEntry>),
    /// The conditions, `observedGeneration` and `lastAccepted`.
    Conditions(i64, Vec<Condition>, Option<LastAccepted>),
}

/// What the writes depend on.
#[derive(Clone, Copy, Debug)]
pub(super) struct View<'v> {
    /// The name of this replica.
    pub own: &'v str,
    /// The names of the replicas that are alive; empty while they are not known.
    pub live: &'v [String],
    /// Whether statusgate manages the registrations.
    pub manages_registrations: bool,
    /// How the registrations cover the resources of each document, once it is known.
    pub coverage: Option<&'v BTreeMap<DocumentId, Coverage>>,
}

impl View<'_> {
    /// The writes for one document.
    pub(super) fn writes(&self, id: &DocumentId, entry: &Entry, now: Timestamp) -> Vec<Write> {
        let Entry { latest: Some(latest), status, .. } = entry else { return Vec::new() };
        let mut writes = Vec::new();
        let used = entry.used_generation();
        if status.generation_of(self.own) != used {
            let wanted = used.map(|generation| ReplicaEntry {
                name: self.own.to_owned(),
                generation,
                loaded_time: seconds(entry.loaded),
            });
            writes.push(Write::Entry(self.own.to_owned(), wanted));
        }
        // The entries of others are removed when the own one is stored.
        if self.live.is_empty() || !writes.is_empty() {
            return writes;
        }
        let dead = status.dead(self.live, now).filter(|name| *name != self.own);
        writes.extend(dead.map(|name| Write::Entry(name.to_owned(), None)));
        // One entry stays: Kubernetes 1.20 makes an emptied list null, and rejects it.
        if writes.len() == status.replicas.len() {
            writes.pop();
        }
        // The entries change first, so that the conditions are written once. A replica that this one does not
        // know yet knows this one: it reads the Leases after it created its own.
        if writes.is_empty() && !status.has_unknown(self.live, now) {
            let state = DocumentState {
                generation: latest.generation,
                problem: entry.problem.as_ref(),
                live: self.live,
                registered: self.registered(id),
            };
            let conditions = status.conditions_for(&state, now);
            let accepted = match entry.used.as_ref().filter(|used| used.uid == latest.uid) {
                Some(used) => LastAccepted::of(used),
                // Another version may accept it.
                None => status.last_accepted.clone(),
            };
            let is_stored = status.last_accepted == accepted;
            if !is_stored || !status.has(latest.generation, &conditions) {
                writes.push(Write::Conditions(latest.generation, conditions, accepted));
            }
        }
        writes
    }

    /// Whether this replica is the one that should write the conditions of a document. The others write
    /// them if it does not.
    pub(super) fn is_first(&self, id: &DocumentId) -> bool {
        let mut hasher = DefaultHasher::new();
        id.hash(&mut hasher);
        let count = self.live.len().max(1) as u64;
        let place = usize::try_from(hasher.finish() % count).unwrap_or_default();
        self.live.get(place).is_none_or(|first| first == self.own)
    }

    pub(super) fn registered(&self, id: &DocumentId) -> Registered<'_> {
        match (id.kind, self.manages_registrations) {
            (DocumentKind::StatusConvention, false) => Registered::NotNeeded,
            (DocumentKind::StatusPolicy, false) => Registered::NotManaged,
            (_, true) => {
                let known = self.coverage.and_then(|coverage| coverage.get(id));
                known.map_or(Registered::NotRead, Registered::Known)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::conditions::Status;
    use crate::registry::{Document, Registry};
    use statusgate_core::policy::PolicySet;

    const NOW: Timestamp = Timestamp::constant(1_800_000_000, 0);

    fn policy(name: &str) -> DocumentId {
        DocumentId { kind: DocumentKind::StatusPolicy, name: name.to_owned() }
    }

    fn registry(generation: i64) -> Registry {
        let spec = json!({"convention": "metav1",
            "resources": [{"apiGroups": ["g"], "apiVersions": ["v1"], "resources": ["things"]}]});
        let document = Document::new(policy("p"), &spec);
        let document = Document { uid: "u".to_owned(), generation, ..document };
        let mut registry = Registry::default();
        registry.set(&policy("p"), Some(document));
        assert!(registry.settle(|documents| PolicySet::compile(&documents)).is_some());
        registry
    }

    fn entry(registry: &Registry) -> Entry {
        Entry { loaded: NOW, ..registry.get(&policy("p")).unwrap().clone() }
    }

    fn with_replicas(entry: Entry, replicas: Vec<ReplicaEntry>) -> Entry {
        Entry { status: Arc::new(Status { replicas, ..Status::default() }), ..entry }
    }

    /// Applies the writes to a status, as the API server does.
    fn apply(entry: &mut Entry, writes: Vec<Write>) {
        let status = Arc::make_mut(&mut entry.status);
        for write in writes {
            match write {
                Write::Entry(name, entry) => {
                    status.replicas.retain(|entry| entry.name != name);
                    status.replicas.extend(entry);
                }
                Write::Conditions(generation, conditions, accepted) => {
                    status.observed_generation = Some(generation);
                    status.conditions = conditions;
                    status.last_accepted = accepted;
                }
            }
        }
    }

    #[test]
    fn replicas_with_the_same_view_agree_after_one_write_each_and_one_of_the_conditions() {
        let live = ["a".to_owned(), "b".to_owned()];
        let view = |own: &'static str| View {
            own,
            live: &live,
            manages_registrations: false,
            coverage: None,
        };
        let mut entry = entry(&registry(3));
        for own in ["a", "b"] {
            let writes = view(own).writes(&policy("p"), &entry, NOW);
            assert!(
                matches!(&writes[..], [Write::Entry(name, Some(_))] if name == own),
                "{writes:?}"
            );
            apply(&mut entry, writes);
        }
        let writes = view("a").writes(&policy("p"), &entry, NOW);
        assert!(matches!(&writes[..], [Write::Conditions(3, ..)]), "{writes:?}");
        apply(&mut entry, writes);
        for own in ["a", "b"] {
            assert_eq!(view(own).writes(&policy("p"), &entry, NOW), []);
        }
        let names = (0..100).map(|number| policy(&format!("p{number}")));
        let of_a = names.filter(|id| view("a").is_first(id) && !view("b").is_first(id)).count();
        assert!((30..70).contains(&of_a), "{of_a}");
    }

    #[test]
    fn without_known_replicas_only_the_own_entry_is_written() {
        let view = View { own: "a", live: &[], manages_registrations: false, coverage: None };
        let mut entry = entry(&registry(1));
        let writes = view.writes(&policy("p"), &entry, NOW);
        assert_eq!(writes.len(), 1);
        apply(&mut entry, writes);
        assert_eq!(view.writes(&policy("p"), &entry, NOW), []);
    }

    #[test]
    fn the_status_keeps_the_accepted_text_while_a_later_one_is_invalid() {
        let live = ["a".to_owned()];
        let view = View { own: "a", live: &live, manages_registrations: false, coverage: None };
        let mut registry = registry(1);
        let mut status = Arc::default();
        let settle = |registry: &Registry, status: &mut Arc<Status>| loop {
            let mut entry = Entry { status: Arc::clone(status), ..entry(registry) };
            let writes = view.writes(&policy("p"), &entry, NOW);
            if writes.is_empty() {
                return status.last_accepted.clone().map(|accepted| accepted.generation);
            }
            apply(&mut entry, writes);
            *status = entry.status;
        };
        assert_eq!(settle(&registry, &mut status), Some(1));
        let accepted = status.last_accepted.clone();
        let invalid = Document::new(policy("p"), &json!({"convention": "nothing"}));
        let invalid = Document { uid: "u".to_owned(), generation: 2, ..invalid };
        registry.set(&policy("p"), Some(invalid.clone()));
        registry.settle(|documents| PolicySet::compile(&documents));
        assert_eq!(settle(&registry, &mut status), Some(1));
        assert_eq!(status.last_accepted, accepted, "with its spec");
        // Changed by hand.
        Arc::make_mut(&mut status).last_accepted = None;
        assert_eq!(settle(&registry, &mut status), Some(1));
        // Without a text in use, the stored one is kept: another version may accept it.
        let mut other = Registry::default();
        other.set(&policy("p"), Some(invalid));
        other.settle(|documents| PolicySet::compile(&documents));
        assert_eq!(settle(&other, &mut status), Some(1));
        assert_eq!(status.observed_generation, Some(2));
    }

    #[test]
    fn a_replica_leaves_the_conditions_to_a_new_one_that_it_does_not_know() {
        let live = ["a".to_owned()];
        let view = View { own: "a", live: &live, manages_registrations: false, coverage: None };
        let of = |name: &str| ReplicaEntry {
            name: name.to_owned(),
            generation: 1,
            loaded_time: seconds(NOW),
        };
        let entry = with_replicas(entry(&registry(1)), vec![of("a"), of("b")]);
        assert_eq!(view.writes(&policy("p"), &entry, NOW), []);
        let later = NOW + jiff::SignedDuration::from_secs(30);
        let writes = view.writes(&policy("p"), &entry, later);
        assert_eq!(writes, [Write::Entry("b".to_owned(), None)]);
    }

    #[test]
    fn entries_of_dead_replicas_are_removed_while_another_one_is_stored() {
        let live = ["a".to_owned()];
        let view = View { own: "a", live: &live, manages_registrations: false, coverage: None };
        let of = |name: &str| ReplicaEntry {
            name: name.to_owned(),
            generation: 1,
            loaded_time: "2026-01-01T00:00:00Z".to_owned(),
        };
        let mut stored = with_replicas(entry(&registry(1)), vec![of("b"), of("c")]);
        let own = view.writes(&policy("p"), &stored, NOW);
        assert!(matches!(&own[..], [Write::Entry(name, Some(_))] if name == "a"), "{own:?}");
        apply(&mut stored, own);
        let others = view.writes(&policy("p"), &stored, NOW);
        assert_eq!(others, ["b", "c"].map(|name| Write::Entry(name.to_owned(), None)));
        // A document that no replica enforces.
        let invalid = Document::new(policy("p"), &json!({"convention": "nothing"}));
        let mut without = Registry::default();
        without.set(&policy("p"), Some(Document { uid: "u".to_owned(), ..invalid }));
        without.settle(|documents| PolicySet::compile(&documents));
        let mut stored = with_replicas(entry(&without), vec![of("b"), of("c")]);
        let first = view.writes(&policy("p"), &stored, NOW);
        assert_eq!(first, [Write::Entry("b".to_owned(), None)]);
        apply(&mut stored, first);
        let then = view.writes(&policy("p"), &stored, NOW);
        assert!(matches!(&then[..], [Write::Conditions(..)]), "the last entry stays: {then:?}");
    }

    #[test]
    fn the_registrations_matter_only_if_they_are_managed() {
        let live = ["a".to_owned()];
        let view = |manages_registrations, coverage| View {
            own: "a",
            live: &live,
            manages_registrations,
            coverage,
        };
        let id = policy("p");
        let coverage = BTreeMap::from([(id.clone(), Coverage::default())]);
        let convention = DocumentId { kind: DocumentKind::StatusConvention, ..id.clone() };
        assert_eq!(view(false, Some(&coverage)).registered(&convention), Registered::NotNeeded);
        assert_eq!(view(false, Some(&coverage)).registered(&id), Registered::NotManaged);
        assert_eq!(view(true, None).registered(&id), Registered::NotRead);
        assert_eq!(view(true, Some(&coverage)).registered(&policy("q")), Registered::NotRead);
        let known = coverage.get(&id).map(Registered::Known).unwrap();
        assert_eq!(view(true, Some(&coverage)).registered(&id), known);
    }
}
