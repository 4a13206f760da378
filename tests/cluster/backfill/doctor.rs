//! `statusgate doctor` with a running server and existing registrations.

use std::fs;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::command::{file, run, text};
use crate::command::STATUSGATE;
use crate::harness::leash::Leashed;
use crate::harness::objects::{MUTATING, VALIDATING};
use crate::harness::patience::until;
use crate::harness::plane::Plane;
use crate::harness::pool::in_own_cluster;

#[test]
fn doctor_passes_a_good_installation_and_reports_the_faults_of_a_bad_one() {
    in_own_cluster(async |plane| {
        // Nothing judges policies in this cluster.
        plane.uninstall().await;
        let folder = plane.folder("doctor");
        let policies = plane.policies();
        for certs in ["certs", "other"] {
            let made = Command::new(STATUSGATE)
                .args(["certs", "--out"])
                .arg(file(&folder, certs))
                .output()
                .unwrap();
            assert!(made.status.success());
        }
        let argument = |name: &str, path: &str| format!("{name}={}", text(&file(&folder, path)));
        let server = Leashed::start(
            &file(&folder, "server.log"),
            STATUSGATE,
            [
                "serve".to_owned(),
                "--listen=127.0.0.1:0".to_owned(),
                "--probe-listen=127.0.0.1:0".to_owned(),
                argument("--tls-cert", "certs/tls.crt"),
                argument("--tls-key", "certs/tls.key"),
                format!("--policies={}", text(&policies)),
                "--log-format=json".to_owned(),
            ],
        );
        let address = until("statusgate listens", async || {
            let log = server.log();
            let (_, rest) = log.split_once("\"address\":\"")?;
            Some(rest.split_once('"')?.0.to_owned())
        })
        .await;

        let good = fs::read(file(&folder, "certs/ca.crt")).unwrap();
        register(plane, &address, &good, true).await;
        let arguments = ["--policies", text(&policies), "--output=json"];
        let (code, checks) = doctor(plane, &arguments);
        assert_eq!(code, Some(0), "{checks:#?}");
        let ok: Vec<&str> =
            of_level(&checks, "ok").map(|check| check["check"].as_str().unwrap()).collect();
        for expected in
            ["api-server", "schema", "rules", "settings", "ca-bundle", "certificate", "reachable"]
        {
            assert!(ok.contains(&expected), "{expected}: {ok:?}");
        }

        let typo = "apiVersion: statusgate.dev/v1alpha1\nkind: StatusPolicy\nmetadata: {name: typo}\nspec: {convention: kstatus, \
                    resources: [{apiGroups: [test.statusgate.dev], apiVersions: [v1], resources: [gadgets]}], preserve: [/status/phaze]}\n";
        let path = file(&folder, "typo.yaml");
        fs::write(&path, typo).unwrap();
        let with_typo = [&arguments[..], &["--policies", text(&path)]].concat();
        let (code, checks) = doctor(plane, &with_typo);
        assert_eq!(code, Some(1), "{checks:#?}");
        let [problem] = &Vec::from_iter(of_level(&checks, "problem"))[..] else {
            panic!("{checks:#?}");
        };
        let found = "/status/phaze is not in the schema of gadgets.test.statusgate.dev v1";
        assert_eq!((&problem["found"], &problem["check"]), (&json!(found), &json!("schema")));
        assert!(problem["of"].as_str().unwrap().ends_with("typo.yaml:4"), "{problem}");

        let bad = fs::read(file(&folder, "other/ca.crt")).unwrap();
        register(plane, &address, &bad, false).await;
        let (code, checks) = doctor(plane, &arguments);
        assert_eq!(code, Some(1), "{checks:#?}");
        let problems: Vec<(&str, &str)> = of_level(&checks, "problem")
            .map(|check| (check["check"].as_str().unwrap(), check["found"].as_str().unwrap()))
            .collect();
        let ca = ("ca-bundle", "the registered CA did not issue the served certificate");
        let rules = ("rules", "the rules do not match UPDATE of gadgets/status");
        assert!(problems.contains(&ca) && problems.contains(&rules), "{problems:?}");

        server.signal("KILL");
        server.ended();
        let (code, checks) = doctor(plane, &arguments);
        assert_eq!(code, Some(1));
        let unreachable = |check: &Value| {
            check["check"] == "reachable"
                && check["found"].as_str().unwrap().starts_with(&format!("cannot reach {address}"))
        };
        assert!(of_level(&checks, "problem").any(unreachable), "{checks:#?}");
        for kind in [MUTATING, VALIDATING] {
            plane.objects(kind).delete("statusgate").await.unwrap();
        }
    });
}

fn doctor(plane: &Plane, arguments: &[&str]) -> (Option<i32>, Vec<Value>) {
    let ended = run("doctor", &plane.kubeconfig(), arguments);
    let document: Value = serde_json::from_str(&ended.out).expect(&ended.err);
    (ended.code, document["checks"].as_array().unwrap().clone())
}

fn of_level<'c>(checks: &'c [Value], level: &str) -> impl Iterator<Item = &'c Value> {
    checks.iter().filter(move |check| check["level"] == *level)
}

/// Registers both webhooks or replaces them. Without `right` they select the main resource of gadgets.
async fn register(plane: &Plane, address: &str, ca: &[u8], right: bool) {
    let gadgets = if right { "gadgets/status" } else { "gadgets" };
    let rule = |group: &str, operations: &[&str], resources: &[&str]| {
        json!({"apiGroups": [group], "apiVersions": ["v1"], "operations": operations,
            "resources": resources, "scope": "*"})
    };
    for (kind, path) in [(MUTATING, "mutate"), (VALIDATING, "validate")] {
        let objects = plane.objects(kind);
        let mut document = objects.named("statusgate");
        document["webhooks"] = json!([{
            "name": format!("{path}.statusgate.dev"),
            "admissionReviewVersions": ["v1"],
            "clientConfig": {"url": format!("https://{address}/{path}"), "caBundle": STANDARD.encode(ca)},
            "failurePolicy": "Ignore", "matchPolicy": "Equivalent", "sideEffects": "None", "timeoutSeconds": 5,
            "rules": [
                rule("vshn.appcat.vshn.io", &["UPDATE"], &["xvshnpostgresqls/status", "vshnpostgresqls/status"]),
                rule("test.statusgate.dev", &["UPDATE"], &[gadgets]),
                rule("test.statusgate.dev", &["CREATE", "UPDATE"], &["widgets"]),
            ],
        }]);
        if path == "mutate" {
            document["webhooks"][0]["reinvocationPolicy"] = "IfNeeded".into();
        }
        if let Ok(found) = objects.get("statusgate").await {
            document["metadata"]["resourceVersion"] = found["metadata"]["resourceVersion"].clone();
            objects.put(&document).await.unwrap();
        } else {
            objects.create(&document).await.unwrap();
        }
    }
}
