//! `statusgate backfill` against a fake API server that fails: expired tokens, overload, lost answers,
//! webhooks that reject one object.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{Method, Uri};
use axum::response::Response;
use axum::routing::{get, patch};
use serde_json::{Value, json};

use crate::api::{Api, answer, failure, groups, resources, status};
use crate::command::Ended;

const GROUP: &str = "vshn.appcat.vshn.io";
const OBJECTS: usize = 1200;

/// The fault of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Nothing,
    /// No fault, and the watch cache answers. With every other fault the watch cache is too slow.
    Cache,
    /// No fault, but the answer is larger than the first objects suggest.
    Flood,
    /// Every page's token has expired; the error contains a new one.
    ExpiredTokens,
    /// The second page's token has expired once, without a new one.
    ExpiredList,
    /// The first write of every object fails with this status.
    FirstWrite(u16),
    /// Every hundredth object's first write is stored and its answer is lost.
    LostAnswers,
    /// A webhook rejects every hundredth object.
    Webhook,
    /// Every hundredth object is deleted before it is written.
    Deleted,
    /// The first lists of a page fail.
    FirstList(u16),
    /// Every page after the first is rejected.
    LaterPages,
    /// The objects from this number on are written, but without an answer.
    Silence(usize),
    /// The second page is forbidden once, and so is every second read of an object in the second half.
    Forbidden,
    /// The server of another group of the policies does not answer.
    GroupOut,
    /// Every list fails.
    Lists(u16),
    /// One of two namespaces rejects reports.
    Reports,
    /// Every write fails.
    Writes(u16),
}

/// An API server with one kind.
struct Fake {
    fault: Mutex<Fault>,
    state: Mutex<Stored>,
}

#[derive(Clone, Default)]
struct Stored {
    /// The number of changes of each object.
    versions: HashMap<String, u32>,
    /// The number of attempts for each object.
    tries: HashMap<String, u32>,
    /// Objects that were read one by one.
    reads: HashSet<String>,
    /// The namespaces of written reports.
    reports: Vec<String>,
    /// The limit of each list; 0 without a limit.
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
        // The client has read the first answers by now.
        let read = state.reads.len();
        if state.reads.insert(name.to_owned())
            && read > OBJECTS / 2
            && self.fault() == Fault::Forbidden
        {
            return failure(403, "roles are not known yet", "");
        }
        drop(state);
        answer(200, &self.object(number_of(name)))
    }

    /// A page; its token is the number of its first object, with an `x` for one that has expired.
    fn list(&self, query: &HashMap<String, String>) -> Response {
        // Only a list from the cache has no limit.
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
            // Read as a list, this would have no objects.
            let filling = "x".repeat(25 << 20);
            return answer(200, &json!({"kind": filling, "metadata": {}, "items": []}));
        }
        if all && fault != Fault::Cache {
            return failure(504, "Too large resource version", "");
        }
        match fault {
            Fault::FirstList(code) if lists % 2 == 1 => return failure(code, "not now", ""),
            Fault::ExpiredTokens if token.ends_with('x') => {
                let mut body = status(410, "expired", "");
                body["metadata"] = json!({"continue": start.to_string()});
                return answer(410, &body);
            }
            Fault::Lists(code) => return failure(code, "not now", ""),
            Fault::LaterPages if start > 0 => return failure(400, "no", ""),
            Fault::Forbidden if start > 0 && lists == 4 => {
                return failure(403, "roles are not known yet", "");
            }
            Fault::ExpiredList if token.ends_with('x') => return failure(410, "expired", ""),
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
        // With a selector the server cannot count the rest.
        if !query.contains_key("labelSelector") {
            metadata["remainingItemCount"] = (OBJECTS - end).into();
        }
        answer(200, &json!({"kind": "VSHNRedisList", "metadata": metadata, "items": items}))
    }

    fn report(&self, namespace: String) -> Response {
        if namespace == "m" {
            return failure(403, "admission webhook \"other\" denied the request: no reports", "");
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
            Fault::Forbidden if first => return failure(409, "changed", ""),
            Fault::FirstWrite(code) if first => return failure(code, "not now", ""),
            Fault::Writes(code) => return failure(code, "no", ""),
            Fault::Webhook if hundredth => {
                return failure(403, "admission webhook \"other\" denied the request: no", "");
            }
            Fault::Deleted if hundredth => return failure(404, "not found", name),
            _ => {}
        }
        let version = state.versions.entry(name.to_owned()).or_default();
        let expected = Value::from((*version + 1).to_string());
        if operations[1]["value"] != expected {
            return failure(
                422,
                "the server rejected our request due to an error in our request",
                "",
            );
        }
        *version += 1;
        if fault == Fault::LostAnswers && hundredth && first {
            return failure(504, "the gateway gave up", "");
        }
        let metadata = json!({"name": name, "resourceVersion": (*version + 1).to_string()});
        answer(200, &json!({"kind": "PartialObjectMetadata", "metadata": metadata}))
    }
}

fn number_of(name: &str) -> usize {
    name.trim_start_matches("db-").parse().unwrap()
}

fn query(uri: &Uri) -> HashMap<String, String> {
    let pairs = uri.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// A running fake server.
struct Server {
    fake: Arc<Fake>,
    api: Api,
}

impl Server {
    async fn start(fault: Fault) -> Self {
        let fake = Arc::new(Fake { fault: Mutex::new(fault), state: Mutex::default() });
        let routes = Router::new()
            .route("/apis", get(async |State(fake): State<Arc<Fake>>| match fake.fault() {
                Fault::GroupOut => groups(&[GROUP, "test.statusgate.dev"]),
                _ => groups(&[GROUP]),
            }))
            .route("/apis/vshn.appcat.vshn.io/v1", get(async || {
                resources(GROUP, &[("vshnredis", "VSHNRedis"), ("vshnredis/status", "VSHNRedis")])
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
                    let answer = fake.patch(&name, &body);
                    if matches!(fake.fault(), Fault::Silence(first) if number_of(&name) >= first) {
                        std::future::pending::<()>().await;
                    }
                    answer
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
            // The account may not read the CRD.
            .fallback(|_: Method, _: Uri| async { failure(403, "forbidden", "") })
            .with_state(Arc::clone(&fake));
        Self { fake, api: Api::serve(routes).await }
    }

    /// Sets the fault from now on.
    fn set_fault(&self, fault: Fault) {
        *self.fake.fault.lock().unwrap() = fault;
    }

    /// The requests so far.
    fn stored(&self) -> Stored {
        self.fake.state.lock().unwrap().clone()
    }

    /// Runs a backfill.
    async fn backfill(&self, arguments: &[&str]) -> Ended {
        self.api.run("backfill", &[&["--concurrency=64"], arguments].concat()).await
    }
}

/// Runs a backfill against a server with this fault; returns its end and the server's requests.
async fn backfill(fault: Fault) -> (Ended, Stored) {
    let server = Server::start(fault).await;
    (server.backfill(&[]).await, server.stored())
}

/// Runs a command that cannot write to one of its streams.
async fn run_with_closed(stream: &str, mut process: Command) -> Ended {
    let mut child = process.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    match stream {
        "stdout" => drop(child.stdout.take()),
        _ => drop(child.stderr.take()),
    }
    let output = tokio::task::spawn_blocking(|| child.wait_with_output().unwrap()).await;
    Ended::of(&output.unwrap())
}

/// The numbers of the only row of the summary.
fn sums(output: &Ended) -> Vec<usize> {
    let row = output.out.lines().last().unwrap_or_default();
    row.split_whitespace().skip(2).map(|number| number.parse().unwrap()).collect()
}

/// The numbers of the objects with an outcome in lines of JSON. The last line may be incomplete.
fn numbers(lines: &str, outcome: &str) -> Vec<usize> {
    let lines = lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let found = lines.filter(|line| line["outcome"] == *outcome);
    let mut numbers: Vec<usize> =
        found.map(|line| number_of(line["name"].as_str().unwrap())).collect();
    numbers.sort_unstable();
    numbers
}

#[tokio::test(flavor = "multi_thread")]
async fn every_object_is_written_once_despite_failing_lists_and_first_attempts() {
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
        assert_eq!(output.code, Some(0), "{fault:?}: {}", output.text());
        assert_eq!(versions.len(), OBJECTS, "{fault:?}");
        assert!(versions.values().all(|version| *version == 1), "{fault:?}");
        let sums = sums(&output);
        assert_eq!((sums[0], sums[1]), (OBJECTS, 0), "{fault:?}: {}", output.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejected_object_is_a_finding_and_the_others_are_written() {
    let (output, Stored { versions, .. }) = backfill(Fault::Webhook).await;
    assert_eq!(output.code, Some(1), "{}", output.text());
    assert_eq!(versions.len(), OBJECTS - 12);
    assert_eq!(sums(&output), [OBJECTS - 12, 0, 0, 0, 12, 0]);
    let text = output.text();
    let line = "rejected vshnredis.vshn.appcat.vshn.io n/db-0000: admission webhook \"other\" \
                denied the request: no\n";
    assert!(text.contains(line), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_object_counts_as_done() {
    let (output, _) = backfill(Fault::Deleted).await;
    assert_eq!(output.code, Some(0), "{}", output.text());
    assert_eq!(sums(&output), [OBJECTS - 12, 0, 12, 0, 0, 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_page_is_small_and_the_next_pages_grow() {
    let server = Server::start(Fault::Nothing).await;
    let (output, stored) = (server.backfill(&["--dry-run"]).await, server.stored());
    assert_eq!(output.code, Some(0), "{}", output.text());
    // The first error counts.
    assert_eq!(stored.limits, [1, 50, 100, 200, 400, 500]);
}

#[tokio::test(flavor = "multi_thread")]
async fn few_objects_are_read_in_one_list_or_by_page_if_the_cache_does_not_answer() {
    let (output, stored) = backfill(Fault::Cache).await;
    assert_eq!(output.code, Some(0), "{}", output.text());
    assert_eq!(stored.limits, [1, 50, 0]);
    let (output, stored) = backfill(Fault::Nothing).await;
    assert_eq!(output.code, Some(0), "{}", output.text());
    assert_eq!(stored.limits, [1, 50, 0, 100, 200, 400, 500]);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_write_the_cache_is_not_used() {
    let server = Server::start(Fault::Cache).await;
    server.backfill(&[]).await;
    let before = server.stored().limits.len();
    let output = server.backfill(&[]).await;
    assert_eq!(sums(&output), [0, OBJECTS, 0, 0, 0, 0], "{}", output.text());
    assert_eq!(server.stored().limits[before..], [1, 50, 100, 200, 400, 500]);
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_of_a_selector_are_not_counted_first() {
    let server = Server::start(Fault::Nothing).await;
    let (output, stored) = (server.backfill(&["--selector=a=b"]).await, server.stored());
    assert_eq!(output.code, Some(0), "{}", output.text());
    assert_eq!(stored.limits, [50, 100, 200, 400, 500]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_run_tries_rejected_objects_again() {
    let server = Server::start(Fault::Webhook).await;
    let first = server.backfill(&[]).await;
    assert_eq!(first.code, Some(1), "{}", first.text());
    server.set_fault(Fault::Nothing);
    let second = server.backfill(&[]).await;
    assert_eq!(second.code, Some(0), "{}", second.text());
    assert_eq!(sums(&second), [12, OBJECTS - 12, 0, 0, 0, 0], "{}", second.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn each_write_is_a_line_of_json_also_if_a_later_page_fails() {
    let server = Server::start(Fault::LaterPages).await;
    let output = server.backfill(&["-o=json"]).await;
    assert_eq!(output.code, Some(2), "{}", output.text());
    assert!(output.err.contains("cannot list vshnredis.vshn.appcat.vshn.io"), "{}", output.err);
    assert_eq!(output.out.lines().count(), 50, "{}", output.out);
    assert_eq!(numbers(&output.out, "patched"), Vec::from_iter(0..50));
    assert_eq!(server.stored().versions.len(), 50);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_run_has_reported_each_confirmed_write_and_the_next_run_writes_the_others() {
    let server = Server::start(Fault::Silence(300)).await;
    let report = server.api.path("report");
    let mut process = server.api.command("backfill");
    process.args(["--concurrency=64", "-o=json"]);
    process.stdout(File::create(&report).unwrap()).stderr(Stdio::null());
    let mut child = process.spawn().unwrap();
    let reported = || numbers(&fs::read_to_string(&report).unwrap(), "patched");
    // All writers wait for an answer.
    let stuck = async {
        while reported().len() < 300 || server.stored().versions.len() < 300 + 64 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let is_stuck = tokio::time::timeout(Duration::from_secs(60), stuck).await.is_ok();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(is_stuck, "{}, {}", reported().len(), server.stored().versions.len());
    assert_eq!(reported(), Vec::from_iter(0..300));

    server.set_fault(Fault::Nothing);
    let second = server.backfill(&["-o=json"]).await;
    assert_eq!(second.code, Some(0), "{}", second.text());
    assert_eq!(numbers(&second.out, "patched"), Vec::from_iter(300 + 64..OBJECTS));
    assert_eq!(numbers(&second.out, "unchanged"), Vec::from_iter(0..300 + 64));
    assert!(server.stored().versions.values().all(|version| *version == 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_fatal_error_no_waiting_write_is_sent() {
    let server = Server::start(Fault::Writes(401)).await;
    let output = server.api.run("backfill", &["--concurrency=1"]).await;
    assert_eq!(output.code, Some(2), "{}", output.text());
    let line = "cannot patch vshnredis.vshn.appcat.vshn.io/status: not logged in: no";
    assert!(output.text().contains(line), "{}", output.text());
    // The next write would wait just as long for an unavailable server.
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
async fn an_unavailable_api_group_is_an_error() {
    let server = Server::start(Fault::GroupOut).await;
    let policies = server.api.path("policies.yaml");
    fs::write(&policies, POLICIES).unwrap();
    let output = server.backfill(&["--policies", policies.to_str().unwrap()]).await;
    assert_eq!(output.code, Some(2), "{}", output.text());
    assert_eq!(server.stored().versions.len(), OBJECTS, "the others are written");
    let text = output.text();
    assert!(text.contains("skipped test.statusgate.dev/v1: its server does not respond"), "{text}");
    assert!(!text.contains("does not serve"), "this is unknown: {text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_before_the_first_object_ends_the_run() {
    let server = Server::start(Fault::Lists(503)).await;
    let mut process = server.api.command("backfill");
    let child = process.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while server.stored().limits.len() < 3 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let sent = Command::new("kill").args(["-TERM", "--", &child.id().to_string()]).status();
    assert!(sent.unwrap().success());
    let output = tokio::task::spawn_blocking(|| child.wait_with_output().unwrap()).await.unwrap();
    let output = Ended::of(&output);
    assert_eq!(output.code, Some(2), "{}", output.text());
    assert!(output.text().contains("stopped before the end"), "{}", output.text());
    // The last of about thirty attempts comes after two minutes.
    assert!(server.stored().limits.len() < 10, "{:?}", server.stored().limits);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_page_of_an_audit_is_small() {
    let server = Server::start(Fault::Nothing).await;
    let output = server.api.run("audit", &[]).await;
    assert_ne!(output.code, Some(2), "{}", output.text());
    assert_eq!(server.stored().limits, [1, 50, 100, 200, 400, 500]);
    // The example policies name more than a cluster serves.
    assert!(!output.err.contains("does not serve"), "{}", output.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_that_rejects_its_report_does_not_affect_others() {
    let server = Server::start(Fault::Reports).await;
    let output = server.api.run("audit", &["--write"]).await;
    assert_eq!(output.code, Some(2), "{}", output.text());
    assert_eq!(server.stored().reports, ["n"]);
    let text = output.text();
    assert!(text.contains("1 reports written, 0 deleted"), "{text}");
    assert!(text.contains("cannot apply the PolicyReport m/statusgate: not allowed: "), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_stderr_does_not_end_a_backfill() {
    let server = Server::start(Fault::Nothing).await;
    // It warns that it may not read the CRD.
    let output = run_with_closed("stderr", server.api.command("backfill")).await;
    assert_eq!(output.code, Some(0), "{}", output.text());
    assert_eq!(server.stored().versions.len(), OBJECTS);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_stdout_ends_a_dry_run_without_an_error_and_a_backfill_with_one() {
    let server = Server::start(Fault::Nothing).await;
    for (arguments, code) in [(["--dry-run", "-o=json"], 0), (["--qps=0", "-o=json"], 2)] {
        let mut process = server.api.command("backfill");
        process.args(arguments);
        let output = run_with_closed("stdout", process).await;
        assert_eq!(output.code, Some(code), "{arguments:?}: {}", output.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_stdout_does_not_prevent_the_reports_of_an_audit() {
    for format in ["table", "json"] {
        let server = Server::start(Fault::Nothing).await;
        let mut process = server.api.command("audit");
        process.args(["--write", "-o", format]);
        let output = run_with_closed("stdout", process).await;
        assert_eq!(server.stored().reports, ["n"], "{format}: {}", output.text());
        assert_eq!(output.code, Some(0), "{format}: {}", output.text());
        let text = output.text();
        assert!(text.contains("1 reports written, 0 deleted"), "{format}: {text}");
    }
}
