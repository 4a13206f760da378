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

fn response_to(request: &Value, in_use: impl Fn(&Document) -> (Vec<Source>, Vec<Source>)) -> Value {
    let reply = review(request.to_string().as_bytes(), in_use);
    assert_eq!(reply.status, 200);
    serde_json::from_slice::<Value>(&reply.body).unwrap()["response"].take()
}

fn alone(document: &Document) -> (Vec<Source>, Vec<Source>) {
    (Vec::new(), vec![document.source.clone()])
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

/// The warnings about a document that is allowed, with these texts of files and of the cluster.
fn warnings(document: Value, files: &[Value], cluster: &[Value]) -> Vec<String> {
    let texts = |objects: &[Value]| -> Vec<Source> {
        let named = |object: &Value| Source::new("other.yaml", object.to_string());
        objects.iter().map(named).collect()
    };
    let response = response_to(&request("CREATE", document, Value::Null), |document| {
        assert_eq!(document.id.to_string(), "StatusPolicy/p");
        (texts(files), [texts(cluster), vec![document.source.clone()]].concat())
    });
    assert_eq!(response["allowed"], true, "{response}");
    serde_json::from_value(response["warnings"].clone()).unwrap_or_default()
}

#[test]
fn what_depends_on_other_documents_is_a_warning() {
    let warnings = |spec: &Value, cluster: &[Value]| warnings(object("p", spec), &[], cluster);
    let convention = |name: &str, spec: Value| {
        json!({"apiVersion": "statusgate.dev/v1alpha1", "kind": "StatusConvention",
            "metadata": {"name": name}, "spec": spec})
    };
    let follows = with("convention", json!("c"));
    let [unknown] = &warnings(&follows, &[])[..] else { panic!() };
    assert!(unknown.starts_with("not in use yet: unknown convention \"c\""), "{unknown}");
    assert!(unknown.ends_with("(StatusPolicy/p:6)"), "{unknown}");
    let part = |name: &str| json!({"backfill": [{"name": name, "optional": true, "path": "/status/x", "value": 1}]});
    let mut enables = follows;
    enables["enable"] = json!(["new"]);
    let later = warnings(&enables, &[convention("c", part("old"))]);
    assert!(later[0].starts_with("not in use yet: ") && later[0].contains("\"new\""), "{later:?}");
    assert_eq!(warnings(&enables, &[convention("c", part("new"))]), [""; 0]);
    let mut built_in = spec();
    built_in["enable"] = json!(["nonsense"]);
    let response = response_to(&request("CREATE", object("p", &built_in), Value::Null), alone);
    assert_eq!(response["allowed"], false, "no commit can change a built-in convention");
}

#[test]
fn a_warning_names_the_policy_that_owns_a_phase() {
    let of = |plural: &str| {
        let mut spec = with("convention", json!("appcat"));
        spec["resources"][0]["resources"] = json!([plural]);
        spec
    };
    let text = |owner: &str, reason: &str| {
        format!(
            "policies \"p\" and \"{owner}\" both configure the phase of g/v1 things: \"{owner}\" {reason} and owns it"
        )
    };
    let old = [object("old", &of("things"))];
    assert_eq!(warnings(object("p", &of("thing*")), &[], &old), [text("old", "is older")]);
    assert_eq!(warnings(object("p", &of("things")), &old, &[]), [text("old", "is in a file")]);
    assert_eq!(warnings(object("p", &of("others")), &old, &[]), [""; 0]);
    let twin = warnings(object("p", &of("things")), &[object("p", &of("things"))], &[]);
    assert!(twin[0].contains("there is a policy \"p\" already"), "{twin:?}");
    let many: Vec<Value> = (0..20).map(|at| object(&format!("old-{at}"), &of("things"))).collect();
    let warnings = warnings(object("p", &of("things")), &[], &many);
    assert_eq!(warnings.len(), 16);
    assert_eq!(warnings[15], "5 more: see the condition Accepted");
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
    let never = |_: &Document| panic!("it is compiled");
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
        let reply = review(body.as_bytes(), alone);
        let text = String::from_utf8(reply.body).unwrap();
        let is_too_deep = text.contains("nested deeper than 127 levels");
        assert_eq!(is_too_deep, list.is_err(), "{levels}: {text}");
    }
    assert_eq!(review(b"{", alone).status, 400);
}
