//! The writes with which a search begins.

use std::collections::HashSet;

use indexmap::IndexSet;
use json_patch::jsonptr::PointerBuf;
use serde_json::{Value, json};

use super::super::rules::MAX_WRITES;
use super::changes::Variation;
use super::{CLEAN, Candidate, KEPT, Search, keep_best};
use crate::facts::{Fact, LATER, PAST, Question, STATUSES, Space, matching};
use crate::line::{Clause, clauses};
use crate::scene::{Scene, put};
use crate::table::space_of;
use statusgate_core::policy::cel::{CelRule, Part};
use statusgate_core::policy::convention::{ConditionList, PhaseRules, PhaseValue};

/// Combinations that are judged if some of them violate the rule.
const MAX_ASKED: usize = 256;

/// A type that no convention names.
pub(super) const OTHER: &str = "Example";

/// The generation of the objects.
pub(super) const GENERATION: i64 = 5;

impl<'s> Search<'s> {
    /// What the rule asks for: the facts of its predicate, or of the evidence of its phase.
    fn space(&self) -> Option<Space> {
        let question = match &self.clause {
            Some(clause) => clause.question(),
            None => Question::plain(self.phase()?.necessary.as_ref()?),
        };
        let version = self.stage.version;
        let exists = question.list.is_none_or(|list| list.applies_to(version));
        exists.then(|| space_of(self.stage.convention, version, &[question]))
    }

    /// The phase with the evidence that the rule is about.
    fn phase(&self) -> Option<&'s PhaseValue> {
        let phases = self.stage.convention.phase.iter().flat_map(|rules| &rules.phases);
        phases.into_iter().find(|phase| *phase.rule == *self.id)
    }

    /// The fields that rules ask for, with the values that they distinguish; those of this rule first.
    pub(super) fn asked_variations(&self) -> Vec<Variation> {
        let (convention, version) = (self.stage.convention, self.stage.version);
        let clauses = clauses(convention);
        let phases = convention.phase.iter().flat_map(|rules| &rules.phases);
        let evidence = phases.filter_map(|phase| phase.necessary.as_ref()).map(Question::plain);
        let questions = clauses.iter().map(Clause::question).chain(evidence);
        // The rules of the pool do not have predicates.
        let others = questions.filter(|question| !question.of_element && self.id != CLEAN);
        let spaces = others.map(|question| space_of(convention, version, &[question]));
        let mut variations: Vec<Variation> = Vec::new();
        for space in self.space().into_iter().chain(spaces) {
            for (fact, answers) in &space.facts {
                let Fact::Field { path, .. } = fact else { continue };
                let place = path.to_string();
                if path.tokens().iter().any(|name| name == "-1")
                    || variations.iter().any(|(known, _)| *known == place)
                {
                    continue;
                }
                let values = answers.iter().map(|answer| answer.value().cloned());
                variations.push((place, values.collect()));
            }
        }
        variations.extend(self.policy.rules.iter().flat_map(|rule| self.variations_of(rule)));
        // Many rules read the same place.
        let mut known: HashSet<(String, Option<Value>)> = HashSet::new();
        for (place, values) in &mut variations {
            values.retain(|value| known.insert((place.clone(), value.clone())));
        }
        variations.retain(|(_, values)| !values.is_empty());
        variations
    }

    /// The values that a rule in CEL reads. It can distinguish any values, so these are only a guess.
    pub(in super::super) fn variations_of(&self, rule: &CelRule) -> Vec<Variation> {
        let paths = rule.expression.reads.written.iter().flat_map(Part::paths);
        let places = paths.filter(|path| path.len() > 1).map(PointerBuf::from_tokens);
        let values: Vec<Option<Value>> = guesses(rule).into_iter().map(Some).collect();
        places.map(|place| (place.to_string(), values.clone())).collect()
    }

    /// The best writes among the combinations of what the rule asks for.
    pub(super) fn asked_writes(&self) -> Vec<Candidate> {
        let Some(mut space) = self.space() else { return Vec::new() };
        let list =
            self.clause.as_ref().filter(|clause| clause.of_element).and_then(|clause| clause.list);
        let mut found: Vec<Candidate> = Vec::new();
        for touched in [false, true].into_iter().take(if space.changed > 0 { 2 } else { 1 }) {
            space.touched = touched;
            let scenes = self.stage.scenes(&space, space.scattered(MAX_WRITES));
            for (count, mut scene) in scenes.enumerate() {
                let clean = found.iter().filter(|found| found.cost.0 == 0).count();
                if clean >= KEPT || (count > MAX_ASKED && found.len() >= KEPT) {
                    break;
                }
                if let Some(list) = list {
                    self.stage.complete(&space, list, &mut scene);
                }
                if let Some(phase) = self.phase() {
                    self.stage.set_phase(&mut scene.object, &phase.name);
                }
                if self.wrong(&scene, true).1 {
                    keep_best(&mut found, self.candidate(scene));
                }
            }
        }
        found
    }

    /// Writes of one condition, one phase or one field, and with changes that may violate a rule.
    pub(in super::super) fn simple_writes(&self) -> impl Iterator<Item = Scene> {
        let empty =
            std::iter::once_with(|| self.with_changes(Scene::of(self.object(|_| {}), None)));
        let of_lists = self.lists().flat_map(move |list| {
            let known = list.types.values().enumerate().map(|(at, kind)| (kind.sample(), at == 0));
            let kinds = known.chain([(OTHER.to_owned(), true)]);
            kinds.map(move |(kind, all)| self.conditions(list, &kind, all))
        });
        let rules = self.stage.convention.phase.iter();
        let of_phases = rules.flat_map(move |rules| {
            rules.phases.iter().map(move |phase| self.phase_writes(rules, phase))
        });
        let of_fields = self.paths().into_iter().flat_map(move |path| {
            let values = self.values(path).into_iter();
            let objects = values.map(move |value| self.object(|object| put(object, path, value)));
            objects.flat_map(move |object| {
                let olds = [None, Some(object.clone())].into_iter();
                olds.map(move |old| self.with_changes(Scene::of(object.clone(), old)))
            })
        });
        empty.chain(of_lists).chain(of_phases).chain(of_fields).flatten()
    }

    fn with_changes(&self, scene: Scene) -> Vec<Scene> {
        let mut writes = self.changes(&scene, true);
        writes.push(scene);
        writes
    }

    pub(in super::super) fn lists(&self) -> impl Iterator<Item = &'s ConditionList> + use<'s> {
        self.stage.convention.lists(self.stage.version)
    }

    /// An object, with a generation if the convention has rules about generations.
    pub(super) fn object(&self, fill: impl FnOnce(&mut Value)) -> Value {
        let mut object = self.stage.bare();
        if self.stage.convention.generation.is_some() {
            object["metadata"]["generation"] = GENERATION.into();
        }
        object["status"] = json!({});
        fill(&mut object);
        object
    }

    /// One condition of each status: without a stored status, unchanged, and changed. The changes that may
    /// violate a rule are tried with few of them, because most rules are the same for all types.
    fn conditions(&self, list: &ConditionList, kind: &str, all: bool) -> Vec<Scene> {
        let mut writes: Vec<Scene> = Vec::new();
        let of = |status: &str, since: &str| {
            let mut condition = self.stage.condition(list, kind, status);
            if let Some(time) = condition.get_mut(list.time_member()) {
                *time = since.into();
            }
            if list.members.contains_key("observedGeneration") {
                condition["observedGeneration"] = GENERATION.into();
            }
            self.object(|object| self.stage.set_element(object, list, condition))
        };
        let first = Scene::of(of("True", PAST), None);
        let same = Scene::of(of("True", PAST), Some(of("True", PAST)));
        let changed = Scene::of(of("False", LATER), Some(of("True", PAST)));
        for scene in [&first, &same, &changed] {
            if all {
                writes.extend(self.changes(scene, true));
            }
        }
        for scene in [&first, &same] {
            writes.extend(self.varied(scene, false));
            writes.extend(self.removals(scene));
        }
        for status in STATUSES {
            writes.push(Scene::of(of(status, PAST), None));
            let others = STATUSES.iter().filter(|other| **other != status);
            writes.extend(others.map(|other| Scene::of(of(status, LATER), Some(of(other, PAST)))));
        }
        writes.extend([first, same, changed]);
        writes
    }

    /// A phase: without a stored phase, and after each phase.
    fn phase_writes(&self, rules: &PhaseRules, to: &PhaseValue) -> Vec<Scene> {
        let mut writes: Vec<Scene> = Vec::new();
        let of = |phase: &PhaseValue, since: &str| {
            self.object(|object| {
                self.stage.set_phase(object, &phase.name);
                if let Some(time) = &rules.transition_time {
                    put(object, &time.path, since.into());
                }
                if let (Some(reason), Some(first)) = (&rules.reason, phase.reasons.first()) {
                    put(object, &reason.path, first.as_str().into());
                }
            })
        };
        let first = Scene::of(of(to, PAST), None);
        let same = Scene::of(of(to, PAST), Some(of(to, PAST)));
        for scene in [&first, &same] {
            writes.extend(self.varied(scene, false));
        }
        for from in rules.phases.iter().filter(|from| from.name != to.name) {
            writes.push(Scene::of(of(to, LATER), Some(of(from, PAST))));
            writes.push(Scene::of(of(to, PAST), Some(of(from, PAST))));
        }
        writes.extend([first, same]);
        writes
    }
}

/// Values that an expression may distinguish: those that it names, and some of each type.
fn guesses(rule: &CelRule) -> Vec<Value> {
    let (mut named, patterns) = rule.expression.literals();
    named.extend(patterns.iter().filter_map(|pattern| matching(pattern, 0)).map(Value::from));
    let numbers = named.iter().filter_map(Value::as_i64);
    let next = numbers.flat_map(|number| [number.saturating_sub(1), number.saturating_add(1)]);
    let some = json!([0, 5, 1000, "example", true, false, ["example"], {"example": "text"}]);
    let given = named.iter().chain(some.as_array().into_iter().flatten()).cloned();
    let values: IndexSet<Value> = given.chain(next.map(Value::from)).collect();
    values.into_iter().collect()
}
