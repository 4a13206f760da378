//! Which writes can matter to a webhook: match conditions of registrations are made from this.
//!
//! A write of a stored status that changes nothing that the rules read introduces no violation, so the
//! validating webhook has nothing to say about it. The mutating one changes a status only if a default has
//! nowhere been set, or if something changed that a default or the phase depends on.

mod idle;
mod inputs;

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::ptr;

use crate::line::clauses;
use statusgate_core::model::{Pointer, Subject, Webhook};
use statusgate_core::policy::convention::{
    Backfill, Convention, Filling, PhaseRules, Trigger, ValueSource,
};
use statusgate_core::policy::{Action, Disposition, Policy, PolicySet, Selected, Step};

use idle::is_idle;
use inputs::Inputs;

/// The writes that can matter: any of these holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Relevance {
    /// The write changes one of these members of the status.
    pub changed: BTreeSet<String>,
    /// One of these places has no value.
    pub missing: BTreeSet<Missing>,
    /// One of these places is null.
    pub null: BTreeSet<Pointer>,
    /// The object is being deleted.
    pub deleting: bool,
    /// The write changes the status.
    pub status: bool,
}

/// Places for one value, of which none has it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Missing {
    /// The places.
    pub places: Vec<Pointer>,
    /// The values that count as none.
    pub none: NoValue,
}

/// Values that count as none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoValue {
    /// Only absence: the default is null.
    Absent,
    /// Absence and null.
    Null,
    /// Absence, null and `""`.
    Empty,
}

/// The policies, and what is already known of their conventions.
#[derive(Debug)]
pub struct Relevances<'p> {
    policies: &'p PolicySet,
    /// The members that the rules of each convention read; `None` if they may speak although none of these
    /// changed. This takes milliseconds, and many policies follow one convention.
    read: RefCell<HashMap<*const Convention, Option<BTreeSet<String>>>>,
}

impl<'p> Relevances<'p> {
    /// Of these policies.
    pub fn of(policies: &'p PolicySet) -> Self {
        Self { policies, read: RefCell::default() }
    }

    /// The writes of `/status` that can matter to a webhook. `None` if every write can: a rule judges every
    /// write, or may hold because of the stored object although nothing changed.
    pub fn to(&self, subject: &Subject<'_>, webhook: Webhook) -> Option<Relevance> {
        let selected = Selected::of(self.policies, subject);
        let mut relevance = Relevance::default();
        if webhook == Webhook::Mutate {
            for (_, policy) in selected.policies() {
                let members = policy.preserve.iter().filter_map(|path| path.below_status().first());
                relevance.changed.extend(members.cloned());
            }
            for (policy, step) in selected.steps() {
                match step {
                    Step::Phase(rules) => relevance.phase(policy, rules)?,
                    Step::Default(default) => {
                        relevance.backfill(policy, selected.owner(), default);
                    }
                }
            }
            return Some(relevance);
        }
        for (_, policy) in selected.policies() {
            let convention = &*policy.convention;
            let mut known = self.read.borrow_mut();
            let entry = known.entry(ptr::from_ref(convention));
            let read =
                entry.or_insert_with(|| is_idle(convention).then(|| read_by_rules(convention)));
            relevance.changed.extend(read.as_ref()?.iter().cloned());
            relevance.policy(policy, selected.owns(policy))?;
        }
        Some(relevance)
    }
}

impl Relevance {
    /// The writes that matter to one or the other.
    #[must_use]
    pub fn or(mut self, other: Self) -> Self {
        self.changed.extend(other.changed);
        self.missing.extend(other.missing);
        self.null.extend(other.null);
        self.deleting |= other.deleting;
        self.status |= other.status;
        self
    }

    /// What the mutating webhook does about the phase depends on.
    fn phase(&mut self, policy: &Policy, rules: &PhaseRules) -> Option<()> {
        if policy.repairs_stored {
            return None;
        }
        let mut inputs = Inputs::of(&policy.convention);
        if rules.default.is_some() {
            let places = rules.paths().cloned().collect();
            self.missing.insert(Missing { places, none: NoValue::Empty });
        }
        for imposed in rules.phases.iter().filter_map(|phase| phase.imposed.as_ref()) {
            inputs.phase(rules);
            inputs.predicate(&imposed.when);
        }
        // A phase may be imposed because of an older write of the main resource.
        if inputs.outside {
            return None;
        }
        if let Some(time) = rules.transition_time.as_ref().filter(|time| time.in_step()) {
            inputs.phase(rules);
            inputs.path(&time.path);
        }
        let by_writer = policy.writers.iter().map(|writer| writer.disagreement);
        let mut disagreements = by_writer.chain([policy.disagreement]);
        if disagreements.any(|action| action.min(policy.enforcement) == Action::Repair) {
            inputs.phase(rules);
            inputs.evidence(rules);
        }
        self.add(inputs);
        Some(())
    }

    /// What a default depends on.
    fn backfill(&mut self, policy: &Policy, owner: Option<&Policy>, default: &Backfill) {
        let mut inputs = Inputs::of(&policy.convention);
        let path = default.path();
        let missing = |none| Missing { places: vec![path.clone()], none };
        match &default.filling {
            Filling::Absent(_) => {
                self.null.insert(path.clone());
                return;
            }
            Filling::Field(_, sources) => {
                let null = ValueSource::Value(serde_json::Value::Null);
                let is_null = sources.iter().all(|source| *source == null);
                let none = if is_null { NoValue::Absent } else { NoValue::Null };
                self.missing.insert(missing(none));
                return;
            }
            Filling::Member { sources, .. } => inputs.sources(sources),
            Filling::Element { members, .. } => {
                self.missing.insert(missing(NoValue::Null));
                inputs.sources(members.iter().flat_map(|(_, sources)| sources));
            }
            Filling::SteadyStatus { .. } => {
                self.status = true;
                return;
            }
            Filling::AbsentMember { of, .. } => inputs.predicate(of),
            Filling::Steady { .. } | Filling::Unique(_) => {}
        }
        inputs.path(path);
        // A default that would contradict the phase waits until the phase or its evidence changes.
        if let Some(owner) = owner
            && let Some(rules) = owner.convention.phase.as_deref()
        {
            let mut evidence = Inputs::of(&owner.convention);
            evidence.evidence(rules);
            if path.below_status().first().is_some_and(|name| evidence.members.contains(name)) {
                evidence.phase(rules);
                inputs.members.extend(evidence.members);
            }
        }
        default.when.iter().for_each(|when| inputs.predicate(when));
        self.add(inputs);
    }

    /// What the phase of a policy and the policy itself read.
    fn policy(&mut self, policy: &Policy, owns_phase: bool) -> Option<()> {
        let convention = &*policy.convention;
        let mut inputs = Inputs::of(convention);
        if let Some(rules) = convention.phase.as_deref().filter(|_| owns_phase) {
            inputs.phase(rules);
            inputs.evidence(rules);
            rules.mirrored.iter().for_each(|when| inputs.predicate(when));
            rules.reason.iter().for_each(|reason| inputs.path(&reason.path));
            rules.transition_time.iter().for_each(|time| inputs.path(&time.path));
        }
        policy.fields.iter().for_each(|field| inputs.path(&field.path));
        policy.owners.iter().flat_map(|owner| &owner.path).for_each(|path| inputs.path(path));
        if policy.owners.iter().any(|owner| owner.path.is_none()) {
            convention.conditions.iter().for_each(|list| inputs.path(list.root()));
        }
        for rule in &policy.rules {
            let is_idle = match &rule.trigger {
                Trigger::Watch(_) => true,
                // Nothing tells whether an expression about both objects holds if both are the same.
                word => word.is_introduced() && rule.expression.reads.stored.is_none(),
            };
            let is_silent = is_idle || rule.action == Disposition::Audit;
            if !is_silent || !inputs.expression(&rule.expression.reads) {
                return None;
            }
            inputs.trigger(&rule.trigger);
        }
        // A write of `/status` neither begins a deletion nor ends one.
        self.changed.extend(inputs.members);
        Some(())
    }

    fn add(&mut self, inputs: Inputs<'_>) {
        self.deleting |= inputs.deleting;
        self.changed.extend(inputs.members);
    }
}

/// The members that the rules of a convention read, except for those about the phase.
fn read_by_rules(convention: &Convention) -> BTreeSet<String> {
    let mut inputs = Inputs::of(convention);
    clauses(convention).iter().for_each(|clause| inputs.predicate(&clause.when));
    for list in &convention.conditions {
        inputs.path(list.root());
    }
    let triggers = convention.rules.iter().flat_map(|rule| &rule.trigger);
    triggers.for_each(|trigger| inputs.trigger(trigger));
    convention.generation.iter().for_each(|generation| inputs.generation(generation));
    convention.fields.iter().for_each(|field| inputs.path(&field.path));
    inputs.members
}

#[cfg(test)]
mod tests {
    use super::*;
    use statusgate_core::model::Resource;
    use statusgate_core::policy::Source;

    /// What matters to the mutating and to the validating webhook under one policy.
    fn relevances(spec: &str) -> [Option<Relevance>; 2] {
        of_documents("", spec)
    }

    fn of_documents(convention: &str, spec: &str) -> [Option<Relevance>; 2] {
        let text = format!(
            "{convention}apiVersion: statusgate.dev/v1alpha1\nkind: StatusPolicy\nmetadata: {{name: p}}\n\
             spec: {{resources: [{{apiGroups: [g], apiVersions: ['*'], resources: [things]}}], {spec}}}"
        );
        let source = Source { name: "p.yaml".into(), text };
        let policies = PolicySet::compile(&[source]).unwrap_or_else(|error| panic!("{error}"));
        let subject = Subject {
            resource: Resource::new("g", "v1", "things"),
            subresource: "status".into(),
            ..Subject::default()
        };
        let relevances = Relevances::of(&policies);
        [Webhook::Mutate, Webhook::Validate].map(|webhook| relevances.to(&subject, webhook))
    }

    fn changed(relevance: Option<Relevance>) -> Option<String> {
        relevance.map(|relevance| relevance.changed.into_iter().collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn the_mutating_webhook_depends_on_less_than_the_validating_one() {
        let [mutate, validate] = relevances("convention: appcat");
        let all = "conditions instanceNamespace lastTransitionTime message observedGeneration phase reason";
        assert_eq!(changed(validate).unwrap(), all);
        let mutate = mutate.unwrap();
        let missing = mutate.missing.iter().flat_map(|missing| &missing.places);
        assert_eq!(missing.map(Pointer::field).collect::<Vec<_>>(), ["status.phase"]);
        let null: Vec<&str> = mutate.null.iter().map(Pointer::field).collect();
        assert_eq!((null, mutate.deleting), (vec!["status.billing"], true));
        assert_eq!(changed(Some(mutate)).unwrap(), "lastTransitionTime phase");
    }

    #[test]
    fn an_imposed_phase_that_depends_on_another_write_makes_every_write_relevant() {
        for (when, expected) in [
            ("{deleting: true}", Some("phase")),
            ("{field: /status/x, is: 1}", Some("phase x")),
            ("{field: /spec/paused, is: true}", None),
            ("{field: /metadata/annotations/paused, is: 'true'}", None),
            ("{observed: behind}", None),
            ("{length: /spec/parents, atLeast: 1}", None),
            ("{gates: /spec/readinessGates}", None),
        ] {
            let convention = format!(
                "apiVersion: statusgate.dev/v1alpha1\nkind: StatusConvention\nmetadata: {{name: own}}\n\
                 spec: {{conditions: [{{path: /status/conditions}}], generation: {{paths: [/status/observedGeneration]}}, \
                 phase: {{path: /status/phase, values: [{{phase: Ready}}, {{phase: Paused, \
                 imposed: {{when: {when}, since: /metadata/creationTimestamp}}}}]}}}}\n---\n"
            );
            let [mutate, _] = of_documents(&convention, "convention: own");
            assert_eq!(changed(mutate).as_deref(), expected, "{when}");
        }
    }

    #[test]
    fn a_repair_depends_on_the_evidence_of_the_phase() {
        for repair in [
            "disagreement: Repair",
            "disagreement: Deny, writers: [{users: [u], disagreement: Repair}]",
        ] {
            let [mutate, _] = relevances(&format!("convention: appcat, {repair}"));
            assert_eq!(
                changed(mutate).unwrap(),
                "conditions instanceNamespace lastTransitionTime phase"
            );
        }
        let [mutate, _] = relevances("convention: appcat, disagreement: Repair, enforcement: Warn");
        assert_eq!(changed(mutate).unwrap(), "lastTransitionTime phase");
    }

    #[test]
    fn what_a_policy_adds_counts() {
        let [mutate, validate] = relevances(
            "convention: metav1, preserve: [/status/kept/a], \
             backfill: [{path: /status/a/b, copyOf: /status/c}, {path: /status/n, value: null, nullable: true}, \
             {name: x, list: /status/conditions, member: x, value: 1, when: {field: /status/d, is: 1}}], \
             fields: [{path: /status/e, enum: [f]}], owners: [{path: /status/kept/a, users: [u]}], \
             rules: [{name: r, message: m, expression: 'self.status.g.h == 1'}]",
        );
        let mutate = mutate.unwrap();
        let missing =
            mutate.missing.iter().map(|missing| (missing.places[0].field(), missing.none));
        assert_eq!(
            missing.collect::<Vec<_>>(),
            [("status.a.b", NoValue::Null), ("status.n", NoValue::Absent)]
        );
        assert_eq!(changed(Some(mutate)).unwrap(), "conditions d kept");
        assert_eq!(changed(validate).unwrap(), "conditions e g kept observedGeneration");
    }

    #[test]
    fn rules_that_may_speak_about_an_unchanged_status_make_every_write_relevant() {
        let rule = |rule: &str| {
            let [_, validate] = relevances(&format!(
                "convention: metav1, rules: [{{name: r, message: m, {rule}}}]"
            ));
            changed(validate)
        };
        let of = |name: &str| Some(format!("conditions observedGeneration {name}"));
        assert_eq!(rule("expression: 'self.status.x == 1'"), of("x"));
        assert_eq!(rule("expression: 'self.status.x == 1', trigger: state"), None);
        assert_eq!(
            rule("expression: 'self.status.x == 1', trigger: state, action: Audit"),
            of("x")
        );
        assert_eq!(
            rule("expression: 'self.status.x == 1', trigger: {moved: /status/y}"),
            of("x y")
        );
        assert_eq!(rule("expression: 'self.status.x > oldSelf.status.x'"), None);
        assert_eq!(
            rule("expression: 'self.status.x > oldSelf.status.x', trigger: {moved: /status/x}"),
            of("x")
        );
        assert_eq!(rule("expression: 'self.status == {}'"), None);
        // Stackable compares the status with a spec that did not change.
        assert_eq!(relevances("convention: stackable")[1], None);
    }
}
