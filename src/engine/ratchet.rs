//! Judging what *this* write introduced, not what was already there.

use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::LazyLock;

use super::Cause;
use crate::model::{Json, parse_rfc3339};
use crate::policy::{Disposition, Id};

/// A violation before it is known whether it counts.
#[derive(Debug)]
pub(crate) struct Violation<'p> {
    pub(crate) rule: &'p Id,
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
    /// The value, where the check is one of a single value: the stored object excuses it only with
    /// the same one. As in the API server's own ratchet.
    pub(crate) value: Option<Digest>,
}

/// Where violations go as they are found. They are not collected before it is known which of them
/// count: of an object of three bytes a violation can make a thousand.
pub(crate) trait Sink<'p> {
    fn push(&mut self, violation: Violation<'p>);
}

/// For the few violations that a phase can have.
impl<'p> Sink<'p> for Vec<Violation<'p>> {
    fn push(&mut self, violation: Violation<'p>) {
        Self::push(self, violation);
    }
}

/// What the stored object violates: hashes of rules and places, with and without values.
#[derive(Debug, Default)]
pub(crate) struct Stored(HashSet<u64>);

impl<'p> Sink<'p> for Stored {
    fn push(&mut self, violation: Violation<'p>) {
        self.0.insert(violation.place());
        self.0.insert(violation.place_and_value());
    }
}

impl Stored {
    /// Whether the stored object excuses a violation: the write did not introduce it.
    pub(crate) fn excuses(&self, violation: &Violation<'_>) -> bool {
        violation.ratcheted && self.0.contains(&violation.place_and_value())
    }
}

/// A value in short. Two values have one where they are the same: objects in any order, `5` and
/// `5.0`, and times of one instant.
#[derive(Clone, Copy, Debug, Hash)]
pub(crate) struct Digest(u64);

/// Of 64 bits and with a key of this process no two places or values will meet.
static HASHER: LazyLock<RandomState> = LazyLock::new(RandomState::new);

impl Violation<'_> {
    fn place(&self) -> u64 {
        HASHER.hash_one((self.rule.index(), self.place.as_deref().unwrap_or(&self.field)))
    }

    fn place_and_value(&self) -> u64 {
        self.value.map_or_else(|| self.place(), |value| HASHER.hash_one((self.place(), value)))
    }
}

impl Digest {
    pub(crate) fn of(value: &Json<'_>) -> Self {
        match value.as_str().and_then(parse_rfc3339) {
            Some(time) => Self(HASHER.hash_one(time)),
            None => Self(HASHER.hash_one(Hashed(value))),
        }
    }
}

/// Equal values have equal hashes.
struct Hashed<'j, 'a>(&'j Json<'a>);

impl Hash for Hashed<'_, '_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.kind().hash(state);
        match self.0 {
            Json::Null | Json::Deep => {}
            Json::Bool(value) => value.hash(state),
            Json::Number(number) => match (self.0.as_i64(), number.as_f64()) {
                (None, Some(float)) => float.to_bits().hash(state),
                (whole, _) => whole.hash(state),
            },
            Json::String(text) | Json::Large(text) => text.hash(state),
            Json::Array(items) => items.iter().for_each(|item| Hashed(item).hash(state)),
            Json::Object(members) => {
                let member = |(name, value)| HASHER.hash_one((name, Hashed(value)));
                // In any order.
                members.iter().map(member).fold(0, u64::wrapping_add).hash(state);
            }
        }
    }
}
