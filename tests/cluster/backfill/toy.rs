//! `statusgate wait -f` with a toy operator, as after `helm upgrade`: the status of the old spec must not end it.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};

use super::command::text;
use crate::command::STATUSGATE;
use crate::harness::leash::Leashed;
use crate::harness::objects::{CRD, Kind};
use crate::harness::patience::until;
use crate::harness::plane::{Plane, documents};
use crate::harness::pool::in_own_cluster;

const TOY: Kind = Kind {
    api_version: "test.statusgate.dev/v1",
    kind: "Toy",
    path: "/apis/test.statusgate.dev/v1/toys",
};

const DEFINITION: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: toys.test.statusgate.dev}
spec:
  group: test.statusgate.dev
  names: {kind: Toy, listKind: ToyList, plural: toys, singular: toy}
  scope: Cluster
  versions:
    - name: v1
      served: true
      storage: true
      subresources: {status: {}}
      schema:
        openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
";

const POLICY: &str = "
apiVersion: statusgate.dev/v1alpha1
kind: StatusConvention
metadata: {name: toy}
spec:
  title: A toy operator
  source: this test
  conditions: [{path: /status/conditions}]
  phase:
    path: /status/phase
    values:
      - {phase: Working, health: inProgress}
      - {phase: Running, health: current}
      - {phase: Broken, health: failed}
---
apiVersion: statusgate.dev/v1alpha1
kind: StatusPolicy
metadata: {name: toys}
spec: {convention: toy, resources: [{apiGroups: [test.statusgate.dev], apiVersions: [v1], resources: [toys]}]}
";

/// Its name as a manager of fields. Before Kubernetes 1.22, spec and status of one manager have one time.
const OPERATOR: &str = "toy-operator";

/// What the operator writes, and the phases before and after a change of the spec.
#[derive(Clone, Copy)]
struct Scenario {
    observes: bool,
    has_ready: bool,
    /// `None` for a new object.
    before: Option<&'static str>,
    after: &'static str,
}

const CHANGES: [(Option<&str>, &str); 5] = [
    (None, "Running"),
    (None, "Broken"),
    (Some("Running"), "Running"),
    (Some("Running"), "Broken"),
    (Some("Broken"), "Running"),
];

impl Scenario {
    fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for (observes, has_ready) in [(true, true), (true, false), (false, true), (false, false)] {
            let scenario = |(before, after)| Self { observes, has_ready, before, after };
            all.extend(CHANGES.map(scenario));
        }
        all
    }

    fn name(&self) -> String {
        let Self { observes, has_ready, before, after } = self;
        let name = format!("{}-{after}-{observes}-{has_ready}", before.unwrap_or("new"));
        name.to_lowercase()
    }

    fn status(&self, phase: &str, generation: &Value) -> Value {
        let mut status = json!({"phase": phase});
        if self.observes {
            status["observedGeneration"] = generation.clone();
        }
        if self.has_ready {
            let is_ready = if phase == "Running" { "True" } else { "False" };
            status["conditions"] =
                json!([{"type": "Ready", "status": is_ready, "reason": phase, "message": ""}]);
        }
        status
    }

    /// Changes the spec and waits while the operator works. Returns what is wrong with the answer.
    async fn play(&self, plane: &Plane) -> Option<String> {
        let (name, toys) = (self.name(), plane.objects(TOY));
        let changed = match self.before {
            None => toys.create(&toys.named(&name)).await.unwrap(),
            Some(_) => toys.merge(&name, json!({"spec": {"size": 2}})).await.unwrap(),
        };
        let generation = &changed["metadata"]["generation"];
        // Long enough for twenty processes on a slow machine.
        let waiting = wait(plane, &name, "--settle=40s").await;
        let ended = spawn_blocking({
            let waiting = Arc::clone(&waiting);
            move || (waiting.ended(), Instant::now())
        });
        sleep(Duration::from_secs(1)).await;
        toys.force_status(&name, OPERATOR, self.status("Working", generation)).await.unwrap();
        sleep(Duration::from_millis(1500)).await;
        let last = Instant::now();
        toys.force_status(&name, OPERATOR, self.status(self.after, generation)).await.unwrap();
        let (code, end) = ended.await.unwrap();
        let (expected, state) = match self.after {
            "Running" => ("0", "is current"),
            _ => ("1", "is failed: phase Broken"),
        };
        let line = format!("toys.test.statusgate.dev/{name} {state}\n");
        let is_right = code == expected && waiting.log().ends_with(&line) && end > last;
        (!is_right).then(|| format!("{name}: {code}, early: {}\n{}", end <= last, waiting.log()))
    }
}

/// Waits for the toy of a manifest. Returns when it was read once.
async fn wait(plane: &Plane, name: &str, settle: &str) -> Arc<Leashed> {
    let (folder, kubeconfig) = (plane.folder("toys"), plane.kubeconfig());
    let manifest = folder.join(format!("{name}.yaml"));
    fs::write(&manifest, plane.objects(TOY).named(name).to_string()).unwrap();
    let arguments = ["wait", "-f", text(&manifest), "--kubeconfig", text(&kubeconfig), settle];
    let policies = folder.join("policies");
    let arguments = [&arguments[..], &["--timeout=2m", "--policies", text(&policies)]].concat();
    let waiting = Leashed::start(&folder.join(format!("{name}.log")), STATUSGATE, arguments);
    until("it reads the toy", async || (!waiting.log().is_empty()).then_some(())).await;
    Arc::new(waiting)
}

#[test]
fn the_status_of_an_old_spec_does_not_end_a_wait() {
    in_own_cluster(async |plane| {
        let toys = plane.objects(TOY);
        plane.objects(CRD).create(&documents(DEFINITION)[0]).await.unwrap();
        until("toys are served", async || toys.list().await.ok()).await;
        let policies = plane.folder("toys").join("policies");
        fs::create_dir_all(&policies).unwrap();
        fs::write(policies.join("toys.yaml"), POLICY).unwrap();
        let scenarios = Scenario::all();
        assert_eq!(scenarios.len(), 20);
        for scenario in &scenarios {
            let (name, Some(before)) = (scenario.name(), scenario.before) else { continue };
            let toy = toys.named(&name);
            until("a toy is created", async || toys.create(&toy).await.ok()).await;
            toys.force_status(&name, OPERATOR, scenario.status(before, &json!(1))).await.unwrap();
        }
        // The times of writes have a resolution of one second.
        sleep(Duration::from_secs(2)).await;
        let played = join_all(scenarios.iter().map(|scenario| scenario.play(plane))).await;
        let wrong: Vec<String> = played.into_iter().flatten().collect();
        assert!(wrong.is_empty(), "{} of 20 are wrong:\n{}", wrong.len(), wrong.join("\n"));

        // An operator that has nothing to do. Before Kubernetes 1.25, only a new field moves a time.
        let name = "running-running-false-true";
        toys.merge(name, json!({"spec": {"color": "red"}})).await.unwrap();
        let waiting = wait(plane, name, "--settle=4s").await;
        assert_eq!(waiting.ended(), "0");
        let log = waiting.log();
        let unproven =
            "inProgress: unproven: the status (current: phase Running) is not newer than the spec";
        assert!(log.contains(unproven) && log.ends_with("is current\n"), "{log}");
        plane.objects(CRD).delete("toys.test.statusgate.dev").await.unwrap();
    });
}
