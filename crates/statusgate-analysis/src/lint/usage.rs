//! A convention among its documents: the policies that follow it, and the condition types that its lists declare.

use std::collections::BTreeSet;

use statusgate_core::language::{AnyWord, Glob, Predicate, any_of};
use statusgate_core::model::Pointer;
use statusgate_core::policy::PolicySet;
use statusgate_core::policy::convention::Convention;
use statusgate_core::source::tree::is_near;

use super::{Kind, Remark};
use crate::line::clauses;
use crate::scene::{Stage, yaml};
use crate::table::phase_questions;

pub(super) fn of_convention(policies: &PolicySet, convention: &Convention) -> Vec<Remark> {
    let name = &convention.name;
    let unused = policies.is_unused(name).then(|| {
        let message = format!("no policy follows the convention {name}");
        Remark::new(Kind::UnusedConvention, Vec::new(), message, None)
    });
    let undeclared = undeclared(&convention.undeclared);
    let similar = similar_fields(&convention.paths, &BTreeSet::new());
    let unselected = unselected(policies, convention).into_iter();
    let unselected = unselected.chain(unselected_resources(policies, convention));
    unused.into_iter().chain(unselected).chain(undeclared).chain(similar).collect()
}

/// How many fields of a document are compared with each other. Real documents have some hundred.
const MAX_FIELDS: usize = 1000;

/// The notes about two fields with names that differ in one letter.
pub(super) fn similar_fields(own: &BTreeSet<Pointer>, others: &BTreeSet<Pointer>) -> Vec<Remark> {
    let own = || own.iter().take(MAX_FIELDS);
    let similar = own().flat_map(|one| {
        let others = others.iter().take(MAX_FIELDS).chain(own().filter(move |other| *other > one));
        let similar = others.filter(move |other| {
            let both = one.tokens().iter().zip(other.tokens());
            let mut differing = both.filter(|(one, other)| one != other);
            one.tokens().len() == other.tokens().len()
                && matches!((differing.next(), differing.next()), (Some((one, other)), None) if is_near(one, other))
        });
        similar.map(move |other| {
            let message = format!("{one} and {other} are similar: is one of them misspelled?");
            Remark::new(Kind::UndeclaredValue, Vec::new(), message, None)
        })
    });
    similar.collect()
}

/// The note about names of resources in predicates, if no policy of the convention selects such a resource.
fn unselected_resources(policies: &PolicySet, convention: &Convention) -> Option<Remark> {
    let followers = policies.policies().iter().filter(|of| of.convention.name == convention.name);
    let entries = followers.flat_map(|policy| &policy.resources);
    let selected: Vec<Glob> = entries.flat_map(|entry| &entry.resources).cloned().collect();
    let clauses = clauses(convention);
    let health = convention.health.iter().flat_map(|health| &health.rules);
    let health = health.filter_map(|rule| rule.when.as_ref());
    let phase = convention.phase.iter().flat_map(|rules| phase_questions(rules));
    let of_clauses = clauses.iter().map(|clause| &*clause.when);
    let of_phase = phase.map(|question| question.predicate);
    let predicates = of_clauses.chain(health).chain(of_phase);
    let named = predicates.flat_map(Predicate::questions).flat_map(|word| match word {
        AnyWord::ResourceName(word) => &word.resource[..],
        _ => &[],
    });
    let unknown = named.filter(|glob| !Glob::any_overlap(std::slice::from_ref(*glob), &selected));
    let unknown: BTreeSet<String> = unknown.map(ToString::to_string).collect();
    let is_open = selected.is_empty() || unknown.is_empty();
    let message = format!(
        "predicates name the resource {}, which no policy selects",
        any_of(unknown.into_iter())
    );
    (!is_open).then(|| Remark::new(Kind::UndeclaredValue, Vec::new(), message, None))
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
    let without = versions.clone().find(|version| convention.lists(version).next().is_none());
    // A list for each version: the others are for objects that no policy of these documents selects.
    let lists = convention.conditions.iter().filter(|list| !list.api_versions.is_empty());
    let (used, unused): (Vec<_>, Vec<_>) =
        lists.partition(|list| Glob::any_overlap(&list.api_versions, &selected));
    let version = without.or_else(|| versions.next().filter(|_| used.is_empty()))?;
    let list = unused.first()?;
    let message = format!(
        "the list {} is only for {}, which no policy selects: nothing judges the {}s of {version}",
        list.path,
        any_of(list.api_versions.iter().map(ToString::to_string)),
        list.noun(),
    );
    let stage = Stage::of(convention, &version);
    let mut object = stage.bare();
    stage.set_element(&mut object, list, stage.condition(list, "Example", "True"));
    let rules = vec![list.shape_rule.to_string()];
    Some(Remark::new(Kind::UnselectedList, rules, message, Some(yaml(&object))))
}
