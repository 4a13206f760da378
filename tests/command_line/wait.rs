//! `statusgate wait` against a fake API server that returns another status for each read.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Path, State};
use axum::http::Uri;
use axum::response::Response;
use axum::routing::get;
use serde_json::{Value, json};

use crate::api::{Api, answer, failure, groups, resources};
use crate::command::{Ended, run};

const GROUP: &str = "vshn.appcat.vshn.io";

/// The responses for each object. The last one is repeated. A status; null for an object that does not exist; the code of
/// a failure.
type Script = HashMap<String, Vec<Value>>;

fn in_phase(phase: &str) -> Value {
    let conditions = ["Ready", "PodReady"].map(|kind| json!({"type": kind, "status": "True"}));
    json!({"phase": phase, "instanceNamespace": "i", "conditions": conditions})
}

fn object(name: &str, status: &Value) -> Value {
    json!({"apiVersion": format!("{GROUP}/v1"), "kind": "VSHNRedis",
        "metadata": {"name": name, "namespace": "n"}, "status": status})
}

async fn read(State(script): State<Arc<Mutex<Script>>>, Path(name): Path<String>) -> Response {
    let mut script = script.lock().unwrap();
    let Some(responses) = script.get_mut(&name) else { return failure(404, "not found", &name) };
    let response = if responses.len() > 1 { responses.remove(0) } else { responses[0].clone() };
    match &response {
        Value::Null => failure(404, "not found", &name),
        // Without a name: for some moments after a restart, the API server does not know the kind.
        Value::Number(code) => failure(code.as_u64().unwrap().try_into().unwrap(), "later", ""),
        status => answer(200, &object(&name, status)),
    }
}

async fn list(State(script): State<Arc<Mutex<Script>>>, uri: Uri) -> Response {
    let script = script.lock().unwrap();
    let mut names: Vec<&String> = script.keys().collect();
    names.sort();
    // The only selector of the tests.
    if uri.query().unwrap_or_default().contains("labelSelector=app%3Da") {
        names.retain(|name| name.starts_with('a'));
    }
    let items: Vec<Value> = names.iter().map(|name| object(name, &json!({}))).collect();
    answer(200, &json!({"items": items}))
}

/// Runs `wait` in the namespace `n`.
async fn wait(script: &[(&str, &[Value])], arguments: &[&str]) -> Ended {
    let script: Script =
        script.iter().map(|(name, responses)| ((*name).to_owned(), responses.to_vec())).collect();
    let path = format!("/apis/{GROUP}/v1/namespaces/n/vshnredis");
    let names = [("vshnredis", "VSHNRedis"), ("vshnredis/status", "VSHNRedis")];
    let routes = Router::new()
        .route("/apis", get(async || groups(&[GROUP])))
        .route(&format!("/apis/{GROUP}/v1"), get(async move || resources(GROUP, &names)))
        .route(&path, get(list))
        .route(&format!("{path}/{{name}}"), get(read))
        .fallback(async || failure(403, "forbidden", ""))
        .with_state(Arc::new(Mutex::new(script)));
    let api = Api::serve(routes).await;
    api.run("wait", &[arguments, &["--namespace=n"]].concat()).await
}

/// The end of a wait for the object `cache`.
async fn wait_for(responses: &[Value], arguments: &[&str]) -> (Option<i32>, String, String) {
    let arguments = [&["vshnredis/cache"], arguments].concat();
    let Ended { code, out, err } = wait(&[("cache", responses)], &arguments).await;
    (code, out, err)
}

fn ended(code: i32, out: &str, err: &str) -> (Option<i32>, String, String) {
    (Some(code), out.to_owned(), err.to_owned())
}

const CURRENT: &str = "vshnredis.vshn.appcat.vshn.io/cache is current\n";

#[tokio::test(flavor = "multi_thread")]
async fn it_waits_until_the_object_is_current_and_prints_each_change() {
    let responses = ["Provisioning", "Provisioning", "Degraded", "Ready"].map(in_phase);
    let changes = "vshnredis/cache: inProgress: phase Provisioning\n\
                   vshnredis/cache: failed (retried): phase Degraded\n";
    assert_eq!(wait_for(&responses, &[]).await, ended(0, CURRENT, changes));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_without_a_retry_ends_it_early() {
    let failed = [in_phase("Failed")];
    let line = "vshnredis.vshn.appcat.vshn.io/cache is failed: phase Failed\n";
    assert_eq!(wait_for(&failed, &["--timeout=1000000000000h"]).await, ended(1, "", line));
    let out = "vshnredis.vshn.appcat.vshn.io/cache is failed\n";
    assert_eq!(wait_for(&failed, &["--for=health=failed"]).await, ended(0, out, ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_does_not_exist_or_is_deleted_ends_it_early() {
    let missing = "vshnredis.vshn.appcat.vshn.io/cache does not exist\n";
    assert_eq!(wait_for(&[json!(null)], &[]).await, ended(1, "", missing));
    let responses = [in_phase("Provisioning"), json!(null)];
    let change = "vshnredis/cache: inProgress: phase Provisioning\n";
    let deleted = format!("{change}vshnredis.vshn.appcat.vshn.io/cache was deleted\n");
    assert_eq!(wait_for(&responses, &[]).await, ended(1, "", &deleted));
    let out = "vshnredis.vshn.appcat.vshn.io/cache is terminating\n";
    assert_eq!(wait_for(&responses, &["--for=health=terminating"]).await, ended(0, out, change));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_the_time_names_the_health_and_its_reason() {
    let line = "vshnredis/cache: inProgress: phase Scaling\n\
                timed out: vshnredis.vshn.appcat.vshn.io/cache is inProgress: phase Scaling\n";
    for timeout in ["--timeout=0s", "--timeout=1500ms"] {
        assert_eq!(wait_for(&[in_phase("Scaling")], &[timeout]).await, ended(1, "", line));
    }
    assert_eq!(wait_for(&[in_phase("Ready")], &["--timeout=0s"]).await, ended(0, CURRENT, ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn it_survives_a_restart_of_the_api_server() {
    let scaling = in_phase("Scaling");
    let change = "vshnredis/cache: inProgress: phase Scaling\n";
    let responses =
        [scaling.clone(), json!(503), json!(404), json!(403), scaling.clone(), in_phase("Ready")];
    assert_eq!(wait_for(&responses, &[]).await, ended(0, CURRENT, change));
    // One that does not come back is an error.
    let (code, _, err) = wait_for(&[scaling, json!(503)], &["--timeout=2s"]).await;
    let error =
        "cannot get vshnredis.vshn.appcat.vshn.io/cache: the API server has a problem: later";
    assert!(code == Some(2) && err.contains(error), "{err}");
    let (code, _, err) = wait_for(&[json!(403)], &[]).await;
    assert!(code == Some(2) && err.contains("not allowed"), "{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn several_objects_are_selected_and_printed_as_lines_of_json() {
    let (scaling, ready) = ([in_phase("Scaling")], [in_phase("Ready")]);
    let script: &[(&str, &[Value])] = &[("a1", &ready), ("a2", &ready), ("b", &scaling)];
    let names = async |arguments: &[&str]| {
        let output = wait(script, &[arguments, &["--timeout=0s", "--output=json"]].concat()).await;
        let lines = output.out.lines().map(|line| serde_json::from_str(line).unwrap());
        let lines: Vec<Value> = lines.collect();
        let names = lines.iter().map(|line| format!("{} {}", line["name"], line["health"]));
        (output.code, names.collect::<Vec<_>>().join(", ").replace('"', ""))
    };
    let of_a = "a1 current, a2 current".to_owned();
    let all = "a1 current, a2 current, b inProgress".to_owned();
    assert_eq!(names(&["VSHNRedis", "-l", "app=a"]).await, (Some(0), of_a.clone()));
    assert_eq!(names(&["vshnredis.vshn.appcat.vshn.io", "a1", "a2"]).await, (Some(0), of_a));
    assert_eq!(names(&["vshnredis", "--all"]).await, (Some(1), all.clone()));
    assert_eq!(names(&["vshnredis/a1", "VSHNRedis/a2", "vshnredis/b"]).await, (Some(1), all));
    let output = wait(&script[..1], &["vshnredis/a1", "-o", "json"]).await;
    assert_eq!(
        output.out,
        "{\"apiVersion\":\"vshn.appcat.vshn.io/v1\",\"kind\":\"VSHNRedis\",\"namespace\":\"n\",\
         \"name\":\"a1\",\"health\":\"current\",\"healthReason\":\"phase Ready\"}\n"
    );
    let output = wait(&script[2..], &["vshnredis", "-l", "app=a"]).await;
    assert_eq!((output.code, output.err.as_str()), (Some(1), "no object matches\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_kind_is_an_error() {
    let output = wait(&[], &["vshnredises/cache"]).await;
    assert_eq!(output.code, Some(2), "{}", output.text());
    assert!(output.err.contains("the cluster does not serve vshnredises"), "{}", output.err);
    // The fake server does not respond for the core group.
    assert!(output.err.contains("cannot discover the resources of /api/v1"), "{}", output.err);
}

#[test]
fn invalid_arguments_are_reported_without_a_cluster() {
    for (arguments, expected) in [
        (&["widgets"][..], "which widgets? Add names, --selector or --all"),
        (&["widgets/a", "b"], "\"b\" is not TYPE/NAME"),
        (&["widgets", "a/b"], "\"widgets\" is not TYPE/NAME"),
        (&["widgets/a/b"], "\"widgets/a/b\" is not TYPE/NAME"),
        (&["widgets/"], "\"widgets/\" is not TYPE/NAME"),
        (&["widgets", ""], "a value is required"),
        (&["widgets", "a", "--all"], "--selector and --all need one TYPE, without a name"),
        (&["widgets/a", "--selector=app=a"], "--selector and --all need one TYPE"),
        (&["widgets/a", "--for=health=ready"], "expected health= and one of failed, unknown,"),
        (&["widgets/a", "--for=condition=Ready"], "expected health= and one of"),
        (&["widgets/a", "--policies=no/such/file"], "no/such/file"),
    ] {
        let output = run([&["wait", "--kubeconfig=no-kubeconfig"], arguments].concat());
        assert_eq!(output.code, Some(2), "{arguments:?}: {}", output.text());
        assert!(output.err.contains(expected), "{arguments:?}: {}", output.err);
    }
}
