//! `statusgate backfill` against an API server that fails in ways which a real one cannot be made
//! to: tokens that expire, overload, answers that get lost, webhooks that refuse one object.

#![expect(clippy::unwrap_used, reason = "tests, and their helpers too")]

use std::collections::{HashMap, HashSet};
use std::fs;
use std::net::SocketAddr;
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, patch};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

const OBJECTS: usize = 1200;

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Nothing,
    /// Nothing, and who asks for all objects at once is answered. Otherwise the watch cache does not keep up.
    Cache,
    /// The same, but the answer is larger than the first objects made one think.
    Flood,
    /// Every page's token has expired; the refusal brings a new one.
    ExpiredTokens,
    /// Once, the second page's token has expired, and there is no new one.
    ExpiredList,
    /// Every object's first write meets this.
    FirstWrite(u16),
    /// Every hundredth object's first write is stored and its answer is lost.
    LostAnswers,
    /// Every hundredth object is refused by a webhook.
    Webhook,
    /// Every hundredth object is deleted before it is written.
    Deleted,
    /// Pages cannot be listed at first.
    FirstList(u16),
    /// Once, the second page is forbidden, and each object of the second half that is read again.
    Forbidden,
    /// The server of another group of the policies does not answer.
    GroupOut,
    /// Nothing can ever be listed.
    Lists(u16),
    /// One of two namespaces takes no reports.
    Reports,
    /// No write is ever let in.
    Writes(u16),
}

/// An API server with one kind.
struct Fake {
    fault: Mutex<Fault>,
    state: Mutex<Stored>,
}

#[derive(Clone, Default)]
struct Stored {
    /// How often each object was changed.
    versions: HashMap<String, u32>,
    /// How often each object was tried.
    tries: HashMap<String, u32>,
    /// Objects that were read alone.
    reads: HashSet<String>,
    /// Namespaces whose report was written.
    reports: Vec<String>,
    /// How many objects each list was to have; 0 for all of them at once.
    limits: Vec<usize>,
}

impl Fake {
    fn fault(&self) -> Fault {
        *self.fault.lock().unwrap()
    }

    fn namespace(&self, number: usize) -> &'static str {
        if self.fault() == Fault::Reports && number.is_multiple_of(2) { "m" } else { "n" }
    }

    fn object(&self, number: usize) -> Value {
        let name = format!("db-{number:04}");
        let version = self.state.lock().unwrap().versions.get(&name).copied().unwrap_or_default();
        let status = if version == 0 { json!({}) } else { json!({"phase": "Unknown"}) };
        json!({
            "apiVersion": "vshn.appcat.vshn.io/v1", "kind": "VSHNRedis",
            "metadata": {"name": name, "namespace": self.namespace(number), "uid": format!("uid-{name}"),
                "resourceVersion": (version + 1).to_string()},
            "status": status,
        })
    }

    fn get(&self, name: &str) -> Response {
        let mut state = self.state.lock().unwrap();
        // Long after the first ones: their answers have been read.
        let read = state.reads.len();
        if state.reads.insert(name.to_owned())
            && read > OBJECTS / 2
            && self.fault() == Fault::Forbidden
        {
            return said(403, "roles are not known yet", "");
        }
        drop(state);
        answer(200, &self.object(name.trim_start_matches("db-").parse().unwrap()))
    }

    /// A page; its token is the number of its first object, with an `x` for one that has expired.
    fn list(&self, query: &HashMap<String, String>) -> Response {
        // Only a list from the cache, as it is since an object was written, has no limit.
        let all = query.get("resourceVersion").is_some_and(|version| version == "2");
        assert_ne!(all, query.contains_key("limit"), "{query:?}");
        let limit = query.get("limit").map_or(0, |limit| limit.parse().unwrap());
        let mut state = self.state.lock().unwrap();
        state.limits.push(limit);
        let lists = state.limits.len();
        drop(state);
        let token = query.get("continue").map_or("", String::as_str);
        let start: usize = token.trim_end_matches('x').parse().unwrap_or_default();
        let fault = self.fault();
        if all && fault == Fault::Flood {
            // Whoever read this would take it for a list without objects.
            let filling = "x".repeat(25 << 20);
            return answer(200, &json!({"kind": filling, "metadata": {}, "items": []}));
        }
        if all && fault != Fault::Cache {
            return said(504, "Too large resource version", "");
        }
        match fault {
            Fault::FirstList(code) if lists % 2 == 1 => return said(code, "not now", ""),
            Fault::ExpiredTokens if token.ends_with('x') => {
                let mut body = status(410, "expired", "");
                body["metadata"] = json!({"continue": start.to_string()});
                return answer(410, &body);
            }
            Fault::Lists(code) => return said(code, "not now", ""),
            Fault::Forbidden if start > 0 && lists == 4 => {
                return said(403, "roles are not known yet", "");
            }
            Fault::ExpiredList if token.ends_with('x') => return said(410, "expired", ""),
            _ => {}
        }
        let end = if all { OBJECTS } else { (start + limit).min(OBJECTS) };
        let mut token = if end < OBJECTS { end.to_string() } else { String::new() };
        let expires = match fault {
            Fault::ExpiredTokens => true,
            // Lists 1 is the count, 2 the first page.
            Fault::ExpiredList => lists == 2,
            _ => false,
        };
        if expires && limit > 1 && !token.is_empty() {
            token.push('x');
        }
        let items: Vec<Value> = (start..end).map(|number| self.object(number)).collect();
        let mut metadata = json!({"continue": token});
        // With a selector the server would have to look at all that follow.
        if !query.contains_key("labelSelector") {
            metadata["remainingItemCount"] = (OBJECTS - end).into();
        }
        answer(200, &json!({"kind": "VSHNRedisList", "metadata": metadata, "items": items}))
    }

    fn report(&self, namespace: String) -> Response {
        if namespace == "m" {
            return said(403, "admission webhook \"other\" denied the request: no reports", "");
        }
        self.state.lock().unwrap().reports.push(namespace);
        answer(200, &json!({}))
    }

    fn patch(&self, name: &str, body: &[u8]) -> Response {
        let operations: Vec<Value> = serde_json::from_slice(body).unwrap();
        assert_eq!(operations[0]["path"], "/metadata/uid");
        assert_eq!(operations[1]["path"], "/metadata/resourceVersion");
        let mut state = self.state.lock().unwrap();
        let tries = state.tries.entry(name.to_owned()).or_default();
        *tries += 1;
        let first = *tries == 1;
        let hundredth = name.ends_with("00");
        let fault = self.fault();
        match fault {
            Fault::Forbidden if first => return said(409, "changed", ""),
            Fault::FirstWrite(code) if first => return said(code, "not now", ""),
            Fault::Writes(code) => return said(code, "no", ""),
            Fault::Webhook if hundredth => {
                return said(403, "admission webhook \"other\" denied the request: no", "");
            }
            Fault::Deleted if hundredth => return said(404, "not found", name),
            _ => {}
        }
        let version = state.versions.entry(name.to_owned()).or_default();
        let expected = Value::from((*version + 1).to_string());
        if operations[1]["value"] != expected {
            return said(422, "the server rejected our request due to an error in our request", "");
        }
        *version += 1;
        if fault == Fault::LostAnswers && hundredth && first {
            return said(504, "the gateway gave up", "");
        }
        let metadata = json!({"name": name, "resourceVersion": (*version + 1).to_string()});
        answer(200, &json!({"kind": "PartialObjectMetadata", "metadata": metadata}))
    }
}

fn query(uri: &Uri) -> HashMap<String, String> {
    let pairs = uri.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn status(code: u16, message: &str, name: &str) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "details": {"name": name}, "code": code})
}

fn said(code: u16, message: &str, name: &str) -> Response {
    answer(code, &status(code, message, name))
}

fn answer(code: u16, body: &Value) -> Response {
    (StatusCode::from_u16(code).unwrap(), body.to_string()).into_response()
}

/// A fake that listens.
struct Server {
    fake: Arc<Fake>,
    address: SocketAddr,
    served: JoinHandle<std::io::Result<()>>,
}

impl Server {
    async fn start(fault: Fault) -> Self {
        let fake = Arc::new(Fake { fault: Mutex::new(fault), state: Mutex::default() });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let routes = Router::new()
            .route("/version", get(|| async { answer(200, &json!({"gitVersion": "v0.0.0"})) }))
            .route("/apis", get(|State(fake): State<Arc<Fake>>| async move {
                let group = |name: &str| {
                    let version = json!({"groupVersion": format!("{name}/v1"), "version": "v1"});
                    json!({"name": name, "versions": [version], "preferredVersion": version})
                };
                let mut groups = vec![group("vshn.appcat.vshn.io")];
                if fake.fault() == Fault::GroupOut {
                    groups.push(group("test.statusgate.dev"));
                }
                answer(200, &json!({"kind": "APIGroupList", "groups": groups}))
            }))
            .route("/apis/vshn.appcat.vshn.io/v1", get(|| async {
                let resource = |name: &str| json!({"name": name, "singularName": "", "kind": "VSHNRedis",
                    "namespaced": true, "verbs": ["get", "list", "patch"]});
                let resources = [resource("vshnredis"), resource("vshnredis/status")];
                answer(200, &json!({"kind": "APIResourceList", "groupVersion": "vshn.appcat.vshn.io/v1",
                    "resources": resources}))
            }))
            .route(
                "/apis/vshn.appcat.vshn.io/v1/vshnredis",
                get(|State(fake): State<Arc<Fake>>, uri: Uri| async move { fake.list(&query(&uri)) }),
            )
            .route(
                "/apis/vshn.appcat.vshn.io/v1/namespaces/n/vshnredis/{name}",
                get(|State(fake): State<Arc<Fake>>, Path(name): Path<String>| async move {
                    fake.get(&name)
                }),
            )
            .route(
                "/apis/vshn.appcat.vshn.io/v1/namespaces/n/vshnredis/{name}/status",
                patch(|State(fake): State<Arc<Fake>>, Path(name): Path<String>, body: Bytes| async move {
                    fake.patch(&name, &body)
                }),
            )
            .route("/apis/wgpolicyk8s.io/v1alpha2", get(|| async { answer(200, &json!({"resources": []})) }))
            .route("/apis/wgpolicyk8s.io/v1alpha2/policyreports", get(|| async { answer(200, &json!({"items": []})) }))
            .route("/apis/wgpolicyk8s.io/v1alpha2/clusterpolicyreports", get(|| async { answer(200, &json!({"items": []})) }))
            .route(
                "/apis/wgpolicyk8s.io/v1alpha2/namespaces/{namespace}/policyreports/statusgate",
                patch(|State(fake): State<Arc<Fake>>, Path(namespace): Path<String>| async move {
                    fake.report(namespace)
                }),
            )
            // The definition: this account may not read it.
            .fallback(|_: Method, _: Uri| async { said(403, "forbidden", "") })
            .with_state(Arc::clone(&fake));
        let served = tokio::spawn(axum::serve(listener, routes).into_future());
        Self { fake, address, served }
    }

    /// What goes wrong from here on.
    fn set_fault(&self, fault: Fault) {
        *self.fake.fault.lock().unwrap() = fault;
    }

    /// What it has seen so far.
    fn stored(&self) -> Stored {
        self.fake.state.lock().unwrap().clone()
    }

    /// The command, ready to be started, against this server.
    fn command(&self, folder: &TempDir, command: &str) -> Command {
        let address = self.address;
        let kubeconfig = folder.path().join("kubeconfig");
        let config = format!(
            "{{apiVersion: v1, kind: Config, current-context: c, clusters: [{{name: c, cluster: {{server: \
             \"http://{address}\"}}}}], contexts: [{{name: c, context: {{cluster: c, user: u}}}}], \
             users: [{{name: u, user: {{}}}}]}}"
        );
        fs::write(&kubeconfig, config).unwrap();
        let mut process = Command::new(env!("CARGO_BIN_EXE_statusgate"));
        process.args([command, "--kubeconfig"]).arg(kubeconfig);
        process
    }

    /// Runs a backfill.
    async fn backfill(&self, arguments: &[&str]) -> Output {
        let folder = tempfile::tempdir().unwrap();
        let mut process = self.command(&folder, "backfill");
        process.arg("--concurrency=64").args(arguments);
        tokio::task::spawn_blocking(move || process.output().unwrap()).await.unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.served.abort();
    }
}

/// Runs a backfill against a server with this fault; tells how it ended and what the server has
/// seen.
async fn backfill(fault: Fault) -> (Output, Stored) {
    let server = Server::start(fault).await;
    (server.backfill(&[]).await, server.stored())
}

/// The numbers of the only row of the sums.
fn sums(output: &Output) -> Vec<usize> {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let row = text.lines().last().unwrap_or_default().to_owned();
    row.split_whitespace().skip(2).map(|number| number.parse().unwrap()).collect()
}

fn told(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn every_object_is_written_once_whatever_becomes_of_the_list_or_of_first_tries() {
    for fault in [
        Fault::Nothing,
        Fault::Cache,
        Fault::Flood,
        Fault::ExpiredTokens,
        Fault::ExpiredList,
        Fault::FirstList(503),
        Fault::FirstList(429),
        Fault::FirstWrite(429),
        Fault::FirstWrite(500),
        Fault::FirstWrite(503),
        Fault::LostAnswers,
        Fault::Forbidden,
    ] {
        let (output, Stored { versions, .. }) = backfill(fault).await;
        assert_eq!(output.status.code(), Some(0), "{fault:?}: {}", told(&output));
        assert_eq!(versions.len(), OBJECTS, "{fault:?}");
        assert!(versions.values().all(|version| *version == 1), "{fault:?}");
        let sums = sums(&output);
        assert_eq!((sums[0], sums[1]), (OBJECTS, 0), "{fault:?}: {}", told(&output));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_is_refused_is_a_finding_and_the_others_are_written() {
    let (output, Stored { versions, .. }) = backfill(Fault::Webhook).await;
    assert_eq!(output.status.code(), Some(1), "{}", told(&output));
    assert_eq!(versions.len(), OBJECTS - 12);
    assert_eq!(sums(&output), [OBJECTS - 12, 0, 0, 0, 0, 12, 0]);
    let text = told(&output);
    let line = "rejected vshnredis.vshn.appcat.vshn.io n/db-0000: admission webhook \"other\" \
                denied the request: no\n";
    assert!(text.contains(line), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_is_gone_is_done_with() {
    let (output, _) = backfill(Fault::Deleted).await;
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    assert_eq!(sums(&output), [OBJECTS - 12, 0, 0, 12, 0, 0, 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn writing_begins_with_a_small_page_and_the_next_ones_grow() {
    let server = Server::start(Fault::Nothing).await;
    let (output, stored) = (server.backfill(&["--dry-run"]).await, server.stored());
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    // The first one counts.
    assert_eq!(stored.limits, [1, 50, 100, 200, 400, 500]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_little_comes_at_once_after_a_write_or_page_by_page_where_the_cache_does_not_answer()
 {
    let (output, stored) = backfill(Fault::Cache).await;
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    assert_eq!(stored.limits, [1, 50, 0]);
    let (output, stored) = backfill(Fault::Nothing).await;
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    assert_eq!(stored.limits, [1, 50, 0, 100, 200, 400, 500]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cache_is_not_asked_where_nothing_was_written() {
    let server = Server::start(Fault::Cache).await;
    server.backfill(&[]).await;
    let before = server.stored().limits.len();
    let output = server.backfill(&[]).await;
    assert_eq!(sums(&output), [0, OBJECTS, 0, 0, 0, 0, 0], "{}", told(&output));
    assert_eq!(server.stored().limits[before..], [1, 50, 100, 200, 400, 500]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_selector_selects_is_not_counted_for_the_server_would_not_tell() {
    let server = Server::start(Fault::Nothing).await;
    let (output, stored) = (server.backfill(&["--selector=a=b"]).await, server.stored());
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    assert_eq!(stored.limits, [50, 100, 200, 400, 500]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_refused_is_tried_again_by_the_run_that_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let resume = ["--resume", journal.to_str().unwrap()];
    let server = Server::start(Fault::Webhook).await;
    let first = server.backfill(&resume).await;
    assert_eq!(first.status.code(), Some(1), "{}", told(&first));
    server.set_fault(Fault::Nothing);
    let second = server.backfill(&resume).await;
    assert_eq!(second.status.code(), Some(0), "{}", told(&second));
    assert_eq!(sums(&second), [12, 0, OBJECTS - 12, 0, 0, 0, 0], "{}", told(&second));
    assert_eq!(server.stored().versions.len(), OBJECTS);
    // And a kind with which nothing is left to do is not listed again, which is said.
    let third = server.backfill(&resume).await;
    assert_eq!(third.status.code(), Some(0), "{}", told(&third));
    assert_eq!(sums(&third), [0, 0, OBJECTS, 0, 0, 0, 0], "{}", told(&third));
    let line = "skipped vshnredis.vshn.appcat.vshn.io: the journal";
    assert!(told(&third).contains(line), "{}", told(&third));
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_hopeless_end_nothing_that_waits_is_sent() {
    let server = Server::start(Fault::Writes(401)).await;
    let folder = tempfile::tempdir().unwrap();
    let mut process = server.command(&folder, "backfill");
    process.arg("--concurrency=1");
    let output = tokio::task::spawn_blocking(move || process.output().unwrap()).await.unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", told(&output));
    let line = "cannot patch vshnredis.vshn.appcat.vshn.io/status: not logged in: no";
    assert!(told(&output).contains(line), "{}", told(&output));
    // The one that waits behind it would be as patient again with a server that is out.
    assert_eq!(server.stored().tries.len(), 1);
}

const POLICIES: &str = "
{apiVersion: statusgate.dev/v1alpha1, kind: StatusPolicy, metadata: {name: here}, spec: {convention: appcat,
  resources: [{apiGroups: [vshn.appcat.vshn.io], apiVersions: [v1], resources: [vshnredis]}]}}
---
{apiVersion: statusgate.dev/v1alpha1, kind: StatusPolicy, metadata: {name: there}, spec: {convention: appcat,
  resources: [{apiGroups: [test.statusgate.dev], apiVersions: [v1], resources: [claims]}]}}
";

#[tokio::test(flavor = "multi_thread")]
async fn a_group_that_could_not_be_asked_is_no_clean_end() {
    let folder = tempfile::tempdir().unwrap();
    let policies = folder.path().join("policies.yaml");
    fs::write(&policies, POLICIES).unwrap();
    let server = Server::start(Fault::GroupOut).await;
    let output = server.backfill(&["--policies", policies.to_str().unwrap()]).await;
    assert_eq!(output.status.code(), Some(2), "{}", told(&output));
    assert_eq!(server.stored().versions.len(), OBJECTS, "the others are written");
    let text = told(&output);
    assert!(text.contains("skipped test.statusgate.dev/v1: its server does not respond"), "{text}");
    assert!(!text.contains("does not serve"), "nobody knows: {text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_ends_it_before_it_has_begun() {
    let server = Server::start(Fault::Lists(503)).await;
    let folder = tempfile::tempdir().unwrap();
    let mut process = server.command(&folder, "backfill");
    let child = process.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while server.stored().limits.len() < 3 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let sent = Command::new("kill").args(["-TERM", "--", &child.id().to_string()]).status();
    assert!(sent.unwrap().success());
    let output = tokio::task::spawn_blocking(|| child.wait_with_output().unwrap()).await.unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", told(&output));
    assert!(told(&output).contains("stopped before the end"), "{}", told(&output));
    // The last of some thirty tries comes after two minutes.
    assert!(server.stored().limits.len() < 10, "{:?}", server.stored().limits);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_begins_with_a_small_page_too_for_objects_may_be_large() {
    let server = Server::start(Fault::Nothing).await;
    let folder = tempfile::tempdir().unwrap();
    let mut process = server.command(&folder, "audit");
    let output = tokio::task::spawn_blocking(move || process.output().unwrap()).await.unwrap();
    assert_ne!(output.status.code(), Some(2), "{}", told(&output));
    assert_eq!(server.stored().limits, [1, 50, 100, 200, 400, 500]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_that_takes_no_report_does_not_keep_the_others_from_theirs() {
    let server = Server::start(Fault::Reports).await;
    let folder = tempfile::tempdir().unwrap();
    let mut process = server.command(&folder, "audit");
    process.arg("--write");
    let output = tokio::task::spawn_blocking(move || process.output().unwrap()).await.unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", told(&output));
    assert_eq!(server.stored().reports, ["n"]);
    let text = told(&output);
    assert!(text.contains("1 reports written, 0 deleted"), "{text}");
    assert!(text.contains("cannot apply the PolicyReport m/statusgate: not allowed: "), "{text}");
}
