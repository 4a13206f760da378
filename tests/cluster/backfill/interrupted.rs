//! Backfill with thousands of objects, a busy client, kills and a restart.

use std::collections::{HashMap, HashSet};
use std::fs;

use serde_json::{Value, json};

use super::command::{file, json_lines, patched, run, start, text};
use super::writer::Writer;
use crate::harness::objects::{CLAIM, GADGET, Kind, WIDGET, name_of};
use crate::harness::patience::until;
use crate::harness::plane::Plane;
use crate::harness::pool::in_own_cluster;

const LABEL: &str = "interrupted";
const KINDS: [(Kind, usize); 3] = [(CLAIM, 700), (GADGET, 650), (WIDGET, 650)];

#[test]
fn two_thousand_objects_are_updated_despite_kills_a_restart_and_a_busy_client() {
    in_own_cluster(async |plane| {
        let mut all = 0;
        let mut written = Vec::new();
        for (kind, count) in KINDS {
            // A partial status, as from a controller before a CRD upgrade.
            plane.create(kind, LABEL, count, json!({"instanceNamespace": "first"})).await;
            all += count;
            // The client writes nine of ten objects; the tenth shows the number of our writes.
            let names = (0..count).filter(|number| number % 10 != 0);
            let names = names.map(|number| format!("{LABEL}-{number}")).collect();
            written.push((kind, names));
        }
        let before = generations(plane).await;
        let folder = plane.folder("interrupted");
        let policies = plane.policies();
        let selector = format!("test={LABEL}");
        let arguments =
            ["--policies", text(&policies), "--selector", &selector, "--qps=500", "--output=json"];
        let writer = Writer::start(plane, &written);

        let mut logs = Vec::new();
        for number in [300, 600] {
            let log = file(&folder, &format!("killed-{number}"));
            let backfill = start(&log, &plane.kubeconfig(), &arguments);
            until("so many are patched", async || {
                (patched(&backfill.log()).len() >= number).then_some(())
            })
            .await;
            backfill.signal("KILL");
            assert_eq!(backfill.ended(), "137", "{}", backfill.log());
            logs.push(backfill.log());
        }
        let log = file(&folder, "last");
        let backfill = start(&log, &plane.kubeconfig(), &arguments);
        until("some more are patched", async || {
            (patched(&backfill.log()).len() >= 300).then_some(())
        })
        .await;
        plane.restart().await;
        assert_eq!(backfill.ended(), "0", "{}", backfill.log());
        logs.push(backfill.log());
        let last = writer.finish().await;
        assert!(!last.is_empty(), "the client wrote");

        every_object_has_its_fields_and_nothing_is_lost(plane, &last).await;
        no_object_was_written_twice(plane, &before, &logs, all).await;

        let versions = versions(plane).await;
        let again = run("backfill", &plane.kubeconfig(), &arguments[..2]);
        assert_eq!(again.code, Some(0), "{}", again.err);
        assert_eq!(self::versions(plane).await, versions, "a second run writes nothing");
        fs::remove_dir_all(folder).unwrap();
    });
}

#[test]
fn after_a_signal_every_write_is_in_the_report() {
    in_own_cluster(async |plane| {
        plane.create(GADGET, "signalled", 60, json!({})).await;
        let (folder, policies) = (plane.folder("signalled"), plane.policies());
        let arguments = [
            "--policies",
            text(&policies),
            "--output=json",
            "--selector=test=signalled",
            "--qps=20",
        ];
        let backfill = start(&file(&folder, "log"), &plane.kubeconfig(), &arguments);
        until("some are patched", async || (patched(&backfill.log()).len() >= 5).then_some(()))
            .await;
        backfill.signal("TERM");
        assert_eq!(backfill.ended(), "2", "{}", backfill.log());
        let told = "stopped before the end; run the same command to continue\n";
        assert!(backfill.log().contains(told), "{}", backfill.log());

        let gadgets = plane.labelled(GADGET, "signalled").await;
        let written = gadgets.iter().filter(|gadget| gadget["status"]["phase"] == "Unknown");
        let uid = |gadget: &Value| gadget["metadata"]["uid"].as_str().unwrap().to_owned();
        let reported: HashSet<String> = patched(&backfill.log()).into_iter().collect();
        assert_eq!(written.map(uid).collect::<HashSet<_>>(), reported);
        assert!(reported.len() < 60, "it was stopped in the middle");
    });
}

async fn every_object_has_its_fields_and_nothing_is_lost(
    plane: &Plane,
    last: &HashMap<String, String>,
) {
    for (kind, count) in KINDS {
        let objects = plane.labelled(kind, LABEL).await;
        assert_eq!(objects.len(), count);
        for object in objects {
            let status = &object["status"];
            assert_eq!(status["phase"], "Unknown", "{object}");
            assert_eq!(status.get("billing"), (kind == GADGET).then_some(&Value::Null), "{object}");
            let key = format!("{}/{}", kind.kind, name_of(&object));
            if let Some(expected) = last.get(&key) {
                assert_eq!(status["instanceNamespace"], **expected, "{key}");
            }
        }
    }
}

async fn no_object_was_written_twice(
    plane: &Plane,
    before: &HashMap<String, i64>,
    logs: &[String],
    all: usize,
) {
    let lines: Vec<Value> = logs.iter().flat_map(|log| json_lines(log)).collect();
    let of = |outcome: &str| -> Vec<&str> {
        let lines = lines.iter().filter(|line| line["outcome"] == *outcome);
        lines.filter_map(|line| line["uid"].as_str()).collect()
    };
    let reported = of("patched");
    let distinct: HashSet<&str> = reported.iter().copied().collect();
    assert_eq!(reported.len(), distinct.len(), "an object was reported as patched in two runs");
    // A write that was confirmed during a kill is in no report and needs nothing in the next run: at most
    // two objects for each writer and kill.
    assert!(reported.len() <= all && reported.len() + 2 * 16 >= all, "{} of {all}", reported.len());
    assert_eq!(of("rejected"), [""; 0]);
    assert_eq!(of("failed"), [""; 0]);
    let conflicts: u64 = lines.iter().filter_map(|line| line["conflicts"].as_u64()).sum();
    assert!(conflicts > 0, "the client came in between at least once");

    // Every write of a kind without the subresource counts in the generation.
    let after = generations(plane).await;
    for number in (0..650).step_by(10) {
        let name = format!("{LABEL}-{number}");
        assert_eq!(after[&name], before[&name] + 1, "{name}: it was written once");
    }
}

/// The generations of widgets, by name.
async fn generations(plane: &Plane) -> HashMap<String, i64> {
    let widgets = plane.labelled(WIDGET, LABEL).await;
    let generation = |object: &Value| object["metadata"]["generation"].as_i64().unwrap();
    widgets.iter().map(|object| (name_of(object).to_owned(), generation(object))).collect()
}

async fn versions(plane: &Plane) -> HashSet<String> {
    let mut versions = HashSet::new();
    for (kind, _) in KINDS {
        let objects = plane.labelled(kind, LABEL).await;
        let version = |object: &Value| {
            format!("{}/{}", object["metadata"]["uid"], object["metadata"]["resourceVersion"])
        };
        versions.extend(objects.iter().map(version));
    }
    versions
}
