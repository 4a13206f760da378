//! Another version of statusgate serves in the same cluster, and writes more than this one knows.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::replica::Installation;
use crate::harness::objects::{
    COMPOSITE, CRD, LEASE, Objects, POLICY, SECRET, VALIDATING, condition_of, name_of,
};
use crate::harness::patience::until;
use crate::harness::plane::Plane;
use crate::harness::pool::in_own_cluster;
use crate::harness::traffic::Traffic;

/// The CRD of policies in the cluster, with the keys of a newer version or without them.
async fn change_crd(plane: &Plane, known: bool) {
    const NAME: &str = "statuspolicies.statusgate.dev";
    let crds = plane.objects(CRD);
    let text = json!({"type": "string"});
    until("the CRD is changed", async || {
        let mut crd = crds.get(NAME).await.ok()?;
        let schema = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
        for pointer in [
            "/spec/properties",
            "/status/properties",
            "/status/properties/replicas/items/properties",
        ] {
            let properties = schema.pointer_mut(pointer)?.as_object_mut()?;
            if known {
                properties.insert("newerKey".to_owned(), text.clone());
            } else {
                properties.remove("newerKey");
            }
        }
        crds.put(&crd).await.ok()
    })
    .await;
}

/// The Lease of the other version, as it writes it.
fn newer_lease(leases: &Objects) -> Value {
    let mut lease = leases.named("newer-8443");
    lease["metadata"]["labels"] = json!({"app.kubernetes.io/name": "statusgate"});
    lease["metadata"]["annotations"] =
        json!({"statusgate.dev/authority": "", "statusgate.dev/newer": "kept"});
    lease["spec"] = json!({
        "holderIdentity": "newer-8443",
        "leaseTransitions": 7,
        "renewTime": "2026-01-01T00:00:00.000000Z",
    });
    lease
}

#[test]
fn what_a_newer_version_writes_is_reported_and_kept() {
    in_own_cluster(async |plane| {
        change_crd(plane, true).await;
        let (policies, leases) = (plane.objects(POLICY), plane.objects(LEASE));
        plane.create_policy().await;
        let newer = json!({"spec": {"newerKey": "kept"}});
        policies.merge("appcat", newer.clone()).await.unwrap();
        let status = json!({
            "newerKey": "kept",
            "replicas": [{"name": "newer-8443", "generation": 2, "newerKey": "kept"}],
        });
        until("the CRD is effective", async || {
            let manager = "statusgate-newer-8443";
            let policy = policies.apply_status("appcat", manager, status.clone()).await.ok()?;
            (policy["status"]["newerKey"] == "kept").then_some(())
        })
        .await;
        let lease = leases.create(&newer_lease(&leases)).await.unwrap();
        // It is alive while it renews its Lease.
        let renewals = leases.clone();
        let renewing = tokio::spawn(async move {
            for second in 0_u64.. {
                let count = json!({"metadata": {"labels": {"count": second.to_string()}}});
                let _ = renewals.merge("newer-8443", count).await;
                sleep(Duration::from_secs(1)).await;
            }
        });

        let installation = Installation::new(plane, &[]).await;
        let replica = installation.replica("older").await;
        let policy = until("the unknown key is reported", async || {
            let policy = policies.get("appcat").await.ok()?;
            let is_rejected = condition_of(&policy, "Accepted")["status"] == "False";
            (is_rejected && policy["status"]["replicas"].as_array().is_some()).then_some(policy)
        })
        .await;
        let message = condition_of(&policy, "Accepted")["message"].as_str().unwrap();
        assert!(message.contains("newerKey"), "{message}");
        assert_eq!(policy["spec"]["newerKey"], "kept");
        // Both versions count.
        let enforced = condition_of(&policy, "Enforced")["message"].as_str().unwrap();
        assert!(enforced.starts_with("1 of 2 replicas"), "{enforced}");

        // After each kind of write, the unknown keys are there.
        policies.merge("appcat", json!({"spec": {"newerKey": null}})).await.unwrap();
        until("this version accepts it", async || {
            let policy = policies.get("appcat").await.ok()?;
            let replicas = policy["status"]["replicas"].as_array()?;
            let is_accepted = condition_of(&policy, "Accepted")["status"] == "True";
            (is_accepted && replicas.len() == 2).then_some(())
        })
        .await;
        let policy = policies.get("appcat").await.unwrap();
        assert_eq!(policy["status"]["newerKey"], "kept", "{policy:#}");
        let replicas = policy["status"]["replicas"].as_array().unwrap();
        assert!(replicas.contains(&status["replicas"][0]), "{policy:#}");
        assert!(!replica.log().contains("\"ERROR\""), "{}", replica.log());
        let stored = leases.get("newer-8443").await.unwrap();
        assert_eq!(stored["metadata"]["annotations"], lease["metadata"]["annotations"]);
        assert_eq!(stored["spec"], lease["spec"]);
        renewing.abort();
        change_crd(plane, false).await;
    });
}

#[test]
fn unknown_parts_of_the_secret_registrations_and_leases_stay_when_this_version_writes_them() {
    in_own_cluster(async |plane| {
        let installation = Installation::new(plane, &[]).await;
        plane.create_policy().await;
        let _replica = installation.replica("older").await;
        let name = plane.composite("versions").await;
        plane.judged(&name).await;
        let (secrets, leases) = (plane.objects(SECRET), plane.objects(LEASE));
        let registrations = plane.objects(VALIDATING);
        let annotations = json!({"statusgate.dev/newer": "kept"});
        let newer = json!({"metadata": {"annotations": annotations}});

        let own = plane.list(LEASE).await.pop().expect("its Lease");
        let patch =
            json!({"metadata": {"annotations": annotations}, "spec": {"leaseTransitions": 7}});
        leases.merge(name_of(&own), patch).await.unwrap();
        let webhook = json!({
            "name": "newer.statusgate.dev",
            "clientConfig": {"url": "https://127.0.0.1:1/newer"},
            "rules": [{
                "apiGroups": ["newer.statusgate.dev"], "apiVersions": ["v1"],
                "operations": ["UPDATE"], "resources": ["newer"], "scope": "Cluster",
            }],
            "failurePolicy": "Ignore", "sideEffects": "None", "admissionReviewVersions": ["v1"],
        });
        until("the registration has another webhook", async || {
            let mut registration = registrations.get("statusgate").await.ok()?;
            registration["metadata"]["annotations"] = annotations.clone();
            registration["webhooks"].as_array_mut()?.insert(0, webhook.clone());
            registrations.put(&registration).await.ok()
        })
        .await;
        let before = secrets.get("statusgate-tls").await.unwrap();
        // Without the key, this version adds an authority.
        let mut patch = newer.clone();
        patch["data"] = json!({"ca.key": null, "newer.key": STANDARD.encode("kept")});
        secrets.merge("statusgate-tls", patch).await.unwrap();
        let secret = until("the authority and the leaf are replaced", async || {
            let secret = secrets.get("statusgate-tls").await.ok()?;
            let is_new = |key: &str| {
                secret["data"][key].is_string() && secret["data"][key] != before["data"][key]
            };
            (is_new("ca.key") && is_new("ca.crt") && is_new("tls.crt")).then_some(secret)
        })
        .await;
        assert_eq!(secret["data"]["newer.key"], STANDARD.encode("kept"));
        assert_eq!(secret["metadata"]["annotations"], annotations);
        let registration = until("the caBundles are replaced", async || {
            let registration = registrations.get("statusgate").await.ok()?;
            let mut webhooks = registration["webhooks"].as_array()?.iter();
            let is_new =
                webhooks.all(|of| of["clientConfig"]["caBundle"] == secret["data"]["ca.crt"]);
            is_new.then_some(registration)
        })
        .await;
        assert_eq!(registration["metadata"]["annotations"], annotations);
        let stored = &registration["webhooks"][0];
        for key in ["name", "rules", "failurePolicy"] {
            assert_eq!(stored[key], webhook[key], "{stored:#}");
        }
        assert_eq!(stored["clientConfig"]["url"], webhook["clientConfig"]["url"]);
        let lease = until("its Lease is renewed", async || {
            let lease = leases.get(name_of(&own)).await.ok()?;
            (lease["spec"]["renewTime"] != own["spec"]["renewTime"]).then_some(lease)
        })
        .await;
        assert_eq!(lease["metadata"]["annotations"]["statusgate.dev/newer"], "kept");
        assert_eq!(lease["spec"]["leaseTransitions"], 7);
        plane.judged(&name).await;
    });
}

#[test]
fn a_new_server_replaces_the_two_webhooks_of_an_old_version_before_its_first_request() {
    in_own_cluster(async |plane| {
        let installation = Installation::new(plane, &["--failure-policy=fail"]).await;
        plane.create_policy().await;
        let name = plane.composite("upgraded").await;
        let old = installation.replica("old").await;
        plane.judged(&name).await;
        installation.stop(&old);
        let registrations = plane.objects(VALIDATING);
        until("the registration is that of the old version", async || {
            let mut registration = registrations.get("statusgate").await.ok()?;
            let [validate] = registration["webhooks"].as_array()?.as_slice() else { return None };
            let url = validate["clientConfig"]["url"].as_str()?;
            let webhook = |part: &str, failure_policy: &str| {
                let mut webhook = validate.clone();
                webhook["name"] = format!("{part}.statusgate.dev").into();
                webhook["clientConfig"]["url"] = format!("{url}/{part}").into();
                webhook["failurePolicy"] = failure_policy.into();
                webhook
            };
            registration["webhooks"] =
                json!([webhook("mandatory", "Fail"), webhook("agreement", "Ignore")]);
            registrations.put(&registration).await.ok()
        })
        .await;
        let _new = installation.replica("new").await;
        let traffic = Traffic::start(vec![(plane.objects(COMPOSITE), name.clone())]);
        traffic.go_on().await;
        assert_eq!(traffic.failures().await, [""; 0]);
        let registration = registrations.get("statusgate").await.unwrap();
        let webhooks = registration["webhooks"].as_array().unwrap();
        let webhooks = webhooks.iter().map(|of| (&of["name"], &of["failurePolicy"]));
        let expected = (&json!("validate.statusgate.dev"), &json!("Fail"));
        assert_eq!(webhooks.collect::<Vec<_>>(), [expected]);
        plane.judged(&name).await;
    });
}
