//! `statusgate backfill` before its first object: the journal, the identity of the cluster, and the kinds
//! that the policies select.

use std::fs;
use std::path::{Path as FilePath, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Path, State};
use axum::response::Response;
use axum::routing::{get, patch};
use serde_json::{Value, json};

use crate::api::{Api, answer, failure, groups, resources};
use crate::command::Ended;

/// An API server with two kinds: `things`, and `plains` without a status subresource.
#[derive(Clone, Default)]
struct Cluster {
    /// The uid of the namespace kube-system; `None` if it cannot be read.
    uid: Option<&'static str>,
    /// The uid of both CRDs; `None` if they cannot be read.
    definition: Option<&'static str>,
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

    fn path(&self, name: &str) -> PathBuf {
        self.api.path(name)
    }

    /// Makes it another cluster; returns the requests to the previous one, with equal lists joined.
    fn replace(&self, cluster: Cluster) -> Vec<String> {
        let mut asked = std::mem::replace(&mut *self.cluster.lock().unwrap(), cluster).asked;
        asked.dedup();
        asked
    }

    /// Runs a command with a policy over these resources.
    async fn run(&self, command: &str, resources: &[&str], more: &[&str]) -> Ended {
        let policy = self.path("policy.yaml");
        fs::write(&policy, policy_over(resources)).unwrap();
        let policies = ["--policies", policy.to_str().unwrap()];
        self.api.run(command, &[&policies, more].concat()).await
    }

    /// Resumes a run that cannot write files of more bytes.
    async fn resume_within(&self, bytes: usize, journal: &FilePath) -> Ended {
        let policy = self.path("policy.yaml");
        let run = self.api.command("backfill");
        let mut limited = Command::new("bash");
        // Without the signal, a write above the limit is an error, as on a full disk.
        limited.args(["-c", "trap '' XFSZ; exec prlimit --fsize=\"$0\" \"$@\""]);
        limited.arg(bytes.to_string()).arg(run.get_program()).args(run.get_args());
        limited.args(["--policies", policy.to_str().unwrap(), "--concurrency=1", "--resume"]);
        limited.arg(journal);
        let output = tokio::task::spawn_blocking(move || limited.output().unwrap()).await;
        Ended::of(&output.unwrap())
    }

    async fn resume(&self, journal: &FilePath) -> Ended {
        let more = ["--concurrency=1", "--resume", journal.to_str().unwrap()];
        self.run("backfill", &["things"], &more).await
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
            "/api/v1/namespaces/kube-system",
            get(async |State(cluster): State<Shared>| {
                let uid = cluster.lock().unwrap().uid;
                uid.map_or_else(forbidden, |uid| {
                    answer(200, &json!({"metadata": {"name": "kube-system", "uid": uid}}))
                })
            }),
        )
        .route(
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}",
            get(async |State(cluster): State<Shared>| {
                let uid = cluster.lock().unwrap().definition;
                let spec = json!({"versions": [{"name": "v1"}]});
                uid.map_or_else(forbidden, |uid| {
                    answer(200, &json!({"metadata": {"uid": uid}, "spec": spec}))
                })
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

fn forbidden() -> Response {
    failure(403, "forbidden", "")
}

fn policy_over(resources: &[&str]) -> String {
    format!(
        "{{apiVersion: statusgate.dev/v1alpha1, kind: StatusPolicy, metadata: {{name: p}}, spec: {{convention: \
         appcat, resources: [{{apiGroups: [t.io], apiVersions: [v1], resources: [{}]}}]}}}}",
        resources.join(", ")
    )
}

const WRITTEN: [&str; 3] = ["list things", "patch things a", "patch things b"];

#[tokio::test(flavor = "multi_thread")]
async fn a_new_cluster_at_the_same_address_is_another_cluster() {
    let cluster = |uid| Cluster { uid, ..Cluster::default() };
    let server = Server::start(cluster(Some("first"))).await;
    let journal = server.path("journal");
    let ended = server.resume(&journal).await;
    assert_eq!(ended.code, Some(0), "{}", ended.text());
    assert_eq!(server.replace(cluster(Some("second"))), WRITTEN);
    let ended = server.resume(&journal).await;
    assert_eq!(ended.code, Some(2), "{}", ended.text());
    let line = "belongs to a run against a cluster with the kube-system first; the cluster at this \
                address now has the kube-system second";
    assert!(ended.text().contains(line), "{}", ended.text());
    // This may be the first cluster or another one.
    assert_eq!(server.replace(cluster(None)), [""; 0]);
    let ended = server.resume(&journal).await;
    assert_eq!(ended.code, Some(2), "{}", ended.text());
    assert!(ended.text().contains("now has no identifier"), "{}", ended.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_finished_kind_is_skipped_until_its_crd_is_installed_again() {
    let cluster =
        |definition| Cluster { uid: Some("u"), definition: Some(definition), ..Cluster::default() };
    let server = Server::start(cluster("first")).await;
    let journal = server.path("journal");
    let ended = server.resume(&journal).await;
    assert_eq!(ended.code, Some(0), "{}", ended.text());
    assert_eq!(server.replace(cluster("first")), WRITTEN);
    let ended = server.resume(&journal).await;
    assert_eq!(ended.code, Some(0), "{}", ended.text());
    assert!(ended.text().contains("the journal lists it as finished"), "{}", ended.text());
    assert_eq!(server.replace(cluster("second")), [""; 0], "progress is over what is left");
    let ended = server.resume(&journal).await;
    assert_eq!(ended.code, Some(0), "{}", ended.text());
    assert_eq!(server.replace(cluster("second")), WRITTEN);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stored_disagreement_is_repaired_only_on_request() {
    let time = "2024-06-01T10:00:00Z";
    let ready = json!({"type": "Ready", "status": "False", "reason": "No", "message": "", "lastTransitionTime": time});
    let status = json!({"phase": "Ready", "lastTransitionTime": time, "conditions": [ready]});
    let (uid, definition) = (Some("u"), Some("d"));
    let cluster = || Cluster { uid, definition, status: status.clone(), ..Cluster::default() };
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
    // A run records its repairs like all writes.
    let journal = server.path("journal");
    let resume = ["--concurrency=1", "--resume", journal.to_str().unwrap()];
    let repair = ["--repair", resume[0], resume[1], resume[2]];
    let ended = run(&repair).await;
    assert_eq!(ended.code, Some(0), "{}", ended.text());
    assert!(ended.out.contains(&format!("repaired {change}")), "{}", ended.out);
    assert!(ended.out.contains(diff) && ended.out.contains("REPAIRED"), "{}", ended.out);
    assert_eq!(server.replace(cluster()), WRITTEN);
    assert_eq!(fs::read_to_string(&journal).unwrap().matches("\npatched ").count(), 2);
    let ended = run(&repair).await;
    assert_eq!(ended.code, Some(0), "{}", ended.text());
    assert!(ended.text().contains("the journal lists it as finished"), "{}", ended.text());
    let ended = run(&resume).await;
    assert_eq!(ended.code, Some(2), "{}", ended.text());
    let line = "belongs to a run over everything, shard 0/1, with --repair; this run is over everything, shard 0/1;";
    assert!(ended.text().contains(line), "{}", ended.text());
    assert_eq!(server.replace(cluster()), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_journal_that_is_not_a_file_is_an_error() {
    let server = Server::start(Cluster::default()).await;
    let pipe = server.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for (path, kind) in [(&*pipe, "a pipe"), (FilePath::new("/dev/full"), "a device")] {
        let ended = server.resume(path).await;
        assert_eq!(ended.code, Some(2), "{}", ended.text());
        let line = format!("{} is {kind}: a journal must be a regular file", path.display());
        assert!(ended.text().contains(&line), "{}", ended.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_a_full_disk_stopped_continues() {
    let server = Server::start(Cluster::default()).await;
    let (whole, journal) = (server.path("whole"), server.path("journal"));
    assert_eq!(server.resume(&whole).await.code, Some(0));
    let whole = fs::read_to_string(whole).unwrap();
    let lines: Vec<usize> = whole.lines().map(|line| line.len() + 1).collect();
    assert_eq!(lines.len(), 4, "{whole}");
    // The disk is full in the middle of the first line, of the line of `a`, and of that of `b`.
    for complete in 0..3 {
        let kept: usize = lines[..complete].iter().sum();
        let ended = server.resume_within(kept + 10, &journal).await;
        assert_eq!(ended.code, Some(2), "{}", ended.text());
        let line = format!("cannot write the journal {}; ", journal.display());
        assert!(ended.text().contains(&line), "{}", ended.text());
        assert!(ended.text().contains("run the same command to continue: "), "{}", ended.text());
        assert_eq!(fs::read_to_string(&journal).unwrap(), whole[..kept]);
    }
    server.replace(Cluster::default());
    let ended = server.resume(&journal).await;
    assert_eq!(ended.code, Some(0), "{}", ended.text());
    assert_eq!(server.replace(Cluster::default()), ["list things", "patch things b"]);
    assert_eq!(fs::read_to_string(&journal).unwrap(), whole);
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
async fn a_cluster_without_the_selected_kinds_is_an_error() {
    let server = Server::start(Cluster::default()).await;
    for command in ["backfill", "audit"] {
        let ended = server.run(command, &["stones"], &[]).await;
        assert_eq!(ended.code, Some(2), "{}", ended.text());
        let line = "this cluster serves none of the resources that the policies name";
        assert!(ended.text().contains(line), "{}", ended.text());
    }
}
