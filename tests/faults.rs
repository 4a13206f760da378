//! Writes that were judged wrongly once, each under a policy as small as shows it.
//!
//! The laws in `properties.rs` and `every_convention.rs` ask the built-in conventions; these are about
//! what only a convention or a policy of one's own can say.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests, and their helpers too")]

use serde_json::{Value, json};
use statusgate::engine::{Action, Verdict, decide};
use statusgate::model::{Object, Operation, Resource, Subject, Webhook, Writer};
use statusgate::policy::{PolicySet, Source};

const T0: &str = "2024-06-01T11:00:00Z";
const DELETED: &str = "2024-06-01T11:59:00Z";
const NOW: &str = "2024-06-01T12:00:00Z";

const STATUS: &str = "resources: [{apiGroups: [g], apiVersions: [v1], resources: [things]}]";
/// Where status travels with the main resource.
const MAIN: &str = "resources: [{apiGroups: [g], apiVersions: [v1], resources: [things], statusSubresource: false}]";

fn policy(name: &str, spec: &str) -> String {
    document("StatusPolicy", name, spec)
}

fn convention(name: &str, spec: &str) -> String {
    document("StatusConvention", name, spec)
}

fn document(kind: &str, name: &str, spec: &str) -> String {
    format!(
        "apiVersion: statusgate.dev/v1alpha1\nkind: {kind}\nmetadata: {{name: {name}}}\nspec: {{{spec}}}\n---\n"
    )
}

/// A write under some documents.
struct Write {
    policies: PolicySet,
    subresource: &'static str,
    user: &'static str,
    /// `None` on a creation.
    old: Option<Value>,
    new: Value,
}

fn object(status: Value) -> Value {
    let mut object = json!({"metadata": {"name": "n", "generation": 3, "creationTimestamp": T0}});
    if !status.is_null() {
        object["status"] = status;
    }
    object
}

/// An update of `…/status`.
fn update(documents: &[String], old: Value, new: Value) -> Write {
    let source = Source { name: "test.yaml".into(), text: documents.concat() };
    Write {
        policies: PolicySet::compile(&[source]).unwrap_or_else(|error| panic!("{error}")),
        subresource: "status",
        user: "somebody",
        old: Some(object(old)),
        new: object(new),
    }
}

impl Write {
    fn by(mut self, user: &'static str) -> Self {
        self.user = user;
        self
    }

    fn on_the_main_resource(mut self) -> Self {
        self.subresource = "";
        self
    }

    fn creating(mut self) -> Self {
        self.old = None;
        self.on_the_main_resource()
    }

    fn deleting(mut self) -> Self {
        for object in self.old.iter_mut().chain([&mut self.new]) {
            object["metadata"]["deletionTimestamp"] = DELETED.into();
        }
        self
    }

    fn ask<T>(&self, webhook: Webhook, now: &str, question: impl FnOnce(&Verdict<'_>) -> T) -> T {
        let (new, old) = (self.new.to_string(), self.old.as_ref().map(Value::to_string));
        let subject = Subject {
            resource: Resource {
                group: "g".into(),
                version: "v1".into(),
                resource: "things".into(),
            },
            subresource: self.subresource.into(),
            operation: if old.is_some() { Operation::Update } else { Operation::Create },
            writer: Writer { user: self.user.into(), groups: Vec::new() },
            object: Object::parse(&new).unwrap(),
            old: old.as_deref().map(|old| Object::parse(old).unwrap()),
        };
        let verdict = decide(&self.policies, &subject, webhook, now.parse().unwrap());
        assert!(!verdict.patch_failed, "a patch always applies");
        assert!(!verdict.policies.is_empty(), "a policy applies");
        question(&verdict)
    }

    /// Through the mutating webhook, which a second call leaves as it is.
    fn mutated(mut self) -> Self {
        for first in [true, false] {
            let patch = self.ask(Webhook::Mutate, NOW, |verdict| verdict.patch.clone());
            if let Some(patch) = patch {
                assert!(first, "the second call finds {patch:?} in {}", self.new);
                json_patch::patch(&mut self.new, &patch).unwrap();
            }
        }
        self
    }

    fn status(&self) -> &Value {
        &self.new["status"]
    }

    /// What the validating webhook finds, as `deny status.phase: …`.
    fn findings(&self) -> Vec<String> {
        self.findings_at(NOW)
    }

    fn findings_at(&self, now: &str) -> Vec<String> {
        self.ask(Webhook::Validate, now, |verdict| {
            let words = verdict.findings.iter().map(|found| {
                format!("{} {}: {}", found.action.label(), found.field, found.message)
            });
            words.collect()
        })
    }

    fn denials(&self) -> Vec<String> {
        self.findings()
            .into_iter()
            .filter(|found| found.starts_with(Action::Deny.label()))
            .collect()
    }
}

fn condition(kind: &str, status: &str) -> Value {
    json!({"type": kind, "status": status, "reason": "R", "message": "m", "lastTransitionTime": T0})
}

#[test]
fn a_generation_is_a_number_without_a_fraction_that_fits() {
    let policy = policy("p", &format!("convention: metav1, {STATUS}"));
    let written = |generation: &str| {
        let number: Value = serde_json::from_str(generation).unwrap();
        let mut ready = condition("Ready", "True");
        ready["observedGeneration"] = number;
        update(std::slice::from_ref(&policy), json!({"x": 1}), json!({"conditions": [ready]}))
            .findings()
    };
    assert_eq!(written("3"), [""; 0]);
    let place = "deny status.conditions[0].observedGeneration: must be an integer, it";
    // Go reads no int64 from it.
    assert_eq!(written("3.0"), [format!("{place} has a decimal point or an exponent")]);
    assert_eq!(written("3.5"), [format!("{place} is a number")]);
    assert_eq!(written("9223372036854775808"), [format!("{place} does not fit in 64 bits")]);
}

#[test]
fn an_owned_object_is_the_same_in_another_order() {
    let owners = "owners: [{path: /status/billing, users: [biller]}]";
    let policy = policy("p", &format!("convention: metav1, {STATUS}, {owners}"));
    let text = |status: &str| format!(r#"{{"status":{status}}}"#);
    let (old, new) = (
        text(r#"{"x":1,"billing":{"price":5,"unit":"GiB"}}"#),
        text(r#"{"x":2,"billing":{"unit":"GiB","price":5.0}}"#),
    );
    // As text: a `Value` has an order of its own.
    let write = update(&[policy], json!({}), json!({}));
    let subject = Subject {
        resource: Resource { group: "g".into(), version: "v1".into(), resource: "things".into() },
        subresource: "status".into(),
        operation: Operation::Update,
        writer: Writer { user: "somebody".into(), groups: Vec::new() },
        object: Object::parse(&new).unwrap(),
        old: Some(Object::parse(&old).unwrap()),
    };
    let verdict = decide(&write.policies, &subject, Webhook::Validate, NOW.parse().unwrap());
    assert_eq!(verdict.findings, []);
}

// --- what the mutating webhook did is nobody's trespass ---------------------------------------------

const PHASER: &str = "owners: [{path: /status/phase, users: [phaser]}, {path: /status/lastTransitionTime, users: [phaser]}]";

#[test]
fn anybody_may_write_beside_what_is_imposed_on_them() {
    let policy = policy("p", &format!("convention: appcat, {STATUS}, {PHASER}"));
    let status = |message: &str| json!({"phase": "Ready", "lastTransitionTime": T0, "instanceNamespace": "n", "message": message});
    let write = update(&[policy], status("old"), status("new")).deleting().mutated();
    assert_eq!(write.status()["phase"], "Deleting");
    assert_eq!(write.findings(), [""; 0]);
}

#[test]
fn anybody_may_write_beside_what_is_filled_in_inside_of_an_owned_field() {
    let additions = "owners: [{path: /status/conditions, users: [a]}, {path: /status/billing, users: [b]}], \
        backfill: [{path: /status/billing/unit, value: GiB}]";
    let policy = policy("p", &format!("convention: metav1, {STATUS}, {additions}"));
    let mut ready = condition("Ready", "True");
    ready.as_object_mut().unwrap().remove("message");
    for billing in [json!({"price": 5}), Value::Null] {
        let status = |x: i32| json!({"x": x, "conditions": [ready], "billing": billing});
        let write = update(std::slice::from_ref(&policy), status(1), status(2)).mutated();
        assert_eq!(write.status()["conditions"][0]["message"], "");
        assert_eq!(write.status()["billing"]["unit"], "GiB");
        assert_eq!(write.findings(), [""; 0]);
    }
}

#[test]
fn anybody_may_write_conditions_that_repair_the_phase() {
    let policy =
        policy("p", &format!("convention: appcat, disagreement: Repair, {STATUS}, {PHASER}"));
    let status = |ready: &str, time: &str| {
        let mut ready = condition("Ready", ready);
        ready["lastTransitionTime"] = time.into();
        json!({"phase": "Ready", "lastTransitionTime": T0, "instanceNamespace": "n", "conditions": [ready]})
    };
    let write = update(&[policy], status("True", T0), status("False", NOW)).mutated();
    assert_ne!(write.status()["phase"], "Ready");
    assert_eq!(write.status()["lastTransitionTime"], NOW);
    // The other webhook is called a little later.
    for now in [NOW, "2024-06-01T12:00:01Z", "2024-06-01T12:00:09Z"] {
        assert_eq!(write.findings_at(now), [""; 0], "{now}");
    }
}

#[test]
fn what_another_policy_fills_in_is_nobodys_trespass_either() {
    let owners = "owners: [{path: /status/billing, users: [b]}]";
    let filling = "backfill: [{path: /status/billing/unit, value: GiB}]";
    let documents = [
        policy("owns", &format!("convention: metav1, {STATUS}, {owners}")),
        policy("fills", &format!("convention: metav1, {STATUS}, {filling}")),
    ];
    let write = update(&documents, json!({"x": 1}), json!({"x": 2})).mutated();
    assert_eq!(write.status()["billing"]["unit"], "GiB");
    assert_eq!(write.findings(), [""; 0]);
}

#[test]
fn a_trespass_is_refused_beside_what_is_filled_in() {
    let additions = "owners: [{path: /status/billing, users: [b]}, {path: /status/phase, users: [phaser]}], \
        backfill: [{path: /status/billing/unit, value: GiB}]";
    let policy = policy("p", &format!("convention: appcat, {STATUS}, {additions}"));
    let status = |price: i32| json!({"instanceNamespace": "n", "phase": "Ready", "lastTransitionTime": T0, "billing": {"price": price}});
    let write = update(std::slice::from_ref(&policy), status(5), status(6)).mutated();
    assert_eq!(write.denials(), [r#"deny status.billing: "somebody" does not own this field"#]);
    assert_eq!(write.by("b").denials(), [""; 0]);
    // A phase of the writer's own is no imposed one.
    let mut failed = status(5);
    failed["phase"] = "Failed".into();
    let write = update(&[policy], status(5), failed).by("b").mutated();
    assert_eq!(write.denials().len(), 1, "{:?}", write.findings());
}

#[test]
fn an_owned_field_is_owned_on_a_creation_too() {
    let owners = "owners: [{path: /status/billing, users: [biller]}]";
    let policy = policy("p", &format!("convention: metav1, {MAIN}, {owners}"));
    let creation = || {
        update(std::slice::from_ref(&policy), Value::Null, json!({"billing": {"price": 5}}))
            .creating()
    };
    let trespass = [r#"deny status.billing: "somebody" does not own this field"#];
    assert_eq!(creation().findings(), trespass);
    assert_eq!(creation().by("biller").findings(), [""; 0]);
    // A state on a desk has no writer.
    assert_eq!(creation().by("").findings(), [""; 0]);
}

// --- a write that does not touch status -------------------------------------------------------------

#[test]
fn a_status_that_is_ours_alone_is_no_reason_to_refuse() {
    let fields = "fields: [{path: /status/endpoint, required: true}]";
    let policy = policy("p", &format!("convention: appcat, {MAIN}, {fields}"));
    let write = |old: Value, new: Value| {
        update(std::slice::from_ref(&policy), old, new).on_the_main_resource()
    };
    for nothing in [Value::Null, json!({})] {
        for before in [Value::Null, json!({})] {
            let write = write(before, nothing.clone()).mutated();
            assert_eq!(write.status()["phase"], "Unknown");
            assert_eq!(write.findings(), [""; 0]);
        }
        let creation = write(Value::Null, nothing).creating().mutated();
        assert_eq!(creation.status()["phase"], "Unknown");
        assert_eq!(creation.findings(), [""; 0]);
    }
    // What the writer says is judged.
    let asked = ["deny status.endpoint: is required"];
    assert_eq!(write(Value::Null, json!({"x": 1})).mutated().denials(), asked);
    assert_eq!(write(Value::Null, json!({"x": 1})).creating().mutated().denials(), asked);
}

#[test]
fn nothing_is_asked_of_a_status_of_nobody() {
    let fields = "fields: [{path: /status/endpoint, required: true}]";
    let policy = policy("p", &format!("convention: metav1, {MAIN}, {fields}"));
    let creation = update(std::slice::from_ref(&policy), Value::Null, json!({})).creating();
    assert_eq!(creation.findings(), [""; 0]);
    // Who empties a status has touched it.
    let emptied = update(&[policy], json!({"endpoint": "e"}), json!({})).on_the_main_resource();
    assert_eq!(emptied.denials(), ["deny status.endpoint: is required"]);
}

#[test]
fn an_imposed_phase_is_no_move_of_the_writers() {
    let convention = convention(
        "c",
        "title: c, phase: {path: /status/phase, default: Unknown, \
        moves: {action: Deny, from: {Ready: [Unknown]}}, values: [{phase: Deleting, \
        imposed: {when: {deleting: true}, since: /metadata/deletionTimestamp}}, {phase: Ready}, {phase: Unknown}]}",
    );
    let policy = policy("p", &format!("convention: c, {STATUS}"));
    let write = update(&[convention, policy], json!({"phase": "Ready"}), json!({"phase": "Ready"}));
    let write = write.deleting().mutated();
    assert_eq!(write.status()["phase"], "Deleting");
    assert_eq!(write.findings(), [""; 0]);
}

// --- running the mutating webhook on its own result -------------------------------------------------

#[test]
fn many_elements_are_added_in_one_call() {
    let elements: Vec<String> = (0..14)
        .map(|n| {
            format!(
                "{{name: f{n}, list: /status/conditions, element: {{type: T{n}, status: Unknown}}}}"
            )
        })
        .collect();
    let convention = convention(
        "c",
        &format!(
            "title: c, conditions: [{{path: /status/conditions}}], backfill: [{}]",
            elements.join(", ")
        ),
    );
    let policy = policy("p", &format!("convention: c, {STATUS}"));
    let write = update(&[convention, policy], json!({"x": 1}), json!({"x": 2})).mutated();
    let kinds: Vec<&str> = write.status()["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["type"].as_str().unwrap())
        .collect();
    let expected: Vec<String> = (0..14).map(|n| format!("T{n}")).collect();
    assert_eq!(kinds, expected);
}

#[test]
fn elements_are_added_in_their_order_and_with_their_members() {
    let convention = convention(
        "c",
        "title: c, conditions: [{path: /status/conditions, order: Deny, types: {A: {}, B: {}, C: {}, D: {}}}], \
        backfill: [{name: d, list: /status/conditions, element: {type: D, status: Unknown}}, \
        {name: a, list: /status/conditions, element: {type: A, status: Unknown}}, \
        {name: c, list: /status/conditions, element: {type: C, status: Unknown}}, \
        {list: /status/conditions, member: message, value: ''}]",
    );
    let policy = policy("p", &format!("convention: c, {STATUS}"));
    let list = json!([condition("B", "True")]);
    let write =
        update(&[convention, policy], json!({"x": 1}), json!({"conditions": list})).mutated();
    let got: Vec<String> = write.status()["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| {
            format!("{}{}", item["type"].as_str().unwrap(), item["message"].as_str().unwrap())
        })
        .collect();
    assert_eq!(got, ["A", "Bm", "C", "D"]);
}

#[test]
fn a_plain_default_is_evidence_for_the_phase_at_once_and_waits_beside_one_that_it_contradicts() {
    let convention = convention(
        "c",
        "title: c, phase: {path: /status/phase, default: Unknown, \
        values: [{phase: Pending, necessary: {not: {set: /status/ip}}}, {phase: Unknown}]}, \
        backfill: [{path: /status/ip, value: none}]",
    );
    for action in ["Repair", "Deny"] {
        let policy = policy("p", &format!("convention: c, disagreement: {action}, {STATUS}"));
        let write = |status: Value| {
            update(&[convention.clone(), policy.clone()], json!({"a": 1}), status).mutated()
        };
        let waits = write(json!({"phase": "Pending"}));
        assert_eq!(*waits.status(), json!({"phase": "Pending"}), "{action}");
        let filled = write(json!({"phase": "Unknown"}));
        assert_eq!(*filled.status(), json!({"phase": "Unknown", "ip": "none"}), "{action}");
    }
}

#[test]
fn of_two_policies_that_impose_a_phase_the_first_wins() {
    let imposing = |name: &str, deleting: &str, other: &str| {
        convention(
            name,
            &format!(
                "title: t, phase: {{path: /status/phase, default: Unknown, values: [\
            {{phase: {deleting}, imposed: {{when: {{deleting: true}}, since: /metadata/deletionTimestamp}}}}, \
            {{phase: {other}}}, {{phase: Unknown}}]}}"
            ),
        )
    };
    let documents = [
        imposing("c1", "Deleting", "Terminating"),
        imposing("c2", "Terminating", "Deleting"),
        policy("p1", &format!("convention: c1, {STATUS}")),
        policy("p2", &format!("convention: c2, {STATUS}")),
    ];
    let write = update(&documents, json!({"x": 1}), json!({"x": 2})).deleting().mutated();
    assert_eq!(write.status()["phase"], "Deleting");
}

#[test]
fn an_imposed_phase_has_the_time_of_what_imposes_it() {
    let policy = policy("p", &format!("convention: appcat, {STATUS}"));
    let status = |phase: &str, time: &str| json!({"phase": phase, "lastTransitionTime": time, "instanceNamespace": "n"});
    let written = |phase: &str| {
        update(std::slice::from_ref(&policy), status("Ready", T0), status(phase, NOW))
            .deleting()
            .mutated()
    };
    // The writer's time is that of Failed, which does not come to be.
    assert_eq!(written("Failed").status()["lastTransitionTime"], DELETED);
    assert_eq!(written("Deleting").status()["lastTransitionTime"], NOW);
}

// --- lists ----------------------------------------------------------------------------------------------

/// Elements by `name`, whose time moves with their status only.
const NAMED: &str = "title: named, conditions: [{path: /status/conditions, key: name, \
    members: {name: {required: true, type: string}, status: {enum: ['True', 'False']}}, \
    transitionTime: {member: lastTransitionTime, mustMoveOn: status, mayMoveOn: status, kept: Deny, moved: Deny, backwardsUnchanged: Deny}}]";

fn named(name: &str, status: &str, time: &str) -> Value {
    json!({"name": name, "status": status, "lastTransitionTime": time})
}

#[test]
fn long_lists_have_a_history_by_whatever_key() {
    let documents = [convention("c", NAMED), policy("p", &format!("convention: c, {STATUS}"))];
    for length in [10, 17, 40] {
        let list = |time: &str| -> Value {
            (0..length)
                .map(|n| named(&format!("n{n}"), "True", if n == 5 { time } else { T0 }))
                .collect()
        };
        let write =
            update(&documents, json!({"conditions": list(T0)}), json!({"conditions": list(NOW)}));
        assert_eq!(write.denials().len(), 1, "of {length}");
    }
}

#[test]
fn twins_by_the_first_member_of_a_key_have_a_history_however_many_they_are() {
    let convention = convention("c", &NAMED.replace("key: name", "key: [kind, name]"));
    let policy = policy("p", &format!("convention: c, {STATUS}"));
    let list = |time: &str| -> Value {
        let item = |n| {
            let mut item = named(&format!("n{n}"), "True", if n == 39 { time } else { T0 });
            item["kind"] = "one".into();
            item
        };
        (0..40).map(item).collect()
    };
    let write = update(
        &[convention, policy],
        json!({"conditions": list(T0)}),
        json!({"conditions": list(NOW)}),
    );
    assert_eq!(write.denials().len(), 1);
}

#[test]
fn a_bad_element_excuses_no_other() {
    let documents = [convention("c", NAMED), policy("p", &format!("convention: c, {STATUS}"))];
    let bad = named("bad", "nope", T0);
    let old = json!({"conditions": [bad]});
    let write =
        update(&documents, old.clone(), json!({"conditions": [named("worse", "nope", T0), bad]}));
    assert_eq!(write.denials().len(), 1, "{:?}", write.findings());
    // Itself it does excuse.
    let write = update(&documents, old, json!({"conditions": [named("good", "True", T0), bad]}));
    assert_eq!(write.denials(), [""; 0]);
}

// --- other spellings --------------------------------------------------------------------------------------

const SPELLED: &str = "title: c, conditions: [{path: /status/conditions, types: {ReconciliationPaused: {aliases: [Paused]}}}], \
    rules: [{id: moved, when: {condition: ReconciliationPaused, is: 'True'}, trigger: {moved: condition ReconciliationPaused}, \
    path: /status/conditions, action: Deny, message: paused moved}], \
    backfill: [{name: e, list: /status/conditions, element: {type: ReconciliationPaused, status: Unknown}}]";

fn spelled(old: &[(&str, &str)], new: &[(&str, &str)]) -> Write {
    let documents = [convention("c", SPELLED), policy("p", &format!("convention: c, {STATUS}"))];
    let list = |items: &[(&str, &str)]| -> Value {
        items.iter().map(|(kind, status)| condition(kind, status)).collect()
    };
    update(&documents, json!({"conditions": list(old)}), json!({"conditions": list(new)}))
}

#[test]
fn a_condition_moves_under_each_of_its_names() {
    for kind in ["Paused", "ReconciliationPaused"] {
        assert_eq!(spelled(&[(kind, "False")], &[(kind, "True")]).denials().len(), 1, "{kind}");
    }
}

#[test]
fn a_condition_is_there_under_each_of_its_names() {
    let write = spelled(&[], &[("Paused", "False")]).mutated();
    assert_eq!(write.status()["conditions"].as_array().unwrap().len(), 1);
}

#[test]
fn two_names_of_one_condition_are_a_duplicate() {
    let both = spelled(&[("x", "True")], &[("Paused", "False"), ("ReconciliationPaused", "False")]);
    assert_eq!(
        both.denials(),
        [r#"deny status.conditions[1].type: Duplicate value: "ReconciliationPaused""#]
    );
    // Who renames a condition has not removed it, nor made a second one.
    let renamed = spelled(&[("Paused", "False")], &[("ReconciliationPaused", "False")]);
    assert_eq!(renamed.findings(), [""; 0]);
}

#[test]
fn an_absent_list_is_judged_by_its_own_conditions() {
    let convention = convention(
        "c",
        "title: c, conditions: [{path: /status/conditions}, {path: /status/second, \
        types: {Ready: {missing: {when: {condition: Synced, present: true}, action: Deny}}}}]",
    );
    let policy = policy("p", &format!("convention: c, {STATUS}"));
    let conditions = json!([condition("Synced", "True")]);
    for second in [Value::Null, json!([])] {
        let new = json!({"conditions": conditions, "second": second});
        let write = update(&[convention.clone(), policy.clone()], json!({"x": 1}), new);
        assert_eq!(write.findings(), [""; 0]);
    }
}

#[test]
fn an_empty_status_is_nobodys_for_generations_too() {
    let policy = policy("p", &format!("convention: appcat, {STATUS}"));
    let new = json!({"phase": "Unknown", "instanceNamespace": "n", "observedGeneration": 9});
    let after = |old: Value| update(std::slice::from_ref(&policy), old, new.clone()).findings();
    assert_eq!(after(json!({})), after(Value::Null));
    assert_ne!(after(json!({})), after(json!({"instanceNamespace": "n"})));
}

// --- texts ---------------------------------------------------------------------------------------------

#[test]
fn a_pattern_is_about_characters() {
    let matches = |pattern: &str, text: &str| {
        let fields = format!("fields: [{{path: /status/name, pattern: '{pattern}'}}]");
        let policy = policy("p", &format!("convention: metav1, {STATUS}, {fields}"));
        update(&[policy], json!({}), json!({"name": text})).denials().is_empty()
    };
    assert!(matches("^.{3}$", "äöü"));
    assert!(!matches("^.{3}$", "ä"));
    assert!(matches("^[a-zäöü]+$", "grün"));
    assert!(matches(r"^[^/]{2}$", "äö"));
    // Classes are those of ASCII, as in ECMA 262 and in Go.
    assert!(
        matches(r"^\w+\s\d\W$", "ab 1-") && !matches(r"^\w$", "ä") && matches(r"^\W\D\S$", "äöü")
    );
    assert!(matches(r"\bx\b", "a x b") && !matches(r"\bx\b", "axb"));
    assert!(matches(r"^[\w.-]+$", "a_b.c-1") && matches(r"^[^\s\d]$", "ä"));
}

#[test]
fn a_name_of_an_attacker_is_told_on_one_line_and_not_at_length() {
    let policy = policy("p", &format!("convention: c, {STATUS}"));
    let convention = convention(
        "c",
        "title: c, conditions: [{path: /status/conditions, otherMembers: Deny, members: {type: {}, status: {}}}]",
    );
    let with = |name: &str| {
        let ready = json!({"type": "Ready", "status": "True", name: 1});
        let documents = [convention.clone(), policy.clone()];
        update(&documents, json!({"x": 1}), json!({"conditions": [ready]})).findings().remove(0)
    };
    assert_eq!(
        with("plain"),
        "deny status.conditions[0].plain: is not a known member of this condition"
    );
    let said = with("\u{1b}[31mRED\n\u{202e}");
    assert!(!said.contains(|letter: char| letter.is_control() || letter == '\u{202e}'), "{said:?}");
    assert!(with(&"ä".repeat(100_000)).len() < 400);
}
