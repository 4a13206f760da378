//! Elements of lists, and their keys.

use serde_json::{Value, json};

use super::{FAR, condition, with};
use crate::support::{EARLIER, NOW, T0, Write, following, under};

#[test]
fn an_element_is_compared_with_the_stored_element_of_the_same_key() {
    let policies = under(
        json!({
            "conditions": [{
                "path": "/status/conditions", "key": ["type", "node"],
                "transitionTime": {"member": "since", "mustMoveOn": ["status"], "mayMoveOn": ["status"],
                    "backwards": "Deny"},
            }],
            "backfill": [
                {"list": "/status/conditions", "member": "since", "steadyWhile": ["status"]},
                {"list": "/status/conditions", "member": "note", "copyOf": ["stored"]},
            ],
        }),
        "",
    );
    let element = |node: &str, status: &str, since: &str| json!({"type": "Up", "node": node, "status": status, "since": format!("2024-06-01T{since}:00Z")});
    let a = with(element("a", "True", "09:00"), "note", "of a");
    let b = with(element("b", "False", "10:00"), "note", "of b");
    // `b` becomes True, so its time changes. `a` only lost a member that its writer does not know.
    let new = json!({"conditions": [element("b", "True", "11:00"), element("a", "True", "11:00")]});
    let outcome = Write::of(json!({"conditions": [a, b]}), new).review(&policies);
    let expected = [with(element("b", "True", "11:00"), "note", "of b"), a];
    assert_eq!(outcome.status(), json!({"conditions": expected}));
    outcome.is_clean();
}

#[test]
fn a_full_history_drops_its_oldest_element_without_new_findings() {
    for many in [15, 16, 17, 20] {
        let policies = under(
            json!({"conditions": [{
                "path": "/status/conditions", "maxItems": many,
                "members": {"phase": {"enum": ["A", "B"]}},
                "transitionTime": {"member": "at", "future": "Deny"},
                "history": {"rewritten": "Deny"},
            }]}),
            "",
        );
        let mut list: Vec<Value> = (0..many).map(|at| json!({"phase": "A", "n": at})).collect();
        list[5] = json!({"phase": "Bogus"});
        list[6] = json!({"phase": "A", "at": FAR});
        let stored = json!({"conditions": list});
        list.remove(0);
        let next = |phase: &str| {
            let new = [list.clone(), vec![json!({"phase": phase})]].concat();
            Write::of(stored.clone(), json!({"conditions": new})).review(&policies)
        };
        next("B").is_clean();
        next("Odd").denied_by(&["c/condition-phase"]);
    }
}

#[test]
fn a_removed_history_is_rewritten() {
    let policies =
        under("conditions: [{path: /status/history, maxItems: 3, history: {rewritten: Deny}}]", "");
    let stored = json!({"x": 1, "history": [{"n": 1}, {"n": 2}]});
    for new in [json!({"x": 1, "history": []}), json!({"x": 1, "history": null}), json!({"x": 1})] {
        Write::of(stored.clone(), new).validate(&policies).denied_by(&["c/history-rewritten"]);
    }
    for cleared in [None, Some(Value::Null), Some(json!({}))] {
        Write::of(stored.clone(), cleared).validate(&policies).is_clean();
    }
}

/// Elements with a key, which change their time only with their status.
fn keyed(key: &str) -> statusgate_core::policy::PolicySet {
    under(
        format!(
            "conditions: [{{path: /status/conditions, key: {key}, \
            members: {{name: {{required: true, type: string}}, status: {{enum: ['True', 'False']}}}}, \
            transitionTime: {{member: lastTransitionTime, mustMoveOn: status, mayMoveOn: status, \
            kept: Deny, moved: Deny, backwardsUnchanged: Deny}}}}]"
        ),
        "",
    )
}

/// `metav1` is safe for writers with a stale cache; a convention that excludes them gets the strict rule.
#[test]
fn an_unchanged_time_goes_backwards_only_where_stale_writers_are_possible() {
    let policies = |more: &str| under(format!("extends: metav1, {more}"), "");
    let status = |time: &str| {
        json!({"conditions": [{"type": "Ready", "status": "True", "reason": "Done", "message": "",
            "lastTransitionTime": time}]})
    };
    let write = Write::of(status(T0), status(EARLIER));
    write.validate(&policies("")).warns("c/transition-time-backwards");
    let strict = policies("resourceVersion: {always: true}");
    write.validate(&strict).denied_by(&["c/transition-time-backwards"]);
}

fn named(name: &str, status: &str, time: &str) -> Value {
    json!({"kind": "one", "name": name, "status": status, "lastTransitionTime": time})
}

#[test]
fn elements_of_long_lists_are_matched_by_their_whole_key() {
    for (key, length, changed) in
        [("name", 10, 5), ("name", 17, 5), ("name", 40, 5), ("[kind, name]", 40, 39)]
    {
        let list = |time: &str| -> Value {
            let time = |n| if n == changed { time } else { T0 };
            (0..length).map(|n| named(&format!("n{n}"), "True", time(n))).collect()
        };
        let write = Write::of(json!({"conditions": list(T0)}), json!({"conditions": list(NOW)}));
        write.review(&keyed(key)).denied_by(&["c/transition-time-moved"]);
    }
}

#[test]
fn elements_with_different_keys_are_not_duplicates() {
    let policies = under("conditions: [{path: /status/conditions, types: {T: {key: [node]}}}]", "");
    for length in [2, 16, 17, 40] {
        let others = (2..length).map(|n| json!({"type": format!("t{n}")}));
        let list: Vec<Value> = [json!({"type": "T", "node": "A"}), json!({"type": "A"})]
            .into_iter()
            .chain(others)
            .collect();
        let first = list[0].clone();
        Write::of(json!({"x": 1}), json!({"conditions": list})).validate(&policies).is_clean();
        let twice = [list, vec![first]].concat();
        let write = Write::of(json!({"x": 1}), json!({"conditions": twice}));
        write.validate(&policies).denied_by(&["c/condition-duplicate"]);
    }
}

#[test]
fn a_stored_bad_element_is_tolerated_and_does_not_excuse_another() {
    let bad = named("bad", "nope", T0);
    let old = json!({"conditions": [bad]});
    for (name, status, denied) in
        [("worse", "nope", &["c/condition-status"][..]), ("good", "True", &[])]
    {
        let new = json!({"conditions": [named(name, status, T0), bad]});
        Write::of(old.clone(), new).review(&keyed("name")).denied_by(denied);
    }
}

#[test]
fn stored_conditions_with_duplicate_or_missing_types_are_not_new() {
    let condition = |kind: Value, time: &str, generation: i64| json!({"type": kind, "status": "True", "reason": "R", "lastTransitionTime": time, "observedGeneration": generation});
    for list in [
        json!([condition(json!("A"), T0, 1), condition(json!("A"), FAR, 1)]),
        json!([condition(json!("A"), T0, 1), condition(json!("A"), T0, 9)]),
        json!([condition(Value::Null, FAR, 1)]),
        json!([condition(Value::Null, T0, 9)]),
    ] {
        let status = |phase: &str| json!({"phase": phase, "conditions": list});
        Write::of(status("Ready"), status("Unknown"))
            .validate(&following("appcat", ""))
            .is_allowed();
    }
}

#[test]
fn a_rule_about_an_absent_list_reads_the_conditions_of_that_list() {
    let policies = under(
        "conditions: [{path: /status/conditions}, {path: /status/second, \
        types: {Ready: {missing: {when: {condition: Synced, present: true}, action: Deny}}}}]",
        "",
    );
    let conditions = json!([condition("Synced", "True")]);
    for second in [Value::Null, json!([])] {
        let new = json!({"conditions": conditions, "second": second});
        Write::of(json!({"x": 1}), new).validate(&policies).is_clean();
    }
}

#[test]
fn a_condition_without_a_status_does_not_close_a_gate() {
    let policies = under(
        json!({
            "conditions": [{"path": "/status/conditions"}],
            "phase": {"path": "/status/phase", "values": [
                {"phase": "Ready", "necessary": {"gates": "/spec/readinessGates"}}]},
        }),
        "",
    );
    let written = |condition: Value| {
        Write::of(json!({}), json!({"phase": "Ready", "conditions": [condition]}))
            .both("/spec", json!({"readinessGates": [{"conditionType": "X"}]}))
            .review(&policies)
    };
    written(json!({"type": "X"})).is_clean();
    written(json!({"type": "X", "status": "False"})).denied_by(&["c/phase-ready"]);
}
