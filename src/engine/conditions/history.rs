//! A list that grows at its end: what was in it stays as it was, but for the oldest, which go.

use super::super::Cause;
use super::super::ratchet::Violation;
use super::{same, violation};
use crate::model::Json;
use crate::policy::convention::{ConditionList, History, Sanction};

/// Judges the growth of a list: the new one is the stored one, without some of its oldest elements
/// where the list is full, with new ones at its end.
pub(super) fn judge<'p>(
    history: &'p History,
    list: &'p ConditionList,
    items: &[Json<'_>],
    stored: &[Json<'_>],
    violations: &mut Vec<Violation<'p>>,
) {
    let path = list.path.field();
    let mut say = |sanction: &'p Sanction, field: String, message: &str| {
        violations.push(Violation {
            cause: Cause::Invalid,
            action: sanction.action,
            ratcheted: false,
            ..violation(&sanction.rule, field, message.to_owned())
        });
    };
    let full = list.max_items.is_some_and(|most| items.len() >= most);
    let forgotten = (0..=stored.len())
        .take(if full { stored.len() + 1 } else { 1 })
        .find(|forgotten| items.starts_with(&stored[*forgotten..]));
    let Some(forgotten) = forgotten else {
        say(&history.rewritten, path.to_owned(), "what was in the list has changed");
        return;
    };
    let known = stored.len() - forgotten;
    for index in known.max(1)..items.len() {
        let (item, last) = (&items[index], &items[index - 1]);
        let differs = |member: &String| !same(item.get(member), last.get(member));
        if !history.distinct.is_empty() && !history.distinct.iter().any(differs) {
            say(&history.repeated, format!("{path}[{index}]"), "says what the one before it says");
        }
    }
}
