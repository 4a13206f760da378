//! Visits every state of a model and finds the states from which its goal is out of reach.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// States, steps between them, and a goal. The default state comes first.
pub(crate) trait Model {
    /// A state.
    type World: Clone + Default + Ord;

    /// All possible next steps. The text of a denied write contains "is denied".
    fn steps(&mut self, world: &Self::World) -> Vec<Step<Self::World>>;

    fn goal(world: &Self::World) -> bool;
}

/// A step and the state after it.
pub(crate) struct Step<W> {
    pub(crate) what: String,
    pub(crate) to: W,
    /// Whether a way to the goal may rely on this step.
    pub(crate) helps: bool,
}

/// The result of a search.
pub(crate) struct Exploration {
    pub(crate) states: usize,
    /// Whether any state is a goal.
    pub(crate) live: bool,
    /// The nearest state from which the goal is out of reach.
    pub(crate) dead_end: Option<DeadEnd>,
}

pub(crate) struct DeadEnd {
    /// The steps from the start to this state.
    way: Vec<String>,
    /// The writes that are denied in this state and after it.
    pub(crate) denied: BTreeSet<String>,
}

impl fmt::Display for DeadEnd {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.way {
            writeln!(formatter, "  {step}")?;
        }
        writeln!(formatter, "  and in every state after this one:")?;
        self.denied.iter().try_for_each(|step| writeln!(formatter, "    {step}"))
    }
}

pub(crate) fn explore<M: Model>(model: &mut M) -> Exploration {
    let mut numbers: BTreeMap<M::World, usize> = BTreeMap::from([(M::World::default(), 0)]);
    let mut worlds = vec![M::World::default()];
    // The step that first reached each state, and the steps from each state.
    let mut arrival: Vec<Option<(usize, String)>> = vec![None];
    let mut arrows: Vec<Vec<(String, usize, bool)>> = Vec::new();
    while arrows.len() < worlds.len() {
        let here = arrows.len();
        let mut out = Vec::new();
        for Step { what, to, helps } in model.steps(&worlds[here].clone()) {
            let number = *numbers.entry(to.clone()).or_insert_with(|| {
                worlds.push(to);
                arrival.push(Some((here, what.clone())));
                worlds.len() - 1
            });
            out.push((what, number, helps));
        }
        arrows.push(out);
    }
    // Goes backwards from the goal until nothing is added. The other states are dead ends.
    let mut alive: Vec<bool> = worlds.iter().map(M::goal).collect();
    let live = alive.contains(&true);
    loop {
        let saved: Vec<usize> = (0..worlds.len())
            .filter(|at| {
                !alive[*at] && arrows[*at].iter().any(|(_, to, helps)| *helps && alive[*to])
            })
            .collect();
        if saved.is_empty() {
            break;
        }
        for at in saved {
            alive[at] = true;
        }
    }
    // States are numbered by their distance from the start.
    let dead_end = alive.iter().position(|alive| !alive).map(|nearest| {
        let mut way = Vec::new();
        let mut at = nearest;
        while let Some((earlier, what)) = &arrival[at] {
            way.push(what.clone());
            at = *earlier;
        }
        way.reverse();
        let (mut met, mut denied) = (BTreeSet::from([nearest]), BTreeSet::new());
        let mut queue = vec![nearest];
        while let Some(at) = queue.pop() {
            for (what, to, helps) in &arrows[at] {
                if what.contains("is denied") {
                    denied.insert(what.clone());
                }
                if *helps && met.insert(*to) {
                    queue.push(*to);
                }
            }
        }
        DeadEnd { way, denied }
    });
    Exploration { states: worlds.len(), live, dead_end }
}
