//! The mutating half in rounds, until there is nothing left to do.
//!
//! Restored conditions are evidence for the phase, and a default can be the guard or the source of
//! another. Each round works on the result of the one before, so that running the webhook on its own
//! result finds nothing. Most writes end in the first round, without a change.

use json_patch::{Patch, PatchOperation};

use crate::model::{Json, Object, Subject};
use crate::policy::convention::Backfill;
use crate::policy::{Policy, PolicySet};

use super::draft::{Draft, PatchDoesNotApply};
use super::evidence::phase_path;
use super::{Verdict, mutate};

/// Rounds beside one for each default. A chain of defaults is never longer than their number, and most
/// are one or two long; two policies that undo each other would never end.
const MORE_ROUNDS: usize = 8;

/// Fills in, imposes and repairs; leaves patch and findings in the verdict. `object` is the subject's
/// own, or the same with another status.
pub(crate) fn run<'p>(
    policies: &'p PolicySet,
    subject: &'p Subject<'_>,
    object: &Object<'_>,
    now: i64,
    verdict: &mut Verdict<'p>,
) {
    let (mut restores, mut defaults, mut count) = (false, 0, 0);
    for (_, policy) in policies.select(subject) {
        restores |= !policy.preserve.is_empty();
        defaults += policy.backfill.len();
        count += 1;
    }
    let (most, several) = (defaults + MORE_ROUNDS, count > 1);
    let mut rounds =
        Rounds { policies, subject, now, most, several, operations: Vec::new(), verdict };
    let first = if restores { Round::Restore } else { Round::Fill(0) };
    match rounds.run(object, first) {
        Ok(()) if rounds.operations.is_empty() => {}
        Ok(()) => rounds.verdict.patch = Some(Patch(rounds.operations)),
        Err(PatchDoesNotApply) => verdict.patch_failed = true,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Round {
    Restore,
    Fill(usize),
}

struct Rounds<'v, 'p, 's> {
    policies: &'p PolicySet,
    subject: &'p Subject<'s>,
    now: i64,
    /// The last round of defaults.
    most: usize,
    /// More than one policy has its say.
    several: bool,
    operations: Vec<PatchOperation>,
    verdict: &'v mut Verdict<'p>,
}

impl<'p> Rounds<'_, 'p, '_> {
    /// One round, and those after it: each object lives as long as the rounds that read it.
    fn run(&mut self, object: &Object<'_>, round: Round) -> Result<(), PatchDoesNotApply> {
        let mut draft = Draft::new(object);
        let mut cascades = false;
        for (_, policy) in self.policies.select(self.subject) {
            match round {
                Round::Restore => mutate::restore(policy, self.subject, &mut draft),
                Round::Fill(_) => cascades |= self.fill(policy, object, &mut draft),
            }
        }
        let next = match round {
            Round::Restore => Some(Round::Fill(0)),
            Round::Fill(count) if cascades && count < self.most => Some(Round::Fill(count + 1)),
            Round::Fill(_) => None,
        };
        let Some(finished) = draft.finish()? else {
            return match (round, next) {
                (Round::Restore, Some(next)) => self.run(object, next),
                _ => Ok(()),
            };
        };
        self.operations.extend(finished.operations);
        let Some(next) = next else { return Ok(()) };
        let text = finished.status.to_string();
        let status = Json::parse_any_size(&text).map_err(|_| PatchDoesNotApply)?;
        self.run(&object.with_status(Some(status)), next)
    }

    /// Applies one policy. Whether more may follow from what it did, should anything have changed.
    fn fill(&mut self, policy: &'p Policy, object: &Object<'_>, draft: &mut Draft<'_, '_>) -> bool {
        let has_phase = !self.several || self.may_set_phase(policy, object);
        let (subject, findings) = (self.subject, &mut self.verdict.findings);
        let filled = mutate::mutate(policy, subject, object, self.now, has_phase, draft, findings);
        // Whatever is filled in can be evidence for the phase, and all of it a guard elsewhere.
        let is_evidence = filled && policy.convention.phase.is_some();
        self.several || is_evidence || policy.backfill.iter().any(Backfill::depends_on_others)
    }

    /// Of several policies that impose a phase at one place, the first does, and none of the others sets
    /// another one there: they would undo each other at every write.
    fn may_set_phase(&self, policy: &Policy, object: &Object<'_>) -> bool {
        let Some(rules) = &policy.convention.phase else { return false };
        let path = phase_path(rules, object);
        let mut policies = self.policies.select(self.subject).map(|(_, policy)| policy);
        let imposes =
            |other: &&Policy| mutate::imposes_at(other, self.subject, object) == Some(path);
        policies.find(imposes).is_none_or(|first| std::ptr::eq(first, policy))
    }
}
