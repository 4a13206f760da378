//! What a stored object excuses.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use statusgate_core::policy::PolicySet;

use crate::search::{Extent, Outcome, in_every_world};
use crate::webhook::{Denial, Write};

const EXTENT: Extent = Extent { every: 11, worlds: [40, 120], pairs: [60, 1500], least: 300 };

/// What both webhooks say of a write.
fn denials_after_mutation(write: &Write, policies: &PolicySet) -> Vec<Denial> {
    let mutated = write.mutate(policies);
    write.sending(mutated.object).denials(policies)
}

/// What is wrong with an object, rejected or not.
fn violations(object: &Value, policies: &PolicySet) -> Vec<Denial> {
    Write::of(&json!({}), object).findings(policies)
}

#[test]
fn a_write_that_leaves_the_status_as_it_is_is_never_rejected() {
    in_every_world("a write that leaves the status is not rejected", EXTENT, |small, world| {
        let old = small.axes.stored(world);
        let is_violated = !violations(&old, &small.policies).is_empty();
        // Of metadata only, and with a new spec.
        let mut labelled = old.clone();
        labelled["metadata"]["labels"] = json!({"a": "b"});
        let mut other_spec = labelled.clone();
        other_spec["metadata"]["generation"] = 3.into();
        other_spec["spec"] = json!({"flag": true, "n": 2});
        for (new, main) in [
            (&old, false),
            (&labelled, false),
            (&old, true),
            (&labelled, true),
            (&other_spec, true),
        ] {
            let policies = if main { &small.without_subresource } else { &small.policies };
            let write = Write { main, ..Write::of(&old, new) };
            let denials = denials_after_mutation(&write, policies);
            if !denials.is_empty() && !small.reports(&denials) {
                return Outcome::Broken(
                    "a write that leaves the status is rejected",
                    format!("main {main}: {denials:?}"),
                );
            }
        }
        if is_violated { Outcome::Held } else { Outcome::Trivial }
    });
}

#[test]
fn a_write_of_the_main_resource_during_deletion_is_never_rejected() {
    in_every_world("a main write during deletion is not rejected", EXTENT, |small, world| {
        let (old, new) = (small.axes.stored(world), small.axes.written(world));
        if old["metadata"]["deletionTimestamp"].is_null() {
            return Outcome::Outside;
        }
        let write = Write { main: true, ..Write::of(&old, &new) };
        let policies = &small.without_subresource;
        let denials = [write.denials(policies), denials_after_mutation(&write, policies)].concat();
        if !denials.is_empty() {
            return Outcome::Broken(
                "a main write during deletion is rejected",
                format!("{denials:?}"),
            );
        }
        if violations(&new, &small.policies).is_empty() { Outcome::Trivial } else { Outcome::Held }
    });
}

#[test]
fn agreement_never_rejects_during_deletion() {
    in_every_world(
        "agreement does not reject during deletion",
        Extent { least: 50, ..EXTENT },
        |small, world| {
            let (old, new) = (small.axes.stored(world), small.axes.written(world));
            if old["metadata"]["deletionTimestamp"].is_null() {
                return Outcome::Outside;
            }
            let denials = Write::of(&old, &new).denials(&small.policies);
            let of_agreement =
                |denial: &Denial| ["own/phase-a", "own/phase-b"].contains(&denial.rule.as_str());
            if denials.iter().any(of_agreement) {
                return Outcome::Broken(
                    "agreement rejects during deletion",
                    format!("{denials:?}"),
                );
            }
            let alive = |mut object: Value| {
                object["metadata"].as_object_mut().unwrap().remove("deletionTimestamp");
                object
            };
            let before = Write::of(&alive(old), &alive(new)).denials(&small.policies);
            if before.iter().any(of_agreement) { Outcome::Held } else { Outcome::Trivial }
        },
    );
}

/// Rules about transitions apart: those that ask about the stored object or watch for changes.
#[test]
fn a_write_whose_violations_are_stored_passes() {
    in_every_world("a write that keeps stored violations passes", EXTENT, |small, world| {
        let is_about_transitions = [
            "old",
            "changed",
            "decreased",
            "trigger",
            "moves",
            "removed",
            "reverted",
            "kept",
            "misspelled",
            "history",
            "oldSelf",
            "owners",
        ];
        if is_about_transitions.iter().any(|word| small.text.contains(word)) {
            return Outcome::Outside;
        }
        let (old, new) = (small.axes.stored(world), small.axes.written(world));
        if old["status"]
            .as_object()
            .is_none_or(|status| status.keys().all(|name| name == "unrelated"))
        {
            return Outcome::Outside;
        }
        let key = |object: &Value, denial: &Denial| {
            (
                denial.rule.clone(),
                place_of(object, &denial.field),
                value_at(object, &denial.field).to_string(),
            )
        };
        let keys = |object: &Value| -> BTreeSet<_> {
            violations(object, &small.policies).iter().map(|denial| key(object, denial)).collect()
        };
        let (before, after) = (keys(&old), keys(&new));
        if !after.is_subset(&before) {
            return Outcome::Outside;
        }
        let denials = Write::of(&old, &new).denials(&small.policies);
        if !denials.is_empty() {
            return Outcome::Broken("a stored violation is rejected", format!("{denials:?}"));
        }
        if after.is_empty() { Outcome::Trivial } else { Outcome::Held }
    });
}

/// A field, with its element by key instead of by its place in the list.
fn place_of(object: &Value, field: &str) -> String {
    match field.split_once(']') {
        Some((element, member)) => {
            let element = value_at(object, &format!("{element}]"));
            let list = field.split('[').next().unwrap_or_default();
            format!("{list} {} {} {member}", element["type"], element["n"])
        }
        None => field.to_owned(),
    }
}

fn value_at<'o>(object: &'o Value, field: &str) -> &'o Value {
    let path = field.replace(['.', '['], "/").replace(']', "");
    object.pointer(&format!("/{path}")).unwrap_or(&Value::Null)
}

/// Exemptions and words about absence apart: there, what is absent is what the rule asks for. So are forbidden fields: one
/// may have the value that a default sets where the evidence is present.
#[test]
fn missing_evidence_never_rejects() {
    in_every_world("missing evidence does not reject", EXTENT, |small, world| {
        let about_absence = [
            "set:",
            "present",
            "length:",
            "gates:",
            "changed",
            "decreased",
            "isNot",
            "mirrored",
            "required",
            "forbidden",
            "missing",
            "removed",
            "misspelled",
            "moves",
            "kept",
            "reasons",
            "history",
            "parentKey",
            "old",
            "owners",
        ];
        if about_absence.iter().any(|word| small.text.contains(word)) {
            return Outcome::Outside;
        }
        let (old, new) = (small.axes.stored(world), small.axes.written(world));
        if !Write::of(&old, &new).denials(&small.policies).is_empty() {
            return Outcome::Outside;
        }
        let mut could_fail = false;
        for name in ["x", "observedGeneration", "conditions", "t", "word"] {
            let without = |object: &Value| {
                let mut object = object.clone();
                let removed =
                    object["status"].as_object_mut().and_then(|status| status.remove(name));
                (object, removed.is_some())
            };
            let ((less_old, _), (less_new, removed)) = (without(&old), without(&new));
            could_fail |= removed;
            let denials = Write::of(&less_old, &less_new).denials(&small.policies);
            if removed && !denials.is_empty() {
                return Outcome::Broken(
                    "missing evidence rejects",
                    format!("without {name}: {denials:?}"),
                );
            }
        }
        if could_fail { Outcome::Held } else { Outcome::Trivial }
    });
}
