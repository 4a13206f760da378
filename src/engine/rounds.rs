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
use super::evidence::Facts;
use super::fill::Filler;
use super::holder::Holders;
use super::mutate::{self, Say};
use super::{Verdict, agreement};

/// Rounds beside one for each default. A chain of defaults is never longer than their number, and most
/// are one or two long; of two policies that would undo each other one alone sets the phase, and should
/// their defaults ever do so, they end here.
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
    let mut rounds = Rounds {
        policies,
        subject,
        now,
        most: defaults + MORE_ROUNDS,
        several: count > 1,
        operations: Vec::new(),
        filled: Vec::new(),
        barred: Vec::new(),
        verdict,
    };
    let done = if restores { rounds.restore(object) } else { rounds.settle(object) };
    match done {
        Ok(()) if rounds.operations.is_empty() => {}
        Ok(()) => rounds.verdict.patch = Some(Patch(rounds.operations)),
        Err(PatchDoesNotApply) => verdict.patch_failed = true,
    }
}

/// What came of rounds of defaults.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Settled,
    /// The phase stood before something was filled in, and is contradicted now.
    AtOdds,
}

/// Which part of a round of defaults.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// All of it, for a policy that is alone.
    Only,
    /// The phase, by the policy that it belongs to.
    Holder,
    /// The others' say in it, and everybody's defaults.
    Rest,
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
    /// The defaults that had an effect.
    filled: Vec<&'p Backfill>,
    /// Those that are left out.
    barred: Vec<&'p Backfill>,
    verdict: &'v mut Verdict<'p>,
}

impl<'p> Rounds<'_, 'p, '_> {
    fn restore(&mut self, object: &Object<'_>) -> Result<(), PatchDoesNotApply> {
        let mut draft = Draft::new(object);
        for (_, policy) in self.policies.select(self.subject) {
            mutate::restore(policy, self.subject, &mut draft);
        }
        let Some(finished) = draft.finish()? else { return self.settle(object) };
        self.operations.extend(finished.operations);
        let text = finished.status.to_string();
        self.settle(&object.with_status(Some(parsed(&text)?)))
    }

    /// All rounds of defaults. A default says what is not known; where it would contradict the phase,
    /// which says more, it waits for the writer to say it himself.
    fn settle(&mut self, base: &Object<'_>) -> Result<(), PatchDoesNotApply> {
        let before = (self.operations.len(), self.verdict.findings.len());
        if self.round(base, base, 0)? == Outcome::Settled {
            return Ok(());
        }
        // All that had an effect, and what has one only without them.
        let mut suspects: Vec<&'p Backfill> = Vec::new();
        loop {
            suspects.append(&mut self.filled);
            self.barred.clone_from(&suspects);
            self.forget(before);
            if self.round(base, base, 0)? == Outcome::Settled {
                break;
            }
        }
        // One after the other, so that one waits that contradicts the phase only beside an earlier one,
        // and none for the sake of another.
        for suspect in suspects {
            self.barred.retain(|barred| !std::ptr::eq(*barred, suspect));
            self.forget(before);
            if self.round(base, base, 0)? == Outcome::AtOdds {
                self.barred.push(suspect);
            }
        }
        self.forget(before);
        self.round(base, base, 0)?;
        self.verdict.withheld = self.barred.iter().map(|default| default.name.as_str()).collect();
        Ok(())
    }

    fn forget(&mut self, (operations, findings): (usize, usize)) {
        self.operations.truncate(operations);
        self.verdict.findings.truncate(findings);
        self.filled.clear();
    }

    /// One round, and those after it: each object lives as long as the rounds that read it.
    fn round(
        &mut self,
        object: &Object<'_>,
        base: &Object<'_>,
        number: usize,
    ) -> Result<Outcome, PatchDoesNotApply> {
        if !self.filled.is_empty() && self.is_at_odds(object, base) {
            return Ok(Outcome::AtOdds);
        }
        let mut draft = Draft::new(object);
        let cascades = self.fill(object, &mut draft);
        let Some(finished) = draft.finish()? else { return Ok(Outcome::Settled) };
        self.operations.extend(finished.operations);
        if !cascades || number == self.most {
            return Ok(Outcome::Settled);
        }
        let text = finished.status.to_string();
        self.round(&object.with_status(Some(parsed(&text)?)), base, number + 1)
    }

    fn is_at_odds(&self, object: &Object<'_>, base: &Object<'_>) -> bool {
        let Subject { old, resource, .. } = self.subject;
        let mut policies = self.policies.select(self.subject).map(|(_, policy)| policy);
        policies.any(|policy| {
            let of = |object| Facts::new(&policy.convention, object, old.as_ref(), resource);
            agreement::fell_out(&policy.convention, &of(base), &of(object))
        })
    }

    /// Sets the phase and fills in. Whether more may follow from that, should anything have changed.
    fn fill(&mut self, object: &Object<'_>, draft: &mut Draft<'_, '_>) -> bool {
        if !draft.is_workable() {
            return false;
        }
        let mut cascades = self.several;
        // The one that the phase belongs to goes first: the others see what becomes of it.
        let steps: &[Step] = if self.several { &[Step::Holder, Step::Rest] } else { &[Step::Only] };
        for step in steps {
            for (_, policy) in self.policies.select(self.subject) {
                cascades |= self.apply(policy, *step, object, draft);
            }
        }
        cascades
    }

    fn apply(
        &mut self,
        policy: &'p Policy,
        step: Step,
        object: &Object<'_>,
        draft: &mut Draft<'_, '_>,
    ) -> bool {
        let (subject, now) = (self.subject, self.now);
        let holders = Holders { policies: self.policies, subject, object };
        let refused = |written: Option<&str>, phase: &str| holders.refused(policy, written, phase);
        let holder = if step == Step::Only { None } else { holders.of(policy) };
        let say = match (step, holder) {
            (Step::Only, _) => Some(Say::All { refused: &|_, _| false }),
            (Step::Holder, Some(holder)) if holder.is(policy) => {
                Some(Say::All { refused: &refused })
            }
            (Step::Holder, _) => return false,
            (Step::Rest, Some(holder)) if holder.is(policy) => None,
            (Step::Rest, Some(holder)) => Some(holder.beside(&refused)),
            (Step::Rest, None) => Some(Say::All { refused: &refused }),
        };
        let facts = Facts::new(&policy.convention, object, subject.old.as_ref(), &subject.resource);
        if let Some(say) = say {
            let findings = &mut self.verdict.findings;
            mutate::set_phase(policy, subject, object, now, (&facts, say), draft, findings);
        }
        if step == Step::Holder || policy.backfill.is_empty() {
            return false;
        }
        let filler = Filler { facts: &facts, subject, object, now };
        let filled = mutate::fill(policy, &filler, &self.barred, &mut self.filled, draft);
        // Whatever is filled in can be evidence for the phase, and all of it a guard elsewhere.
        let is_evidence = filled && policy.convention.phase.is_some();
        is_evidence || policy.backfill.iter().any(Backfill::depends_on_others)
    }
}

fn parsed(status: &str) -> Result<Json<'_>, PatchDoesNotApply> {
    Json::parse_any_size(status).map_err(|_| PatchDoesNotApply)
}
