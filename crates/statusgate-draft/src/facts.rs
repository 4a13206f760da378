//! What the writes of a recording have in common: one pass over them.

use statusgate_core::model::{Json, Object, parse_rfc3339};

use super::MIN_OBJECTS;
use super::lists::{HistoryFacts, ListFacts};
use super::pairs::Pairs;
use super::places::{self, Place};
use super::recording::{self, Recording, Write};
use super::tally::{Latch, Seen, Table};

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

/// The characters of a word: phases are no sentences. And the values of a phase.
const MAX_WORD: usize = 64;
const MAX_PHASES: usize = 32;

impl Facts {
    pub(crate) fn of(recording: &Recording<'_>) -> Self {
        let mut facts = Self::default();
        for write in &recording.writes {
            let Ok(object) = Object::parse(write.request.object) else { continue };
            let Some(status) = object.status_object() else { continue };
            facts.see(write, status, object.is_deleting());
        }
        facts
    }

    fn see(&mut self, write: &Write<'_>, status: &Json<'_>, is_deleting: bool) {
        let old = write.request.old.and_then(recording::status);
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
        let removed = places::fields(&stored).into_values().filter(|place| place.stored.is_none());
        for place in removed {
            self.fields.with(&place.path, |facts| facts.latch.is_reverted = true);
        }
        let texts = fields.values().filter_map(|place| Some((&place.path, place.value.as_str()?)));
        let times = texts.filter_map(|(path, text)| Some((path, parse_rfc3339(text)?)));
        let times: Vec<_> = times.take(MAX_TIMES).collect();
        for (later, time) in &times {
            for (earlier, _) in times.iter().filter(|(_, other)| other < time) {
                self.orders.see(&format!("{later} {earlier}"), object);
            }
        }
        self.pairs.see(object, &fields, is_deleting);
    }
}

/// The facts about a field.
#[derive(Debug, Default)]
pub(crate) struct FieldFacts {
    pub(crate) seen: Seen,
    /// The texts, with the objects that have them.
    pub(crate) texts: Table<Seen>,
    /// Whether some value is no word, such as a message.
    has_others: bool,
    /// Of true. A write that removes the field reverts it.
    pub(crate) latch: Latch,
    /// The text changes that were seen: `OLD → NEW`.
    pub(crate) moves: Table<Seen>,
}

impl FieldFacts {
    /// `is_change`: whether there is a stored status.
    pub(crate) fn see(&mut self, object: u32, place: &Place<'_, '_>, is_change: bool) {
        self.seen.see(object);
        match place.value {
            Json::String(text) if text.len() <= MAX_WORD && parse_rfc3339(text).is_none() => {
                self.texts.see(text, object);
                let stored = place.stored.and_then(Json::as_str);
                if let Some(old) = stored.filter(|old| old != text) {
                    self.moves.see(&format!("{old} → {text}"), object);
                }
                return;
            }
            Json::Bool(value) if is_change => {
                self.latch.see(object, matches!(place.stored, Some(Json::Bool(true))), *value);
            }
            _ => {}
        }
        self.has_others = true;
    }

    /// Whether it has some words in enough objects, and nothing else.
    pub(crate) fn has_phases(&self) -> bool {
        let words = self.texts.len();
        words > 0 && words <= MAX_PHASES && !self.has_others && self.seen.objects >= MIN_OBJECTS
    }
}
