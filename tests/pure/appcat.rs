//! AppCat's convention, rule by rule: first the examples of its page, then one clean write and one
//! change for each rule.

use std::sync::LazyLock;

use serde_json::{Value, json};
use statusgate_core::engine::Action::{self, Audit, Deny, Warn};
use statusgate_core::policy::PolicySet;

use crate::support::{CROSSPLANE, DELETED, EARLIER, NOW, Outcome, T0, Write, following, under};

/// A policy at its default settings.
static APPCAT: LazyLock<PolicySet> = LazyLock::new(|| following("appcat", ""));

/// `R=True` is condition Ready with status True; `R=False/Deleting` has its own reason.
fn conditions(short: &str) -> Value {
    short
        .split_whitespace()
        .map(|item| {
            let (name, rest) = item.split_once('=').unwrap();
            let (status, reason) = rest.split_once('/').unwrap_or((rest, "Because"));
            let name = match name {
                "R" => "Ready",
                "S" => "Synced",
                "P" => "PodReady",
                other => other,
            };
            json!({"type": name, "status": status, "reason": reason, "message": "Because",
                "lastTransitionTime": T0})
        })
        .collect()
}

fn status(phase: &str, short: &str) -> Value {
    json!({"instanceNamespace": "n", "phase": phase, "conditions": conditions(short),
        "lastTransitionTime": T0})
}

const ALL_TRUE: &str = "R=True S=True P=True";

/// A write of a composite. Each changed condition gets a new time, as it should.
fn write(old: Value, mut new: Value) -> Write {
    let status_of = |status: &Value, kind: &Value| {
        let list = status["conditions"].as_array()?;
        list.iter().find(|item| item["type"] == *kind).map(|item| item["status"].clone())
    };
    for item in new.get_mut("conditions").and_then(Value::as_array_mut).into_iter().flatten() {
        let before = item.get("type").and_then(|kind| status_of(&old, kind));
        if before.is_some_and(|before| before != item["status"]) {
            item["lastTransitionTime"] = NOW.into();
        }
    }
    Write::to("xthings").stored(old).sent(new)
}

/// What the validating webhook finds in a write of a composite.
fn validated(old: Value, new: Value) -> Outcome {
    write(old, new).validate(&APPCAT)
}

/// What the validating webhook finds in a write of a claim.
fn validated_claim(old: Value, new: Value) -> Outcome {
    Write::of(old, new).validate(&APPCAT)
}

/// The patch of the mutating webhook for a write of a composite.
fn patch(old: Value, new: Value) -> Value {
    write(old, new).mutate(&APPCAT).patch
}

// --- examples of the convention's page --------------------------------------------------------
//
// `examples/suites/appcat/rules.yaml` proves A2, A6 and A7: `phase-ready`, `phase-deleting` and
// `phase-value` reject.

#[test]
fn a1_a_changed_phase_without_a_time_gets_the_time_of_the_write() {
    let old = json!({"instanceNamespace": "n", "phase": "Provisioning", "conditions": conditions("R=True S=True P=False")});
    let new =
        json!({"instanceNamespace": "n", "phase": "Ready", "conditions": conditions(ALL_TRUE)});
    let expected = json!([{"op": "add", "path": "/status/lastTransitionTime", "value": NOW}]);
    assert_eq!(patch(old, new), expected);
}

#[test]
fn a3_the_first_request_of_crossplane_is_repaired_and_the_same_write_of_others_is_denied() {
    let unready = |phase: &str| json!({"instanceNamespace": "n", "phase": phase, "conditions": conditions("R=False S=True P=False")});
    let policies = following(
        "appcat",
        "writers: [{users: ['system:serviceaccount:*:crossplane'], disagreement: Repair}]",
    );
    let case = write(unready("Provisioning"), unready("Ready"));
    case.validate(&policies).finds(&[(Deny, "appcat/phase-ready")]);
    let case = case.by(CROSSPLANE);
    case.validate(&policies).warns("appcat/phase-ready");
    let mutated = case.mutate(&policies);
    let expected = json!([{"op": "replace", "path": "/status/phase", "value": "Provisioning"}]);
    assert_eq!(mutated.patch, expected);
    mutated.finds(&[(Action::Repair, "appcat/phase-ready")]);
}

#[test]
fn a4_the_second_request_of_crossplane_is_repaired_to_degraded() {
    let case = write(status("Ready", ALL_TRUE), status("Ready", "R=False S=True P=True"));
    let expected = json!([
        {"op": "replace", "path": "/status/phase", "value": "Degraded"},
        {"op": "replace", "path": "/status/lastTransitionTime", "value": NOW}
    ]);
    assert_eq!(case.mutate(&following("appcat", "disagreement: Repair")).patch, expected);
}

#[test]
fn a5_a_deletion_imposes_deleting_with_the_time_of_the_deletion() {
    let new = json!({"phase": "Ready", "conditions": conditions("R=False/Deleting")});
    let case = write(json!({"phase": "Ready"}), new).deleting();
    let expected = json!([
        {"op": "replace", "path": "/status/phase", "value": "Deleting"},
        {"op": "add", "path": "/status/lastTransitionTime", "value": DELETED}
    ]);
    assert_eq!(case.mutate(&APPCAT).patch, expected);
    case.validate(&APPCAT).is_allowed();
}

// --- the default phase ------------------------------------------------------------------------

#[test]
fn an_absent_null_or_empty_phase_becomes_unknown_without_a_time() {
    let unknown = |op: &str| json!([{"op": op, "path": "/status/phase", "value": "Unknown"}]);
    assert_eq!(patch(json!({}), json!({})), unknown("add"));
    assert_eq!(patch(json!({}), json!({"phase": null})), unknown("replace"));
    assert_eq!(patch(json!({}), json!({"phase": ""})), unknown("replace"));
    let with_status = |op: &str| {
        json!([
            {"op": op, "path": "/status", "value": {}},
            {"op": "add", "path": "/status/phase", "value": "Unknown"}
        ])
    };
    let absent = Write::to("xthings").stored(json!({}));
    assert_eq!(absent.mutate(&APPCAT).patch, with_status("add"));
    assert_eq!(patch(json!({}), Value::Null), with_status("replace"));
}

#[test]
fn a_dropped_phase_becomes_unknown_with_the_time_of_the_write() {
    let mut new = status("x", ALL_TRUE);
    new.as_object_mut().unwrap().remove("phase");
    let expected = json!([
        {"op": "add", "path": "/status/phase", "value": "Unknown"},
        {"op": "replace", "path": "/status/lastTransitionTime", "value": NOW}
    ]);
    assert_eq!(patch(status("Ready", ALL_TRUE), new), expected);
}

#[test]
fn a_status_that_is_not_an_object_is_denied_and_not_patched() {
    for odd in [json!([]), json!(5), json!("x")] {
        assert_eq!(patch(json!({}), odd.clone()), Value::Null);
        validated(json!({}), odd).finds(&[(Deny, "appcat/status")]);
    }
}

#[test]
fn a_phase_that_is_not_a_string_is_denied_and_not_patched() {
    let no_default = under("phase: {path: /status/phase, values: [{phase: Up}]}", "");
    for odd in [json!(5), json!([]), json!({"a": 1}), json!(true)] {
        assert_eq!(patch(json!({}), json!({"phase": odd})), Value::Null);
        validated(json!({}), json!({"phase": odd})).finds(&[(Deny, "appcat/phase-value")]);
        let case = write(json!({}), json!({"phase": odd}));
        case.validate(&no_default).finds(&[(Deny, "c/phase-value")]);
    }
}

#[test]
fn every_phase_except_deleting_is_admissible_without_evidence() {
    for phase in
        ["Failed", "Provisioning", "Maintenance", "Scaling", "Degraded", "Ready", "Unknown"]
    {
        let new = json!({"phase": phase, "instanceNamespace": "n"});
        validated_claim(json!({}), new).is_clean();
    }
}

// --- agreement of phase and conditions --------------------------------------------------------

#[test]
fn the_rows_of_the_pod_readiness_table_are_accepted() {
    for (old, phase, short) in [
        ("Unknown", "Provisioning", "R=False S=True P=False"),
        ("Provisioning", "Provisioning", "R=True S=True P=False"),
        ("Provisioning", "Ready", ALL_TRUE),
        ("Ready", "Degraded", "R=True S=True P=False"),
        ("Provisioning", "Failed", "R=False S=True P=False"),
        // The row that the table lacks: the pods are ready, the release is not.
        ("Ready", "Degraded", "R=False S=True P=True"),
        ("Ready", "Scaling", "R=False S=True P=True"),
        ("Ready", "Maintenance", "R=False S=True P=True"),
        ("Ready", "Failed", "R=False S=True P=True"),
    ] {
        let mut new = status(phase, short);
        if old != phase {
            new["lastTransitionTime"] = NOW.into();
        }
        validated(status(old, short), new).is_clean();
    }
}

#[test]
fn ready_is_denied_when_one_condition_contradicts_it() {
    for short in [
        "R=False/Down S=True P=True",
        "R=Unknown/Down S=True P=True",
        "R=True S=True P=False/Down",
        "R=True S=True P=Unknown/Down",
        "R=True S=False/ReconcileError P=True",
    ] {
        let outcome = validated(status("Provisioning", ALL_TRUE), status("Ready", short));
        outcome.finds(&[(Deny, "appcat/phase-ready")]);
        // So is a write that changes the conditions and leaves the phase as it is.
        let outcome = validated(status("Ready", ALL_TRUE), status("Ready", short));
        outcome.denied_by(&["appcat/phase-ready"]);
    }
    for short in ["R=True S=Unknown P=True", "R=True S=False/ReconcilePaused P=True"] {
        validated(status("Unknown", short), status("Ready", short)).is_clean();
    }
}

#[test]
fn degraded_before_the_service_was_ready_is_a_warning() {
    let unready = "R=True S=True P=False";
    validated(status("Provisioning", unready), status("Degraded", unready))
        .warns("appcat/degraded-before-ready");
}

#[test]
fn failed_is_denied_while_every_condition_is_true() {
    validated(status("Ready", ALL_TRUE), status("Failed", ALL_TRUE))
        .finds(&[(Deny, "appcat/phase-failed")]);
}

/// `examples/suites/appcat/rules.yaml` has the other rules that warn.
#[test]
fn a_suspicious_status_is_accepted_with_a_warning() {
    for (old, new, rule) in [
        (status("Ready", ALL_TRUE), status("Degraded", ALL_TRUE), "appcat/settled-provisioning"),
        (json!({"phase": "Unknown"}), json!({"phase": "Maintenance"}), "appcat/instance-namespace"),
        (
            status("Unknown", "R=True P=True"),
            status("Ready", "R=True P=True"),
            "appcat/ready-without-evidence",
        ),
        (
            status("Unknown", "R=True S=True"),
            status("Unknown", "S=True"),
            "appcat/condition-removed",
        ),
    ] {
        validated(old, new).warns(rule);
    }
}

#[test]
fn a_claim_needs_no_pod_ready_and_may_remove_conditions() {
    let old = || status("Unknown", "R=True S=True");
    validated_claim(old(), status("Ready", "R=True S=True")).is_clean();
    validated_claim(old(), status("Unknown", "S=True")).is_clean();
}

#[test]
fn a_stored_disagreement_does_not_reject_an_update() {
    let (old, new) = ("R=False S=True P=True", "R=False S=True P=False/Down");
    validated(status("Ready", old), status("Ready", new)).is_clean();
    let bad = json!({"phase": "nonsense", "conditions": [null, {"type": "A"}, {"type": "A"}]});
    validated(bad.clone(), bad).is_clean();
}

#[test]
fn every_state_can_change_to_unknown() {
    for phase in ["Ready", "Failed", "Deleting", "Degraded", "nonsense"] {
        for short in [ALL_TRUE, "R=False S=False P=False", ""] {
            validated(status(phase, short), status("Unknown", short)).is_allowed();
        }
    }
}

#[test]
fn enforcement_limits_the_action_of_every_rule() {
    for (limit, action) in [("Warn", Warn), ("Audit", Audit)] {
        let policies = following("appcat", &format!("enforcement: {limit}, disagreement: Repair"));
        let case = write(json!({}), json!({"phase": "ready"}));
        case.validate(&policies).finds(&[(action, "appcat/phase-value")]);
        // A repair is a stronger action than the limit.
        let case = write(status("Unknown", ALL_TRUE), status("Ready", "R=False"));
        case.mutate(&policies).is_clean();
    }
}

// --- conditions -------------------------------------------------------------------------------

#[test]
fn each_invalid_member_of_a_condition_is_found_by_its_rule() {
    let cases = [
        ("type", json!(null), Deny, "condition-type"),
        ("type", json!("Not Ready"), Deny, "condition-type"),
        ("type", json!(""), Deny, "condition-type"),
        ("type", json!("T".repeat(317)), Deny, "condition-type"),
        ("type", json!(5), Deny, "condition-type"),
        ("status", json!("true"), Deny, "condition-status"),
        ("status", json!(true), Deny, "condition-status"),
        ("reason", json!(""), Warn, "condition-reason-form"),
        ("reason", json!(null), Deny, "condition-reason"),
        ("reason", json!("two words"), Warn, "condition-reason-form"),
        (
            "lastTransitionTime",
            json!("2024-06-01t11:00:00z"),
            Deny,
            "condition-last-transition-time",
        ),
        ("lastTransitionTime", json!(null), Deny, "condition-last-transition-time"),
        ("lastTransitionTime", json!("2024-06-01T12:06:00Z"), Warn, "transition-time-future"),
        ("message", json!(5), Deny, "condition-message"),
        ("observedGeneration", json!(-1), Deny, "condition-observed-generation"),
        ("observedGeneration", json!(1.5), Deny, "condition-observed-generation"),
        ("observedGeneration", json!(4), Deny, "generation-ahead"),
    ];
    for (member, value, action, rule) in cases {
        let mut new = status("Unknown", "Custom=True");
        new["conditions"][0][member] = value;
        let outcome = validated(status("Unknown", ""), new);
        outcome.finds(&[(action, &format!("appcat/{rule}"))]);
    }
}

#[test]
fn conditions_that_are_not_a_list_and_elements_that_are_not_objects_are_denied() {
    for odd in [json!({}), json!("x"), json!([null]), json!([5]), json!([[]])] {
        validated(json!({}), json!({"conditions": odd})).finds(&[(Deny, "appcat/condition-shape")]);
    }
    validated(json!({}), json!({"conditions": null})).is_clean();
    let new = json!({"pgclusterConditions": [{"type": "x y"}, {"type": "x y"}, null, 5]});
    validated(json!({}), new).is_clean();
}

#[test]
fn a_new_duplicate_condition_is_denied_and_a_stored_one_is_tolerated() {
    validated(status("Unknown", "A=True"), status("Unknown", "A=True A=False"))
        .finds(&[(Deny, "appcat/condition-duplicate")]);
    let stored = status("Unknown", "A=True A=False");
    Write::to("xthings")
        .stored(stored)
        .sent(status("Unknown", "A=True A=False B=True"))
        .validate(&APPCAT)
        .is_clean();
}

#[test]
fn a_stored_fault_is_tolerated_when_its_condition_changes_its_place_in_the_list() {
    let mut old = status("Unknown", "A=True B=True");
    old["conditions"][1]["reason"] = "".into();
    let mut new = status("Unknown", "B=False");
    new["conditions"][0]["reason"] = "".into();
    validated(old, new).is_clean();
}

#[test]
fn the_time_of_a_condition_changes_with_its_status_or_reason() {
    let changed = |time: &str, status_now: &str, reason: &str| {
        let mut new = status("Unknown", &format!("P={status_now}/{reason}"));
        new["conditions"][0]["lastTransitionTime"] = time.into();
        Write::to("xthings").stored(status("Unknown", "P=True/Before")).sent(new).validate(&APPCAT)
    };
    changed(T0, "False", "After").warns("appcat/transition-time-kept");
    changed(T0, "True", "After").warns("appcat/transition-time-kept");
    changed(NOW, "False", "After").is_clean();
    changed(NOW, "True", "After").is_clean();
    // A provider may change a condition while it observes, and change it back.
    changed(NOW, "True", "Before").is_clean();
    changed(EARLIER, "False", "After").warns("appcat/transition-time-backwards");
    changed("2024-06-01T11:00:00.5Z", "True", "Before").is_clean();
}

#[test]
fn an_unchanged_phase_keeps_its_time() {
    let mut new = status("Ready", ALL_TRUE);
    new["lastTransitionTime"] = NOW.into();
    validated(status("Ready", ALL_TRUE), new.clone()).warns("appcat/phase-transition-time");
    new.as_object_mut().unwrap().remove("lastTransitionTime");
    let expected = json!([{"op": "add", "path": "/status/lastTransitionTime", "value": T0}]);
    assert_eq!(patch(status("Ready", ALL_TRUE), new), expected);
}

#[test]
fn an_observed_generation_is_not_ahead_and_does_not_decrease() {
    let generation = |generation: i64| json!({"observedGeneration": generation});
    validated(generation(3), generation(4)).finds(&[(Deny, "appcat/generation-ahead")]);
    // Without a stored status the object may be restored from a backup.
    let first = Write::to("xthings").sent(generation(4));
    first.validate(&APPCAT).warns("appcat/generation-ahead");
    validated(generation(3), generation(2)).warns("appcat/generation-decreased");
    validated(generation(-1), generation(3)).is_clean();
}

// --- additions of a policy --------------------------------------------------------------------

#[test]
fn a_null_billing_is_removed_unless_the_field_is_nullable() {
    let unknown = || json!({"phase": "Unknown"});
    let null = || json!({"phase": "Unknown", "billing": null});
    let expected = json!([{"op": "remove", "path": "/status/billing"}]);
    assert_eq!(patch(unknown(), null()), expected);
    let nullable =
        following("appcat", "backfill: [{path: /status/billing, value: null, nullable: true}]");
    let expected = json!([{"op": "add", "path": "/status/billing", "value": null}]);
    assert_eq!(write(unknown(), unknown()).mutate(&nullable).patch, expected);
    assert_eq!(write(unknown(), null()).mutate(&nullable).patch, Value::Null);
}

/// The convention asks about the stored phase where a repair chooses. A write that changes nothing, and a
/// second run of backfill, keep the choice.
#[test]
fn what_a_repair_chooses_by_the_stored_phase_settles() {
    let policies = following("appcat", "disagreement: Repair");
    let backfill = following("appcat", "").repairing();
    let phases = ["", "Failed", "Provisioning", "Maintenance", "Degraded", "Ready", "Unknown"];
    let mut repairs = 0;
    for number in 0..phases.len() * phases.len() * 4_usize.pow(3) {
        let mut rest = number;
        let mut next = |count: usize| (rest % count, rest /= count).0;
        let (from, to) = (phases[next(phases.len())], phases[next(phases.len())]);
        let conditions = ["R", "S", "P"].map(|name| match next(4) {
            0 => String::new(),
            at => format!("{name}={}", ["True", "False", "Unknown"][at - 1]),
        });
        let conditions = conditions.join(" ");
        let stored = status(from, ALL_TRUE);
        for (policies, stored) in [(&policies, stored), (&backfill, status(to, &conditions))] {
            let repaired = write(stored, status(to, &conditions)).mutate(policies);
            let after = repaired.status();
            repairs += usize::from(after["phase"] != to);
            let again = Write::to("xthings").stored(after.clone()).sent(after);
            assert!(!again.mutate(policies).is_patched(), "{from} to {to}: {again:?}");
        }
    }
    assert!(repairs > 1_000, "{repairs}");
}

#[test]
fn a_default_is_copied_from_the_first_field_that_is_set() {
    let copy = "backfill: [{path: /status/currentVersion, copyOf: [/status/currentReleaseTag, /status/mariadbVersion]}]";
    let new = json!({"phase": "Unknown", "mariadbVersion": "11.4.5"});
    let expected = json!([{"op": "add", "path": "/status/currentVersion", "value": "11.4.5"}]);
    let case = write(json!({"phase": "Unknown"}), new);
    assert_eq!(case.mutate(&following("appcat", copy)).patch, expected);
}

#[test]
fn only_the_owner_changes_a_field_and_a_field_that_others_drop_is_restored() {
    let owned = following(
        "appcat",
        "owners: [{path: /status/billing, users: [biller]}], preserve: [/status/billing]",
    );
    let old = json!({"phase": "Unknown", "billing": {"unit": "GiB"}});
    let changed = write(old.clone(), json!({"phase": "Unknown", "billing": {"unit": "minutes"}}));
    changed.validate(&owned).finds(&[(Deny, "p/owner")]);
    changed.by("biller").validate(&owned).is_clean();
    let dropped = write(old, json!({"phase": "Unknown"}));
    let expected = json!([{"op": "add", "path": "/status/billing", "value": {"unit": "GiB"}}]);
    assert_eq!(dropped.mutate(&owned).patch, expected);
    dropped.validate(&owned).warns("p/owner");
    assert_eq!(dropped.by("biller").mutate(&owned).patch, Value::Null);
}

#[test]
fn a_policy_checks_types_values_and_ranges_of_its_fields() {
    let fields = following(
        "appcat",
        "fields: [{path: /status/billing/unit, enum: [GiB, minutes]}, \
        {path: /status/billing/currentMonthlyPrice, format: quantity}, \
        {path: /status/sshPort, type: integer, minimum: 1, maximum: 65535}]",
    );
    let validated = |status: Value| write(json!({}), status).validate(&fields);
    validated(json!({"billing": {"unit": "GiB", "currentMonthlyPrice": "142500m"}, "sshPort": 22}))
        .is_clean();
    validated(json!({"billing": {"currentMonthlyPrice": 12}})).is_clean();
    for odd in [json!("gib"), json!(5), json!(true), json!([]), json!({"a": 1})] {
        validated(json!({"billing": {"unit": odd}})).finds(&[(Deny, "p/field-unit")]);
    }
    validated(json!({"billing": {"currentMonthlyPrice": "12 CHF"}}))
        .finds(&[(Deny, "p/field-current-monthly-price")]);
    validated(json!({"sshPort": 70000})).finds(&[(Deny, "p/field-ssh-port")]);
    validated(json!({"sshPort": "22"})).finds(&[(Deny, "p/field-ssh-port")]);
}

#[test]
fn the_first_entry_of_writers_that_matches_a_user_or_a_group_applies() {
    let policies = following(
        "appcat",
        "writers: [{groups: [people], disagreement: Audit}, {users: ['*'], disagreement: Warn}]",
    );
    let case = Write::of(status("Unknown", "R=False"), status("Ready", "R=False"));
    case.clone().in_groups(&["people"]).validate(&policies).finds(&[(Audit, "appcat/phase-ready")]);
    case.validate(&policies).warns("appcat/phase-ready");
}
