//! Policies, in addition to their conventions.

use statusgate_analysis::lint::{self, Kind, Remark};

use super::{document, lint_policy, remarks};
use crate::support::{compile, examples, policy};

/// The faults of a policy. Each has a witness, which the engine has judged.
fn remarks_of_policy(spec: &str) -> Vec<Remark> {
    let resources = "resources: [{apiGroups: [g], apiVersions: [v1], resources: [things]}]";
    let mut remarks =
        lint_policy(&compile(&[policy("local", format!("{resources}, {spec}"))]), "local");
    remarks.retain(|remark| remark.kind.is_fault());
    assert!(remarks.iter().all(|remark| remark.witness.is_some()), "{remarks:?}");
    remarks
}

/// What is found about the convention of these documents.
fn remarks_among(spec: &str, policy: &str) -> Vec<Remark> {
    lint::lint(&compile(&[document(spec), policy.to_owned()]), "test").unwrap().remarks
}

fn following(convention: &str, versions: &str) -> String {
    policy(
        "local",
        format!(
            "convention: {convention}, resources: [{{apiGroups: [g], apiVersions: [{versions}], resources: [things]}}]"
        ),
    )
}

#[test]
fn a_list_that_no_policy_selects_is_reported() {
    let list = "conditions: [{path: /status/conditions, apiVersions: [v1beta1]}]";
    let found = remarks_among(list, &following("test", "v1"));
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0].kind, Kind::UnselectedList);
    assert_eq!(
        found[0].message,
        "the list /status/conditions is only for v1beta1, which no policy selects: nothing judges the conditions of v1"
    );
    let witness = found[0].witness.as_ref().unwrap();
    assert!(witness.contains("/v1\n") && witness.contains("conditions:"), "{witness}");
    assert_eq!(remarks_among(list, &following("test", "v1beta1, v1")), []);
    assert_eq!(remarks_among(list, &following("test", "'*'")), []);
    // The other list is for this version, and the first one for objects that are no longer written.
    let two = "conditions: [{path: /status/old, apiVersions: [v1beta1]}, {path: /status/conditions, apiVersions: [v1]}]";
    assert_eq!(remarks_among(two, &following("test", "v1")), []);
    // Another list is for all versions.
    let two = "conditions: [{path: /status/conditions}, {path: /status/nodes, element: node, key: [name], apiVersions: [v1beta1]}]";
    let found = remarks_among(two, &following("test", "v1"));
    assert_eq!(
        found[0].message,
        "the list /status/nodes is only for v1beta1, which no policy selects: nothing judges the nodes of v1"
    );
    assert_eq!(remarks_among(two, &following("test", "v1beta1")), []);
}

#[test]
fn a_convention_that_no_policy_follows_is_noted() {
    let unused = |found: Vec<Remark>| {
        found.iter().filter(|remark| remark.kind == Kind::UnusedConvention).count()
    };
    assert_eq!(unused(remarks_among("extends: metav1", &following("metav1", "v1"))), 1);
    assert_eq!(unused(remarks_among("extends: metav1", &following("test", "v1"))), 0);
    // It is the base of the one that a policy follows.
    let heir = document("extends: test").replace("name: test", "name: heir");
    let both = format!("{heir}---\n{}", following("heir", "v1"));
    assert_eq!(unused(remarks_among("extends: metav1", &both)), 0);
    // Without a policy, conventions are written for others.
    assert_eq!(unused(remarks("extends: metav1")), 0);
}

#[test]
fn a_phase_that_a_policy_rejects_is_reported() {
    let found = remarks_of_policy(
        "convention: appcat, enforcement: Audit, fields: [{path: /status/phase, enum: [Ready, Failed, Unknown, Deleting, Degraded, Provisioning]}]",
    );
    let rejected = found.iter().filter(|remark| remark.kind == Kind::PhaseNeverWritten);
    let messages: Vec<&str> = rejected.map(|remark| remark.message.as_str()).collect();
    let one = "phase Maintenance or Scaling is rejected in every state that admits it";
    assert_eq!(messages, [one]);
    assert!(found.iter().all(|remark| remark.rules == ["local/field-phase"]), "{found:?}");
    assert!(found[0].witness.as_ref().unwrap().contains("phase: Maintenance"));
    // Every state can change to the default phase: no check prevents it.
    let all = "Failed, Deleting, Provisioning, Maintenance, Scaling, Degraded, Ready";
    let check = |values: &str, action: &str| {
        remarks_of_policy(&format!(
            "convention: appcat, fields: [{{path: /status/phase, enum: [{values}], action: {action}}}]"
        ))
    };
    assert_eq!(check(all, "Deny"), []);
    assert_eq!(check("Ready", "Warn"), []);
}

#[test]
fn an_imposed_phase_that_a_policy_rejects_is_reported_where_it_is_imposed() {
    let found = remarks_of_policy(
        "convention: appcat, fields: [{path: /status/phase, enum: [Failed, Provisioning, Maintenance, Scaling, Degraded, Ready]}]",
    );
    let patch = found.iter().find(|remark| remark.kind == Kind::PatchRejected).unwrap();
    assert!(patch.witness.as_ref().unwrap().contains("deletionTimestamp"), "{found:?}");
}

#[test]
fn a_default_that_a_policy_rejects_is_reported() {
    let tier = "fields: [{path: /status/tier, enum: [small, large]}]";
    for (more, rule) in [
        (format!("backfill: [{{path: /status/tier, value: basic}}], {tier}"), "local/field-tier"),
        (
            format!("backfill: [{{path: /status/tier, value: basic, when: {{field: /status/a, is: 1}}}}], {tier}"),
            "local/field-tier",
        ),
        (
            "backfill: [{path: /status/tier, value: {}}], rules: [{name: none, message: m, expression: '!has(self.status.tier)'}]".to_owned(),
            "local/none",
        ),
    ] {
        let found = remarks_of_policy(&format!("convention: metav1, {more}"));
        let rules: Vec<&[String]> = found.iter().map(|remark| remark.rules.as_slice()).collect();
        assert_eq!(rules, [[rule]], "{more}");
        assert_eq!(found[0].kind, Kind::PatchRejected);
    }
    let good = "backfill: [{path: /status/tier, value: small}], owners: [{path: /status/tier, users: [biller]}]";
    assert_eq!(remarks_of_policy(&format!("convention: metav1, {good}, {tier}")), []);
}

#[test]
fn a_member_that_a_policy_removes_and_requires_is_reported() {
    let found = remarks_of_policy(
        "convention: metav1, backfill: [{list: /status/conditions, member: note, absentWhere: {member: status, is: Unknown}}], \
         rules: [{name: noted, message: m, expression: '!has(self.status.conditions) || self.status.conditions.all(c, has(c.note))'}]",
    );
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].kind, found[0].rules[0].as_str()), (Kind::PatchRejected, "local/noted"));
}

#[test]
fn a_second_policy_with_a_phase_is_noted() {
    let following = |name: &str, convention: &str, things: &str| {
        let resources = format!("[{{apiGroups: [g], apiVersions: [v1], resources: [{things}]}}]");
        policy(name, format!("convention: {convention}, resources: {resources}"))
    };
    let noted = |things: &str, convention: &str| {
        let first = following("pa", "appcat", "things");
        let policies = compile(&[first, following("pb", convention, things)]);
        let second = |remark: &Remark| remark.kind == Kind::SecondOwner;
        assert!(!lint_policy(&policies, "pa").iter().any(second));
        lint_policy(&policies, "pb").into_iter().find(second)
    };
    let note = noted("'*'", "olm-csv").unwrap();
    assert!(!note.kind.is_fault() && note.message.starts_with("policy pa "), "{note:?}");
    assert_eq!(noted("'*s'", "appcat").map(|note| note.kind), Some(Kind::SecondOwner));
    assert_eq!(noted("'*'", "metav1"), None);
    assert_eq!(noted("others", "appcat"), None);
}

#[test]
fn the_example_policies_have_no_faults() {
    for name in examples().names() {
        assert_eq!(lint_policy(examples(), name), [], "{name}");
    }
}

#[test]
fn every_version_of_a_policy_is_judged() {
    let convention = document("conditions:
  - {path: /status/a, apiVersions: [v1]}
  - {path: /status/b, apiVersions: [v2], members: {type: {required: true}, x: {required: true, enum: [q]}}}");
    let default = "backfill: [{list: /status/b, element: {type: Ready, x: nope}, name: el}]";
    for versions in ["v1, v2", "v2, v1", "'*'"] {
        let resources =
            format!("[{{apiGroups: [g], apiVersions: [{versions}], resources: [things]}}]");
        let policy =
            policy("local", format!("convention: test, resources: {resources}, {default}"));
        let found = lint_policy(&compile(&[convention.clone(), policy]), "local");
        assert_eq!(found.len(), 1, "{versions}");
        assert_eq!(found[0].kind, Kind::PatchRejected);
    }
}

#[test]
fn checks_of_a_policy_that_no_value_passes_are_reported() {
    let found = remarks_of_policy(
        "convention: metav1, fields: [{path: /status/x, type: string, id: a}, {path: /status/x, type: integer, id: b}]",
    );
    assert_eq!((found[0].kind, found.len()), (Kind::Contradiction, 1));
}

#[test]
fn a_policy_that_repairs_without_anything_to_choose_is_reported() {
    let convention = document(
        "conditions: [{path: /status/conditions}]
phase:
  path: /status/phase
  values: [{phase: Up, necessary: {condition: Ready, is: 'True'}}, {phase: Down}]",
    );
    let faults = |more: &str| {
        let resources = "[{apiGroups: [g], apiVersions: [v1], resources: [things]}]";
        let policy = policy("local", format!("convention: test, resources: {resources}, {more}"));
        let found = lint_policy(&compile(&[convention.clone(), policy]), "local");
        found.into_iter().map(|remark| remark.kind).collect::<Vec<_>>()
    };
    assert_eq!(faults("disagreement: Deny"), []);
    assert_eq!(faults("disagreement: Repair"), [Kind::RepairFindsNothing]);
    let writer = "writers: [{users: [u], disagreement: Repair}]";
    assert_eq!(faults(writer), [Kind::RepairFindsNothing]);
}

/// The convention accepts other resources; the policy selects only these.
#[test]
fn a_policy_is_judged_for_the_resources_that_it_selects() {
    let convention = document(
        "rules:
  - {id: with, path: /status/x, action: Deny, message: m, when: {all: [{resource: things}, {set: /status/x}]}}
  - {id: without, path: /status/x, action: Deny, message: m, when: {all: [{resource: things}, {not: {set: /status/x}}]}}",
    );
    let kinds = |things: &str| {
        let resources = format!("[{{apiGroups: [g], apiVersions: [v1], resources: [{things}]}}]");
        let policy = policy("local", format!("convention: test, resources: {resources}"));
        let policies = compile(&[convention.clone(), policy]);
        assert!(!lint::lint(&policies, "test").unwrap().has_faults());
        let found = lint_policy(&policies, "local");
        found.into_iter().map(|remark| (remark.kind, remark.rules)).collect::<Vec<_>>()
    };
    let rules = vec!["test/with".to_owned(), "test/without".to_owned()];
    assert_eq!(kinds("things"), [(Kind::Contradiction, rules.clone())]);
    assert_eq!(kinds("widgets, things"), [(Kind::Contradiction, rules)]);
    assert_eq!(kinds("widgets"), []);
    assert_eq!(kinds("'*'"), []);
}

#[test]
fn a_phase_that_only_other_resources_have_is_reported() {
    let convention = document(
        "phase: {path: /status/phase, values: [{phase: A, necessary: {resource: things}}, {phase: B}]}",
    );
    let kinds = |things: &str| {
        let resources = format!("[{{apiGroups: [g], apiVersions: [v1], resources: [{things}]}}]");
        let rule = "fields: [{path: /status/phase, enum: [A]}]";
        let policy = policy("local", format!("convention: test, resources: {resources}, {rule}"));
        let found = lint_policy(&compile(&[convention.clone(), policy]), "local");
        found.into_iter().map(|remark| (remark.kind, remark.message)).collect::<Vec<_>>()
    };
    let rejected = |phases: &str| {
        let message = format!("phase {phases} is rejected in every state that admits it");
        vec![(Kind::PhaseNeverWritten, message)]
    };
    assert_eq!(kinds("things"), rejected("B"));
}

#[test]
fn a_preserved_value_that_a_rule_refuses_is_reported() {
    let convention = document(
        "rules: [{id: r, path: /status/x, action: Deny, message: m, when: {all: [{field: /status/x, is: 1}, {field: /status/y, is: 2}]}}]",
    );
    let faults = |more: &str| {
        let resources = "[{apiGroups: [g], apiVersions: [v1], resources: [things]}]";
        let policy = policy("local", format!("convention: test, resources: {resources}{more}"));
        let found = lint_policy(&compile(&[convention.clone(), policy]), "local");
        found.into_iter().map(|remark| (remark.kind, remark.rules)).collect::<Vec<_>>()
    };
    assert_eq!(faults(""), []);
    let rules = vec!["test/r".to_owned()];
    assert_eq!(faults(", preserve: [/status/x]"), [(Kind::PatchRejected, rules)]);
}

#[test]
fn a_restored_condition_that_a_rule_refuses_is_reported() {
    let convention = document(
        "conditions: [{path: /status/conditions}]
rules: [{id: r, path: /status/x, action: Deny, message: m, when: {all: [{condition: Ready, is: 'False'}, {field: /status/x, is: 1}]}}]",
    );
    let faults = |kind: &str| {
        let more = format!(
            "resources: [{{apiGroups: [g], apiVersions: [v1], resources: [things]}}], \
             preserve: [/status/conditions], owners: [{{conditions: [{kind}], users: [o]}}]"
        );
        let policy = policy("local", format!("convention: test, {more}"));
        let found = lint_policy(&compile(&[convention.clone(), policy]), "local");
        found.into_iter().map(|remark| (remark.kind, remark.rules)).collect::<Vec<_>>()
    };
    assert_eq!(faults("Other"), []);
    assert_eq!(faults("Ready"), [(Kind::PatchRejected, vec!["test/r".to_owned()])]);
}

/// A change below a field changes the field.
#[test]
fn owners_without_a_common_user_are_reported() {
    let own = |name: &str, owners: &str| {
        let resources = "[{apiGroups: [g], apiVersions: [v1], resources: [things]}]";
        policy(name, format!("convention: metav1, resources: {resources}, owners: [{owners}]"))
    };
    let found = |policies: &[String]| {
        let remarks = lint_policy(&compile(policies), "local");
        remarks.into_iter().map(|remark| (remark.kind, remark.rules)).collect::<Vec<_>>()
    };
    let locked = |rules: &[&str]| {
        let rules = rules.iter().map(|rule| (*rule).to_owned()).collect::<Vec<_>>();
        vec![(Kind::OwnersLock, rules)]
    };
    let outer = "{path: /status/own, users: [o]}";
    let inner = |users: &str| format!("{{path: /status/own/a, {users}}}");
    let both = |users: &str| found(&[own("local", &format!("{outer}, {}", inner(users)))]);
    assert_eq!(both("users: [o2]"), locked(&["local/owner"]));
    assert_eq!(both("users: ['p*', 'x:*']"), locked(&["local/owner"]));
    assert_eq!(both("users: [o, o2]"), []);
    assert_eq!(both("users: ['*']"), []);
    // A user can be in any group.
    assert_eq!(both("users: [o2], groups: [g]"), []);
    let apart = "{path: /status/other, users: [o2]}";
    assert_eq!(found(&[own("local", &format!("{outer}, {apart}"))]), []);
    let first = own("first", outer);
    assert_eq!(
        found(&[first.clone(), own("local", &inner("users: [o2]"))]),
        locked(&["first/owner", "local/owner"])
    );
    assert_eq!(
        found(&[first.clone(), own("local", "{path: /status/own, users: [o2]}")]),
        locked(&["first/owner", "local/owner"])
    );
    assert_eq!(found(&[first, own("local", outer)]), []);
    let conditions = |users: &str| format!("{{conditions: [Ready, Synced], users: [{users}]}}");
    let list = "{path: /status/conditions, users: [o]}";
    assert_eq!(found(&[own("local", &conditions("o2"))]), []);
    assert_eq!(
        found(&[own("local", &format!("{list}, {}", conditions("o2")))]),
        locked(&["local/owner"])
    );
    assert_eq!(found(&[own("local", &format!("{list}, {}", conditions("o, o2")))]), []);
    assert_eq!(
        found(&[
            own("first", "{conditions: [Synced], users: [o]}"),
            own("local", &conditions("o2"))
        ]),
        locked(&["first/owner", "local/owner"])
    );
}

#[test]
fn a_default_that_a_later_version_refuses_is_reported() {
    let found = remarks("conditions:
  - {path: /status/a, apiVersions: [v1]}
  - {path: /status/b, apiVersions: [v2], members: {type: {required: true}, x: {required: true, enum: [q]}}}
backfill: [{list: /status/b, element: {type: Ready, x: nope}, name: el}]");
    let kinds: Vec<Kind> = found.iter().map(|remark| remark.kind).collect();
    assert_eq!(kinds, [Kind::PatchRejected]);
}
