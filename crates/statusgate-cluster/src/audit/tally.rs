//! The counts of an audit: by policy and kind, rule, phase and condition.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::super::Target;
use super::{Audited, State};
use statusgate_core::engine::{Action, HealthClass, HealthStatus};
use statusgate_core::policy::PolicySet;

/// The counts of an audit.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// By the index of the kind in the list of targets and that of the policy in the set.
    rows: BTreeMap<(usize, u16), Row>,
    examples: usize,
    /// Judged objects, each once.
    pub objects: u64,
    /// Objects with findings, by the worst action; each once.
    pub found: BTreeMap<Action, u64>,
    /// Objects that backfill would write, each once.
    pub backfill: u64,
    /// The number of objects that could not be judged, and examples with the reason.
    pub broken: (u64, Vec<String>),
}

/// The counts of one policy and kind.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// The kind.
    pub target: Target,
    /// The name of the policy.
    pub policy: String,
    /// Whether all objects of the kind were judged.
    pub complete: bool,
    /// Judged objects.
    pub objects: u64,
    /// Objects by the worst action.
    pub worst: BTreeMap<Action, u64>,
    /// Objects with a disagreement of any age.
    pub disagreements: u64,
    /// Objects with a persistent disagreement.
    pub lasting: u64,
    /// Objects that backfill would write, for any of their policies.
    pub backfill: u64,
    /// Objects by health, and one of them with the reason.
    pub health: BTreeMap<HealthStatus, (u64, Reason)>,
    /// Objects by namespace and health.
    pub namespaces: BTreeMap<(String, HealthClass), u64>,
    /// Objects by phase; `(none)` without one.
    pub phases: BTreeMap<String, u64>,
    /// Conditions by type and status.
    pub conditions: BTreeMap<(String, &'static str), u64>,
    /// Findings by rule and action.
    pub rules: BTreeMap<(String, Action), RuleSums>,
}

/// An object, and why it has its health.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reason {
    /// `namespace/name`, or the name alone.
    pub path: String,
    /// The reason.
    pub reason: String,
}

/// The findings of one rule.
#[derive(Clone, Debug, Default)]
pub struct RuleSums {
    /// Findings.
    pub findings: u64,
    /// Objects that have one.
    pub objects: u64,
    /// The first of these objects.
    pub examples: Vec<Example>,
}

/// One object with a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    /// `namespace/name`, or the name alone.
    pub path: String,
    /// The field.
    pub field: String,
    /// The message of the finding.
    pub message: String,
}

impl Tally {
    pub(super) fn new(policies: &PolicySet, targets: &[Target], examples: usize) -> Self {
        let mut rows = BTreeMap::new();
        for (index, target) in targets.iter().enumerate() {
            for place in &target.policies {
                let policy = policies.get(*place);
                let policy = policy.map(|policy| policy.name.to_string()).unwrap_or_default();
                let row = Row { target: target.clone(), policy, ..Row::default() };
                rows.insert((index, *place), row);
            }
        }
        Self { rows, examples, ..Self::default() }
    }

    /// The rows, those with the most denied objects first; then by repaired, warned, audited and all
    /// objects.
    pub fn worst_first(&self) -> Vec<&Row> {
        let mut rows: Vec<&Row> = self.rows.values().collect();
        rows.sort_by_cached_key(|row| {
            let counts = Action::WORST_FIRST.map(|action| Reverse(row.worst(action)));
            (counts, Reverse(row.objects), row.policy.clone(), row.target.name())
        });
        rows
    }

    /// The worst action of all findings.
    pub fn worst(&self) -> Option<Action> {
        self.found.keys().max().copied()
    }

    /// Whether an object has this health.
    pub fn has_health(&self, health: HealthStatus) -> bool {
        self.rows.values().any(|row| row.health.contains_key(&health))
    }

    /// Counts an object of the target at `index`.
    pub(super) fn add(&mut self, index: usize, judged: &Audited<'_>) {
        if let Some(reason) = &judged.broken {
            self.broken.0 += 1;
            if self.broken.1.len() < self.examples.max(1) {
                self.broken.1.push(format!("{}: {reason}", judged.path()));
            }
            return;
        }
        self.objects += 1;
        self.backfill += u64::from(judged.backfill);
        if let Some(worst) = judged.worst() {
            *self.found.entry(worst).or_default() += 1;
        }
        for state in &judged.states {
            if let Some(row) = self.rows.get_mut(&(index, state.policy)) {
                row.add(judged, state, self.examples);
            }
        }
    }

    pub(super) fn complete(&mut self, index: usize) {
        for (_, row) in self.rows.range_mut((index, 0)..=(index, u16::MAX)) {
            row.complete = true;
        }
    }
}

impl Row {
    /// The number of objects with this worst action.
    pub fn worst(&self, action: Action) -> u64 {
        self.worst.get(&action).copied().unwrap_or_default()
    }

    /// The number of objects without findings.
    pub fn clean(&self) -> u64 {
        self.objects.saturating_sub(self.worst.values().sum())
    }

    /// The number of objects with only recent disagreements.
    pub const fn passing(&self) -> u64 {
        self.disagreements.saturating_sub(self.lasting)
    }

    fn add(&mut self, judged: &Audited<'_>, state: &State<'_>, examples: usize) {
        self.objects += 1;
        self.backfill += u64::from(judged.backfill);
        self.lasting += u64::from(state.lasting > 0);
        self.disagreements += u64::from(state.lasting > 0 || !state.passing.is_empty());
        if let Some(worst) = state.worst() {
            *self.worst.entry(worst).or_default() += 1;
        }
        let health = self.health.entry(state.health.class.is).or_insert_with(|| {
            (0, Reason { path: judged.path(), reason: state.health.reason.clone() })
        });
        health.0 += 1;
        let key = (judged.metadata.namespace.to_string(), state.health.class);
        count(&mut self.namespaces, key, MAX_NAMESPACES, |(name, class)| (other(name), class));
        let phase = state.phase.as_deref().unwrap_or("(none)").to_owned();
        count(&mut self.phases, phase, MAX_KEYS, other);
        for (kind, status) in &state.conditions {
            let key = (kind.to_string(), *status);
            count(&mut self.conditions, key, MAX_KEYS, |(kind, status)| (other(kind), status));
        }
        let mut counted: BTreeSet<(&str, Action)> = BTreeSet::new();
        for found in &state.findings {
            let sums = self.rules.entry((found.rule.clone(), found.action)).or_default();
            sums.findings += 1;
            if counted.insert((&found.rule, found.action)) {
                sums.objects += 1;
                if sums.examples.len() < examples {
                    let (field, message) = (found.field.clone(), found.message.clone());
                    sums.examples.push(Example { path: judged.path(), field, message });
                }
            }
        }
    }
}

/// Counts a key, or `other` if there are too many keys.
fn count<K: Ord>(counts: &mut BTreeMap<K, u64>, key: K, most: usize, other: impl FnOnce(K) -> K) {
    let key = if counts.len() < most || counts.contains_key(&key) { key } else { other(key) };
    *counts.entry(key).or_default() += 1;
}

fn other(_: String) -> String {
    "(other)".to_owned()
}

/// Stored values are not bounded: a time in a phase would create a count, and a metric, per object.
/// The largest convention needs a third of this.
const MAX_KEYS: usize = 100;

/// The same for namespaces, each with a few healths. Each is a metric.
const MAX_NAMESPACES: usize = 1000;

#[cfg(test)]
mod tests {
    use super::super::judge::health;
    use super::*;
    use statusgate_core::engine::{Cause, Found};
    use statusgate_core::model::Metadata;

    fn tally(plurals: &[&str]) -> Tally {
        let policies = PolicySet::compile(&PolicySet::examples()).unwrap();
        let targets: Vec<Target> = plurals.iter().map(|plural| Target::example(plural)).collect();
        Tally::new(&policies, &targets, 1)
    }

    fn judged(phase: &'static str, rules: &[(&str, Action)]) -> Audited<'static> {
        let found = |(rule, action): &(&str, Action)| Found {
            policy: "p".into(),
            rule: (*rule).to_owned(),
            field: "status".into(),
            cause: Cause::Invalid,
            message: "m".into(),
            action: *action,
            others: Vec::new(),
        };
        Audited {
            metadata: Metadata { name: "n".into(), namespace: "s".into(), ..Metadata::default() },
            states: vec![State {
                policy: 0,
                health: health(),
                phase: Some(phase.into()),
                conditions: vec![("Ready".into(), "True")],
                findings: rules.iter().map(found).collect(),
                passing: Vec::new(),
                lasting: 0,
            }],
            backfill: true,
            since: None,
            broken: None,
        }
    }

    #[test]
    fn an_object_counts_once_by_its_worst_action_and_each_finding_by_its_rule() {
        let mut tally = tally(&["foos"]);
        let (deny, warn) = (("c/a", Action::Deny), ("c/b", Action::Warn));
        tally.add(0, &judged("Ready", &[warn, deny, warn]));
        tally.add(0, &judged("Ready", &[warn]));
        tally.add(0, &judged("Failed", &[]));
        let row = tally.worst_first()[0];
        assert_eq!((row.objects, row.clean(), row.backfill), (3, 1, 3));
        assert_eq!((row.worst(Action::Deny), row.worst(Action::Warn)), (1, 1));
        let sums = &row.rules[&("c/b".to_owned(), Action::Warn)];
        assert_eq!((sums.findings, sums.objects, sums.examples.len()), (3, 2, 1));
        assert_eq!(row.phases, BTreeMap::from([("Ready".to_owned(), 2), ("Failed".to_owned(), 1)]));
        assert_eq!(row.conditions[&("Ready".to_owned(), "True")], 3);
        assert_eq!(tally.worst(), Some(Action::Deny));
    }

    #[test]
    fn the_row_with_the_most_denied_objects_is_first() {
        let mut tally = tally(&["many", "bad", "fine"]);
        for _ in 0..5 {
            tally.add(0, &judged("Ready", &[("c/b", Action::Warn)]));
        }
        tally.add(1, &judged("Ready", &[("c/a", Action::Deny)]));
        let order: Vec<&str> =
            tally.worst_first().iter().map(|row| row.target.plural.as_str()).collect();
        assert_eq!(order, ["bad", "many", "fine"]);
    }

    #[test]
    fn the_number_of_counted_phases_is_bounded() {
        let mut tally = tally(&["foos"]);
        for number in 0..1000 {
            let mut judged = judged("", &[]);
            judged.states[0].phase = Some(format!("since {number}").into());
            tally.add(0, &judged);
        }
        let row = tally.worst_first()[0];
        assert!(row.phases.len() <= MAX_KEYS + 1, "{}", row.phases.len());
        assert_eq!(row.phases.values().sum::<u64>(), 1000);
        assert_eq!(row.phases["(other)"], 900);
    }

    #[test]
    fn objects_are_counted_by_namespace_up_to_a_limit() {
        let mut tally = tally(&["foos"]);
        for number in 0..2 * MAX_NAMESPACES {
            let mut judged = judged("Ready", &[]);
            judged.metadata.namespace = format!("team-{number}").into();
            tally.add(0, &judged);
        }
        let row = tally.worst_first()[0];
        let count = |name: &str| row.namespaces[&(name.to_owned(), health().class)];
        assert_eq!((row.namespaces.len(), count("team-7")), (MAX_NAMESPACES + 1, 1));
        assert_eq!(count("(other)"), MAX_NAMESPACES as u64);
        assert!(tally.has_health(HealthStatus::Current) && !tally.has_health(HealthStatus::Failed));
    }

    #[test]
    fn objects_that_cannot_be_judged_are_counted_separately() {
        let mut tally = tally(&["foos"]);
        let broken = Audited { broken: Some("no".into()), ..judged("Ready", &[]) };
        tally.add(0, &broken);
        assert_eq!((tally.objects, tally.broken.0, &*tally.broken.1[0]), (0, 1, "s/n: no"));
    }
}
