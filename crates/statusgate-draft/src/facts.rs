//! What the writes of a recording have in common: one pass over them.

use statusgate_core::model::{Json, parse_rfc3339};

use super::fields::FieldFacts;
use super::history::HistoryFacts;
use super::lists::{self, ListFacts};
use super::pairs::Pairs;
use super::recording::{Recording, Write};
use super::tally::Table;

/// The counts of one recording.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    /// The lists of conditions by path.
    pub(crate) lists: Table<ListFacts>,
    /// The other lists of objects that are named like conditions or histories.
    pub(crate) histories: Table<HistoryFacts>,
    /// The fields outside of lists by path.
    pub(crate) fields: Table<FieldFacts>,
    /// Times of which one is never before the other.
    pub(crate) orders: Table<Order>,
    /// What occurs together.
    pub(crate) pairs: Pairs,
}

/// Two times, `LATER EARLIER`: in how many writes they lie in this order.
pub(crate) type Order = super::tally::Seen;

/// The times of a status that are compared with each other.
const MAX_TIMES: usize = 16;

/// The lists of conditions of which facts are kept.
const MAX_LISTS: usize = 4;

impl Facts {
    pub(crate) fn of(recording: &Recording<'_>) -> Self {
        let mut facts = Self::default();
        for write in &recording.writes {
            let Some(object) = write.read() else { continue };
            let Some(status @ Json::Object(_)) = &object.status else { continue };
            let old = write.stored_status();
            let is_deleting = object.metadata.deletion_timestamp.is_some();
            facts.see(write, status, old.as_ref(), is_deleting);
        }
        facts
    }

    /// Whether some list has a condition of this type.
    pub(crate) fn has_type(&self, name: &str) -> bool {
        self.lists.iter().any(|(_, list)| list.types.get(name).is_some())
    }

    fn see(
        &mut self,
        write: &Write<'_>,
        status: &Json<'_>,
        old: Option<&Json<'_>>,
        is_deleting: bool,
    ) {
        lists::walk(status, old, &mut |found| {
            if !found.is_of_conditions() {
                if let Some(history) = self.histories.row(&found.path) {
                    history.see(write.object, &found);
                }
                return;
            }
            let has_place = self.lists.len() < MAX_LISTS || self.lists.get(&found.path).is_some();
            if has_place && let Some(list) = self.lists.row(&found.path) {
                list.see(write, &found);
            }
        });
        let fields = super::fields::read(status);
        let stored = old.map(super::fields::read).unwrap_or_default();
        for (path, value) in &fields {
            if let Some(facts) = self.fields.row(path) {
                facts.see(write.object, value, old.map(|_| stored.get(path).copied()));
            }
        }
        for path in stored.keys().filter(|path| !fields.contains_key(*path)) {
            if let Some(facts) = self.fields.row(path) {
                facts.see_removed();
            }
        }
        let times =
            fields.iter().filter_map(|(path, value)| Some((path, parse_rfc3339(value.as_str()?)?)));
        let times: Vec<_> = times.take(MAX_TIMES).collect();
        for (later, time) in &times {
            for (earlier, _) in times.iter().filter(|(_, other)| other < time) {
                if let Some(order) = self.orders.row(&format!("{later} {earlier}")) {
                    order.see(write.object);
                }
            }
        }
        self.pairs.see(write.object, status, &fields, is_deleting);
    }
}
