//! Defaults, and the order in which they are set.

use serde_json::{Value, json};

use super::{FAR, condition};
use crate::support::{EARLIER, LATER, NOW, T0, Write, following, under};

#[test]
fn defaults_that_read_each_other_settle_in_one_run() {
    for backfill in [
        "{path: /status/x, value: 1, when: {phase: Unknown}}",
        "{path: /status/a, copyOf: [/status/b]}, {path: /status/b, value: 1}",
        "{path: /status/a, value: 1, when: {set: /status/b}}, {path: /status/b, value: 1}",
    ] {
        let policies = following("appcat", &format!("backfill: [{backfill}]"));
        Write::of(json!({"phase": "Ready"}), json!({})).review(&policies);
    }
}

#[test]
fn a_default_list_gets_the_default_members_in_the_same_run() {
    let list = r#"[{"type": "Ready", "status": "Unknown", "severity": "Info"}]"#;
    for member in [
        "member: reason, value: Unknown",
        "member: severity, absentWhere: {member: status, is: Unknown}",
        "member: status, steadyWhile: [type]",
    ] {
        for default in [
            format!("path: /status/conditions, value: {list}"),
            "path: /status/conditions, copyOf: /status/others".to_owned(),
        ] {
            let policies = under(
                format!(
                    "conditions: [{{path: /status/conditions}}], \
                    backfill: [{{list: /status/conditions, {member}}}, {{{default}}}]"
                ),
                "",
            );
            let stored = json!({"conditions": [{"type": "Ready", "status": "True"}]});
            let others: Value = serde_json::from_str(list).unwrap();
            let outcome = Write::of(stored, json!({"others": others})).review(&policies);
            assert_ne!(outcome.status()["conditions"], others, "{member} {default}");
        }
    }
}

#[test]
fn an_element_with_a_copied_status_is_added_after_the_list_it_copies_from() {
    let policies = under(
        "conditions: [{path: /status/conditions, members: {status: {required: true}}}], \
        backfill: [\
        {list: /status/conditions, element: {type: Synced, status: {copyOf: {condition: Ready, member: status}}}}, \
        {path: /status/conditions, value: [{type: Ready, status: Unknown}]}]",
        "",
    );
    let outcome = Write::of(json!({"x": 1}), json!({"x": 2})).review(&policies);
    let condition = |kind: &str| json!({"type": kind, "status": "Unknown"});
    assert_eq!(outcome.status()["conditions"], json!([condition("Ready"), condition("Synced")]));
}

#[test]
fn a_copied_time_in_the_future_of_this_clock_is_set_with_a_warning() {
    let policies = under(
        "conditions: [{path: /status/conditions, transitionTime: {member: lastTransitionTime, mustMoveOn: status, mayMoveOn: status}}], \
        backfill: [{list: /status/conditions, member: lastTransitionTime, copyOf: /status/t}]",
        "",
    );
    let status =
        |time: &str| json!({"t": time, "conditions": [{"type": "Ready", "status": "True"}]});
    let outcome = |time: &str| Write::of(json!({"x": 1}), status(time)).review(&policies);
    outcome(T0).is_clean();
    outcome(FAR).warns("c/transition-time-future");
    for time in [T0, FAR] {
        assert_eq!(outcome(time).status()["conditions"][0]["lastTransitionTime"], time);
    }
}

const STAMPED: &str = "conditions: [{path: /status/conditions, key: [type], members: {lastTransitionTime: {required: true, format: date-time}}, \
    transitionTime: {member: lastTransitionTime, mustMoveOn: [status, reason], mayMoveOn: [status, reason]}}], \
    backfill: [{list: /status/conditions, member: lastTransitionTime, copyOf: transition}]";

/// As `meta.SetStatusCondition` of apimachinery: the time moves with the condition, and only then.
#[test]
fn a_transition_time_is_the_stored_one_or_that_of_the_write() {
    let policies = under(STAMPED, "");
    let status = |status: &str, reason: &str, time: Option<&str>| {
        let mut condition = json!({"type": "Ready", "status": status, "reason": reason});
        if let Some(time) = time {
            condition["lastTransitionTime"] = time.into();
        }
        json!({"conditions": [condition]})
    };
    let stored = status("True", "R", Some(T0));
    for (new, expected) in [
        (status("True", "R", None), T0),
        (status("False", "R", None), NOW),
        (status("True", "S", None), NOW),
        (status("False", "R", Some(EARLIER)), EARLIER),
    ] {
        let write = Write::of(stored.clone(), new.clone());
        let outcome = write.review(&policies);
        assert_eq!(outcome.status()["conditions"][0]["lastTransitionTime"], expected, "{new}");
        // The writer sends the same again, later: nothing changes.
        let again = write.stored(outcome.status()).at(LATER).review(&policies);
        assert_eq!(again.status(), outcome.status());
    }
    for stored in [None, Some(json!({})), Some(status("True", "R", None))] {
        let outcome = Write::of(stored, status("True", "R", None)).review(&policies);
        outcome.is_clean();
        assert_eq!(outcome.status()["conditions"][0]["lastTransitionTime"], NOW);
    }
}

/// The writer may leave the condition out in each write.
#[test]
fn an_added_condition_keeps_its_transition_time() {
    let policies = under(
        "conditions: [{path: /status/conditions, transitionTime: {member: lastTransitionTime, mustMoveOn: [status, reason], mayMoveOn: [status, reason]}}], \
        backfill: [{list: /status/conditions, element: {type: Ready, status: Unknown, \
        lastTransitionTime: {copyOf: transition}, reason: Pending}}]",
        "",
    );
    let write = Write::of(json!({"x": 1}), json!({"x": 2}));
    let first = write.review(&policies);
    assert_eq!(first.status()["conditions"][0]["lastTransitionTime"], NOW);
    let second = write.stored(first.status()).sent(json!({"x": 3})).at(LATER).review(&policies);
    assert_eq!(second.status()["conditions"], first.status()["conditions"]);
}

#[test]
fn a_transition_time_that_the_list_would_reject_is_not_set() {
    let policies = under(
        "conditions: [{path: /status/conditions, members: {since: {type: string, pattern: ^never$}}}], \
        backfill: [{list: /status/conditions, member: since, copyOf: transition}]",
        "",
    );
    let status = json!({"conditions": [{"type": "Ready", "status": "True"}]});
    let outcome = Write::of(json!({}), status.clone()).review(&policies);
    assert_eq!(outcome.status(), status);
}

#[test]
fn a_copy_contains_the_defaults_of_its_source() {
    let policies = under(
        "backfill: [{path: /status/billing/unit, value: GiB}, {path: /status/copy, copyOf: [/status/billing]}]",
        "",
    );
    let outcome = Write::of(json!({}), json!({"billing": {"a": 1}})).review(&policies);
    assert_eq!(outcome.status()["copy"], json!({"a": 1, "unit": "GiB"}));
}

#[test]
fn a_default_is_set_unless_it_contradicts_the_written_phase() {
    for action in ["Repair", "Deny"] {
        let policies = under(
            "phase: {path: /status/phase, default: Unknown, \
            values: [{phase: Pending, necessary: {not: {set: /status/ip}}}, {phase: Unknown}]}, \
            backfill: [{path: /status/ip, value: none}]",
            &format!("disagreement: {action}"),
        );
        for (phase, expected) in [
            ("Pending", json!({"phase": "Pending"})),
            ("Unknown", json!({"phase": "Unknown", "ip": "none"})),
        ] {
            let write = Write::of(json!({"a": 1}), json!({"phase": phase}));
            assert_eq!(write.review(&policies).status(), expected, "{action}");
        }
    }
}

#[test]
fn many_default_elements_are_added_in_one_run() {
    let elements: Vec<String> = (0..14)
        .map(|n| {
            format!(
                "{{name: f{n}, list: /status/conditions, element: {{type: T{n}, status: Unknown}}}}"
            )
        })
        .collect();
    let policies = under(
        format!("conditions: [{{path: /status/conditions}}], backfill: [{}]", elements.join(", ")),
        "",
    );
    let outcome = Write::of(json!({"x": 1}), json!({"x": 2})).review(&policies);
    let expected: Vec<Value> =
        (0..14).map(|n| json!({"type": format!("T{n}"), "status": "Unknown"})).collect();
    assert_eq!(outcome.status()["conditions"], json!(expected));
}

#[test]
fn default_elements_follow_the_order_of_the_types_and_get_default_members() {
    let element = |name: &str, kind: &str| {
        format!(
            "{{name: {name}, list: /status/conditions, element: {{type: {kind}, status: Unknown}}}}"
        )
    };
    let elements = [element("d", "D"), element("a", "A"), element("c", "C")].join(", ");
    let policies = under(
        format!(
            "conditions: [{{path: /status/conditions, order: Deny, types: {{A: {{}}, B: {{}}, C: {{}}, D: {{}}}}}}], \
            backfill: [{elements}, {{list: /status/conditions, member: message, value: ''}}]"
        ),
        "",
    );
    let write = Write::of(json!({"x": 1}), json!({"conditions": [condition("B", "True")]}));
    let conditions = write.review(&policies).status()["conditions"].take();
    let text = |item: &Value| {
        [&item["type"], &item["message"]].map(|text| text.as_str().unwrap().to_owned()).concat()
    };
    let got: Vec<String> = conditions.as_array().unwrap().iter().map(text).collect();
    assert_eq!(got, ["A", "Bm", "C", "D"]);
}

#[test]
fn a_default_follows_the_defaults_that_its_predicate_reads() {
    for (when, fills) in [
        ("{observed: behind}", "{path: /status/observedGeneration, value: 0}"),
        ("{set: /status/list/0}", "{path: /status/list, value: [1]}"),
        ("{length: /status/list, atLeast: 1}", "{path: /status/list, value: [1]}"),
        (
            "{gates: /spec/gates}",
            "{list: /status/conditions, element: {type: Ready, status: 'True'}}",
        ),
        (
            "{condition: Ready, is: 'True'}",
            "{list: /status/conditions, element: {type: Ready, status: 'True'}}",
        ),
    ] {
        let policies = under(
            format!(
                "conditions: [{{path: /status/conditions, types: {{Ready: {{polarity: positive}}}}}}], \
                 generation: {{paths: [/status/observedGeneration]}}, \
                 backfill: [{{path: /status/last, value: x, when: {when}}}, {fills}]"
            ),
            "",
        );
        let write = Write::of(json!({"x": 1}), json!({"x": 2}))
            .both("/metadata/generation", 3)
            .both("/spec", json!({"gates": [{"conditionType": "Ready"}]}));
        assert_eq!(write.mutate(&policies).status()["last"], "x", "{when}");
    }
}

#[test]
fn a_stored_element_without_a_type_stays_the_same_when_a_default_removes_a_member() {
    let policies = under(
        "conditions: [{path: /status/conditions, types: {}, \
           transitionTime: {member: lastTransitionTime, mustMoveOn: [status], mayMoveOn: [status]}}], \
         backfill: [{list: /status/conditions, member: message, absentWhere: {member: status, is: 'True'}}]",
        "",
    );
    let stored = json!({"conditions": [
        {"status": "True", "message": "m", "lastTransitionTime": "2999-01-01T00:00:00Z"},
    ]});
    let mut written = stored.clone();
    written["unrelated"] = 1.into();
    let outcome = Write::of(stored, written).review(&policies);
    assert!(outcome.is_patched());
    outcome.is_allowed();
}

#[test]
fn a_restored_path_does_not_create_a_list_element() {
    let policies = following("metav1", "preserve: [/status/history/-1/owner]");
    let write = Write::of(json!({"history": [{"owner": "me"}]}), json!({"phase": "x"}));
    assert_eq!(write.review(&policies).status(), json!({"phase": "x"}));
}

#[test]
fn a_pointer_into_a_list_does_not_replace_the_list() {
    let list = json!({"phase": "Unknown", "list": [null, null, 1]});
    for at in ["0", "00", "+0"] {
        let null = format!("backfill: [{{path: /status/list/{at}, value: null}}]");
        Write::of(list.clone(), list.clone()).review(&following("appcat", &null));
    }
}
