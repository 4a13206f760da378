//! Writes that were once judged wrongly, each under the smallest policy that shows the fault. Most pass
//! both webhooks, as the API server calls them.

use serde_json::{Value, json};
use statusgate::engine::Action::Deny;
use statusgate::model::Webhook;
use statusgate::server::admit::admit;

use support::{
    DELETED, LATER, NOW, T0, WITHOUT_SUBRESOURCE, Write, compile, convention, examples, following,
    policy, under,
};

mod support;

const FAR: &str = "2999-01-01T00:00:00Z";

fn condition(kind: &str, status: &str) -> Value {
    json!({"type": kind, "status": status, "reason": "R", "message": "m", "lastTransitionTime": T0})
}

fn ready(status: &str) -> Value {
    json!([condition("Ready", status)])
}

fn with(mut object: Value, member: &str, value: impl Into<Value>) -> Value {
    object[member] = value.into();
    object
}

// --- the parts of the validating webhook -------------------------------------------------------

/// Rules of each kind, and a status that violates all of them.
#[test]
fn disagreements_are_judged_by_one_part_and_all_other_rules_by_the_other() {
    let each = |id: &str, member: &str, action: &str| json!({"id": id, "when": {"member": member, "set": true}, "action": action, "message": "m"});
    let rule = |id: &str, action: &str| {
        json!({"id": id, "when": {"field": "/status/flag", "set": true}, "path": "/status/flag",
            "action": action, "message": "m"})
    };
    let conventions = json!({
        "conditions": [{"path": "/status/conditions", "otherTypes": "Warn",
            "types": {"Ready": {"polarity": "positive"}},
            "each": [each("each-fixed", "x", "Deny"), each("each-disagreement", "x", "Disagreement")]}],
        "phase": {
            "path": "/status/phase",
            "default": "Unknown",
            "reason": {"path": "/status/reason", "action": "Disagreement"},
            "values": [
                {"phase": "Ready", "necessary": {"condition": "Ready", "is": "True"}, "reasons": ["Up"]},
                {"phase": "Unknown"},
            ],
        },
        "rules": [rule("fixed", "Deny"), rule("disagreement", "Disagreement")],
    });
    let policies = under(
        conventions,
        "disagreement: Deny, owners: [{path: /status/owned, users: [somebody]}], \
         fields: [{path: /status/number, type: integer}], \
         rules: [{name: cel, expression: \"!has(self.status.flag)\", message: m}]",
    );
    let flawed = |phase: &str| {
        let mut condition = condition("Other", "False");
        condition["x"] = "x".into();
        json!({"phase": phase, "reason": "Down", "flag": true, "owned": 1, "number": "one",
            "conditions": [condition, ready("False")[0]]})
    };
    let rules = |phase: &str, webhook: Webhook| {
        let write = Write::of(json!({"phase": "Unknown"}), flawed(phase));
        write.validate(&policies);
        write.ask(&policies, webhook, |verdict| {
            let mut rules: Vec<String> =
                verdict.findings.iter().map(|finding| finding.rule.to_string()).collect();
            rules.sort_unstable();
            rules
        })
    };
    assert_eq!(
        rules("Ready", Webhook::Agreement),
        ["c/disagreement", "c/each-disagreement", "c/phase-ready", "c/phase-reason"]
    );
    let mandatory = [
        "c/condition-type-unknown",
        "c/each-fixed",
        "c/fixed",
        "p/cel",
        "p/field-number",
        "p/owner",
    ];
    assert_eq!(rules("Ready", Webhook::Mandatory), mandatory);
    assert!(rules("ready", Webhook::Mandatory).contains(&"c/phase-value".to_owned()));
    assert!(!rules("ready", Webhook::Agreement).contains(&"c/phase-value".to_owned()));
}

// --- phases that the mutating webhook sets ----------------------------------------------------

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
    let new = json!({"phase": "Ready", "reason": "Up", "conditions": ready("False")});
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

// --- owners -----------------------------------------------------------------------------------

#[test]
fn an_owned_object_is_unchanged_if_only_its_order_and_number_format_differ() {
    let owners = "owners: [{path: /status/billing, users: [biller]}]";
    let old = r#"{"status":{"x":1,"billing":{"price":5,"unit":"GiB"}}}"#;
    let new = r#"{"status":{"x":2,"billing":{"unit":"GiB","price":5.0}}}"#;
    let write = Write::of_texts(Some(old.to_owned()), new.to_owned());
    write.validate(&following("metav1", owners)).is_clean();
}

const PHASER: &str = "owners: [{path: /status/phase, users: [phaser]}, {path: /status/lastTransitionTime, users: [phaser]}]";

#[test]
fn an_imposed_phase_is_not_a_change_by_the_writer() {
    let status = |message: &str| json!({"phase": "Ready", "lastTransitionTime": T0, "instanceNamespace": "n", "message": message});
    let write = Write::of(status("old"), status("new")).deleting();
    let outcome = write.review(&following("appcat", PHASER));
    assert_eq!(outcome.status()["phase"], "Deleting");
    outcome.is_clean();
}

#[test]
fn a_repaired_phase_is_not_a_change_by_the_writer() {
    let policies = following("appcat", &format!("disagreement: Repair, {PHASER}"));
    let status = |ready: &str, time: &str| {
        let ready = with(condition("Ready", ready), "lastTransitionTime", time);
        json!({"phase": "Ready", "lastTransitionTime": T0, "instanceNamespace": "n", "conditions": [ready]})
    };
    let write = Write::of(status("True", T0), status("False", NOW));
    let mutated = write.mutate(&policies);
    assert_ne!(mutated.status()["phase"], "Ready");
    assert_eq!(mutated.status()["lastTransitionTime"], NOW);
    // The API server calls the validating webhook a little later.
    for now in [NOW, "2024-06-01T12:00:01Z", "2024-06-01T12:00:09Z"] {
        write.after(&mutated).at(now).validate(&policies).is_clean();
    }
}

#[test]
fn a_default_inside_an_owned_field_is_not_a_change_by_the_writer() {
    let additions = "owners: [{path: /status/conditions, users: [a]}, {path: /status/billing, users: [b]}], \
        backfill: [{path: /status/billing/unit, value: GiB}]";
    let policies = following("metav1", additions);
    let mut ready = ready("True");
    ready[0].as_object_mut().unwrap().remove("message");
    for billing in [json!({"price": 5}), Value::Null] {
        let status = |x: i32| json!({"x": x, "conditions": ready, "billing": billing});
        let outcome = Write::of(status(1), status(2)).review(&policies);
        assert_eq!(outcome.status()["conditions"][0]["message"], "");
        assert_eq!(outcome.status()["billing"]["unit"], "GiB");
        outcome.is_clean();
    }
}

#[test]
fn a_default_of_another_policy_is_not_a_change_by_the_writer() {
    let policies = compile(&[
        policy("owns", "convention: metav1, owners: [{path: /status/billing, users: [b]}]"),
        policy(
            "defaults",
            "convention: metav1, backfill: [{path: /status/billing/unit, value: GiB}]",
        ),
    ]);
    let outcome = Write::of(json!({"x": 1}), json!({"x": 2})).review(&policies);
    assert_eq!(outcome.status()["billing"]["unit"], "GiB");
    outcome.is_clean();
}

#[test]
fn a_time_that_the_webhook_wrote_is_not_a_change_by_the_writer_under_another_policy() {
    let policies = compile(&[
        policy("phase", "convention: appcat, disagreement: Repair"),
        policy(
            "owns",
            "convention: metav1, owners: [{path: /status/lastTransitionTime, users: [phaser]}]",
        ),
    ]);
    let status = |ready: &str, time: &str| {
        let ready = with(condition("Ready", ready), "lastTransitionTime", time);
        json!({"phase": "Ready", "lastTransitionTime": T0, "instanceNamespace": "n", "conditions": [ready]})
    };
    let write = Write::of(status("True", T0), status("False", NOW));
    let mutated = write.mutate(&policies);
    assert_eq!(mutated.status()["lastTransitionTime"], NOW);
    for now in [NOW, "2024-06-01T12:00:01Z", "2024-06-01T12:00:09Z"] {
        write.after(&mutated).at(now).validate(&policies).is_clean();
    }
}

#[test]
fn a_default_does_not_hide_a_change_by_the_writer() {
    let policies = following(
        "appcat",
        "owners: [{path: /status/billing, users: [b]}, {path: /status/phase, users: [phaser]}], \
        backfill: [{path: /status/billing/unit, value: GiB}]",
    );
    let status = |price: i32| json!({"instanceNamespace": "n", "phase": "Ready", "lastTransitionTime": T0, "billing": {"price": price}});
    let write = Write::of(status(5), status(6)).by("somebody");
    let denial = r#"deny status.billing: "somebody" does not own this field [p/owner]"#;
    assert_eq!(write.review(&policies).denials(), [denial]);
    write.by("b").review(&policies).is_allowed();
    // The writer sets this phase; the webhook does not impose it.
    let write = Write::of(status(5), with(status(5), "phase", "Failed")).by("b");
    write.review(&policies).denied_by(&["p/owner"]);
}

#[test]
fn a_changed_condition_list_is_compared_with_what_the_webhook_makes_of_it() {
    let owned = "owners: [{path: /status/conditions, users: [aso]}, {path: /status/phase, users: [portal]}]";
    let remove =
        "{list: /status/conditions, member: severity, absentWhere: {member: status, is: 'True'}}";
    let add = "{list: /status/conditions, member: message, value: ''}";
    let ready = json!({"type": "Ready", "status": "True", "severity": "Info", "reason": "R", "lastTransitionTime": T0});
    let old = json!({"phase": "Ready", "conditions": [ready]});
    let new = with(old.clone(), "x", 1);
    for backfill in [remove, add] {
        let policies = following("appcat", &format!("{owned}, backfill: [{backfill}]"));
        let outcome = Write::of(old.clone(), new.clone()).review(&policies);
        assert!(outcome.is_patched(), "{backfill}");
        outcome.is_allowed();
        let mut theirs = new.clone();
        theirs["conditions"][0]["reason"] = "S".into();
        Write::of(old.clone(), theirs).review(&policies).denied_by(&["p/owner"]);
    }
}

#[test]
fn only_the_owner_sets_a_field_of_a_new_object() {
    let policies = following(
        "metav1",
        &format!("{WITHOUT_SUBRESOURCE}, owners: [{{path: /status/billing, users: [biller]}}]"),
    );
    let creation = Write::to("things").sent(json!({"billing": {"price": 5}})).creating();
    creation.validate(&policies).finds(&[(Deny, "p/owner")]);
    creation.clone().by("biller").validate(&policies).is_clean();
    // A manifest without a request has no writer.
    creation.by("").validate(&policies).is_clean();
}

// --- writes without a status of the writer ----------------------------------------------------

const REQUIRED: &str = "fields: [{path: /status/endpoint, required: true}]";

#[test]
fn a_status_that_only_the_webhook_wrote_is_not_judged() {
    let policies = following("appcat", &format!("{WITHOUT_SUBRESOURCE}, {REQUIRED}"));
    let none = || None::<Value>;
    for nothing in [none(), Some(json!({}))] {
        for before in [none(), Some(json!({}))] {
            let write = Write::of(before, nothing.clone()).on_the_main_resource();
            for write in [write.clone(), write.creating()] {
                let outcome = write.review(&policies);
                assert_eq!(outcome.status()["phase"], "Unknown");
                outcome.is_clean();
            }
        }
    }
    // A status of the writer is judged.
    let write = Write::of(none(), json!({"x": 1})).on_the_main_resource();
    write.review(&policies).denied_by(&["p/field-endpoint"]);
    write.creating().review(&policies).denied_by(&["p/field-endpoint"]);
}

#[test]
fn an_empty_first_status_is_not_judged_and_an_emptied_one_is() {
    let policies = following("metav1", &format!("{WITHOUT_SUBRESOURCE}, {REQUIRED}"));
    for nothing in [None, Some(json!({}))] {
        Write::to("things").sent(nothing).creating().validate(&policies).is_clean();
    }
    let emptied = Write::of(json!({"endpoint": "e"}), json!({})).on_the_main_resource();
    emptied.validate(&policies).denied_by(&["p/field-endpoint"]);
}

#[test]
fn an_empty_stored_status_counts_as_none_for_generations() {
    let new = json!({"phase": "Unknown", "instanceNamespace": "n", "observedGeneration": 9});
    let policies = following("appcat", "");
    let after = |old: Option<Value>| Write::of(old, new.clone()).validate(&policies).lines();
    assert_eq!(after(Some(json!({}))), after(None));
    assert_ne!(after(Some(json!({}))), after(Some(json!({"instanceNamespace": "n"}))));
}

// --- defaults ---------------------------------------------------------------------------------

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
fn a_copied_field_that_a_member_cannot_have_is_not_set() {
    let policies = under(
        "conditions: [{path: /status/conditions, transitionTime: {member: lastTransitionTime, mustMoveOn: status, mayMoveOn: status}}], \
        backfill: [{list: /status/conditions, member: lastTransitionTime, copyOf: /status/t}]",
        "",
    );
    let status =
        |time: &str| json!({"t": time, "conditions": [{"type": "Ready", "status": "True"}]});
    let time = |time: &str| {
        let outcome = Write::of(json!({"x": 1}), status(time)).review(&policies);
        outcome.is_clean();
        outcome.status()["conditions"][0]["lastTransitionTime"].take()
    };
    assert_eq!(time(T0), T0);
    assert_eq!(time(FAR), Value::Null);
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
            "{anyCondition: positive, is: 'True'}",
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
    let outcome = Write::of(list, json!({"phase": "Unknown"}))
        .review(&following("appcat", "preserve: [/status/list/2]"));
    assert!(!outcome.status()["list"].is_object(), "{}", outcome.status());
}

// --- lists ------------------------------------------------------------------------------------

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
fn keyed(key: &str) -> statusgate::policy::PolicySet {
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

// --- aliases of condition types ---------------------------------------------------------------

/// Conditions as (type, status), under a convention in which `Paused` is an alias.
fn aliased(old: &[(&str, &str)], new: &[(&str, &str)]) -> support::Outcome {
    let policies = under(
        "conditions: [{path: /status/conditions, types: {ReconciliationPaused: {aliases: [Paused]}}}], \
        rules: [{id: moved, when: {condition: ReconciliationPaused, is: 'True'}, trigger: {moved: condition ReconciliationPaused}, \
        path: /status/conditions, action: Deny, message: paused moved}], \
        backfill: [{name: e, list: /status/conditions, element: {type: ReconciliationPaused, status: Unknown}}]",
        "",
    );
    let list = |items: &[(&str, &str)]| -> Value {
        items.iter().map(|(kind, status)| condition(kind, status)).collect()
    };
    Write::of(json!({"conditions": list(old)}), json!({"conditions": list(new)})).review(&policies)
}

#[test]
fn a_condition_is_found_by_each_of_its_names() {
    for kind in ["Paused", "ReconciliationPaused"] {
        aliased(&[(kind, "False")], &[(kind, "True")]).denied_by(&["c/moved"]);
    }
    // The default element is not added.
    let outcome = aliased(&[], &[("Paused", "False")]);
    assert_eq!(outcome.status()["conditions"].as_array().unwrap().len(), 1);
    let renamed = aliased(&[("Paused", "False")], &[("ReconciliationPaused", "False")]);
    renamed.is_clean();
}

#[test]
fn a_condition_under_two_of_its_names_is_a_duplicate() {
    let both = [("Paused", "False"), ("ReconciliationPaused", "False")];
    assert_eq!(
        aliased(&[("x", "True")], &both).denials(),
        [
            r#"deny status.conditions[1].type: Duplicate value: "ReconciliationPaused" [c/condition-duplicate]"#
        ]
    );
}

// --- values and texts -------------------------------------------------------------------------

#[test]
fn an_observed_generation_is_an_integer_of_64_bits() {
    let written = |generation: &str| {
        let number: Value = serde_json::from_str(generation).unwrap();
        let ready = with(condition("Ready", "True"), "observedGeneration", number);
        let write = Write::of(json!({"x": 1}), json!({"conditions": [ready]}));
        write.validate(&following("metav1", "")).findings
    };
    assert_eq!(written("3"), []);
    for (generation, reason) in [
        // Go cannot decode this into an int64.
        ("3.0", "it has a decimal point or an exponent"),
        ("3.5", "it is a number"),
        ("9223372036854775808", "it does not fit in 64 bits"),
    ] {
        let found = written(generation);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].field, "status.conditions[0].observedGeneration");
        assert!(found[0].message.contains(reason), "{found:?}");
    }
}

#[test]
fn a_future_time_and_a_future_generation_are_invalid_values() {
    let condition =
        with(with(condition("A", "True"), "lastTransitionTime", FAR), "observedGeneration", 9);
    let new = json!({"phase": "Unknown", "conditions": [condition]});
    let outcome = Write::of(json!({"phase": "Unknown"}), new).validate(&following("appcat", ""));
    let reasons: Vec<&str> = outcome.findings.iter().map(|found| found.reason).collect();
    assert_eq!(reasons, ["FieldValueInvalid"; 2]);
}

/// Lengths count characters. Classes are those of ASCII, as in ECMA 262 and in Go.
#[test]
fn a_pattern_matches_characters() {
    for (pattern, text, matches) in [
        ("^.{3}$", "äöü", true),
        ("^.{3}$", "ä", false),
        ("^[a-zäöü]+$", "grün", true),
        (r"^[^/]{2}$", "äö", true),
        (r"^\w+\s\d\W$", "ab 1-", true),
        (r"^\w$", "ä", false),
        (r"^\W\D\S$", "äöü", true),
        (r"\bx\b", "a x b", true),
        (r"\bx\b", "axb", false),
        (r"^[\w.-]+$", "a_b.c-1", true),
        (r"^[^\s\d]$", "ä", true),
    ] {
        let fields = format!("fields: [{{path: /status/name, pattern: '{pattern}'}}]");
        let write = Write::of(json!({}), json!({"name": text}));
        let outcome = write.validate(&following("metav1", &fields));
        assert_eq!(!outcome.is_denied(), matches, "{pattern} {text}");
    }
}

#[test]
fn a_hostile_member_name_is_quoted_on_one_short_line() {
    let policies = under(
        "conditions: [{path: /status/conditions, otherMembers: Deny, members: {type: {}, status: {}}}]",
        "",
    );
    let with = |name: &str| {
        let ready = json!({"type": "Ready", "status": "True", name: 1});
        let write = Write::of(json!({"x": 1}), json!({"conditions": [ready]}));
        write.validate(&policies).lines().remove(0)
    };
    assert!(with("plain").starts_with("deny status.conditions[0].plain: "));
    let text = with("\u{1b}[31mRED\n\u{202e}");
    assert!(!text.contains(|letter: char| letter.is_control() || letter == '\u{202e}'), "{text:?}");
    assert!(with(&"ä".repeat(100_000)).len() < 400);
}

#[test]
fn a_request_that_is_not_an_object_is_malformed() {
    let kind = json!({"group": "g", "kind": "Thing"});
    let plural = json!({"group": "vshn.appcat.vshn.io", "version": "v1", "resource": "vshnredis"});
    let user = json!(["operator", []]);
    let body = json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1",
        "request": ["u", kind, plural, "status", "n", "s", "UPDATE", user, {}, {}, false]})
    .to_string();
    let now = LATER.parse().unwrap();
    let reply = admit(examples(), Webhook::Validate, body.as_bytes(), now, |_, _| {});
    assert_eq!(reply.status, 400, "{}", String::from_utf8_lossy(&reply.body));
}

// --- conditions of a polarity ------------------------------------------------------------------

#[test]
fn a_rule_reads_the_conditions_of_a_polarity() {
    let types = json!({"*Pressure": {"polarity": "negative"}, "Ready": {"polarity": "positive"}});
    let policies = under(
        json!({
            "conditions": [{"path": "/status/conditions", "types": types}],
            "phase": {"path": "/status/phase", "values": [{"phase": "Ready"}]},
            "rules": [{
                "id": "pressure",
                "when": {"phase": "Ready", "anyCondition": "negative", "is": "True"},
                "action": "Deny",
                "message": "is Ready under pressure",
            }],
        }),
        "",
    );
    for (conditions, rejected) in [
        (json!([condition("DiskPressure", "True")]), true),
        (json!([condition("DiskPressure", "False"), condition("Ready", "True")]), false),
        (json!([condition("Ready", "True")]), false),
        (json!([]), false),
    ] {
        let new = json!({"phase": "Ready", "conditions": conditions});
        let outcome = Write::of(json!({}), new).validate(&policies);
        assert_eq!(outcome.is_denied(), rejected, "{outcome:?}");
    }
}
