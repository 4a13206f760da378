//! Failures: missing permissions, removed kinds, other schemas, unreachable servers.

use std::fs;

use serde_json::{Value, json};

use super::command::{file, patched, run, start, text};
use crate::harness::objects::{CRD, GADGET, Kind};
use crate::harness::patience::until;
use crate::harness::pool::in_own_cluster;

const FLEETING: Kind = Kind {
    api_version: "fleeting.statusgate.dev/v1",
    kind: "Fleeting",
    path: "/apis/fleeting.statusgate.dev/v1/fleetings",
};
const STRICT: Kind = Kind {
    api_version: "strict.statusgate.dev/v1",
    kind: "Strict",
    path: "/apis/strict.statusgate.dev/v1/stricts",
};

#[test]
fn a_missing_permission_to_list_or_to_write_is_reported() {
    in_own_cluster(async |plane| {
        plane.create(GADGET, "guarded", 3, json!({})).await;
        let policies = plane.policies();
        let arguments = ["--policies", text(&policies), "--kind=Gadget"];
        let nobody = run("backfill", &plane.kubeconfig_of("nobody"), &arguments);
        assert_eq!(nobody.code, Some(2));
        let expected = "cannot list gadgets.test.statusgate.dev: not allowed: ";
        assert!(nobody.err.contains(expected), "{}", nobody.err);

        let reader = plane.reader().await;
        until("the reader may list", async || {
            let dry = [arguments[0], arguments[1], arguments[2], "--dry-run"];
            (run("backfill", &reader, &dry).code == Some(0)).then_some(())
        })
        .await;
        let reading = run("backfill", &reader, &arguments);
        assert_eq!(reading.code, Some(2));
        let expected = "cannot patch gadgets.test.statusgate.dev/status: not allowed: ";
        assert!(reading.err.contains(expected), "{}", reading.err);
        for gadget in plane.labelled(GADGET, "guarded").await {
            assert_eq!(gadget.get("status"), None);
        }
    });
}

#[test]
fn a_kind_that_is_removed_during_the_run_is_reported_and_the_rest_is_done() {
    in_own_cluster(async |plane| {
        let crd = definition(
            "fleeting",
            "Fleeting",
            &json!({"x-kubernetes-preserve-unknown-fields": true}),
        );
        plane.objects(CRD).create(&crd).await.unwrap();
        plane.create(FLEETING, "fleeting", 200, json!({})).await;
        plane.create(GADGET, "staying", 5, json!({})).await;
        let folder = plane.folder("fleeting");
        // Kinds are ordered by group and plural, so the kind that stays comes after the removed one.
        let policy = file(&folder, "policy.yaml");
        fs::write(
            &policy,
            policy_for(
                "fleeting",
                &[("fleeting.statusgate.dev", "fleetings"), ("test.statusgate.dev", "gadgets")],
            ),
        )
        .unwrap();
        let arguments = ["--policies", text(&policy), "--output=json", "--qps=20"];
        let backfill = start(&file(&folder, "log"), &plane.kubeconfig(), &arguments);
        until("some are patched", async || (patched(&backfill.log()).len() >= 20).then_some(()))
            .await;
        plane.objects(CRD).delete("fleetings.fleeting.statusgate.dev").await.unwrap();
        assert_eq!(backfill.ended(), "2", "{}", backfill.log());
        let log = backfill.log();
        let expected = "fleetings.fleeting.statusgate.dev is no longer served: its \
                        CustomResourceDefinition was deleted";
        assert!(log.contains(expected), "{log}");
        assert!(log.contains("PATCHED"), "the log lists the written objects: {log}");
        for gadget in plane.labelled(GADGET, "staying").await {
            assert_eq!(gadget["status"]["phase"], "Unknown", "{log}");
        }
    });
}

#[test]
fn fields_that_a_schema_prunes_or_rejects_are_reported_before_the_first_write() {
    in_own_cluster(async |plane| {
        let status = json!({"type": "object", "properties": {
            "phase": {"type": "string", "enum": ["Unknown", "Ready"]},
            "lastTransitionTime": {"type": "string"},
            "billing": {"type": "object"}}});
        let crd = definition("strict", "Strict", &status);
        plane.objects(CRD).create(&crd).await.unwrap();
        plane.create(STRICT, "strict", 3, json!({})).await;
        let folder = plane.folder("strict");
        let policy = file(&folder, "policy.yaml");
        let text_of = policy_for("strict", &[("strict.statusgate.dev", "stricts")]);
        let text_of = format!(
            "{text_of}  backfill:\n    - {{path: /status/billing, value: null, nullable: true}}\n    - {{path: /status/plan, value: small}}\n"
        );
        fs::write(&policy, text_of).unwrap();
        let arguments = ["--policies", text(&policy)];
        let doctor = run("doctor", &plane.kubeconfig(), &arguments);
        let backfill = run("backfill", &plane.kubeconfig(), &arguments);
        assert_eq!((doctor.code, backfill.code), (Some(1), Some(1)));
        // Cells may be wrapped.
        let doctor = doctor.out.split_whitespace().collect::<Vec<_>>().join(" ");
        for expected in [
            "status.plan is not in the schema",
            "status.billing is not nullable",
            "rejects status.phase: Unsupported value: \"Deleting\"",
        ] {
            assert!(backfill.err.contains(expected), "{expected}: {}", backfill.err);
            assert!(doctor.contains(expected), "{expected}: {doctor}");
        }
        let line = "rejected stricts.strict.statusgate.dev strict-0: ";
        let pruned = "/status/billing, /status/plan was not stored: the schema lacks the field, or does not allow null";
        assert!(backfill.out.contains(&format!("{line}{pruned}")), "{}", backfill.out);
        // The phase is stored by now; the other default cannot be stored.
        let backfill = run("backfill", &plane.kubeconfig(), &arguments);
        assert_eq!(backfill.code, Some(1));
        assert!(
            backfill
                .out
                .contains("nothing was stored: the schema lacks the field, or does not allow null"),
            "{}",
            backfill.out
        );
    });
}

#[test]
fn an_unreachable_server_is_an_error_that_names_the_kubeconfig() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing");
    let ended = run("backfill", &missing, &[]);
    assert_eq!(ended.code, Some(2));
    assert!(
        ended.err.contains(&format!("cannot use the kubeconfig {}", text(&missing))),
        "{}",
        ended.err
    );

    let nowhere = folder.path().join("nowhere");
    let config = "{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: \
        \"https://127.0.0.1:1\"}}], contexts: [{name: c, context: {cluster: c, user: u}}], users: [{name: u, user: {}}]}";
    fs::write(&nowhere, config).unwrap();
    for command in ["backfill", "doctor"] {
        let ended = run(command, &nowhere, &[]);
        assert_eq!(ended.code, Some(2));
        let expected = "cannot ask for the version at https://127.0.0.1:1/";
        assert!(ended.err.contains(expected), "{}", ended.err);
    }
    let ended = run("backfill", &nowhere, &["--context=other"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.err.contains("other"), "{}", ended.err);
}

fn definition(group: &str, kind: &str, status: &Value) -> Value {
    let plural = format!("{}s", kind.to_lowercase());
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}.statusgate.dev")},
        "spec": {
            "group": format!("{group}.statusgate.dev"), "scope": "Cluster",
            "names": {"kind": kind, "plural": plural},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"status": status}}}}],
        },
    })
}

fn policy_for(name: &str, resources: &[(&str, &str)]) -> String {
    let mut text = format!(
        "apiVersion: statusgate.dev/v1alpha1\nkind: StatusPolicy\nmetadata: {{name: {name}}}\nspec:\n  \
         convention: appcat\n  resources:\n"
    );
    for (group, plural) in resources {
        text.push_str(&format!(
            "    - {{apiGroups: [{group}], apiVersions: [v1], resources: [{plural}]}}\n"
        ));
    }
    text
}
