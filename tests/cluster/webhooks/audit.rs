//! `statusgate audit`: stored objects, output, reports and watch.
//!
//! No registration selects the labels of the objects, so the tests can store anything in them.

use std::net::SocketAddr;
use std::path::Path;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::cluster::{Cluster, in_cluster};
use crate::command::{Ended, STATUSGATE, run};
use crate::harness::leash::Leashed;
use crate::harness::objects::{
    CLUSTER_ROLE, CLUSTER_ROLE_BINDING, CRD, GADGET, Kind, NAMESPACE, Objects, WIDGET, condition,
    name_of, refusal,
};
use crate::harness::patience::until;

#[test]
fn audit_judges_stored_objects_and_prints_the_worst_rules_first() {
    in_cluster(async |cluster| {
        let label = "audit-mixed";
        let not_ready = [condition("Ready", "False", 0)];
        let mut timeless = not_ready[0].clone();
        timeless.as_object_mut().unwrap().remove("lastTransitionTime");
        for (name, status) in [
            ("nonsense", json!({"phase": "Nonsense", "instanceNamespace": "n"})),
            ("old", ready(&json!(not_ready))),
            ("new", ready(&json!([timeless]))),
            ("clean", json!({"phase": "Unknown"})),
            ("empty", json!(null)),
        ] {
            store(&cluster.admin(WIDGET), label, &format!("audit-{name}"), &status).await;
        }
        store(&cluster.admin(GADGET), label, "audit-gadget", &json!({"phase": "Unknown"})).await;

        let selector = format!("--selector=test={label}");
        let (code, lines) = json_lines(cluster, &[&selector]);
        assert_eq!(code, Some(1), "{lines:#?}");
        let of = |name: &str| lines.iter().find(|line| line["name"] == name).unwrap();
        assert_eq!(rules(of("audit-nonsense")), ["appcat/phase-value deny"]);
        assert_eq!(rules(of("audit-old")), ["appcat/phase-ready deny"]);
        assert!(rules(of("audit-new")).contains(&"appcat/phase-ready deny".to_owned()));
        assert_eq!(
            (of("audit-clean")["worst"].clone(), rules(of("audit-clean")).len()),
            (json!(null), 0)
        );
        assert_eq!(
            (&of("audit-empty")["toBackfill"], &of("audit-clean")["toBackfill"]),
            (&json!(true), &json!(false))
        );
        let summary = &lines.last().unwrap()["summary"];
        assert_eq!((&summary["objects"], &summary["worst"]["deny"]), (&json!(6), &json!(3)));
        let kinds = summary["kinds"].as_array().unwrap();
        assert_eq!(kinds[0]["kind"], "Widget", "the worst is first");
        assert_eq!(
            kinds[0]["phases"],
            json!({"(none)": 1, "Nonsense": 1, "Ready": 2, "Unknown": 1})
        );
        assert_eq!(kinds[0]["conditions"], json!({"Ready": {"False": 2}}));

        // A disagreement that is minutes old may be temporary; one of 2024 is persistent.
        let (_, lines) = json_lines(cluster, &[&selector, "--older-than=2h"]);
        let of = |name: &str| lines.iter().find(|line| line["name"] == name).unwrap();
        assert_eq!(rules(of("audit-old")), ["appcat/phase-ready deny"]);
        assert!(!rules(of("audit-new")).contains(&"appcat/phase-ready deny".to_owned()));
        assert_eq!(of("audit-new")["passing"][0]["rule"], "appcat/phase-ready");

        let table = audit(cluster, &[&selector, "--examples=1"]);
        let text = table.out;
        let row = text.lines().nth(1).unwrap().split_whitespace().collect::<Vec<_>>();
        assert_eq!(row[..4], ["widgets", "Widget", "5", "3"], "{text}");
        assert!(text.contains("deny appcat/phase-ready (widgets, Widget)\n  audit-new  status.phase: phase Ready disagrees: condition Ready is False\n  and 1 more\n"), "{text}");

        let only = audit(cluster, &[&selector, "--resource=gadgets"]);
        assert_eq!(only.code, Some(0), "{}", only.text());
        let reports = audit(cluster, &[&selector, "--output=policyreport"]);
        let list: Value = serde_json::from_str(&reports.out).unwrap();
        assert_eq!(list["items"][0]["kind"], "ClusterPolicyReport");
        assert_eq!(list["items"][0]["summary"]["fail"], summary_of_failures(&lines));
    });
}

/// Without an age every deny counts: two of the objects have one each, the third has two.
fn summary_of_failures(lines: &[Value]) -> Value {
    let objects = lines.iter().filter(|line| line.get("summary").is_none());
    let all = objects.flat_map(|line| {
        ["findings", "passing"].map(|member| line[member].as_array().unwrap().clone())
    });
    all.flatten().filter(|found| found["action"] == "deny").count().into()
}

#[test]
fn audit_finds_what_the_registered_webhook_rejects() {
    in_cluster(async |cluster| {
        let label = "audit-twin";
        let statuses = [
            json!({"phase": "ready"}),
            json!({"phase": 5}),
            json!({"phase": "Ready", "conditions": [{"type": "Ready", "status": "Maybe"}]}),
            ready(&json!([condition("PodReady", "False", 0)])),
            ready(&json!([condition("Ready", "True", 0), condition("PodReady", "True", 0)])),
            json!({"phase": "Unknown", "conditions": {}}),
            json!(["no", "object"]),
        ];
        let objects = cluster.admin(WIDGET);
        for (number, status) in statuses.iter().enumerate() {
            store(&objects, label, &format!("audit-twin-{number}"), status).await;
        }
        let (_, lines) = json_lines(cluster, &["--selector=test=audit-twin"]);
        let probe = cluster.object(WIDGET).await;
        let labels = objects.get(&probe).await.unwrap()["metadata"]["labels"].clone();
        let mut denied = 0;
        for (number, status) in statuses.iter().enumerate() {
            let name = format!("audit-twin-{number}");
            let line = lines.iter().find(|line| line["name"] == name.as_str()).unwrap();
            let findings = line["findings"].as_array().unwrap().iter();
            let mut expected: Vec<String> = findings
                .filter(|found| found["action"] == "deny")
                .map(|found| {
                    let text = |member: &str| found[member].as_str().unwrap();
                    format!("{}: {} [{}]", text("field"), text("message"), text("rule"))
                })
                .collect();
            let mut object = objects.named(&cluster.unique("twin"));
            object["metadata"]["labels"] = labels.clone();
            object["status"] = status.clone();
            let created = objects.create(&object).await;
            if expected.is_empty() {
                created.unwrap_or_else(|error| panic!("{status} is taken: {error}"));
                continue;
            }
            denied += 1;
            let causes = refusal(created).details.unwrap().causes;
            let mut said: Vec<String> =
                causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
            said.sort();
            expected.sort();
            assert_eq!(said, expected, "{status}");
        }
        assert!(denied > 3, "{denied}");
    });
}

#[test]
fn reports_are_created_updated_and_deleted() {
    in_cluster(async |cluster| {
        let missing = audit(cluster, &["--write"]);
        assert_eq!(missing.code, Some(2));
        assert!(
            missing.text().contains("does not serve wgpolicyk8s.io/v1alpha2"),
            "{}",
            missing.text()
        );
        let partial = audit(cluster, &["--write", "--selector=a=b"]);
        assert_eq!(partial.code, Some(2));
        assert!(partial.text().contains("--write needs all objects"), "{}", partial.text());

        let crds: Vec<Value> =
            serde_saphyr::from_multiple(include_str!("policyreports.yaml")).unwrap();
        for crd in &crds {
            cluster.admin(CRD).create(crd).await.unwrap();
        }
        let (first, second) = (cluster.admin(FIRST), cluster.admin(SECOND));
        for namespace in ["audit-first", "audit-second"] {
            let namespaces = cluster.admin(NAMESPACE);
            namespaces.create(&namespaces.named(namespace)).await.unwrap();
        }
        store(&first, "audit-report", "bad", &ready(&json!([condition("Ready", "False", 5)])))
            .await;
        store(&second, "audit-report", "good", &json!({"phase": "Unknown"})).await;

        let (reports, others) = (cluster.admin(FIRST_REPORTS), cluster.admin(SECOND_REPORTS));
        until("the reports are served", async || reports.list().await.ok()).await;
        let written = audit(cluster, &["--write"]);
        assert_eq!(written.code, Some(1), "{}", written.text());
        let report = reports.get("statusgate").await.unwrap();
        assert_eq!(
            report["summary"],
            json!({"pass": 0, "fail": 1, "warn": 0, "error": 0, "skip": 0})
        );
        let result = &report["results"][0];
        assert_eq!(
            (&result["rule"], &result["result"]),
            (&json!("appcat/phase-ready"), &json!("fail"))
        );
        assert_eq!(result["resources"][0]["name"], "bad");
        assert_eq!(result["timestamp"]["seconds"], 1_717_243_205);
        assert_eq!(result["properties"]["field"], "status.phase");
        let clean = others.get("statusgate").await.unwrap();
        assert_eq!((&clean["results"], &clean["summary"]["pass"]), (&json!([]), &json!(1)));
        assert_eq!(
            cluster.admin(CLUSTER_REPORTS).get("statusgate").await.unwrap()["kind"],
            "ClusterPolicyReport"
        );

        first.merge_status("bad", json!({"phase": "Provisioning"})).await.unwrap();
        second.delete("good").await.unwrap();
        // An audit of one namespace does not touch the report of the other.
        let written = audit(cluster, &["--write", "--namespace=audit-first"]);
        assert_eq!(written.code, Some(0), "{}", written.text());
        let report = reports.get("statusgate").await.unwrap();
        assert_eq!((&report["results"], &report["summary"]["pass"]), (&json!([]), &json!(1)));
        assert_eq!(
            others.get("statusgate").await.unwrap()["metadata"]["uid"],
            clean["metadata"]["uid"]
        );
        let written = audit(cluster, &["--write"]);
        assert_ne!(written.code, Some(2), "{}", written.text());
        assert_eq!(refusal(others.get("statusgate").await).code, 404);
    });
}

#[test]
fn a_kind_that_cannot_be_listed_is_reported_and_the_others_are_judged() {
    in_cluster(async |cluster| {
        let label = "audit-rights";
        store(&cluster.admin(WIDGET), label, "audit-rights", &json!({"phase": "Nonsense"})).await;
        let roles = cluster.admin(CLUSTER_ROLE);
        let mut role = roles.named("audit-widgets");
        role["rules"] = json!([{"apiGroups": ["test.statusgate.dev"], "resources": ["widgets"],
            "verbs": ["get", "list"]}]);
        roles.create(&role).await.unwrap();
        let bindings = cluster.admin(CLUSTER_ROLE_BINDING);
        let mut binding = bindings.named("audit-widgets");
        binding["roleRef"] = json!({"apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole", "name": "audit-widgets"});
        binding["subjects"] = json!([{"apiGroup": "rbac.authorization.k8s.io", "kind": "User",
            "name": "auditor"}]);
        bindings.create(&binding).await.unwrap();

        let kubeconfig = cluster.plane().kubeconfig_of("auditor");
        let selector = format!("--selector=test={label}");
        // The authorizer may not know a new role yet.
        let output = until("the role counts", async || {
            let output = audit_as(&kubeconfig, &[&selector, "--output=json"]);
            output.text().contains("audit-rights").then_some(output)
        })
        .await;
        assert_eq!(output.code, Some(2), "{}", output.text());
        let text = output.text();
        assert!(text.contains("cannot list gadgets.test.statusgate.dev: not allowed: "), "{text}");
        let last = text.lines().find(|line| line.starts_with("{\"summary\"")).unwrap();
        let summary: Value = serde_json::from_str(last).unwrap();
        let kinds = summary["summary"]["kinds"].as_array().unwrap();
        let complete =
            |kind: &str| kinds.iter().find(|row| row["kind"] == kind).unwrap()["complete"].clone();
        assert_eq!((complete("Widget"), complete("Gadget")), (json!(true), json!(false)));
    });
}

#[test]
fn an_unreachable_server_is_an_error_with_its_address() {
    in_cluster(async |cluster| {
        let path = cluster.plane().changed_kubeconfig("to-nowhere", |text| {
            let start = text.find("https://").unwrap();
            let end = start + text[start..].find(['\n', '"']).unwrap();
            text.replace(&text[start..end], "https://127.0.0.1:1")
        });
        let output = audit_as(&path, &[]);
        assert_eq!(output.code, Some(2));
        assert!(output.text().contains("at https://127.0.0.1:1"), "{}", output.text());
    });
}

#[test]
fn a_watch_separates_persistent_from_temporary_findings_and_ends_on_a_signal() {
    in_cluster(async |cluster| {
        let label = "audit-watch";
        let objects = cluster.admin(WIDGET);
        store(&objects, label, "audit-lasting", &ready(&json!([condition("Ready", "False", 0)])))
            .await;
        let mut timeless = condition("Ready", "False", 0);
        timeless.as_object_mut().unwrap().remove("lastTransitionTime");
        store(&objects, label, "audit-passing", &ready(&json!([timeless]))).await;

        let watch = Leashed::start(
            &cluster.plane().folder("audit-watch").join("log"),
            STATUSGATE,
            [
                "audit".to_owned(),
                "--watch".to_owned(),
                "--interval=500ms".to_owned(),
                "--older-than=2h".to_owned(),
                "--probe-listen=127.0.0.1:0".to_owned(),
                format!("--selector=test={label}"),
                "--resource=widgets".to_owned(),
                format!("--kubeconfig={}", cluster.plane().kubeconfig().display()),
            ]
            .into_iter()
            .chain(POLICIES.map(str::to_owned)),
        );
        let probes: SocketAddr = until("the watch listens", async || {
            let log = watch.log();
            let (_, rest) = log.split_once("\"probe_address\":\"")?;
            rest.split_once('"')?.0.parse().ok()
        })
        .await;
        until("the first pass is over", async || {
            get(probes, "/readyz").await?.starts_with("HTTP/1.1 200").then_some(())
        })
        .await;
        assert!(get(probes, "/healthz").await.unwrap().starts_with("HTTP/1.1 200"));
        let of = r#"{policy="widgets",resource="widgets.test.statusgate.dev"}"#;
        let text = get(probes, "/metrics").await.unwrap();
        for line in [
            format!("statusgate_audit_disagreements{of} 2"),
            format!("statusgate_audit_lasting_disagreements{of} 1"),
            r#"statusgate_audit_findings{policy="widgets",resource="widgets.test.statusgate.dev",rule="appcat/phase-ready",action="deny"} 1"#.to_owned(),
            r#"statusgate_audit_objects{policy="widgets",resource="widgets.test.statusgate.dev",phase="Ready"} 2"#.to_owned(),
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
        }

        objects.merge("audit-lasting", json!({"status": {"phase": "Unknown"}})).await.unwrap();
        until("it is seen to be over", async || {
            let text = get(probes, "/metrics").await?;
            let over = format!("statusgate_audit_lasting_disagreements{of} 0\n");
            (text.contains(&over) && !text.contains("appcat/phase-ready")).then_some(())
        })
        .await;
        watch.signal("TERM");
        assert_eq!(watch.ended(), "0", "{}", watch.log());
    });
}

/// `phase: Ready` with these conditions, since long ago.
fn ready(conditions: &Value) -> Value {
    json!({"phase": "Ready", "instanceNamespace": "n", "conditions": conditions})
}

/// Stores an object with a status that no webhook judges.
async fn store(objects: &Objects, label: &str, name: &str, status: &Value) {
    let mut object = objects.named(name);
    object["metadata"]["labels"] = json!({"test": label});
    if !status.is_null() {
        object["status"] = status.clone();
    }
    let created = until("an object is created", async || objects.create(&object).await.ok()).await;
    // A creation drops the status if the kind has the status subresource.
    if created.get("status").is_none() && !status.is_null() {
        objects.merge_status(name_of(&object), status.clone()).await.unwrap();
    }
}

fn audit(cluster: &Cluster, arguments: &[&str]) -> Ended {
    audit_as(&cluster.plane().kubeconfig(), arguments)
}

fn audit_as(kubeconfig: &Path, arguments: &[&str]) -> Ended {
    let kubeconfig = kubeconfig.to_str().unwrap();
    run([&["audit", "--kubeconfig", kubeconfig], &POLICIES[..], arguments].concat())
}

fn json_lines(cluster: &Cluster, arguments: &[&str]) -> (Option<i32>, Vec<Value>) {
    let output = audit(cluster, &[arguments, &["--output=json"]].concat());
    assert!(!output.out.is_empty(), "{}", output.text());
    let lines = output.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (output.code, lines)
}

/// The findings of a line, as `rule action`.
fn rules(line: &Value) -> Vec<String> {
    let findings = line["findings"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    findings.map(|found| format!("{} {}", text(&found["rule"]), text(&found["action"]))).collect()
}

/// The whole answer of a probe.
async fn get(probes: SocketAddr, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(probes).await.ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: probe\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.ok()?;
    Some(answer)
}

/// The policies of the kinds here.
const POLICIES: [&str; 2] = [
    concat!("--policies=", env!("CARGO_MANIFEST_DIR"), "/deploy/policies/appcat.yaml"),
    concat!("--policies=", env!("CARGO_MANIFEST_DIR"), "/tests/cluster/harness/policies.yaml"),
];

const FIRST: Kind = claims("/apis/vshn.appcat.vshn.io/v1/namespaces/audit-first/vshnpostgresqls");
const SECOND: Kind = claims("/apis/vshn.appcat.vshn.io/v1/namespaces/audit-second/vshnpostgresqls");
const FIRST_REPORTS: Kind =
    reports("/apis/wgpolicyk8s.io/v1alpha2/namespaces/audit-first/policyreports");
const SECOND_REPORTS: Kind =
    reports("/apis/wgpolicyk8s.io/v1alpha2/namespaces/audit-second/policyreports");
const CLUSTER_REPORTS: Kind = reports("/apis/wgpolicyk8s.io/v1alpha2/clusterpolicyreports");

const fn claims(path: &'static str) -> Kind {
    Kind { api_version: "vshn.appcat.vshn.io/v1", kind: "VSHNPostgreSQL", path }
}

const fn reports(path: &'static str) -> Kind {
    Kind { api_version: "wgpolicyk8s.io/v1alpha2", kind: "PolicyReport", path }
}
