//! Rules in CEL: lint proves nothing about them, but it finds those that cannot be what they should.

use serde_json::{Value, json};

use statusgate_analysis::lint::{Kind, Remark};
use statusgate_core::policy::{Defined, DefinedVersions};
use statusgate_core::schema::NEWEST;

use super::lint_policy;
use crate::support::{compile, policy};

/// The remarks about one rule of a policy.
fn about(convention: &str, rule: &str) -> Vec<Remark> {
    let remarks = about_all(convention, &format!("{{name: r, message: m, {rule}}}"));
    assert!(remarks.iter().all(|remark| remark.rules == ["local/r"]), "{remarks:?}");
    remarks
}

/// The remarks about 200 rules, with the number of each in place of #.
fn about_many(expression: &str) -> Vec<Remark> {
    let rule = format!("{{name: r#, message: m, expression: \"{expression}\"}}");
    let rules: Vec<String> = (0..200).map(|at| rule.replace('#', &at.to_string())).collect();
    about_all("metav1", &rules.join(", "))
}

fn about_all(convention: &str, rules: &str) -> Vec<Remark> {
    let resources = "resources: [{apiGroups: [g], apiVersions: [v1], resources: [things]}]";
    let spec = format!("convention: {convention}, {resources}, rules: [{rules}]");
    lint_policy(&compile(&[policy("local", spec)]), "local")
}

fn kinds(remarks: &[Remark]) -> Vec<Kind> {
    remarks.iter().map(|remark| remark.kind).collect()
}

#[test]
fn a_rule_that_can_reject_is_not_proven() {
    let rule = "expression: \"!has(self.status.phase) || self.status.phase != 'Failed' || has(self.status.message)\"";
    assert_eq!(kinds(&about("appcat", rule)), [Kind::NotProven]);
    assert_eq!(about("appcat", &format!("{rule}, action: Warn")), []);
}

#[test]
fn a_constant_expression_is_a_fault() {
    for (expression, value) in [
        ("true", "true"),
        ("1 == 2", "false"),
        ("[1, 2].all(x, x > 0)", "true"),
        ("has(self.status.phase) || true", "true"),
    ] {
        let found = about("metav1", &format!("expression: '{expression}', action: Warn"));
        assert_eq!(kinds(&found), [Kind::ConstantRule], "{expression}");
        assert!(found[0].message.contains(&format!("always {value}")), "{found:?}");
    }
}

#[test]
fn a_rule_that_every_write_violates_is_a_fault_with_one_of_them() {
    for (convention, expression, found) in [
        ("appcat", "has(self.status.phase) && !has(self.status.phase)", ": m"),
        ("metav1", "self.status.conditions.size() < 0", ": m"),
        // Not a boolean, which no check without data can know.
        ("appcat", "self.status.phase", "its result is string, not true or false"),
        ("metav1", "self.status.conditions.exists(c, c.type)", "where \"bool\" is needed"),
        ("appcat", "self.status.phase > 5", "does not work on"),
    ] {
        let remarks = about(convention, &format!("expression: '{expression}'"));
        assert_eq!(kinds(&remarks), [Kind::AlwaysViolated], "{expression}: {remarks:?}");
        assert!(remarks[0].message.contains(found), "{remarks:?}");
        assert!(remarks[0].witness.as_ref().unwrap().contains("status:"), "{remarks:?}");
    }
}

const UNGUARDED: Kind = Kind::UnguardedMember;

/// The witness has everything that the rule reads of the spec.
#[test]
fn a_rule_that_cannot_be_evaluated_for_some_status_is_a_fault_with_one() {
    let programmed =
        "!self.status.conditions.exists(c, c.type == 'Programmed' && c.status == 'True')";
    for (expression, missing) in [
        (format!("{programmed} || has(self.status.endpoint)"), Some("conditions")),
        ("!has(self.status.replicas) || self.status.replicas <= self.status.most".to_owned(), Some("most")),
        ("!has(self.status.conditions) || self.status.conditions.all(c, c.status == 'True' || c.message != '')".to_owned(), Some("message")),
        ("self.status.?phase.orValue('') != 'Bad'".to_owned(), None),
        ("!has(self.status.replicas) || self.status.replicas <= self.spec.replicas".to_owned(), None),
        // A write of the status does not change the spec.
        (format!("{programmed} || self.spec.authRef == oldSelf.spec.authRef"), None),
    ] {
        let remarks = about("metav1", &format!("expression: \"{expression}\""));
        let found = remarks.iter().find(|remark| remark.kind == UNGUARDED);
        let message = missing.map(|name| format!("this rule cannot be evaluated if there is no \"{name}\""));
        assert_eq!(found.map(|fault| fault.message.clone()), message, "{expression}: {remarks:#?}");
        if let (Some(fault), Some(name)) = (found, missing) {
            let witness = fault.witness.as_ref().unwrap();
            assert!(witness.contains("status:") && !witness.contains(&format!("{name}:")), "{witness}");
        }
    }
}

#[test]
fn a_member_that_every_selected_definition_requires_needs_no_guard() {
    let rule = "{name: r, message: m, expression: \"!has(self.status.conditions) || self.status.conditions.all(c, c.message != 'a')\"}";
    let resources = "resources: [{apiGroups: [g], apiVersions: [v1], resources: [things]}]";
    let text = policy("local", format!("convention: metav1, {resources}, rules: [{rule}]"));
    let faults = |group: &str, required: Value| {
        let condition = json!({"type": "object", "properties": {"message": {"type": "string"}}, "required": required});
        let status = json!({"type": "object", "properties": {"conditions": {"type": "array", "items": condition}}});
        let schema = json!({"type": "object", "properties": {"status": status}});
        let version = json!({"name": "v1", "served": true, "schema": {"openAPIV3Schema": schema}});
        let definition =
            json!({"spec": {"group": group, "names": {"plural": "things"}, "versions": [version]}});
        let defined: DefinedVersions = Defined::served(&definition, NEWEST).into_iter().collect();
        let found = lint_policy(
            &compile(std::slice::from_ref(&text)).with_defined(defined.into()),
            "local",
        );
        found.iter().filter(|remark| remark.kind == UNGUARDED).count()
    };
    assert_eq!(faults("g", json!(["message"])), 0);
    assert_eq!(faults("g", json!([])), 1);
    assert_eq!(faults("other", json!(["message"])), 1, "the policy does not select it");
}

/// Values, texts, several fields, a writer and the stored object.
#[test]
fn a_rule_that_some_write_satisfies_is_no_fault() {
    for (expression, kind) in [
        ("self.status.version == 'v1.2.3'", UNGUARDED),
        ("self.status.replicas >= 17 && self.status.size == 4", UNGUARDED),
        ("self.status.name.matches('^db-[0-9]+$')", UNGUARDED),
        ("has(self.status.a) && has(self.status.b) && has(self.status.c)", Kind::NotProven),
        ("self.spec.replicas == 3", Kind::NotProven),
        ("self.metadata.name.startsWith('prod-')", Kind::NotProven),
        ("writer.user == 'system:admin'", Kind::NotProven),
        ("self.status.items.size() > 0", UNGUARDED),
        (
            "self.status.conditions.exists(c, c.type == 'Available' && c.status == 'False')",
            UNGUARDED,
        ),
    ] {
        let remarks = about("metav1", &format!("expression: \"{expression}\""));
        assert_eq!(kinds(&remarks), [kind], "{expression}: {remarks:#?}");
    }
}

#[test]
fn a_rule_that_lets_no_default_change_a_stored_condition_is_a_fault() {
    let rule = "has(oldSelf.status) && self.status.conditions == oldSelf.status.conditions";
    let remarks = about("metav1", &format!("expression: \"{rule}\""));
    assert_eq!(kinds(&remarks), [UNGUARDED, Kind::PatchRejected], "{remarks:#?}");
}

#[test]
fn a_rule_that_no_write_violates_is_noted_as_such() {
    let remarks = about("appcat", "expression: 'self.status == self.status'");
    assert_eq!(kinds(&remarks), [Kind::NotProven]);
    assert!(remarks[0].message.contains("no status that was tried violates"), "{remarks:?}");
}

#[test]
fn the_search_ends_for_200_rules_that_read_one_field_or_a_field_each() {
    for expression in [
        "!has(self.status.phase) || self.status.phase != 'P#'",
        "!has(self.status.f#) || self.status.f# != 'bad'",
    ] {
        let remarks = about_many(expression);
        assert_eq!(remarks.len(), 200, "{expression}");
        let some = "not proven: this rule accepts some of the statuses that were tried, \
                    but CEL can distinguish any values";
        let other = remarks.iter().find(|remark| remark.message != some);
        assert_eq!(other, None, "{expression}");
    }
}

#[test]
fn rules_that_were_not_searched_completely_are_named() {
    let remarks = about_many("self.status.conditions.all(c, c.type != 'T#')");
    let open =
        "not proven: the search for statuses that these rules reject has too many combinations";
    let open: Vec<&Remark> = remarks.iter().filter(|remark| remark.message == open).collect();
    assert_eq!(open.len(), 1, "{remarks:#?}");
    assert_eq!(open[0].kind, Kind::NotProven);
    // Each rule has its own remark, or that one.
    let mut named: Vec<&String> = remarks.iter().flat_map(|remark| &remark.rules).collect();
    named.sort_unstable();
    let mut all: Vec<String> = (0..200).map(|number| format!("local/r{number}")).collect();
    all.sort_unstable();
    assert_eq!(named, all.iter().collect::<Vec<_>>());
}
