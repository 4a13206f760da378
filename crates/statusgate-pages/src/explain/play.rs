//! A convention in one state: what it says of a combination of facts.

use serde::Serialize;

use statusgate_analysis::facts::{Answer, Represents, Space, version_of};
use statusgate_analysis::scene::{Stage, yaml};
use statusgate_analysis::table::state_space;
use statusgate_core::engine::{Facts, Health, admits, disagreement, imposed, repaired};
use statusgate_core::policy::convention::{Convention, PhaseRules};

/// All facts that the phase and the health depend on.
#[derive(Debug)]
pub struct Play<'c> {
    convention: &'c Convention,
    version: String,
    space: Space,
}

/// What a convention says of a state.
#[derive(Debug, Serialize)]
pub struct State<'c> {
    /// The object in that state.
    pub object: String,
    /// The stored object, if the facts describe it.
    pub old: Option<String>,
    /// The plural of its resource, if the facts name it.
    pub plural: String,
    /// The phase that the mutating webhook sets, independent of the writer.
    pub imposed: Option<&'c str>,
    /// The phases, highest priority first.
    pub phases: Vec<PhaseState<'c>>,
    /// The health; `None` if the convention does not define it.
    #[serde(flatten)]
    pub health: Option<Health>,
    /// The rule that decides the health.
    #[serde(rename = "healthRule")]
    pub health_rule: Option<&'c str>,
}

/// A phase in a state.
#[derive(Debug, Serialize)]
pub struct PhaseState<'c> {
    /// Its name.
    pub phase: &'c str,
    /// Why it is not admissible.
    pub contradiction: Option<String>,
    /// The rule that decides this.
    pub rule: &'c str,
    /// The phase that Repair chooses instead.
    pub repair: Option<&'c str>,
}

/// A fact for a person: its name and the labels of its answers.
#[derive(Debug, Serialize)]
pub struct FactText {
    label: String,
    answers: Vec<String>,
    /// The answer to begin with.
    #[serde(skip)]
    pub(crate) first: usize,
}

impl<'c> Play<'c> {
    /// The facts of a convention.
    pub fn of(convention: &'c Convention) -> Self {
        let version = version_of(convention);
        let space = state_space(convention, &version);
        Self { convention, version, space }
    }

    /// The facts, in the order of the answers of [`Self::state`].
    pub fn facts(&self) -> Vec<FactText> {
        let facts = self.space.facts.iter().map(|(fact, answers)| {
            let absent = answers.iter().position(|answer| *answer == Answer::Absent);
            let others = answers.iter().position(|answer| {
                matches!(answer, Answer::Value { represents: Represents::Others, .. })
            });
            FactText {
                label: fact.label(),
                answers: answers.iter().map(Answer::label).collect(),
                first: absent.or(others).unwrap_or(0),
            }
        });
        facts.collect()
    }

    /// The state with these answers, one for each fact; `None` if they exclude each other.
    pub fn state(&self, answers: &[usize]) -> Option<State<'_>> {
        let Self { convention, version, space } = self;
        let stage = Stage::of(convention, version);
        let scene = stage.scene(space, answers)?;
        let (imposed, phases) = match &convention.phase {
            Some(rules) => stage.look(&scene, None, |facts| phases(rules, facts))?,
            None => (None, Vec::new()),
        };
        let (rule, health) = stage.health(&scene).unzip();
        Some(State {
            object: yaml(&scene.object),
            old: scene.old.as_ref().map(yaml),
            imposed,
            phases,
            health,
            health_rule: rule.flatten().map(|rule| rule.name.as_str()),
            plural: scene.plural,
        })
    }
}

fn phases<'c>(
    rules: &'c PhaseRules,
    facts: &Facts<'_, '_>,
) -> (Option<&'c str>, Vec<PhaseState<'c>>) {
    let states = rules.phases.iter().map(|phase| {
        let supposed = Facts { phase: Some(&phase.name), ..*facts };
        let is_admissible = admits(facts, phase);
        PhaseState {
            phase: &phase.name,
            contradiction: (!is_admissible).then(|| disagreement(phase, &supposed)),
            rule: &phase.rule,
            repair: repaired(rules, &supposed).filter(|_| !is_admissible),
        }
    });
    let imposed = imposed(rules, facts).map(|phase| phase.name.as_str());
    (imposed, states.collect())
}
