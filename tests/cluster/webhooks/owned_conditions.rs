//! Two controllers of one list: one applies its condition with force, as Crossplane does, and an operator PUTs the list
//! that its own Go type has. The API server of these tests knows no list types, so each of them drops what the other wrote.

use std::fs;

use serde_json::{Value, json};

use super::cluster::in_cluster;
use super::registration::{FailurePolicy, Registration};
use super::server::Server;
use crate::harness::objects::{COMPOSITE, Objects, condition, refusal};

const OWNERS: &str = "  owners:
    - {conditions: [PodReady], users: ['system:serviceaccount:billing:*']}
    - {conditions: [Ready, Synced], users: ['*:operator']}
  preserve: [/status/conditions]
  disagreement:";

#[test]
fn a_condition_of_another_owner_survives_every_put_and_nobody_loops() {
    in_cluster(async |cluster| {
        let first = Server::new(cluster, "owners").start().await;
        let policy = fs::read_to_string(first.home().policy()).unwrap();
        fs::write(first.home().policy(), policy.replacen("  disagreement:", OWNERS, 1)).unwrap();
        let server = first.another().start().await;
        let registration = Registration::of(&server, "owners", FailurePolicy::Fail);
        let registration = registration.apply(cluster).await;
        let name = registration.object(cluster, COMPOSITE).await;
        let (owner, operator) = (cluster.billing(COMPOSITE), cluster.operator(COMPOSITE));

        let apply = async |status: &str| {
            let conditions = json!({"conditions": [condition("PodReady", status, 0)]});
            owner.force_status(&name, "pods", conditions).await.unwrap()
        };
        apply("False").await;
        for _ in 0..3 {
            let first = put(&operator, &name, &["Ready", "Synced"]).await;
            assert_eq!(kinds(&first), ["PodReady", "Ready", "Synced"]);
            let again = put(&operator, &name, &["Ready", "Synced"]).await;
            assert_eq!(again, first, "what drops the condition is no write: nobody is woken");
            // 1.20 changes managedFields at each apply.
            assert_eq!(apply("False").await["status"], first["status"]);
        }

        let changed = apply("True").await;
        let kept = put(&operator, &name, &["Synced", "Ready"]).await;
        assert_eq!(kinds(&kept), ["PodReady", "Synced", "Ready"]);
        assert_eq!(kept["status"]["conditions"][0], changed["status"]["conditions"][0]);
        let mut theirs = kept.clone();
        theirs["status"]["conditions"][0]["status"] = "False".into();
        let message = refusal(operator.put_status(&theirs).await).message;
        assert!(
            message
                .contains("condition PodReady belongs to system:serviceaccount:billing:*, not to"),
            "{message}"
        );

        let removed = put(&owner, &name, &["Synced", "Ready"]).await;
        assert_eq!(kinds(&removed), ["Synced", "Ready"], "an owner may remove its condition");
        assert_eq!(kinds(&put(&operator, &name, &["Ready"]).await), ["Ready"]);
    });
}

/// Writes the whole list as a PUT of the newest object.
async fn put(writer: &Objects, name: &str, kinds: &[&str]) -> Value {
    let mut object = writer.get(name).await.unwrap();
    let conditions = kinds.iter().map(|kind| condition(kind, "True", 0));
    object["status"]["conditions"] = conditions.collect();
    writer.put_status(&object).await.unwrap()
}

fn kinds(object: &Value) -> Vec<&str> {
    let conditions = object["status"]["conditions"].as_array().unwrap();
    conditions.iter().map(|item| item["type"].as_str().unwrap()).collect()
}
