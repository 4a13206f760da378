//! What the elements of lists of conditions and of histories have in common.

use std::cmp::Reverse;

use statusgate_core::model::{ByType, Json, is_before_write, parse_rfc3339, same_instant};

use super::places::{Place, status, text};
use super::recording::Write;
use super::tally::{Latch, Seen, Table};

/// The statuses of a condition.
pub(crate) const STATUSES: [&str; 3] = ["True", "False", "Unknown"];

/// The members of which a change may move the time.
pub(crate) const MOVING: [&str; 4] = ["status", "severity", "reason", "message"];

/// The facts about the lists at one path.
#[derive(Debug, Default)]
pub(crate) struct ListFacts {
    /// The lists.
    pub(crate) lists: Seen,
    pub(crate) elements: u32,
    /// Whether some element has another status than [`STATUSES`].
    pub(crate) has_odd_status: bool,
    pub(crate) members: Table<MemberFacts>,
    pub(crate) types: Table<TypeFacts>,
    /// Of a change of each member of [`MOVING`], and of a write that changes none of them.
    pub(crate) moves: [MoveFacts; 4],
    pub(crate) unchanged: MoveFacts,
    pub(crate) transitions: Seen,
}

/// The facts about a member of elements.
#[derive(Debug, Default)]
pub(crate) struct MemberFacts {
    pub(crate) seen: Seen,
    pub(crate) is_other_than_text: bool,
    pub(crate) is_other_than_integer: bool,
}

/// The facts about a condition type.
#[derive(Debug, Default)]
pub(crate) struct TypeFacts {
    pub(crate) seen: Seen,
    pub(crate) statuses: [Seen; 3],
    /// By reason, for each status.
    pub(crate) reasons: Table<[Seen; 3]>,
    /// Whether some element has no reason, for each status.
    pub(crate) lacks_reason: [bool; 3],
    /// The writes of a list that had the type and still has it.
    pub(crate) kept: Seen,
    pub(crate) is_removed: bool,
    /// Of the status True.
    pub(crate) latch: Latch,
}

/// The writes that moved a time, and those that kept one that lies before the write.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MoveFacts {
    pub(crate) moved: Seen,
    pub(crate) kept: Seen,
}

impl TypeFacts {
    fn see(&mut self, object: u32, item: &Json<'_>, stored: Option<&Json<'_>>) {
        if let Some(stored) = stored {
            self.kept.see(object);
            self.latch.see(object, status(stored) == Some(0), status(item) == Some(0));
        }
        let Some(index) = status(item) else { return };
        self.seen.see(object);
        self.statuses[index].see(object);
        match text(item, "reason").unwrap_or_default() {
            "" => self.lacks_reason[index] = true,
            reason => self.reasons.with(reason, |row| row[index].see(object)),
        }
    }
}

impl ListFacts {
    pub(crate) fn see(&mut self, write: &Write<'_>, place: &Place<'_, '_>) {
        let Some([new, old]) = place.items() else { return };
        let object = write.object;
        self.lists.see(object);
        let (new, old) = (ByType::new(new), ByType::new(old));
        for item in new.items() {
            self.see_members(object, item);
            let Some(name) = text(item, "type") else { continue };
            let stored = old.find(name);
            if stored.is_some() || status(item).is_some() {
                self.types.with(name, |facts| facts.see(object, item, stored));
            }
            if let Some(stored) = stored {
                self.see_times(write, stored, item);
            }
        }
        for name in old.items().iter().filter_map(|item| text(item, "type")) {
            if new.find(name).is_none() {
                self.types.with(name, |facts| facts.is_removed = true);
            }
        }
    }

    fn see_members(&mut self, object: u32, item: &Json<'_>) {
        let Json::Object(members) = item else { return };
        self.elements += 1;
        self.has_odd_status |= status(item).is_none();
        for (name, value) in members.iter().filter(|(_, value)| !value.is_null()) {
            self.members.with(name, |facts| {
                facts.seen.see(object);
                facts.is_other_than_text |= value.as_str().is_none();
                facts.is_other_than_integer |= value.as_i64().is_none();
            });
        }
    }

    fn see_times(&mut self, write: &Write<'_>, old: &Json<'_>, new: &Json<'_>) {
        let times = [old, new].map(|item| text(item, "lastTransitionTime"));
        let [Some(before), Some(after)] = times else { return };
        self.transitions.see(write.object);
        let changed = MOVING.iter().position(|name| {
            text(old, name).unwrap_or_default() != text(new, name).unwrap_or_default()
        });
        let facts = changed.map_or(&mut self.unchanged, |index| &mut self.moves[index]);
        let known = write.request.time().zip(parse_rfc3339(before));
        if !same_instant(before, after) {
            facts.moved.see(write.object);
        } else if known.is_some_and(|(now, before)| is_before_write(before, now.as_second())) {
            facts.kept.see(write.object);
        }
    }

    /// The known types in the order of how many objects have them.
    pub(crate) fn types_by_objects(&self) -> Vec<(&str, &TypeFacts)> {
        let mut types: Vec<_> =
            self.types.iter().filter(|(_, facts)| facts.seen.objects > 0).collect();
        types.sort_by_key(|(_, facts)| Reverse(facts.seen.objects));
        types
    }
}

/// The facts about the histories at one path: their elements never change, new ones are added at the end, old ones are
/// dropped at a limit.
#[derive(Debug, Default)]
pub(crate) struct HistoryFacts {
    pub(crate) grown: Seen,
    /// Whether a write dropped old elements.
    pub(crate) has_dropped: bool,
    /// Whether a write did something else.
    pub(crate) is_rewritten: bool,
    pub(crate) longest: usize,
    /// The lists of that length.
    pub(crate) at_longest: Seen,
}

impl HistoryFacts {
    pub(crate) fn see(&mut self, object: u32, place: &Place<'_, '_>) {
        let Some([new, old]) = place.items() else { return };
        if new.len() > self.longest {
            (self.longest, self.at_longest) = (new.len(), Seen::default());
        }
        if new.len() == self.longest {
            self.at_longest.see(object);
        }
        if new == old || old.is_empty() {
            return;
        }
        match (0..old.len()).find(|dropped| new.starts_with(&old[*dropped..])) {
            Some(dropped) => {
                self.has_dropped |= dropped > 0;
                self.grown.see(object);
            }
            None => self.is_rewritten = true,
        }
    }
}
