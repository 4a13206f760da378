//! What the writes of a recording have in common: one pass over them.

use statusgate_core::model::{Json, parse_rfc3339};

use super::fields::FieldFacts;
use super::lists::{HistoryFacts, ListFacts};
use super::pairs::Pairs;
use super::places::{self, Place};
use super::recording::{Recording, Write};
use super::tally::{Seen, Table};

/// The counts of one recording.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    /// The lists of conditions by path.
    pub(crate) lists: Table<ListFacts>,
    /// The other lists of objects that are named like conditions or histories.
    pub(crate) histories: Table<HistoryFacts>,
    /// The fields outside of lists by path.
    pub(crate) fields: Table<FieldFacts>,
    /// Two times, `LATER EARLIER`: in how many writes they lie in this order.
    pub(crate) orders: Table<Seen>,
    /// What occurs together.
    pub(crate) pairs: Pairs,
}

/// The times of a status that are compared with each other.
const MAX_TIMES: usize = 16;

/// The lists of conditions of which facts are kept.
const MAX_LISTS: usize = 4;

impl Facts {
    pub(crate) fn of(recording: &Recording<'_>) -> Self {
        let mut facts = Self::default();
        for write in &recording.writes {
            let Some(object) = write.read() else { continue };
            let Some(status) = object.status_object() else { continue };
            facts.see(write, status, object.is_deleting());
        }
        facts
    }

    /// Whether some list has a condition of this type.
    pub(crate) fn has_type(&self, name: &str) -> bool {
        self.lists.iter().any(|(_, list)| list.types.get(name).is_some())
    }

    fn see(&mut self, write: &Write<'_>, status: &Json<'_>, is_deleting: bool) {
        let old = write.stored_status();
        let object = write.object;
        let places = Place::all(status, old.as_ref());
        for place in places.iter().filter(|place| place.is_list()) {
            let has_place = self.lists.len() < MAX_LISTS || self.lists.get(&place.path).is_some();
            if !place.has_conditions() {
                self.histories.with(&place.path, |history| history.see(object, place));
            } else if has_place {
                self.lists.with(&place.path, |list| list.see(write, place));
            }
        }
        let fields = places::fields(&places);
        for (path, place) in &fields {
            self.fields.with(path, |facts| facts.see(object, place, old.is_some()));
        }
        let stored = old.as_ref().map(|old| Place::all(old, Some(status))).unwrap_or_default();
        for (path, _) in places::fields(&stored).iter().filter(|(_, place)| place.stored.is_none())
        {
            self.fields.with(path, |facts| facts.latch.is_reverted = true);
        }
        let times = fields.iter();
        let times =
            times.filter_map(|(path, place)| Some((path, parse_rfc3339(place.value.as_str()?)?)));
        let times: Vec<_> = times.take(MAX_TIMES).collect();
        for (later, time) in &times {
            for (earlier, _) in times.iter().filter(|(_, other)| other < time) {
                self.orders.see(&format!("{later} {earlier}"), object);
            }
        }
        self.pairs.see(object, &fields, is_deleting);
    }
}
