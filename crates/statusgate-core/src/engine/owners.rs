//! Who changes an owned field or condition.

use std::ptr;

use super::Cause;
use super::because::quoted;
use super::conditions::{ByKey, Key};
use super::evidence::Facts;
use super::judge::Judging;
use super::violation::{Sink, Violation};
use crate::language::any_of;
use crate::model::{Conditions, Json, Pointer, Subject, in_status, same};
use crate::policy::convention::ConditionList;
use crate::policy::{Disposition, Owner};

/// A part of a status: a field, or the conditions of one type.
#[derive(Clone, Copy)]
pub(super) enum Part<'p> {
    Field(&'p Pointer),
    Conditions(&'p ConditionList, &'p str),
}

impl Part<'_> {
    /// Whether a status lacks it.
    fn is_absent(self, status: Option<&Json<'_>>) -> bool {
        match self {
            Self::Field(path) => in_status(status, path).is_none_or(Json::is_null),
            Self::Conditions(list, kind) => of_type(list, kind, status).next().is_none(),
        }
    }

    fn is_same(self, one: Option<&Json<'_>>, other: Option<&Json<'_>>) -> bool {
        match self {
            Self::Field(path) => same(in_status(one, path), in_status(other, path)),
            Self::Conditions(list, kind) => {
                let items = |status| of_type(list, kind, status).map(|(_, item)| item);
                items(one).eq(items(other))
            }
        }
    }

    /// Replaces it in a status with what is stored. Returns whether there is a place for that.
    pub(super) fn put_back<'a>(self, status: &mut Json<'a>, stored: Option<&Json<'a>>) -> bool {
        match self {
            Self::Field(path) => {
                status.put(path.below_status(), in_status(stored, path).cloned());
            }
            Self::Conditions(list, kind) => {
                let path = list.path.below_status();
                if status.at(path).is_none_or(Json::is_null) {
                    status.put(path, Some(Json::Array(Vec::new())));
                }
                if let Some(Json::Array(items)) = status.at_mut(path) {
                    items.retain(|item| !is_of_type(item, kind));
                    let stored = Conditions::of(in_status(stored, &list.path)).items();
                    for (index, item) in missing(list, stored, items, |other| other == kind) {
                        items.insert(index, item.clone());
                    }
                }
            }
        }
        self.is_same(Some(status), stored)
    }

    /// Where it is in a status: of conditions, the first one or where they were.
    fn field(self, status: Option<&Json<'_>>) -> String {
        match self {
            Self::Field(path) => path.field().to_owned(),
            Self::Conditions(list, kind) => match of_type(list, kind, status).next() {
                Some((index, _)) => format!("{}[{index}]", list.path.field()),
                None => list.path.field().to_owned(),
            },
        }
    }
}

/// The conditions of a type, each with its index.
fn of_type<'j, 'a>(
    list: &ConditionList,
    kind: &str,
    status: Option<&'j Json<'a>>,
) -> impl Iterator<Item = (usize, &'j Json<'a>)> {
    let items = in_status(status, &list.path).and_then(Json::as_array).unwrap_or_default();
    items.iter().enumerate().filter(move |(_, item)| is_of_type(item, kind))
}

fn is_of_type(item: &Json<'_>, kind: &str) -> bool {
    kind_of(item) == Some(kind)
}

fn kind_of<'j>(item: &'j Json<'_>) -> Option<&'j str> {
    item.get("type").and_then(Json::as_str)
}

/// The stored elements of the wanted types that a list lacks, each with the index at which it is inserted, in
/// this order: behind the element before it in the stored list.
pub(super) fn missing<'j, 'a>(
    list: &ConditionList,
    stored: &'j [Json<'a>],
    written: &[Json<'a>],
    is_wanted: impl Fn(&str) -> bool,
) -> Vec<(usize, &'j Json<'a>)> {
    let mut by_key = ByKey::new(written);
    let mut find = |item| by_key.find(item, Key::of_item(list, item));
    // Without its key, it cannot be found in the other list.
    let is_wanted = |item: &Json<'a>| {
        kind_of(item).is_some_and(&is_wanted)
            && item.is_whole()
            && Key::of_item(list, item).texts(item).is_some()
    };
    if !stored.iter().any(|item| is_wanted(item) && find(item).is_none()) {
        return Vec::new();
    }
    let (mut missing, mut before) = (Vec::new(), None);
    for item in stored {
        match find(item) {
            Some(found) => before = Some(found),
            None if is_wanted(item) => {
                let index =
                    before.and_then(|one| written.iter().position(|item| ptr::eq(item, one)));
                missing.push((index.map_or(0, |index| index + 1), item));
            }
            None => {}
        }
    }
    missing.sort_by_key(|(index, _)| *index);
    for (others, (index, _)) in missing.iter_mut().enumerate() {
        *index += others;
    }
    missing
}

impl<'p, 'a> Judging<'p, '_, 'a> {
    /// Judges which parts with other owners this write changed.
    pub(super) fn judge_owners(&self, facts: &Facts<'_, 'a>, violations: &mut dyn Sink<'p>) {
        let Some(rule) = &self.policy.owner_rule else { return };
        let Subject { writer, resource, .. } = self.subject;
        let list = self.policy.owned_list(&resource.version);
        let parts = self.policy.owners.iter().flat_map(|owner| {
            let conditions = list.into_iter().flat_map(|list| {
                owner.conditions.iter().map(move |kind| Part::Conditions(list, kind))
            });
            let field = owner.path.as_deref().map(Part::Field);
            field.into_iter().chain(conditions).map(move |part| (owner, part))
        });
        let written = facts.object.status.as_ref();
        let before = facts.old.and_then(|old| old.status.as_ref());
        let others: Vec<(&Owner, Part<'_>)> = parts
            .filter(|(_, part)| !part.is_same(written, before))
            .filter(|(owner, _)| !owner.writers.include(writer))
            .collect();
        if others.is_empty() {
            return;
        }
        let mutated = self.mutated_without(others.iter().map(|(_, part)| *part));
        // What the mutating webhook makes of the write, if it has not judged it.
        let restored = self.mutated(self.subject.object.status.clone(), false);
        for (owner, part) in others {
            // The writer is not responsible for a value that the mutating webhook set.
            if mutated.is_some() && part.is_same(written, mutated.as_ref()) {
                continue;
            }
            let is_restored = part.is_absent(written) && part.is_same(restored.as_ref(), before);
            let action = if is_restored { Disposition::Warn } else { Disposition::Deny };
            let user = quoted(&writer.user);
            let message = match part {
                Part::Field(_) => format!("{user} does not own this field"),
                Part::Conditions(_, kind) => {
                    let owners = owner.writers.users.iter().chain(&owner.writers.groups);
                    let owners = any_of(owners.map(ToString::to_string));
                    format!("condition {kind} belongs to {owners}, not to {user}")
                }
            };
            let found = Violation::new(rule, action, part.field(written), message);
            violations.push(found.cause(Cause::Forbidden).transition());
        }
    }
}
