//! No write fails while a replica, the certificate, the policies or the registrations change or fail.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use tokio::time::sleep;

use super::replica::Installation;
use crate::harness::objects::{COMPOSITE, MUTATING, Objects, POLICY, SECRET, VALIDATING};
use crate::harness::patience::until;
use crate::harness::plane::Plane;
use crate::harness::pool::in_own_cluster;
use crate::harness::traffic::Traffic;

/// Objects for steady writes.
pub(crate) async fn writers(plane: &Plane) -> Vec<(Objects, String)> {
    let mut writers = Vec::new();
    for number in 0..4 {
        let name = plane.composite(&format!("steady-{number}")).await;
        writers.push((plane.objects(COMPOSITE), name));
    }
    for (_, name) in &writers {
        plane.judged(name).await;
    }
    writers
}

#[test]
fn no_write_fails_during_a_rolling_restart_and_changes_of_policies() {
    in_own_cluster(async |plane| {
        let installation = Installation::new(plane, &["--failure-policy=fail"]).await;
        plane.create_policy().await;
        let mut replicas = installation.two().await;
        let traffic = Traffic::start(writers(plane).await);
        for replica in &mut replicas {
            traffic.go_on().await;
            let next = installation.replica("next").await;
            replica.terminate();
            *replica = next;
        }
        let policies = plane.objects(POLICY);
        for enforcement in ["Warn", "Deny"] {
            traffic.go_on().await;
            policies.merge("appcat", json!({"spec": {"enforcement": enforcement}})).await.unwrap();
        }
        traffic.go_on().await;
        assert_eq!(traffic.failures().await, [""; 0]);
    });
}

#[test]
fn no_write_fails_while_the_certificate_and_its_authority_rotate() {
    in_own_cluster(async |plane| {
        let flags = &["--failure-policy=fail", "--certificate-lifetime=10s"];
        let installation = Installation::new(plane, flags).await;
        plane.create_policy().await;
        let _replicas = installation.two().await;
        let traffic = Traffic::start(writers(plane).await);
        let secrets = plane.objects(SECRET);
        let first = secrets.get("statusgate-tls").await.unwrap()["data"].clone();
        let newest = |data: &serde_json::Value| data["ca.key"].clone();
        until("the authority was replaced", async || {
            let data = secrets.get("statusgate-tls").await.ok()?["data"].clone();
            (newest(&data) != newest(&first) && authorities(&data) == 1).then_some(())
        })
        .await;
        traffic.go_on().await;
        assert_eq!(traffic.failures().await, [""; 0]);
    });
}

#[test]
fn no_write_fails_when_the_secret_is_deleted_by_hand() {
    in_own_cluster(async |plane| {
        let installation = Installation::new(plane, &["--failure-policy=fail"]).await;
        plane.create_policy().await;
        let _replicas = installation.two().await;
        let traffic = Traffic::start(writers(plane).await);
        traffic.go_on().await;
        let secrets = plane.objects(SECRET);
        let before = secrets.get("statusgate-tls").await.unwrap()["metadata"]["uid"].clone();
        secrets.delete("statusgate-tls").await.unwrap();
        until("the Secret is back", async || {
            let secret = secrets.get("statusgate-tls").await.ok()?;
            (secret["metadata"]["uid"] != before).then_some(())
        })
        .await;
        traffic.go_on().await;
        sleep(Duration::from_secs(2)).await;
        traffic.go_on().await;
        assert_eq!(traffic.failures().await, [""; 0]);
    });
}

#[test]
fn deleted_registrations_are_created_again_and_foreign_fields_are_kept() {
    in_own_cluster(async |plane| {
        let installation = Installation::new(plane, &[]).await;
        plane.create_policy().await;
        let _replicas = installation.two().await;
        let name = plane.composite("again").await;
        plane.judged(&name).await;

        // What others set stays, also when the rules change.
        let mutating = plane.objects(MUTATING);
        let mut stored = mutating.get("statusgate").await.unwrap();
        stored["webhooks"][0]["failurePolicy"] = "Fail".into();
        stored["webhooks"][0]["timeoutSeconds"] = 7.into();
        stored["webhooks"][0]["rules"] = json!([]);
        mutating.put(&stored).await.unwrap();
        until("the rules are back", async || {
            let stored = mutating.get("statusgate").await.ok()?;
            let webhook = &stored["webhooks"][0];
            assert_eq!(
                (&webhook["failurePolicy"], &webhook["timeoutSeconds"]),
                (&"Fail".into(), &7.into())
            );
            webhook["rules"].as_array().is_some_and(|rules| !rules.is_empty()).then_some(())
        })
        .await;

        for (kind, name) in [
            (MUTATING, "statusgate"),
            (VALIDATING, "statusgate"),
            (VALIDATING, "statusgate-documents"),
        ] {
            plane.objects(kind).delete(name).await.unwrap();
            until("it is created again", async || plane.objects(kind).get(name).await.ok()).await;
        }
        plane.judged(&name).await;
    });
}

/// The number of certificates in `ca.crt`.
fn authorities(data: &serde_json::Value) -> usize {
    let text = STANDARD.decode(data["ca.crt"].as_str().unwrap_or_default()).unwrap_or_default();
    String::from_utf8_lossy(&text).matches("BEGIN CERTIFICATE").count()
}
