//! Which writes the status of the documents needs. Pure: from what is known to a list of writes.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use jiff::Timestamp;

use super::conditions::{Condition, DocumentState, Registered, ReplicaEntry, Status, seconds};
use super::registry::{DocumentId, LastAccepted, Registry};
use crate::manifests::rules::Coverage;
use statusgate_core::documents::DocumentKind;

/// A document in the cluster, apart from its text.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// `metadata.uid`.
    pub uid: String,
    /// `metadata.resourceVersion`.
    pub version: String,
    /// `status`.
    pub status: Status,
    /// When this replica loaded the generation that it enforces.
    pub loaded: Timestamp,
}

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
    /// How the registrations cover the resources of each policy, once it is known.
    pub coverage: Option<&'v BTreeMap<String, Coverage>>,
}

impl View<'_> {
    /// The writes for one document.
    pub(super) fn writes(
        &self,
        registry: &Registry,
        id: &DocumentId,
        seen: &Seen,
        now: Timestamp,
    ) -> Vec<Write> {
        let Some(entry) = registry.get(id) else { return Vec::new() };
        let Some(latest) = entry.latest.as_ref().filter(|latest| latest.uid == seen.uid) else {
            return Vec::new();
        };
        let mut writes = Vec::new();
        let used = entry.used_generation();
        if seen.status.generation_of(self.own) != used {
            let wanted = used.map(|generation| ReplicaEntry {
                name: self.own.to_owned(),
                generation,
                loaded_time: seconds(seen.loaded),
            });
            writes.push(Write::Entry(self.own.to_owned(), wanted));
        }
        // Others are removed when the own one is stored: Kubernetes 1.20 makes a list without an element null,
        // and rejects it.
        if self.live.is_empty() || !writes.is_empty() {
            return writes;
        }
        let dead = seen.status.dead(self.live, now).filter(|name| *name != self.own);
        writes.extend(dead.map(|name| Write::Entry(name.to_owned(), None)));
        if writes.len() == seen.status.replicas.len() {
            writes.pop();
        }
        // The entries change first, so that the conditions are written once. A replica that this one does not
        // know yet knows this one: it reads the Leases after it created its own.
        if writes.is_empty() && !seen.status.has_unknown(self.live, now) {
            let state = DocumentState {
                generation: latest.generation,
                problem: entry.problem.as_ref(),
                live: self.live,
                registered: self.registered(id),
            };
            let conditions = seen.status.conditions_for(&state, now);
            let accepted = match entry.used.as_ref().filter(|used| used.uid == latest.uid) {
                Some(used) => LastAccepted::of(used),
                // Another version may accept it.
                None => seen.status.last_accepted.clone(),
            };
            let is_stored = seen.status.last_accepted == accepted;
            if !is_stored || !seen.status.has(latest.generation, &conditions) {
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

    fn registered(&self, id: &DocumentId) -> Registered<'_> {
        match (id.kind, self.manages_registrations) {
            (DocumentKind::StatusConvention, _) => Registered::NotNeeded,
            (_, false) => Registered::NotManaged,
            (_, true) => {
                let known = self.coverage.and_then(|coverage| coverage.get(&id.name));
                known.map_or(Registered::NotRead, Registered::Known)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::manager::registry::Document;
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

    /// Applies the writes to a status, as the API server does.
    fn apply(seen: &mut Seen, writes: Vec<Write>) {
        for write in writes {
            match write {
                Write::Entry(name, entry) => {
                    seen.status.replicas.retain(|entry| entry.name != name);
                    seen.status.replicas.extend(entry);
                }
                Write::Conditions(generation, conditions, accepted) => {
                    seen.status.observed_generation = Some(generation);
                    seen.status.conditions = conditions;
                    seen.status.last_accepted = accepted;
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
        let registry = registry(3);
        let mut seen = Seen { uid: "u".to_owned(), loaded: NOW, ..Seen::default() };
        for own in ["a", "b"] {
            let writes = view(own).writes(&registry, &policy("p"), &seen, NOW);
            assert!(
                matches!(&writes[..], [Write::Entry(name, Some(_))] if name == own),
                "{writes:?}"
            );
            apply(&mut seen, writes);
        }
        let writes = view("a").writes(&registry, &policy("p"), &seen, NOW);
        assert!(matches!(&writes[..], [Write::Conditions(3, ..)]), "{writes:?}");
        apply(&mut seen, writes);
        for own in ["a", "b"] {
            assert_eq!(view(own).writes(&registry, &policy("p"), &seen, NOW), []);
        }
        let names = (0..100).map(|number| policy(&format!("p{number}")));
        let of_a = names.filter(|id| view("a").is_first(id) && !view("b").is_first(id)).count();
        assert!((30..70).contains(&of_a), "{of_a}");
    }

    #[test]
    fn without_known_replicas_only_the_own_entry_is_written() {
        let view = View { own: "a", live: &[], manages_registrations: false, coverage: None };
        let registry = registry(1);
        let mut seen = Seen { uid: "u".to_owned(), loaded: NOW, ..Seen::default() };
        let writes = view.writes(&registry, &policy("p"), &seen, NOW);
        assert_eq!(writes.len(), 1);
        apply(&mut seen, writes);
        assert_eq!(view.writes(&registry, &policy("p"), &seen, NOW), []);
    }

    #[test]
    fn the_status_keeps_the_accepted_text_while_a_later_one_is_invalid() {
        let live = ["a".to_owned()];
        let view = View { own: "a", live: &live, manages_registrations: false, coverage: None };
        let mut registry = registry(1);
        let mut seen = Seen { uid: "u".to_owned(), loaded: NOW, ..Seen::default() };
        let settle = |registry: &mut Registry, seen: &mut Seen| loop {
            let writes = view.writes(registry, &policy("p"), seen, NOW);
            if writes.is_empty() {
                return seen.status.last_accepted.clone().map(|accepted| accepted.generation);
            }
            apply(seen, writes);
        };
        assert_eq!(settle(&mut registry, &mut seen), Some(1));
        let accepted = seen.status.last_accepted.clone();
        let invalid = Document::new(policy("p"), &json!({"convention": "nothing"}));
        let invalid = Document { uid: "u".to_owned(), generation: 2, ..invalid };
        registry.set(&policy("p"), Some(invalid.clone()));
        registry.settle(|documents| PolicySet::compile(&documents));
        assert_eq!(settle(&mut registry, &mut seen), Some(1));
        assert_eq!(seen.status.last_accepted, accepted, "with its spec");
        // Changed by hand.
        seen.status.last_accepted = None;
        assert_eq!(settle(&mut registry, &mut seen), Some(1));
        // Without a text in use, the stored one is kept: another version may accept it.
        let mut other = Registry::default();
        other.set(&policy("p"), Some(invalid));
        other.settle(|documents| PolicySet::compile(&documents));
        assert_eq!(settle(&mut other, &mut seen), Some(1));
        assert_eq!(seen.status.observed_generation, Some(2));
    }

    #[test]
    fn a_replica_leaves_the_conditions_to_a_new_one_that_it_does_not_know() {
        let live = ["a".to_owned()];
        let view = View { own: "a", live: &live, manages_registrations: false, coverage: None };
        let mut seen = Seen { uid: "u".to_owned(), loaded: NOW, ..Seen::default() };
        let entry = |name: &str| ReplicaEntry {
            name: name.to_owned(),
            generation: 1,
            loaded_time: seconds(NOW),
        };
        seen.status.replicas = vec![entry("a"), entry("b")];
        assert_eq!(view.writes(&registry(1), &policy("p"), &seen, NOW), []);
        let later = NOW + jiff::SignedDuration::from_secs(30);
        let writes = view.writes(&registry(1), &policy("p"), &seen, later);
        assert_eq!(writes, [Write::Entry("b".to_owned(), None)]);
    }

    #[test]
    fn entries_of_dead_replicas_are_removed_while_another_one_is_stored() {
        let live = ["a".to_owned()];
        let view = View { own: "a", live: &live, manages_registrations: false, coverage: None };
        let entry = |name: &str| ReplicaEntry {
            name: name.to_owned(),
            generation: 1,
            loaded_time: "2026-01-01T00:00:00Z".to_owned(),
        };
        let mut seen = Seen { uid: "u".to_owned(), loaded: NOW, ..Seen::default() };
        seen.status.replicas = vec![entry("b"), entry("c")];
        let own = view.writes(&registry(1), &policy("p"), &seen, NOW);
        assert!(matches!(&own[..], [Write::Entry(name, Some(_))] if name == "a"), "{own:?}");
        apply(&mut seen, own);
        let others = view.writes(&registry(1), &policy("p"), &seen, NOW);
        assert_eq!(others, ["b", "c"].map(|name| Write::Entry(name.to_owned(), None)));
        // A document that no replica enforces.
        let invalid = Document::new(policy("p"), &json!({"convention": "nothing"}));
        let mut without = Registry::default();
        without.set(&policy("p"), Some(Document { uid: "u".to_owned(), ..invalid }));
        without.settle(|documents| PolicySet::compile(&documents));
        seen.status.replicas = vec![entry("b"), entry("c")];
        let first = view.writes(&without, &policy("p"), &seen, NOW);
        assert_eq!(first, [Write::Entry("b".to_owned(), None)]);
        apply(&mut seen, first);
        let then = view.writes(&without, &policy("p"), &seen, NOW);
        assert!(matches!(&then[..], [Write::Conditions(..)]), "the last entry stays: {then:?}");
    }

    #[test]
    fn an_object_that_was_created_again_is_left_until_it_is_known() {
        let live = ["a".to_owned()];
        let view = View { own: "a", live: &live, manages_registrations: false, coverage: None };
        let seen = Seen { uid: "other".to_owned(), ..Seen::default() };
        assert_eq!(view.writes(&registry(1), &policy("p"), &seen, NOW), []);
    }

    #[test]
    fn the_registrations_matter_only_for_policies_and_only_if_they_are_managed() {
        let live = ["a".to_owned()];
        let view = |manages_registrations, coverage| View {
            own: "a",
            live: &live,
            manages_registrations,
            coverage,
        };
        let coverage = BTreeMap::from([("p".to_owned(), Coverage::default())]);
        let id = policy("p");
        let convention = DocumentId { kind: DocumentKind::StatusConvention, ..id.clone() };
        assert_eq!(view(true, Some(&coverage)).registered(&convention), Registered::NotNeeded);
        assert_eq!(view(false, Some(&coverage)).registered(&id), Registered::NotManaged);
        assert_eq!(view(true, None).registered(&id), Registered::NotRead);
        assert_eq!(view(true, Some(&coverage)).registered(&policy("q")), Registered::NotRead);
        let known = coverage.get("p").map(Registered::Known).unwrap();
        assert_eq!(view(true, Some(&coverage)).registered(&id), known);
    }
}
