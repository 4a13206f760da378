//! `statusgate wait`: an object that becomes current, and one that fails.

use serde_json::{Value, json};

use super::command::{run, text};
use crate::command::STATUSGATE;
use crate::harness::leash::Leashed;
use crate::harness::objects::GADGET;
use crate::harness::patience::until;
use crate::harness::pool::in_own_cluster;

fn in_phase(phase: &str) -> Value {
    let conditions = ["Ready", "PodReady"].map(|kind| {
        json!({"type": kind, "status": "True", "reason": "Test", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z"})
    });
    json!({"phase": phase, "instanceNamespace": "i", "conditions": conditions})
}

#[test]
fn wait_ends_when_the_object_is_current_or_has_failed() {
    in_own_cluster(async |plane| {
        plane.create(GADGET, "awaited", 2, in_phase("Provisioning")).await;
        let (policies, kubeconfig) = (plane.policies(), plane.kubeconfig());
        let arguments = ["--policies", text(&policies), "--timeout=5m"];
        let start = |name: &str| {
            let log = plane.folder("waits").join(name);
            let object = ["wait", "--kubeconfig", text(&kubeconfig), "gadget", name];
            Leashed::start(&log, STATUSGATE, [&object[..], &arguments].concat())
        };
        for (name, phase, code, end) in [
            ("awaited-0", "Ready", "0", "is current"),
            ("awaited-1", "Failed", "1", "is failed: phase Failed"),
        ] {
            let waiting = start(name);
            let change = format!("gadgets/{name}: inProgress: phase Provisioning\n");
            until("it waits", async || (waiting.log() == change).then_some(())).await;
            plane.objects(GADGET).merge_status(name, in_phase(phase)).await.unwrap();
            assert_eq!(waiting.ended(), code, "{}", waiting.log());
            let line = format!("gadgets.test.statusgate.dev/{name} {end}\n");
            assert_eq!(waiting.log(), format!("{change}{line}"));
        }
        // Built-in kinds have their kstatus result.
        let of_kubernetes = run("wait", &kubeconfig, &["ns", "default", "kube-system"]);
        let lines = "namespaces/default is current\nnamespaces/kube-system is current\n";
        assert_eq!((of_kubernetes.code, &*of_kubernetes.out), (Some(0), lines));
        let missing = ["Gadget.v1.test.statusgate.dev/missing", "--timeout=0s"];
        let missing = run("wait", &kubeconfig, &missing);
        let line = "gadgets/missing: does not exist\n\
                    timed out: gadgets.test.statusgate.dev/missing does not exist\n";
        assert_eq!((missing.code, &*missing.err), (Some(1), line));
    });
}
