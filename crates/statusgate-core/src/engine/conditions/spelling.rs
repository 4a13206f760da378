//! New types and reasons that are nearly a known one: a typing mistake.

use super::super::because::quoted;
use super::super::violation::Violation;
use super::super::{Cause, Facts};
use super::elements::JudgedElement;
use crate::model::Json;
use crate::policy::convention::Reasons;

impl<'p: 's, 's, 'a> JudgedElement<'p, 's, 'a> {
    /// A new type that is nearly a declared one, or nearly one that this write removes. The list must not have
    /// both: then they are two types.
    pub(super) fn misspelled_type(
        &self,
        kind: &str,
        facts: &Facts<'s, 'a>,
    ) -> Option<Violation<'p>> {
        let list = self.path.list;
        let sanction = list.misspelled.as_ref().filter(|_| self.before.is_none())?;
        let stored = facts.old_conditions.map(|stored| stored.items()).unwrap_or_default();
        let stored = stored.iter().filter_map(|item| item.get("type")?.as_str());
        let declared = list.types.values().filter_map(|known| known.glob.exact());
        let mut known = stored.chain(declared).filter(|known| is_near(kind, known));
        let meant = known.find(|known| facts.conditions.find(known).is_none())?;
        let message =
            format!("{} is not a known type: did you mean {}?", quoted(kind), quoted(meant));
        let found = self.violation(sanction, "type", message).cause(Cause::NotSupported);
        Some(found.transition())
    }

    /// A new reason that is nearly one of the type.
    pub(super) fn misspelled_reason(
        &self,
        reason: &str,
        reasons: &Reasons,
    ) -> Option<Violation<'p>> {
        let sanction = self.path.list.misspelled.as_ref()?;
        let stored = self.before.and_then(|stored| stored.get("reason")).and_then(Json::as_str);
        let mut known =
            reasons.all().filter(|known| stored != Some(reason) && is_near(reason, known));
        let (reason, meant) = (quoted(reason), quoted(known.next()?));
        let message = format!("{reason} is not a known reason: did you mean {meant}?");
        let found = self.violation(sanction, "reason", message).cause(Cause::NotSupported);
        Some(found.transition())
    }
}

/// Whether two names differ only in case or in one letter: it is missing, or another one, or two changed
/// places. Names with other digits are other names, and so are most short ones.
fn is_near(one: &str, other: &str) -> bool {
    const SHORTEST: usize = 4;
    if one.len().min(other.len()) < SHORTEST || one.len().abs_diff(other.len()) > 1 || one == other
    {
        return false;
    }
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let start = one.iter().zip(other).take_while(|(one, other)| one == other).count();
    let (left, right) = (&one[start..], &other[start..]);
    let both = left.iter().rev().zip(right.iter().rev());
    let end = both.take_while(|(one, other)| one == other).count();
    let (left, right) = (&left[..left.len() - end], &right[..right.len() - end]);
    let letters = left.iter().chain(right).all(u8::is_ascii_alphabetic);
    one.eq_ignore_ascii_case(other)
        || letters
            && match (left, right) {
                ([_], [_] | []) | ([], [_]) => true,
                ([a, b], [c, d]) => (a, b) == (d, c),
                _ => false,
            }
}

#[cfg(test)]
mod tests {
    use super::is_near;

    #[test]
    fn names_are_near_that_differ_in_one_letter_or_in_case() {
        for near in ["ready", "Redy", "Readyy", "Raedy", "Rexdy", "eady", "READY"] {
            assert!(is_near(near, "Ready") && is_near("Ready", near), "{near}");
        }
        for other in ["Ready", "Read1y", "Rdy", "NotReady", "Redayy", "Rxxdy", ""] {
            assert!(!is_near(other, "Ready"), "{other}");
        }
        assert!(
            !is_near("Phase1", "Phase2")
                && !is_near("Available", "Unavailable")
                && !is_near("Up", "Us")
        );
    }
}
