//! Writes on which the two webhooks, or a rule and its exception, could disagree: each is judged as the API
//! server has it judged, by the mutating webhook and then, with what that made of it, by the validating one.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests, and their helpers too")]

use serde_json::{Value, json};
use statusgate::engine::{Action, Finding, decide};
use statusgate::model::{Object, Operation, Resource, Subject, Webhook, Writer};
use statusgate::policy::{PolicySet, Source};

/// A policy named `p` that follows a convention `c`, or a built-in one.
fn policies(convention: &Value, policy: &Value) -> PolicySet {
    let mut spec = json!({"resources": [
        {"apiGroups": ["t.example"], "apiVersions": ["v1"], "resources": ["things"]}]});
    let document = |kind: &str, name: &str, spec: &Value| {
        json!({"apiVersion": "statusgate.dev/v1alpha1", "kind": kind, "metadata": {"name": name},
            "spec": spec})
    };
    spec.as_object_mut().unwrap().extend(policy.as_object().unwrap().clone());
    let mut text = String::new();
    if convention.is_string() {
        spec["convention"] = convention.clone();
    } else {
        spec["convention"] = "c".into();
        text = format!("{}\n---\n", document("StatusConvention", "c", convention));
    }
    text += &document("StatusPolicy", "p", &spec).to_string();
    let source = Source { name: "t.yaml".into(), text };
    PolicySet::compile(&[source]).unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

/// What the mutating webhook made of a status, and what the validating one says of that: the action and
/// the rule of each finding.
fn write(policies: &PolicySet, old: &Value, new: &Value) -> (Value, Vec<(Action, String)>) {
    let judge = |status: &Value, webhook: Webhook, look: &mut dyn FnMut(&[Finding<'_>])| {
        let (new, old) = (whole(old, status).to_string(), old.to_string());
        let subject = Subject {
            resource: Resource {
                group: "t.example".into(),
                version: "v1".into(),
                resource: "things".into(),
            },
            subresource: "status".into(),
            operation: Operation::Update,
            writer: Writer::default(),
            object: Object::parse(&new).unwrap(),
            old: Some(Object::parse(&old).unwrap()),
        };
        let verdict = decide(policies, &subject, webhook, NOW.parse().unwrap());
        assert_eq!(verdict.policies.len(), 1);
        let mut result = whole(&serde_json::from_str(&new).unwrap(), status);
        if let Some(patch) = &verdict.patch {
            json_patch::patch(&mut result, patch).unwrap();
        }
        look(&verdict.findings);
        result["status"].clone()
    };
    let made = judge(new, Webhook::Mutate, &mut |_| ());
    assert_eq!(judge(&made, Webhook::Mutate, &mut |_| ()), made, "done after one run");
    let mut said = Vec::new();
    judge(&made, Webhook::Validate, &mut |findings| {
        said.extend(findings.iter().map(|found| (found.action, found.rule.to_owned())));
    });
    (made, said)
}

/// The object with another status.
fn whole(object: &Value, status: &Value) -> Value {
    let mut object = object.clone();
    object["status"] = status.clone();
    object
}

fn stored(status: &Value) -> Value {
    json!({"metadata": {"generation": 1}, "status": status})
}

const NOW: &str = "2024-06-01T12:00:00Z";

/// A convention whose phase moves by itself: it is imposed on what is deleted, and repaired.
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
            "moves": {"from": {"": ["Ready"], "Unknown": ["Ready"]}, "action": "Deny"},
            "repair": [{"to": "Degraded"}],
        },
    })
}

fn ready(status: &str) -> Value {
    json!([{"type": "Ready", "status": status}])
}

#[test]
fn a_phase_that_the_mutating_webhook_set_is_no_move_of_the_writers() {
    let policies = policies(&moves(), &json!({"disagreement": "Repair"}));
    let before = json!({"phase": "Ready", "reason": "Up", "conditions": ready("True")});
    let written = json!({"phase": "Ready", "reason": "Up", "conditions": ready("False")});
    let (made, said) = write(&policies, &stored(&before), &written);
    assert_eq!((&made["phase"], said), (&json!("Degraded"), vec![]));

    let mut deleted = stored(&before);
    deleted["metadata"]["deletionTimestamp"] = "2024-06-01T11:00:00Z".into();
    let (made, said) = write(&policies, &deleted, &written);
    assert_eq!((&made["phase"], said), (&json!("Deleting"), vec![]));
}

#[test]
fn a_phase_that_the_writer_set_has_to_follow_the_stored_one() {
    let policies = policies(&moves(), &json!({"disagreement": "Deny"}));
    let before = json!({"phase": "Ready", "reason": "Up", "conditions": ready("True")});
    let written = json!({"phase": "Degraded", "reason": "Up", "conditions": ready("False")});
    let (_, said) = write(&policies, &stored(&before), &written);
    let rules: Vec<&str> = said.iter().map(|(_, rule)| rule.as_str()).collect();
    assert!(rules.iter().any(|rule| rule.ends_with("phase-move")), "{rules:?}");
    assert!(rules.iter().any(|rule| rule.ends_with("phase-reason")), "{rules:?}");
}

#[test]
fn what_is_stored_of_an_element_is_found_by_its_whole_key() {
    let convention = json!({
        "conditions": [{
            "path": "/status/conditions", "key": ["type", "node"],
            "transitionTime": {"member": "since", "mustMoveOn": ["status"], "mayMoveOn": ["status"],
                "backwards": "Deny"},
        }],
        "backfill": [
            {"list": "/status/conditions", "member": "since", "steadyWhile": ["status"]},
            {"list": "/status/conditions", "member": "note", "copyOf": ["stored"]},
        ],
    });
    let policies = policies(&convention, &json!({}));
    let element = |node: &str, status: &str, since: &str| json!({"type": "Up", "node": node, "status": status, "since": format!("2024-06-01T{since}:00Z")});
    let with = |mut element: Value, note: &str| {
        element["note"] = note.into();
        element
    };
    let a = with(element("a", "True", "09:00"), "of a");
    let before = stored(&json!({"conditions": [a, with(element("b", "False", "10:00"), "of b")]}));
    // The first turns True: its time moves. The second only lost what was not its writer's.
    let written =
        json!({"conditions": [element("b", "True", "11:00"), element("a", "True", "11:00")]});
    let (made, said) = write(&policies, &before, &written);
    let wanted = [with(element("b", "True", "11:00"), "of b"), a];
    assert_eq!((made, said), (json!({"conditions": wanted}), vec![]));
}

#[test]
fn a_full_history_moves_up_without_being_judged_again_however_long_it_is() {
    for many in [15, 16, 17, 20] {
        let convention = json!({
            "conditions": [{
                "path": "/status/conditions", "maxItems": many,
                "members": {"phase": {"enum": ["A", "B"]}},
                "transitionTime": {"member": "at", "future": "Deny"},
                "history": {"rewritten": "Deny"},
            }],
        });
        let policies = policies(&convention, &json!({}));
        let mut list: Vec<Value> = (0..many).map(|at| json!({"phase": "A", "n": at})).collect();
        list[5] = json!({"phase": "Bogus"});
        list[6] = json!({"phase": "A", "at": "2999-01-01T00:00:00Z"});
        let before = stored(&json!({"conditions": list}));
        list.remove(0);
        list.push(json!({"phase": "B"}));
        let (_, said) = write(&policies, &before, &json!({"conditions": list}));
        assert_eq!(said, [], "{many}");
        // What is new is judged.
        list.pop();
        list.push(json!({"phase": "Odd"}));
        let (_, said) = write(&policies, &before, &json!({"conditions": list}));
        assert_eq!(said.len(), 1, "{many}: {said:?}");
    }
}

#[test]
fn a_time_of_the_phase_that_was_none_has_not_moved() {
    let convention = json!({
        "phase": {
            "path": "/status/phase", "values": [{"phase": "A"}, {"phase": "B"}],
            "transitionTime": {"path": "/status/since", "moved": "Deny"},
        },
    });
    let policies = policies(&convention, &json!({}));
    let of = |since: Value| json!({"phase": "A", "since": since});
    let time = json!("2024-06-01T09:00:00Z");
    for none in [json!(null), json!("")] {
        let (_, said) = write(&policies, &stored(&of(none.clone())), &of(time.clone()));
        assert_eq!(said, [], "{none} to a time");
        let (_, said) = write(&policies, &stored(&of(time.clone())), &of(none.clone()));
        assert_eq!(said, [], "a time to {none}");
    }
    let later = json!("2024-06-01T10:00:00Z");
    let (_, said) = write(&policies, &stored(&of(time)), &of(later));
    assert_eq!(said.len(), 1);
}

#[test]
fn a_copy_of_what_was_just_filled_in_is_whole() {
    let convention = json!({"backfill": [
        {"path": "/status/billing/unit", "value": "GiB"},
        {"path": "/status/copy", "copyOf": ["/status/billing"]},
    ]});
    let policies = policies(&convention, &json!({}));
    let (made, _) = write(&policies, &stored(&json!({})), &json!({"billing": {"a": 1}}));
    assert_eq!(made["copy"], json!({"a": 1, "unit": "GiB"}));
}

#[test]
fn nothing_is_made_where_a_list_might_belong() {
    let policies = policies(&json!("metav1"), &json!({"preserve": ["/status/history/-1/owner"]}));
    let before = stored(&json!({"history": [{"owner": "me"}]}));
    let (made, _) = write(&policies, &before, &json!({"phase": "x"}));
    assert_eq!(made, json!({"phase": "x"}));
}

#[test]
fn a_condition_without_a_status_closes_no_gate() {
    let convention = json!({
        "conditions": [{"path": "/status/conditions"}],
        "phase": {"path": "/status/phase", "values": [
            {"phase": "Ready", "necessary": {"gates": "/spec/readinessGates"}}]},
    });
    let policies = policies(&convention, &json!({}));
    let mut before = stored(&json!({}));
    before["spec"] = json!({"readinessGates": [{"conditionType": "X"}]});
    let with = |condition: Value| json!({"phase": "Ready", "conditions": [condition]});
    let (_, said) = write(&policies, &before, &with(json!({"type": "X"})));
    assert_eq!(said, []);
    let (_, said) = write(&policies, &before, &with(json!({"type": "X", "status": "False"})));
    assert_eq!(said.len(), 1);
}
