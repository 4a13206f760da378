//! What the mutating webhook makes by itself of a status. No writer answers for that, and the validating
//! webhook, which sees the result only, finds it by doing it again.

use serde_json::{Map, Value};

use super::review::patched;
use super::{Verdict, rounds};
use crate::model::{Json, Object, Pointer, Subject, in_status, parse_rfc3339};
use crate::policy::{Policy, PolicySet};

/// Seconds between the two webhooks of one write: the longest `timeoutSeconds` that there is.
const LONGEST_WEBHOOK: u64 = 30;

/// A write done again with another status. Costs as much as the mutating webhook did: for those who are
/// about to refuse.
#[derive(Clone, Copy)]
pub(crate) struct Replay<'p, 's, 'a> {
    /// All, not the one that judges: what another one fills in is not the writer's either.
    pub(crate) policies: &'p PolicySet,
    /// The one that judges.
    pub(crate) policy: &'p Policy,
    pub(crate) subject: &'s Subject<'a>,
    pub(crate) now: i64,
}

impl Replay<'_, '_, '_> {
    /// Whether the status is what becomes of the stored one when nobody touches it.
    pub(crate) fn is_ours(&self) -> bool {
        let stored = self.subject.old.as_ref().and_then(|old| old.status.clone());
        let untouched = self.subject.object.with_status(stored);
        let made = self.mutated(&untouched);
        made.is_some_and(|text| Json::parse(&text).ok() == self.subject.object.status)
    }

    /// The status as it would be had the writer left these places as they are stored, as text. `None`
    /// where nothing would be filled in.
    pub(crate) fn without<'w>(&self, places: impl Iterator<Item = &'w Pointer>) -> Option<String> {
        let Subject { object, old, .. } = self.subject;
        let mut status = object.status.as_ref().map_or(Value::Null, Json::to_value);
        for place in places {
            let stored = old.as_ref().and_then(|old| in_status(old.status.as_ref(), place));
            put(&mut status, place.below_status(), stored.map(Json::to_value));
        }
        let text = status.to_string();
        self.mutated(&object.with_status(Json::parse(&text).ok()))
    }

    /// The status of an object after the mutating webhook, as text; `None` where it changes nothing.
    fn mutated(&self, object: &Object<'_>) -> Option<String> {
        let mut verdict = Verdict::default();
        rounds::run(self.policies, self.subject, object, self.clock(), &mut verdict);
        patched(object, &verdict.patch?.0)
    }

    /// The clock of the mutating webhook, where it shows in the time of the phase: it looked at it a
    /// little earlier.
    fn clock(&self) -> i64 {
        let phase = self.policy.convention.phase.as_ref();
        let path = phase.and_then(|rules| Some(&rules.transition_time.as_ref()?.path));
        let time = path
            .and_then(|path| in_status(self.subject.object.status.as_ref(), path))
            .and_then(|time| parse_rfc3339(time.as_str()?));
        time.filter(|time| time.abs_diff(self.now) <= LONGEST_WEBHOOK).unwrap_or(self.now)
    }
}

/// Puts a value into a place, or takes out what is there. Leaves everything as it is where something on
/// the way has no members.
pub(super) fn put(value: &mut Value, place: &[String], new: Option<Value>) {
    let Some((name, rest)) = place.split_first() else {
        *value = new.unwrap_or_default();
        return;
    };
    if value.is_null() && new.is_some() {
        *value = Value::Object(Map::new());
    }
    match (value, new) {
        (Value::Object(members), None) if rest.is_empty() => drop(members.remove(name)),
        (Value::Object(members), Some(new)) => {
            put(members.entry(name.as_str()).or_insert(Value::Null), rest, Some(new));
        }
        (Value::Object(members), None) => {
            if let Some(inner) = members.get_mut(name) {
                put(inner, rest, None);
            }
        }
        (Value::Array(items), new) => {
            let last = items.len().wrapping_sub(1);
            let index = if name == "-1" { Some(last) } else { name.parse().ok() };
            if let Some(inner) = index.and_then(|index| items.get_mut(index)) {
                put(inner, rest, new);
            }
        }
        _ => {}
    }
}
