//! Crossplane: phase and conditions in two requests.
//!
//! Its composite controller first applies what the function wants (the phase) together with
//! the conditions as they were, then puts the same phase with new conditions. Its claim controller
//! copies the composite's status without the conditions, then sets the claim's own. A refusal of the
//! first request means that the second never comes. Between any two requests releases become ready,
//! pods become ready and pods fail.

use std::collections::HashMap;
use std::fmt;

use serde_json::{Value, json};
use statusgate::engine::decide;
use statusgate::model::{Object, Operation, Resource, Subject, Webhook, Writer};
use statusgate::policy::{PolicySet, Source};

use super::search::{Exploration, Model, Step, explore};

/// One time for all: a model in which times differ has no end. Rules about times only warn.
const NOW: &str = "2024-06-01T12:00:00Z";
const CROSSPLANE: &str = "system:serviceaccount:syn-crossplane:crossplane";

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

/// Everything there is: the cluster, and where each controller is in its reconcile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct World {
    composite: Stored,
    claim: Stored,
    /// The release is there; it does not go away again.
    released: bool,
    pods_ready: bool,
    /// The composite's second request, prepared when the first was sent: the phase and the
    /// conditions of that moment, not of this one.
    composite_next: Option<Stored>,
    /// The claim's second status request: what the first has left stored.
    claim_next: Option<Stored>,
}

/// How a function chooses the phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Function {
    /// From the pods and releases it sees right now.
    Eager,
    /// From the stored Ready and the pods it sees, as the ADR says.
    Adr,
    /// From the stored Ready and the stored PodReady.
    Lag,
}

/// In which request PodReady comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PodReady {
    /// With the phase: the function writes it into the desired status.
    First,
    /// With Ready and Synced: the function returns it as a condition.
    Second,
}

/// What the composite's second request says of the phase, where the first was repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// What the function wanted: the object in memory was not read back.
    Wanted,
    /// What the API server answered.
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

/// The API server with statusgate before it: what a write leaves stored, or why it is refused.
struct Gate {
    policies: PolicySet,
    /// The engine is asked once for each kind of write.
    known: HashMap<(bool, Stored, Stored), Result<Stored, String>>,
}

impl Gate {
    fn new(disagreement: &str) -> Self {
        let text = format!(
            "apiVersion: statusgate.dev/v1alpha1\nkind: StatusPolicy\nmetadata: {{name: test}}\nspec:\n  convention: appcat\n  \
             resources: [{{apiGroups: [g], apiVersions: [v1], resources: [xthings, things]}}]\n  \
             writers: [{{users: ['system:serviceaccount:*:crossplane'], disagreement: {disagreement}}}]\n"
        );
        let source = Source { name: "test.yaml".into(), text };
        let policies = PolicySet::compile(&[source]).unwrap_or_else(|error| panic!("{error}"));
        Self { policies, known: HashMap::new() }
    }

    fn write(&mut self, composite: bool, old: &Stored, new: &Stored) -> Result<Stored, String> {
        let key = (composite, old.clone(), new.clone());
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let answer = self.through_both_webhooks(composite, old, new);
        self.known.insert(key, answer.clone());
        answer
    }

    fn through_both_webhooks(
        &self,
        composite: bool,
        old: &Stored,
        new: &Stored,
    ) -> Result<Stored, String> {
        let (old, mut new) = (old.to_object(), new.to_object());
        let now = NOW.parse().unwrap();
        {
            let (old, text) = (old.to_string(), new.to_string());
            let subject = subject(composite, &old, &text);
            let verdict = decide(&self.policies, &subject, Webhook::Mutate, now);
            assert!(!verdict.is_denied() && !verdict.patch_failed);
            if let Some(patch) = &verdict.patch {
                json_patch::patch(&mut new, patch).unwrap();
            }
        }
        let (old, text) = (old.to_string(), new.to_string());
        let subject = subject(composite, &old, &text);
        let verdict = decide(&self.policies, &subject, Webhook::Validate, now);
        match verdict.findings.iter().find(|finding| {
            verdict.is_denied() && finding.action == statusgate::engine::Action::Deny
        }) {
            Some(finding) => Err(format!("{} [{}]", finding.message, finding.rule)),
            None => Ok(Stored::of(&new)),
        }
    }
}

fn subject<'a>(composite: bool, old: &'a str, new: &'a str) -> Subject<'a> {
    let resource = if composite { "xthings" } else { "things" };
    Subject {
        resource: Resource { group: "g".into(), version: "v1".into(), resource: resource.into() },
        subresource: "status".into(),
        operation: Operation::Update,
        writer: Writer { user: CROSSPLANE.into(), groups: Vec::new() },
        object: Object::parse(new).unwrap(),
        old: Some(Object::parse(old).unwrap()),
    }
}

impl Stored {
    fn to_object(&self) -> Value {
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
        json!({"apiVersion": "g/v1", "kind": "Thing", "metadata": {"name": "n"}, "status": status})
    }

    fn of(object: &Value) -> Self {
        let status = &object["status"];
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

    /// Everything that can happen next. A refused request ends its reconcile: the controller starts
    /// anew from what is stored, after a backoff that is no state of its own.
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
            Err(why) => format!("composite, request 2: {next} is refused: {why}"),
        };
        Step { what, to, helps: true }
    }

    /// The function runs, and its phase is applied over the conditions as they are stored.
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
            Err(why) => format!("composite, request 1: {request} is refused: {why}"),
        };
        Step { what, to, helps: true }
    }

    fn claim_step(&mut self, world: &World) -> Step<World> {
        let (number, request) = match &world.claim_next {
            // The composite's status but for the conditions, over the claim's own.
            None => (2, Stored { phase: world.composite.phase.clone(), ..world.claim.clone() }),
            Some(copied) => {
                let ready = Some(world.composite.ready == Some(true));
                (3, Stored { ready, synced: Some(true), ..copied.clone() })
            }
        };
        let mut to = World { claim_next: None, ..world.clone() };
        let what = match self.gate.write(false, &world.claim, &request) {
            Ok(stored) => {
                // The API server's answer to the second request is what the third starts from.
                to.claim_next = (number == 2).then(|| stored.clone());
                to.claim = stored;
                format!("claim, request {number}: {request} leaves {}", to.claim)
            }
            Err(why) => format!("claim, request {number}: {request} is refused: {why}"),
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

/// Every kind of function, in every way of writing, under one policy.
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
fn under_repair_and_warn_every_state_can_still_reach_the_goal() {
    for disagreement in ["Repair", "Warn", "Audit"] {
        for_all_writers(disagreement, |name, _, found| {
            assert!(found.states > 100, "{name}: a walk of {} states", found.states);
            assert!(found.live, "{name}: the goal is nowhere");
            if let Some(dead_end) = found.dead_end {
                panic!("{name}: a dead end:\n{dead_end}");
            }
        });
    }
}

/// The checker can fail, and finds what the research found (`crossplane-writes`): refusing Crossplane
/// is live for no function at all. Where PodReady comes after a phase that counts on it, the composite
/// itself never gets through; everywhere else it is the claim that copies a phase too early.
#[test]
fn under_deny_the_known_dead_ends_are_found() {
    for_all_writers("Deny", |name, model, found| {
        let dead_end = found.dead_end.unwrap_or_else(|| panic!("{name}: no dead end"));
        println!("{dead_end}");
        let by_itself = model.pod_ready == PodReady::Second && model.function != Function::Lag;
        let who = if by_itself { "composite, request 1: Ready" } else { "claim, request 2: Ready" };
        let stuck = |step: &String| step.starts_with(who) && step.contains("[appcat/phase-ready]");
        assert!(dead_end.refused.iter().any(stuck), "{name}: {who} is not what is refused");
    });
}
