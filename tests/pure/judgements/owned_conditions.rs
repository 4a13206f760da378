//! Owners of condition types: whose element a writer may set, and which ones come back.

use serde_json::{Value, json};
use statusgate_core::engine::Action::{Deny, Warn};
use statusgate_core::policy::PolicySet;

use super::{condition, with};
use crate::support::{Write, compile, convention, following, policy};

const KUBELET: &str = "owners: [{conditions: [PodReady], users: [kubelet], groups: [nodes]}]";
const PRESERVE: &str = "preserve: [/status/conditions]";

fn preserving() -> PolicySet {
    following("metav1", &format!("{KUBELET}, {PRESERVE}"))
}

/// A status with conditions of these types, `!` before a type that is False.
fn status(kinds: &str) -> Value {
    let conditions = kinds.split_whitespace().map(|kind| match kind.strip_prefix('!') {
        Some(kind) => condition(kind, "False"),
        None => condition(kind, "True"),
    });
    json!({"conditions": conditions.collect::<Vec<_>>()})
}

fn kinds(status: &Value) -> String {
    let items = status["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let kind = |item: &Value| {
        let not = if item["status"] == "True" { "" } else { "!" };
        format!("{not}{}", item["type"].as_str().unwrap())
    };
    items.iter().map(kind).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_finding_names_the_condition_its_owner_and_the_writer() {
    let write = Write::of(status("Ready PodReady"), status("Ready !PodReady")).by("operator");
    let denial = "deny status.conditions[1]: condition PodReady belongs to kubelet or nodes, not to \"operator\" [p/owner]";
    let policies = preserving();
    assert_eq!(write.review(&policies).denials(), [denial]);
    write.clone().by("kubelet").review(&policies).is_allowed();
    write.in_groups(&["nodes"]).review(&policies).is_allowed();
    let write = Write::of(status("Ready"), status("Ready PodReady")).by("operator");
    write.review(&policies).denied_by(&["p/owner"]);
    // Without a place for it, the field is the list.
    let write = Write::of(status("Ready PodReady"), status("Ready")).by("operator");
    let fields: Vec<String> = write.review(&following("metav1", KUBELET)).denied_fields().collect();
    assert_eq!(fields, ["status.conditions"]);
}

#[test]
fn a_condition_of_another_owner_comes_back_in_its_place() {
    let policies = preserving();
    for (stored, written, expected) in [
        ("Ready PodReady Synced", "Ready Synced", "Ready PodReady Synced"),
        ("Ready PodReady Synced", "!Synced !Ready", "!Synced !Ready PodReady"),
        ("PodReady Ready", "Ready", "PodReady Ready"),
        // What has no owner goes.
        ("Ready PodReady Synced", "New", "PodReady New"),
        ("Ready PodReady", "", "PodReady"),
    ] {
        let write = Write::of(status(stored), status(written)).by("operator");
        let outcome = write.review(&policies);
        assert_eq!(kinds(&outcome.status()), expected, "{stored} -> {written}");
        outcome.is_allowed();
        write.by("kubelet").mutate(&policies).is_clean();
    }
    for nothing in [None, Some(json!({})), Some(json!({"conditions": null}))] {
        let outcome = Write::of(status("Ready PodReady"), nothing).by("operator").review(&policies);
        assert_eq!(kinds(&outcome.status()), "PodReady");
    }
    // The validating webhook gives its judgement, the mutating webhook leaves the list.
    for odd in [json!({"conditions": "none"}), json!({"conditions": {"PodReady": 1}})] {
        let outcome = Write::of(status("PodReady"), odd.clone()).by("operator").review(&policies);
        assert_eq!(outcome.status(), odd);
        assert!(outcome.is_denied());
    }
}

#[test]
fn a_removal_that_would_be_restored_warns_without_the_mutating_webhook() {
    let write = Write::of(status("Ready PodReady"), status("Ready")).by("operator");
    write.validate(&preserving()).finds(&[(Warn, "p/owner")]);
    write.validate(&following("metav1", KUBELET)).finds(&[(Deny, "p/owner")]);
}

#[test]
fn a_default_in_an_owned_condition_is_not_a_change_by_the_writer() {
    let mut old = status("Ready PodReady");
    old["conditions"][1].as_object_mut().unwrap().remove("message");
    for written in [with(old.clone(), "x", 1), with(status("Ready"), "x", 1)] {
        let outcome = Write::of(old.clone(), written).by("operator").review(&preserving());
        assert_eq!(outcome.status()["conditions"][1]["message"], "");
        outcome.is_clean();
    }
}

#[test]
fn owner_and_preserve_may_be_in_two_policies_and_an_owner_of_the_list_removes_everything() {
    let policies = compile(&[
        policy("owns", format!("convention: metav1, {KUBELET}")),
        policy(
            "keeps",
            format!(
                "convention: metav1, {PRESERVE}, owners: [{{path: /status/conditions, users: [operator, root]}}]"
            ),
        ),
    ]);
    let write = Write::of(status("Ready PodReady"), status("Ready"));
    let outcome = write.clone().by("another").mutate(&policies);
    assert_eq!(kinds(&outcome.status()), "Ready PodReady");
    assert_eq!(kinds(&write.by("root").mutate(&policies).status()), "Ready");
}

#[test]
fn a_restored_parent_comes_back_without_the_conditions_of_this_writer() {
    let spec = "conditions: [{path: /status/node/conditions}]";
    let policies = compile(&[
        convention("c", spec),
        policy("p", format!("convention: c, {KUBELET}, preserve: [/status/node]")),
    ]);
    let old = json!({"node": status("Ready PodReady")});
    let after = |user: &str| Write::of(old.clone(), json!({})).by(user).mutate(&policies).status();
    assert_eq!(kinds(&after("operator")["node"]), "Ready PodReady");
    assert_eq!(kinds(&after("kubelet")["node"]), "Ready");
}

#[test]
fn an_element_whose_key_is_missing_is_not_restored_again_and_again() {
    let spec = "conditions: [{path: /status/conditions, types: {PodReady: {key: [type, node]}}}]";
    let policies = compile(&[
        convention("c", spec),
        policy("p", format!("convention: c, {KUBELET}, {PRESERVE}")),
    ]);
    let of_node = |node: &str| with(condition("PodReady", "True"), "node", node);
    let old = json!({"conditions": [of_node("a"), condition("PodReady", "True"), of_node("b")]});
    let new = json!({"conditions": [of_node("b")]});
    let outcome = Write::of(old, new).by("operator").mutate(&policies);
    assert_eq!(outcome.status()["conditions"], json!([of_node("a"), of_node("b")]));
}

#[test]
fn a_list_of_thousands_is_restored_in_a_short_time() {
    let many = |own: bool| {
        let kinds = (0..900).map(|at| format!("C{at}"));
        let own = own.then(|| "PodReady".to_owned());
        json!({"conditions": kinds.chain(own).map(|kind| condition(&kind, "True")).collect::<Vec<_>>()})
    };
    let outcome = Write::of(many(true), many(false)).by("operator").mutate(&preserving());
    assert_eq!(outcome.status(), many(true));
}

// --- every small write ---------------------------------------------------------------------------------

/// All lists of at most three different types, each True or False.
fn lists() -> Vec<String> {
    let mut all = vec![String::new()];
    for length in 0..3 {
        let shorter: Vec<String> =
            all.iter().filter(|list| list.split_whitespace().count() == length).cloned().collect();
        for list in shorter {
            for kind in ["A", "B", "C"].into_iter().filter(|kind| !list.contains(kind)) {
                all.extend(["", "!"].map(|not| format!("{list} {not}{kind}")));
            }
        }
    }
    all
}

/// The words of a list without those of the types.
fn without(list: &str, types: &[char]) -> String {
    list.split_whitespace().filter(|word| !word.ends_with(types)).collect::<Vec<_>>().join(" ")
}

#[test]
fn an_owned_condition_is_the_owners_after_every_write_of_another() {
    let spec = "conditions: [{path: /status/conditions}]";
    let owners = "owners: [{conditions: [A], users: [a]}, {conditions: [B], users: [b]}]";
    for preserve in ["", ", preserve: [/status/conditions]"] {
        let policies = compile(&[
            convention("c", spec),
            policy("p", format!("convention: c, {owners}{preserve}")),
        ]);
        for stored in lists() {
            for written in lists() {
                for (user, others) in [("a", &['B'][..]), ("b", &['A']), ("operator", &['A', 'B'])]
                {
                    let write = Write::of(status(&stored), status(&written)).by(user);
                    let mutated = write.mutate(&policies);
                    let after = kinds(&mutated.status());
                    let context = format!("{user}{preserve}: {stored} -> {written}: {after}");
                    let of = |list: &str, kind: char| {
                        list.split_whitespace().find(|word| word.ends_with(kind)).map(str::to_owned)
                    };
                    let lost = |list: &str| {
                        others.iter().any(|kind| of(&stored, *kind) != of(list, *kind))
                    };
                    let denied = write.after(&mutated).validate(&policies).is_denied();
                    assert_eq!(denied, lost(&after), "{context}");
                    // Only what another owns and this write lacks is added, and nothing moves.
                    let added: Vec<char> = others
                        .iter()
                        .copied()
                        .filter(|kind| !preserve.is_empty() && of(&written, *kind).is_none())
                        .collect();
                    assert_eq!(without(&after, &added), without(&written, &added), "{context}");
                    for kind in added {
                        assert_eq!(of(&after, kind), of(&stored, kind), "{context}");
                    }
                    // In its place: a write that only drops conditions of others stores what was there.
                    if !preserve.is_empty() && without(&stored, others) == written.trim_start() {
                        assert_eq!(after, stored.trim_start(), "{context}");
                    }
                    let again = Write::of(status(&after), status(&written)).by(user);
                    assert_eq!(kinds(&again.mutate(&policies).status()), after, "{context}");
                    assert!(!write.after(&mutated).mutate(&policies).is_patched(), "{context}");
                }
            }
        }
    }
}
