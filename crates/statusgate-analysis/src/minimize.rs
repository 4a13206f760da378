//! Many combinations in few lines.
//!
//! A line covers all combinations of a set of answers for each fact. First, lines with the same outcome that
//! differ in one fact are merged. Then each line is made as general as possible, so that lines with the same
//! outcome may overlap, and lines that are no longer needed are removed. This is greedy: the smallest table
//! would be hard to find. So several orders of the facts are tried, and the shortest result is used.

use std::collections::HashMap;

use indexmap::IndexSet;

use crate::facts::{Answer, Represents, Space};

/// One line: for each fact the answers that it covers (as bits), and the outcome.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cube {
    /// For each fact a bit for each answer.
    pub answers: Vec<u128>,
    /// The index of the outcome.
    pub outcome: usize,
}

/// The outcome of one combination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Row {
    /// Its facts exclude each other, so any line may cover it.
    CannotBe,
    /// No line may cover it.
    NotWanted,
    /// The index of the outcome.
    Outcome(usize),
}

/// The lines of a table; `rows` has one for each combination.
pub(crate) fn collapse(space: &Space, rows: &[Row]) -> Vec<Cube> {
    let cubes = rows.iter().enumerate().filter_map(|(number, row)| match row {
        Row::Outcome(outcome) => {
            let answers = space.combination(number).iter().map(|at| 1 << at).collect();
            Some(Cube { answers, outcome: *outcome })
        }
        Row::CannotBe | Row::NotWanted => None,
    });
    let all: Vec<Cube> = cubes.collect();
    let count = space.facts.len();
    let orders = (0..count.max(1)).flat_map(|shift| {
        let forward: Vec<usize> = (0..count).map(|at| (at + shift) % count).collect();
        let backward = forward.iter().rev().copied().collect();
        [forward, backward]
    });
    let merged = orders.map(|order| merge(all.clone(), &order));
    let mut best = merged.min_by_key(Vec::len).unwrap_or_default();
    if best.len() <= MAX_EXPANDED {
        best = expand(space, rows, best);
    }
    best.sort_by_cached_key(|cube| {
        // As the answers stand in the columns, from left to right.
        (cube.answers.iter().map(|bits| bits.trailing_zeros()).collect::<Vec<_>>(), cube.clone())
    });
    best
}

/// A larger table is too long to read, so it is not shortened.
const MAX_EXPANDED: usize = 256;

/// Makes each line as general as possible, and removes those that others cover.
fn expand(space: &Space, rows: &[Row], cubes: Vec<Cube>) -> Vec<Cube> {
    let mut strides = vec![1; space.facts.len()];
    for at in (1..strides.len()).rev() {
        strides[at - 1] = strides[at] * space.facts[at].len();
    }
    let mut general: Vec<Cube> = Vec::new();
    for mut cube in cubes {
        for fact in 0..space.facts.len() {
            for answer in 0..space.facts[fact].len() {
                if cube.includes(fact, answer) {
                    continue;
                }
                let before = cube.answers[fact];
                cube.answers[fact] = 1 << answer;
                let fits = cube.all(&strides, &mut |number| match rows[number] {
                    Row::Outcome(outcome) => outcome == cube.outcome,
                    Row::CannotBe => true,
                    Row::NotWanted => false,
                });
                cube.answers[fact] = if fits { before | 1 << answer } else { before };
            }
        }
        if !general.contains(&cube) {
            general.push(cube);
        }
    }
    // The largest first.
    general.sort_by_key(|cube| cube.answers.iter().map(|bits| bits.count_zeros()).sum::<u32>());
    let mut covered: Vec<u16> = vec![0; rows.len()];
    for cube in &general {
        cube.all(&strides, &mut |number| {
            covered[number] = covered[number].saturating_add(1);
            true
        });
    }
    // Starts with the smallest: a line is removed if other lines cover all its combinations.
    let mut kept = Vec::new();
    while let Some(cube) = general.pop() {
        let needed =
            !cube.all(&strides, &mut |number| covered[number] > 1 || rows[number] == Row::CannotBe);
        if needed {
            kept.push(cube);
        } else {
            cube.all(&strides, &mut |number| {
                covered[number] = covered[number].saturating_sub(1);
                true
            });
        }
    }
    kept
}

fn merge(mut cubes: Vec<Cube>, order: &[usize]) -> Vec<Cube> {
    loop {
        let before = cubes.len();
        for fact in order {
            // The lines that differ only in this fact.
            let mut groups: HashMap<Cube, u128> = HashMap::with_capacity(cubes.len());
            for mut cube in cubes {
                let answers = std::mem::take(&mut cube.answers[*fact]);
                *groups.entry(cube).or_default() |= answers;
            }
            let merged = groups.into_iter().map(|(mut cube, answers)| {
                cube.answers[*fact] = answers;
                cube
            });
            cubes = merged.collect();
        }
        if cubes.len() == before {
            // The order of a map is random; that of a page must not be.
            cubes.sort();
            return cubes;
        }
    }
}

impl Cube {
    /// Whether it covers an answer of a fact.
    pub fn includes(&self, fact: usize, answer: usize) -> bool {
        self.answers.get(fact).is_some_and(|bits| bits & (1 << answer) != 0)
    }

    /// Whether `holds` is true for the number of every combination that it covers.
    fn all(&self, strides: &[usize], holds: &mut impl FnMut(usize) -> bool) -> bool {
        fn walk(
            answers: &[u128],
            strides: &[usize],
            number: usize,
            holds: &mut impl FnMut(usize) -> bool,
        ) -> bool {
            let (Some((bits, answers)), Some((stride, strides))) =
                (answers.split_first(), strides.split_first())
            else {
                return holds(number);
            };
            let mut rest = *bits;
            while rest != 0 {
                let at = rest.trailing_zeros() as usize;
                rest &= rest - 1;
                if !walk(answers, strides, number + at * stride, holds) {
                    return false;
                }
            }
            true
        }
        walk(&self.answers, strides, 0, holds)
    }

    /// The answers of a fact in words; empty if the fact makes no difference.
    pub fn label(&self, space: &Space, fact: usize) -> String {
        let Some((_, answers)) = space.facts.get_index(fact) else { return String::new() };
        let (inside, outside): (Vec<usize>, Vec<usize>) =
            (0..answers.len()).partition(|at| self.includes(fact, *at));
        if outside.is_empty() {
            return String::new();
        }
        let is_clear = inside.len() > 3 || !has_rest(answers, &outside);
        let (inside, outside) = (labels(answers, &inside), labels(answers, &outside));
        let words = |labels: IndexSet<String>| crate::words::any_of(labels.into_iter());
        if outside.len() < inside.len() && is_clear {
            format!("not {}", words(outside))
        } else {
            words(inside)
        }
    }
}

/// The labels of some answers. All reasons of a condition are shown as its status alone, and a reason of all
/// statuses as one.
fn labels(answers: &[Answer], places: &[usize]) -> IndexSet<String> {
    let all = |wanted: &dyn Fn(&Answer) -> bool| {
        let mut wanted = answers.iter().enumerate().filter(|(_, answer)| wanted(answer));
        wanted.all(|(at, _)| places.contains(&at))
    };
    let labels = places.iter().filter_map(|at| answers.get(*at)).map(|answer| match answer {
        Answer::Condition { status, .. }
            if all(
                &|other| matches!(other, Answer::Condition { status: own, .. } if own == status),
            ) =>
        {
            status.name().to_owned()
        }
        Answer::Condition { status, reason, represents } => {
            let label = answer.label();
            let is_of_all = all(&|other| match other {
                Answer::Condition { reason: own, represents: what, .. } => {
                    what == represents && (own == reason || *what == Represents::Others)
                }
                _ => false,
            });
            if is_of_all { label.replacen(status.name(), "any", 1) } else { label }
        }
        _ => answer.label(),
    });
    labels.collect()
}

/// Whether one of some answers represents all values that no predicate names: "not another" is unclear.
fn has_rest(answers: &[Answer], places: &[usize]) -> bool {
    places.iter().filter_map(|at| answers.get(*at)).any(|answer| {
        matches!(
            answer,
            Answer::Value { represents: Represents::Others, .. }
                | Answer::Condition { represents: Represents::Others, .. }
        )
    })
}
