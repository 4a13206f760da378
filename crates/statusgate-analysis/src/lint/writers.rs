//! No rule locks out writers that change phase and conditions in two requests: a model check.
//!
//! Such writers send the two requests in either order, and repeat a rejected one. They start at a state in
//! agreement, and their goal is a state that one request could reach. They must arrive in every order.
//! They arrive at the wanted phase with the wanted conditions, or at the phase that Repair sets instead.
//!
//! Rules cannot distinguish states of the same kind, so one state of each kind is enough.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::Value;

use super::gate::Write;
use super::{Kind, Lint, Remark, each_once, one_per_cause};
use crate::facts::{Fact, Question, Space};
use crate::line::Clause;
use crate::scene::{Scene, yaml};
use crate::table::{has_evidence, phase_questions};
use statusgate_core::engine::{Action, Facts, Truth, admits, repaired};
use statusgate_core::policy::Disposition;
use statusgate_core::policy::convention::{Moves, PhaseRules, Writes};

/// With more states, nothing is checked. The largest built-in convention has 448.
const MAX_STATES: usize = 1 << 12;

/// With more kinds of states, nothing is checked: the check visits all pairs.
const MAX_KINDS: usize = 64;

pub(super) fn two_step_writers_arrive(lint: &Lint<'_>) -> Vec<Remark> {
    let convention = lint.convention;
    let Some(rules) = &convention.phase else { return Vec::new() };
    if convention.writes == Some(Writes::Together) {
        return Vec::new();
    }
    // Only rules that see the phase and other parts of the status can come between the two.
    let of_phase = lint.rejecting().filter(|clause| {
        let facts = lint.stage.space(&[clause.question()]).facts;
        facts.keys().any(|fact| matches!(fact, Fact::Phase { .. }))
    });
    let between: Vec<&Clause<'_>> = of_phase.collect();
    let moves = rules.moves.as_ref().is_some_and(Moves::are_denied);
    if !has_evidence(rules) && between.is_empty() && !moves {
        return Vec::new();
    }
    let relevant = lint.rejecting_rules(rules);
    let Some(mut model) = Model::new(lint, rules, between, relevant) else {
        return vec![Remark::not_proven(Vec::new(), "the model of two-step writers")];
    };
    let locked_out = [Action::Repair, Action::Warn].into_iter().flat_map(|action| {
        let found = model.check(action).into_iter();
        found.map(move |stuck| (stuck.rules.clone(), format!("{action:?}"), stuck))
    });
    let mut remarks = one_per_cause(locked_out, |_, actions, stuck| {
        // With both settings, the rules always reject.
        if actions.contains(" or ") { stuck } else { with_disagreement(&actions, stuck) }
    });
    // One is enough: a policy has to name such writers.
    let dead_end = model.check(Action::Deny).into_iter().find(|stuck| {
        !stuck.rules.iter().all(|rule| remarks.iter().any(|known| known.rules.contains(rule)))
    });
    remarks
        .extend(dead_end.map(|stuck| {
            with_disagreement("Deny", Remark { kind: Kind::TwoStepDeadEnd, ..stuck })
        }));
    lint.count(model.known.len());
    remarks
}

/// The remark about a writer that does not arrive with this setting of a policy.
fn with_disagreement(action: &str, stuck: Remark) -> Remark {
    let message = format!("with `disagreement: {action}`, {}", stuck.message);
    Remark { message, ..stuck }
}

/// The states of a convention by kind, and the writes between them.
struct Model<'l, 'c> {
    lint: &'l Lint<'c>,
    rules: &'l PhaseRules,
    /// The rules that can come between the two requests.
    between: Vec<&'l Clause<'c>>,
    relevant: Vec<String>,
    /// One object of each kind, without a phase.
    states: Vec<Value>,
    /// For each state its plural and its behaviour.
    kinds: Vec<(String, Behaviour)>,
    known: HashMap<(Action, Vertex, Vertex), Result<usize, Vec<String>>>,
}

/// A vertex of the search: a state and a phase, by their numbers.
type Vertex = (usize, usize);

/// How a state behaves: for each stored phase and each phase, whether it is admissible, what Repair
/// chooses, and which rules are violated.
type Behaviour = Vec<Vec<(bool, Option<String>, Vec<bool>)>>;

impl<'l, 'c> Model<'l, 'c> {
    fn new(
        lint: &'l Lint<'c>,
        rules: &'l PhaseRules,
        between: Vec<&'l Clause<'c>>,
        relevant: Vec<String>,
    ) -> Option<Self> {
        let questions = phase_questions(rules);
        let questions: Vec<Question<'_>> =
            questions.chain(between.iter().map(|clause| clause.question())).collect();
        let space = state_space(lint.stage.space(&questions));
        let size = space.size().filter(|size| *size <= MAX_STATES)?;
        let (states, kinds, known) = (Vec::new(), Vec::new(), HashMap::new());
        let mut model = Self { lint, rules, between, relevant, states, kinds, known };
        for scene in lint.stage.scenes(&space, 0..size) {
            let behaviour = model.behaviour(&scene.object, &scene.plural);
            let kind = (scene.plural, behaviour);
            if model.kinds.contains(&kind) {
                continue;
            }
            if model.kinds.len() == MAX_KINDS {
                return None;
            }
            model.kinds.push(kind);
            model.states.push(scene.object);
        }
        Some(model)
    }

    fn behaviour(&self, object: &Value, plural: &str) -> Behaviour {
        let stage = &self.lint.stage;
        let rows = self.rules.phases.iter().map(|stored| {
            let mut old = object.clone();
            stage.set_phase(&mut old, &stored.name);
            let scene = Scene { plural: plural.to_owned(), ..Scene::of(object.clone(), Some(old)) };
            let look = stage.look(&scene, None, |facts| {
                let phases = self.rules.phases.iter().map(|phase| {
                    let facts = Facts { phase: Some(&phase.name), ..*facts };
                    let violated = self.between.iter().map(|clause| {
                        clause.list.is_none() && facts.ask(&clause.when) == Truth::True
                    });
                    let fits = admits(&facts, phase);
                    let repaired = repaired(self.rules, &facts).map(str::to_owned);
                    (fits, repaired, violated.collect())
                });
                phases.collect::<Vec<_>>()
            });
            look.unwrap_or_default()
        });
        rows.collect()
    }

    fn check(&mut self, disagreement: Action) -> Vec<Remark> {
        let mut found: Vec<Remark> = Vec::new();
        let phases = self.rules.phases.len();
        for start in 0..self.states.len() {
            for goal in 0..self.states.len() {
                // A write does not move an object to another resource.
                if start == goal || self.kinds[start].0 != self.kinds[goal].0 {
                    continue;
                }
                for from in 0..phases {
                    // With the mildest action, so that the start is one that an object can have.
                    if !self.fits(Action::Warn, start, from, from) {
                        continue;
                    }
                    for to in 0..phases {
                        if !self.is_goal(disagreement, goal, from, to) {
                            continue;
                        }
                        if let Some(stuck) = self.stuck(disagreement, (start, from), (goal, to))
                            && !found.iter().any(|known| known.rules == stuck.rules)
                        {
                            found.push(stuck);
                        }
                    }
                }
            }
        }
        found
    }

    /// Whether one request can change a phase to this one with these conditions, and the next write keeps it.
    fn is_goal(&self, disagreement: Action, goal: usize, from: usize, to: usize) -> bool {
        let phases = &self.rules.phases;
        let moves = self.rules.moves.as_ref();
        let allowed = moves.is_none_or(|moves| {
            from == to || !moves.are_denied() || moves.allow(&phases[from].name, &phases[to].name)
        });
        allowed && self.fits(disagreement, goal, from, to) && self.fits(disagreement, goal, to, to)
    }

    /// Whether a phase is admissible in a state with this stored phase, and no rule rejects it.
    fn fits(&self, disagreement: Action, state: usize, from: usize, to: usize) -> bool {
        let (admissible, _, violated) = &self.kinds[state].1[from][to];
        let mut clauses = violated.iter().zip(&self.between).filter(|(violated, _)| **violated);
        *admissible
            && !clauses.any(|(_, clause)| match disagreement {
                Action::Deny => clause.can_reject(),
                _ => clause.action == Disposition::Deny,
            })
    }

    /// The rules that keep the writers from their goal, if they never reach it after some sequence of
    /// requests.
    fn stuck(&mut self, disagreement: Action, start: Vertex, goal: Vertex) -> Option<Remark> {
        let mut vertices = vec![start];
        let mut steps: Vec<(usize, usize)> = Vec::new();
        let mut arrived: Vec<usize> = Vec::new();
        let mut rejections: Vec<(usize, Vec<String>)> = Vec::new();
        let mut at = 0;
        while let Some(vertex) = vertices.get(at).copied() {
            if vertex == goal {
                arrived.push(at);
                at += 1;
                continue;
            }
            let wanted = [(vertex.0, goal.1), (goal.0, vertex.1)];
            for (writes_phase, wanted) in [(true, wanted[0]), (false, wanted[1])] {
                if wanted == vertex {
                    continue;
                }
                match self.write(disagreement, vertex, wanted) {
                    Ok(phase) => {
                        let next = (wanted.0, phase);
                        // Repair has corrected the phase for the wanted conditions: they arrive.
                        if writes_phase && vertex.0 == goal.0 && phase != goal.1 {
                            arrived.push(at);
                        }
                        let known = vertices.iter().position(|known| *known == next);
                        let to = known.unwrap_or_else(|| {
                            vertices.push(next);
                            vertices.len() - 1
                        });
                        steps.push((at, to));
                    }
                    Err(rules) => rejections.push((at, rules)),
                }
            }
            at += 1;
        }
        let mut live = arrived;
        while let Some(more) =
            steps.iter().find(|(from, to)| live.contains(to) && !live.contains(from))
        {
            live.push(more.0);
        }
        let lost = (0..vertices.len()).find(|at| !live.contains(at))?;
        let from_here = reachable(lost, &steps);
        rejections.retain(|(at, _)| from_here.contains(at));
        let rules = each_once(rejections.into_iter().flat_map(|(_, rules)| rules));
        let name = |phase: usize| self.rules.phases[phase].name.as_str();
        let (from, to, here) = (name(start.1), name(goal.1), vertices[lost]);
        let rest = if here.0 == goal.0 { "after" } else { "before" };
        let message = format!(
            "a writer that changes phase {from} to {to} in two requests stays at {} {rest} it writes the rest of the status",
            name(here.1)
        );
        let (start, goal) = (self.object(start), self.object(goal));
        let witness = format!("# initial\n{}---\n# wanted\n{}", yaml(&start), yaml(&goal));
        Some(Remark::new(Kind::TwoStepLockout, rules, message, Some(witness)))
    }

    fn object(&self, (state, phase): Vertex) -> Value {
        let mut object = self.states[state].clone();
        self.lint.stage.set_phase(&mut object, &self.rules.phases[phase].name);
        object
    }

    /// The stored phase after a write, or the rules that reject it.
    fn write(
        &mut self,
        disagreement: Action,
        old: Vertex,
        new: Vertex,
    ) -> Result<usize, Vec<String>> {
        let key = (disagreement, old, new);
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let stage = &self.lint.stage;
        let (before, after) = (self.object(old), self.object(new));
        let resource = stage.resource(&self.kinds[old.0].0);
        let write = Write { resource, old: Cow::Owned(before), new: &after };
        let (stored, rules) = write.review(self.lint.gate.policies(disagreement));
        let relevant: Vec<String> =
            rules.iter().filter(|rule| self.relevant.contains(rule)).cloned().collect();
        let written = if !relevant.is_empty() {
            Err(relevant)
        } else if rules.is_empty() {
            let phase = stage.phase_of(&stored);
            let index = self.rules.phases.iter().position(|known| Some(&*known.name) == phase);
            Ok(index.unwrap_or(new.1))
        } else {
            // Rejected only because of values that lint made up.
            Ok(new.1)
        };
        self.known.insert(key, written.clone());
        written
    }
}

fn reachable(from: usize, steps: &[(usize, usize)]) -> Vec<usize> {
    let mut found = vec![from];
    let mut at = 0;
    while let Some(vertex) = found.get(at).copied() {
        at += 1;
        for (_, to) in steps.iter().filter(|(from, _)| *from == vertex) {
            if !found.contains(to) {
                found.push(*to);
            }
        }
    }
    found
}

/// The facts of a state. It excludes the stored object, which is the previous state; the phase, which has its
/// own request; and deletion, during which agreement never denies.
fn state_space(mut space: Space) -> Space {
    for (fact, answers) in space.facts.clone() {
        space.facts.entry(fact.written()).or_insert(answers);
    }
    space.facts.retain(|fact, _| {
        !fact.is_stored() && !matches!(fact, Fact::Phase { .. } | Fact::Deleting)
    });
    space
}
