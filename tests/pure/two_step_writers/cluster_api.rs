//! Cluster API writes one status in three patches.
//!
//! The patch helper of a controller compares the object that it read with the desired object. It sends
//! the conditions that differ, then spec and metadata, then the rest of the status. Others read the
//! stored result of a patch before the next one comes. Between two requests the infrastructure, the
//! node and the health check change, and somebody deletes the machine.
//!
//! The goal is that the stored status is true. The writers alone must reach it from every state, without
//! waiting for an improvement.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::{fmt, fs};

use serde_json::{Value, json};
use statusgate_core::policy::PolicySet;

use super::search::{Exploration, Model, Step, explore};
use crate::support::{NOW, Write, compile, policy};

// --- the world ----------------------------------------------------------------------------------

/// The true state of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Facts {
    infrastructure: bool,
    /// A node has joined at some time.
    joined: bool,
    healthy: bool,
    checked: bool,
    deleting: bool,
}

/// The stored status.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Stored {
    conditions: BTreeMap<&'static str, bool>,
    phase: Option<&'static str>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct World {
    facts: Facts,
    stored: Stored,
    /// The remaining patches of the machine's controller.
    pending: Vec<Patch>,
}

/// The content of a patch. The rest of the stored object stays.
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

    /// The conditions of the machine's controller, from one observation.
    fn conditions(self) -> BTreeMap<&'static str, bool> {
        BTreeMap::from([
            ("Available", self.ready()),
            ("Deleting", self.deleting),
            ("InfrastructureReady", self.infrastructure),
            ("NodeHealthy", self.joined && self.healthy),
            ("Ready", self.ready()),
        ])
    }

    /// The phase follows from spec and status.
    const fn phase(self) -> &'static str {
        match self {
            Self { deleting: true, .. } => "Deleting",
            Self { joined: true, .. } => "Running",
            Self { infrastructure: true, .. } => "Provisioned",
            _ => "Provisioning",
        }
    }
}

/// The writers of the conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Writers {
    /// The machine's controller writes all conditions at once, as in Cluster API.
    Together,
    /// One controller mirrors the condition of the infrastructure, and one summarizes the stored conditions.
    Apart,
}

// --- the writes -----------------------------------------------------------------------------------

/// The API server with both webhooks.
struct Gate {
    convention: &'static str,
    policies: PolicySet,
    known: HashMap<(bool, Stored, Stored), Result<Stored, String>>,
}

impl Gate {
    fn new(convention: &'static str, disagreement: &str) -> Self {
        let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/conventions");
        let own = fs::read_to_string(own.join("capi-tied.yaml")).unwrap();
        let spec = format!("convention: {convention}, disagreement: {disagreement}");
        let policies = compile(&[own, policy("test", spec)]);
        Self { convention, policies, known: HashMap::new() }
    }

    fn write(&mut self, deleting: bool, old: &Stored, new: &Stored) -> Result<Stored, String> {
        let key = (deleting, old.clone(), new.clone());
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let version = if self.is_old() { "v1beta1" } else { "v1beta2" };
        let write = Write::to("machines").version(version);
        let write = write.stored(self.status(old)).sent(self.status(new));
        let write = if deleting { write.deleting() } else { write };
        let outcome = write.review(&self.policies);
        let result = match outcome.denials().into_iter().next() {
            Some(denial) => Err(denial),
            None => {
                let phase = &outcome.status()["phase"];
                assert_eq!(phase.as_str(), new.phase, "phases of Cluster API are not repaired");
                Ok(new.clone())
            }
        };
        self.known.insert(key, result.clone());
        result
    }

    fn is_old(&self) -> bool {
        self.convention == "capi-v1beta1"
    }

    /// A status of the old version has two lists, which come in one patch.
    fn status(&self, stored: &Stored) -> Value {
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
        status
    }
}

// --- the steps --------------------------------------------------------------------------------------

struct ClusterApi {
    writers: Writers,
    gate: Gate,
}

impl Model for ClusterApi {
    type World = World;

    /// The stored status is true.
    fn goal(world: &World) -> bool {
        let World { facts, stored, .. } = world;
        let says = |(kind, status): (&&str, &bool)| stored.conditions.get(*kind) == Some(status);
        facts.conditions().iter().all(says) && stored.phase == Some(facts.phase())
    }

    fn steps(&mut self, world: &World) -> Vec<Step<World>> {
        let mut steps = happenings(world);
        steps.push(self.controller(world));
        // The health check's controller writes its only condition.
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

/// Events that a way to the goal must not rely on.
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
    /// The machine's controller observes and sends three patches. A denied patch ends the reconcile, and
    /// the controller starts again.
    fn controller(&mut self, world: &World) -> Step<World> {
        let Some((next, rest)) = world.pending.split_first() else {
            let mut conditions = world.facts.conditions();
            if self.writers == Writers::Apart {
                conditions.remove("InfrastructureReady");
                // It observes the stored condition, not the infrastructure.
                let stored = world.stored.conditions.get("InfrastructureReady");
                let seen = Facts { infrastructure: stored == Some(&true), ..world.facts };
                let ready = seen.ready();
                conditions.extend([("Ready", ready), ("Available", ready)]);
            }
            let phase = Patch::Phase(world.facts.phase());
            let pending = vec![Patch::Conditions(conditions), Patch::SpecAndMetadata, phase];
            let to = World { pending, ..world.clone() };
            return Step { what: "machine: observes".to_owned(), to, helps: true };
        };
        let (mut step, denied) = self.write("machine", world, next);
        step.to.pending = if denied { Vec::new() } else { rest.to_vec() };
        step
    }

    fn write(&mut self, who: &str, world: &World, patch: &Patch) -> (Step<World>, bool) {
        let mut new = world.stored.clone();
        match patch {
            Patch::Conditions(conditions) => new.conditions.extend(conditions),
            // The status does not change.
            Patch::SpecAndMetadata => {}
            Patch::Phase(phase) => new.phase = Some(*phase),
        }
        let mut to = world.clone();
        let (what, denied) = match self.gate.write(world.facts.deleting, &world.stored, &new) {
            Ok(stored) => {
                to.stored = stored;
                (format!("{who}: {patch:?} leaves {}", to.stored), false)
            }
            Err(why) => (format!("{who}: {patch:?} is denied: {why}"), true),
        };
        (Step { what, to, helps: true }, denied)
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
    assert!(states > 100, "only {states} states");
    assert!(found.live, "no state is a goal");
    found
}

#[test]
fn every_state_reaches_the_goal_under_repair_and_warn() {
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

/// Their conditions come together, and no rule ties the phase to them.
#[test]
fn the_controllers_of_cluster_api_reach_the_goal_under_deny() {
    for convention in ["capi-v1beta2", "capi-v1beta1"] {
        if let Some(dead_end) = walk(convention, "Deny", Writers::Together).dead_end {
            panic!("{convention}: a dead end:\n{dead_end}");
        }
    }
}

/// The search finds a dead end if conditions that must agree have two writers, and if the phase depends
/// on conditions that come in another patch.
#[test]
fn writers_that_cannot_agree_are_stuck_under_deny() {
    for (convention, writers, rule) in [
        ("capi-v1beta2", Writers::Apart, "[capi-v1beta2/machine-ready]"),
        ("capi-tied", Writers::Together, "[capi-tied/phase-"),
    ] {
        let dead_end = walk(convention, "Deny", writers).dead_end;
        let dead_end = dead_end.unwrap_or_else(|| panic!("{convention}, {writers:?}: no dead end"));
        println!("{dead_end}");
        assert!(dead_end.denied.iter().any(|step| step.contains(rule)), "{convention}: {rule}");
    }
}
