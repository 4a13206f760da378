//! Whether a rule is silent about writes that leave everything that it reads as it is.

use super::inputs::Inputs;
use crate::facts::{Fact, Space, versions_of};
use crate::line::{Clause, clauses};
use crate::scene::{Scene, Stage};
use crate::table::space_of;
use statusgate_core::policy::Disposition;
use statusgate_core::policy::convention::{Convention, Trigger};

/// Above this number of combinations, the answer is no.
const MAX_COMBINATIONS: usize = 4096;

/// Whether no rule of a convention speaks about such a write. Rules that only add audit annotations do not
/// count.
pub(super) fn is_idle(convention: &Convention) -> bool {
    let mut speaking =
        clauses(convention).into_iter().filter(|clause| clause.action != Disposition::Audit);
    speaking.all(|clause| is_idle_clause(convention, &clause))
}

/// A violation by the written object alone is excused by the stored one, which has it too, unless the rule
/// judges every write. Another rule may hold for two equal objects, so all combinations are tried.
fn is_idle_clause(convention: &Convention, clause: &Clause<'_>) -> bool {
    let judges_all = match clause.trigger {
        Some(Trigger::Watch(_)) => return true,
        Some(trigger) => !trigger.is_introduced(),
        None => false,
    };
    let question = clause.question();
    let mut inputs = Inputs::of(convention);
    inputs.predicate(question.predicate);
    if !judges_all && !inputs.stored {
        return true;
    }
    versions_of(convention).iter().all(|version| {
        let stage = Stage::of(convention, version);
        let scenes = same(&stage, space_of(convention, version, &[question]));
        scenes.is_some_and(|scenes| scenes.iter().all(|scene| !stage.holds(scene, &question)))
    })
}

/// The scenes in which the stored object equals the written one; `None` if they are too many, or not all.
fn same(stage: &Stage<'_>, mut space: Space) -> Option<Vec<Scene>> {
    // What is asked of the stored object is then asked of both.
    let stored: Vec<Fact> = space.facts.keys().filter(|fact| fact.is_stored()).cloned().collect();
    for fact in stored {
        let answers = space.facts.shift_remove(&fact).unwrap_or_default();
        let written = space.facts.entry(fact.written()).or_default();
        let new =
            answers.into_iter().filter(|answer| !written.contains(answer)).collect::<Vec<_>>();
        written.extend(new);
    }
    let size = space.size().filter(|size| *size <= MAX_COMBINATIONS && !space.open)?;
    let scenes = stage.scenes(&space, 0..size);
    Some(scenes.map(|scene| Scene { old: Some(scene.object.clone()), ..scene }).collect())
}
