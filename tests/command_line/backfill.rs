//! `statusgate backfill`: the kinds that the policies select, and repairs of stored disagreements.

use std::fs;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Path, State};
use axum::routing::{get, patch};
use serde_json::{Value, json};

use crate::api::{Api, answer, groups, resources};
use crate::command::Ended;

/// An API server with two kinds: `things`, and `plains` without a status subresource.
#[derive(Clone, Default)]
struct Cluster {
    /// The status of every object; empty if null.
    status: Value,
    /// The requests for objects: `list things`, `patch plains b`.
    asked: Vec<String>,
}

type Shared = Arc<Mutex<Cluster>>;

/// A running fake server.
struct Server {
    cluster: Shared,
    api: Api,
}

impl Server {
    async fn start(cluster: Cluster) -> Self {
        let cluster = Arc::new(Mutex::new(cluster));
        let api = Api::serve(routes(Arc::clone(&cluster))).await;
        Self { cluster, api }
    }

    /// Makes it another cluster; returns the requests to the previous one, with equal lists joined.
    fn replace(&self, cluster: Cluster) -> Vec<String> {
        let mut asked = std::mem::replace(&mut *self.cluster.lock().unwrap(), cluster).asked;
        asked.dedup();
        asked
    }

    /// Runs a command with a policy over these resources.
    async fn run(&self, command: &str, resources: &[&str], more: &[&str]) -> Ended {
        let policy = self.api.path("policy.yaml");
        fs::write(&policy, policy_over(resources)).unwrap();
        let policies = ["--policies", policy.to_str().unwrap()];
        self.api.run(command, &[&policies, more].concat()).await
    }
}

fn routes(cluster: Shared) -> Router {
    let patched = async |State(cluster): State<Shared>,
                         Path((kind, name)): Path<(String, String)>| {
        cluster.lock().unwrap().asked.push(format!("patch {kind} {name}"));
        let metadata = json!({"name": name, "resourceVersion": "2"});
        answer(200, &json!({"kind": "PartialObjectMetadata", "metadata": metadata}))
    };
    Router::new()
        .route("/apis", get(async || groups(&["t.io"])))
        .route(
            "/apis/t.io/v1",
            get(async || {
                let names = [("things", "Thing"), ("things/status", "Thing"), ("plains", "Plain")];
                resources("t.io", &names)
            }),
        )
        .route(
            "/apis/t.io/v1/{kind}",
            get(async |State(cluster): State<Shared>, Path(kind): Path<String>| {
                let mut cluster = cluster.lock().unwrap();
                cluster.asked.push(format!("list {kind}"));
                let status =
                    if cluster.status.is_null() { json!({}) } else { cluster.status.clone() };
                let item = |name: &str| {
                    json!({"apiVersion": "t.io/v1", "kind": "Thing", "status": status,
                "metadata": {"name": name, "namespace": "n", "uid": format!("uid-{name}"),
                    "resourceVersion": "1"}})
                };
                answer(200, &json!({"metadata": {}, "items": [item("a"), item("b")]}))
            }),
        )
        .route("/apis/t.io/v1/namespaces/n/{kind}/{name}", patch(patched))
        .route("/apis/t.io/v1/namespaces/n/{kind}/{name}/status", patch(patched))
        .with_state(cluster)
}

fn policy_over(resources: &[&str]) -> String {
    format!(
        "{{apiVersion: statusgate.dev/v1alpha1, kind: StatusPolicy, metadata: {{name: p}}, spec: {{convention: \
         appcat, resources: [{{apiGroups: [t.io], apiVersions: [v1], resources: [{}]}}]}}}}",
        resources.join(", ")
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stored_disagreement_is_repaired_only_on_request() {
    let time = "2024-06-01T10:00:00Z";
    let ready = json!({"type": "Ready", "status": "False", "reason": "No", "message": "", "lastTransitionTime": time});
    let status = json!({"phase": "Ready", "lastTransitionTime": time, "conditions": [ready]});
    let cluster = || Cluster { status: status.clone(), ..Cluster::default() };
    let server = Server::start(cluster()).await;
    let run = async |more: &[&str]| server.run("backfill", &["things"], more).await;
    let ended = run(&[]).await;
    assert_eq!(ended.code, Some(0), "{}", ended.text());
    assert_eq!(server.replace(cluster()), ["list things"]);
    // A dry run shows the phases and writes nothing.
    let change = "things.t.io n/a: set to \"Provisioning\": phase Ready disagrees: condition Ready is False\n";
    let ended = run(&["--repair", "--dry-run"]).await;
    assert_eq!(ended.code, Some(0), "{}", ended.text());
    assert!(ended.out.contains(change), "{}", ended.out);
    let diff = "  - /status/phase: \"Ready\"\n  + /status/phase: \"Provisioning\"\n";
    assert!(ended.out.contains(diff), "{}", ended.out);
    assert!(ended.out.contains("TO REPAIR"), "{}", ended.out);
    assert_eq!(server.replace(cluster()), ["list things"]);
    let ended = run(&["--repair", "--concurrency=1"]).await;
    assert_eq!(ended.code, Some(0), "{}", ended.text());
    assert!(ended.out.contains(&format!("repaired {change}")), "{}", ended.out);
    assert!(ended.out.contains(diff) && ended.out.contains("REPAIRED"), "{}", ended.out);
    assert_eq!(server.replace(cluster()), ["list things", "patch things a", "patch things b"]);
}

const PROBLEM: &str =
    "problem: plains.t.io: the resource has no status subresource, but policy p has";

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_with_a_wrong_subresource_is_reported_if_no_kind_remains() {
    let server = Server::start(Cluster::default()).await;
    let resource: &[&str] = &["--resource=plains"];
    let both: &[&str] = &["--resource=plains", "--kind=plain"];
    for command in ["backfill", "audit"] {
        for (resources, more) in [
            (&["plains"][..], &[][..]),
            (&["plains"], resource),
            (&["things", "plains"], resource),
            (&["things", "plains"], &["--kind=Plain"]),
            (&["things", "plains"], both),
            (&["plains"], &["--namespace=n"]),
        ] {
            let ended = server.run(command, resources, more).await;
            let text = ended.text();
            assert_eq!(ended.code, Some(1), "{command} {resources:?} {more:?}: {text}");
            assert_eq!(text.matches(PROBLEM).count(), 1, "{text}");
            assert!(text.contains("no resources are left to judge"), "{text}");
            assert!(!text.contains("serves none"), "{text}");
        }
        assert_eq!(server.replace(Cluster::default()), [""; 0]);
        // Kinds that exist are judged too. A typo in a name is still an error.
        let ended = server.run(command, &["things", "plains"], &[]).await;
        assert_eq!(ended.code, Some(1), "{}", ended.text());
        assert_eq!(ended.text().matches(PROBLEM).count(), 1, "{}", ended.text());
        assert!(!server.replace(Cluster::default()).is_empty());
        let ended = server.run(command, &["things", "plains"], &["--resource=stones"]).await;
        assert_eq!(ended.code, Some(2), "{}", ended.text());
        let line = "no policy selects stones in this cluster; selected are things.t.io";
        assert!(ended.text().contains(line), "{}", ended.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_fails_on_a_health() {
    let server =
        Server::start(Cluster { status: json!({"phase": "Failed"}), ..Cluster::default() }).await;
    let health = async |words: &[&str]| server.run("audit", &["things"], words).await.code;
    assert_eq!(health(&[]).await, Some(0));
    assert_eq!(health(&["--fail-on-health=failed"]).await, Some(1));
    assert_eq!(health(&["--fail-on-health=inProgress", "--fail-on-health=unknown"]).await, Some(0));
    assert_eq!(health(&["--fail-on-health=unknown", "--fail-on-health=Failed"]).await, Some(1));
    assert_eq!(health(&["--fail-on-health=broken"]).await, Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_without_the_selected_kinds_is_an_error() {
    let server = Server::start(Cluster::default()).await;
    for command in ["backfill", "audit"] {
        let ended = server.run(command, &["stones"], &[]).await;
        assert_eq!(ended.code, Some(2), "{}", ended.text());
        let line = "this cluster serves none of the resources that the policies name";
        assert!(ended.text().contains(line), "{}", ended.text());
    }
}
