//! The counters of policies: decisions by webhook, findings by rule and action, changes by reason.
//!
//! A thousand policies have 40,000 findings to count. A family of prometheus-client has a map entry, two
//! strings and an allocation for each of them; here it is one number in the array of a rule.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;

use crate::model::Webhook;

/// The values of labels, by their position.
#[derive(Clone, Copy, Debug, Default)]
pub struct Names {
    /// The actions of findings.
    pub actions: [&'static str; 4],
    /// The reasons of changes.
    pub changes: [&'static str; 5],
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
pub struct Counters(Vec<Policy>);

impl Counters {
    /// The counter of a policy's decisions. `None` for an unknown position.
    pub fn decision(&self, webhook: Webhook, policy: usize, decision: Decision) -> Option<&Count> {
        self.0.get(policy)?.decisions.get(webhook as usize)?.get(decision as usize)
    }

    /// The counter of the findings of a rule with an action. `None` for an unknown position.
    pub fn finding(&self, policy: usize, rule: usize, action: usize) -> Option<&Count> {
        self.0.get(policy)?.rules.get(rule)?.by_action.get(action)
    }

    /// The counter of a policy's changes for a reason. `None` for an unknown position.
    pub fn change(&self, policy: usize, change: usize) -> Option<&Count> {
        self.0.get(policy)?.changes.get(change)
    }

    /// The name of a policy.
    pub fn policy(&self, policy: usize) -> Option<&str> {
        self.0.get(policy).map(|policy| &*policy.name)
    }
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

    fn get(&self) -> Option<u64> {
        self.0.load(Relaxed).checked_sub(1)
    }
}

/// The counters of all policies since the start. Those of a removed policy stay visible and no longer
/// change, as `rate()` expects.
#[derive(Clone, Debug, Default)]
pub(super) struct Store(Arc<Mutex<Known>>);

#[derive(Debug, Default)]
struct Known {
    names: Names,
    policies: BTreeMap<Arc<str>, Policy>,
    /// Policies of one convention share the ids of its rules.
    ids: HashSet<Arc<str>>,
}

/// The counters of a policy. In the store, it has all rules that the policy ever had; in a loaded set,
/// those of its document, in their order.
#[derive(Clone, Debug)]
struct Policy {
    name: Arc<str>,
    decisions: Arc<[[Count; Decision::ALL.len()]; Webhook::ALL.len()]>,
    changes: Arc<[Count; 5]>,
    rules: Vec<Arc<Rule>>,
}

#[derive(Debug)]
struct Rule {
    id: Arc<str>,
    by_action: [Count; 4],
}

impl Store {
    /// Looks up the counters of these policies, each with the ids of its rules, and creates those that are
    /// new.
    pub(super) fn load<'n, R>(
        &self,
        names: Names,
        policies: impl Iterator<Item = (&'n str, R)>,
    ) -> Counters
    where
        R: Iterator<Item = String>,
    {
        let mut known = self.lock();
        known.names = names;
        Counters(policies.map(|(name, rules)| known.load(name, rules)).collect())
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        // Counters stay valid when a thread panics between two of them.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn load(&mut self, name: &str, rules: impl Iterator<Item = String>) -> Policy {
        let mut policy = self.policies.remove(name).unwrap_or_else(|| Policy::new(name));
        let mut by_id: HashMap<Arc<str>, Arc<Rule>> =
            policy.rules.drain(..).map(|rule| (Arc::clone(&rule.id), rule)).collect();
        let rules: Vec<Arc<Rule>> = rules
            .map(|id| by_id.remove(&*id).unwrap_or_else(|| Arc::new(Rule::new(self.id(id)))))
            .collect();
        policy.rules.extend(rules.iter().cloned());
        let loaded = Policy { rules, ..policy.clone() };
        policy.rules.extend(by_id.into_values());
        policy.rules.shrink_to_fit();
        self.policies.insert(Arc::clone(&policy.name), policy);
        loaded
    }

    fn id(&mut self, id: String) -> Arc<str> {
        if let Some(known) = self.ids.get(&*id) {
            return Arc::clone(known);
        }
        let id: Arc<str> = id.into();
        self.ids.insert(Arc::clone(&id));
        id
    }
}

impl Policy {
    fn new(name: &str) -> Self {
        let (decisions, changes) = (Arc::default(), Arc::default());
        let policy = Self { name: name.into(), decisions, changes, rules: Vec::new() };
        policy.decisions.iter().flatten().chain(&*policy.changes).for_each(Count::create);
        policy
    }
}

impl Rule {
    fn new(id: Arc<str>) -> Self {
        Self { id, by_action: Default::default() }
    }
}

/// The decisions of all policies as one metric.
#[derive(Debug)]
pub(super) struct Decisions(pub(super) Store);

impl EncodeMetric for Decisions {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        for policy in self.0.lock().policies.values() {
            for webhook in Webhook::ALL {
                for decision in Decision::ALL {
                    let count = policy.decisions.get(webhook as usize);
                    let count = count.and_then(|counts| counts.get(decision as usize)?.get());
                    let labels = [
                        ("policy", &*policy.name),
                        ("webhook", webhook.name()),
                        ("decision", decision.name()),
                    ];
                    encode(&mut encoder, labels, count)?;
                }
            }
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Counter
    }
}

/// The findings of all policies as one metric.
#[derive(Debug)]
pub(super) struct Findings(pub(super) Store);

impl EncodeMetric for Findings {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let known = self.0.lock();
        for policy in known.policies.values() {
            for rule in &policy.rules {
                for (action, count) in known.names.actions.iter().zip(&rule.by_action) {
                    let labels =
                        [("policy", &*policy.name), ("rule", &*rule.id), ("action", *action)];
                    encode(&mut encoder, labels, count.get())?;
                }
            }
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Counter
    }
}

/// The changes of all policies as one metric.
#[derive(Debug)]
pub(super) struct Changes(pub(super) Store);

impl EncodeMetric for Changes {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let known = self.0.lock();
        for policy in known.policies.values() {
            for (change, count) in known.names.changes.iter().zip(&*policy.changes) {
                let labels = [("policy", &*policy.name), ("change", *change)];
                encode(&mut encoder, labels, count.get())?;
            }
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Counter
    }
}

fn encode<const N: usize>(
    encoder: &mut MetricEncoder<'_>,
    labels: [(&str, &str); N],
    count: Option<u64>,
) -> fmt::Result {
    let Some(count) = count else { return Ok(()) };
    ConstCounter::new(count).encode(encoder.encode_family(&labels)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACTIONS: [&str; 4] = ["audit", "warn", "repair", "deny"];

    fn load(store: &Store, policies: &[(&str, &[&str])]) -> Counters {
        let policies = policies
            .iter()
            .map(|(name, rules)| (*name, rules.iter().map(|rule| (*rule).to_owned())));
        let names = Names { actions: ACTIONS, ..Names::default() };
        store.load(names, policies)
    }

    fn shown(store: &Store) -> Vec<String> {
        let known = store.lock();
        let rules = known
            .policies
            .values()
            .flat_map(|policy| policy.rules.iter().map(move |rule| (&policy.name, rule)));
        let counts = rules.flat_map(|(policy, rule)| {
            let counts = rule.by_action.iter().zip(ACTIONS);
            counts.filter_map(move |(count, action)| {
                Some(format!("{policy} {} {action} {}", rule.id, count.get()?))
            })
        });
        counts.collect()
    }

    #[test]
    fn a_counter_is_shown_once_it_is_created_or_counts() {
        let store = Store::default();
        let counters = load(&store, &[("p", &["a", "b"])]);
        assert_eq!(shown(&store), [""; 0]);
        counters.finding(0, 0, 3).unwrap().create();
        counters.finding(0, 0, 3).unwrap().create();
        counters.finding(0, 1, 1).unwrap().inc();
        counters.finding(0, 1, 1).unwrap().inc();
        assert_eq!(shown(&store), ["p a deny 0", "p b warn 2"]);
        assert!(counters.finding(0, 2, 0).is_none() && counters.finding(1, 0, 0).is_none());
    }

    #[test]
    fn counters_continue_after_a_reload_in_another_order() {
        let store = Store::default();
        let first = load(&store, &[("p", &["a", "b"]), ("q", &["a"])]);
        first.finding(0, 1, 0).unwrap().inc();
        first.finding(1, 0, 0).unwrap().inc();
        first.decision(Webhook::Validate, 0, Decision::Denied).unwrap().inc();
        let second = load(&store, &[("p", &["c", "b"])]);
        second.finding(0, 1, 0).unwrap().inc();
        // The counters of q and of p's rule a stay as they were.
        first.finding(0, 0, 0).unwrap().inc();
        assert_eq!(shown(&store), ["p b audit 2", "p a audit 1", "q a audit 1"]);
        let denied = second.decision(Webhook::Validate, 0, Decision::Denied).unwrap();
        assert_eq!(denied.get(), Some(1));
        let third = load(&store, &[("p", &["a"])]);
        third.finding(0, 0, 0).unwrap().inc();
        assert!(shown(&store).contains(&"p a audit 2".to_owned()));
    }
}
