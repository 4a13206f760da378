//! A call that a match condition omits would have changed and said nothing.

use serde_json::{Value, json};
use statusgate_analysis::relevance::{NoValue, Relevance};
use statusgate_core::model::{Pointer, Webhook};

use crate::search::{Extent, Outcome, in_every_world};
use crate::small::Small;
use crate::webhook::Write;
use crate::world::World;

const EXTENT: Extent = Extent { every: 7, worlds: [60, 400], pairs: [100, 1500], least: 2000 };

#[test]
fn an_omitted_call_would_have_changed_and_said_nothing() {
    in_every_world("an omitted call would have changed and said nothing", EXTENT, claim);
}

fn claim(small: &Small, world: &World) -> Outcome {
    let (old, new) = (settled(small, world), small.axes.written(world));
    let write = Write::of(&old, &new);
    let mut omitted = false;
    for (webhook, relevance) in
        [Webhook::Mutate, Webhook::Validate].into_iter().zip(&small.relevance)
    {
        if is_called(relevance.as_ref(), webhook, &old, &new) {
            continue;
        }
        omitted = true;
        if webhook == Webhook::Mutate {
            if let Some(patch) = write.mutate(&small.policies).patch {
                return Outcome::Broken("the mutating webhook would have patched", patch);
            }
        } else {
            let said = write.said(&small.policies);
            if !said.is_empty() {
                return Outcome::Broken(
                    "the validating webhook would have spoken",
                    said.join("\n"),
                );
            }
        }
    }
    if omitted { Outcome::Held } else { Outcome::Trivial }
}

/// The stored object as the webhooks left it: a default in a list is set when the list is written, and a phase is
/// imposed when its cause is written.
fn settled(small: &Small, world: &World) -> Value {
    let mut old = small.axes.stored(world);
    let now = old.clone();
    // The status was stored under an earlier spec, before the deletion.
    old["spec"] = json!({});
    old["metadata"] = json!({"name": "x", "generation": 1, "creationTimestamp": now["metadata"]["creationTimestamp"]});
    for outside in [old.clone(), now] {
        old["spec"] = outside["spec"].clone();
        old["metadata"] = outside["metadata"].clone();
        for _ in 0..2 {
            old = Write::of(&json!({}), &old).mutate(&small.policies).object;
        }
        if !small.text.contains("list: /status/conditions") {
            break;
        }
    }
    let now = small.axes.stored(world);
    old["spec"] = now["spec"].clone();
    old["metadata"] = now["metadata"].clone();
    old
}

/// What the match conditions of registrations ask (`manifests/conditions.rs`).
fn is_called(relevance: Option<&Relevance>, webhook: Webhook, old: &Value, new: &Value) -> bool {
    let [before, after] = [old, new].map(|object| &object["status"]);
    if after.is_null() || before.as_object().is_none_or(serde_json::Map::is_empty) {
        return true;
    }
    let Some(relevance) = relevance else {
        return webhook == Webhook::Mutate || before != after;
    };
    let at = |path: &Pointer| new.pointer(&path.to_string());
    let is_missing = |path: &Pointer, none: NoValue| match (at(path), none) {
        (None, _) => true,
        (Some(_), NoValue::Absent) => false,
        (Some(value), NoValue::Null) => value.is_null(),
        (Some(value), NoValue::Empty) => value.is_null() || value == "",
    };
    relevance.status && before != after
        || relevance.deleting && !new["metadata"]["deletionTimestamp"].is_null()
        || relevance.changed.iter().any(|name| before.get(name) != after.get(name))
        || relevance
            .missing
            .iter()
            .any(|missing| missing.places.iter().all(|path| is_missing(path, missing.none)))
        || relevance.null.iter().any(|path| at(path).is_some_and(Value::is_null))
}
