//! A walk through every state of a model, and the states from which its goal is out of reach.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Something with states, steps between them, and a goal. It begins with the default state.
pub(crate) trait Model {
    /// Everything there is at one moment.
    type World: Clone + Default + Ord;

    /// Everything that can happen next. A refused write says "is refused" in its words.
    fn steps(&mut self, world: &Self::World) -> Vec<Step<Self::World>>;

    fn goal(world: &Self::World) -> bool;
}

/// Something that can happen, and what came of it.
pub(crate) struct Step<W> {
    pub(crate) what: String,
    pub(crate) to: W,
    /// Whether one may count on it on the way to the goal.
    pub(crate) helps: bool,
}

/// What a walk through all states came to.
pub(crate) struct Exploration {
    pub(crate) states: usize,
    /// Whether the goal can be reached at all.
    pub(crate) live: bool,
    /// The nearest state from which the goal cannot be reached, if there is one.
    pub(crate) dead_end: Option<DeadEnd>,
}

pub(crate) struct DeadEnd {
    /// The steps that lead there.
    way: Vec<String>,
    /// What is refused from there on, for ever.
    pub(crate) refused: BTreeSet<String>,
}

impl fmt::Display for DeadEnd {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.way {
            writeln!(formatter, "  {step}")?;
        }
        writeln!(formatter, "  and from here on, whatever happens:")?;
        self.refused.iter().try_for_each(|step| writeln!(formatter, "    {step}"))
    }
}

pub(crate) fn explore<M: Model>(model: &mut M) -> Exploration {
    let mut numbers: BTreeMap<M::World, usize> = BTreeMap::from([(M::World::default(), 0)]);
    let mut worlds = vec![M::World::default()];
    // How each state was first reached, and the arrows out of each.
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
    // Backwards from the goal, until nothing is added: what is left over is a dead end.
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
    // States are numbered by their distance from the start: the first is the nearest.
    let dead_end = alive.iter().position(|alive| !alive).map(|nearest| {
        let mut way = Vec::new();
        let mut at = nearest;
        while let Some((earlier, what)) = &arrival[at] {
            way.push(what.clone());
            at = *earlier;
        }
        way.reverse();
        let (mut met, mut refused) = (BTreeSet::from([nearest]), BTreeSet::new());
        let mut queue = vec![nearest];
        while let Some(at) = queue.pop() {
            for (what, to, helps) in &arrows[at] {
                if what.contains("is refused") {
                    refused.insert(what.clone());
                }
                if *helps && met.insert(*to) {
                    queue.push(*to);
                }
            }
        }
        DeadEnd { way, refused }
    });
    Exploration { states: worlds.len(), live, dead_end }
}
