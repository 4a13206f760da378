//! The moves between phases, as a Mermaid diagram.

use serde_json::{Value, json};

use super::clauses::{Clause, rules};
use super::facts::{Answer, Fact, Question, version_of};
use super::scene::Stage;
use super::table::{Table, has_evidence, space_of};
use super::words;
use crate::policy::convention::{Convention, PhaseRules};

/// The moves between the phases of a convention.
#[derive(Clone, Debug)]
pub struct Graph {
    /// The names of the phases. The row after the last phase is "no phase".
    phases: Vec<String>,
    /// `[from][to]`.
    allowed: Vec<Vec<bool>>,
    /// The rules that judge an allowed move, `[from][to]`.
    remarks: Vec<Vec<Vec<String>>>,
}

impl Graph {
    /// The moves of a convention: those of its table; without one, those that evidence about the stored phase
    /// admits in some state. `None` if the convention has no phase.
    pub fn of(convention: &Convention) -> Option<Self> {
        let rules = convention.phase.as_ref()?;
        let phases: Vec<String> = rules.phases.iter().map(|phase| phase.name.clone()).collect();
        let count = phases.len();
        let mut graph = Self {
            allowed: allowed(convention, rules),
            remarks: vec![vec![Vec::new(); count]; count + 1],
            phases,
        };
        graph.remark(convention);
        Some(graph)
    }

    /// As data: the phases, those that can be the first, those that every other phase may become, and the other moves
    /// with the rules that judge them.
    pub fn to_json(&self) -> Value {
        let count = self.phases.len();
        let from_all = self.reached_from_all();
        let at_first: Vec<usize> = (0..count).filter(|to| self.allowed[count][*to]).collect();
        let pairs = (0..count).flat_map(|from| (0..count).map(move |to| (from, to)));
        let moves = pairs.filter_map(|(from, to)| {
            let rules = &self.remarks[from][to];
            let is_drawn = from != to
                && self.allowed[from][to]
                && (!rules.is_empty() || !from_all.contains(&to));
            is_drawn.then(|| json!({"from": from, "to": to, "rules": rules}))
        });
        let moves: Value = moves.collect();
        json!({"phases": self.phases, "first": at_first, "fromAll": from_all, "moves": moves})
    }

    /// The phases that every other phase may become.
    fn reached_from_all(&self) -> Vec<usize> {
        let count = self.phases.len();
        let from_all =
            (0..count).filter(|to| (0..count).all(|from| from == *to || self.allowed[from][*to]));
        from_all.collect()
    }

    /// As a `stateDiagram-v2`. A move that every other phase may make is drawn once.
    pub fn to_mermaid(&self) -> String {
        let mut out = "stateDiagram-v2\n".to_owned();
        let count = self.phases.len();
        let from_all = self.reached_from_all();
        if !from_all.is_empty() {
            out.push_str("    state \"any phase\" as any\n");
        }
        let at_first = (0..count).filter(|to| self.allowed[count][*to]);
        let at_first: Vec<&str> = at_first.map(|to| self.phases[to].as_str()).collect();
        if at_first.len() == count && !from_all.is_empty() {
            out.push_str("    [*] --> any\n");
        } else {
            at_first.iter().for_each(|to| out.push_str(&format!("    [*] --> {to}\n")));
        }
        for to in &from_all {
            out.push_str(&format!("    any --> {}\n", self.phases[*to]));
        }
        for from in 0..count {
            for to in (0..count).filter(|to| *to != from && self.allowed[from][*to]) {
                let remarks = self.remarks[from][to].join(", ");
                if remarks.is_empty() && from_all.contains(&to) {
                    continue;
                }
                let label = if remarks.is_empty() { remarks } else { format!(": {remarks}") };
                out.push_str(&format!(
                    "    {} --> {}{label}\n",
                    self.phases[from], self.phases[to]
                ));
            }
        }
        out
    }

    /// Adds the rules that judge some moves and not others.
    fn remark(&mut self, convention: &Convention) {
        let old = Fact::Phase { old: true };
        let version = version_of(convention);
        let stage = Stage { convention, version: &version };
        for clause in rules(convention) {
            let question = clause.question();
            let space = space_of(convention, &version, &[question]);
            let (Some(size), true) = (space.size(), space.facts.contains_key(&old)) else {
                continue;
            };
            let mut moves: Vec<(usize, usize)> = Vec::new();
            for number in 0..size {
                let combination = space.combination(number);
                let phase = |old| space.answer(&Fact::Phase { old }, &combination);
                let place = |answer: Option<&Answer>| match answer {
                    Some(Answer::Value { value, .. }) => {
                        self.phases.iter().position(|name| value.as_str() == Some(name))
                    }
                    _ => None,
                };
                let (Some(from), Some(to)) = (place(phase(true)), place(phase(false))) else {
                    continue;
                };
                if from != to
                    && !moves.contains(&(from, to))
                    && fires(&stage, &space, &combination, &question)
                {
                    moves.push((from, to));
                }
            }
            // A rule that judges all moves does not distinguish them.
            let count = self.phases.len();
            if moves.len() < count * count.saturating_sub(1) {
                moves.into_iter().for_each(|(from, to)| self.say(from, to, &clause));
            }
        }
    }

    fn say(&mut self, from: usize, to: usize, clause: &Clause<'_>) {
        let name = words::short_id(clause.id);
        self.remarks[from][to].push(format!("{} {name}", words::action(clause.action)));
    }
}

fn fires(
    stage: &Stage<'_>,
    space: &super::facts::Space,
    combination: &[usize],
    question: &Question<'_>,
) -> bool {
    stage.scene(space, combination).is_some_and(|scene| stage.holds(&scene, question))
}

/// `[from][to]`, the last row for no phase.
fn allowed(convention: &Convention, rules: &PhaseRules) -> Vec<Vec<bool>> {
    let count = rules.phases.len();
    if let Some(moves) = &rules.moves {
        let names = rules.phases.iter().map(|phase| phase.name.as_str()).chain([""]);
        return names
            .map(|from| rules.phases.iter().map(|to| moves.allow(from, &to.name)).collect())
            .collect();
    }
    let all = vec![vec![true; count]; count + 1];
    if !has_evidence(rules) {
        return all;
    }
    let Ok(table) = Table::of_phase(convention, rules) else { return all };
    let old = Fact::Phase { old: true };
    if !table.space.facts.contains_key(&old) {
        return all;
    }
    let mut allowed = vec![vec![false; count]; count + 1];
    for (number, outcome) in table.iter() {
        let combination = table.space.combination(number);
        let from = match table.space.answer(&old, &combination) {
            Some(Answer::Value { value, .. }) => {
                rules.phases.iter().position(|phase| value.as_str() == Some(&phase.name))
            }
            _ => Some(count),
        };
        let Some(row) = from.and_then(|from| allowed.get_mut(from)) else { continue };
        for (cell, admissible) in row.iter_mut().zip(&outcome.admissible) {
            *cell |= *admissible;
        }
    }
    allowed
}
