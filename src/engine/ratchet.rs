//! Judging what *this* write introduced, not what was already there.

use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use super::Cause;
use crate::policy::Disposition;

/// A violation before it is known whether it counts.
#[derive(Debug)]
pub(crate) struct Violation<'p> {
    pub(crate) rule: &'p str,
    /// The field as answers name it, list elements by index.
    pub(crate) field: String,
    /// The same place by key where list elements have one: a condition that moved up in its list
    /// violates what it violated before. `None` where it equals `field`.
    pub(crate) place: Option<String>,
    pub(crate) cause: Cause,
    pub(crate) message: String,
    pub(crate) action: Disposition,
    /// Whether it counts only when the stored object does not have it in the same place.
    pub(crate) ratcheted: bool,
}

/// Where violations go as they are found. They are not collected before it is known which of them
/// count: of an object of three bytes a violation can make a thousand.
pub(crate) struct Violations<'p, 'v> {
    take: &'v mut dyn FnMut(Violation<'p>),
}

impl<'p, 'v> Violations<'p, 'v> {
    pub(crate) fn new(take: &'v mut dyn FnMut(Violation<'p>)) -> Self {
        Self { take }
    }

    pub(crate) fn push(&mut self, violation: Violation<'p>) {
        (self.take)(violation);
    }
}

/// Tells what a write introduced from what the stored object violates already.
pub(crate) struct Introduced<F> {
    /// Judges the stored object by itself. Called only when there is something to compare: a clean
    /// write never pays for it. `None` where nothing was stored that a violation could stand in.
    judge_stored: Option<F>,
    known: Option<HashSet<u64>>,
    hasher: RandomState,
}

impl<F> Introduced<F> {
    pub(crate) fn over<'p>(judge_stored: Option<F>) -> Self
    where
        F: FnOnce(&mut Violations<'p, '_>),
    {
        Self { judge_stored, known: None, hasher: RandomState::new() }
    }

    /// Whether a violation counts.
    pub(crate) fn counts<'p>(&mut self, violation: &Violation<'p>) -> bool
    where
        F: FnOnce(&mut Violations<'p, '_>),
    {
        if !violation.ratcheted {
            return true;
        }
        let hasher = &self.hasher;
        // Hashes of places, not places: of 64 bits and with a key of this process no two will meet.
        if let Some(judge) = self.judge_stored.take() {
            let mut known = HashSet::new();
            judge(&mut Violations::new(&mut |violation| {
                known.insert(hasher.hash_one(violation.place()));
            }));
            self.known = Some(known);
        }
        let known = self.known.as_ref();
        known.is_none_or(|known| !known.contains(&hasher.hash_one(violation.place())))
    }
}

impl Violation<'_> {
    fn place(&self) -> (&str, &str) {
        (self.rule, self.place.as_deref().unwrap_or(&self.field))
    }
}
