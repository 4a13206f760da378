//! The commands of docs/runbooks.md end the incidents that they are for.

use std::path::Path;
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::permissions::{ACCOUNT, Grants};
use super::replica::Installation;
use crate::command::STATUSGATE;
use crate::harness::objects::{COMPOSITE, Kind, LEASE, MUTATING, POLICY, VALIDATING, name_of};
use crate::harness::patience::until;
use crate::harness::plane::Plane;
use crate::harness::pool::in_own_cluster;
use crate::page_texts::root;

const NODE: Kind = Kind { api_version: "v1", kind: "Node", path: "/api/v1/nodes" };
const POD: Kind =
    Kind { api_version: "v1", kind: "Pod", path: "/api/v1/namespaces/statusgate-system/pods" };

/// The commands in a section of the page, block by block.
fn blocks(section: &str) -> Vec<String> {
    let page = std::fs::read_to_string(root().join("docs/runbooks.md")).unwrap();
    let (_, rest) = page.split_once(&format!("\n## {section}\n")).expect(section);
    let text = rest.split("\n## ").next().unwrap();
    let blocks = text.split("\n```sh\n").skip(1);
    blocks.map(|block| block.split("\n```").next().unwrap().to_owned()).collect()
}

/// Runs a block as an administrator, and returns its output.
fn run(plane: &Plane, block: &str) -> String {
    let path = r#"PATH=$1:$("$2" assets 2> /dev/null):$PATH"#;
    let output = Command::new("bash")
        .args(["-c", &format!("{path}; set -e; {{ {block}\n}} 2>&1"), "runbook"])
        .args([Path::new(STATUSGATE).parent().unwrap(), &root().join("hack/control-plane.sh")])
        .env("KUBECONFIG", plane.kubeconfig())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{block}\n{text}");
    text
}

/// Waits until a write of the status passes or fails for the API server.
async fn written(plane: &Plane, name: &str, passes: bool) {
    let objects = plane.objects(COMPOSITE);
    until(&format!("a write passes: {passes}"), async || {
        let status = json!({"currentVersion": "1"});
        (objects.dry_merge_status(name, status).await.is_ok() == passes).then_some(())
    })
    .await;
}

async fn policies_of_failure(plane: &Plane) -> [Value; 2] {
    let of = async |kind| {
        let registration = plane.objects(kind).get("statusgate").await.unwrap();
        registration["webhooks"][0]["failurePolicy"].clone()
    };
    [of(MUTATING).await, of(VALIDATING).await]
}

#[test]
fn writes_pass_again_without_servers() {
    in_own_cluster(async |plane| {
        let installation = Installation::new(plane, &["--failure-policy=fail"]).await;
        plane.create_policy().await;
        let [one, two] = installation.two().await;
        let name = plane.composite("blocked").await;
        plane.judged(&name).await;
        one.kill();
        two.kill();
        written(plane, &name, false).await;
        let [ignore, fail] = blocks("StatusgateDown").try_into().unwrap();
        let begin = Instant::now();
        run(plane, &ignore);
        written(plane, &name, true).await;
        println!("writes pass {:?} after the first command", begin.elapsed());

        let _replica = installation.replica("three").await;
        plane.judged(&name).await;
        assert_eq!(policies_of_failure(plane).await, ["Ignore", "Ignore"], "the servers keep it");
        run(plane, &fail);
        assert_eq!(policies_of_failure(plane).await, ["Fail", "Fail"]);
        plane.judged(&name).await;
    });
}

#[test]
fn writes_pass_again_with_a_wrong_ca_bundle_that_servers_cannot_correct() {
    in_own_cluster(async |plane| {
        let grants = Grants::new(plane);
        grants.apply_without(&[]).await;
        let installation = Installation::of_user(plane, ACCOUNT).await;
        plane.create_policy().await;
        let _replica = installation.replica("one").await;
        let name = plane.composite("untrusted").await;
        plane.judged(&name).await;
        let mut patches = grants.permissions();
        patches.retain(|of| of.verb == "patch" && of.resource.contains("webhookconfigurations"));
        grants.apply_without(&patches).await;
        let wrong =
            STANDARD.encode(std::fs::read(plane.kubeconfig().with_file_name("ca.crt")).unwrap());
        for kind in [MUTATING, VALIDATING] {
            let registrations = plane.objects(kind);
            let mut registration = registrations.get("statusgate").await.unwrap();
            let inject = json!({"cert-manager.io/inject-ca-from": "other/certificate"});
            registration["metadata"]["annotations"] = inject;
            registration["webhooks"][0]["failurePolicy"] = "Fail".into();
            registration["webhooks"][0]["clientConfig"]["caBundle"] = wrong.clone().into();
            registrations.put(&registration).await.unwrap();
        }
        written(plane, &name, false).await;
        for block in blocks("StatusgateRegistrationOutOfSync") {
            run(plane, &block);
        }
        written(plane, &name, true).await;
        plane.judged(&name).await;
        let registration = plane.objects(MUTATING).get("statusgate").await.unwrap();
        let annotation = &registration["metadata"]["annotations"]["cert-manager.io/inject-ca-from"];
        assert!(annotation.is_null(), "{registration:#}");
    });
}

#[test]
fn writes_pass_again_under_a_policy_that_rejects_every_write() {
    in_own_cluster(async |plane| {
        let installation = Installation::new(plane, &[]).await;
        plane.create_policy().await;
        let _replica = installation.replica("one").await;
        let name = plane.composite("rejected").await;
        plane.judged(&name).await;
        let policies = plane.objects(POLICY);
        let mut everything = policies.named("everything");
        everything["spec"] = json!({
            "convention": "metav1",
            "resources": [{
                "apiGroups": ["vshn.appcat.vshn.io"], "apiVersions": ["v1"],
                "resources": ["xvshnpostgresqls"],
            }],
            "rules": [{"name": "no-write", "trigger": "state", "expression": "false", "message": "no"}],
        });
        policies.create(&everything).await.unwrap();
        written(plane, &name, false).await;
        let [audit, enforce] = blocks("A policy rejects every write").try_into().unwrap();
        run(plane, &audit);
        written(plane, &name, true).await;
        plane.judged(&name).await;
        run(plane, &enforce);
        written(plane, &name, false).await;
    });
}

#[test]
fn a_replica_with_a_wrong_clock_is_found_and_moved_to_another_node() {
    in_own_cluster(async |plane| {
        // Leases as two replicas write them, and what a cluster has for the pods.
        let (nodes, pods, leases) = (plane.objects(NODE), plane.objects(POD), plane.objects(LEASE));
        nodes.create(&nodes.named("node-1")).await.unwrap();
        let mut pod = pods.named("statusgate-0");
        pod["spec"] = json!({"nodeName": "node-1", "automountServiceAccountToken": false,
            "containers": [{"name": "statusgate", "image": "statusgate"}]});
        pods.create(&pod).await.unwrap();
        let now = jiff::Timestamp::now();
        for (pod, time) in
            [("statusgate-0", now - jiff::SignedDuration::from_hours(24)), ("statusgate-1", now)]
        {
            let mut lease = leases.named(&format!("{pod}-8443"));
            lease["spec"] =
                json!({"holderIdentity": name_of(&lease), "renewTime": format!("{time:.6}")});
            leases.create(&lease).await.unwrap();
        }
        let [look, move_away, undo] = blocks("The clock of a replica is wrong").try_into().unwrap();
        let shown = run(plane, &look);
        let lines: Vec<&str> = shown.lines().collect();
        let [now, _, wrong, right] = lines[..] else { panic!("{shown}") };
        let day =
            |line: &str| line.split('T').next().unwrap()[line.find("20").unwrap()..].to_owned();
        assert!(wrong.starts_with("statusgate-0-8443") && right.starts_with("statusgate-1-8443"));
        assert_ne!(day(wrong), day(now), "{shown}");

        run(plane, &move_away);
        let is_closed =
            async || nodes.get("node-1").await.unwrap()["spec"]["unschedulable"] == true;
        assert!(is_closed().await);
        // No kubelet confirms that it has stopped.
        let deleted = pods
            .get("statusgate-0")
            .await
            .map_or(true, |pod| pod["metadata"]["deletionTimestamp"].is_string());
        assert!(deleted);
        run(plane, &undo);
        assert!(!is_closed().await);
        run(plane, "kubectl -n statusgate-system delete pod --all --force --grace-period=0");
        nodes.delete("node-1").await.unwrap();
    });
}
