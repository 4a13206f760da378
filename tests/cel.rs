//! Rules in CEL as a policy has them: which writes they look at, and what comes of it.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests, and their helpers too")]

use serde_json::{Value, json};
use statusgate::engine::{Action, decide};
use statusgate::model::{Object, Operation, Resource, Subject, Webhook, Writer};
use statusgate::policy::{PolicySet, Source};

/// A policy on `things` with these rules.
fn policy(name: &str, rules: &str) -> String {
    format!(
        "apiVersion: statusgate.dev/v1alpha1\nkind: StatusPolicy\nmetadata: {{name: {name}}}\nspec:\n  \
         convention: appcat\n  resources: [{{apiGroups: [g], apiVersions: [v1], resources: [things], statusSubresource: false}}]\n  \
         rules: {rules}\n"
    )
}

fn compile(documents: &[String]) -> PolicySet {
    let source = Source { name: "policy.yaml".into(), text: documents.join("---\n") };
    PolicySet::compile(&[source]).unwrap_or_else(|error| panic!("{error}"))
}

/// What is found: action, rule and message.
fn found(policies: &PolicySet, old: Option<&Value>, new: &Value) -> Vec<String> {
    let object = |value: &Value| json!({"kind": "Thing", "status": value}).to_string();
    let (old, new) = (old.map(object), object(new));
    let subject = Subject {
        resource: Resource { group: "g".into(), version: "v1".into(), resource: "things".into() },
        subresource: "".into(),
        operation: if old.is_some() { Operation::Update } else { Operation::Create },
        writer: Writer { user: "operator".into(), groups: vec!["team".into()] },
        object: Object::parse(&new).unwrap(),
        old: old.as_deref().map(|text| Object::parse(text).unwrap()),
    };
    let now = "2024-06-01T12:00:00Z".parse().unwrap();
    let verdict = decide(policies, &subject, Webhook::Validate, now);
    let line =
        |action: Action, rule: &str, message: &str| format!("{} {rule}: {message}", action.label());
    verdict.findings.iter().map(|f| line(f.action, f.rule, &f.message)).collect()
}

const NONE: [&str; 0] = [];

#[test]
fn several_policies_count_each_for_itself() {
    let rule = "[{name: small, message: too large, expression: self.status.n < 5, action: ";
    let policies = compile(&[
        policy("one", &format!("{rule} Warn}}]")),
        policy("two", &format!("{rule} Deny}}]")),
    ]);
    assert_eq!(
        found(&policies, None, &json!({"n": 7})),
        ["warn one/small: too large", "deny two/small: too large"]
    );
}

#[test]
fn enforcement_is_a_ceiling_over_rules_too() {
    let text = policy("p", "[{name: r, message: m, expression: self.status.n < 5}]");
    let policies = compile(&[text.replace("  rules:", "  enforcement: Audit\n  rules:")]);
    assert_eq!(found(&policies, None, &json!({"n": 7})), ["audit p/r: m"]);
}

#[test]
fn each_trigger_looks_at_its_own_writes() {
    let rule = |trigger: &str| {
        let rules =
            format!("[{{name: r, message: m, expression: self.status.n < 5, trigger: {trigger}}}]");
        compile(&[policy("p", &rules)])
    };
    let (bad, worse) = (json!({"n": 7, "a": 1}), json!({"n": 7, "a": 2}));
    for (trigger, kept, made) in [
        ("introduced", false, true),
        ("state", true, true),
        ("{moved: /status/a}", true, true),
        ("{moved: /status/n}", false, true),
        ("{coWritten: [/status/a, /status/n]}", false, true),
    ] {
        let count = |expected| if expected { vec!["deny p/r: m"] } else { vec![] };
        assert_eq!(found(&rule(trigger), Some(&bad), &worse), count(kept), "{trigger}");
        assert_eq!(found(&rule(trigger), Some(&json!({"n": 1})), &bad), count(made), "{trigger}");
    }
}

#[test]
fn a_rule_over_the_stored_object_is_silent_where_there_is_none() {
    let rules = "[{name: r, message: m, expression: oldSelf.status.n <= self.status.n}]";
    let policies = compile(&[policy("p", rules)]);
    assert_eq!(found(&policies, None, &json!({"n": 1})), NONE);
    assert_eq!(found(&policies, Some(&json!({"n": 2})), &json!({"n": 1})), ["deny p/r: m"]);
    assert_eq!(found(&policies, Some(&json!({"n": 2})), &json!({"n": 2, "a": 1})), NONE);
}

#[test]
fn a_transition_that_is_forbidden_is_so_at_each_write() {
    let rules = "[{name: r, message: must grow, expression: oldSelf.status.n < self.status.n}]";
    let policies = compile(&[policy("p", rules)]);
    let write = found(&policies, Some(&json!({"n": 2})), &json!({"n": 2, "a": 1}));
    assert_eq!(write, ["deny p/r: must grow"]);
}

#[test]
fn what_cannot_be_told_of_the_stored_object_either_is_not_held_against_a_write() {
    for trigger in ["introduced", "state", "{moved: /status/n}"] {
        let rules = format!(
            "[{{name: r, message: m, trigger: {trigger}, expression: oldSelf.status.n <= self.status.n}}]"
        );
        let policies = compile(&[policy("p", &rules)]);
        // Only so can the member that is missing ever be written.
        assert_eq!(found(&policies, Some(&json!({"a": 1})), &json!({"n": 1})), NONE, "{trigger}");
    }
    let policies =
        compile(&[policy("p", "[{name: r, message: m, expression: self.status.n > 0}]")]);
    let reason = r#"deny p/r: rule r cannot be evaluated: there is no "n""#;
    assert_eq!(found(&policies, Some(&json!({"n": 1})), &json!({"a": 1})), [reason]);
    assert_eq!(found(&policies, Some(&json!({"a": 1})), &json!({"a": 2})), NONE);
    // A violation is another thing than an error.
    assert_eq!(found(&policies, Some(&json!({"a": 1})), &json!({"n": 0})), ["deny p/r: m"]);
    assert_eq!(found(&policies, Some(&json!({"n": 0})), &json!({"a": 1})), [reason]);
}

#[test]
fn without_a_status_there_is_nothing_to_ask_for() {
    let policies =
        compile(&[policy("p", "[{name: r, message: m, expression: 'false', trigger: state}]")]);
    assert_eq!(found(&policies, None, &Value::Null), NONE);
    assert_eq!(found(&policies, Some(&json!({"n": 1})), &Value::Null), NONE);
}

#[test]
fn the_writer_can_be_named() {
    let rules = "[{name: r, message: m, expression: \"writer.user == 'portal' || !('team' in writer.groups)\"}]";
    let policies = compile(&[policy("p", rules)]);
    assert_eq!(found(&policies, None, &json!({"n": 1})), ["deny p/r: m"]);
}
