//! Counts of objects and writes.

use std::collections::BTreeMap;

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

/// Rows by name, at most [`MAX_ROWS`]: a hostile recording has any number of names.
#[derive(Clone, Debug)]
pub(crate) struct Table<V> {
    rows: BTreeMap<String, V>,
    /// Whether rows were left out. Then the table proves nothing about what it does not have.
    pub(crate) is_full: bool,
}

/// The rows of a table.
pub(crate) const MAX_ROWS: usize = 128;

/// The bytes of a name: the longest condition type that Go accepts.
const MAX_NAME: usize = 317;

impl<V> Default for Table<V> {
    fn default() -> Self {
        Self { rows: BTreeMap::new(), is_full: false }
    }
}

impl<V: Default> Table<V> {
    /// The row of a name; `None` if there is no place for it.
    pub(crate) fn row(&mut self, name: &str) -> Option<&mut V> {
        if !self.rows.contains_key(name) {
            if self.rows.len() == MAX_ROWS || name.len() > MAX_NAME {
                self.is_full = true;
                return None;
            }
            self.rows.insert(name.to_owned(), V::default());
        }
        self.rows.get_mut(name)
    }
}

impl<V> Table<V> {
    pub(crate) fn get(&self, name: &str) -> Option<&V> {
        self.rows.get(name)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &V)> + Clone {
        self.rows.iter().map(|(name, row)| (name.as_str(), row))
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The names that the next object is expected to add, by the estimate of Good and Turing for incidences: the names of
    /// exactly one object, divided by the objects.
    pub(crate) fn expected_new(&self, objects: u32, seen: impl Fn(&V) -> Seen) -> f64 {
        let once = self.rows.values().filter(|row| seen(row).objects == 1).count();
        if objects == 0 { 1.0 } else { once as f64 / f64::from(objects) }
    }
}
