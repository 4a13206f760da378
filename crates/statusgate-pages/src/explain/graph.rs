//! The moves between phases, as a Mermaid diagram.

use serde_json::{Value, json};

use statusgate_analysis::facts::{Answer, Fact, version_of};
use statusgate_analysis::line::rules;
use statusgate_analysis::scene::Stage;
use statusgate_analysis::table::{Table, space_of};
use statusgate_analysis::words;
use statusgate_core::policy::convention::{Convention, PhaseRules};

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
        graph.remark(convention, rules);
        Some(graph)
    }

    /// As data: the phases, those that can be the first, those that every other phase may become, and the other moves
    /// with the rules that judge them.
    pub fn to_json(&self) -> Value {
        let moves = self.other_moves().into_iter();
        let moves = moves.map(|(from, to, rules)| json!({"from": from, "to": to, "rules": rules}));
        json!({
            "phases": self.phases,
            "first": self.at_first(),
            "fromAll": self.reached_from_all(),
            "moves": moves.collect::<Value>(),
        })
    }

    /// The phases that can be the first.
    fn at_first(&self) -> Vec<usize> {
        let count = self.phases.len();
        (0..count).filter(|to| self.allowed[count][*to]).collect()
    }

    /// The phases that every other phase may become.
    fn reached_from_all(&self) -> Vec<usize> {
        let count = self.phases.len();
        let from_all =
            (0..count).filter(|to| (0..count).all(|from| from == *to || self.allowed[from][*to]));
        from_all.collect()
    }

    /// The other allowed moves, and those that some rules judge.
    fn other_moves(&self) -> Vec<(usize, usize, &[String])> {
        let (count, from_all) = (self.phases.len(), self.reached_from_all());
        let pairs = (0..count).flat_map(|from| (0..count).map(move |to| (from, to)));
        let allowed = pairs.filter(|(from, to)| from != to && self.allowed[*from][*to]);
        let moves = allowed.map(|(from, to)| (from, to, self.remarks[from][to].as_slice()));
        moves.filter(|(_, to, rules)| !rules.is_empty() || !from_all.contains(to)).collect()
    }

    /// As a `stateDiagram-v2`. A move that every other phase may make is drawn once.
    pub fn to_mermaid(&self) -> String {
        let mut out = "stateDiagram-v2\n".to_owned();
        let (at_first, from_all) = (self.at_first(), self.reached_from_all());
        if !from_all.is_empty() {
            out.push_str("    state \"any phase\" as any\n");
        }
        let mut draw = |from: &str, to: &str| out.push_str(&format!("    {from} --> {to}\n"));
        if at_first.len() == self.phases.len() && !from_all.is_empty() {
            draw("[*]", "any");
        } else {
            at_first.iter().for_each(|to| draw("[*]", &self.phases[*to]));
        }
        from_all.iter().for_each(|to| draw("any", &self.phases[*to]));
        for (from, to, rules) in self.other_moves() {
            let (from, to) = (&self.phases[from], &self.phases[to]);
            match rules {
                [] => draw(from, to),
                rules => draw(from, &format!("{to}: {}", rules.join(", "))),
            }
        }
        out
    }

    /// Adds the rules that judge some moves and not others.
    fn remark(&mut self, convention: &Convention, phases: &PhaseRules) {
        let old = Fact::Phase { old: true };
        let version = version_of(convention);
        let stage = Stage::of(convention, &version);
        for clause in rules(convention) {
            let question = clause.question();
            let space = space_of(convention, &version, &[question]);
            let (Some(size), true) = (space.size(), space.facts.contains_key(&old)) else {
                continue;
            };
            let mut moves: Vec<(usize, usize)> = Vec::new();
            for number in 0..size {
                let combination = space.combination(number);
                let phase = |old| {
                    index_of(phases, space.answer(&Fact::Phase { old }, &combination)?.value()?)
                };
                let (Some(from), Some(to)) = (phase(true), phase(false)) else { continue };
                if from != to
                    && !moves.contains(&(from, to))
                    && let Some(scene) = stage.scene(&space, &combination)
                    && stage.holds(&scene, &question)
                {
                    moves.push((from, to));
                }
            }
            // A rule that judges all moves does not distinguish them.
            let count = self.phases.len();
            if moves.len() < count * count.saturating_sub(1) {
                let (action, name) = (words::action(clause.action), words::short_id(clause.id));
                for (from, to) in moves {
                    self.remarks[from][to].push(format!("{action} {name}"));
                }
            }
        }
    }
}

fn index_of(rules: &PhaseRules, name: &Value) -> Option<usize> {
    rules.phases.iter().position(|phase| *name == *phase.name)
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
    let old = Fact::Phase { old: true };
    let table = Table::of_phase(convention, rules).ok();
    let Some(table) = table.filter(|table| table.space.facts.contains_key(&old)) else {
        return vec![vec![true; count]; count + 1];
    };
    let mut allowed = vec![vec![false; count]; count + 1];
    for (number, outcome) in table.iter() {
        let combination = table.space.combination(number);
        let stored = table.space.answer(&old, &combination).and_then(Answer::value);
        let from = stored.map_or(Some(count), |name| index_of(rules, name));
        let Some(row) = from.and_then(|from| allowed.get_mut(from)) else { continue };
        for (cell, admissible) in row.iter_mut().zip(&outcome.admissible) {
            *cell |= *admissible;
        }
    }
    allowed
}
