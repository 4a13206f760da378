//! Replicas that follow the documents and report their status.

use std::time::Duration;

use serde_json::{Value, json};

use super::replica::Running;
use crate::harness::objects::{CONVENTION, Objects, POLICY, condition_of};
use crate::harness::patience::until;
use crate::harness::plane::Plane;
use crate::harness::pool::in_own_cluster;

pub(crate) fn policy(name: &str, convention: &str) -> Value {
    json!({
        "apiVersion": "statusgate.dev/v1alpha1", "kind": "StatusPolicy", "metadata": {"name": name},
        "spec": {"convention": convention,
            "resources": [{"apiGroups": ["g"], "apiVersions": ["v1"], "resources": [format!("{name}s")]}]},
    })
}

pub(crate) fn convention(name: &str, part: &str) -> Value {
    json!({
        "apiVersion": "statusgate.dev/v1alpha1", "kind": "StatusConvention", "metadata": {"name": name},
        "spec": {"backfill": [{"name": part, "optional": true, "path": "/status/x", "value": 1}]},
    })
}

/// Waits until a condition has a status for the current generation.
async fn reaches(objects: &Objects, name: &str, of: &str, status: &str) -> Value {
    until(&format!("{of} of {name} is {status}"), async || {
        let object = objects.get(name).await.unwrap();
        let found = condition_of(&object, of);
        let current = found["observedGeneration"] == object["metadata"]["generation"];
        (current && found["status"] == status).then_some(object)
    })
    .await
}

async fn two(plane: &Plane) -> [Running; 2] {
    let one = Running::start(plane, "one:8443").await;
    let other = Running::start(plane, "two:8443").await;
    for replica in [&one, &other] {
        replica.sees(&["one:8443", "two:8443"]);
    }
    [one, other]
}

#[test]
fn two_replicas_enforce_documents_and_report_it() {
    in_own_cluster(async |plane| {
        let (policies, conventions) = (plane.objects(POLICY), plane.objects(CONVENTION));
        policies.create(&policy("before", "metav1")).await.unwrap();
        let replicas = two(plane).await;
        assert_eq!(replicas[0].names(), ["before"], "the first list is complete");

        // A policy waits for its convention.
        policies.create(&policy("p", "c")).await.unwrap();
        let refused = reaches(&policies, "p", "Accepted", "False").await;
        let message = condition_of(&refused, "Accepted")["message"].as_str().unwrap();
        assert!(message.contains("--> StatusPolicy/p:6:15"), "{message}");
        assert_eq!(condition_of(&refused, "Stalled")["status"], "True");
        assert_eq!(refused["status"].get("replicas"), None);
        conventions.create(&convention("c", "x")).await.unwrap();
        let accepted = reaches(&policies, "p", "Enforced", "True").await;
        assert!(condition_of(&accepted, "Stalled").is_null());
        assert!(condition_of(&accepted, "Reconciling").is_null());
        assert_eq!(
            condition_of(&accepted, "Enforced")["message"],
            "2 of 2 replicas enforce generation 1; statusgate does not manage the registrations"
        );
        reaches(&conventions, "c", "Enforced", "True").await;

        // A change is live on every replica.
        policies.merge("p", json!({"spec": {"enforcement": "Warn"}})).await.unwrap();
        until("the change is live", async || {
            replicas
                .iter()
                .all(|replica| {
                    replica.store.current().policies().iter().any(|policy| {
                        &*policy.name == "p"
                            && policy.enforcement == statusgate_core::policy::Action::Warn
                    })
                })
                .then_some(())
        })
        .await;
        let enforced = reaches(&policies, "p", "Enforced", "True").await;
        let entries = enforced["status"]["replicas"].as_array().unwrap();
        let mut entries: Vec<(&str, &Value)> = entries
            .iter()
            .map(|entry| (entry["name"].as_str().unwrap(), &entry["generation"]))
            .collect();
        // In the order in which the replicas wrote them.
        entries.sort_unstable_by_key(|(name, _)| *name);
        assert_eq!(entries, [("one:8443", &json!(2)), ("two:8443", &json!(2))]);

        // An invalid change keeps the last valid text.
        policies.merge("p", json!({"spec": {"enforcement": "Never"}})).await.unwrap();
        let refused = reaches(&policies, "p", "Accepted", "False").await;
        assert_eq!(refused["status"]["replicas"][0]["generation"], 2);
        assert_eq!(refused["status"]["observedGeneration"], 3);
        assert_eq!(condition_of(&refused, "Enforced")["reason"], "NotAccepted");
        assert_eq!(replicas[1].names(), ["before", "p"]);
        for (state, count) in [("accepted", 1), ("rejected", 1)] {
            let sample =
                format!(r#"statusgate_documents{{kind="StatusPolicy",state="{state}"}} {count}"#);
            until(&sample, async || replicas[0].shows(&sample).then_some(())).await;
        }
        assert!(replicas[0].shows(r#"statusgate_watch_failing{what="statuspolicies"} 0"#));

        // Nothing changes any more.
        let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
        tokio::time::sleep(Duration::from_secs(2)).await;
        let before = version(&policies.get("p").await.unwrap());
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert_eq!(version(&policies.get("p").await.unwrap()), before);

        policies.delete("p").await.unwrap();
        until("the policy is no longer enforced", async || {
            replicas.iter().all(|replica| replica.names() == ["before"]).then_some(())
        })
        .await;
    });
}

#[test]
fn restarted_replicas_enforce_the_accepted_text_of_an_invalid_document() {
    in_own_cluster(async |plane| {
        let policies = plane.objects(POLICY);
        let mut first = policy("p", "metav1");
        first["spec"]["enforcement"] = json!("Warn");
        // The copy in the status has to be exact.
        let value = json!({"null": null, "text": "\u{7f}\u{85}\u{2028}\u{feff} é😀", "number": [1.0, 1e300]});
        first["spec"]["backfill"] = json!([{"path": "/status/x", "value": value}]);
        policies.create(&first).await.unwrap();
        let mut replicas = two(plane).await;
        let accepted = reaches(&policies, "p", "Enforced", "True").await;
        let text = |object: &Value| json!({"generation": object["metadata"]["generation"], "spec": object["spec"]});
        let kept = |object: &Value| object["status"]["lastAccepted"].clone();
        assert_eq!(kept(&accepted), text(&accepted));
        let fields = accepted["metadata"]["managedFields"].to_string();
        assert!(fields.contains(r#""f:lastAccepted":{}"#), "{fields}");

        // Stored while replicas run, then while none runs.
        let mut last = accepted;
        for runs in [true, false] {
            let generation = last["metadata"]["generation"].clone();
            let wrong = json!({"spec": {"convention": "nothing", "enforcement": "Deny"}});
            if runs {
                policies.merge("p", wrong).await.unwrap();
                reaches(&policies, "p", "Accepted", "False").await;
                drop(replicas);
            } else {
                drop(replicas);
                policies.merge("p", wrong).await.unwrap();
            }
            replicas = two(plane).await;
            for replica in &replicas {
                let set = replica.store.current();
                let enforcement: Vec<_> =
                    set.policies().iter().map(|policy| policy.enforcement).collect();
                assert_eq!(enforcement, [statusgate_core::policy::Action::Warn]);
            }
            let refused = reaches(&policies, "p", "Accepted", "False").await;
            assert_eq!(kept(&refused), text(&last));
            let message = |of| condition_of(&refused, of)["message"].as_str().unwrap();
            assert!(message("Accepted").contains("unknown convention \"nothing\""), "{refused:#}");
            let enforces = |name| format!("{name} enforces generation {generation}");
            let (one, other) = (enforces("one:8443"), enforces("two:8443"));
            assert!(message("Enforced").contains(&format!("{one}, {other}")), "{refused:#}");

            // Without a write each second.
            let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
            tokio::time::sleep(Duration::from_secs(2)).await;
            let before = version(&policies.get("p").await.unwrap());
            tokio::time::sleep(Duration::from_secs(3)).await;
            assert_eq!(version(&policies.get("p").await.unwrap()), before);

            let right = json!({"spec": {"convention": "kstatus", "enforcement": "Warn"}});
            policies.merge("p", right).await.unwrap();
            last = reaches(&policies, "p", "Enforced", "True").await;
            assert_eq!(kept(&last), text(&last));
        }
    });
}

#[test]
fn the_entry_of_a_deleted_replica_is_removed() {
    in_own_cluster(async |plane| {
        let policies = plane.objects(POLICY);
        policies.create(&policy("p", "metav1")).await.unwrap();
        let dead = json!({"replicas": [{"name": "dead:1", "generation": 1, "loadedTime": "2026-01-01T00:00:00Z"}]});
        policies.force_status("p", "statusgate-dead:1", dead).await.unwrap();
        let [one, other] = two(plane).await;
        let entries = async || {
            let object = policies.get("p").await.unwrap();
            let entries = object["status"]["replicas"].as_array().cloned().unwrap_or_default();
            entries
                .iter()
                .map(|entry| entry["name"].as_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        until("only living replicas have entries", async || {
            (entries().await == ["one:8443", "two:8443"]).then_some(())
        })
        .await;
        drop(other);
        one.sees(&["one:8443"]);
        until("the entry of the second replica is removed", async || {
            (entries().await == ["one:8443"]).then_some(())
        })
        .await;
        let object = reaches(&policies, "p", "Enforced", "True").await;
        let managers = object["metadata"]["managedFields"].as_array().unwrap();
        let managers: Vec<&str> =
            managers.iter().map(|one| one["manager"].as_str().unwrap()).collect();
        assert!(!managers.contains(&"statusgate-dead:1"), "{managers:?}");
    });
}

#[test]
fn a_document_that_only_changed_files_make_valid_is_tried_again() {
    in_own_cluster(async |plane| {
        let policies = plane.objects(POLICY);
        policies.create(&policy("p", "of-a-file")).await.unwrap();
        let replica = Running::start(plane, "one").await;
        replica.sees(&["one"]);
        reaches(&policies, "p", "Accepted", "False").await;
        let text = convention("of-a-file", "x").to_string();
        let file = statusgate_core::policy::Source::new("file.yaml", text);
        replica.store.replace_files(vec![file]).unwrap();
        reaches(&policies, "p", "Enforced", "True").await;
    });
}

#[test]
fn definitions_may_be_installed_later() {
    in_own_cluster(async |plane| {
        plane.uninstall().await;
        let replica = Running::start(plane, "one").await;
        replica.sees(&["one"]);
        assert_eq!(replica.names(), [""; 0]);
        plane.install().await;
        let policies = plane.objects(POLICY);
        until("a policy is created", async || policies.create(&policy("p", "metav1")).await.ok())
            .await;
        reaches(&policies, "p", "Enforced", "True").await;
        assert_eq!(replica.names(), ["p"]);
    });
}
