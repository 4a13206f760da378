//! Several processes in parallel.

use std::collections::HashSet;
use std::thread;

use serde_json::json;

use super::command::{json_lines, run, text};
use crate::harness::objects::{GADGET, WIDGET};
use crate::harness::pool::in_own_cluster;

#[test]
fn shards_cover_every_object_exactly_once() {
    in_own_cluster(async |plane| {
        plane.create(GADGET, "sharded", 120, json!({})).await;
        let (kubeconfig, policies) = (plane.kubeconfig(), plane.policies());
        let shards: Vec<Vec<String>> = thread::scope(|scope| {
            let shard = |index: usize| {
                let (kubeconfig, policies) = (&kubeconfig, &policies);
                scope.spawn(move || {
                    let shard = format!("--shard={index}/3");
                    let arguments =
                        ["--policies", text(policies), "-l", "test=sharded", "-ojson", &shard];
                    let ended = run("backfill", kubeconfig, &arguments);
                    assert_eq!(ended.code, Some(0), "{}", ended.err);
                    let objects = json_lines(&ended.out);
                    assert!(objects.iter().all(|object| object["outcome"] == "patched"));
                    objects.iter().map(|object| object["uid"].to_string()).collect()
                })
            };
            let running: Vec<_> = (0..3).map(shard).collect();
            running.into_iter().map(|running| running.join().unwrap()).collect()
        });
        assert_eq!(shards.iter().map(Vec::len).sum::<usize>(), 120);
        assert_eq!(shards.iter().flatten().collect::<HashSet<_>>().len(), 120);
        for gadget in plane.labelled(GADGET, "sharded").await {
            assert_eq!(gadget["status"], json!({"phase": "Unknown", "billing": null}));
        }
    });
}

#[test]
fn a_repair_stores_the_phase_that_the_conditions_support() {
    in_own_cluster(async |plane| {
        let time = "2024-06-01T10:00:00Z";
        let ready = json!({"type": "Ready", "status": "False", "reason": "No", "message": "", "lastTransitionTime": time});
        let status = json!({"phase": "Ready", "conditions": [ready]});
        plane.create(WIDGET, "repaired", 2, status.clone()).await;
        let policies = plane.policies();
        let arguments = ["--policies", text(&policies), "-l", "test=repaired", "--repair"];
        let ended = run("backfill", &plane.kubeconfig(), &arguments);
        assert_eq!(ended.code, Some(0), "{}", ended.err);
        let line = "repaired widgets.test.statusgate.dev repaired-0: set to \"Provisioning\": phase \
                    Ready disagrees: condition Ready is False\n";
        assert!(ended.out.contains(line), "{}", ended.out);
        for widget in plane.labelled(WIDGET, "repaired").await {
            assert_eq!(widget["status"]["phase"], "Provisioning", "{widget}");
            assert_eq!(widget["status"]["conditions"], status["conditions"], "{widget}");
        }
    });
}

#[test]
fn a_dry_run_shows_the_changes_and_writes_nothing() {
    in_own_cluster(async |plane| {
        plane.create(GADGET, "dry", 2, json!({"instanceNamespace": "n"})).await;
        let before = plane.labelled(GADGET, "dry").await;
        let policies = plane.policies();
        let arguments = ["--policies", text(&policies), "-l", "test=dry", "--dry-run"];
        let ended = run("backfill", &plane.kubeconfig(), &arguments);
        assert_eq!(ended.code, Some(0), "{}", ended.err);
        let expected = "gadgets.test.statusgate.dev dry-0\n  + /status/billing: null\n  \
                        + /status/phase: \"Unknown\"\n";
        assert!(ended.out.starts_with(expected), "{}", ended.out);
        assert!(ended.out.contains("TO PATCH"), "{}", ended.out);
        assert_eq!(plane.labelled(GADGET, "dry").await, before);
    });
}
