//! `statusgate record` in a cluster.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::command::{file, text};
use crate::command::{self, STATUSGATE};
use crate::harness::leash::Leashed;
use crate::harness::objects::{COMPOSITE, Objects, VALIDATING};
use crate::harness::patience::until;
use crate::harness::plane::Plane;
use crate::harness::pool::in_own_cluster;

const NAME: &str = "statusgate-record";

fn start(plane: &Plane, folder: &Path, name: &str, more: &[&str]) -> Leashed {
    let to = file(folder, &format!("{name}.jsonl"));
    let (kubeconfig, policies) = (plane.kubeconfig(), plane.policies());
    let arguments = ["record", "--kubeconfig", text(&kubeconfig), "--policies", text(&policies)];
    let arguments = [&arguments[..], &["--to", text(&to)], more].concat();
    Leashed::start(&file(folder, &format!("{name}.log")), STATUSGATE, arguments)
}

async fn is_registered(plane: &Plane) -> bool {
    plane.list(VALIDATING).await.iter().any(|of| of["metadata"]["name"] == NAME)
}

/// Writes until a recorder has recorded a write.
async fn write_until_recorded(objects: &Objects, name: &str, recording: &Path) {
    let mut count = 0;
    until("the API server calls the recorder", async || {
        count += 1;
        let status = json!({"phase": "Unknown", "instanceNamespace": format!("n{count}")});
        objects.merge_status(name, status).await.expect("a write");
        fs::read_to_string(recording).is_ok_and(|text| !text.is_empty()).then_some(())
    })
    .await;
}

#[test]
fn a_recording_denies_nothing_and_reports_each_write_at_its_end() {
    in_own_cluster(async |plane| {
        let folder = plane.folder("record");
        plane.create(COMPOSITE, "recorded", 1, json!({})).await;
        let recorder = start(plane, &folder, "first", &[]);
        let recording = file(&folder, "first.jsonl");
        let objects = plane.objects_of("operator", COMPOSITE);
        write_until_recorded(&objects, "recorded-0", &recording).await;
        let stored = objects.merge_status("recorded-0", json!({"phase": "ready"})).await;
        assert_eq!(stored.expect("nothing is denied")["status"]["phase"], "ready");
        // A stored violation is not reported again.
        objects
            .merge_status("recorded-0", json!({"instanceNamespace": "n"}))
            .await
            .expect("a write");
        objects.dry_merge_status("recorded-0", json!({"phase": "Nope"})).await.expect("a dry run");
        recorder.signal("TERM");
        assert_eq!(recorder.ended(), "1", "{}", recorder.log());
        assert!(!is_registered(plane).await);

        let lines = fs::read_to_string(&recording).expect("a recording");
        let lines: Vec<Value> =
            lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        // An API server asks twice about a write if its cache had an older object.
        let mut denied = 0;
        for line in &lines {
            let of = |object: &str| &line["request"][object]["status"]["phase"];
            let is_new = of("object") == "ready" && of("oldObject") != "ready";
            let findings = line["findings"].as_array().unwrap();
            let rules: Vec<&Value> = findings.iter().map(|found| &found["rule"]).collect();
            let expected: &[&str] = if is_new { &["appcat/phase-value"] } else { &[] };
            assert_eq!(rules, expected, "{}", recorder.log());
            denied += usize::from(is_new);
        }
        assert!(denied > 0, "{}", recorder.log());
        assert_eq!(lines.last().unwrap()["request"]["object"]["status"]["instanceNamespace"], "n");
        let by = "deny: XVSHNPostgreSQL recorded-0 by system:serviceaccount:apps:operator: status.phase: ";
        assert_eq!(recorder.log().matches(by).count(), denied, "{}", recorder.log());

        // The recording is an input of the other commands, and a report of it is a baseline.
        let report = command::run(["check", text(&recording), "-o", "json"]);
        assert_eq!(report.code, Some(1), "{report:?}");
        let baseline = file(&folder, "baseline.json");
        fs::write(&baseline, report.out).expect("a baseline");
        let accepted = command::run(["check", text(&recording), "--baseline", text(&baseline)]);
        assert_eq!(accepted.code, Some(0), "{accepted:?}");
        assert!(accepted.out.contains(" filtered out"), "{accepted:?}");
        let reviewed = command::run(["review", "--webhook", "validate", "-f", text(&recording)]);
        assert_eq!((reviewed.code, reviewed.out.lines().count()), (Some(1), lines.len()));
    });
}

#[test]
fn a_killed_recording_stops_no_write_and_the_next_one_replaces_its_registration() {
    in_own_cluster(async |plane| {
        let folder = plane.folder("record-killed");
        plane.create(COMPOSITE, "killed", 1, json!({})).await;
        let killed = start(plane, &folder, "killed", &[]);
        until("the webhook is registered", async || is_registered(plane).await.then_some(())).await;
        killed.signal("KILL");
        killed.ended();
        let objects = plane.objects(COMPOSITE);
        objects.merge_status("killed-0", json!({"phase": "ready"})).await.expect("a write");
        let replaced = start(plane, &folder, "replaced", &[]);
        write_until_recorded(&objects, "killed-0", &file(&folder, "replaced.jsonl")).await;
        assert!(replaced.log().contains("replaced the registration statusgate-record"));

        // The registration of a living recorder is replaced, too.
        let next = start(plane, &folder, "next", &["--for", "6s"]);
        write_until_recorded(&objects, "killed-0", &file(&folder, "next.jsonl")).await;
        replaced.signal("TERM");
        assert_eq!(replaced.ended(), "2", "{}", replaced.log());
        let incomplete = "the registration was deleted or replaced: the recording is incomplete";
        assert!(replaced.log().contains(incomplete), "{}", replaced.log());
        assert!(replaced.log().contains(" judged (appcat "), "{}", replaced.log());
        assert!(is_registered(plane).await);

        // No signal ends it.
        assert_eq!(next.ended(), "0", "{}", next.log());
        assert!(!is_registered(plane).await);

        let unused = start(plane, &folder, "unused", &["--for", "100ms"]);
        // No write: that is no success.
        assert_eq!(unused.ended(), "2", "{}", unused.log());
        assert!(unused.log().contains("nothing was recorded: "), "{}", unused.log());
        assert!(!file(&folder, "unused.jsonl").exists());
        assert!(!is_registered(plane).await);
    });
}
