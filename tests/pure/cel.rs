//! CEL rules in a policy: which writes they judge, and what they report.

use serde_json::{Value, json};
use statusgate_core::policy::PolicySet;

use crate::support::{self, WITHOUT_SUBRESOURCE, Write, compile};

/// A policy with these rules.
fn policy(name: &str, rules: &str) -> String {
    support::policy(name, format!("convention: appcat, {WITHOUT_SUBRESOURCE}, rules: {rules}"))
}

fn rules(rules: &str) -> PolicySet {
    compile(&[policy("p", rules)])
}

/// The findings of a creation, or of an update of the stored status.
fn found(policies: &PolicySet, old: Option<&Value>, new: &Value) -> Vec<String> {
    let write = Write::to("things").sent(new.clone()).on_the_main_resource().in_groups(&["team"]);
    let write = match old {
        Some(old) => write.stored(old.clone()),
        None => write.creating(),
    };
    let outcome = write.validate(policies);
    let found = outcome.findings.iter();
    found.map(|f| format!("{} {}: {}", f.action.label(), f.rule, f.message)).collect()
}

const NONE: [&str; 0] = [];

#[test]
fn each_policy_reports_its_own_rule() {
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
fn enforcement_limits_the_action_of_a_rule() {
    let text = policy("p", "[{name: r, message: m, expression: self.status.n < 5}]");
    let policies = compile(&[text.replace(" rules:", " enforcement: Audit, rules:")]);
    assert_eq!(found(&policies, None, &json!({"n": 7})), ["audit p/r: m"]);
}

#[test]
fn a_trigger_selects_the_writes_that_a_rule_judges() {
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
fn a_rule_about_the_stored_object_ignores_a_creation() {
    let rules = "[{name: r, message: m, expression: oldSelf.status.n <= self.status.n}]";
    let policies = compile(&[policy("p", rules)]);
    assert_eq!(found(&policies, None, &json!({"n": 1})), NONE);
    assert_eq!(found(&policies, Some(&json!({"n": 2})), &json!({"n": 1})), ["deny p/r: m"]);
    assert_eq!(found(&policies, Some(&json!({"n": 2})), &json!({"n": 2, "a": 1})), NONE);
}

#[test]
fn a_rule_about_a_transition_judges_every_update() {
    let rules = "[{name: r, message: must grow, expression: oldSelf.status.n < self.status.n}]";
    let policies = compile(&[policy("p", rules)]);
    let write = found(&policies, Some(&json!({"n": 2})), &json!({"n": 2, "a": 1}));
    assert_eq!(write, ["deny p/r: must grow"]);
}

#[test]
fn an_evaluation_error_that_the_stored_object_has_too_is_tolerated() {
    for trigger in ["introduced", "state", "{moved: /status/n}"] {
        let rules = format!(
            "[{{name: r, message: m, trigger: {trigger}, expression: oldSelf.status.n <= self.status.n}}]"
        );
        let policies = compile(&[policy("p", &rules)]);
        // Otherwise no write could ever add the missing member.
        assert_eq!(found(&policies, Some(&json!({"a": 1})), &json!({"n": 1})), NONE, "{trigger}");
    }
    let policies = rules("[{name: r, message: m, expression: self.status.n > 0}]");
    let reason = r#"deny p/r: rule r cannot be evaluated: there is no "n""#;
    assert_eq!(found(&policies, Some(&json!({"n": 1})), &json!({"a": 1})), [reason]);
    assert_eq!(found(&policies, Some(&json!({"a": 1})), &json!({"a": 2})), NONE);
    // A violation differs from an evaluation error.
    assert_eq!(found(&policies, Some(&json!({"a": 1})), &json!({"n": 0})), ["deny p/r: m"]);
    assert_eq!(found(&policies, Some(&json!({"n": 0})), &json!({"a": 1})), [reason]);
}

#[test]
fn a_rule_ignores_an_object_without_a_status() {
    let policies = rules("[{name: r, message: m, expression: 'false', trigger: state}]");
    assert_eq!(found(&policies, None, &Value::Null), NONE);
    assert_eq!(found(&policies, Some(&json!({"n": 1})), &Value::Null), NONE);
}

#[test]
fn a_rule_can_read_the_user_and_its_groups() {
    let rules = "[{name: r, message: m, expression: \"writer.user == 'portal' || !('team' in writer.groups)\"}]";
    let policies = compile(&[policy("p", rules)]);
    assert_eq!(found(&policies, None, &json!({"n": 1})), ["deny p/r: m"]);
}

/// The rules of all policies share the steps of a review, so twenty are no more expensive than one.
#[test]
fn only_the_write_that_makes_the_rules_too_expensive_is_rejected() {
    let pairs = "self.status.list.all(a, self.status.list.exists(b, a == b))";
    let rule = |name: &str, action: &str| {
        format!(
            "{{name: {name}, message: m, expression: '!has(self.status.list) || {pairs}', action: {action}}}"
        )
    };
    let policies = compile(&[
        policy("one", &format!("[{}, {}]", rule("a", "Deny"), rule("b", "Deny"))),
        policy("two", &format!("[{}, {}]", rule("c", "Warn"), rule("d", "Deny"))),
    ]);
    let status = |length: usize, n: usize| json!({"n": n, "list": (0..length).collect::<Vec<_>>()});
    assert_eq!(found(&policies, None, &status(100, 1)), NONE);
    let cannot = |action: &str, rule: &str| {
        let name = &rule[rule.len() - 1..];
        let reason = "the rules of a review take more than 100000 steps";
        format!("{action} {rule}: rule {name} cannot be evaluated: {reason}")
    };
    let new = [cannot("deny", "one/b"), cannot("warn", "two/c"), cannot("deny", "two/d")];
    for _ in 0..2 {
        assert_eq!(found(&policies, None, &status(200, 1)), new);
        assert_eq!(found(&policies, Some(&status(100, 1)), &status(200, 1)), new);
    }
    let kept = found(&policies, Some(&status(500, 1)), &status(500, 2));
    assert!(kept.iter().all(|found| found.starts_with("warn ")), "{kept:#?}");
    assert_eq!(kept.len(), 4);
}
