//! Cluster API: one status in three patches.
//!
//! The patch helper of a controller compares the object as it was read with the object as it should
//! be, and sends the conditions that differ, then spec and metadata, then the rest of the status. What
//! one patch leaves stored, others see before the next one comes. Between any two requests
//! the infrastructure, the node and the health check change, and somebody deletes the machine.
//!
//! The goal is that the stored status says what is, whatever that is: from every state the writers
//! alone must get there, without waiting for anything to become better.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::{fmt, fs};

use serde_json::{Value, json};
use statusgate::engine::{Action, decide};
use statusgate::model::{Object, Operation, Resource, Subject, Webhook, Writer};
use statusgate::policy::{PolicySet, Source};

use super::search::{Exploration, Model, Step, explore};

/// One time for all: a model in which times differ has no end. Rules about times only warn.
const NOW: &str = "2024-06-01T12:00:00Z";

// --- the world ----------------------------------------------------------------------------------

/// What is the case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Facts {
    infrastructure: bool,
    /// A node has joined; it has been seen, whatever becomes of it.
    joined: bool,
    healthy: bool,
    checked: bool,
    deleting: bool,
}

/// What is stored of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Stored {
    conditions: BTreeMap<&'static str, bool>,
    phase: Option<&'static str>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct World {
    facts: Facts,
    stored: Stored,
    /// The patches that the machine's controller still has to send.
    pending: Vec<Patch>,
}

/// What a patch brings; everything else stays as it is stored then.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Patch {
    Conditions(BTreeMap<&'static str, bool>),
    SpecAndMetadata,
    Phase(&'static str),
}

impl Facts {
    fn ready(self) -> bool {
        self.infrastructure && self.joined && self.healthy && !self.deleting
    }

    /// The conditions of the machine's own controller, all from one look.
    fn conditions(self) -> BTreeMap<&'static str, bool> {
        BTreeMap::from([
            ("Available", self.ready()),
            ("Deleting", self.deleting),
            ("InfrastructureReady", self.infrastructure),
            ("NodeHealthy", self.joined && self.healthy),
            ("Ready", self.ready()),
        ])
    }

    /// The phase: from spec and status, hardly from conditions.
    const fn phase(self) -> &'static str {
        match self {
            Self { deleting: true, .. } => "Deleting",
            Self { joined: true, .. } => "Running",
            Self { infrastructure: true, .. } => "Provisioned",
            _ => "Provisioning",
        }
    }
}

/// Who writes the conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Writers {
    /// The machine's controller, all of them at once, as Cluster API does.
    Together,
    /// One that mirrors the infrastructure's condition, and one that sums up what is stored.
    Apart,
}

// --- the writes -----------------------------------------------------------------------------------

/// The API server with statusgate before it.
struct Gate {
    convention: &'static str,
    policies: PolicySet,
    known: HashMap<(bool, Stored, Stored), Result<Stored, String>>,
}

impl Gate {
    fn new(convention: &'static str, disagreement: &str) -> Self {
        let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/conventions");
        let own = fs::read_to_string(own.join("capi-tied.yaml")).unwrap();
        let policy = format!(
            "apiVersion: statusgate.dev/v1alpha1\nkind: StatusPolicy\nmetadata: {{name: test}}\nspec:\n  convention: {convention}\n  \
             resources: [{{apiGroups: [g], apiVersions: ['*'], resources: [machines]}}]\n  disagreement: {disagreement}\n"
        );
        let source = |name: &str, text| Source { name: name.into(), text };
        let sources = [source("capi-tied.yaml", own), source("policy.yaml", policy)];
        let policies = PolicySet::compile(&sources).unwrap_or_else(|error| panic!("{error}"));
        Self { convention, policies, known: HashMap::new() }
    }

    fn write(&mut self, deleting: bool, old: &Stored, new: &Stored) -> Result<Stored, String> {
        let key = (deleting, old.clone(), new.clone());
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let answer = self.through_both_webhooks(deleting, old, new);
        self.known.insert(key, answer.clone());
        answer
    }

    fn through_both_webhooks(
        &self,
        deleting: bool,
        old: &Stored,
        new: &Stored,
    ) -> Result<Stored, String> {
        let old = self.object(deleting, old).to_string();
        let mut object = self.object(deleting, new);
        let now = NOW.parse().unwrap();
        let text = object.to_string();
        let subject = self.subject(&old, &text);
        let verdict = decide(&self.policies, &subject, Webhook::Mutate, now);
        assert!(!verdict.is_denied() && !verdict.patch_failed);
        if let Some(patch) = &verdict.patch {
            json_patch::patch(&mut object, patch).unwrap();
        }
        let text = object.to_string();
        let subject = self.subject(&old, &text);
        let verdict = decide(&self.policies, &subject, Webhook::Validate, now);
        match verdict.findings.iter().find(|finding| finding.action == Action::Deny) {
            Some(finding) => Err(format!("{} [{}]", finding.message, finding.rule)),
            None => {
                let phase = object["status"]["phase"].as_str();
                assert_eq!(phase, new.phase, "Cluster API's phases are not repaired");
                Ok(new.clone())
            }
        }
    }

    fn is_old(&self) -> bool {
        self.convention == "capi-v1beta1"
    }

    fn subject<'a>(&self, old: &'a str, new: &'a str) -> Subject<'a> {
        let version = if self.is_old() { "v1beta1" } else { "v1beta2" };
        Subject {
            resource: Resource {
                group: "g".into(),
                version: version.into(),
                resource: "machines".into(),
            },
            subresource: "status".into(),
            operation: Operation::Update,
            writer: Writer { user: "capi-controller".into(), groups: Vec::new() },
            object: Object::parse(new).unwrap(),
            old: Some(Object::parse(old).unwrap()),
        }
    }

    /// Objects of the old version have two lists, which one patch brings.
    fn object(&self, deleting: bool, stored: &Stored) -> Value {
        let text = |status: bool| if status { "True" } else { "False" };
        let new = stored.conditions.iter().map(|(kind, status)| {
            json!({"type": kind, "status": text(*status), "reason": "R", "message": "", "lastTransitionTime": NOW})
        });
        let new: Value = new.collect();
        let positive = stored.conditions.iter().filter(|(kind, _)| kind.ends_with("Ready"));
        let old = positive.map(|(kind, status)| {
            let severity = if *status { "" } else { "Info" };
            json!({"type": kind, "status": text(*status), "severity": severity, "lastTransitionTime": NOW})
        });
        let old: Value = old.collect();
        let mut status = if self.is_old() {
            json!({"conditions": old, "v1beta2": {"conditions": new}})
        } else {
            json!({"conditions": new, "deprecated": {"v1beta1": {"conditions": old}}})
        };
        if let Some(phase) = stored.phase {
            status["phase"] = phase.into();
        }
        let mut object = json!({"metadata": {"name": "n"}, "status": status});
        if deleting {
            object["metadata"]["deletionTimestamp"] = NOW.into();
        }
        object
    }
}

// --- the steps --------------------------------------------------------------------------------------

struct ClusterApi {
    writers: Writers,
    gate: Gate,
}

impl Model for ClusterApi {
    type World = World;

    /// What is stored is what is.
    fn goal(world: &World) -> bool {
        let World { facts, stored, .. } = world;
        let says = |(kind, status): (&&str, &bool)| stored.conditions.get(*kind) == Some(status);
        facts.conditions().iter().all(says) && stored.phase == Some(facts.phase())
    }

    fn steps(&mut self, world: &World) -> Vec<Step<World>> {
        let mut steps = happenings(world);
        steps.push(self.controller(world));
        // The health check's controller has one condition, which it writes by itself.
        let check = BTreeMap::from([("HealthCheckSucceeded", world.facts.checked)]);
        steps.push(self.write("health check", world, &Patch::Conditions(check)).0);
        if self.writers == Writers::Apart {
            let infrastructure =
                BTreeMap::from([("InfrastructureReady", world.facts.infrastructure)]);
            steps.push(self.write("mirror", world, &Patch::Conditions(infrastructure)).0);
        }
        steps
    }
}

/// What nobody can count on.
fn happenings(world: &World) -> Vec<Step<World>> {
    let facts = world.facts;
    let mut steps = Vec::new();
    let mut happens = |what: &str, facts: Facts| {
        let to = World { facts, ..world.clone() };
        steps.push(Step { what: what.to_owned(), to, helps: false });
    };
    let infrastructure = !facts.infrastructure;
    happens("the infrastructure changes", Facts { infrastructure, ..facts });
    if facts.infrastructure && !facts.joined {
        happens("a node joins", Facts { joined: true, healthy: true, ..facts });
    }
    if facts.joined {
        happens("the node's health changes", Facts { healthy: !facts.healthy, ..facts });
    }
    happens("the check changes", Facts { checked: !facts.checked, ..facts });
    happens("the machine is deleted", Facts { deleting: true, ..facts });
    steps
}

impl ClusterApi {
    /// The machine's controller: a look, and three patches. A refused patch ends the reconcile, and
    /// the controller starts anew.
    fn controller(&mut self, world: &World) -> Step<World> {
        let Some((next, rest)) = world.pending.split_first() else {
            let mut conditions = world.facts.conditions();
            if self.writers == Writers::Apart {
                conditions.remove("InfrastructureReady");
                // It looks at the machine, not at the infrastructure.
                let stored = world.stored.conditions.get("InfrastructureReady");
                let seen = Facts { infrastructure: stored == Some(&true), ..world.facts };
                let ready = seen.ready();
                conditions.extend([("Ready", ready), ("Available", ready)]);
            }
            let phase = Patch::Phase(world.facts.phase());
            let pending = vec![Patch::Conditions(conditions), Patch::SpecAndMetadata, phase];
            let to = World { pending, ..world.clone() };
            return Step { what: "machine: looks".to_owned(), to, helps: true };
        };
        let (mut step, refused) = self.write("machine", world, next);
        step.to.pending = if refused { Vec::new() } else { rest.to_vec() };
        step
    }

    fn write(&mut self, who: &str, world: &World, patch: &Patch) -> (Step<World>, bool) {
        let mut new = world.stored.clone();
        match patch {
            Patch::Conditions(conditions) => new.conditions.extend(conditions),
            // Not of the status: nobody judges it.
            Patch::SpecAndMetadata => {}
            Patch::Phase(phase) => new.phase = Some(*phase),
        }
        let mut to = world.clone();
        let (what, refused) = match self.gate.write(world.facts.deleting, &world.stored, &new) {
            Ok(stored) => {
                to.stored = stored;
                (format!("{who}: {patch:?} leaves {}", to.stored), false)
            }
            Err(why) => (format!("{who}: {patch:?} is refused: {why}"), true),
        };
        (Step { what, to, helps: true }, refused)
    }
}

impl fmt::Display for Stored {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {:?}", self.phase.unwrap_or("no phase"), self.conditions)
    }
}

// --- the questions -----------------------------------------------------------------------------------

fn walk(convention: &'static str, disagreement: &str, writers: Writers) -> Exploration {
    let found = explore(&mut ClusterApi { writers, gate: Gate::new(convention, disagreement) });
    let states = found.states;
    println!("{convention}, {disagreement}, {writers:?}: {states} states");
    assert!(states > 100, "a walk of {states} states");
    assert!(found.live, "the goal is nowhere");
    found
}

#[test]
fn under_repair_and_warn_clusters_always_get_their_status_written() {
    for (convention, writers) in [
        ("capi-v1beta2", Writers::Together),
        ("capi-v1beta2", Writers::Apart),
        ("capi-v1beta1", Writers::Together),
        ("capi-tied", Writers::Together),
    ] {
        for disagreement in ["Repair", "Warn"] {
            if let Some(dead_end) = walk(convention, disagreement, writers).dead_end {
                panic!("{convention}, {disagreement}, {writers:?}: a dead end:\n{dead_end}");
            }
        }
    }
}

/// Refusing disagreements is safe with Cluster API's own controllers: their conditions come together,
/// and nothing ties the phase to them.
#[test]
fn under_deny_cluster_apis_own_controllers_get_through() {
    for convention in ["capi-v1beta2", "capi-v1beta1"] {
        if let Some(dead_end) = walk(convention, "Deny", Writers::Together).dead_end {
            panic!("{convention}: a dead end:\n{dead_end}");
        }
    }
}

/// The checker can fail: where conditions that must agree have two writers, and where the phase is
/// tied to conditions that come in another patch.
#[test]
fn under_deny_writers_that_cannot_agree_are_stuck() {
    for (convention, writers, rule) in [
        ("capi-v1beta2", Writers::Apart, "[capi-v1beta2/machine-ready]"),
        ("capi-tied", Writers::Together, "[capi-tied/phase-"),
    ] {
        let dead_end = walk(convention, "Deny", writers).dead_end;
        let dead_end = dead_end.unwrap_or_else(|| panic!("{convention}, {writers:?}: no dead end"));
        println!("{dead_end}");
        assert!(dead_end.refused.iter().any(|step| step.contains(rule)), "{convention}: {rule}");
    }
}
