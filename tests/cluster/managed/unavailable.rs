//! The API server or all replicas are away for a time.

use serde_json::json;

use super::replica::Installation;
use crate::command::run;
use crate::harness::objects::{
    COMPOSITE, CRD, Kind, LEASE, MUTATING, NAMESPACE, POLICY, SECRET, VALIDATING,
};
use crate::harness::patience::until;
use crate::harness::plane::{Plane, documents};
use crate::harness::pool::in_own_cluster;

#[test]
fn a_restart_of_the_api_server_changes_nothing() {
    in_own_cluster(async |plane| {
        let installation = Installation::new(plane, &[]).await;
        plane.create_policy().await;
        let replicas = installation.two().await;
        let name = plane.composite("restart").await;
        plane.judged(&name).await;
        plane.restart().await;
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

const DEPLOYMENT: Kind = Kind {
    api_version: "apps/v1",
    kind: "Deployment",
    path: "/apis/apps/v1/namespaces/statusgate-system/deployments",
};

/// Its subresources.
const OF_THE_DEPLOYMENT: Kind = Kind {
    api_version: "autoscaling/v1",
    kind: "Scale",
    path: "/apis/apps/v1/namespaces/statusgate-system/deployments/statusgate",
};

/// Sets `failurePolicy: Fail` for all webhooks about objects, also for those that the servers create with
/// Ignore.
async fn fail_everywhere(plane: &Plane) {
    for kind in [MUTATING, VALIDATING] {
        let registrations = plane.objects(kind);
        until("each webhook fails", async || {
            let mut stored = registrations.get("statusgate").await.ok()?;
            for webhook in stored["webhooks"].as_array_mut()? {
                webhook["failurePolicy"] = "Fail".into();
            }
            registrations.put(&stored).await.ok()
        })
        .await;
    }
}

/// The installation without a kubelet: a Deployment that users scale, upgrade and restart.
async fn change_the_deployment(plane: &Plane) {
    let printed = run(["manifests", "install"]);
    let mut objects = documents(&printed.out).into_iter();
    let deployment = objects.find(|object| object["kind"] == "Deployment").unwrap();
    let deployments = plane.objects(DEPLOYMENT);
    deployments.create(&deployment).await.unwrap();
    let replicas = json!({"spec": {"replicas": 3}});
    let scaled = plane.objects(OF_THE_DEPLOYMENT).merge("scale", replicas).await.unwrap();
    assert_eq!(scaled["spec"]["replicas"], 3);
    let container = json!({"name": "statusgate", "image": "statusgate:next"});
    let upgrade = json!({
        "metadata": {"labels": {"a": "b"}},
        "spec": {"template": {
            "metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "now"}},
            "spec": {"containers": [container]},
        }},
    });
    deployments.merge("statusgate", upgrade).await.unwrap();
    deployments.merge_status("statusgate", json!({"observedGeneration": 1})).await.unwrap();
    deployments.delete("statusgate").await.unwrap();
}

#[test]
fn without_replicas_and_with_fail_users_can_still_repair_everything_of_statusgate() {
    in_own_cluster(async |plane| {
        let installation = Installation::new(plane, &["--failure-policy=fail"]).await;
        plane.create_policy().await;
        let [one, two] = installation.two().await;
        let name = plane.composite("locked").await;
        plane.judged(&name).await;
        fail_everywhere(plane).await;
        one.kill();
        two.kill();

        let objects = plane.objects(COMPOSITE);
        let failed = objects.merge_status(&name, json!({"currentVersion": "1"})).await;
        assert!(failed.unwrap_err().to_string().contains("failed calling webhook"));
        change_the_deployment(plane).await;
        plane.objects(SECRET).delete("statusgate-tls").await.unwrap();
        // Specs, policies, Leases, namespaces, CRDs, registrations: all writes still pass.
        objects.merge(&name, json!({"metadata": {"labels": {"a": "b"}}})).await.unwrap();
        let policies = plane.objects(POLICY);
        policies.merge("appcat", json!({"spec": {"enforcement": "Warn"}})).await.unwrap();
        policies.delete("appcat").await.unwrap();
        plane.objects(LEASE).delete_all().await.unwrap();
        let label = json!({"metadata": {"labels": {"a": "b"}}});
        plane.objects(NAMESPACE).merge("statusgate-system", label.clone()).await.unwrap();
        plane.objects(CRD).merge("statuspolicies.statusgate.dev", label.clone()).await.unwrap();
        plane.objects(MUTATING).merge("statusgate", label).await.unwrap();
        // The finalizers of a deleted object end with a write of its metadata.
        let finalizers = |list| json!({"metadata": {"finalizers": list}});
        objects.merge(&name, finalizers(json!(["test.statusgate.dev/wait"]))).await.unwrap();
        objects.delete(&name).await.unwrap();
        objects.merge(&name, finalizers(json!([]))).await.unwrap();
        until("it is deleted", async || objects.get(&name).await.err()).await;
        plane.create_policy().await;
        // An invalid policy is stored now, and can be corrected.
        for convention in ["apcat", "appcat"] {
            let change = json!({"spec": {"convention": convention}});
            policies.merge("appcat", change).await.unwrap();
        }

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

#[test]
fn uninstall_leaves_nothing_behind_when_it_succeeds_after_the_servers_ended() {
    in_own_cluster(async |plane| {
        let installation = Installation::new(plane, &["--failure-policy=fail"]).await;
        plane.create_policy().await;
        let replica = installation.replica("uninstalled").await;
        let name = plane.composite("uninstalled").await;
        plane.judged(&name).await;
        let kubeconfig = format!("--kubeconfig={}", plane.kubeconfig().display());
        let all = || run(["uninstall", "--all", &kubeconfig, "--namespace=statusgate-system"]);
        let registrations = async || {
            let (mutating, validating) = (plane.list(MUTATING).await, plane.list(VALIDATING).await);
            mutating.len() + validating.len()
        };
        let ended = all();
        assert_eq!(ended.code, Some(2), "{}", ended.text());
        assert!(ended.text().contains("delete the Deployment"), "{}", ended.text());
        assert_eq!(registrations().await, 0);
        assert!(plane.objects(SECRET).get("statusgate-tls").await.is_ok());

        // A pod may be replaced before the Deployment is deleted.
        let later = installation.replica("later").await;
        until("the registrations exist again", async || (registrations().await == 3).then_some(()))
            .await;
        replica.terminate();
        later.kill();
        let ended = all();
        assert_eq!(ended.code, Some(0), "{}", ended.text());
        assert_eq!((registrations().await, plane.list(LEASE).await.len()), (0, 0));
        assert!(plane.objects(SECRET).get("statusgate-tls").await.is_err());
    });
}
