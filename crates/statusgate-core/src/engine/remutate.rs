//! What the mutating webhook did to a write. The validating webhook sees only the result, so it mutates
//! the object again, with another status. This costs as much as the mutating webhook, so only writes with
//! violations pay for it.

use super::judge::Judging;
use super::mutate::mutate;
use super::owners::Part;
use super::transition;
use crate::model::{Json, Subject, parse_rfc3339};
use crate::policy::convention::Backfill;

/// The largest number of seconds between the two webhooks of one write: the maximum of `timeoutSeconds`.
const MAX_TIMEOUT: u64 = 30;

impl<'a> Judging<'_, '_, 'a> {
    /// Whether only the mutating webhook changed the status; with `repairs_stored`, one that also repairs a stored
    /// disagreement, as a backfill does.
    pub(super) fn only_webhook_changed_status(&self, repairs_stored: bool) -> bool {
        let Subject { object, old, .. } = self.subject;
        let stored = old.as_ref().and_then(|old| old.status.clone());
        let mutated = self.mutated(stored, repairs_stored);
        mutated.is_some_and(|status| Some(&status) == object.status.as_ref())
    }

    /// The status that would result if the writer had not changed these parts. `None` if the mutating
    /// webhook would change nothing, or if the writer left no place for one of the stored values.
    pub(super) fn mutated_without<'w>(
        &self,
        parts: impl IntoIterator<Item = Part<'w>>,
    ) -> Option<Json<'_>> {
        let Subject { object, old, .. } = self.subject;
        let mut status = object.status.clone().unwrap_or(Json::Null);
        let stored = old.as_ref().and_then(|old| old.status.as_ref());
        for part in parts {
            if !part.put_back(&mut status, stored) {
                return None;
            }
        }
        self.mutated(Some(status), false)
    }

    /// The status that would result from this one. `None` if the mutating webhook would change nothing.
    pub(super) fn mutated(
        &self,
        status: Option<Json<'a>>,
        repairs_stored: bool,
    ) -> Option<Json<'_>> {
        let object = self.subject.object.with_status(status);
        mutate(self.selected, self.subject, &object, self.mutation_time(), repairs_stored).status
    }

    /// When the mutating webhook ran. It is a little earlier than now if it set the time of the phase or of a
    /// condition.
    fn mutation_time(&self) -> i64 {
        let Subject { object, resource, .. } = self.subject;
        let phase = self.selected.owner().and_then(|owner| owner.convention.phase.as_ref());
        let of_phase = phase
            .and_then(|rules| object.at_status(&rules.transition_time.as_ref()?.path))
            .and_then(|time| parse_rfc3339(time.as_str()?));
        let stamping = self
            .selected
            .policies()
            .filter(|(_, policy)| policy.backfill.iter().any(Backfill::stamps));
        let of_conditions = stamping.flat_map(|(_, policy)| {
            transition::newest_transition(&policy.convention, object, &resource.version, self.now)
        });
        let mut times = of_phase.into_iter().chain(of_conditions);
        times.find(|time| time.abs_diff(self.now) <= MAX_TIMEOUT).unwrap_or(self.now)
    }
}
