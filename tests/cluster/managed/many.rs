//! Hundreds of policies in the cluster.

use std::time::Duration;

use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::caller::{Caller, Write, review};
use super::replica::{Installation, Replica};
use crate::harness::objects::{POLICY, condition_of};
use crate::harness::patience::until_within;
use crate::harness::plane::Plane;
use crate::harness::pool::in_own_cluster;

const POLICIES: usize = 500;

/// A debug build and a debug API server share the machine with other tests.
const LIMIT: Duration = Duration::from_secs(300);

/// Requests at the same time.
const IN_FLIGHT: usize = 8;

/// The other resource exists in the cluster, so that the registrations cover something.
fn spec(number: usize) -> Value {
    let resources = |group: &str, plural: &str| json!({"apiGroups": [group], "apiVersions": ["v1"], "resources": [plural]});
    json!({
        "convention": "metav1",
        "fields": [{"path": "/status/size", "type": "integer"}],
        "resources": [resources(&group(number), "things"), resources("test.statusgate.dev", "gadgets")],
    })
}

fn group(number: usize) -> String {
    format!("group-{number}.example.com")
}

/// A write that only this policy denies.
fn wrong(number: usize) -> Write {
    Write { group: group(number), plural: "things", status: json!({"size": "large"}) }
}

async fn create_policies(plane: &Plane) {
    let policies = plane.objects(POLICY);
    let created = stream::iter(0..POLICIES).map(async |number| {
        let mut policy = policies.named(&format!("many-{number}"));
        policy["spec"] = spec(number);
        policies.create(&policy).await.expect("a policy");
    });
    created.buffer_unordered(IN_FLIGHT).collect::<Vec<()>>().await;
}

/// Waits until the status of each policy says that both replicas enforce it.
async fn enforced(plane: &Plane) {
    until_within(LIMIT, "every policy is enforced", async || {
        let policies = plane.list(POLICY).await;
        let is_enforced = |policy: &&Value| {
            let enforced = condition_of(policy, "Enforced");
            let message = enforced["message"].as_str().unwrap_or_default();
            enforced["status"] == "True"
                && enforced["observedGeneration"] == policy["metadata"]["generation"]
                && message.starts_with("2 of 2 replicas")
        };
        (policies.iter().filter(is_enforced).count() == POLICIES).then_some(())
    })
    .await;
}

/// The policies that do not deny a wrong write.
async fn missing(caller: &Caller, replica: &Replica) -> Vec<usize> {
    let client = caller.client(replica.address());
    let missing = stream::iter(0..POLICIES).map(async |number| {
        let response = review(&client, "/validate", &wrong(number)).await;
        (response["allowed"] != false).then_some(number)
    });
    missing.buffer_unordered(IN_FLIGHT).filter_map(async |missing| missing).collect().await
}

#[test]
fn both_replicas_enforce_hundreds_of_policies_and_a_change_of_one_of_them() {
    in_own_cluster(async |plane| {
        create_policies(plane).await;
        let installation = Installation::new(plane, &[]).await;
        let started = Instant::now();
        let replicas = installation.two().await;
        println!("two replicas with {POLICIES} policies are ready after {:?}", started.elapsed());
        enforced(plane).await;
        println!("each policy is Enforced=True after {:?}", started.elapsed());
        let caller = Caller::new(plane).await;
        for replica in &replicas {
            assert_eq!(missing(&caller, replica).await, [0; 0]);
        }

        let number = POLICIES / 2;
        let (policies, changed) = (plane.objects(POLICY), Instant::now());
        let warn = json!({"spec": {"enforcement": "Warn"}});
        policies.merge(&format!("many-{number}"), warn).await.unwrap();
        caller.live(&replicas, changed, &wrong(number), true).await;
        enforced(plane).await;
        println!("the change is Enforced=True after {:?}", changed.elapsed());
        for replica in &replicas {
            assert_eq!(missing(&caller, replica).await, [number], "only this policy changed");
            assert!(!replica.log().contains("\"ERROR\""), "{}", replica.log());
        }
    });
}
