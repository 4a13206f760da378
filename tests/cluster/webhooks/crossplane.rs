//! The requests of Crossplane 1.20: no write fails, and in the end the phase is correct.
//!
//! A composite's reconcile applies the result of the functions (1), then PUTs it with the system
//! conditions (2). A claim's reconcile PUTs the composite's status with its own old conditions (2), then
//! its conditions (3). Phase and conditions come in different requests, so they disagree in between.
//! The function here is the least patient one: it derives the phase from the resources, and returns
//! Ready before the stored conditions are True.

use serde_json::{Value, json};

use super::cluster::{Cluster, in_cluster};
use crate::harness::objects::{CLAIM, COMPOSITE, Objects, condition};

#[test]
fn a_new_service_becomes_ready_and_recovers_if_functions_apply_pod_ready() {
    in_cluster(async |cluster| lives(cluster, PodReady::Applied).await);
}

#[test]
fn a_new_service_becomes_ready_and_recovers_if_functions_return_pod_ready() {
    in_cluster(async |cluster| lives(cluster, PodReady::Returned).await);
}

/// A new service becomes Ready, its pods fail, and it recovers.
async fn lives(cluster: &Cluster, pod_ready: PodReady) {
    let mut service = Service::create(cluster, pod_ready).await;
    let nothing = World { releases: false, pods: false, phase: "Provisioning" };
    let healthy = World { releases: true, pods: true, phase: "Ready" };
    let failing = World { releases: true, pods: false, phase: "Degraded" };
    for (world, stage) in
        [(nothing, "fresh"), (healthy, "ready"), (failing, "regression"), (healthy, "recovery")]
    {
        let rounds = service.settle(world).await;
        println!("{stage}: {} on composite and claim after {rounds} rounds", world.phase);
    }
}

/// The request that contains the condition `PodReady`. Crossplane's functions use both.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PodReady {
    /// In the composite's desired status, with the phase.
    Applied,
    /// As a condition in the function's answer, with Ready and Synced.
    Returned,
}

/// The state of the resources, and the correct phase.
#[derive(Clone, Copy)]
struct World {
    releases: bool,
    pods: bool,
    phase: &'static str,
}

struct Service {
    composites: Objects,
    composite: String,
    claims: Objects,
    claim: String,
    pod_ready: PodReady,
    second: u32,
}

impl Service {
    async fn create(cluster: &Cluster, pod_ready: PodReady) -> Self {
        Self {
            composites: cluster.crossplane(COMPOSITE),
            composite: cluster.object(COMPOSITE).await,
            claims: cluster.crossplane(CLAIM),
            claim: cluster.object(CLAIM).await,
            pod_ready,
            second: 0,
        }
    }

    /// Reconciles until both phases are correct, and once more to check that they stay.
    async fn settle(&mut self, world: World) -> u32 {
        for round in 1..=ROUNDS {
            let phases = self.reconcile(world).await;
            if phases.iter().all(|phase| phase == world.phase) {
                assert_eq!(self.reconcile(world).await, phases, "settled");
                return round;
            }
        }
        panic!("after {ROUNDS} rounds the phases are not {}", world.phase);
    }

    async fn reconcile(&mut self, world: World) -> [Value; 2] {
        self.second += 1;
        let composite = self.reconcile_composite(world).await;
        let claim = self.reconcile_claim(&composite).await;
        [composite["status"]["phase"].clone(), claim["status"]["phase"].clone()]
    }

    async fn reconcile_composite(&self, world: World) -> Value {
        let objects = &self.composites;
        let stored = objects.get(&self.composite).await.expect("the composite is there");
        let pods = self.updated(&stored, "PodReady", world.pods);
        let mut wanted = json!({"phase": world.phase, "instanceNamespace": "vshn-postgresql"});
        if self.pod_ready == PodReady::Applied {
            wanted["conditions"] = json!([pods]);
        }
        let manager = "apiextensions.crossplane.io/composite";
        let applied = objects.force_status(&self.composite, manager, wanted).await;
        let mut object = applied.expect("write 1 of the composite, the apply, succeeds");

        let mut conditions = vec![
            self.updated(&stored, "Synced", true),
            self.updated(&stored, "Ready", world.releases),
        ];
        if self.pod_ready == PodReady::Returned {
            conditions.push(pods);
        }
        conditions.into_iter().for_each(|condition| set_condition(&mut object, condition));
        let written = objects.put_status(&object).await;
        written.expect("write 2 of the composite, its conditions, succeeds")
    }

    async fn reconcile_claim(&self, composite: &Value) -> Value {
        let objects = &self.claims;
        let mut claim = objects.get(&self.claim).await.expect("the claim is there");
        claim["spec"] = json!({"resourceRef": {"apiVersion": composite["apiVersion"],
            "kind": composite["kind"], "name": composite["metadata"]["name"]}});
        let mut claim =
            objects.put(&claim).await.expect("write 1 of the claim, its spec, succeeds");

        let conditions = claim["status"].get("conditions").cloned();
        claim["status"] = composite["status"].clone();
        let status = claim["status"].as_object_mut().expect("the composite has a status");
        status.remove("conditions");
        status.extend(conditions.map(|conditions| ("conditions".to_owned(), conditions)));
        let synced = objects.put_status(&claim).await;
        let mut claim = synced.expect("write 2 of the claim, the composite's status, succeeds");

        let ready =
            find_condition(composite, "Ready").is_some_and(|ready| ready["status"] == "True");
        for condition in
            [self.updated(&claim, "Synced", true), self.updated(&claim, "Ready", ready)]
        {
            set_condition(&mut claim, condition);
        }
        let written = objects.put_status(&claim).await;
        written.expect("write 3 of the claim, its conditions, succeeds")
    }

    /// The next condition. Its time changes with its status.
    fn updated(&self, object: &Value, kind: &str, is: bool) -> Value {
        let status = if is { "True" } else { "False" };
        let stored = find_condition(object, kind).filter(|stored| stored["status"] == status);
        stored.cloned().unwrap_or_else(|| condition(kind, status, self.second))
    }
}

fn find_condition<'o>(object: &'o Value, kind: &str) -> Option<&'o Value> {
    let conditions = object["status"]["conditions"].as_array()?;
    conditions.iter().find(|condition| condition["type"] == kind)
}

fn set_condition(object: &mut Value, condition: Value) {
    if !object["status"]["conditions"].is_array() {
        object["status"]["conditions"] = json!([]);
    }
    let conditions = object["status"]["conditions"].as_array_mut().expect("a list");
    match conditions.iter_mut().find(|stored| stored["type"] == condition["type"]) {
        Some(stored) => *stored = condition,
        None => conditions.push(condition),
    }
}

/// The rounds until the phase is correct: one for each repaired write, and one more.
const ROUNDS: u32 = 4;
