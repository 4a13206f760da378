//! Crossplane writes phase and conditions in two requests.
//!
//! Its composite controller first applies the result of the function (the phase) with the stored
//! conditions, and then writes the same phase with new conditions. Its claim controller copies the
//! composite's status without the conditions, and then sets the claim's own. If the first request is
//! denied, the second never comes. Between two requests releases and pods become ready, and pods fail.

use std::collections::HashMap;
use std::fmt;

use serde_json::{Value, json};
use statusgate_core::policy::PolicySet;

use super::search::{Exploration, Model, Step, explore};
use crate::support::{CROSSPLANE, NOW, Write, following};

// --- the world --------------------------------------------------------------------------------------

/// A condition's status; `None` is absence.
type Status = Option<bool>;

/// The part of a stored status that the writers and the convention look at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Stored {
    phase: Option<String>,
    ready: Status,
    synced: Status,
    pods: Status,
}

/// The cluster, and the position of each controller in its reconcile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct World {
    composite: Stored,
    claim: Stored,
    /// The release is installed and stays.
    released: bool,
    pods_ready: bool,
    /// The composite's second request: the phase and the conditions at the time of the first.
    composite_next: Option<Stored>,
    /// The claim's second request starts from the stored result of the first.
    claim_next: Option<Stored>,
}

/// The source from which a function derives the phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Function {
    /// The current pods and releases.
    Eager,
    /// The stored Ready and the current pods, as in the ADR.
    Adr,
    /// The stored Ready and the stored PodReady.
    Lag,
}

/// The request that contains PodReady.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PodReady {
    /// The function writes it into the desired status, with the phase.
    First,
    /// The function returns it as a condition, with Ready and Synced.
    Second,
}

/// The phase in the composite's second request if the first was repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The result of the function: the controller did not read the answer.
    Wanted,
    /// The answer of the API server.
    Answered,
}

impl World {
    fn goal(&self) -> bool {
        let is_ready = |stored: &Stored| stored.phase.as_deref() == Some("Ready");
        let up = |status: Status| status == Some(true);
        let Stored { ready, synced, pods, .. } = &self.composite;
        is_ready(&self.composite)
            && [*ready, *synced, *pods].into_iter().all(up)
            && is_ready(&self.claim)
            && up(self.claim.ready)
    }
}

impl Function {
    fn phase(self, world: &World) -> &'static str {
        let stored = &world.composite;
        let (ready, pods) = match self {
            Self::Eager => (world.released, world.pods_ready),
            Self::Adr => (stored.ready == Some(true), world.pods_ready),
            Self::Lag => (stored.ready == Some(true), stored.pods == Some(true)),
        };
        let was_ready = matches!(stored.phase.as_deref(), Some("Ready" | "Degraded"));
        match (ready, pods) {
            (true, true) => "Ready",
            // The pod readiness table: pods that were ready once are Degraded.
            _ if was_ready => "Degraded",
            _ => "Provisioning",
        }
    }
}

// --- the writes ---------------------------------------------------------------------------------------

/// The API server with both webhooks: the stored result of a write, or the denial.
struct Gate {
    policies: PolicySet,
    /// The engine judges each kind of write once.
    known: HashMap<(bool, Stored, Stored), Result<Stored, String>>,
}

impl Gate {
    fn new(disagreement: &str) -> Self {
        let writers = format!(
            "writers: [{{users: ['system:serviceaccount:*:crossplane'], disagreement: {disagreement}}}]"
        );
        Self { policies: following("appcat", &writers), known: HashMap::new() }
    }

    fn write(&mut self, composite: bool, old: &Stored, new: &Stored) -> Result<Stored, String> {
        let judge = || {
            let write = Write::to(if composite { "xthings" } else { "things" }).by(CROSSPLANE);
            let outcome =
                write.stored(old.to_status()).sent(new.to_status()).review(&self.policies);
            match outcome.denials().into_iter().next() {
                Some(denial) => Err(denial),
                None => Ok(Stored::of(&outcome.status())),
            }
        };
        let key = (composite, old.clone(), new.clone());
        self.known.entry(key).or_insert_with(judge).clone()
    }
}

impl Stored {
    fn to_status(&self) -> Value {
        let conditions = [("Ready", self.ready), ("Synced", self.synced), ("PodReady", self.pods)];
        let conditions: Vec<Value> = conditions
            .into_iter()
            .filter_map(|(kind, status)| {
                let status = if status? { "True" } else { "False" };
                Some(json!({"type": kind, "status": status, "reason": "Because", "lastTransitionTime": NOW}))
            })
            .collect();
        let mut status = json!({"instanceNamespace": "n", "conditions": conditions});
        if let Some(phase) = &self.phase {
            status["phase"] = phase.as_str().into();
        }
        status
    }

    fn of(status: &Value) -> Self {
        let find = |kind: &str| {
            let list = status["conditions"].as_array()?;
            let condition = list.iter().find(|condition| condition["type"] == kind)?;
            Some(condition["status"] == "True")
        };
        Self {
            phase: status["phase"].as_str().map(str::to_owned),
            ready: find("Ready"),
            synced: find("Synced"),
            pods: find("PodReady"),
        }
    }
}

// --- the steps -------------------------------------------------------------------------------------------

struct Crossplane {
    function: Function,
    pod_ready: PodReady,
    second: Phase,
    gate: Gate,
}

impl Model for Crossplane {
    type World = World;

    fn goal(world: &World) -> bool {
        world.goal()
    }

    /// A denied request ends its reconcile. The controller starts again from the stored state after a
    /// backoff, which is not a separate state.
    fn steps(&mut self, world: &World) -> Vec<Step<World>> {
        let mut steps = Vec::new();
        let mut happens =
            |what: &str, to| steps.push(Step { what: what.to_owned(), to, helps: true });
        if !world.released {
            happens("the release becomes ready", World { released: true, ..world.clone() });
        }
        if world.released && !world.pods_ready {
            happens("the pods become ready", World { pods_ready: true, ..world.clone() });
        }
        if world.pods_ready {
            happens("the pods fail", World { pods_ready: false, ..world.clone() });
        }
        steps.push(self.composite_step(world));
        steps.push(self.claim_step(world));
        steps
    }
}

impl Crossplane {
    fn composite_step(&mut self, world: &World) -> Step<World> {
        let Some(next) = &world.composite_next else { return self.composite_first(world) };
        let mut to = World { composite_next: None, ..world.clone() };
        let what = match self.gate.write(true, &world.composite, next) {
            Ok(stored) => {
                to.composite = stored;
                format!("composite, request 2: {next} leaves {}", to.composite)
            }
            Err(why) => format!("composite, request 2: {next} is denied: {why}"),
        };
        Step { what, to, helps: true }
    }

    /// The function runs. The controller applies its phase with the stored conditions.
    fn composite_first(&mut self, world: &World) -> Step<World> {
        let mut request = world.composite.clone();
        request.phase = Some(self.function.phase(world).to_owned());
        let pods = Some(world.pods_ready);
        if self.pod_ready == PodReady::First {
            request.pods = pods;
        }
        let mut to = world.clone();
        let what = match self.gate.write(true, &world.composite, &request) {
            Ok(stored) => {
                to.composite = stored;
                to.composite_next = Some(Stored {
                    phase: match self.second {
                        Phase::Wanted => request.phase.clone(),
                        Phase::Answered => to.composite.phase.clone(),
                    },
                    ready: Some(world.released),
                    synced: Some(true),
                    pods,
                });
                format!("composite, request 1: {request} leaves {}", to.composite)
            }
            Err(why) => format!("composite, request 1: {request} is denied: {why}"),
        };
        Step { what, to, helps: true }
    }

    fn claim_step(&mut self, world: &World) -> Step<World> {
        let (number, request) = match &world.claim_next {
            // The composite's status, with the conditions of the claim.
            None => (2, Stored { phase: world.composite.phase.clone(), ..world.claim.clone() }),
            Some(copied) => {
                let ready = Some(world.composite.ready == Some(true));
                (3, Stored { ready, synced: Some(true), ..copied.clone() })
            }
        };
        let mut to = World { claim_next: None, ..world.clone() };
        let what = match self.gate.write(false, &world.claim, &request) {
            Ok(stored) => {
                // The third request starts from the answer to the second.
                to.claim_next = (number == 2).then(|| stored.clone());
                to.claim = stored;
                format!("claim, request {number}: {request} leaves {}", to.claim)
            }
            Err(why) => format!("claim, request {number}: {request} is denied: {why}"),
        };
        Step { what, to, helps: true }
    }
}

impl fmt::Display for Stored {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter = |status: Status| status.map_or("-", |status| if status { "T" } else { "F" });
        let phase = self.phase.as_deref().unwrap_or("no phase");
        let (ready, synced, pods) = (letter(self.ready), letter(self.synced), letter(self.pods));
        write!(formatter, "{phase} R={ready} S={synced} P={pods}")
    }
}

/// Searches the model for every function and every way of writing, under one policy.
fn for_all_writers(disagreement: &str, mut look: impl FnMut(String, &Crossplane, Exploration)) {
    for function in [Function::Eager, Function::Adr, Function::Lag] {
        for pod_ready in [PodReady::First, PodReady::Second] {
            for second in [Phase::Wanted, Phase::Answered] {
                let gate = Gate::new(disagreement);
                let mut model = Crossplane { function, pod_ready, second, gate };
                let found = explore(&mut model);
                let name = format!(
                    "{disagreement}, {function:?}, PodReady {pod_ready:?}, phase {second:?}"
                );
                println!("{name}: {} states", found.states);
                look(name, &model, found);
            }
        }
    }
}

#[test]
fn every_state_reaches_the_goal_under_repair_warn_and_audit() {
    for disagreement in ["Repair", "Warn", "Audit"] {
        for_all_writers(disagreement, |name, _, found| {
            assert!(found.states > 100, "{name}: only {} states", found.states);
            assert!(found.live, "{name}: no state is a goal");
            if let Some(dead_end) = found.dead_end {
                panic!("{name}: a dead end:\n{dead_end}");
            }
        });
    }
}

/// If Crossplane's writes are denied, a function reaches the goal only if PodReady comes before the phase
/// that needs it. Otherwise the composite is stuck, or with a function that lags the claim, which copies
/// the phase too early.
#[test]
fn deny_leads_to_the_known_dead_ends() {
    for_all_writers("Deny", |name, model, found| {
        let lags = model.function == Function::Lag;
        let reaches = model.pod_ready == PodReady::First && !lags;
        assert_eq!(found.dead_end.is_none(), reaches, "{name}");
        let Some(dead_end) = found.dead_end else { return };
        println!("{dead_end}");
        let who = if lags { "claim, request 2: Ready" } else { "composite, request 1: Ready" };
        let stuck = |step: &String| step.starts_with(who) && step.contains("[appcat/phase-ready]");
        assert!(dead_end.denied.iter().any(stuck), "{name}: {who} is not denied");
    });
}
