//! Recorded writes: `tests/fixtures/recordings` has the same writes in every format, from kube-apiserver 1.20
//! and kubectl 1.32, without managedFields, most reads and most watch events. The last line of the audit log was
//! reduced to level Metadata, and objects.jsonl is watch.json, one object a line.

use serde_json::Value;

use super::Desk;
use crate::command::{Ended, run_in};

const OBJECTS: &str = include_str!("../../fixtures/recordings/objects.jsonl");
const WATCH: &str = include_str!("../../fixtures/recordings/watch.json");
const WATCH_EVENTS: &str = include_str!("../../fixtures/recordings/watch-events.json");
const REVIEWS: &str = include_str!("../../fixtures/recordings/reviews.jsonl");
const AUDIT: &str = include_str!("../../fixtures/recordings/audit.log");

/// The third write keeps what the second one introduced, and the last keeps the time of a condition.
const WRITES: [&str; 3] = ["appcat/phase-value", KEPT, KEPT];
const KEPT: &str = "appcat/transition-time-kept";
const OPERATOR: &str = "system:serviceaccount:apps:operator";

fn desk() -> Desk {
    Desk::new(&[
        ("objects.jsonl", OBJECTS),
        ("watch.json", WATCH),
        ("watch-events.json", WATCH_EVENTS),
        ("reviews.jsonl", REVIEWS),
        ("audit.log", AUDIT),
    ])
}

/// Judges after the writes, unless an argument or the recording has a time.
fn check(desk: &Desk, args: &[&str]) -> Ended {
    run_in(&desk.0, [&["check"], args].concat())
}

const LATER: [&str; 4] = ["--now", "2027-01-01T00:00:00Z", "-o", "json"];

fn rules(answer: &Ended) -> Vec<String> {
    answer.found().iter().map(|found| found.rsplit_once(' ').unwrap().1.to_owned()).collect()
}

#[test]
fn every_format_of_a_recording_gives_the_same_findings() {
    for args in [
        &["objects.jsonl", "--sequence"][..],
        &["watch.json", "--sequence"],
        &["watch-events.json"],
        &["reviews.jsonl"],
        &["audit.log"],
    ] {
        let answer = check(&desk(), &[args, &LATER].concat());
        assert_eq!(answer.code, Some(1), "{args:?}: {answer:#?}");
        assert_eq!(rules(&answer), WRITES, "{args:?}");
    }
}

#[test]
fn without_sequence_each_object_is_the_first() {
    let answer = check(&desk(), &[&["objects.jsonl"], &LATER[..]].concat());
    assert_eq!(rules(&answer), ["appcat/phase-value"; 3], "{answer:#?}");
}

#[test]
fn a_sequence_begins_with_the_old_object() {
    let second = OBJECTS.lines().nth(2).unwrap();
    let desk = Desk::new(&[("old.json", second), ("next.json", OBJECTS.lines().nth(3).unwrap())]);
    let answer =
        check(&desk, &[&["next.json", "--sequence", "--old", "old.json"], &LATER[..]].concat());
    assert_eq!(rules(&answer), [KEPT], "{answer:#?}");
}

#[test]
fn an_object_that_was_created_again_is_another_one() {
    let line = OBJECTS.lines().nth(2).unwrap();
    let other = line.replace("\"uid\":\"41794916", "\"uid\":\"51794916");
    assert_ne!(line, other);
    for (second, findings) in [(line, 1), (&*other, 2)] {
        let desk = Desk::new(&[("objects.jsonl", &format!("{line}\n{second}\n"))]);
        let answer = check(&desk, &[&["objects.jsonl", "--sequence"], &LATER[..]].concat());
        assert_eq!(rules(&answer).len(), findings, "{answer:#?}");
    }
}

#[test]
fn the_writer_of_a_recording_is_judged_and_reported() {
    for file in ["reviews.jsonl", "audit.log"] {
        let answer = desk().check(&[file, "-o", "json"]);
        for object in answer.objects() {
            let written = [&object["user"], &object["operation"], &object["subresource"]];
            assert_eq!(written, [OPERATOR, "UPDATE", "status"], "{answer:#?}");
        }
        let answer = desk().check(&[file]);
        let line = format!(": deny: VSHNPostgreSQL shop/orders by {OPERATOR}: status.phase: ");
        assert!(answer.out.contains(&line), "{answer:#?}");
    }
    // The policy repairs what Crossplane writes.
    let last = REVIEWS.lines().last().unwrap();
    let disagreeing = last.replacen("\"phase\":\"Provisioning\"", "\"phase\":\"Ready\"", 1);
    let disagreeing = disagreeing.replacen("\"status\":\"True\"", "\"status\":\"False\"", 1);
    let disagreeing = disagreeing.replacen("\"Available\"", "\"Creating\"", 1);
    let crossplane = "system:serviceaccount:syn-crossplane:crossplane";
    let crossplane = disagreeing.replace(OPERATOR, crossplane);
    for (review, code) in [(disagreeing, 1), (crossplane, 0)] {
        let desk = Desk::new(&[("review.json", &review)]);
        let answer = check(&desk, &["review.json", "--now", "2027-01-01T00:00:00Z"]);
        assert_eq!(answer.code, Some(code), "{answer:#?}");
        assert!(answer.out.contains("[appcat/phase-ready]"), "{answer:#?}");
    }
}

#[test]
fn only_stored_status_writes_of_an_audit_log_are_judged() {
    let answer = desk().check(&["audit.log"]);
    // Not: stages before the end, reads, a dry run, a rejected write, a creation, a change of the spec, a deletion.
    let last: Vec<&str> = answer.out.lines().rev().take(2).collect();
    assert_eq!(
        last[1],
        "not judged: 1 vshn.appcat.vshn.io/v1 vshnpostgresqls: the audit event has no object; log it at \
         level RequestResponse"
    );
    assert!(
        last[0].starts_with("5 objects in 1 file: 4 judged (appcat 4), 1 not judged; "),
        "{answer:#?}"
    );
}

#[test]
fn a_recorded_write_is_judged_at_its_time() {
    let event = AUDIT.lines().find(|line| line.contains("\"phase\":\"ready\"")).unwrap();
    // Half a day after the request: still in the future of the write.
    let future = AUDIT.replace("2026-11-24T10:00:00Z", "2026-11-25T10:00:00Z");
    assert!(event.contains("\"requestReceivedTimestamp\":\"2026-11-24T18:"));
    let desk = Desk::new(&[("past.log", AUDIT), ("future.log", &future)]);
    let found =
        |file: &str, now: &[&str]| rules(&check(&desk, &[&[file, "-o", "json"], now].concat()));
    assert_eq!(found("past.log", &[]), found("future.log", &["--now", "2030-01-01T00:00:00Z"]));
    assert_ne!(found("past.log", &[]), found("future.log", &[]));
}

#[test]
fn each_write_of_an_object_is_a_case_of_its_own() {
    let answer = desk().check(&["watch-events.json", "-o", "junit"]);
    let names = answer.out.lines().filter_map(|line| line.split(" name=\"").nth(1));
    let mut names: Vec<&str> = names.map(|rest| rest.split('"').next().unwrap()).collect();
    names.retain(|name| name.starts_with("VSHNPostgreSQL"));
    let count = names.len();
    names.dedup();
    assert_eq!((count, names.len()), (6, 6), "{answer:#?}");
}

#[test]
fn review_responds_to_each_review_of_a_file() {
    let review = |input: &str, output: &str| {
        let desk = Desk::new(&[("reviews.json", input)]);
        let webhook = "--webhook=validate";
        run_in(&desk.0, ["review", webhook, "-o", output, "-f", "reviews.json"])
    };
    let answer = review(REVIEWS, "json");
    assert_eq!(answer.code, Some(1), "{answer:#?}");
    let allowed = |answer: &Value| answer["response"]["allowed"].as_bool().unwrap();
    let allowed: Vec<bool> = answer.objects().iter().map(allowed).collect();
    assert_eq!(allowed, [true, false, true, true, true]);
    let last = REVIEWS.lines().last().unwrap();
    let answer = review(&format!("{last}{last}"), "table");
    assert_eq!(answer.out.matches("allowed: vshnpostgresqls orders by appcat\n").count(), 2);
    assert_eq!(answer.code, Some(0));
    let answer = review(&format!("{last}\n{{\"kind\": 3"), "json");
    assert_eq!((answer.code, answer.out.lines().count()), (Some(2), 1), "{answer:#?}");
    assert!(answer.err.contains("reviews.json: the body ends in the middle of a JSON value"));
}

#[test]
fn record_needs_an_address_that_the_api_server_can_call() {
    let desk = Desk::new(&[]);
    let answer = run_in(&desk.0, ["record", "--listen", "0.0.0.0:0"]);
    let said = "--listen 0.0.0.0:0 is no address that the API server can call";
    assert!(answer.code == Some(2) && answer.err.contains(said), "{answer:#?}");
    assert_eq!(std::fs::read_dir(desk.0.path()).unwrap().count(), 0);
}
