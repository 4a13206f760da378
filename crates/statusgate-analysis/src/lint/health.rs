//! Health: every rule decides in some state, every phase has a health, and kstatus agrees.

use std::collections::BTreeMap;
use std::ptr;

use super::rules::{MAX_SEARCH, MAX_WRITES};
use super::{Kind, Lint, Remark};
use crate::facts::Question;
use crate::scene::Scene;
use crate::table::health_space;
use statusgate_core::engine::{Health, HealthStatus};
use statusgate_core::kstatus::{Fork, compute};
use statusgate_core::language::{AnyWord, Predicate};
use statusgate_core::model::Json;
use statusgate_core::policy::convention::Health as Rules;

pub(super) fn rules_decide(lint: &Lint<'_>) -> Vec<Remark> {
    let Some(health) = lint.convention.health.as_deref() else { return Vec::new() };
    (0..health.rules.len()).filter_map(|at| lint.never_decides(health, at)).collect()
}

pub(super) fn phases_have_a_health(lint: &Lint<'_>) -> Vec<Remark> {
    let convention = lint.convention;
    let (Some(health), Some(phases)) = (&convention.health, &convention.phase) else {
        return Vec::new();
    };
    if health.rules.iter().all(|rule| rule.when.is_some()) {
        return Vec::new();
    }
    let whens = health.rules.iter().filter_map(|rule| rule.when.as_ref());
    let named = whens.flat_map(Predicate::questions).flat_map(|word| match word {
        AnyWord::Phase(word) => &word.phase[..],
        AnyWord::OldPhase(word) => &word.old_phase[..],
        _ => &[],
    });
    let named: Vec<&String> = named.collect();
    let without = phases.phases.iter().filter(|phase| {
        health.phases.iter().all(|(name, _)| *name != *phase.name) && !named.contains(&&phase.name)
    });
    let remarks = without.map(|phase| {
        let message = format!("phase {} has no health, and no rule names it", phase.name);
        Remark::new(Kind::PhaseWithoutHealth, vec![phase.rule.to_string()], message, None)
    });
    remarks.collect()
}

/// Some conventions want this; kstatus and Flux cannot express anything else.
pub(super) fn objects_without_a_status_are_not_current(lint: &Lint<'_>) -> Vec<Remark> {
    let scene = Scene::of(lint.stage.bare(), None);
    let decided = lint.stage.health(&scene);
    let is_current = decided.is_some_and(|(_, health)| health.class.is == HealthStatus::Current);
    let message = "an object without a status is current, before its controller has seen it";
    Vec::from_iter(is_current.then(|| {
        Remark::new(Kind::CurrentWithoutStatus, Vec::new(), message, Some(scene.to_yaml()))
    }))
}

/// Tries states that differ in what the rules read, and shows an object for the first pair of results that differ.
pub(super) fn health_is_the_kstatus_result(lint: &Lint<'_>) -> Vec<Remark> {
    let Some(health) = lint.convention.health.as_deref() else { return Vec::new() };
    let mut pairs: BTreeMap<String, String> = BTreeMap::new();
    for stage in &lint.stages {
        let space = health_space(lint.convention, stage.version, &health.rules);
        let numbers = space.scattered(MAX_WRITES).inspect(|_| lint.count(1));
        for scene in stage.scenes(&space, numbers) {
            let Some((_, health)) = stage.health(&scene) else { continue };
            let result = compute(&Json::from(&scene.object), 0, Fork::default());
            let kstatus = Health::of_kstatus(&result).class;
            if kstatus.is != health.class.is {
                let name = result.map_or("an error", |result| result.status.name());
                let pair = format!("{} but kstatus {name}", health.class);
                pairs.entry(pair).or_insert_with(|| scene.to_yaml());
            }
        }
    }
    let Some((_, witness)) = pairs.first_key_value() else { return Vec::new() };
    let names: Vec<&str> = pairs.keys().map(String::as_str).collect();
    let message = format!("health differs from kstatus in some state: {}", names.join(", "));
    vec![Remark::new(Kind::HealthDiffersFromKstatus, Vec::new(), message, Some(witness.clone()))]
}

impl Lint<'_> {
    /// The fault of a rule that provably decides in no state. Its witness is a state in which it holds and an
    /// earlier rule decides, otherwise one in which it does not hold.
    fn never_decides(&self, health: &Rules, at: usize) -> Option<Remark> {
        let rule = health.rules.get(at)?;
        let (when, path) = (rule.when.as_ref()?, &rule.list);
        let (mut earlier, mut other) = (None, None);
        for stage in &self.stages {
            let space = health_space(self.convention, stage.version, health.rules.get(..=at)?);
            let size = space.size().filter(|size| *size <= MAX_SEARCH && !space.open)?;
            let list = path.as_ref().and_then(|path| self.convention.list_at(path, stage.version));
            // The states have no lists inside lists.
            if list.is_some_and(|list| list.outer.is_some()) {
                return None;
            }
            self.count(size);
            let question = Question { predicate: when, list, of_element: false };
            for scene in stage.scenes(&space, 0..size) {
                match stage.health(&scene)?.0 {
                    Some(decides) if ptr::eq(decides, rule) => return None,
                    Some(decides) if earlier.is_none() && stage.holds(&scene, &question) => {
                        earlier = Some((&decides.name, scene.to_yaml()));
                    }
                    _ if other.is_none() => other = Some(scene.to_yaml()),
                    _ => {}
                }
            }
        }
        let message = format!("the rule {} about health decides in no state", rule.name);
        let (message, witness) = match earlier {
            Some((name, witness)) => (format!("{message}: {name} comes first"), witness),
            None => (message, other?),
        };
        Some(Remark::new(Kind::UnreachableHealth, Vec::new(), message, Some(witness)))
    }
}
