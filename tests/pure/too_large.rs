//! Statuses with more values than the server reads.

use serde_json::{Value, json};
use statusgate_core::admit::admit;
use statusgate_core::model::Webhook;

use crate::support::{Write, under};
use crate::wire::response;

/// More values than the server reads. `last` distinguishes two of them.
fn too_large(last: usize) -> Value {
    let list: Vec<usize> = std::iter::repeat_n(0, 200_000).chain([last]).collect();
    json!({"metadata": {"name": "n"}, "status": {"list": list}})
}

fn object_with(status: &Value) -> Value {
    json!({"metadata": {"name": "n"}, "status": status})
}

/// The responses of the mutating and the validating webhook to a request with these members.
fn responses(request: &Value) -> [Value; 2] {
    let policies = under(
        "conditions: [{path: /status/conditions, members: {reason: {required: true, action: Deny}}}]",
        "owners: [{path: /status/owned, users: [somebody]}], \
        resources: [{apiGroups: [g], apiVersions: [v1], resources: [things]}]",
    );
    let mut review = Write::to("things").by("").request();
    for name in ["object", "oldObject"] {
        review["request"][name] = Value::Null;
    }
    for (name, value) in request.as_object().unwrap() {
        review["request"][name] = value.clone();
    }
    let body = review.to_string();
    [Webhook::Mutate, Webhook::Validate].map(|webhook| {
        let now = jiff::Timestamp::UNIX_EPOCH;
        response(&admit(&policies, webhook, body.as_bytes(), now, |_, _| {}))
    })
}

#[test]
fn a_write_that_does_not_change_a_too_large_status_passes() {
    let other = json!({"group": "g", "version": "v1", "resource": "others"});
    let mut finalizer = too_large(1);
    finalizer["metadata"]["finalizers"] = json!(["f"]);
    for request in [
        json!({"operation": "DELETE", "subResource": "", "oldObject": too_large(1)}),
        json!({"resource": other, "object": too_large(1), "oldObject": too_large(2)}),
        json!({"subResource": "", "object": too_large(1), "oldObject": finalizer}),
        json!({"object": too_large(1), "oldObject": too_large(1)}),
    ] {
        let allowed = json!({"uid": "u", "allowed": true});
        assert_eq!(responses(&request), [allowed.clone(), allowed]);
    }
}

#[test]
fn only_the_write_that_makes_a_status_too_large_is_denied_and_a_smaller_one_may_replace_it() {
    for old in [json!(null), object_with(&json!({"a": 1}))] {
        let [mutated, validated] = responses(&json!({"object": too_large(1), "oldObject": old}));
        assert_eq!(mutated["allowed"], true);
        let cause = &validated["status"]["details"]["causes"][0];
        assert_eq!(
            (&cause["field"], &cause["reason"]),
            (&json!("status"), &json!("FieldValueTooLong"))
        );
    }
    let [_, kept] = responses(&json!({"object": too_large(1), "oldObject": too_large(2)}));
    let warning = "status: has 200003 values; at most 200000 can be judged [c/status]";
    assert_eq!((&kept["allowed"], &kept["warnings"]), (&json!(true), &json!([warning])));
    // The server did not read the stored status, so it cannot compare owned fields or old faults.
    let small = |conditions: Value| {
        let status = json!({"owned": 1, "conditions": conditions});
        let request = json!({"object": object_with(&status), "oldObject": too_large(1)});
        responses(&request)[1]["allowed"].clone()
    };
    assert_eq!(small(json!([{"type": "A", "reason": "R"}])), true);
    assert_eq!(small(json!([{"type": "A"}])), false);
}
