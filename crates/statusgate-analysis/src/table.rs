//! Truth tables: every combination of the queried facts, and its outcome.

use std::hash::Hash;

use indexmap::IndexSet;

use crate::facts::{Collector, Fact, Question, Space, version_of};
use crate::line::{Clause, rules};
use crate::minimize::{self, Cube, Row};
use crate::scene::{Scene, Stage};
use statusgate_core::engine::{Facts, admits, imposed, repaired};
use statusgate_core::policy::convention::{Convention, HealthRule, PhaseRules, STORED};

/// The combinations of some facts, each with its outcome.
#[derive(Clone, Debug)]
pub struct Table<T> {
    /// The facts.
    pub space: Space,
    /// The different outcomes.
    pub outcomes: Vec<T>,
    /// For each combination its outcome; `None` if the facts exclude each other.
    pub rows: Vec<Option<usize>>,
}

/// The result of a combination for the phase. Phases are indices into those of the convention.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PhaseOutcome {
    /// The phase that the mutating webhook sets, independent of the writer.
    pub imposed: Option<usize>,
    /// For each phase whether it is admissible.
    pub admissible: Vec<bool>,
    /// For each phase that is not admissible, the phase that Repair chooses instead.
    pub repairs: Vec<Option<usize>>,
}

/// No larger table is built: it takes a second or two to build and collapse this many rows, and the largest
/// table of a real system has an eighth of them.
const MAX_ROWS: usize = 1 << 16;

/// Whether the convention has predicates about phases: evidence, or conditions of imposed phases or repairs.
pub fn has_evidence(rules: &PhaseRules) -> bool {
    phase_questions(rules).next().is_some()
}

impl Table<PhaseOutcome> {
    /// The truth table of the phase: every combination that evidence, imposed phases and repair steps
    /// distinguish.
    ///
    /// # Errors
    /// The space, if it has too many combinations.
    pub fn of_phase(convention: &Convention, rules: &PhaseRules) -> Result<Self, Box<Space>> {
        let version = version_of(convention);
        let stage = Stage::of(convention, &version);
        let mut collector = Collector::new(convention, &version);
        ask_about_phase(&mut collector, rules);
        let mut space = collector.into_space();
        // Each phase is an outcome of the table.
        space.facts.shift_remove(&Fact::Phase { old: false });
        Self::walk(space, &stage, MAX_ROWS, |scene| {
            stage.look(scene, None, |facts| {
                let place = |name: &str| rules.phases.iter().position(|phase| phase.name == name);
                let admissible: Vec<bool> =
                    rules.phases.iter().map(|phase| admits(facts, phase)).collect();
                let repairs = rules.phases.iter().zip(&admissible).map(|(phase, admissible)| {
                    let supposed = Facts { phase: Some(&phase.name), ..*facts };
                    repaired(rules, &supposed).filter(|_| !admissible).and_then(place)
                });
                PhaseOutcome {
                    imposed: imposed(rules, facts).and_then(|phase| place(&phase.name)),
                    repairs: repairs.collect(),
                    admissible,
                }
            })
        })
    }
}

impl Table<Vec<usize>> {
    /// The table of some rules: for each combination the rules that fire, by their place in the convention.
    ///
    /// # Errors
    /// The space, if it has more than `most` combinations.
    pub fn of_rules(
        convention: &Convention,
        numbers: &[usize],
        most: usize,
    ) -> Result<Self, Box<Space>> {
        let version = version_of(convention);
        let stage = Stage::of(convention, &version);
        let chosen: Vec<(usize, Clause<'_>)> =
            rules(convention).enumerate().filter(|(number, _)| numbers.contains(number)).collect();
        let questions: Vec<Question<'_>> =
            chosen.iter().map(|(_, clause)| clause.question()).collect();
        let space = space_of(convention, &version, &questions);
        Self::walk(space, &stage, most, |scene| {
            let firing = chosen.iter().filter(|(_, clause)| stage.holds(scene, &clause.question()));
            Some(firing.map(|(number, _)| *number).collect())
        })
    }
}

impl<T: Eq + Hash> Table<T> {
    fn walk(
        space: Space,
        stage: &Stage<'_>,
        most: usize,
        mut outcome: impl FnMut(&Scene) -> Option<T>,
    ) -> Result<Self, Box<Space>> {
        let Some(size) = space.size().filter(|size| *size <= most) else {
            return Err(space.into());
        };
        let mut outcomes: IndexSet<T> = IndexSet::new();
        let rows = (0..size).map(|number| {
            let scene = stage.scene(&space, &space.combination(number))?;
            Some(outcomes.insert_full(outcome(&scene)?).0)
        });
        Ok(Self { rows: rows.collect(), space, outcomes: outcomes.into_iter().collect() })
    }

    /// The combinations with their outcomes, without those that are impossible.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        (0..self.rows.len()).filter_map(|number| Some((number, self.outcome(number)?)))
    }

    /// The outcome of a combination; `None` if it is impossible.
    pub fn outcome(&self, number: usize) -> Option<&T> {
        self.outcomes.get((*self.rows.get(number)?)?)
    }

    /// The result of `view` for all combinations, in few lines. A line has answers only for the facts that make
    /// a difference. Combinations for which `view` returns `None` are in no line.
    pub fn collapsed<V: Clone + Eq + Hash>(
        &self,
        mut view: impl FnMut(&[usize], &T) -> Option<V>,
    ) -> Vec<(Cube, V)> {
        let mut views: IndexSet<V> = IndexSet::new();
        let all = (0..self.rows.len()).map(|number| match self.outcome(number) {
            None => Row::CannotBe,
            Some(outcome) => match view(&self.space.combination(number), outcome) {
                Some(seen) => Row::Outcome(views.insert_full(seen).0),
                None => Row::NotWanted,
            },
        });
        let rows: Vec<Row> = all.collect();
        let cubes = minimize::collapse(&self.space, &rows).into_iter();
        cubes
            .filter_map(|cube| views.get_index(cube.outcome).cloned().map(|view| (cube, view)))
            .collect()
    }
}

/// Adds the facts that the phase depends on. The stored phase is one of them if Repair can choose it.
fn ask_about_phase<'c>(collector: &mut Collector<'c>, rules: &'c PhaseRules) {
    phase_questions(rules).for_each(|question| collector.add(&question));
    if has_evidence(rules) && rules.repair.iter().any(|step| step.to == STORED) {
        collector.fact(Fact::Phase { old: true });
    }
}

/// The facts that some rules about health query.
pub(crate) fn health_space<'c>(
    convention: &'c Convention,
    version: &'c str,
    rules: &'c [HealthRule],
) -> Space {
    let mut collector = Collector::new(convention, version);
    ask_about_health(&mut collector, convention, version, rules);
    collector.into_space()
}

fn ask_about_health<'c>(
    collector: &mut Collector<'c>,
    convention: &'c Convention,
    version: &str,
    rules: &'c [HealthRule],
) {
    for rule in rules {
        let Some(predicate) = &rule.when else {
            collector.fact(Fact::Phase { old: false });
            continue;
        };
        let list = rule.list.as_ref().and_then(|path| convention.list_at(path, version));
        collector.add(&Question { predicate, list, of_element: false });
    }
}

/// The facts that the phase and the health depend on, and the written phase.
pub fn state_space(convention: &Convention, version: &str) -> Space {
    let mut collector = Collector::new(convention, version);
    collector.fact(Fact::Deleting);
    if let Some(rules) = &convention.phase {
        ask_about_phase(&mut collector, rules);
        collector.fact(Fact::Phase { old: false });
    }
    if let Some(health) = &convention.health {
        ask_about_health(&mut collector, convention, version, &health.rules);
        if convention.generation.as_ref().and_then(|rules| rules.own_path()).is_some() {
            collector.fact(Fact::Observed);
        }
    }
    collector.into_space()
}

/// The facts that a rule queries.
pub fn facts_of_rule(convention: &Convention, number: usize) -> Vec<Fact> {
    let version = version_of(convention);
    let Some(clause) = rules(convention).nth(number) else { return Vec::new() };
    space_of(convention, &version, &[clause.question()]).facts.into_keys().collect()
}

/// The space of the facts that some questions query.
pub fn space_of<'c>(
    convention: &'c Convention,
    version: &'c str,
    questions: &[Question<'c>],
) -> Space {
    let mut collector = Collector::new(convention, version);
    questions.iter().for_each(|question| collector.add(question));
    collector.into_space()
}

/// All predicates that the phase depends on.
pub(crate) fn phase_questions(rules: &PhaseRules) -> impl Iterator<Item = Question<'_>> {
    let phases = rules.phases.iter().flat_map(|phase| {
        let imposed = phase.imposed.iter().map(|imposed| &imposed.when);
        phase.necessary.iter().chain(&phase.sufficient).chain(imposed)
    });
    let steps = rules.repair.iter().filter_map(|step| step.when.as_ref());
    phases.chain(steps).map(Question::plain)
}
