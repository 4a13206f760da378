//! What `Enforced` says of a policy is true for the API server.

use serde_json::{Value, json};

use super::permissions::{ACCOUNT, Grants};
use super::replica::Installation;
use crate::backfill::registrations::gizmos;
use crate::harness::objects::{CRD, GADGET, Kind, MUTATING, POLICY, condition_of};
use crate::harness::patience::until;
use crate::harness::plane::{Plane, documents};
use crate::harness::pool::in_own_cluster;

/// A policy for one resource of the group of the tests, which rejects another phase than a text of two letters.
fn policy(name: &str, plural: &str) -> Value {
    json!({
        "apiVersion": "statusgate.dev/v1alpha1", "kind": "StatusPolicy", "metadata": {"name": name},
        "spec": {
            "convention": "metav1",
            "resources": [{
                "apiGroups": ["test.statusgate.dev"], "apiVersions": ["v1"], "resources": [plural],
            }],
            "fields": [{"path": "/status/phase", "pattern": "^..$"}],
        },
    })
}

/// The condition `Enforced` of the current generation, when it has this status and this text in its message.
async fn enforced(plane: &Plane, name: &str, status: &str, text: &str) -> Value {
    until(&format!("Enforced is {status} with {text:?}"), async || {
        let policy = plane.objects(POLICY).get(name).await.ok()?;
        let enforced = condition_of(&policy, "Enforced");
        let is_current = enforced["observedGeneration"] == policy["metadata"]["generation"];
        let says = enforced["message"].as_str().is_some_and(|message| message.contains(text));
        (is_current && enforced["status"] == status && says).then_some(policy)
    })
    .await
}

#[test]
fn the_first_write_after_enforced_is_judged() {
    in_own_cluster(async |plane| {
        let installation = Installation::new(plane, &[]).await;
        let _replicas = installation.two().await;
        let (policies, gadgets) = (plane.objects(POLICY), plane.objects(GADGET));
        gadgets.create(&gadgets.named("first")).await.unwrap();
        for number in 0..4 {
            let name = format!("policy-{number}");
            policies.create(&policy(&name, "gadgets")).await.unwrap();
            enforced(plane, &name, "True", "cover 1 resource").await;
            let wrong = gadgets.dry_merge_status("first", json!({"phase": "long"})).await;
            assert!(wrong.is_err(), "{number}: {wrong:?}");
            policies.delete(&name).await.unwrap();
            until("no rule is left", async || {
                let registration = plane.objects(MUTATING).get("statusgate").await.ok()?;
                registration["webhooks"][0]["rules"]
                    .as_array()
                    .is_none_or(Vec::is_empty)
                    .then_some(())
            })
            .await;
        }
    });
}

#[test]
fn a_registration_that_cannot_be_corrected_enforces_nothing() {
    in_own_cluster(async |plane| {
        let grants = Grants::new(plane);
        grants.apply_without(&[]).await;
        let installation = Installation::of_user(plane, ACCOUNT).await;
        let replica = installation.replica("one").await;
        let policies = plane.objects(POLICY);
        policies.create(&policy("p", "gadgets")).await.unwrap();
        enforced(plane, "p", "True", "cover 1 resource").await;

        let mut patches = grants.permissions();
        patches.retain(|of| of.verb == "patch" && of.resource.contains("webhookconfigurations"));
        grants.apply_without(&patches).await;
        plane.objects(CRD).create(&gizmos()).await.unwrap();
        let spec = json!({"spec": {"resources": [
            {"apiGroups": ["test.statusgate.dev"], "apiVersions": ["v1"], "resources": ["gadgets"]},
            {"apiGroups": ["test.statusgate.dev"], "apiVersions": ["v1"], "resources": ["gizmos"],
                "statusSubresource": false},
        ]}});
        policies.merge("p", spec).await.unwrap();
        let text = "do not cover gizmos.test.statusgate.dev";
        let policy = enforced(plane, "p", "False", text).await;
        assert_eq!(condition_of(&policy, "Enforced")["reason"], "NotRegistered", "{policy:#}");
        let in_sync = "statusgate_registration_in_sync{configuration=\"mutating\"} ";
        until("the metric says so", async || (replica.metric(in_sync).await? == 0.0).then_some(()))
            .await;

        // Every call fails.
        let registrations = plane.objects(MUTATING);
        let mut registration = registrations.get("statusgate").await.unwrap();
        registration["webhooks"][0]["clientConfig"].as_object_mut().unwrap().remove("caBundle");
        registrations.put(&registration).await.unwrap();
        let text = "mutate.statusgate.dev does not trust the certificate";
        enforced(plane, "p", "False", text).await;

        grants.apply_without(&[]).await;
        enforced(plane, "p", "True", "cover 2 resources").await;
        until("the metric says so", async || (replica.metric(in_sync).await? == 1.0).then_some(()))
            .await;
        plane.objects(CRD).delete("gizmos.test.statusgate.dev").await.unwrap();
    });
}

/// As chrysopoeia makes them from Helm charts: each source has a group of its own, with the version `bundle`.
const REDIS: Kind = Kind {
    api_version: "v0.redis.helmetica-bundles.io/bundle",
    kind: "Redis",
    path: "/apis/v0.redis.helmetica-bundles.io/bundle/namespaces/default/redis",
};
const PODINFO: Kind = Kind {
    api_version: "v6.podinfo.helmetica-bundles.io/bundle",
    kind: "Podinfo",
    path: "/apis/v6.podinfo.helmetica-bundles.io/bundle/namespaces/default/podinfos",
};

fn service(kind: Kind) -> Value {
    let (group, version) = kind.api_version.split_once('/').unwrap();
    let plural = kind.path.rsplit('/').next().unwrap();
    let texts = json!({"releaseStatus": {"type": "string"}});
    let status = json!({"type": "object", "properties": texts});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind.kind},
            "versions": [{
                "name": version, "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"status": status}}},
            }],
        },
    })
}

#[test]
fn a_glob_covers_the_groups_of_definitions_that_appear_later() {
    in_own_cluster(async |plane| {
        let installation = Installation::new(plane, &[]).await;
        let _replica = installation.replica("one").await;
        let [policy] = documents(include_str!("../../../deploy/policies/helmetica.yaml"))
            .try_into()
            .expect("one");
        plane.objects(POLICY).create(&policy).await.unwrap();
        enforced(plane, "helmetica", "True", "the cluster has none of its resources").await;
        for (kind, covered) in [(REDIS, "cover 1 resource"), (PODINFO, "cover 2 resources")] {
            plane.objects(CRD).create(&service(kind)).await.unwrap();
            enforced(plane, "helmetica", "True", covered).await;
            let instances = plane.objects(kind);
            instances.create(&instances.named("a")).await.unwrap();
            let empty = json!({"releaseStatus": ""});
            let wrong = instances.dry_merge_status("a", empty).await;
            assert!(wrong.is_err(), "{wrong:?}");
            let pending = json!({"releaseStatus": "Pending"});
            instances.dry_merge_status("a", pending).await.unwrap();
        }
        for kind in [PODINFO, REDIS] {
            let name = service(kind)["metadata"]["name"].as_str().unwrap().to_owned();
            plane.objects(CRD).delete(&name).await.unwrap();
        }
        enforced(plane, "helmetica", "True", "the cluster has none of its resources").await;
    });
}

#[test]
fn a_policy_without_resources_is_settled_until_a_definition_appears() {
    in_own_cluster(async |plane| {
        let installation = Installation::new(plane, &[]).await;
        let _replica = installation.replica("one").await;
        let mut gizmo = policy("p", "gizmos");
        gizmo["spec"]["resources"][0]["statusSubresource"] = false.into();
        plane.objects(POLICY).create(&gizmo).await.unwrap();
        let policy = enforced(plane, "p", "True", "the cluster has none of its resources").await;
        assert_eq!(condition_of(&policy, "Enforced")["reason"], "NoResources");
        assert!(condition_of(&policy, "Reconciling").is_null(), "{policy:#}");
        plane.objects(CRD).create(&gizmos()).await.unwrap();
        let policy = enforced(plane, "p", "True", "cover 1 resource").await;
        assert_eq!(condition_of(&policy, "Enforced")["reason"], "Enforced");
        plane.objects(CRD).delete("gizmos.test.statusgate.dev").await.unwrap();
        let policy = enforced(plane, "p", "True", "the cluster has none of its resources").await;
        assert_eq!(condition_of(&policy, "Enforced")["reason"], "NoResources");
    });
}
