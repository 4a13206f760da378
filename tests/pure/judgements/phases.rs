//! Phases that the mutating webhook sets.

use serde_json::{Value, json};
use statusgate_core::engine::Action::Warn;

use super::{condition, ready, with};
use crate::support::{DELETED, NOW, T0, Write, compile, convention, following, policy, under};

/// A convention that repairs the phase, imposes `Deleting`, and restricts moves and reasons.
fn moves() -> Value {
    json!({
        "conditions": [{"path": "/status/conditions"}],
        "phase": {
            "path": "/status/phase",
            "default": "Unknown",
            "reason": {"path": "/status/reason", "action": "Deny"},
            "values": [
                {"phase": "Deleting", "imposed": {"when": {"deleting": true}, "since": "/metadata/deletionTimestamp"}, "reasons": ["Asked"]},
                {"phase": "Degraded", "reasons": ["Down"]},
                {"phase": "Ready", "necessary": {"condition": "Ready", "is": "True"}, "reasons": ["Up"]},
                {"phase": "Unknown"},
            ],
            "moves": {"from": {"": ["Ready"], "Unknown": ["Ready"], "Ready": ["Unknown"]}, "action": "Deny"},
            "repair": [{"to": "Degraded"}],
        },
    })
}

#[test]
fn rules_about_moves_and_reasons_ignore_a_phase_that_the_webhook_set() {
    let policies = under(moves(), "disagreement: Repair");
    let stored = json!({"phase": "Ready", "reason": "Up", "conditions": ready("True")});
    let mut new = json!({"phase": "Ready", "reason": "Up", "conditions": ready("False")});
    new["conditions"][0]["reason"] = "Down".into();
    let write = Write::of(stored, new);
    let outcome = write.review(&policies);
    assert_eq!(outcome.status()["phase"], "Degraded");
    outcome.is_clean();
    let outcome = write.deleting().review(&policies);
    assert_eq!(outcome.status()["phase"], "Deleting");
    outcome.is_clean();
}

#[test]
fn rules_about_moves_and_reasons_apply_to_a_phase_that_the_writer_set() {
    let stored = json!({"phase": "Ready", "reason": "Up", "conditions": ready("True")});
    let new = json!({"phase": "Degraded", "reason": "Up", "conditions": ready("False")});
    let outcome = Write::of(stored, new).review(&under(moves(), "disagreement: Deny"));
    outcome.denied_by(&["c/phase-reason", "c/phase-move"]);
}

#[test]
fn no_move_of_a_writer_leaves_a_final_phase() {
    let last = |moves: &Value| {
        let mut convention = json!({
            "phase": {
                "path": "/status/phase",
                "default": "Unknown",
                "values": [
                    {"phase": "Deleting", "imposed": {"when": {"deleting": true}, "since": "/metadata/deletionTimestamp"}},
                    {"phase": "Completed", "final": true},
                    {"phase": "Running"},
                    {"phase": "Unknown"},
                ],
            },
        });
        if !moves.is_null() {
            convention["phase"]["moves"] = moves.clone();
        }
        under(convention, "")
    };
    let change = |from: &str, to: &str| Write::of(json!({"phase": from}), json!({"phase": to}));
    let any = json!({"from": {}, "anyTo": ["Completed", "Running", "Unknown"], "action": "Deny"});
    for moves in [&Value::Null, &any] {
        let policies = last(moves);
        for (from, to) in
            [("Running", "Completed"), ("Unknown", "Running"), ("Completed", "Completed")]
        {
            change(from, to).review(&policies).is_clean();
        }
        let outcome = change("Completed", "Completed").deleting().review(&policies);
        assert_eq!(outcome.status()["phase"], "Deleting");
        outcome.is_clean();
        let outcome = change("Completed", "Unknown").review(&policies);
        outcome.finds(&[(Warn, "c/phase-move")]);
    }
    change("Completed", "Running").review(&last(&any)).denied_by(&["c/phase-move"]);
    let outcome = change("Completed", "Running").review(&last(&Value::Null));
    outcome.finds(&[(Warn, "c/phase-move")]);
}

#[test]
fn of_two_policies_that_impose_a_phase_the_first_wins() {
    let imposing = |name: &str, deleting: &str, other: &str| {
        convention(
            name,
            format!(
                "phase: {{path: /status/phase, default: Unknown, values: [\
                {{phase: {deleting}, imposed: {{when: {{deleting: true}}, since: /metadata/deletionTimestamp}}}}, \
                {{phase: {other}}}, {{phase: Unknown}}]}}"
            ),
        )
    };
    let policies = compile(&[
        imposing("c1", "Deleting", "Terminating"),
        imposing("c2", "Terminating", "Deleting"),
        policy("p1", "convention: c1"),
        policy("p2", "convention: c2"),
    ]);
    let outcome = Write::of(json!({"x": 1}), json!({"x": 2})).deleting().review(&policies);
    assert_eq!(outcome.status()["phase"], "Deleting");
}

#[test]
fn an_imposed_phase_has_the_time_of_its_cause() {
    let status = |phase: &str, time: &str| json!({"phase": phase, "lastTransitionTime": time, "instanceNamespace": "n"});
    let time = |phase: &str| {
        let write = Write::of(status("Ready", T0), status(phase, NOW)).deleting();
        write.review(&following("appcat", "")).status()["lastTransitionTime"].take()
    };
    // The webhook replaces Failed, so the time of Failed is discarded.
    assert_eq!(time("Failed"), DELETED);
    assert_eq!(time("Deleting"), NOW);
}

#[test]
fn an_invalid_time_of_the_phase_is_not_compared() {
    let policies = under(
        "phase: {path: /status/phase, values: [{phase: A}, {phase: B}], transitionTime: {path: /status/since, moved: Deny}}",
        "",
    );
    let changed = |from: &Value, to: &Value| {
        let of = |since: &Value| json!({"phase": "A", "since": since});
        Write::of(of(from), of(to)).review(&policies)
    };
    let time = json!("2024-06-01T09:00:00Z");
    for none in [json!(null), json!("")] {
        changed(&none, &time).is_clean();
        changed(&time, &none).is_clean();
    }
    changed(&time, &json!("2024-06-01T10:00:00Z")).denied_by(&["c/phase-transition-time"]);
}

#[test]
fn a_default_phase_changes_no_time_at_the_second_run() {
    let legacy = json!({"instanceNamespace": "n"});
    Write::of(legacy.clone(), legacy).review(&following("appcat", ""));
}

#[test]
fn restored_conditions_are_evidence_in_the_same_run() {
    let policies = following("appcat", "disagreement: Repair, preserve: [/status/conditions]");
    let old =
        json!({"phase": "Provisioning", "instanceNamespace": "n", "conditions": ready("False")});
    let outcome =
        Write::of(old, json!({"phase": "Ready", "instanceNamespace": "n"})).review(&policies);
    assert_eq!(outcome.status()["phase"], "Provisioning");
}

#[test]
fn no_policy_can_forbid_the_default_phase() {
    for addition in [
        "owners: [{path: /status/phase, users: [portal]}]",
        "fields: [{path: /status/phase, enum: [Ready, Failed]}]",
        r#"rules: [{name: r, message: m, expression: "self.status.phase != 'Unknown'"}]"#,
        r#"rules: [{name: r, message: m, expression: "size(self.status) == 0", trigger: state}]"#,
        r#"rules: [{name: r, message: m, expression: "self.status.phase == oldSelf.status.phase"}]"#,
        r#"rules: [{name: r, message: m, expression: "false", trigger: {moved: /status/phase}}]"#,
    ] {
        let write = Write::of(json!({"phase": "Ready"}), json!({"phase": "Unknown"}));
        write.validate(&following("appcat", addition)).is_allowed();
    }
}

#[test]
fn no_rule_can_forbid_the_default_phase_at_another_path() {
    let policies = under(
        "phase: {path: [/status/phase, /status/state], default: Unknown, values: [{phase: Ready}, {phase: Unknown}]}",
        r#"rules: [{name: r, message: m, expression: "self.status.state != 'Unknown'"}]"#,
    );
    let write = Write::of(json!({"state": "Ready"}), json!({"state": "Unknown"}));
    write.validate(&policies).is_allowed();
}

/// Unknown is a status, not missing evidence, and a condition about an older generation is evidence.
#[test]
fn only_an_absent_condition_is_no_evidence() {
    let policies = under(
        "conditions: [{path: /status/conditions}], phase: {path: /status/phase, values: [\
            {phase: Sure, necessary: {condition: Ready, is: 'True'}}, \
            {phase: Open, necessary: {condition: Ready, isNot: 'False'}}]}",
        "",
    );
    let denied = |phase: &str, conditions: Value| {
        let status = json!({"phase": phase, "conditions": conditions});
        Write::of(json!({"x": 1}), status).validate(&policies).is_denied()
    };
    for (phase, contradicting) in [("Sure", vec!["False", "Unknown"]), ("Open", vec!["False"])] {
        assert!(!denied(phase, json!([])));
        for status in ["True", "False", "Unknown"] {
            for generation in [1, 3] {
                let ready = with(condition("Ready", status), "observedGeneration", generation);
                assert_eq!(denied(phase, json!([ready])), contradicting.contains(&status));
            }
        }
    }
}

/// `""` in a table of moves is no phase: before the first one, and after a write that removes it.
#[test]
fn a_first_phase_is_judged_after_every_stored_status_without_one() {
    let mut spec = moves();
    spec["phase"].as_object_mut().unwrap().remove("default");
    let policies = under(spec, "disagreement: Deny");
    let degraded = json!({"phase": "Degraded", "reason": "Down"});
    let first = "phase Degraded is not a valid first phase: expected Ready [c/phase-move]";
    for stored in [
        Some(json!({"other": 1})),
        Some(json!({})),
        Some(json!({"phase": null})),
        Some(json!(null)),
        None,
    ] {
        let write = Write::of(stored.clone(), degraded.clone());
        assert_eq!(
            write.validate(&policies).denials(),
            [format!("deny status.phase: {first}")],
            "{stored:?}"
        );
        Write::of(stored, json!({"phase": "Ready", "reason": "Up", "conditions": ready("True")}))
            .validate(&policies)
            .is_clean();
    }
}

#[test]
fn a_write_that_removes_the_phase_is_a_move_to_none() {
    let policies = |to: Value| {
        let mut spec = moves();
        spec["phase"].as_object_mut().unwrap().remove("default");
        spec["phase"]["moves"]["from"]["Ready"] = to;
        under(spec, "disagreement: Deny")
    };
    let stored = json!({"phase": "Ready", "reason": "Up", "conditions": ready("True")});
    for removed in [
        json!({"conditions": ready("True")}),
        json!({"phase": "", "conditions": ready("True")}),
        json!({}),
    ] {
        let write = Write::of(stored.clone(), removed);
        let message = "deny status.phase: phase Ready must not be removed: expected Unknown or Ready [c/phase-move]";
        assert_eq!(write.validate(&policies(json!(["Unknown"]))).denials(), [message]);
        write.validate(&policies(json!(["", "Unknown"]))).is_clean();
    }
    // The mutating webhook sets the default, which is the phase of the move.
    let write = Write::of(stored, json!({"conditions": ready("True")}));
    write.review(&under(moves(), "disagreement: Deny")).is_clean();
}

/// A convention that renames a phase, or judges objects that were stored before, meets its old values.
#[test]
fn a_move_from_a_value_that_is_no_phase_is_not_judged() {
    let mut spec = moves();
    spec["phase"].as_object_mut().unwrap().remove("default");
    let policies = under(spec, "disagreement: Deny");
    for stored in [json!("Creating"), json!(5), json!(["Ready"])] {
        for new in [json!("Ready"), json!("Degraded"), json!(""), Value::Null] {
            let write = Write::of(json!({"phase": stored}), json!({"phase": new}));
            write.validate(&policies).is_clean();
        }
        Write::of(json!({"phase": stored}), json!({})).validate(&policies).is_clean();
        let renamed = Write::of(json!({"phase": stored}), json!({"phase": "Making"}));
        renamed.validate(&policies).denied_by(&["c/phase-value"]);
    }
}

/// The reason and the move belong to the phase that the writer has written.
#[test]
fn rules_about_moves_and_reasons_judge_the_phase_that_a_repair_replaces() {
    let repair = under(moves(), "disagreement: Repair");
    let ready_but_false =
        |reason: &str| json!({"phase": "Ready", "reason": reason, "conditions": ready("False")});
    let outcome = Write::of(Value::Null, ready_but_false("Up")).review(&repair);
    assert_eq!(outcome.status()["phase"], "Degraded");
    outcome.is_clean();
    // No phase that the writer can have written has this reason.
    let mut none = moves();
    none["phase"].as_object_mut().unwrap().remove("default");
    let values = none["phase"]["values"].as_array_mut().unwrap();
    values.retain(|value| value["phase"] != "Unknown");
    none["phase"]["moves"]["from"] = json!({"": ["Ready"], "Ready": []});
    let strict = under(none.clone(), "disagreement: Repair");
    Write::of(Value::Null, ready_but_false("Asked")).review(&strict).denied_by(&["c/phase-reason"]);
    Write::of(Value::Null, ready_but_false("Up")).review(&strict).is_clean();
    // Backfill writes the same with a policy that denies disagreements.
    let backfilled = json!({"phase": "Degraded", "reason": "Up", "conditions": ready("False")});
    let deny = under(none, "disagreement: Deny");
    Write::of(ready_but_false("Up"), backfilled.clone()).review(&deny).is_clean();
    let other = with(backfilled, "other", 1);
    Write::of(ready_but_false("Up"), other)
        .review(&deny)
        .denied_by(&["c/phase-reason", "c/phase-move"]);
}

/// The writer moved the time with the phase that the default replaced.
#[test]
fn a_time_that_moves_with_a_phase_that_the_default_replaces_is_not_held_against_its_writer() {
    let convention = json!({
        "phase": {
            "path": "/status/phase",
            "default": "New",
            "transitionTime": {"path": "/status/since", "inStep": false, "moved": "Deny"},
            "values": [{"phase": "Ready"}, {"phase": "New"}],
        },
    });
    let policies = under(convention, "");
    let stored = |phase: &str| json!({"phase": phase, "since": T0});
    Write::of(stored("New"), json!({"since": NOW})).review(&policies).is_clean();
    Write::of(stored("Ready"), json!({"phase": "Ready", "since": NOW}))
        .review(&policies)
        .denied_by(&["c/phase-transition-time"]);
}

/// What a backfill would write is excused from the rules of the phase, not from its owners.
#[test]
fn only_an_owner_writes_the_phase_that_a_backfill_would_repair() {
    let convention = json!({
        "phase": {
            "path": "/status/phase",
            "repair": [{"to": "B"}],
            "values": [{"phase": "A", "necessary": {"field": "/status/x", "is": 1}}, {"phase": "B"}],
        },
    });
    let policies = under(convention, "owners: [{path: /status/phase, users: [owner]}]");
    let write = Write::of(json!({"phase": "A", "x": 2}), json!({"phase": "B", "x": 2}));
    write.clone().by("owner").validate(&policies).is_clean();
    write.by("other").validate(&policies).denied_by(&["p/owner"]);
}

/// A writer that knows neither the default nor the imposed phase writes its reason again.
#[test]
fn a_reason_is_not_held_against_a_default_or_imposed_phase() {
    let convention = json!({
        "phase": {
            "path": "/status/phase",
            "default": "New",
            "reason": {"path": "/status/reason", "action": "Deny"},
            "values": [
                {"phase": "Deleting", "imposed": {"when": {"deleting": true}, "since": "/metadata/deletionTimestamp"}, "reasons": ["Asked"]},
                {"phase": "Ready", "reasons": ["Up"]},
                {"phase": "New", "reasons": ["Made"]},
            ],
        },
    });
    let policies = under(convention, "");
    let outcome = Write::of(json!({"phase": "New"}), json!({"reason": "Up"})).review(&policies);
    assert_eq!(outcome.status()["phase"], "New");
    outcome.is_clean();
    let stored = json!({"phase": "Deleting", "reason": "Asked"});
    let new = json!({"phase": "Ready", "reason": "Up"});
    let outcome = Write::of(stored, new).deleting().review(&policies);
    assert_eq!(outcome.status()["phase"], "Deleting");
    outcome.is_clean();
    let wrong = json!({"phase": "Ready", "reason": "Made"});
    Write::of(Value::Null, wrong).review(&policies).denied_by(&["c/phase-reason"]);
}
