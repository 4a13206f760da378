//! A violation, and how it is recognized in the stored object: only what *this* write introduced counts.

use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::LazyLock;

use super::Cause;
use crate::model::{Json, parse_rfc3339};
use crate::policy::convention::Sanction;
use crate::policy::{Disposition, Id};

/// A violation, before the ratchet decides whether it counts.
#[derive(Debug)]
pub(crate) struct Violation<'p> {
    pub(crate) rule: &'p Id,
    /// The field in the finding, with list elements by index.
    pub(crate) field: String,
    /// The same field with list elements by key, if they have one: inserting an element changes the
    /// indices of others. `None` if it equals `field`.
    pub(crate) place: Option<String>,
    pub(crate) cause: Cause,
    pub(crate) message: String,
    pub(crate) action: Disposition,
    /// Whether the same violation of the stored object excuses it.
    pub(crate) ratcheted: bool,
    /// Whether it is about a limit that keeps a rule from being judged. A stored violation then softens it
    /// to a warning.
    pub(crate) is_limit: bool,
    /// The value, if the check is about one value: the stored object excuses only the same value, as in
    /// the API server's own ratchet.
    pub(crate) value: Option<Digest>,
}

impl<'p> Violation<'p> {
    /// A violation of a rule: an invalid value, which the stored object can excuse.
    pub(crate) fn new(
        rule: &'p Id,
        action: Disposition,
        field: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            rule,
            field: field.into(),
            place: None,
            cause: Cause::Invalid,
            message: message.into(),
            action,
            ratcheted: true,
            is_limit: false,
            value: None,
        }
    }

    /// The same for a rule that is built into the engine.
    pub(crate) fn by(
        sanction: &'p Sanction,
        field: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self::new(&sanction.rule, sanction.action, field, message)
    }

    pub(crate) fn cause(self, cause: Cause) -> Self {
        Self { cause, ..self }
    }

    pub(crate) fn at(self, place: String) -> Self {
        Self { place: Some(place), ..self }
    }

    /// A violation by the change itself: the stored object cannot excuse it.
    pub(crate) fn transition(self) -> Self {
        Self { ratcheted: false, ..self }
    }

    /// A limit that keeps a rule from being judged here. Violations of the rule have other places.
    pub(crate) fn limit(self) -> Self {
        let place = self.place.as_deref().unwrap_or(&self.field);
        Self { place: Some(format!("{place} limit")), is_limit: true, ..self }
    }

    /// The value that violates the rule. It is irrelevant if the rule is about its presence.
    pub(crate) fn of_value(self, value: Option<&Json<'_>>) -> Self {
        let about_presence = matches!(self.cause, Cause::Required | Cause::Forbidden);
        Self { value: value.filter(|_| !about_presence).map(Digest::of), ..self }
    }

    fn hash_of_place(&self) -> u64 {
        HASHER.hash_one((self.rule.index(), self.place.as_deref().unwrap_or(&self.field)))
    }

    fn hash(&self) -> u64 {
        let place = self.hash_of_place();
        self.value.map_or(place, |value| HASHER.hash_one((place, value)))
    }
}

/// Receives violations as they are found. They are not collected before the ratchet: an object of three
/// bytes can have a thousand.
pub(crate) trait Sink<'p> {
    fn push(&mut self, violation: Violation<'p>);
}

/// For the few violations that a phase can have.
impl<'p> Sink<'p> for Vec<Violation<'p>> {
    fn push(&mut self, violation: Violation<'p>) {
        Self::push(self, violation);
    }
}

/// The violations of the stored object: hashes of rules and places, with and without values.
#[derive(Debug, Default)]
pub(crate) struct StoredViolations(HashSet<u64>);

impl<'p> Sink<'p> for StoredViolations {
    fn push(&mut self, violation: Violation<'p>) {
        self.0.extend([violation.hash_of_place(), violation.hash()]);
    }
}

impl StoredViolations {
    /// Whether the stored object excuses a violation: the write did not introduce it.
    pub(crate) fn excuses(&self, violation: &Violation<'_>) -> bool {
        violation.ratcheted && self.0.contains(&violation.hash())
    }
}

/// A hash of a value. Equal values have equal hashes: objects in any order, `5` and `5.0`, and times of
/// one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Digest(u64);

/// With 64 bits and a random key for each process, two places or values do not collide.
static HASHER: LazyLock<RandomState> = LazyLock::new(RandomState::new);

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
                let each = members.iter().map(|(name, json)| HASHER.hash_one((name, Hashed(json))));
                // In any order.
                each.fold(0, u64::wrapping_add).hash(state);
            }
        }
    }
}
