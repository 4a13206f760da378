//! Owners of fields, and writes without a status of the writer.

use serde_json::{Value, json};
use statusgate_core::engine::Action::Deny;

use super::{condition, ready, with};
use crate::support::{NOW, T0, WITHOUT_SUBRESOURCE, Write, compile, following, policy, under};

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
        let reason = if ready == "True" { "Available" } else { "Unavailable" };
        let ready = with(condition("Ready", ready), "lastTransitionTime", time);
        let ready = with(ready, "reason", reason);
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
fn a_phase_is_not_repaired_if_a_default_sets_the_evidence_that_the_writer_left_out() {
    let convention = "phase: {path: /status/phase, repair: [{to: B}], \
        values: [{phase: A, necessary: {set: /status/x}}, {phase: B}]}, \
        backfill: [{path: /status/x, value: 1}]";
    let policies = under(convention, &format!("disagreement: Repair, {PHASER}"));
    let outcome = Write::of(json!({"phase": "A", "x": 1}), json!({"phase": "A"})).review(&policies);
    assert_eq!(outcome.status(), json!({"phase": "A", "x": 1}));
    outcome.is_clean();
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
        let reason = if ready == "True" { "Available" } else { "Unavailable" };
        let ready = with(condition("Ready", ready), "lastTransitionTime", time);
        let ready = with(ready, "reason", reason);
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
