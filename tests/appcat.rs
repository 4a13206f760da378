//! AppCat's convention, rule by rule: the golden examples of its page, then one clean fixture and
//! one change a rule.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests, and their helpers too")]

use serde_json::{Value, json};
use statusgate::engine::{Action, decide};
use statusgate::model::{Object, Operation, Resource, Subject, Webhook, Writer};
use statusgate::policy::{PolicySet, Source};

const T0: &str = "2024-06-01T11:00:00Z";
const NOW: &str = "2024-06-01T12:00:00Z";

/// A write to judge: the clean one, to be changed in one place.
struct Write {
    resource: &'static str,
    user: &'static str,
    metadata: Value,
    old: Value,
    new: Value,
    policy: String,
}

/// `R=True` is condition Ready with status True; `R=False/Deleting` has a reason of its own.
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

fn policy(additions: &str) -> String {
    format!(
        "apiVersion: statusgate.dev/v1alpha1\nkind: StatusPolicy\nmetadata: {{name: test}}\nspec:\n  \
         convention: appcat\n  resources:\n    - {{apiGroups: [g], apiVersions: [v1], resources: [xthings, things]}}\n{additions}"
    )
}

/// A write in which each changed condition has a new time, as it should.
fn write(old: Value, mut new: Value) -> Write {
    if !new.is_object() {
        return write_as_it_is(old, new);
    }
    let status_of = |status: &Value, kind: &Value| {
        let list = status["conditions"].as_array()?;
        list.iter().find(|item| item["type"] == *kind).map(|item| item["status"].clone())
    };
    for item in new.get_mut("conditions").and_then(Value::as_array_mut).into_iter().flatten() {
        if item.is_object()
            && status_of(&old, &item["type"]).is_some_and(|before| before != item["status"])
        {
            item["lastTransitionTime"] = NOW.into();
        }
    }
    write_as_it_is(old, new)
}

fn write_as_it_is(old: Value, new: Value) -> Write {
    Write {
        resource: "xthings",
        user: "operator",
        metadata: json!({"name": "n", "generation": 3}),
        old,
        new,
        policy: policy(""),
    }
}

/// What came out, in a form to compare.
#[derive(Debug)]
struct Outcome {
    patch: Value,
    findings: Vec<(Action, String, String)>,
}

impl Write {
    fn with(mut self, additions: &str) -> Self {
        self.policy = policy(additions);
        self
    }

    fn by(mut self, user: &'static str) -> Self {
        self.user = user;
        self
    }

    fn on(mut self, resource: &'static str) -> Self {
        self.resource = resource;
        self
    }

    fn deleting(mut self) -> Self {
        self.metadata["deletionTimestamp"] = "2024-06-01T11:59:00Z".into();
        self
    }

    fn through(&self, webhook: Webhook) -> Outcome {
        let source = Source { name: "test.yaml".into(), text: self.policy.clone() };
        let policies = PolicySet::compile(&[source]).unwrap_or_else(|error| panic!("{error}"));
        let text = |status: &Value| {
            let mut object =
                json!({"apiVersion": "g/v1", "kind": "Thing", "metadata": self.metadata});
            if *status != json!("absent") {
                object["status"] = status.clone();
            }
            object.to_string()
        };
        let (new, old) = (text(&self.new), text(&self.old));
        let subject = Subject {
            resource: Resource {
                group: "g".into(),
                version: "v1".into(),
                resource: self.resource.into(),
            },
            subresource: "status".into(),
            operation: Operation::Update,
            writer: Writer { user: self.user.into(), groups: vec!["people".into()] },
            object: Object::parse(&new).unwrap(),
            old: Some(Object::parse(&old).unwrap()),
        };
        let verdict = decide(&policies, &subject, webhook, NOW.parse().unwrap());
        assert!(!verdict.patch_failed);
        assert_eq!(verdict.policies, [0], "the policy applies");
        Outcome {
            patch: serde_json::to_value(&verdict.patch).unwrap(),
            findings: verdict
                .findings
                .iter()
                .map(|finding| (finding.action, finding.rule.into(), finding.field.clone()))
                .collect(),
        }
    }

    fn patch(&self) -> Value {
        self.through(Webhook::Mutate).patch
    }

    fn clean(&self) {
        let outcome = self.through(Webhook::Validate);
        assert!(outcome.findings.is_empty(), "{outcome:?}");
    }

    /// Exactly one finding, of this action and rule.
    fn finds(&self, action: Action, rule: &str) {
        let outcome = self.through(Webhook::Validate);
        let [(found, id, _)] = outcome.findings.as_slice() else {
            panic!("one finding expected: {outcome:?}")
        };
        assert_eq!((*found, id.as_str()), (action, rule));
    }
}

// --- golden examples of the convention's page ------------------------------------------------

#[test]
fn a1_the_time_of_a_changed_phase_is_filled_in() {
    let old = json!({"instanceNamespace": "n", "phase": "Provisioning", "conditions": conditions("R=True S=True P=False")});
    let new =
        json!({"instanceNamespace": "n", "phase": "Ready", "conditions": conditions(ALL_TRUE)});
    let expected = json!([{"op": "add", "path": "/status/lastTransitionTime", "value": NOW}]);
    assert_eq!(write(old, new).patch(), expected);
}

#[test]
fn a2_ready_written_together_with_unready_pods_is_refused() {
    write(status("Provisioning", ALL_TRUE), status("Ready", "R=True S=True P=False"))
        .finds(Action::Deny, "appcat/phase-ready");
}

#[test]
fn a3_crossplanes_first_request_is_repaired_for_crossplane_and_refused_for_others() {
    let unready = "R=False S=True P=False";
    let strip = |mut status: Value| {
        status.as_object_mut().unwrap().remove("lastTransitionTime");
        status
    };
    let case = write(strip(status("Provisioning", unready)), strip(status("Ready", unready)))
        .with("  writers: [{users: ['system:serviceaccount:*:crossplane'], disagreement: Repair}]");
    case.finds(Action::Deny, "appcat/phase-ready");
    let case = case.by("system:serviceaccount:syn-crossplane:crossplane");
    case.finds(Action::Warn, "appcat/phase-ready");
    let expected = json!([{"op": "replace", "path": "/status/phase", "value": "Provisioning"}]);
    assert_eq!(case.patch(), expected);
    let outcome = case.through(Webhook::Mutate);
    assert_eq!(outcome.findings[0].0, Action::Repair, "a repair is told");
}

#[test]
fn a4_crossplanes_second_request_is_never_refused_and_repaired_to_degraded() {
    let case = write(status("Ready", ALL_TRUE), status("Ready", "R=False S=True P=True"))
        .with("  disagreement: Repair");
    let expected = json!([
        {"op": "replace", "path": "/status/phase", "value": "Degraded"},
        {"op": "replace", "path": "/status/lastTransitionTime", "value": NOW}
    ]);
    assert_eq!(case.patch(), expected);
}

#[test]
fn a5_deleting_is_imposed_with_the_time_of_the_deletion() {
    let new = json!({"phase": "Ready", "conditions": conditions("R=False/Deleting")});
    let case = write(json!({"phase": "Ready"}), new).deleting();
    let expected = json!([
        {"op": "replace", "path": "/status/phase", "value": "Deleting"},
        {"op": "add", "path": "/status/lastTransitionTime", "value": "2024-06-01T11:59:00Z"}
    ]);
    assert_eq!(case.patch(), expected);
    assert!(
        case.through(Webhook::Validate).findings.iter().all(|(action, ..)| *action < Action::Deny)
    );
}

#[test]
fn a6_deleting_without_a_deletion_is_refused() {
    write(json!({"phase": "Ready"}), json!({"phase": "Deleting"}))
        .finds(Action::Deny, "appcat/phase-deleting");
}

#[test]
fn a7_phases_are_case_sensitive() {
    write(json!({}), json!({"phase": "ready"})).finds(Action::Deny, "appcat/phase-value");
}

// --- the phase's default ----------------------------------------------------------------------

#[test]
fn an_absent_null_or_empty_phase_becomes_unknown_without_an_invented_time() {
    let unknown = |op: &str| json!([{"op": op, "path": "/status/phase", "value": "Unknown"}]);
    assert_eq!(write(json!({}), json!({})).patch(), unknown("add"));
    assert_eq!(write(json!({}), json!({"phase": null})).patch(), unknown("replace"));
    assert_eq!(write(json!({}), json!({"phase": ""})).patch(), unknown("replace"));
    let with_status = json!([
        {"op": "add", "path": "/status", "value": {}},
        {"op": "add", "path": "/status/phase", "value": "Unknown"}
    ]);
    assert_eq!(write(json!({}), json!("absent")).patch(), with_status);
    let over_null = json!([
        {"op": "replace", "path": "/status", "value": {}},
        {"op": "add", "path": "/status/phase", "value": "Unknown"}
    ]);
    assert_eq!(write(json!({}), Value::Null).patch(), over_null);
}

#[test]
fn a_dropped_phase_becomes_unknown_and_that_is_a_transition() {
    let mut new = status("x", ALL_TRUE);
    new.as_object_mut().unwrap().remove("phase");
    let expected = json!([
        {"op": "add", "path": "/status/phase", "value": "Unknown"},
        {"op": "replace", "path": "/status/lastTransitionTime", "value": NOW}
    ]);
    assert_eq!(write(status("Ready", ALL_TRUE), new).patch(), expected);
}

#[test]
fn a_status_of_another_kind_is_refused_and_not_patched() {
    for odd in [json!([]), json!(5), json!("x")] {
        let case = write(json!({}), odd);
        assert_eq!(case.patch(), Value::Null);
        case.finds(Action::Deny, "appcat/status");
    }
}

#[test]
fn a_phase_of_another_kind_is_refused_and_not_patched() {
    for odd in [json!(5), json!([]), json!({"a": 1}), json!(true)] {
        let case = write(json!({}), json!({"phase": odd}));
        assert_eq!(case.patch(), Value::Null);
        case.finds(Action::Deny, "appcat/phase-value");
    }
}

#[test]
fn a_convention_without_a_default_phase_has_no_way_out_for_a_phase_that_is_no_text() {
    let mut case = write(json!({}), json!({"phase": 5}));
    case.policy =
        "apiVersion: statusgate.dev/v1alpha1\nkind: StatusConvention\nmetadata: {name: plain}\n\
        spec: {phase: {path: /status/phase, values: [{phase: Up}]}}\n---\n"
            .to_owned()
            + &policy("").replace("convention: appcat", "convention: plain");
    case.finds(Action::Deny, "plain/phase-value");
}

#[test]
fn every_phase_stands_with_no_evidence_at_all_but_deleting() {
    for phase in
        ["Failed", "Provisioning", "Maintenance", "Scaling", "Degraded", "Ready", "Unknown"]
    {
        let new = json!({"phase": phase, "instanceNamespace": "n"});
        write(json!({}), new).on("things").clean();
    }
}

// --- agreement ----------------------------------------------------------------------------------

#[test]
fn the_pod_readiness_table_is_kept() {
    for (old, phase, short) in [
        ("Unknown", "Provisioning", "R=False S=True P=False"),
        ("Provisioning", "Provisioning", "R=True S=True P=False"),
        ("Provisioning", "Ready", ALL_TRUE),
        ("Ready", "Degraded", "R=True S=True P=False"),
        ("Provisioning", "Failed", "R=False S=True P=False"),
        // The row that the table lacks: pods fine, release not.
        ("Ready", "Degraded", "R=False S=True P=True"),
        ("Ready", "Scaling", "R=False S=True P=True"),
        ("Ready", "Maintenance", "R=False S=True P=True"),
        ("Ready", "Failed", "R=False S=True P=True"),
    ] {
        let mut new = status(phase, short);
        if old != phase {
            new["lastTransitionTime"] = NOW.into();
        }
        write(status(old, short), new).clean();
    }
}

#[test]
fn degraded_needs_a_service_that_was_ready_before() {
    write(
        status("Provisioning", "R=True S=True P=False"),
        status("Degraded", "R=True S=True P=False"),
    )
    .finds(Action::Deny, "appcat/phase-degraded");
}

#[test]
fn ready_is_refused_over_each_condition_that_says_otherwise() {
    for short in [
        "R=False S=True P=True",
        "R=Unknown S=True P=True",
        "R=True S=True P=False",
        "R=True S=True P=Unknown",
        "R=True S=False/ReconcileError P=True",
    ] {
        write(status("Provisioning", ALL_TRUE), status("Ready", short))
            .finds(Action::Deny, "appcat/phase-ready");
    }
    for short in ["R=True S=Unknown P=True", "R=True S=False/ReconcilePaused P=True"] {
        write(status("Unknown", short), status("Ready", short)).clean();
    }
}

#[test]
fn failed_is_refused_while_everything_is_ready() {
    write(status("Ready", ALL_TRUE), status("Failed", ALL_TRUE))
        .finds(Action::Deny, "appcat/phase-failed");
}

#[test]
fn suspicions_warn_and_do_not_refuse() {
    let cases = [
        (status("Ready", ALL_TRUE), status("Degraded", ALL_TRUE), "appcat/settled-provisioning"),
        (status("Ready", ALL_TRUE), status("Scaling", ALL_TRUE), "appcat/scaling-ready"),
        (json!({"phase": "Unknown"}), json!({"phase": "Maintenance"}), "appcat/instance-namespace"),
        (
            status("Ready", "R=True S=True P=False"),
            status("Provisioning", "R=True S=True P=False"),
            "appcat/back-to-provisioning",
        ),
        (
            status("Unknown", "R=True S=True"),
            status("Ready", "R=True S=True"),
            "appcat/pod-ready-missing",
        ),
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
    ];
    for (old, new, rule) in cases {
        write(old, new).finds(Action::Warn, rule);
    }
}

#[test]
fn claims_may_lack_pod_readiness_and_rebuild_their_conditions() {
    write(status("Unknown", "R=True S=True"), status("Ready", "R=True S=True"))
        .on("things")
        .clean();
    write(status("Unknown", "R=True S=True"), status("Unknown", "S=True")).on("things").clean();
}

#[test]
fn a_disagreement_that_was_there_before_is_not_refused() {
    write(status("Ready", "R=False S=True P=True"), status("Ready", "R=False S=True P=False"))
        .clean();
}

#[test]
fn conditions_that_leave_the_phase_behind_are_refused_too() {
    write(status("Ready", ALL_TRUE), status("Ready", "R=False S=True P=True"))
        .through(Webhook::Validate)
        .findings
        .iter()
        .find(|(action, rule, _)| *action == Action::Deny && rule == "appcat/phase-ready")
        .expect("the operator forgot the phase");
}

#[test]
fn unknown_is_a_way_out_of_every_state() {
    for phase in ["Ready", "Failed", "Deleting", "Degraded", "nonsense"] {
        for short in [ALL_TRUE, "R=False S=False P=False", ""] {
            let outcome =
                write(status(phase, short), status("Unknown", short)).through(Webhook::Validate);
            assert!(
                outcome.findings.iter().all(|(action, ..)| *action < Action::Deny),
                "{outcome:?}"
            );
        }
    }
}

#[test]
fn enforcement_is_a_ceiling_over_every_rule() {
    for (ceiling, action) in [("Warn", Action::Warn), ("Audit", Action::Audit)] {
        let case =
            write(json!({}), json!({"phase": "ready"})).with(&format!("  enforcement: {ceiling}"));
        case.finds(action, "appcat/phase-value");
        let case = write(status("Unknown", ALL_TRUE), status("Ready", "R=False"))
            .with(&format!("  enforcement: {ceiling}\n  disagreement: Repair"));
        assert_eq!(case.through(Webhook::Mutate).findings, [], "a repair is more than a {ceiling}");
    }
}

// --- conditions -------------------------------------------------------------------------------

#[test]
fn each_fault_in_a_condition_has_its_rule() {
    let cases = [
        ("type", json!(null), Action::Deny, "appcat/condition-type"),
        ("type", json!("Not Ready"), Action::Deny, "appcat/condition-type"),
        ("type", json!(""), Action::Deny, "appcat/condition-type"),
        ("type", json!("T".repeat(317)), Action::Deny, "appcat/condition-type"),
        ("type", json!(5), Action::Deny, "appcat/condition-type"),
        ("status", json!("true"), Action::Deny, "appcat/condition-status"),
        ("status", json!(true), Action::Deny, "appcat/condition-status"),
        ("reason", json!(""), Action::Deny, "appcat/condition-reason"),
        ("reason", json!(null), Action::Deny, "appcat/condition-reason"),
        ("reason", json!("two words"), Action::Warn, "appcat/condition-reason-form"),
        (
            "lastTransitionTime",
            json!("2024-06-01t11:00:00z"),
            Action::Deny,
            "appcat/condition-last-transition-time",
        ),
        ("lastTransitionTime", json!(null), Action::Deny, "appcat/condition-last-transition-time"),
        ("message", json!(5), Action::Deny, "appcat/condition-message"),
        ("observedGeneration", json!(-1), Action::Deny, "appcat/condition-observed-generation"),
        ("observedGeneration", json!(1.5), Action::Deny, "appcat/condition-observed-generation"),
        ("observedGeneration", json!(4), Action::Deny, "appcat/generation-ahead"),
        (
            "lastTransitionTime",
            json!("2024-06-01T12:06:00Z"),
            Action::Deny,
            "appcat/transition-time-future",
        ),
    ];
    for (member, value, action, rule) in cases {
        let mut new = status("Unknown", "Custom=True");
        new["conditions"][0][member] = value;
        write(status("Unknown", ""), new).finds(action, rule);
    }
}

#[test]
fn a_list_that_is_none_and_elements_that_are_none_are_refused() {
    for odd in [json!({}), json!("x"), json!([null]), json!([5]), json!([[]])] {
        write(json!({}), json!({"conditions": odd})).finds(Action::Deny, "appcat/condition-shape");
    }
    write(json!({}), json!({"conditions": null})).clean();
}

#[test]
fn a_second_condition_of_one_type_is_refused_and_an_old_one_is_left_alone() {
    write(status("Unknown", "A=True"), status("Unknown", "A=True A=False"))
        .finds(Action::Deny, "appcat/condition-duplicate");
    // As it is: the helper would move the second one's time, for it compares with the first.
    write_as_it_is(status("Unknown", "A=True A=False"), status("Unknown", "A=True A=False B=True"))
        .clean();
}

#[test]
fn an_old_fault_in_a_condition_stays_allowed_when_the_condition_moves_in_its_list() {
    let mut old = status("Unknown", "A=True B=True");
    old["conditions"][1]["reason"] = "".into();
    let mut new = status("Unknown", "B=False");
    new["conditions"][0]["reason"] = "".into();
    new["conditions"][0]["lastTransitionTime"] = NOW.into();
    write(old, new).clean();
}

#[test]
fn times_of_conditions_move_with_what_they_describe() {
    let moved = |time: &str, status_now: &str, reason: &str| {
        let mut new = status("Unknown", &format!("A={status_now}/{reason}"));
        new["conditions"][0]["lastTransitionTime"] = time.into();
        write_as_it_is(status("Unknown", "A=True/Before"), new)
    };
    moved(T0, "False", "Before").finds(Action::Warn, "appcat/transition-time-kept");
    moved(T0, "True", "After").finds(Action::Warn, "appcat/transition-time-kept");
    moved(NOW, "False", "Before").clean();
    moved(NOW, "True", "After").clean();
    moved(NOW, "True", "Before").finds(Action::Warn, "appcat/transition-time-moved");
    moved("2024-06-01T10:00:00Z", "False", "Before")
        .finds(Action::Warn, "appcat/transition-time-backwards");
    moved("2024-06-01T11:00:00.5Z", "True", "Before").clean();
}

#[test]
fn the_phases_time_alone_does_not_move() {
    let mut new = status("Ready", ALL_TRUE);
    new["lastTransitionTime"] = NOW.into();
    write(status("Ready", ALL_TRUE), new).finds(Action::Warn, "appcat/phase-transition-time");
}

#[test]
fn a_phase_that_stays_gets_its_dropped_time_back() {
    let mut new = status("Ready", ALL_TRUE);
    new.as_object_mut().unwrap().remove("lastTransitionTime");
    let expected = json!([{"op": "add", "path": "/status/lastTransitionTime", "value": T0}]);
    assert_eq!(write(status("Ready", ALL_TRUE), new).patch(), expected);
}

#[test]
fn generations_do_not_run_ahead_and_restored_ones_only_warn() {
    write(json!({"observedGeneration": 3}), json!({"observedGeneration": 4}))
        .finds(Action::Deny, "appcat/generation-ahead");
    write(json!("absent"), json!({"observedGeneration": 4}))
        .finds(Action::Warn, "appcat/generation-ahead");
    write(json!({"observedGeneration": 3}), json!({"observedGeneration": 2}))
        .finds(Action::Warn, "appcat/generation-decreased");
    write(json!({"observedGeneration": -1}), json!({"observedGeneration": 3})).clean();
}

#[test]
fn internal_condition_lists_are_exempt() {
    let new = json!({"pgclusterConditions": [{"type": "x y"}, {"type": "x y"}, null, 5]});
    write(json!({}), new).clean();
}

// --- the policy's own additions -----------------------------------------------------------------

#[test]
fn a_null_billing_is_removed_so_that_the_write_cannot_fail() {
    let new = json!({"phase": "Unknown", "billing": null});
    let expected = json!([{"op": "remove", "path": "/status/billing"}]);
    assert_eq!(write(json!({"phase": "Unknown"}), new).patch(), expected);
}

#[test]
fn a_nullable_billing_becomes_an_explicit_null() {
    let nullable = "  backfill: [{path: /status/billing, value: null, nullable: true}]";
    let new = json!({"phase": "Unknown"});
    let expected = json!([{"op": "add", "path": "/status/billing", "value": null}]);
    assert_eq!(write(json!({"phase": "Unknown"}), new).with(nullable).patch(), expected);
    let new = json!({"phase": "Unknown", "billing": null});
    assert_eq!(write(json!({"phase": "Unknown"}), new).with(nullable).patch(), Value::Null);
}

#[test]
fn a_version_is_copied_from_the_field_that_had_it() {
    let copy = "  backfill: [{path: /status/currentVersion, copyOf: [/status/currentReleaseTag, /status/mariadbVersion]}]";
    let new = json!({"phase": "Unknown", "mariadbVersion": "11.4.5"});
    let expected = json!([{"op": "add", "path": "/status/currentVersion", "value": "11.4.5"}]);
    assert_eq!(write(json!({"phase": "Unknown"}), new).with(copy).patch(), expected);
}

#[test]
fn only_the_owner_sets_a_field_and_what_others_drop_is_restored() {
    let owned =
        "  owners: [{path: /status/billing, users: [biller]}]\n  preserve: [/status/billing]";
    let old = json!({"phase": "Unknown", "billing": {"unit": "GiB"}});
    let changed = json!({"phase": "Unknown", "billing": {"unit": "minutes"}});
    write(old.clone(), changed.clone()).with(owned).finds(Action::Deny, "test/owner");
    write(old.clone(), changed).with(owned).by("biller").clean();
    let dropped = json!({"phase": "Unknown"});
    let expected = json!([{"op": "add", "path": "/status/billing", "value": {"unit": "GiB"}}]);
    assert_eq!(write(old.clone(), dropped.clone()).with(owned).patch(), expected);
    write(old.clone(), dropped.clone()).with(owned).finds(Action::Warn, "test/owner");
    assert_eq!(write(old, dropped).with(owned).by("biller").patch(), Value::Null);
}

#[test]
fn local_fields_have_types_values_and_ranges() {
    let fields = "  fields:\n    - {path: /status/billing/unit, enum: [GiB, minutes]}\n    - {path: /status/billing/currentMonthlyPrice, format: quantity}\n    - {path: /status/sshPort, type: integer, minimum: 1, maximum: 65535}";
    let case = |status: Value| write(json!({}), status).with(fields);
    case(json!({"billing": {"unit": "GiB", "currentMonthlyPrice": "142500m"}, "sshPort": 22}))
        .clean();
    case(json!({"billing": {"currentMonthlyPrice": 12}})).clean();
    case(json!({"billing": {"unit": "gib"}})).finds(Action::Deny, "test/field-unit");
    case(json!({"billing": {"currentMonthlyPrice": "12 CHF"}}))
        .finds(Action::Deny, "test/field-current-monthly-price");
    case(json!({"sshPort": 70000})).finds(Action::Deny, "test/field-ssh-port");
    case(json!({"sshPort": "22"})).finds(Action::Deny, "test/field-ssh-port");
}

#[test]
fn writers_are_found_by_group_too_and_the_first_match_counts() {
    let writers =
        "  writers: [{groups: [people], disagreement: Audit}, {users: ['*'], disagreement: Warn}]";
    write(status("Unknown", "R=False"), status("Ready", "R=False"))
        .with(writers)
        .on("things")
        .finds(Action::Audit, "appcat/phase-ready");
}

#[test]
fn a_write_that_does_not_touch_status_is_never_refused() {
    let bad = json!({"phase": "nonsense", "conditions": [null, {"type": "A"}, {"type": "A"}]});
    write(bad.clone(), bad).clean();
}
