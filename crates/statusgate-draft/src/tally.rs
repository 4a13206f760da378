//! Counts of objects and writes.

use std::collections::BTreeMap;

use statusgate_core::source::one_line;

use super::{CLOSED_EXPECTED, CLOSED_OBJECTS, MIN_OBJECTS};

/// In how many objects and writes something was seen. The writes of an object are counted one after the other, so an object
/// needs no set to be counted once.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) objects: u32,
    pub(crate) writes: u32,
    last: Option<u32>,
}

impl Seen {
    pub(crate) fn see(&mut self, object: u32) {
        self.writes += 1;
        if self.last != Some(object) {
            self.objects += 1;
            self.last = Some(object);
        }
    }
}

/// The writes that change something to true, and those that keep it true.
#[derive(Debug, Default)]
pub(crate) struct Latch {
    to_true: Seen,
    pub(crate) stays_true: Seen,
    /// Whether a write changes it from true to something else.
    pub(crate) is_reverted: bool,
}

impl Latch {
    pub(crate) fn see(&mut self, object: u32, old: bool, new: bool) {
        match (old, new) {
            (false, true) => self.to_true.see(object),
            (true, true) => self.stays_true.see(object),
            (true, false) => self.is_reverted = true,
            (false, false) => {}
        }
    }

    pub(crate) const fn holds(&self) -> bool {
        self.to_true.objects >= MIN_OBJECTS
            && self.stays_true.objects >= MIN_OBJECTS
            && !self.is_reverted
    }
}

/// Rows by name, at most [`MAX_ROWS`]: a hostile recording has any number of names.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table<V> {
    rows: BTreeMap<String, V>,
    /// Whether rows were left out. Then the table proves nothing about what it does not have.
    pub(crate) is_full: bool,
}

/// The rows of a table.
pub(crate) const MAX_ROWS: usize = 128;

/// The bytes of a name: the longest condition type that Go accepts.
const MAX_NAME: usize = 317;

impl<V: Default> Table<V> {
    /// Changes the row of a name, if there is place for it. A name that only looks like another one has none.
    pub(crate) fn with(&mut self, name: &str, change: impl FnOnce(&mut V)) {
        if let Some(row) = self.rows.get_mut(name) {
            change(row);
        } else if self.rows.len() == MAX_ROWS || name.len() > MAX_NAME || one_line(name) != name {
            self.is_full = true;
        } else {
            change(self.rows.entry(name.to_owned()).or_default());
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&V> {
        self.rows.get(name)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &V)> + Clone {
        self.rows.iter().map(|(name, row)| (name.as_str(), row))
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether the set of names can be closed, and the names that the next object is expected to add, in words. By the
    /// estimate of Good and Turing for incidences, that are the names of exactly one object (`once`), divided by the objects.
    pub(crate) fn closing(&self, names: &str, objects: u32, once: usize) -> (bool, String) {
        let expected = once as f64 / f64::from(objects);
        let is_settled = objects >= CLOSED_OBJECTS && expected <= CLOSED_EXPECTED && !self.is_full;
        (is_settled, format!("{expected:.2} new {names} expected in the next object, of {objects}"))
    }
}

impl Table<Seen> {
    pub(crate) fn see(&mut self, name: &str, object: u32) {
        self.with(name, |seen| seen.see(object));
    }
}
