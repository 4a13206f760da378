//! Checks of one value that exclude each other: nothing passes all of them.

use serde_json::{Value, json};

use super::{Kind, Lint, Remark};
use crate::explain::{Left, Stage, left};
use crate::model::Pointer;
use crate::policy::convention::ConditionList;
use crate::policy::{Action, Check, FieldRule};

impl Lint<'_> {
    /// The checks of fields, and of the members of conditions.
    pub(super) fn checks(&mut self) {
        let mut found = of_fields(&self.stage, &self.convention.fields, None);
        for list in &self.convention.conditions {
            found.extend(list.members.iter().filter_map(|(member, checks)| {
                let checks: Vec<&Check> = checks.iter().collect();
                let witness =
                    |stage: &Stage<'_>, value| witness_of_member(stage, list, member, value);
                let name = format!("member {member} of a condition");
                excluding(&self.stage, &name, &checks, witness)
            }));
        }
        self.remarks.extend(found);
    }
}

/// The faults of the checks of fields. Those that a policy `added` stand beside those of its convention,
/// and only what they have brought in is said of it.
pub(super) fn of_fields(
    stage: &Stage<'_>,
    fields: &[FieldRule],
    added: Option<&[FieldRule]>,
) -> Vec<Remark> {
    let mut paths: Vec<&Pointer> = Vec::new();
    for field in added.unwrap_or(fields) {
        if !paths.contains(&&field.path) {
            paths.push(&field.path);
        }
    }
    let faults = paths.into_iter().filter_map(|path| {
        let all =
            fields.iter().chain(added.unwrap_or_default()).filter(|field| field.path == *path);
        let checks: Vec<&Check> = all.map(|field| &field.check).collect();
        let witness = |stage: &Stage<'_>, value| {
            let mut object = stage.bare();
            stage.set(&mut object, path, value);
            object
        };
        let fault = excluding(stage, path.field(), &checks, witness)?;
        // Said of the convention already.
        let is_own = |id: &String| {
            added.is_none_or(|added| added.iter().any(|field| field.check.rule == *id))
        };
        fault.rules.iter().any(is_own).then_some(fault)
    });
    faults.collect()
}

/// What is wrong with the checks of one value, if anything is. What may be absent and has no other
/// value is forbidden, which is said in another way where it is meant.
fn excluding(
    stage: &Stage<'_>,
    name: &str,
    checks: &[&Check],
    witness: impl Fn(&Stage<'_>, Value) -> Value,
) -> Option<Remark> {
    let mut checks: Vec<&Check> =
        checks.iter().copied().filter(|check| check.action == Action::Deny).collect();
    let required = checks.iter().find(|check| check.required).copied();
    if required.is_none() && checks.iter().any(|check| check.forbidden) {
        return None;
    }
    // One rule id may stand for several: they are told by their places.
    checks.dedup_by(|one, other| std::ptr::eq(*one, *other));
    let rules = |places: &[usize]| {
        let chosen = places.iter().filter_map(|at| checks.get(*at).copied());
        let mut rules: Vec<String> =
            chosen.chain(required).map(|check| check.rule.clone()).collect();
        rules.sort();
        rules.dedup();
        rules
    };
    match left(&checks) {
        Left::Value(_) => None,
        Left::Nothing(core) => {
            let without =
                if required.is_some() { "and it is required" } else { "it can never be set" };
            let message = format!("no value of {name} passes these checks, {without}");
            let example = checks.iter().flat_map(|check| &check.values).next();
            let example = example.map_or("example", String::as_str);
            let witness = serde_saphyr::to_string(&witness(stage, example.into())).ok();
            Some(Remark { kind: Kind::Contradiction, rules: rules(&core), message, witness })
        }
        Left::NotProven => {
            let message =
                format!("no value of {name} was found that passes its checks; there may be some");
            let all: Vec<usize> = (0..checks.len()).collect();
            Some(Remark { kind: Kind::NotProven, rules: rules(&all), message, witness: None })
        }
    }
}

fn witness_of_member(stage: &Stage<'_>, list: &ConditionList, member: &str, value: Value) -> Value {
    let mut object = stage.bare();
    let mut condition = stage.condition(list, "Example", "True");
    condition[member] = value;
    stage.set(&mut object, &list.path, json!([condition]));
    object
}
