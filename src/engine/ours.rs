//! What the mutating webhook itself makes of a status. No writer answers for it. The validating webhook sees
//! only the result; it finds out by mutating once more.

use super::mutate::mutate;
use crate::model::{Json, Pointer, Subject, in_status, parse_rfc3339};
use crate::policy::{Policy, Selected};

/// Seconds between the two webhooks of one write: the longest `timeoutSeconds` that there is.
const LONGEST_WEBHOOK: u64 = 30;

/// A write to be mutated again with another status. Costs as much as the mutating webhook did: for those
/// who are about to reject.
#[derive(Clone, Copy)]
pub(super) struct Ours<'p, 's, 'a> {
    /// The policy that judges.
    pub(super) policy: &'p Policy,
    /// All: what another one sets is not the writer's either.
    pub(super) selected: &'s Selected<'p>,
    pub(super) subject: &'s Subject<'a>,
    pub(super) now: i64,
}

impl<'a> Ours<'_, '_, 'a> {
    /// Whether the status is what becomes of the stored one when nobody touches it.
    pub(super) fn is_all(&self) -> bool {
        let stored = self.subject.old.as_ref().and_then(|old| old.status.clone());
        self.mutated(stored)
            .is_some_and(|status| Some(&status) == self.subject.object.status.as_ref())
    }

    /// The status as it would be had the writer left these places as they are stored. `None` where the
    /// mutating webhook would change nothing.
    pub(super) fn without<'w>(
        &self,
        places: impl IntoIterator<Item = &'w Pointer>,
    ) -> Option<Json<'a>> {
        let Subject { object, old, .. } = self.subject;
        let mut status = object.status.clone().unwrap_or(Json::Null);
        for place in places {
            let stored = old.as_ref().and_then(|old| in_status(old.status.as_ref(), place));
            status.put(place.below_status(), stored.cloned());
        }
        self.mutated(Some(status))
    }

    fn mutated(&self, status: Option<Json<'a>>) -> Option<Json<'a>> {
        let object = self.subject.object.with_status(status);
        mutate(self.selected, self.subject, &object, self.clock()).status
    }

    /// The clock of the mutating webhook, where it shows in the time of the phase: it looked at it a
    /// little earlier.
    fn clock(&self) -> i64 {
        let phase = self.selected.owner().and_then(|owner| owner.convention.phase.as_ref());
        let path = phase.and_then(|rules| Some(&rules.transition_time.as_ref()?.path));
        let time = path
            .and_then(|path| in_status(self.subject.object.status.as_ref(), path))
            .and_then(|time| parse_rfc3339(time.as_str()?));
        time.filter(|time| time.abs_diff(self.now) <= LONGEST_WEBHOOK).unwrap_or(self.now)
    }
}
