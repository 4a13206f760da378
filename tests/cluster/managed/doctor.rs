//! `statusgate doctor` with two running servers that manage everything.

use serde_json::Value;

use super::replica::Installation;
use crate::command::run;
use crate::harness::objects::VALIDATING;
use crate::harness::plane::Plane;
use crate::harness::pool::in_own_cluster;

/// The exit code, and the checks as `level check of: found`.
async fn doctor(plane: &Plane) -> (Option<i32>, Vec<String>) {
    let kubeconfig = format!("--kubeconfig={}", plane.kubeconfig().display());
    let ended = tokio::task::spawn_blocking(move || run(["doctor", "--output=json", &kubeconfig]));
    let ended = ended.await.expect("doctor ends");
    let document: Value = serde_json::from_str(&ended.out).expect(&ended.err);
    let text = |check: &Value, name: &str| check[name].as_str().expect("a text").to_owned();
    let checks = document["checks"].as_array().expect("a list").iter();
    let checks = checks.map(|check| {
        let [level, id, of, found] = ["level", "check", "of", "found"].map(|it| text(check, it));
        format!("{level} {id} {of}: {found}")
    });
    (ended.code, checks.collect())
}

#[test]
fn doctor_passes_two_replicas_and_names_a_deleted_registration() {
    in_own_cluster(async |plane| {
        let installation = Installation::new(plane, &[]).await;
        plane.create_policy().await;
        let [one, two] = installation.two().await;
        plane.enforced(2).await;
        let (code, checks) = doctor(plane).await;
        assert_eq!(code, Some(0), "{checks:#?}");
        for expected in [
            "ok crd statuspolicies.statusgate.dev: established",
            "ok crd statusconventions.statusgate.dev: established",
            "ok replicas Leases in statusgate-system: replicas that renew their Lease: ",
            "ok secret Secret statusgate-system/statusgate-tls: its certificate is valid until ",
            "ok documents StatusPolicy appcat: 2 of 2 replicas",
            "ok ca-bundle mutating statusgate/",
            "ok reachable validating statusgate-documents/",
        ] {
            assert!(checks.iter().any(|it| it.starts_with(expected)), "{expected}: {checks:#?}");
        }

        // Running servers create it again.
        one.terminate();
        two.terminate();
        plane.objects(VALIDATING).delete("statusgate-documents").await.unwrap();
        let (code, checks) = doctor(plane).await;
        assert_eq!(code, Some(1), "{checks:#?}");
        for expected in [
            "warning registration ValidatingWebhookConfiguration statusgate-documents: no registration calls",
            "problem replicas Leases in statusgate-system: no replica renews a Lease",
        ] {
            assert!(checks.iter().any(|it| it.starts_with(expected)), "{expected}: {checks:#?}");
        }
    });
}
