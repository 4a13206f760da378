//! Checks of one value that exclude each other.

use indexmap::IndexSet;
use serde_json::{Value, json};

use super::{Kind, Lint, Remark, each_once};
use crate::facts::{Left, left};
use crate::scene::{Stage, put, yaml};
use statusgate_core::model::Pointer;
use statusgate_core::policy::convention::{ConditionList, Convention};
use statusgate_core::policy::{Check, Disposition, Field};

/// Some value passes all checks of a field, or of a member of conditions.
pub(super) fn values_pass_all_checks(lint: &Lint<'_>) -> Vec<Remark> {
    let mut found = of_fields(&lint.stage, None);
    for list in &lint.convention.conditions {
        let keys = format!("key of {}", list.root().field());
        found.extend(excluding(&keys, &list.keys, |key| {
            let mut object = lint.stage.bare();
            let path = list.path.with_element(key.as_str().unwrap_or_default());
            put(&mut object, &path, json!({}));
            object
        }));
        found.extend(list.members.iter().filter_map(|(member, checks)| {
            let name = format!("member {member} of {}", list.a_noun());
            excluding(&name, checks, |value| with_member(&lint.stage, list, member, value))
        }));
    }
    found
}

/// The checks of the value at a path. The least generation is one of them.
pub(super) fn checks_at(convention: &Convention, path: &Pointer) -> Vec<Check> {
    let own = convention.fields.iter().filter(|field| *field.path == *path);
    let generation = convention.generation.as_ref().filter(|rules| {
        let mut paths = rules.paths.iter().flatten();
        paths.any(|own| **own == *path)
    });
    let below = generation.and_then(|rules| {
        let check = serde_json::from_value(json!({"minimum": rules.minimum?})).ok()?;
        Some(Check { rule: rules.below.as_ref()?.rule.clone(), ..check })
    });
    own.map(|field| field.check.clone()).chain(below).collect()
}

/// Compares the checks of each field. With checks that a policy `added`, only faults of these count.
pub(super) fn of_fields(stage: &Stage<'_>, added: Option<&[Field]>) -> Vec<Remark> {
    let fields = added.unwrap_or(&stage.convention.fields);
    let paths: IndexSet<&Pointer> = fields.iter().map(|field| &*field.path).collect();
    let faults = paths.into_iter().filter_map(|path| {
        let checks = checks_at(stage.convention, path);
        let fault = excluding(path.field(), &checks, |value| {
            let mut object = stage.bare();
            put(&mut object, path, value);
            object
        })?;
        let is_own = fault.rules.iter().any(|id| {
            added.is_none_or(|added| added.iter().any(|field| *field.check.rule == **id))
        });
        is_own.then_some(fault)
    });
    faults.collect()
}

/// The fault of the checks of one value, if there is one. To forbid an optional value is no fault.
fn excluding(name: &str, checks: &[Check], witness: impl Fn(Value) -> Value) -> Option<Remark> {
    let checks: Vec<&Check> =
        checks.iter().filter(|check| check.action() == Disposition::Deny).collect();
    let required = checks.iter().find(|check| check.required).copied();
    if required.is_none() && checks.iter().any(|check| check.forbidden) {
        return None;
    }
    let rules = |chosen: &[&Check]| {
        each_once(chosen.iter().copied().chain(required).map(|check| check.rule.to_string()))
    };
    match left(&checks) {
        Left::Value(_) => None,
        Left::Nothing(core) => {
            let so =
                if required.is_some() { "but it is required" } else { "so it can never be set" };
            let message = format!("no value of {name} passes all of these checks, {so}");
            let example = checks.iter().flat_map(|check| &check.values).next();
            let example = example.map_or_else(|| "example".into(), |value| value.value().clone());
            let witness = yaml(&witness(example));
            Some(Remark::new(Kind::Contradiction, rules(&core), message, Some(witness)))
        }
        Left::NotProven => {
            let message =
                format!("not proven: no value of {name} was found that passes these checks");
            Some(Remark::new(Kind::NotProven, rules(&checks), message, None))
        }
    }
}

fn with_member(stage: &Stage<'_>, list: &ConditionList, member: &str, value: Value) -> Value {
    let mut object = stage.bare();
    let mut condition = stage.condition(list, "Example", "True");
    condition[member] = value;
    stage.set_element(&mut object, list, condition);
    object
}
