//! Judging what *this* write introduced, not what was already there.

use std::collections::HashSet;

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

impl Violation<'_> {
    fn place(&self) -> (&str, &str) {
        (self.rule, self.place.as_deref().unwrap_or(&self.field))
    }
}

/// Drops what the stored object violates already. `stored` judges the stored object by itself and
/// is called only when there is something to compare: a clean write never pays for it.
pub(crate) fn keep_introduced<'p>(
    violations: &mut Vec<Violation<'p>>,
    stored: impl FnOnce() -> Vec<Violation<'p>>,
) {
    if !violations.iter().any(|violation| violation.ratcheted) {
        return;
    }
    let stored = stored();
    let known: HashSet<(&str, &str)> = stored.iter().map(Violation::place).collect();
    violations.retain(|violation| !violation.ratcheted || !known.contains(&violation.place()));
}
