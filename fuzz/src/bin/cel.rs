//! Expressions of rules in CEL: any text compiles or is rejected with a location, and whatever
//! compiles is evaluated in bounded time.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use serde_json::json;
use statusgate_core::engine::decide;
use statusgate_core::model::{Object, Operation, Resource, Subject, Webhook, Writer};
use statusgate_core::policy::{PolicySet, Source};

fuzz_target!(init: statusgate_fuzz::catch_panics(), |data: &[u8]| {
    statusgate_fuzz::run(data, || compile_and_evaluate(data));
});

fn compile_and_evaluate(data: &[u8]) {
    let Ok(expression) = std::str::from_utf8(data) else { return };
    let policy = json!({"apiVersion": "statusgate.dev/v1alpha1", "kind": "StatusPolicy", "metadata": {"name": "p"},
        "spec": {"convention": "c", "resources": [{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}],
            "rules": [{"name": "r", "message": "m", "trigger": "state", "expression": expression}]}});
    let policy = Source::new("policy.json", policy.to_string());
    let policies = match PolicySet::compile(&[CONVENTION.clone(), policy]) {
        Ok(policies) => policies,
        Err(mistakes) => {
            assert!(!mistakes.to_string().is_empty());
            return;
        }
    };
    for old in [None, Some(OLD)] {
        for new in [OLD, &*NEW] {
            let subject = subject(old, new);
            let verdict =
                decide(&policies, &subject, Webhook::Validate, jiff::Timestamp::UNIX_EPOCH);
            let again = decide(&policies, &subject, Webhook::Validate, jiff::Timestamp::UNIX_EPOCH);
            assert_eq!(verdict.findings.len(), again.findings.len());
            for (one, other) in verdict.findings.iter().zip(&again.findings) {
                assert_eq!((&one.rule, &one.message), (&other.rule, &other.message));
            }
        }
    }
}

fn subject<'a>(old: Option<&'a str>, new: &'a str) -> Subject<'a> {
    let object = |text: &'a str| Object::parse(text).expect("a valid object");
    Subject {
        resource: Resource { group: "g".into(), version: "v1".into(), resource: "things".into() },
        subresource: "status".into(),
        operation: Operation::Update,
        writer: Writer { user: "operator".into(), groups: vec!["team".into()] },
        object: object(new),
        old: old.map(object),
    }
}

static CONVENTION: LazyLock<Source> = LazyLock::new(|| {
    let text = "apiVersion: statusgate.dev/v1alpha1\nkind: StatusConvention\nmetadata: {name: c}\n\
        spec: {phase: {path: /status/phase, values: [{phase: Ready}, {phase: Unknown}]}}\n";
    Source::new("convention.yaml", text)
});

const OLD: &str = r#"{"apiVersion":"g/v1","kind":"Thing","metadata":{"name":"n","namespace":"s","generation":3},
    "spec":{"replicas":3,"names":["a","b","a"]},"status":{"phase":"Unknown"}}"#;

static NEW: LazyLock<String> = LazyLock::new(|| TEMPLATE.replace("MANY", &["0"; 100].join(",")));

const TEMPLATE: &str = r#"{"apiVersion":"g/v1","kind":"Thing","metadata":{"name":"n","namespace":"s","generation":3,
    "creationTimestamp":"2024-06-01T09:00:00Z"},"spec":{"replicas":3,"names":["a","b","a"],"x":{"y":{"z":null}}},
    "status":{"phase":"Ready","n":7,"big":9223372036854775807,"half":0.5,"text":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaä",
    "many":[MANY],"list":[1,2.5,"x",null,true,[],{}],"map":{"a":1,"b":{"c":[1,2,3]},"":"empty"},"conditions":[
    {"type":"Ready","status":"True","reason":"Up","message":"","lastTransitionTime":"2024-06-01T10:00:00Z"},
    {"type":"Synced","status":"False","reason":"Down"}]}}"#;
