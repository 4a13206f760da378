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
use super::{Verdict, mutate};

/// Rounds of defaults. Chains of defaults are one or two long; two that undo each other would never
/// end.
const MAX_ROUNDS: u8 = 8;

/// Fills in, imposes and repairs; leaves patch and findings in the verdict.
pub(crate) fn run<'p>(
    policies: &'p PolicySet,
    subject: &'p Subject<'_>,
    now: i64,
    verdict: &mut Verdict<'p>,
) {
    let restores = policies.select(subject).any(|(_, policy)| !policy.preserve.is_empty());
    let mut rounds = Rounds { policies, subject, now, operations: Vec::new(), verdict };
    let first = if restores { Round::Restore } else { Round::Fill(0) };
    match rounds.run(&subject.object, first) {
        Ok(()) if rounds.operations.is_empty() => {}
        Ok(()) => rounds.verdict.patch = Some(Patch(rounds.operations)),
        Err(PatchDoesNotApply) => verdict.patch_failed = true,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Round {
    Restore,
    Fill(u8),
}

struct Rounds<'v, 'p, 's> {
    policies: &'p PolicySet,
    subject: &'p Subject<'s>,
    now: i64,
    operations: Vec<PatchOperation>,
    verdict: &'v mut Verdict<'p>,
}

impl Rounds<'_, '_, '_> {
    /// One round, and those after it: each object lives as long as the rounds that read it.
    fn run(&mut self, object: &Object<'_>, round: Round) -> Result<(), PatchDoesNotApply> {
        let mut draft = Draft::new(object);
        let mut cascades = false;
        for (_, policy) in self.policies.select(self.subject) {
            match round {
                Round::Restore => mutate::restore(policy, self.subject, &mut draft),
                Round::Fill(_) => {
                    let findings = &mut self.verdict.findings;
                    mutate::mutate(policy, self.subject, object, self.now, &mut draft, findings);
                    cascades |= depends_on_others(policy);
                }
            }
        }
        let next = match round {
            Round::Restore => Some(Round::Fill(0)),
            Round::Fill(count) if cascades && count < MAX_ROUNDS => Some(Round::Fill(count + 1)),
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
        let changed = Object {
            metadata: object.metadata.clone(),
            status: Some(status),
            spec: object.spec.clone(),
            ..Object::default()
        };
        self.run(&changed, next)
    }
}

/// Whether a default of this policy may have to wait for another change.
fn depends_on_others(policy: &Policy) -> bool {
    policy.backfill.iter().any(Backfill::depends_on_others)
}
