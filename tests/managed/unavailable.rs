//! The API server or all replicas are away for a time.

use serde_json::json;

use crate::objects::{COMPOSITE, CRD, MUTATING};
use crate::patience::until;
use crate::plane::{LEASE, NAMESPACE, POLICY, in_turn};
use crate::process::run;
use crate::replica::Installation;

#[test]
fn a_restart_of_the_api_server_changes_nothing() {
    in_turn(async |plane| {
        let installation = Installation::new(plane, &[]).await;
        plane.create_policy().await;
        let replicas = installation.two().await;
        let name = plane.composite("restart").await;
        plane.judged(&name).await;
        plane.restart(2).await;
        plane.judged(&name).await;
        // Its watches go on, too.
        let policies = plane.objects(POLICY);
        let warn = json!({"spec": {"enforcement": "Warn"}});
        until("the API is back", async || policies.merge("appcat", warn.clone()).await.ok()).await;
        let objects = plane.objects(COMPOSITE);
        until("the policy only warns", async || {
            objects.dry_merge_status(&name, json!({"phase": "Nonsense"})).await.ok()
        })
        .await;
        for replica in &replicas {
            assert_eq!(replica.metric("statusgate_policies ").await, Some(1.0));
        }
    });
}

#[test]
fn without_replicas_and_with_fail_users_can_still_repair_everything_of_statusgate() {
    in_turn(async |plane| {
        let installation = Installation::new(plane, &["--failure-policy=fail"]).await;
        plane.create_policy().await;
        let [one, two] = installation.two().await;
        let name = plane.composite("locked").await;
        plane.judged(&name).await;
        one.kill();
        two.kill();

        let objects = plane.objects(COMPOSITE);
        let failed = objects.merge_status(&name, json!({"currentVersion": "1"})).await;
        assert!(failed.unwrap_err().to_string().contains("failed calling webhook"));
        // Specs, policies, Leases, namespaces, CRDs, registrations: all writes still pass.
        objects.merge(&name, json!({"metadata": {"labels": {"a": "b"}}})).await.unwrap();
        let policies = plane.objects(POLICY);
        policies.merge("appcat", json!({"spec": {"enforcement": "Warn"}})).await.unwrap();
        policies.delete("appcat").await.unwrap();
        plane.delete_all(LEASE).await;
        let label = json!({"metadata": {"labels": {"a": "b"}}});
        plane.objects(NAMESPACE).merge("statusgate-system", label.clone()).await.unwrap();
        plane.objects(CRD).merge("statuspolicies.statusgate.dev", label.clone()).await.unwrap();
        plane.objects(MUTATING).merge("statusgate", label).await.unwrap();
        objects.delete(&name).await.unwrap();
        plane.create_policy().await;

        // A new replica repairs it, and without one the command does.
        let replica = installation.replica("again").await;
        let name = plane.composite("repaired").await;
        plane.judged(&name).await;
        replica.kill();
        let kubeconfig = format!("--kubeconfig={}", plane.kubeconfig().display());
        let ended = run(["uninstall", &kubeconfig, "--namespace=statusgate-system"]);
        assert_eq!(ended.code, Some(0), "{}", ended.text());
        objects.merge_status(&name, json!({"currentVersion": "1"})).await.unwrap();
        let again = run(["uninstall", &kubeconfig, "--namespace=statusgate-system"]);
        assert_eq!(again.code, Some(0), "{}", again.text());
    });
}
