//! A convention among its documents: the policies that follow it, and the condition types that its lists declare.

use std::collections::BTreeSet;

use statusgate_core::language::{Glob, any_of};
use statusgate_core::policy::PolicySet;
use statusgate_core::policy::convention::Convention;

use super::{Kind, Remark};
use crate::scene::{Stage, yaml};

pub(super) fn of_convention(policies: &PolicySet, convention: &Convention) -> Vec<Remark> {
    let name = &convention.name;
    let unused = policies.is_unused(name).then(|| {
        let message = format!("no policy follows the convention {name}");
        Remark::new(Kind::UnusedConvention, Vec::new(), message, None)
    });
    let undeclared = undeclared(&convention.undeclared);
    unused.into_iter().chain(unselected(policies, convention)).chain(undeclared).collect()
}

/// The note about condition types that no list declares.
pub(super) fn undeclared(types: &BTreeSet<String>) -> Option<Remark> {
    let names = any_of(types.iter().cloned());
    let message = format!("no list declares the condition type {names}, but predicates name it");
    (!types.is_empty()).then(|| Remark::new(Kind::UndeclaredType, Vec::new(), message, None))
}

/// The fault of a list that no policy selects, if objects that a policy selects have no list.
fn unselected(policies: &PolicySet, convention: &Convention) -> Option<Remark> {
    let all = policies.policies().iter();
    let followers = all.filter(|policy| policy.convention.name == convention.name);
    let entries = followers.flat_map(|policy| &policy.resources);
    let selected: Vec<Glob> = entries.flat_map(|entry| &entry.api_versions).cloned().collect();
    let mut versions = selected.iter().map(Glob::sample);
    let version = versions.find(|version| convention.lists(version).next().is_none())?;
    let list = convention
        .conditions
        .iter()
        .find(|list| !Glob::any_overlap(&list.api_versions, &selected))?;
    let message = format!(
        "the list {} is only for {}, which no policy selects: nothing judges the conditions of {version}",
        list.path,
        any_of(list.api_versions.iter().map(ToString::to_string)),
    );
    let stage = Stage::of(convention, &version);
    let mut object = stage.bare();
    stage.set_element(&mut object, list, stage.condition(list, "Example", "True"));
    let rules = vec![list.shape_rule.to_string()];
    Some(Remark::new(Kind::UnselectedList, rules, message, Some(yaml(&object))))
}
