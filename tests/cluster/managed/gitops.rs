//! A GitOps tool tries all documents of a commit as a dry run, applies them, and deletes what the commit removed.

use serde_json::{Value, json};

use super::replica::Installation;
use crate::harness::objects::{CONVENTION, Objects, POLICY, condition_of, name_of, refusal};
use crate::harness::patience::until;
use crate::harness::plane::Plane;
use crate::harness::pool::in_own_cluster;

fn policy(name: &str, convention: &str, plurals: &[&str]) -> Value {
    json!({
        "apiVersion": "statusgate.dev/v1alpha1", "kind": "StatusPolicy", "metadata": {"name": name},
        "spec": {"convention": convention, "resources": [
            {"apiGroups": ["order.example.org"], "apiVersions": ["v1"], "resources": plurals},
        ]},
    })
}

fn convention(name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "statusgate.dev/v1alpha1", "kind": "StatusConvention",
        "metadata": {"name": name}, "spec": spec,
    })
}

fn objects_of(plane: &Plane, document: &Value) -> Objects {
    plane.objects(if document["kind"] == POLICY.kind { POLICY } else { CONVENTION })
}

/// Applies the documents of a commit.
async fn commit(plane: &Plane, documents: &[Value]) {
    for document in documents {
        let objects = objects_of(plane, document);
        let tried = objects.dry_apply(name_of(document), "flux", document.clone()).await;
        tried.expect("the dry run of each document");
    }
    for document in documents {
        let objects = objects_of(plane, document);
        objects.apply(name_of(document), "flux", document.clone()).await.expect("a document");
    }
}

/// Waits until the current generation is accepted or not, and returns the condition.
async fn accepted(plane: &Plane, document: &Value, status: &str) -> Value {
    let name = name_of(document);
    until(&format!("Accepted of {name} is {status}"), async || {
        let stored = objects_of(plane, document).get(name).await.ok()?;
        let accepted = condition_of(&stored, "Accepted");
        let is_current = accepted["observedGeneration"] == stored["metadata"]["generation"];
        (is_current && accepted["status"] == status).then(|| accepted.clone())
    })
    .await
}

async fn all_accepted(plane: &Plane, documents: &[Value]) {
    for document in documents {
        accepted(plane, document, "True").await;
    }
}

#[test]
fn the_documents_of_a_commit_may_refer_to_each_other_in_any_order() {
    in_own_cluster(async |plane| {
        let installation = Installation::new(plane, &[]).await;
        let _replica = installation.replica("one").await;
        let mut wrong = policy("wrong", "metav1", &["orders"]);
        wrong["spec"]["enforcement"] = "Never".into();
        let policies = plane.objects(POLICY);
        until("documents with mistakes of their own are rejected", async || {
            policies.dry_apply("wrong", "flux", wrong.clone()).await.is_err().then_some(())
        })
        .await;
        let rejected = refusal(policies.dry_apply("wrong", "flux", wrong).await);
        assert!(rejected.message.contains("unknown value"), "{}", rejected.message);

        // Policies before their convention, and a child before its parent.
        let mut early = policy("early", "later", &["orders"]);
        let alone = std::slice::from_ref(&early);
        commit(plane, alone).await;
        let missing = accepted(plane, &early, "False").await;
        assert!(missing["message"].as_str().unwrap().contains("unknown convention \"later\""));
        let parent = convention("parent", &json!({"extends": "metav1"}));
        let later = convention("later", &json!({"extends": "parent"}));
        let set = [early.clone(), later, parent];
        commit(plane, &set).await;
        all_accepted(plane, &set).await;
        // A new optional part with its `enable`, and another one in its place.
        for part in ["first", "second"] {
            let rule = json!({"id": part, "optional": true, "when": {"field": "/status/x", "is": 1},
                "action": "Warn", "message": "bad", "path": "/status/x"});
            let later = convention("later", &json!({"extends": "parent", "rules": [rule]}));
            early["spec"]["enable"] = json!([part]);
            let set = [early.clone(), later];
            commit(plane, &set).await;
            all_accepted(plane, &set).await;
        }
    });
}

#[test]
fn the_older_policy_keeps_a_phase_until_a_commit_has_moved_it() {
    in_own_cluster(async |plane| {
        let installation = Installation::new(plane, &[]).await;
        let _replica = installation.replica("one").await;
        let policies = plane.objects(POLICY);
        let old = policy("old", "appcat", &["ones"]);
        commit(plane, std::slice::from_ref(&old)).await;
        accepted(plane, &old, "True").await;
        // A renamed policy. The age of objects counts seconds.
        let old_time = policies.get("old").await.unwrap()["metadata"]["creationTimestamp"].clone();
        let new = policy("new", "appcat", &["ones"]);
        until("the next second", async || {
            let tried = policies.dry_apply("new", "flux", new.clone()).await.ok()?;
            (tried["metadata"]["creationTimestamp"] != old_time).then_some(())
        })
        .await;
        commit(plane, std::slice::from_ref(&new)).await;
        let conflict = accepted(plane, &new, "False").await;
        assert_eq!(conflict["reason"], "Conflict");
        let message = "policies \"new\" and \"old\" both configure the phase of order.example.org/v1 ones: \"old\" is older and owns it";
        assert_eq!(conflict["message"], message);
        accepted(plane, &old, "True").await;
        policies.delete("old").await.unwrap();
        accepted(plane, &new, "True").await;
        // A younger policy with a pattern, whatever its name.
        let wide = policy("aaa", "appcat", &["one*"]);
        commit(plane, std::slice::from_ref(&wide)).await;
        assert_eq!(accepted(plane, &wide, "False").await["reason"], "Conflict");
        accepted(plane, &new, "True").await;
        policies.delete("aaa").await.unwrap();
        // A resource moves from one policy to another.
        let set =
            [policy("new", "appcat", &["ones"]), policy("other", "appcat", &["twos", "threes"])];
        commit(plane, &set).await;
        all_accepted(plane, &set).await;
        let set =
            [policy("new", "appcat", &["ones", "threes"]), policy("other", "appcat", &["twos"])];
        commit(plane, &set).await;
        all_accepted(plane, &set).await;
    });
}
