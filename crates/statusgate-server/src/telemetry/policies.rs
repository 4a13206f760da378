//! The counters of policies: decisions by webhook, findings by rule and action, changes by reason, status writes.
//!
//! A thousand policies have 40,000 findings to count. A family of prometheus-client has a map entry, two
//! strings and an allocation for each of them; here it is one number in an array of its rule.

mod encode;

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(super) use encode::encode;

use super::writes::{ByResource, Writes};
use statusgate_core::engine::{Action, Change};
use statusgate_core::model::Webhook;

/// A policy with the names that its counters need.
#[derive(Clone, Debug)]
pub struct Declared<'n> {
    /// Its name.
    pub name: &'n str,
    /// The ids of its rules.
    pub rules: Vec<String>,
    /// The names of its resources. Two may be equal.
    pub resources: Vec<String>,
    /// The names of the phases of its convention, and for no phase and other phases.
    pub phases: Vec<String>,
}

/// The decision of one policy on a review, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Decision {
    /// Allowed unchanged.
    Allowed,
    /// Allowed with a warning.
    Warned,
    /// Allowed with a patch.
    Patched,
    /// Rejected.
    Denied,
}

impl Decision {
    const ALL: [Self; 4] = [Self::Allowed, Self::Warned, Self::Patched, Self::Denied];

    /// The name in metrics and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Warned => "warned",
            Self::Patched => "patched",
            Self::Denied => "denied",
        }
    }
}

/// The counters of one loaded set of policies, by the positions of policies and rules. They are replaced
/// together with the set, so that a position never refers to the counters of another set.
#[derive(Debug)]
pub struct Counters(Vec<Current>);

impl Counters {
    /// The counter of a policy's decisions. `None` for an unknown position.
    pub fn decision(&self, webhook: Webhook, policy: usize, decision: Decision) -> Option<&Count> {
        self.0.get(policy)?.policy.decisions.get(webhook as usize)?.get(decision as usize)
    }

    /// The counter of the findings of a rule with an action. `None` for an unknown position.
    pub fn finding(&self, policy: usize, rule: usize, action: Action) -> Option<&Count> {
        self.0.get(policy)?.rules.counts.get(rule)?.get(action as usize)
    }

    /// The counter of a policy's changes for a reason. `None` for an unknown position.
    pub fn change(&self, policy: usize, change: Change) -> Option<&Count> {
        self.0.get(policy)?.policy.changes.get(change as usize)
    }

    /// The counters of the status writes of a policy's resource. `None` for an unknown position.
    pub fn writes(&self, policy: usize, resource: usize) -> Option<&Writes> {
        self.0.get(policy)?.resources.get(resource).map(|writes| &**writes)
    }

    /// The name of a policy.
    pub fn policy(&self, policy: usize) -> Option<&str> {
        self.0.get(policy).map(|current| &*current.policy.name)
    }
}

/// The counters of one policy.
#[derive(Debug)]
struct Current {
    policy: Policy,
    rules: Arc<Rules>,
    /// By the positions of its resources.
    resources: Box<[Arc<Writes>]>,
}

/// One counter. It is not shown before it is created or counts.
#[derive(Debug, Default)]
pub struct Count(
    /// One more than the count; 0 if it is not shown.
    AtomicU64,
);

impl Count {
    /// Counts one.
    pub fn inc(&self) {
        if self.0.fetch_add(1, Relaxed) == 0 {
            self.create();
            self.0.fetch_add(1, Relaxed);
        }
    }

    /// Shows the counter, at 0.
    pub fn create(&self) {
        self.0.fetch_max(1, Relaxed);
    }

    pub(super) fn get(&self) -> Option<u64> {
        self.0.load(Relaxed).checked_sub(1)
    }
}

/// The counters of the loaded policies since each was first loaded. Those of a removed policy or rule go: a cluster
/// with short-lived policies would collect them without limit.
#[derive(Clone, Debug, Default)]
pub(super) struct Store(Arc<Mutex<LoadedPolicies>>);

#[derive(Debug, Default)]
struct LoadedPolicies {
    policies: BTreeMap<Arc<str>, Loaded>,
    /// Policies of one convention share a list of ids, and one of phases.
    lists: HashSet<Ids>,
}

#[derive(Debug)]
struct Loaded {
    policy: Policy,
    rules: Arc<Rules>,
    writes: ByResource,
}

/// The ids of a policy's rules or the names of its phases, in their order.
pub(super) type Ids = Arc<[Box<str>]>;

/// The counters of a policy, without those of its rules.
#[derive(Clone, Debug)]
struct Policy {
    name: Arc<str>,
    decisions: Arc<[[Count; Decision::ALL.len()]; Webhook::ALL.len()]>,
    changes: Arc<[Count; Change::ALL.len()]>,
}

/// By the discriminants of [`Action`].
type ByAction = [Count; Action::WORST_FIRST.len()];

/// The counters of a policy's rules.
#[derive(Debug, Default)]
struct Rules {
    ids: Ids,
    /// By rule and action. Shared with earlier documents, in which a review may still count.
    counts: Box<[Arc<ByAction>]>,
}

impl Store {
    /// Looks up the counters of these policies, and creates those that are new.
    pub(super) fn load<'n>(&self, policies: impl Iterator<Item = Declared<'n>>) -> Counters {
        let mut loaded = self.lock();
        let mut before = std::mem::take(&mut loaded.policies);
        let counters = policies.map(|of| loaded.load(before.remove(of.name), of)).collect();
        loaded.lists.retain(|list| Arc::strong_count(list) > 1);
        Counters(counters)
    }

    fn lock(&self) -> MutexGuard<'_, LoadedPolicies> {
        // Counters stay valid when a thread panics between two of them.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LoadedPolicies {
    fn load(&mut self, before: Option<Loaded>, policy: Declared<'_>) -> Current {
        let (ids, phases) = (self.share(policy.rules), self.share(policy.phases));
        let mut loaded = before.unwrap_or_else(|| {
            let (policy, rules) = (Policy::new(policy.name.into()), Arc::default());
            Loaded { policy, rules, writes: ByResource::new() }
        });
        if loaded.rules.ids != ids {
            loaded.rules = Arc::new(loaded.rules.with_ids(ids));
        }
        let before = std::mem::take(&mut loaded.writes);
        let resources = policy.resources.into_iter().map(|resource| {
            let writes = Writes::of(&before, &resource, &phases);
            Arc::clone(loaded.writes.entry(resource.into_boxed_str()).or_insert(writes))
        });
        let resources = resources.collect();
        let current =
            Current { policy: loaded.policy.clone(), rules: Arc::clone(&loaded.rules), resources };
        self.policies.insert(Arc::clone(&loaded.policy.name), loaded);
        current
    }

    /// A list of names that all its users share.
    fn share(&mut self, names: Vec<String>) -> Ids {
        let names: Ids = names.into_iter().map(String::into_boxed_str).collect();
        if let Some(known) = self.lists.get(&names) {
            return Arc::clone(known);
        }
        self.lists.insert(Arc::clone(&names));
        names
    }
}

impl Policy {
    fn new(name: Arc<str>) -> Self {
        let policy = Self { name, decisions: Arc::default(), changes: Arc::default() };
        policy.decisions.iter().flatten().chain(&*policy.changes).for_each(Count::create);
        policy
    }
}

impl Rules {
    /// The counters of these rules. Those of rules that are here, too, continue.
    fn with_ids(&self, ids: Ids) -> Self {
        let counts = ids.iter().map(|id| {
            let place = self.ids.iter().position(|known| known == id);
            place.and_then(|place| self.counts.get(place)).cloned().unwrap_or_default()
        });
        let counts = counts.collect();
        Self { ids, counts }
    }

    /// The rules, each with its counters.
    fn iter(&self) -> impl Iterator<Item = (&str, &ByAction)> {
        self.ids.iter().zip(&self.counts).map(|(id, counts)| (&**id, &**counts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus_client::registry::Registry;
    use statusgate_core::engine::{StatusChange, StatusWrite};

    fn load(store: &Store, policies: &[(&str, &[&str])]) -> Counters {
        let policies = policies.iter().map(|(name, rules)| Declared {
            name,
            rules: rules.iter().map(|rule| (*rule).to_owned()).collect(),
            resources: Vec::new(),
            phases: Vec::new(),
        });
        store.load(policies)
    }

    fn shown(store: &Store) -> Vec<String> {
        let loaded = store.lock();
        let policies = loaded.policies.values();
        let rules = policies.flat_map(|loaded| {
            loaded.rules.iter().map(|(rule, counts)| (&loaded.policy.name, rule, counts))
        });
        let counts = rules.flat_map(|(policy, rule, counts)| {
            let counts = counts.iter().zip(Action::WORST_FIRST);
            counts.filter_map(move |(count, action)| {
                Some(format!("{policy} {rule} {} {}", action.label(), count.get()?))
            })
        });
        counts.collect()
    }

    #[test]
    fn a_counter_is_shown_once_it_is_created_or_counts() {
        let store = Store::default();
        let counters = load(&store, &[("p", &["a", "b"])]);
        assert_eq!(shown(&store), [""; 0]);
        counters.finding(0, 0, Action::Deny).unwrap().create();
        counters.finding(0, 0, Action::Deny).unwrap().create();
        counters.finding(0, 1, Action::Warn).unwrap().inc();
        counters.finding(0, 1, Action::Warn).unwrap().inc();
        assert_eq!(shown(&store), ["p a deny 0", "p b warn 2"]);
        assert!(
            counters.finding(0, 2, Action::Deny).is_none()
                && counters.finding(1, 0, Action::Deny).is_none()
        );
    }

    #[test]
    fn each_action_and_change_is_at_its_position() {
        assert!(Action::WORST_FIRST.iter().enumerate().all(|(place, of)| *of as usize == place));
        assert!(Change::ALL.iter().enumerate().all(|(place, of)| *of as usize == place));
    }

    #[test]
    fn writes_of_a_resource_continue_while_its_phases_stay() {
        let store = Store::default();
        let load = |resources: &[&str], phases: &[&str]| {
            let own = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
            let (rules, resources, phases) = (Vec::new(), own(resources), own(phases));
            let policy = Declared { name: "p", rules, resources, phases };
            store.load([policy].into_iter())
        };
        let write = |counters: &Counters, resource| {
            let change = StatusChange::Times;
            let write = StatusWrite {
                change,
                phases: Some((0, 1)),
                in_phase: None,
                age_when_current: None,
            };
            counters.writes(0, resource).unwrap().count(&write);
        };
        let transitions = |resource: &str| {
            let (mut registry, mut text) = (Registry::default(), String::new());
            store.register(&mut registry);
            prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
            let start = format!("phase_transitions_total{{policy=\"p\",resource=\"{resource}\",");
            let lines = text.lines().filter_map(|line| line.strip_prefix(&start));
            lines.map(str::to_owned).collect::<Vec<_>>()
        };
        let x_to_y = |count: usize| [format!(r#"from="x",to="y"}} {count}"#)];
        // Two rules of a policy may name one resource.
        let first = load(&["a", "b", "a"], &["x", "y"]);
        assert_eq!(transitions("a"), [""; 0]);
        (0..3).for_each(|resource| write(&first, resource));
        assert_eq!(transitions("a"), x_to_y(2));
        assert_eq!(transitions("b"), x_to_y(1));
        let second = load(&["b", "c"], &["x", "y"]);
        write(&first, 1);
        write(&second, 0);
        assert_eq!(transitions("b"), x_to_y(3));
        assert_eq!(transitions("a"), [""; 0], "no longer selected");
        load(&["b"], &["y", "x"]);
        assert_eq!(transitions("b"), [""; 0], "other phases");
        assert!(second.writes(0, 2).is_none() && second.writes(1, 0).is_none());
    }

    #[test]
    fn counters_continue_after_a_reload_in_another_order() {
        let store = Store::default();
        let first = load(&store, &[("p", &["a", "b"]), ("q", &["a"])]);
        first.finding(0, 1, Action::Audit).unwrap().inc();
        first.finding(1, 0, Action::Audit).unwrap().inc();
        first.decision(Webhook::Validate, 0, Decision::Denied).unwrap().inc();
        let second = load(&store, &[("p", &["c", "b"])]);
        second.finding(0, 1, Action::Audit).unwrap().inc();
        // A review that began before the reload.
        first.finding(0, 1, Action::Audit).unwrap().inc();
        first.finding(1, 0, Action::Audit).unwrap().inc();
        assert_eq!(shown(&store), ["p b audit 3"]);
        let denied = second.decision(Webhook::Validate, 0, Decision::Denied).unwrap();
        assert_eq!(denied.get(), Some(1));
        drop(first);
        let third = load(&store, &[("p", &["a", "b"]), ("q", &["a"])]);
        assert_eq!(shown(&store), ["p b audit 3"], "none of a and q, which were away");
        drop(second);
        third.finding(0, 0, Action::Audit).unwrap().inc();
        load(&store, &[("p", &["b", "a"])]);
        assert_eq!(shown(&store), ["p b audit 3", "p a audit 1"]);
        assert_eq!(store.lock().lists.len(), 3, "one more is in use by the third");
    }
}
