//! Policies as objects of the cluster.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::caller::{Caller, Write};
use super::replica::{Installation, Replica};
use crate::harness::objects::{
    COMPOSITE, LEASE, POLICY, SECRET, VALIDATING, condition_of, refusal,
};
use crate::harness::patience::until;
use crate::harness::plane::Plane;
use crate::harness::pool::in_own_cluster;

/// The policy, when its condition has this status.
async fn with_status(plane: &Plane, kind: &str, status: &str) -> Value {
    let policies = plane.objects(POLICY);
    until("the condition has this status", async || {
        let policy = policies.get("appcat").await.ok()?;
        let current = policy["status"]["observedGeneration"] == policy["metadata"]["generation"];
        (current && condition_of(&policy, kind)["status"] == status).then_some(policy)
    })
    .await
}

/// At the first start, nothing existed. Two kinds of documents are listed and watched.
async fn missing_objects_and_watches_count(replicas: &[Replica]) {
    let sum = async |purpose: &str, outcome: &str| {
        let labels = format!("{{purpose=\"{purpose}\",outcome=\"{outcome}\"}}");
        let mut sum = 0.0;
        for replica in replicas {
            sum += replica.sum(&format!("statusgate_api_requests_total{labels}")).await;
        }
        sum
    };
    assert!(sum("certificates", "not_found").await >= 1.0);
    assert!(sum("registrations", "not_found").await >= 3.0);
    assert!(sum("documents", "success").await >= 8.0);
    assert!(sum("leases", "success").await >= 4.0);
}

#[test]
fn two_replicas_that_start_together_install_themselves_once() {
    in_own_cluster(async |plane| {
        let installation = Installation::new(plane, &[]).await;
        plane.create_policy().await;
        let name = plane.composite("together").await;
        let replicas = installation.two().await;
        plane.judged(&name).await;

        let policy = until("both replicas enforce the policy", async || {
            let policy = plane.objects(POLICY).get("appcat").await.ok()?;
            let enforced = condition_of(&policy, "Enforced");
            let is_by_both = enforced["message"].as_str()?.starts_with("2 of 2 replicas");
            (is_by_both && enforced["status"] == "True").then_some(policy)
        })
        .await;
        assert_eq!(condition_of(&policy, "Accepted")["status"], "True", "{policy:#}");
        assert_eq!(policy["status"]["replicas"].as_array().unwrap().len(), 2, "{policy:#}");
        let secret = plane.objects(SECRET).get("statusgate-tls").await.unwrap();
        for replica in &replicas {
            assert!(!replica.log().contains("\"ERROR\""), "{}", replica.log());
            // The policy names more resources than this cluster defines.
            assert!(replica.metric("statusgate_resources_without_crd ").await > Some(0.0));
            let logged = replica.log().matches("no CustomResourceDefinition defines").count();
            assert_eq!(logged, 1, "{}", replica.log());
        }
        // Nothing is written any more: no fight.
        sleep(Duration::from_secs(3)).await;
        assert_eq!(plane.objects(SECRET).get("statusgate-tls").await.unwrap(), secret);
        let later = plane.objects(POLICY).get("appcat").await.unwrap();
        let version = |policy: &Value| policy["metadata"]["resourceVersion"].clone();
        assert_eq!(version(&later), version(&policy), "{policy:#} became {later:#}");
        missing_objects_and_watches_count(&replicas).await;
    });
}

#[test]
fn a_change_of_a_policy_is_in_force_within_seconds_and_an_invalid_one_is_rejected() {
    in_own_cluster(async |plane| {
        let installation = Installation::new(plane, &[]).await;
        let replicas = installation.two().await;
        let name = plane.composite("change").await;
        plane.create_policy().await;
        plane.judged(&name).await;
        with_status(plane, "Enforced", "True").await;

        let policies = plane.objects(POLICY);
        let (caller, changed) = (Caller::new(plane).await, Instant::now());
        policies.merge("appcat", json!({"spec": {"enforcement": "Warn"}})).await.unwrap();
        let group = "vshn.appcat.vshn.io".to_owned();
        let status = json!({"phase": "Nonsense"});
        let wrong = Write { group, plural: "xvshnpostgresqls", status };
        caller.live(&replicas, changed, &wrong, true).await;
        let objects = plane.objects(COMPOSITE);
        until("the policy only warns", async || {
            objects.dry_merge_status(&name, json!({"phase": "Nonsense"})).await.ok()
        })
        .await;
        with_status(plane, "Enforced", "True").await;

        let wrong = json!({"spec": {"enforcement": "Never"}});
        let status = refusal(policies.merge("appcat", wrong).await);
        assert!(status.message.contains("unknown value \"Never\""), "{}", status.message);
    });
}

/// Changes the policy without a review. Before the API server notices that the registration is deleted, a replica
/// may have created it again.
async fn store_unreviewed(plane: &Plane, change: &Value) {
    let (registrations, policies) = (plane.objects(VALIDATING), plane.objects(POLICY));
    until("the invalid policy is stored", async || {
        let _ = registrations.delete("statusgate-documents").await;
        policies.merge("appcat", change.clone()).await.ok()
    })
    .await;
}

#[test]
fn an_invalid_policy_that_was_stored_never_replaces_the_last_valid_one() {
    in_own_cluster(async |plane| {
        let installation = Installation::new(plane, &[]).await;
        let [one, two] = installation.two().await;
        let name = plane.composite("invalid").await;
        plane.create_policy().await;
        plane.judged(&name).await;
        let policies = plane.objects(POLICY);
        store_unreviewed(plane, &json!({"spec": {"convention": "apcat"}})).await;
        let policy = with_status(plane, "Accepted", "False").await;
        let message = condition_of(&policy, "Accepted")["message"].as_str().unwrap();
        assert!(message.contains("unknown convention \"apcat\""), "{message}");
        assert_eq!(condition_of(&policy, "Stalled")["status"], "True", "{policy:#}");
        plane.judged(&name).await;

        policies.merge("appcat", json!({"spec": {"convention": "appcat"}})).await.unwrap();
        let policy = with_status(plane, "Enforced", "True").await;
        assert_eq!(*condition_of(&policy, "Stalled"), json!(null), "{policy:#}");
        drop((one, two));
    });
}

#[test]
fn the_last_valid_policy_is_enforced_after_all_replicas_restart() {
    in_own_cluster(async |plane| {
        let installation = Installation::new(plane, &[]).await;
        let mut replicas = installation.two().await;
        let name = plane.composite("restarted").await;
        plane.create_policy().await;
        plane.judged(&name).await;
        let policies = plane.objects(POLICY);
        let valid = with_status(plane, "Enforced", "True").await;
        let end = |replicas: &[Replica]| replicas.iter().for_each(Replica::terminate);
        // Stored while the registration is missing, then while no replica runs.
        for runs in [true, false] {
            let wrong = json!({"spec": {"convention": "apcat"}});
            if runs {
                store_unreviewed(plane, &wrong).await;
                with_status(plane, "Accepted", "False").await;
                end(&replicas);
            } else {
                end(&replicas);
                policies.merge("appcat", wrong).await.unwrap();
            }
            replicas = installation.two().await;
            plane.judged(&name).await;
            let policy = with_status(plane, "Accepted", "False").await;
            let message = condition_of(&policy, "Accepted")["message"].as_str().unwrap();
            assert!(message.contains("unknown convention \"apcat\""), "{message}");
            assert_eq!(policy["status"]["lastAccepted"]["spec"], valid["spec"], "{policy:#}");
            let accepted = policy["status"]["lastAccepted"]["generation"].clone();
            until("both replicas report the generation that they enforce", async || {
                let policy = policies.get("appcat").await.ok()?;
                let message = condition_of(&policy, "Enforced")["message"].as_str()?;
                let enforces = format!("enforces generation {accepted}");
                (message.starts_with("0 of 2") && message.matches(&enforces).count() == 2)
                    .then_some(())
            })
            .await;

            policies.merge("appcat", json!({"spec": {"convention": "appcat"}})).await.unwrap();
            with_status(plane, "Enforced", "True").await;
        }
    });
}

#[test]
fn entries_and_leases_of_a_stopped_replica_are_dropped() {
    in_own_cluster(async |plane| {
        let installation = Installation::new(plane, &[]).await;
        plane.create_policy().await;
        let [one, _two] = installation.two().await;
        with_status(plane, "Enforced", "True").await;
        assert_eq!(plane.list(LEASE).await.len(), 2);
        one.terminate();
        until("one Lease is left", async || (plane.list(LEASE).await.len() == 1).then_some(()))
            .await;
        until("one entry is left", async || {
            let policy = plane.objects(POLICY).get("appcat").await.ok()?;
            let replicas = policy["status"]["replicas"].as_array()?.len();
            (replicas == 1 && condition_of(&policy, "Enforced")["status"] == "True").then_some(())
        })
        .await;
    });
}
