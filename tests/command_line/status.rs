//! The command `statusgate status`: its input, output and exit codes.

use std::process::Command;

use axum::Router;
use axum::extract::Path as UrlPath;
use axum::routing::get;
use serde_json::{Value, json};

use crate::api::{Api, answer, failure, groups, resources};
use crate::command::{Ended, STATUSGATE, folder_of, run_with, write_in};
use crate::page_texts::root;

fn status(arguments: &[&str], input: &str) -> Ended {
    let mut program = Command::new(STATUSGATE);
    run_with(program.current_dir(root()).arg("status").args(arguments), input)
}

const CURRENT: &str =
    "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a, namespace: s}\n";
const FAILED: &str = "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: b}\nstatus:\n  \
                      conditions: [{type: Stalled, status: 'True', message: no}]\n";

#[test]
fn every_recorded_answer_is_printed() {
    let recorded = include_str!("../fixtures/oracles/kstatus.jsonl");
    let cases: Vec<_> =
        recorded.lines().map(|line| line.split_once(r#","obj":"#).unwrap()).collect();
    let input: Vec<&str> = cases.iter().map(|(_, text)| text.strip_suffix('}').unwrap()).collect();
    let ended = status(&["-o", "json"], &input.join("\n"));
    assert_eq!((ended.err.as_str(), ended.code), ("", Some(1)));
    let printed = ended.objects();
    assert_eq!(printed.len(), cases.len());
    for ((head, _), printed) in cases.iter().zip(printed) {
        let case: Value = serde_json::from_str(&format!("{head}}}")).unwrap();
        // An API server sends this number as 1, and kstatus never sees the other spelling.
        if case["name"] == "edge/observed-1e0" {
            assert_eq!(printed["error"], Value::Null);
            continue;
        }
        for (name, expected) in case["expect"].as_object().unwrap() {
            let is_error_text = name == "message" && case["expect"]["error"] == true;
            if !is_error_text {
                assert_eq!(&printed[name], expected, "{}", case["name"]);
            }
        }
    }
}

#[test]
fn objects_come_from_standard_input_files_and_lists() {
    let folder = folder_of(&[("b.yaml", FAILED), ("a.yaml", CURRENT), ("below/c.yaml", CURRENT)]);
    let path = folder.path().to_str().unwrap();
    let names = |arguments: &[&str], input: &str| -> Vec<String> {
        let ended = status(&[&["-o", "json"], arguments].concat(), input);
        assert_eq!(ended.err, "");
        ended.objects().iter().map(|line| line["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&["-f", path], ""), ["a", "b"]);
    assert_eq!(names(&[path], ""), ["a", "b"]);
    assert_eq!(names(&["--filename", path, "-"], FAILED), ["a", "b", "b"]);
    assert_eq!(names(&["-f", path, "-R"], ""), ["a", "b", "a"]);
    assert_eq!(names(&["-f", path, "-f", "-"], CURRENT), ["a", "b", "a"]);
    assert_eq!(names(&[], &format!("{CURRENT}---\n{FAILED}")), ["a", "b"]);
    // In a list of the API the items have no kind.
    let list =
        r#"{"apiVersion":"apps/v1","kind":"DaemonSetList","items":[{"metadata":{"name":"d"}}]}"#;
    let ended = status(&["-o", "json"], list);
    let line = &ended.objects()[0];
    assert_eq!(line["message"], "DaemonSet metadata.generation not found", "{line}");
}

#[test]
fn a_line_has_the_object_its_result_and_its_standing() {
    let redis = json!({"apiVersion": "vshn.appcat.vshn.io/v1", "kind": "VSHNRedis",
        "metadata": {"name": "r", "namespace": "s"},
        "status": {"phase": "Ready", "conditions": [{"type": "Ready", "status": "False",
            "reason": "Creating", "message": "m"}]}});
    let ended = status(&["-o", "json"], &redis.to_string());
    assert_eq!(
        ended.objects(),
        [json!({
            "file": "stdin", "line": 1, "document": 1,
            "apiVersion": "vshn.appcat.vshn.io/v1", "kind": "VSHNRedis", "namespace": "s", "name": "r",
            "policies": ["appcat"], "status": "InProgress", "message": "m",
            "conditions": [{"type": "Reconciling", "status": "True", "reason": "Creating", "message": "m"}],
            "phase": "Ready",
            "admissiblePhases": ["Failed", "Provisioning", "Maintenance", "Scaling", "Degraded", "Unknown"],
            "contradiction": "phase Ready disagrees: condition Ready is False",
            "wouldBecome": "Provisioning", "health": "inProgress", "healthReason": "m",
        })]
    );
    // No policy and no result.
    let ended = status(&["-o", "json"], CURRENT);
    let expected = json!({"file": "stdin", "line": 1, "document": 1,
        "apiVersion": "example.com/v1", "kind": "Thing", "namespace": "s", "name": "a",
        "policies": [], "unjudged": "no policy selects it", "health": "unknown", "healthReason": "no policy selects things.example.com",
        "status": "Current", "message": "Resource is current", "conditions": []});
    assert_eq!(ended.objects(), [expected]);
}

/// Green needs a convention, or a kind that kstatus was made for.
#[test]
fn without_a_policy_only_kinds_of_kubernetes_are_current() {
    let of = |text: &str| {
        let ended = status(&["-o", "json"], text);
        let line = ended.objects().remove(0);
        (
            line["health"].as_str().unwrap().to_owned(),
            line["healthReason"].as_str().unwrap().to_owned(),
        )
    };
    let thing = |status: &str| {
        of(&format!(
            "{{apiVersion: example.com/v1, kind: Thing, metadata: {{name: a, generation: 2}}, status: {status}}}"
        ))
    };
    let unknown = ("unknown".to_owned(), "no policy selects things.example.com".to_owned());
    assert_eq!((thing("{odd: word}"), thing("{}")), (unknown.clone(), unknown));
    for (green, guess) in [
        ("{phase: Failed}", "failed: status.phase is Failed"),
        ("{conditions: [{type: Ready, status: 'True'}]}", "current: Ready is True"),
    ] {
        let reason = format!("no policy selects things.example.com; its status suggests {guess}");
        assert_eq!(thing(green), ("unknown".to_owned(), reason), "{green}");
    }
    assert_eq!(thing("{observedGeneration: 1}").0, "inProgress");
    assert_eq!(
        thing("{conditions: [{type: Stalled, status: 'True', message: stuck}]}"),
        ("failed".into(), "stuck".into())
    );
    let kubernetes =
        |head: &str, rest: &str| of(&format!("{{{head}, metadata: {{name: a}}{rest}}}"));
    assert_eq!(kubernetes("apiVersion: v1, kind: ServiceAccount", "").0, "current");
    assert_eq!(kubernetes("apiVersion: networking.k8s.io/v1, kind: Ingress", "").0, "current");
    assert_eq!(kubernetes("apiVersion: gateway.example.k8s.io/v1, kind: Gate", "").0, "unknown");
    // kstatus reports these as Current or InProgress.
    for (head, status, reason) in [
        (
            "apiVersion: v1, kind: Pod",
            "{phase: Failed, reason: Evicted, message: low on memory}",
            "low on memory",
        ),
        ("apiVersion: v1, kind: PersistentVolumeClaim", "{phase: Lost}", "phase Lost"),
        (
            "apiVersion: v1, kind: Node",
            "{conditions: [{type: Ready, status: Unknown, message: no kubelet}]}",
            "no kubelet",
        ),
        (
            "apiVersion: apiregistration.k8s.io/v1, kind: APIService",
            "{conditions: [{type: Available, status: 'False'}]}",
            "Available is False",
        ),
        (
            "apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest",
            "{conditions: [{type: Denied, status: 'True', reason: Nope}]}",
            "Nope",
        ),
    ] {
        assert_eq!(
            kubernetes(head, &format!(", status: {status}")),
            ("failed".into(), reason.into()),
            "{head}"
        );
    }
    let scaler = "apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler";
    let active = |reason: &str| {
        kubernetes(scaler, &format!(", status: {{conditions: [{{type: ScalingActive, status: 'False', reason: {reason}}}]}}")).0
    };
    assert_eq!(
        (active("FailedGetScale"), active("ScalingDisabled")),
        ("failed".into(), "current".into())
    );
}

#[test]
fn the_kstatus_of_flux_can_be_chosen() {
    let job = "{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {suspend: true}, \
        status: {conditions: [{type: Suspended, status: 'True'}]}}";
    let of = |arguments: &[&str]| {
        let ended = status(&[&["-o", "json"], arguments].concat(), job);
        ended.objects()[0]["status"].clone()
    };
    assert_eq!([of(&[]), of(&["--kstatus", "fluxcd"])], ["Current", "InProgress"]);
}

#[test]
fn an_object_has_a_standing_for_each_policy_that_selects_it() {
    let folder = tempfile::tempdir().unwrap();
    let policy = |name: &str, resource: &str| {
        format!(
            "apiVersion: statusgate.dev/v1alpha1\nkind: StatusPolicy\nmetadata: {{name: {name}}}\nspec:\n  \
             convention: appcat\n  resources:\n    - {{apiGroups: [example.com], apiVersions: ['*'], \
             resources: ['{resource}']}}\n"
        )
    };
    let paths = ["one", "two", "other"].map(|name| {
        let resource = if name == "other" { "others" } else { "*" };
        write_in(&folder, &format!("{name}.yaml"), &policy(name, resource))
    });
    let mut arguments = vec!["-o", "json"];
    arguments.extend(paths.iter().flat_map(|path| ["--policies", path]));
    let line = &status(&arguments, CURRENT).objects()[0];
    assert_eq!((&line["policies"], &line["phase"]), (&json!(["one", "two"]), &json!(null)));
    let others = line["otherPolicies"].as_array().unwrap();
    assert_eq!((others.len(), &others[0]["policy"]), (1, &json!("two")));
    assert_eq!(others[0]["admissiblePhases"], line["admissiblePhases"]);
}

#[test]
fn the_default_output_is_a_table() {
    let hostile = json!({"apiVersion": "example.com/v1", "kind": "Thing",
        "metadata": {"name": "x\u{1b}[2J"}, "status": {"conditions": [{"type": "Ready",
            "status": "False", "message": format!("two\nlines \u{1b}[31m{}", "long ".repeat(50))}]}});
    let ended = status(&[], &hostile.to_string());
    assert_eq!(ended.out.lines().count(), 4, "{}", ended.out);
    assert!(!ended.out.contains('\u{1b}'), "{}", ended.out);
    assert!(ended.out.contains('…'), "{}", ended.out);
    let table = status(&[], CURRENT).out;
    assert_eq!(
        table,
        "KIND   NAME  HEALTH   KSTATUS  REASON\n\
         Thing  s/a   unknown  Current  no policy selects things.example.com\n\n\
         1 object: 1 unknown\n"
    );
}

#[test]
fn an_object_is_one_line_with_a_long_name_too_and_has_a_time() {
    let certificate = |name: &str, time: &str| {
        format!(
            "---\napiVersion: cert-manager.io/v1\nkind: Certificate\nmetadata: {{name: {name}, namespace: dk, \
             creationTimestamp: \"2026-11-25T10:00:00Z\"}}\nstatus:\n  conditions:\n  - {{type: Ready, status: \"True\", \
             reason: Ready{time}}}\n"
        )
    };
    let long = "x".repeat(60);
    let time = ", lastTransitionTime: \"2026-11-26T10:00:00Z\"";
    let input = certificate(&long, time) + &certificate("a", "") + "---\n" + CURRENT;
    let table = status(&["--now=2026-11-26T13:30:00Z"], &input).out;
    let name = |name: &str| format!("{name:<63}");
    let kind = |kind: &str| format!("{kind:<11}");
    let expected = [
        format!("{}  {}  HEALTH   SINCE  KSTATUS  REASON", kind("KIND"), name("NAME")),
        format!("{}  dk/{long}  current  3h     Current  Ready", kind("Certificate")),
        format!("{}  {}  current  1d     Current  Ready", kind("Certificate"), name("dk/a")),
        format!(
            "{}  {}  unknown         Current  no policy selects things.example.com",
            kind("Thing"),
            name("s/a")
        ),
    ];
    let table: Vec<&str> = table.lines().take(4).collect();
    assert_eq!(table, expected);
    let lines = status(&["-o", "json"], &input).objects();
    let since: Vec<&Value> = lines.iter().map(|line| &line["since"]).collect();
    assert_eq!(
        since,
        [&json!("2026-11-26T10:00:00Z"), &json!("2026-11-25T10:00:00Z"), &json!(null)]
    );
    // Without a policy, the conditions of most kinds count.
    let other = input.replace("cert-manager.io/v1", "example.com/v1");
    let line = &status(&["-o", "json"], &other).objects()[0];
    assert_eq!((&line["policies"], &line["since"]), (&json!([]), &json!("2026-11-26T10:00:00Z")));
}

/// A cluster with deployments, as its API server lists them: without apiVersion and kind.
async fn cluster(count: usize) -> Api {
    let deployment = |name: &str, available: &str| {
        let condition = json!({"type": "Available", "status": available});
        json!({"metadata": {"name": name, "namespace": "shop", "generation": 1,
            "creationTimestamp": "2026-11-25T10:00:00Z"}, "spec": {"replicas": 1},
            "status": {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1,
                "readyReplicas": 1, "availableReplicas": 1, "conditions": [condition]}})
    };
    let kinds = [("deployments", "Deployment"), ("deployments/status", "Deployment")];
    let items = (0..count).map(|number| deployment(&format!("web-{number}"), "True"));
    let list =
        json!({"kind": "DeploymentList", "metadata": {}, "items": items.collect::<Vec<_>>()});
    let one = deployment("web", "False");
    let in_shop = list.clone();
    let routes = Router::new()
        .route("/apis", get(async || groups(&["apps"])))
        .route("/api/v1", get(async || resources("", &[])))
        .route("/apis/apps/v1", get(async move || resources("apps", &kinds)))
        .route("/apis/apps/v1/deployments", get(async move || answer(200, &list)))
        .route(
            "/apis/apps/v1/namespaces/shop/deployments",
            get(async move || answer(200, &in_shop)),
        )
        .route(
            "/apis/apps/v1/namespaces/shop/deployments/{name}",
            get(async move |UrlPath(name): UrlPath<String>| match name.as_str() {
                "web" => answer(200, &one),
                _ => failure(404, "not found", &name),
            }),
        );
    Api::serve(routes).await
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_come_from_a_cluster() {
    let api = cluster(2).await;
    let head = "KIND        NAME        HEALTH   SINCE  KSTATUS  REASON\n";
    for words in
        [&["deployments", "-A"][..], &["deploy.v1.apps", "-n=shop"], &["Deployment", "-n=shop"]]
    {
        let ended = api.run("status", &[words, &["--now=2026-11-25T10:05:00Z"]].concat()).await;
        let Some(short) = words[0].strip_prefix("deploy.") else {
            assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{words:?}");
            assert!(ended.out.starts_with(head), "{}", ended.out);
            assert!(ended.out.ends_with("\n2 objects: 2 current\n"), "{}", ended.out);
            continue;
        };
        // The fake API server has no short names.
        assert!(ended.err.contains(&format!("does not serve deploy.{short}")), "{}", ended.err);
    }
    let ended =
        api.run("status", &["deployments/web", "deployments/db", "-n=shop", "-o=json"]).await;
    assert_eq!((ended.code, ended.err.as_str()), (Some(2), "deployments.apps/db does not exist\n"));
    let lines = ended.objects();
    let [line] = lines.as_slice() else { panic!("{lines:?}") };
    let members: Vec<&str> = line.as_object().unwrap().keys().map(String::as_str).collect();
    assert!(!members.iter().any(|member| ["file", "line", "document"].contains(member)), "{line}");
    assert_eq!(
        (&line["apiVersion"], &line["kind"], &line["namespace"], &line["name"], &line["status"]),
        (
            &json!("apps/v1"),
            &json!("Deployment"),
            &json!("shop"),
            &json!("web"),
            &json!("InProgress")
        )
    );
    for (words, error) in [
        (&["-A"][..], "which objects? Name a TYPE, such as deployments"),
        (&["deployments/web", "-A"], "need one TYPE, without a name"),
        (&["-f=a.yaml", "-A"], "-f names files, not objects of a cluster"),
    ] {
        let ended = api.run("status", words).await;
        assert!(ended.code == Some(2) && ended.err.contains(error), "{}", ended.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_number_of_objects_of_a_cluster_is_limited() {
    let ended = cluster(20_001).await.run("status", &["deployments", "-A"]).await;
    let error = "only the first 20000 objects are read: name a namespace or a selector\n";
    assert_eq!((ended.code, ended.err.as_str()), (Some(2), error));
    assert!(ended.out.ends_with("\n20000 objects: 20000 current\n"), "{}", ended.out.len());
}

#[test]
fn the_exit_code_is_1_if_an_object_needs_attention() {
    let conditions = |kind: &str, status: Value| {
        json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"},
            "status": {"conditions": [{"type": kind, "status": status}]}})
        .to_string()
    };
    let claim = |phase: &str, ready: &str| {
        json!({"apiVersion": "vshn.appcat.vshn.io/v1", "kind": "VSHNRedis", "status":
            {"phase": phase, "conditions": [{"type": "Ready", "status": ready}]}})
        .to_string()
    };
    for (input, code) in [
        (String::new(), 0),
        (CURRENT.to_owned(), 0),
        (conditions("Ready", json!("False")), 0),
        (conditions("Stalled", json!("True")), 1),
        (conditions("Ready", json!(true)), 1),
        (claim("Provisioning", "False"), 0),
        (claim("Ready", "False"), 1),
        (claim("ready", "True"), 1),
        (format!("{CURRENT}---\n{FAILED}"), 1),
        ("broken: [".to_owned(), 2),
        ("no: object".to_owned(), 2),
    ] {
        for output in ["table", "json"] {
            assert_eq!(status(&["-o", output], &input).code, Some(code), "{input}");
        }
    }
}

#[test]
fn an_unreadable_object_is_reported_and_the_others_are_printed() {
    let ended = status(&["-f", "-", "-f", "no/such/file.yaml"], &format!("a: [\n---\n{CURRENT}"));
    assert_eq!(ended.code, Some(2));
    assert!(ended.out.contains("Thing  s/a   unknown"), "{}", ended.out);
    assert!(ended.err.contains("no/such/file.yaml: error: this cannot be read"), "{}", ended.err);
    assert!(ended.err.contains("stdin:1:4: error: invalid YAML"), "{}", ended.err);
    let ended = status(&["--policies", "no/such/policy.yaml"], CURRENT);
    assert_eq!((ended.out.as_str(), ended.code), ("", Some(2)));
    assert!(ended.err.contains("no/such/policy.yaml"), "{}", ended.err);
}

#[test]
fn the_option_now_sets_the_time() {
    let pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "p", "creationTimestamp": "2024-06-01T12:00:00Z"},
        "status": {"phase": "Pending", "conditions":
            [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}});
    for (now, expected) in
        [("2024-06-01T12:00:14Z", "InProgress"), ("2024-06-01T12:00:15Z", "Failed")]
    {
        let ended = status(&["-o", "json", "--now", now], &pod.to_string());
        assert_eq!(ended.objects()[0]["status"], expected, "{now}");
    }
}
