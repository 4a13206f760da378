//! `statusgate wait` against a fake API server that returns another status for each read.

use std::collections::HashMap;
use std::io::Write;
use std::process::Stdio;
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

/// The responses for each object. The last one is repeated. A status; an object with `metadata` and `status`; null for an
/// object that does not exist; the code of a failure.
type Script = HashMap<String, Vec<Value>>;

fn in_phase(phase: &str) -> Value {
    let conditions = ["Ready", "PodReady"].map(|kind| json!({"type": kind, "status": "True"}));
    json!({"phase": phase, "instanceNamespace": "i", "conditions": conditions})
}

fn object(name: &str, response: &Value) -> Value {
    let status = if response["metadata"].is_null() { response } else { &response["status"] };
    let mut object = json!({"apiVersion": format!("{GROUP}/v1"), "kind": "VSHNRedis",
        "metadata": {"name": name, "namespace": "n"}, "status": status});
    if let Some(metadata) = response["metadata"].as_object() {
        object["metadata"].as_object_mut().unwrap().extend(metadata.clone());
    }
    object
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
    serve(script).await.run("wait", &[arguments, &["--namespace=n"]].concat()).await
}

/// No policy selects `things`.
async fn serve(script: &[(&str, &[Value])]) -> Api {
    let script: Script =
        script.iter().map(|(name, responses)| ((*name).to_owned(), responses.to_vec())).collect();
    let names = ["vshnredis", "things"];
    let kinds = [
        ("vshnredis", "VSHNRedis"),
        ("vshnredis/status", "VSHNRedis"),
        ("things", "Thing"),
        ("things/status", "Thing"),
    ];
    let mut routes = Router::new()
        .route("/apis", get(async || groups(&[GROUP])))
        .route(&format!("/apis/{GROUP}/v1"), get(async move || resources(GROUP, &kinds)));
    for name in names {
        let path = format!("/apis/{GROUP}/v1/namespaces/n/{name}");
        routes = routes
            .route(&format!("/apis/{GROUP}/v1/{name}"), get(list))
            .route(&path, get(list))
            .route(&format!("{path}/{{name}}"), get(read));
    }
    let routes = routes.fallback(async || failure(403, "forbidden", ""));
    Api::serve(routes.with_state(Arc::new(Mutex::new(script)))).await
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
async fn it_waits_for_an_object_that_is_created() {
    let missing = "vshnredis/cache: does not exist\n";
    let responses = [json!(null), json!(null), in_phase("Ready")];
    assert_eq!(wait_for(&responses, &[]).await, ended(0, CURRENT, missing));
    let end = format!("{missing}timed out: vshnredis.vshn.appcat.vshn.io/cache does not exist\n");
    assert_eq!(wait_for(&[json!(null)], &["--timeout=0s"]).await, ended(1, "", &end));
    // A line of JSON, without a health.
    let line = r#"{"apiVersion":"vshn.appcat.vshn.io/v1","kind":"VSHNRedis","namespace":"n","name":"cache"}"#;
    let arguments = ["--timeout=0s", "-o=json"];
    assert_eq!(wait_for(&[json!(null)], &arguments).await, ended(1, &format!("{line}\n"), &end));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_object_ends_it_early() {
    let responses = [in_phase("Provisioning"), json!(null)];
    let change = "vshnredis/cache: inProgress: phase Provisioning\n";
    let deleted = format!("{change}vshnredis.vshn.appcat.vshn.io/cache was deleted\n");
    assert_eq!(wait_for(&responses, &[]).await, ended(1, "", &deleted));
    let out = "vshnredis.vshn.appcat.vshn.io/cache is terminating\n";
    assert_eq!(wait_for(&responses, &["--for=health=terminating"]).await, ended(0, out, change));
    assert_eq!(wait_for(&[json!(null)], &["--for=health=terminating"]).await, ended(0, out, ""));
}

/// An object of generation 2. Its status is as old as its spec, or a second younger.
fn written(phase: &str, spec: &str, status: &str) -> Value {
    let written = |time: &str, field: &str| json!({"time": time, "fieldsV1": {field: {}}});
    let managers = [written(spec, "f:spec"), written(status, "f:status")];
    let metadata = json!({"generation": 2, "managedFields": managers});
    json!({"metadata": metadata, "status": in_phase(phase)})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_that_may_be_about_an_older_spec_counts_after_a_while() {
    // The clock of the API server is ahead.
    let (now, later) = ("2999-01-01T00:00:00Z", "2999-01-01T00:00:01Z");
    for (phase, health, code) in [("Ready", "current", 0), ("Failed", "failed", 1)] {
        let unproven = written(phase, now, now);
        let change = format!(
            "vshnredis/cache: inProgress: unproven: the status ({health}: phase {phase}) is not newer than the \
             spec; it counts 2s after the change of the spec\n"
        );
        let (out, err) = match code {
            0 => (CURRENT, change.clone()),
            _ => (
                "",
                format!("{change}vshnredis.vshn.appcat.vshn.io/cache is failed: phase Failed\n"),
            ),
        };
        let settled = wait_for(std::slice::from_ref(&unproven), &["--settle=2s"]).await;
        assert_eq!(settled, ended(code, out, &err));
        // A newer status counts at once, and so does one that is old enough.
        let err = err.replace(&change, "");
        for proven in [
            written(phase, now, later),
            written(phase, "2020-01-02T00:00:00Z", "2020-01-01T00:00:00Z"),
        ] {
            assert_eq!(wait_for(&[proven], &["--timeout=0s"]).await, ended(code, out, &err));
        }
        let believed = wait_for(&[unproven], &["--settle=0s", "--timeout=0s"]).await;
        assert_eq!(believed, ended(code, out, &err));
    }
    // Only an answer is delayed.
    let scaling = written("Scaling", now, now);
    let change = "vshnredis/cache: inProgress: phase Scaling\n";
    let proven = written("Ready", now, later);
    assert_eq!(wait_for(&[scaling, proven], &[]).await, ended(0, CURRENT, change));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_several_healths_is_enough() {
    let responses = [in_phase("Degraded"), in_phase("Scaling")];
    let arguments = ["--for=health=current", "--for=health=inProgress"];
    let out = "vshnredis.vshn.appcat.vshn.io/cache is inProgress\n";
    let change = "vshnredis/cache: failed (retried): phase Degraded\n";
    assert_eq!(wait_for(&responses, &arguments).await, ended(0, out, change));
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_come_from_manifests() {
    let script: &[(&str, &[Value])] =
        &[("a", &[in_phase("Ready")]), ("b", &[json!(null), in_phase("Ready")])];
    let manifest = |name: &str, namespace: &str| {
        format!(
            "---\napiVersion: {GROUP}/v1\nkind: VSHNRedis\nmetadata: {{name: {name}{namespace}}}\n"
        )
    };
    let text = manifest("a", "") + &manifest("b", ", namespace: n");
    let api = serve(script).await;
    let file = api.path("manifest.yaml");
    std::fs::write(&file, &text).unwrap();
    let (folder, file) = (api.path(""), file.to_str().unwrap().to_owned());
    let out =
        "vshnredis.vshn.appcat.vshn.io/a is current\nvshnredis.vshn.appcat.vshn.io/b is current\n";
    let waited = api.run("wait", &["-f", &file, "-n=n"]).await;
    assert_eq!((waited.code, waited.out.as_str()), (Some(0), out), "{}", waited.err);
    // As with `helm get manifest`.
    let mut process = api.command("wait");
    process.args(["-f=-", "-n=n"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = process.spawn().unwrap();
    process.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let waited = tokio::task::spawn_blocking(|| process.wait_with_output().unwrap()).await.unwrap();
    assert_eq!(Ended::of(&waited).out, out);
    for (text, expected) in [
        ("kind: A\napiVersion: v1\nmetadata: {generateName: a-}", "an object without a name"),
        ("", "there is no object to wait for"),
        ("a: [", "invalid YAML"),
    ] {
        std::fs::write(folder.join("manifest.yaml"), text).unwrap();
        let waited = api.run("wait", &["-f", &file]).await;
        assert!(waited.code == Some(2) && waited.err.contains(expected), "{}", waited.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_convention_judges_what_no_policy_selects() {
    let ready = json!({"phase": "Failed", "conditions": [{"type": "Ready", "status": "True"}]});
    let script: &[(&str, &[Value])] = &[("a", &[ready])];
    let wait =
        async |more: &[&str]| wait(script, &[&["things/a", "--timeout=0s"], more].concat()).await;
    let waited = wait(&[]).await;
    let state = "timed out: things.vshn.appcat.vshn.io/a is unknown: no policy selects \
                 things.vshn.appcat.vshn.io; its status suggests failed: status.phase is Failed; \
                 --convention NAME chooses a convention\n";
    assert!(waited.code == Some(1) && waited.err.ends_with(state), "{}", waited.text());
    let waited = wait(&["--convention=appcat"]).await;
    let state = "things.vshn.appcat.vshn.io/a is failed: phase Failed\n";
    assert_eq!((waited.code, waited.err.as_str()), (Some(1), state));
    let waited = wait(&["--convention=metav1"]).await;
    assert_eq!(waited.out, "things.vshn.appcat.vshn.io/a is current\n", "{}", waited.err);
    let waited = wait(&["--convention=generic"]).await;
    let state = "things.vshn.appcat.vshn.io/a is failed (retried): status.phase is Failed\n";
    assert!(waited.code == Some(1) && waited.err.ends_with(state), "{}", waited.text());
    for name in ["metav2", "generik"] {
        let waited = wait(&["--convention", name]).await;
        let meant = if name == "metav2" { "metav1" } else { "generic" };
        assert!(waited.code == Some(2) && waited.err.contains(meant), "{}", waited.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_number_of_objects_is_limited() {
    let ready = [in_phase("Ready")];
    let names: Vec<String> = (0..1001).map(|number| format!("r{number}")).collect();
    let script: Vec<(&str, &[Value])> =
        names.iter().map(|name| (name.as_str(), &ready[..])).collect();
    let api = serve(&script).await;
    let waited = api.run("wait", &["vshnredis", "-A"]).await;
    let error = "more than 1000 objects: wait for fewer, by a namespace or a selector\n";
    assert_eq!((waited.code, waited.err.as_str()), (Some(2), error));
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
        let lines = output.objects();
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
    let output = serve(script)
        .await
        .run("wait", &["vshnredis.v1.vshn.appcat.vshn.io", "-A", "--timeout=0s"])
        .await;
    assert_eq!((output.code, output.out.lines().count()), (Some(1), 2), "{}", output.text());
    let output = wait(&script[2..], &["vshnredis", "-l", "app=a", "--timeout=1s"]).await;
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
        (&["/a"], "\"/a\" is not TYPE/NAME"),
        (&["widgets", ""], "a value is required"),
        (&["widgets", "a", "--all"], "--selector, --all and --all-namespaces need one TYPE"),
        (
            &["widgets/a", "--selector=app=a"],
            "--selector, --all and --all-namespaces need one TYPE",
        ),
        (&["widgets/a", "-A"], "--selector, --all and --all-namespaces need one TYPE"),
        (&["widgets", "-A", "-n=a"], "cannot be used with"),
        (&["widgets/a", "-f=a.yaml"], "cannot be used with"),
        (&["-f=a.yaml", "-A"], "cannot be used with"),
        (&[], "required"),
        (&["widgets/a", "--for=health=ready"], "expected health= and one of failed, unknown,"),
        (&["widgets/a", "--for=condition=Ready"], "expected health= and one of"),
        (&["widgets/a", "--policies=no/such/file"], "no/such/file"),
    ] {
        let output = run([&["wait", "--kubeconfig=no-kubeconfig"], arguments].concat());
        assert_eq!(output.code, Some(2), "{arguments:?}: {}", output.text());
        assert!(output.err.contains(expected), "{arguments:?}: {}", output.err);
    }
}
