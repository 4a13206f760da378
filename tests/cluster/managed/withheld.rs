//! What the schema of a resource rejects is not set: no writer gets an error about a value that it never sent.

use serde_json::{Value, json};

use super::replica::Installation;
use crate::harness::objects::{CONVENTION, CRD, Kind, POLICY, condition_of};
use crate::harness::patience::until;
use crate::harness::plane::Plane;
use crate::harness::pool::in_own_cluster;

const THING: Kind = Kind {
    api_version: "test.statusgate.dev/v1",
    kind: "Thing",
    path: "/apis/test.statusgate.dev/v1/things",
};

/// The definition of things, whose status has this schema.
fn things(properties: &Value, required: &[&str]) -> Value {
    json!({
        "apiVersion": CRD.api_version, "kind": CRD.kind, "metadata": {"name": "things.test.statusgate.dev"},
        "spec": {
            "group": "test.statusgate.dev", "scope": "Cluster",
            "names": {"kind": "Thing", "plural": "things", "singular": "thing"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"status":
                    {"type": "object", "properties": properties, "required": required}}}},
            }],
        },
    })
}

fn convention() -> Value {
    json!({
        "apiVersion": "statusgate.dev/v1alpha1", "kind": "StatusConvention", "metadata": {"name": "things"},
        "spec": {
            "extends": "metav1",
            "phase": {"path": "/status/phase", "default": "Unknown", "values": [
                {"phase": "Ready"}, {"phase": "Unknown"},
                {"phase": "Deleting", "imposed": {"when": {"deleting": true}, "since": "/metadata/deletionTimestamp"}},
            ]},
        },
    })
}

fn policy(backfill: &Value) -> Value {
    json!({
        "apiVersion": POLICY.api_version, "kind": POLICY.kind, "metadata": {"name": "things"},
        "spec": {
            "convention": "things", "enforcement": "Audit", "backfill": backfill,
            "resources": [{"apiGroups": ["test.statusgate.dev"], "apiVersions": ["v1"], "resources": ["things"]}],
        },
    })
}

async fn define(plane: &Plane, definition: Value) {
    let name = "things.test.statusgate.dev";
    plane.objects(CRD).apply(name, "test", definition).await.unwrap();
}

/// The condition Accepted, when it has this reason.
async fn accepted(plane: &Plane, reason: &str) -> String {
    until(&format!("the reason {reason}"), async || {
        let policy = plane.objects(POLICY).get("things").await.ok()?;
        let accepted = condition_of(&policy, "Accepted");
        let is_enforced = condition_of(&policy, "Enforced")["status"] == "True";
        (is_enforced && accepted["reason"] == reason)
            .then(|| accepted["message"].as_str().map(str::to_owned))?
    })
    .await
}

#[test]
fn what_the_schema_rejects_is_withheld_and_the_policy_says_so() {
    in_own_cluster(async |plane| {
        let installation = Installation::new(plane, &["--log=info"]).await;
        let replica = installation.replica("one").await;
        let phase = json!({"type": "string", "enum": ["Ready", "Failed"]});
        let properties = json!({"phase": phase, "code": {"type": "integer"},
            "plan": {"type": "string", "maxLength": 3}, "tier": {"type": "string"}});
        define(plane, things(&properties, &[])).await;
        plane.objects(CONVENTION).create(&convention()).await.unwrap();
        let defaults = json!([{"path": "/status/plan", "value": "large"}, {"path": "/status/tier", "value": "gold"}]);
        plane.objects(POLICY).create(&policy(&defaults)).await.unwrap();
        let message = accepted(plane, "DefaultsWithheld").await;
        for part in [
            "things.test.statusgate.dev v1: the API server rejects status.phase",
            "supported values: \"Ready\", \"Failed\"",
            "the API server rejects status.plan",
        ] {
            assert!(message.contains(part), "{message}");
        }
        assert!(!message.contains("tier"), "{message}");
        let logged = "a schema rejects a value of a policy: it is withheld";
        assert_eq!(replica.log().matches(logged).count(), 2, "{}", replica.log());

        let objects = plane.objects(THING);
        let mut thing = objects.named("one");
        thing["metadata"]["finalizers"] = json!(["test.statusgate.dev/wait"]);
        objects.create(&thing).await.unwrap();
        let stored = objects.merge_status("one", json!({"code": 1})).await.unwrap();
        assert_eq!(stored["status"], json!({"code": 1, "tier": "gold"}), "what is sound is set");
        // The imposed phase, too: otherwise nothing could write the status during the finalization.
        objects.delete("one").await.unwrap();
        let stored = objects.merge_status("one", json!({"code": 2})).await.unwrap();
        assert_eq!(stored["status"], json!({"code": 2, "tier": "gold"}));
        let withheld = "statusgate_changes_total{policy=\"things\",change=\"withheld\"} ";
        assert!(replica.metric(withheld).await >= Some(4.0));

        // Once the schema has the values, they are set.
        let open = json!({"phase": {"type": "string"}, "code": {"type": "integer"},
            "plan": {"type": "string"}, "tier": {"type": "string"}});
        define(plane, things(&open, &[])).await;
        accepted(plane, "Accepted").await;
        let stored = objects.merge_status("one", json!({"code": 3})).await.unwrap();
        assert_eq!(stored["status"]["phase"], "Deleting", "{stored:#}");
        assert_eq!(stored["status"]["plan"], "large", "{stored:#}");
        objects.merge("one", json!({"metadata": {"finalizers": null}})).await.unwrap();
    });
}

#[test]
fn a_sound_default_is_withheld_while_the_stored_status_lacks_what_a_newer_schema_requires() {
    in_own_cluster(async |plane| {
        let installation = Installation::new(plane, &[]).await;
        let replica = installation.replica("one").await;
        let properties = json!({"code": {"type": "integer"}, "id": {"type": "string"}, "tier": {"type": "string"},
            "nodes": {"type": "object", "properties": {"state": {"type": "string"}}}});
        define(plane, things(&properties, &[])).await;
        let objects = until("the definition is served", async || {
            let objects = plane.objects(THING);
            objects.create(&objects.named("one")).await.ok().map(|_| objects)
        })
        .await;
        objects.merge_status("one", json!({"code": 1, "nodes": {"state": "Up"}})).await.unwrap();
        define(plane, things(&properties, &["id"])).await;
        let without = until("the new schema is in force", async || {
            let first = objects.dry_merge_status("one", json!({"code": 2})).await;
            let same = objects.dry_merge_status("one", json!({"code": 1})).await;
            first.is_err().then_some(same)
        })
        .await;
        plane.objects(CONVENTION).create(&json!({
            "apiVersion": "statusgate.dev/v1alpha1", "kind": "StatusConvention", "metadata": {"name": "things"},
            "spec": {"extends": "metav1"},
        })).await.unwrap();
        plane
            .objects(POLICY)
            .create(&policy(&json!([{"path": "/status/tier", "value": "gold"}])))
            .await
            .unwrap();
        let message = accepted(plane, "Accepted").await;
        assert!(!message.contains("not set"), "{message}");
        // Ratcheting forgives the missing member as long as the status itself stays the same: from 1.33 on.
        let with = objects.merge_status("one", json!({"code": 1})).await;
        assert_eq!(with.is_ok(), without.is_ok(), "{with:?} {without:?}");
        let withheld = "statusgate_changes_total{policy=\"things\",change=\"withheld\"} ";
        assert!(replica.metric(withheld).await >= Some(1.0));
        let whole = objects.merge_status("one", json!({"id": "1"})).await.unwrap();
        assert_eq!(whole["status"]["tier"], "gold", "{whole:#}");
    });
}
