//! Many combinations in few lines.
//!
//! A line stands for all combinations of a set of answers for each fact. Lines are put together
//! where they differ in one fact only and have the same outcome. That is greedy and not the
//! smallest table there is (which would be hard to find), so it is tried in several orders of the
//! facts, and the shortest result is taken.

use std::collections::BTreeMap;

use super::facts::{Answer, Space};

/// One line: for each fact the answers it stands for (as bits), and the outcome.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cube {
    /// For each fact a bit for each answer. Facts have no more than 64 answers that differ.
    pub answers: Vec<u64>,
    /// What follows.
    pub outcome: usize,
}

/// The lines of a table. `rows` has an outcome for each combination; those without one cannot be,
/// and do not matter.
pub(crate) fn collapse(space: &Space, rows: &[Option<usize>]) -> Vec<Cube> {
    let cube = |number: usize, outcome: usize| Cube {
        answers: space.combination(number).iter().map(|at| 1 << (at % 64)).collect(),
        outcome,
    };
    let all: Vec<Cube> = rows
        .iter()
        .enumerate()
        .filter_map(|(number, outcome)| Some(cube(number, (*outcome)?)))
        .collect();
    let count = space.facts.len();
    let orders = (0..count.max(1)).flat_map(|shift| {
        let forward: Vec<usize> = (0..count).map(|at| (at + shift) % count).collect();
        let backward = forward.iter().rev().copied().collect();
        [forward, backward]
    });
    let best = orders.map(|order| merge(all.clone(), &order)).min_by_key(Vec::len);
    let mut best = best.unwrap_or_default();
    best.sort();
    best
}

fn merge(mut cubes: Vec<Cube>, order: &[usize]) -> Vec<Cube> {
    loop {
        let before = cubes.len();
        for fact in order {
            // Those that are the same but for this fact.
            let mut groups: BTreeMap<Cube, u64> = BTreeMap::new();
            for mut cube in cubes {
                let answers = std::mem::take(&mut cube.answers[*fact]);
                *groups.entry(cube).or_default() |= answers;
            }
            cubes = groups
                .into_iter()
                .map(|(mut cube, answers)| {
                    cube.answers[*fact] = answers;
                    cube
                })
                .collect();
        }
        if cubes.len() == before {
            return cubes;
        }
    }
}

impl Cube {
    /// The answers of a fact in words; empty where it makes no difference.
    #[must_use]
    pub fn label(&self, space: &Space, fact: usize) -> String {
        let (Some(bits), Some(answers)) = (self.answers.get(fact), space.answers.get(fact)) else {
            return String::new();
        };
        let is_in = |at: usize| bits & (1 << (at % 64)) != 0;
        let (inside, outside): (Vec<usize>, Vec<usize>) =
            (0..answers.len()).partition(|at| is_in(*at));
        let words = |places: &[usize]| super::words::any_of(labels(answers, places).into_iter());
        if outside.is_empty() {
            String::new()
        } else if outside.len() * 2 < answers.len() && outside.len() < inside.len() {
            format!("not {}", words(&outside))
        } else {
            words(&inside)
        }
    }
}

/// The labels of some answers. Of a condition with all its reasons the status says enough.
fn labels(answers: &[Answer], places: &[usize]) -> Vec<String> {
    let status = |answer: &Answer| match answer {
        Answer::Condition { status, .. } => Some(*status),
        _ => None,
    };
    let of_status = |wanted| {
        answers.iter().enumerate().filter(move |(_, answer)| status(answer) == Some(wanted))
    };
    let mut labels: Vec<String> = Vec::new();
    for answer in places.iter().filter_map(|at| answers.get(*at)) {
        let label = match status(answer) {
            Some(status) if of_status(status).all(|(at, _)| places.contains(&at)) => {
                status.name().to_owned()
            }
            _ => answer.label(),
        };
        if !labels.contains(&label) {
            labels.push(label);
        }
    }
    labels
}
