//! The order of what the mutating webhook does: by what each step reads and what it sets.
//!
//! A step comes after those that could give it something to do, so that one pass is enough. And it comes
//! before those that could take it away: two defaults that are each for a condition without the other are
//! both set, as if at once. In doubt the phase comes first, then the defaults as they are written.

mod influence;

use std::collections::BTreeSet;

use super::Policy;
use super::convention::{Backfill, Convention, PhaseRules};
use super::owner::overlap;
use crate::source::tree::At;

pub(super) use influence::set_the_same;

/// Something that the mutating webhook does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step<'p> {
    /// Sets the phase and its time.
    Phase(&'p PhaseRules),
    /// Sets a default.
    Default(&'p Backfill),
}

/// A step, and the convention that its names are from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Task<'p> {
    pub(super) convention: &'p Convention,
    pub(super) step: Step<'p>,
}

/// All steps of a convention with these defaults.
pub(super) fn tasks<'p>(
    convention: &'p Convention,
    defaults: &'p [Backfill],
) -> impl Iterator<Item = Task<'p>> {
    let phase = convention.phase.as_deref().into_iter().map(Step::Phase);
    phase.chain(defaults.iter().map(Step::Default)).map(|step| Task { convention, step })
}

/// The order of some tasks: their places in the list. And those that wait for each other, if any; they come
/// as they are written. `met` are the tasks that may be done to the same objects as one of them.
fn sort(tasks: &[Task<'_>], met: impl Fn(usize) -> Vec<usize>) -> (Vec<usize>, Vec<usize>) {
    let mut waiting: Vec<Vec<usize>> = vec![Vec::new(); tasks.len()];
    let mut yielding = waiting.clone();
    for (late, task) in tasks.iter().enumerate() {
        for early in met(late).into_iter().filter(|early| *early != late) {
            let other = &tasks[early];
            if other.enables(task) {
                waiting[late].push(early);
            } else if other.informs(task) || task.disables(other) {
                yielding[late].push(early);
            }
        }
    }
    let mut left: BTreeSet<usize> = (0..tasks.len()).collect();
    let (mut order, mut cycle) = (Vec::with_capacity(tasks.len()), Vec::new());
    while let Some(first) = left.first().copied() {
        let free = |others: &[usize]| !others.iter().any(|other| left.contains(other));
        let ready = || left.iter().copied().filter(|task| free(&waiting[*task]));
        let next = ready().find(|task| free(&yielding[*task])).or_else(|| ready().next());
        if next.is_none() && cycle.is_empty() {
            // Everything that is left waits for something that is left.
            let before =
                |task: usize| waiting[task].iter().copied().find(|task| left.contains(task));
            let mut way = vec![first];
            while let Some(next) = way.last().and_then(|last| before(*last)) {
                if let Some(at) = way.iter().position(|known| *known == next) {
                    cycle = way.split_off(at);
                    break;
                }
                way.push(next);
            }
        }
        let next = next.unwrap_or(first);
        left.remove(&next);
        order.push(next);
    }
    (order, cycle)
}

/// The defaults of a convention, or of a policy that follows it, that wait for each other: which they are,
/// and what to say.
pub(super) fn cycle(
    convention: &Convention,
    defaults: &[Backfill],
) -> Option<(Vec<usize>, String)> {
    let tasks: Vec<Task<'_>> = tasks(convention, defaults).collect();
    let (_, cycle) = sort(&tasks, |_| (0..tasks.len()).collect());
    let phases = tasks.len() - defaults.len();
    let message = describe(cycle.iter().map(|at| &tasks[*at]))?;
    Some((cycle.into_iter().filter_map(|at| at.checked_sub(phases)).collect(), message))
}

/// Reports a cycle.
pub(super) fn report(at: At<'_>, message: String) {
    at.report_with_help(
        message,
        "change a \"when\" or a source: no order lets each see what the others set",
    );
}

/// Puts the steps of all policies in one order. Where defaults of several policies wait for each other: the
/// last of these policies, and what to say.
pub(super) fn rank(policies: &mut [Policy]) -> Option<(usize, String)> {
    let mut tasks = Vec::new();
    let mut places: Vec<(usize, Option<usize>)> = Vec::new();
    for (at, policy) in policies.iter().enumerate() {
        let phase = policy.convention.phase.iter().map(|_| None);
        places.extend(phase.chain((0..policy.backfill.len()).map(Some)).map(|step| (at, step)));
        tasks.extend(self::tasks(&policy.convention, &policy.backfill));
    }
    let own = |(policy, step): (usize, Option<usize>)| {
        step.is_some_and(|step| policies[policy].backfill[step].of_policy)
    };
    let owns = |policy: usize| policies[policy].convention.phase.is_some();
    let met = |one: &Policy| {
        let others = policies.iter().enumerate().filter(|(_, other)| overlap(one, other));
        others.map(|(at, _)| at).collect()
    };
    let met: Vec<Vec<usize>> = policies.iter().map(met).collect();
    let (order, cycle) = sort(&tasks, |task| {
        let one = places[task];
        let first = |policy: usize| places.partition_point(|(at, _)| *at < policy);
        let tasks = met[one.0].iter().flat_map(|policy| first(*policy)..first(policy + 1));
        // Of two owners, or an owner and another, the defaults of one convention only are set.
        let both = |other: (usize, Option<usize>)| {
            one.0 == other.0 || own(one) || own(other) || (!owns(one.0) && !owns(other.0))
        };
        tasks.filter(|task| both(places[*task])).collect()
    });
    let last = cycle.iter().map(|at| places[*at].0).max();
    let message = describe(cycle.iter().map(|at| &tasks[*at]));
    let ranked: Vec<(usize, Option<usize>)> = order.into_iter().map(|at| places[at]).collect();
    for policy in &mut *policies {
        policy.steps.clear();
    }
    for (rank, (policy, step)) in (0..).zip(ranked) {
        policies[policy].steps.push((rank, step));
    }
    last.zip(message)
}

fn describe<'t>(cycle: impl Iterator<Item = &'t Task<'t>>) -> Option<String> {
    let name = |task: &Task<'_>| match task.step {
        Step::Phase(_) => "the phase".to_owned(),
        Step::Default(default) => format!("default \"{}\"", default.name),
    };
    let names: Vec<String> = cycle.map(name).collect();
    (!names.is_empty()).then(|| format!("{} depend on each other", names.join(" and ")))
}
