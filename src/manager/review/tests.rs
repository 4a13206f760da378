use axum::http::StatusCode;
use std::cell::Cell;

use serde_json::json;

use super::*;

const SPEC: &str = r#"{"convention":"metav1",
    "resources":[{"apiGroups":["g"],"apiVersions":["v1"],"resources":["things"]}]}"#;

fn spec() -> Value {
    serde_json::from_str(SPEC).unwrap()
}

fn with(key: &str, value: Value) -> Value {
    let mut spec = spec();
    spec[key] = value;
    spec
}

fn object(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "statusgate.dev/v1alpha1", "kind": "StatusPolicy",
        "metadata": {"name": name}, "spec": spec})
}

#[expect(clippy::needless_pass_by_value, reason = "a call reads better without references")]
fn request(operation: &str, object: Value, old: Value) -> Value {
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "u",
        "kind": {"group": "statusgate.dev", "version": "v1alpha1", "kind": "StatusPolicy"},
        "resource": {"group": "statusgate.dev", "version": "v1alpha1", "resource": "statuspolicies"},
        "operation": operation, "name": "p", "object": object, "oldObject": old,
    }})
}

fn response_to(request: &Value, others: impl Fn(&DocumentId) -> Others) -> Value {
    let reply = review(request.to_string().as_bytes(), Duration::from_secs(20), others);
    assert_eq!(reply.status, StatusCode::OK);
    serde_json::from_slice::<Value>(&reply.body).unwrap()["response"].take()
}

fn alone(_: &DocumentId) -> Others {
    Others { texts: Vec::new(), settled: true }
}

#[test]
fn an_invalid_document_is_rejected_with_each_mistake() {
    let mut wrong = with("enforcement", json!("Never"));
    wrong["typo"] = json!(1);
    let response = response_to(&request("CREATE", object("p", &wrong), Value::Null), alone);
    assert_eq!(response["allowed"], false);
    let message = response["status"]["message"].as_str().unwrap();
    assert!(
        message.starts_with("StatusPolicy \"p\" is invalid:\n\nerror: unknown value \"Never\"")
    );
    assert!(message.contains("--> StatusPolicy/p:7:16") && message.contains("typo"), "{message}");
}

#[test]
fn only_a_changed_spec_is_judged() {
    let wrong = object("p", &with("enforcement", json!("Never")));
    let good = object("p", &spec());
    let mut labeled = wrong.clone();
    labeled["metadata"]["labels"] = json!({"a": "b"});
    let mut deleting = object("p", &with("enforcement", json!("Other")));
    deleting["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let mut status = request("UPDATE", wrong.clone(), good.clone());
    status["request"]["subResource"] = json!("status");
    let mut other = request("CREATE", wrong.clone(), Value::Null);
    other["request"]["resource"]["group"] = json!("other.dev");
    for (request, allowed) in [
        (request("UPDATE", wrong.clone(), good.clone()), false),
        (request("UPDATE", good, wrong.clone()), true),
        (request("UPDATE", labeled, wrong.clone()), true),
        (request("UPDATE", deleting, wrong.clone()), true),
        (request("DELETE", Value::Null, wrong), true),
        (status, true),
        (other, true),
    ] {
        assert_eq!(response_to(&request, alone)["allowed"], allowed, "{request}");
    }
}

#[test]
fn a_document_is_judged_with_the_others_and_without_its_own_earlier_text() {
    let others = |id: &DocumentId| {
        assert_eq!(id.to_string(), "StatusPolicy/p");
        let other = object("q", &spec()).to_string();
        Others { texts: vec![Source::new("file.yaml", other)], settled: true }
    };
    let policy = request("CREATE", object("p", &spec()), Value::Null);
    assert_eq!(response_to(&policy, others)["allowed"], true);
    let twin = |_: &DocumentId| {
        let twin = object("p", &spec()).to_string();
        Others { texts: vec![Source::new("file.yaml", twin)], settled: true }
    };
    let response = response_to(&policy, twin);
    let message = response["status"]["message"].as_str().unwrap();
    assert!(message.contains("there is a policy \"p\" already"), "{message}");
}

#[test]
fn a_policy_waits_for_a_convention_that_is_applied_at_the_same_time() {
    let calls = Cell::new(0);
    let policy = request("CREATE", object("p", &with("convention", json!("c"))), Value::Null);
    let response = response_to(&policy, |_| {
        calls.set(calls.get() + 1);
        let id = DocumentId { kind: DocumentKind::StatusConvention, name: "c".to_owned() };
        let convention = Document::new(id, &json!({"conditions": []}));
        let texts = if calls.get() < 3 { Vec::new() } else { vec![convention.source] };
        Others { texts, settled: true }
    });
    assert_eq!((calls.get(), &response["allowed"]), (3, &json!(true)), "{response}");
}

#[test]
fn a_document_is_not_linted() {
    // lint searches the states of rules in CEL, and rejects these.
    let rules: Vec<Value> = (0..250)
        .map(|number| json!({"name": format!("r{number}"), "expression": "true", "message": "m"}))
        .collect();
    let policy = request("CREATE", object("p", &with("rules", json!(rules))), Value::Null);
    assert_eq!(response_to(&policy, alone), json!({"uid": "u", "allowed": true}));
}

#[test]
fn a_document_beyond_the_limits_of_size_and_patterns_is_rejected_and_not_compiled() {
    let never = |_: &DocumentId| -> Others { panic!("it is compiled") };
    let fields = |count: usize| -> Value {
        (0..count).map(|at| json!({"path": format!("/status/f{at}"), "pattern": "^a$"})).collect()
    };
    // As YAML, nested lists are indented.
    let nested = (0..100).fold(json!(vec![0; 2000]), |inner, _| json!([inner]));
    for (spec, message) in [
        (with("x", json!("a".repeat(MAX_TEXT))), "the document is larger than 256 KiB"),
        (with("x", nested), "the document is larger than 256 KiB"),
        (with("fields", fields(MAX_PATTERNS + 1)), "the document has more than 64 patterns"),
    ] {
        let response = response_to(&request("CREATE", object("p", &spec), Value::Null), never);
        assert_eq!(response["status"]["message"], message);
    }
    let fitting =
        request("CREATE", object("p", &with("fields", fields(MAX_PATTERNS))), Value::Null);
    assert_eq!(response_to(&fitting, alone)["allowed"], true);
}

#[test]
fn a_document_that_no_watch_could_read_is_rejected() {
    let object = object("p", &with("x", json!("DEEP"))).to_string();
    let body = request("CREATE", json!("OBJECT"), Value::Null).to_string();
    for levels in [0, 123, 124, 200] {
        let deep = format!("{}0{}", "[".repeat(levels), "]".repeat(levels));
        let object = object.replace("\"DEEP\"", &deep);
        let list = serde_json::from_str::<Value>(&format!(r#"{{"items":[{object}]}}"#));
        let body = body.replace("\"OBJECT\"", &object);
        let reply = review(body.as_bytes(), PATIENCE, alone);
        let text = String::from_utf8(reply.body).unwrap();
        let is_too_deep = text.contains("nested deeper than 127 levels");
        assert_eq!(is_too_deep, list.is_err(), "{levels}: {text}");
    }
    assert_eq!(review(b"{", PATIENCE, alone).status, StatusCode::BAD_REQUEST);
}
