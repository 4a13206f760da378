//! `statusgate backfill` before its first object: the journal, the identity of the cluster, and the kinds
//! that the policies select.

#![expect(clippy::unwrap_used, reason = "tests, and their helpers too")]

use std::fs;
use std::path::{Path as FilePath, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, patch};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;

/// An API server with two kinds: `things`, and `plains` without a status subresource.
#[derive(Clone, Default)]
struct Cluster {
    /// The uid of the namespace kube-system; `None` if it cannot be read.
    uid: Option<&'static str>,
    /// The uid of both CRDs; `None` if they cannot be read.
    definition: Option<&'static str>,
    /// The requests for objects: `list things`, `patch plains b`.
    asked: Vec<String>,
}

type Shared = Arc<Mutex<Cluster>>;

/// A running fake server, and a folder for files.
struct Server {
    cluster: Shared,
    folder: TempDir,
}

impl Server {
    async fn start(cluster: Cluster) -> Self {
        let cluster = Arc::new(Mutex::new(cluster));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(axum::serve(listener, routes(Arc::clone(&cluster))).into_future());
        let folder = tempfile::tempdir().unwrap();
        let config = format!(
            "{{apiVersion: v1, kind: Config, current-context: c, clusters: [{{name: c, cluster: {{server: \
             \"http://{address}\"}}}}], contexts: [{{name: c, context: {{cluster: c, user: u}}}}], \
             users: [{{name: u, user: {{}}}}]}}"
        );
        fs::write(folder.path().join("kubeconfig"), config).unwrap();
        Self { cluster, folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Makes it another cluster; returns the requests to the previous one, with equal lists joined.
    fn replace(&self, cluster: Cluster) -> Vec<String> {
        let mut asked = std::mem::replace(&mut *self.cluster.lock().unwrap(), cluster).asked;
        asked.dedup();
        asked
    }

    /// Runs a command with a policy over these resources.
    async fn run(&self, command: &str, resources: &[&str], more: &[&str]) -> Output {
        let policy = self.path("policy.yaml");
        fs::write(&policy, policy_over(resources)).unwrap();
        let mut process = Command::new(env!("CARGO_BIN_EXE_statusgate"));
        process.args([command, "--kubeconfig"]).arg(self.path("kubeconfig"));
        process.arg("--policies").arg(policy).args(more);
        tokio::task::spawn_blocking(move || process.output().unwrap()).await.unwrap()
    }

    async fn resume(&self, journal: &FilePath) -> Output {
        let more = ["--concurrency=1", "--resume", journal.to_str().unwrap()];
        self.run("backfill", &["things"], &more).await
    }
}

fn routes(cluster: Shared) -> Router {
    let patched = async |State(cluster): State<Shared>,
                         Path((kind, name)): Path<(String, String)>| {
        cluster.lock().unwrap().asked.push(format!("patch {kind} {name}"));
        let metadata = json!({"name": name, "resourceVersion": "2"});
        answer(&json!({"kind": "PartialObjectMetadata", "metadata": metadata}))
    };
    Router::new()
        .route("/version", get(async || answer(&json!({"gitVersion": "v0.0.0"}))))
        .route("/apis", get(async || {
            let version = json!({"groupVersion": "t.io/v1", "version": "v1"});
            let group = json!({"name": "t.io", "versions": [version], "preferredVersion": version});
            answer(&json!({"kind": "APIGroupList", "groups": [group]}))
        }))
        .route("/apis/t.io/v1", get(async || {
            let resource = |name: &str, kind: &str| json!({"name": name, "singularName": "", "kind": kind,
                "namespaced": true, "verbs": ["get", "list", "patch"]});
            let resources = [resource("things", "Thing"), resource("things/status", "Thing"),
                resource("plains", "Plain")];
            answer(&json!({"kind": "APIResourceList", "groupVersion": "t.io/v1", "resources": resources}))
        }))
        .route("/api/v1/namespaces/kube-system", get(async |State(cluster): State<Shared>| {
            let uid = cluster.lock().unwrap().uid;
            uid.map_or_else(forbidden, |uid| answer(&json!({"metadata": {"name": "kube-system", "uid": uid}})))
        }))
        .route(
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}",
            get(async |State(cluster): State<Shared>| {
                let uid = cluster.lock().unwrap().definition;
                let spec = json!({"versions": [{"name": "v1"}]});
                uid.map_or_else(forbidden, |uid| answer(&json!({"metadata": {"uid": uid}, "spec": spec})))
            }),
        )
        .route("/apis/t.io/v1/{kind}", get(async |State(cluster): State<Shared>, Path(kind): Path<String>| {
            cluster.lock().unwrap().asked.push(format!("list {kind}"));
            let item = |name: &str| json!({"apiVersion": "t.io/v1", "kind": "Thing", "status": {},
                "metadata": {"name": name, "namespace": "n", "uid": format!("uid-{name}"),
                    "resourceVersion": "1"}});
            answer(&json!({"metadata": {}, "items": [item("a"), item("b")]}))
        }))
        .route("/apis/t.io/v1/namespaces/n/{kind}/{name}", patch(patched))
        .route("/apis/t.io/v1/namespaces/n/{kind}/{name}/status", patch(patched))
        .with_state(cluster)
}

fn answer(body: &Value) -> Response {
    body.to_string().into_response()
}

fn forbidden() -> Response {
    let status = json!({"kind": "Status", "message": "forbidden", "code": 403});
    (StatusCode::FORBIDDEN, status.to_string()).into_response()
}

fn policy_over(resources: &[&str]) -> String {
    format!(
        "{{apiVersion: statusgate.dev/v1alpha1, kind: StatusPolicy, metadata: {{name: p}}, spec: {{convention: \
         appcat, resources: [{{apiGroups: [t.io], apiVersions: [v1], resources: [{}]}}]}}}}",
        resources.join(", ")
    )
}

fn told(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

const WRITTEN: [&str; 3] = ["list things", "patch things a", "patch things b"];

#[tokio::test(flavor = "multi_thread")]
async fn a_new_cluster_at_the_same_address_is_another_cluster() {
    let cluster = |uid| Cluster { uid, ..Cluster::default() };
    let server = Server::start(cluster(Some("first"))).await;
    let journal = server.path("journal");
    let ended = server.resume(&journal).await;
    assert_eq!(ended.status.code(), Some(0), "{}", told(&ended));
    assert_eq!(server.replace(cluster(Some("second"))), WRITTEN);
    let ended = server.resume(&journal).await;
    assert_eq!(ended.status.code(), Some(2), "{}", told(&ended));
    let line = "belongs to a run against a cluster with the kube-system first; the cluster at this \
                address now has the kube-system second";
    assert!(told(&ended).contains(line), "{}", told(&ended));
    // This may be the first cluster or another one.
    assert_eq!(server.replace(cluster(None)), [""; 0]);
    let ended = server.resume(&journal).await;
    assert_eq!(ended.status.code(), Some(2), "{}", told(&ended));
    assert!(told(&ended).contains("now has no identifier"), "{}", told(&ended));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_finished_kind_is_skipped_until_its_crd_is_installed_again() {
    let cluster =
        |definition| Cluster { uid: Some("u"), definition: Some(definition), ..Cluster::default() };
    let server = Server::start(cluster("first")).await;
    let journal = server.path("journal");
    let ended = server.resume(&journal).await;
    assert_eq!(ended.status.code(), Some(0), "{}", told(&ended));
    assert_eq!(server.replace(cluster("first")), WRITTEN);
    let ended = server.resume(&journal).await;
    assert_eq!(ended.status.code(), Some(0), "{}", told(&ended));
    assert!(told(&ended).contains("the journal lists it as finished"), "{}", told(&ended));
    assert_eq!(server.replace(cluster("second")), [""; 0], "progress is over what is left");
    let ended = server.resume(&journal).await;
    assert_eq!(ended.status.code(), Some(0), "{}", told(&ended));
    assert_eq!(server.replace(cluster("second")), WRITTEN);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_journal_that_is_not_a_file_is_an_error() {
    let server = Server::start(Cluster::default()).await;
    let pipe = server.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for (path, kind) in [(&*pipe, "a pipe"), (FilePath::new("/dev/full"), "a device")] {
        let ended = server.resume(path).await;
        assert_eq!(ended.status.code(), Some(2), "{}", told(&ended));
        let line = format!("{} is {kind}: a journal must be a regular file", path.display());
        assert!(told(&ended).contains(&line), "{}", told(&ended));
    }
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
            let text = told(&ended);
            assert_eq!(ended.status.code(), Some(1), "{command} {resources:?} {more:?}: {text}");
            assert_eq!(text.matches(PROBLEM).count(), 1, "{text}");
            assert!(text.contains("no resources are left to judge"), "{text}");
            assert!(!text.contains("serves none"), "{text}");
        }
        assert_eq!(server.replace(Cluster::default()), [""; 0]);
        // Kinds that exist are judged too. A typo in a name is still an error.
        let ended = server.run(command, &["things", "plains"], &[]).await;
        assert_eq!(ended.status.code(), Some(1), "{}", told(&ended));
        assert_eq!(told(&ended).matches(PROBLEM).count(), 1, "{}", told(&ended));
        assert!(!server.replace(Cluster::default()).is_empty());
        let ended = server.run(command, &["things", "plains"], &["--resource=stones"]).await;
        assert_eq!(ended.status.code(), Some(2), "{}", told(&ended));
        let line = "no policy selects stones in this cluster; selected are things.t.io";
        assert!(told(&ended).contains(line), "{}", told(&ended));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_without_the_selected_kinds_is_an_error() {
    let server = Server::start(Cluster::default()).await;
    for command in ["backfill", "audit"] {
        let ended = server.run(command, &["stones"], &[]).await;
        assert_eq!(ended.status.code(), Some(2), "{}", told(&ended));
        let line = "this cluster serves none of the resources that the policies name";
        assert!(told(&ended).contains(line), "{}", told(&ended));
    }
}
