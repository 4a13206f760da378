//! Lists of conditions: where they are, and what their elements have in common.

use statusgate_core::model::{Json, is_before_write, parse_rfc3339, same_instant};

use super::MIN_OBJECTS;
use super::recording::Write;
use super::tally::{Seen, Table};
use super::text::escaped;

/// A list of one write.
pub(crate) struct Found<'j, 'a> {
    /// With `*` for the elements of an outer list.
    pub(crate) path: String,
    pub(crate) items: &'j [Json<'a>],
    pub(crate) stored: &'j [Json<'a>],
    /// The element of the outer list.
    parent: Option<&'j Json<'a>>,
}

impl Found<'_, '_> {
    /// Whether its elements are conditions. Otherwise it has their name only.
    pub(crate) fn is_of_conditions(&self) -> bool {
        self.items.first().is_some_and(is_condition)
    }
}

/// The objects inside each other in which lists are searched.
const MAX_DEPTH: usize = 4;

/// The elements of a list. A longer one is not read.
const MAX_ITEMS: usize = 128;

/// Visits the lists of conditions of a status, each with the stored list at its place.
pub(crate) fn walk<'j, 'a>(
    status: &'j Json<'a>,
    old: Option<&'j Json<'a>>,
    visit: &mut dyn FnMut(Found<'j, 'a>),
) {
    walk_in(status, old, "/status", None, 0, visit);
}

fn walk_in<'j, 'a>(
    value: &'j Json<'a>,
    old: Option<&'j Json<'a>>,
    path: &str,
    parent: Option<&'j Json<'a>>,
    depth: usize,
    visit: &mut dyn FnMut(Found<'j, 'a>),
) {
    let Json::Object(members) = value else { return };
    for (name, inner) in members.iter() {
        let path = format!("{path}/{}", escaped(name));
        let old = old.and_then(|old| old.get(name));
        let stored = old.and_then(Json::as_array).unwrap_or_default();
        match inner {
            // Elements are compared with each other.
            Json::Array(items) if items.len().max(stored.len()) > MAX_ITEMS => {}
            Json::Array(items)
                if items
                    .first()
                    .is_some_and(|first| is_condition(first) || is_history(name, first)) =>
            {
                visit(Found { path, items, stored, parent });
            }
            // Conventions have one outer list.
            Json::Array(items) if parent.is_none() && depth < MAX_DEPTH => {
                let path = format!("{path}/*");
                for item in items {
                    let old = stored.iter().find(|other| is_same_parent(item, other));
                    walk_in(item, old, &path, Some(item), depth + 1, visit);
                }
            }
            Json::Object(_) if depth < MAX_DEPTH => {
                walk_in(inner, old, &path, parent, depth + 1, visit);
            }
            _ => {}
        }
    }
}

fn is_history(name: &str, first: &Json<'_>) -> bool {
    matches!(first, Json::Object(_))
        && (name == "conditions" || name.to_ascii_lowercase().ends_with("history"))
}

fn is_condition(item: &Json<'_>) -> bool {
    ["type", "status"].iter().all(|name| item.get(name).and_then(Json::as_str).is_some())
}

/// Whether two elements of an outer list have the same scalars and references.
fn is_same_parent(one: &Json<'_>, other: &Json<'_>) -> bool {
    let Json::Object(members) = one else { return false };
    let mut members = members.iter().filter(|(_, value)| !matches!(value, Json::Array(_)));
    members.all(|(name, value)| other.get(name) == Some(value))
}

/// The statuses of a condition.
pub(crate) const STATUSES: [&str; 3] = ["True", "False", "Unknown"];

/// The members of which a change may move the time.
pub(crate) const MOVING: [&str; 4] = ["status", "severity", "reason", "message"];

/// The facts about the lists at one path.
#[derive(Debug, Default)]
pub(crate) struct ListFacts {
    /// The lists.
    pub(crate) lists: Seen,
    pub(crate) elements: u32,
    /// The elements whose status is another text.
    pub(crate) odd_statuses: u32,
    pub(crate) members: Table<MemberFacts>,
    pub(crate) types: Table<TypeFacts>,
    /// Of a change of each member of [`MOVING`], and of a write that changes none of them.
    pub(crate) moves: [MoveFacts; 4],
    pub(crate) unchanged: MoveFacts,
    pub(crate) backwards: Seen,
    pub(crate) transitions: Seen,
    /// The scalar members of the elements of the outer list, with how many have them.
    pub(crate) parent_members: Table<Seen>,
}

/// The facts about a member of elements.
#[derive(Debug, Default)]
pub(crate) struct MemberFacts {
    pub(crate) seen: Seen,
    pub(crate) is_other_than_text: bool,
    pub(crate) is_other_than_integer: bool,
}

/// The facts about a condition type.
#[derive(Debug, Default)]
pub(crate) struct TypeFacts {
    pub(crate) seen: Seen,
    pub(crate) statuses: [Seen; 3],
    /// By reason, for each status.
    pub(crate) reasons: Table<[Seen; 3]>,
    /// The elements without a reason, for each status.
    pub(crate) no_reason: [Seen; 3],
    /// The writes of a list that had the type and still has it, or no more.
    pub(crate) kept: Seen,
    pub(crate) removed: Seen,
    /// The writes that change the status to True, keep True, or change it to something else.
    pub(crate) to_true: Seen,
    pub(crate) stays_true: Seen,
    pub(crate) reverted: Seen,
}

/// The writes that moved a time, and those that kept one that lies before the write.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MoveFacts {
    pub(crate) moved: Seen,
    pub(crate) kept: Seen,
}

impl TypeFacts {
    pub(crate) const fn is_latch(&self) -> bool {
        self.to_true.objects >= MIN_OBJECTS
            && self.stays_true.objects >= MIN_OBJECTS
            && self.reverted.writes == 0
    }
}

impl ListFacts {
    pub(crate) fn see(&mut self, write: &Write<'_>, found: &Found<'_, '_>) {
        let object = write.object;
        self.lists.see(object);
        if let Some(Json::Object(members)) = found.parent {
            let scalars = members
                .iter()
                .filter(|(_, value)| !matches!(value, Json::Array(_)) && !value.is_empty());
            for (name, _) in scalars {
                if let Some(row) = self.parent_members.row(name) {
                    row.see(object);
                }
            }
        }
        for item in found.items {
            self.see_element(object, item);
            let stored = text(item, "type").and_then(|name| find(found.stored, name));
            if let Some(stored) = stored {
                self.see_transition(write, stored, item);
            }
        }
        for stored in found.stored {
            let Some(name) = text(stored, "type") else { continue };
            if find(found.items, name).is_none()
                && let Some(facts) = self.types.row(name)
            {
                facts.removed.see(object);
            }
        }
    }

    fn see_element(&mut self, object: u32, item: &Json<'_>) {
        let Json::Object(members) = item else { return };
        self.elements += 1;
        for (name, value) in members.iter().filter(|(_, value)| !value.is_null()) {
            let Some(facts) = self.members.row(name) else { continue };
            facts.seen.see(object);
            let text = value.as_str();
            facts.is_other_than_text |= text.is_none();
            facts.is_other_than_integer |= value.as_i64().is_none();
        }
        let Some(index) = status(item) else {
            self.odd_statuses += 1;
            return;
        };
        let Some(facts) = text(item, "type").and_then(|name| self.types.row(name)) else { return };
        facts.seen.see(object);
        facts.statuses[index].see(object);
        match text(item, "reason").filter(|reason| !reason.is_empty()) {
            None => facts.no_reason[index].see(object),
            Some(reason) => {
                if let Some(row) = facts.reasons.row(reason) {
                    row[index].see(object);
                }
            }
        }
    }

    fn see_transition(&mut self, write: &Write<'_>, old: &Json<'_>, new: &Json<'_>) {
        let object = write.object;
        if let Some(facts) = text(new, "type").and_then(|name| self.types.row(name)) {
            facts.kept.see(object);
            match (status(old) == Some(0), status(new) == Some(0)) {
                (false, true) => facts.to_true.see(object),
                (true, true) => facts.stays_true.see(object),
                (true, false) => facts.reverted.see(object),
                (false, false) => {}
            }
        }
        let time = |of| text(of, "lastTransitionTime");
        let (Some(before), Some(after)) = (time(old), time(new)) else { return };
        self.transitions.see(object);
        let is_moved = !same_instant(before, after);
        if parse_rfc3339(after) < parse_rfc3339(before) {
            self.backwards.see(object);
        }
        let changed = MOVING.iter().position(|name| {
            text(old, name).unwrap_or_default() != text(new, name).unwrap_or_default()
        });
        let facts = changed.map_or(&mut self.unchanged, |index| &mut self.moves[index]);
        let now = write.time().as_second();
        if is_moved {
            facts.moved.see(object);
        } else if write.has_time()
            && parse_rfc3339(before).is_some_and(|before| is_before_write(before, now))
        {
            facts.kept.see(object);
        }
    }

    /// The known types in the order of how many objects have them.
    pub(crate) fn types_by_objects(&self) -> Vec<(&str, &TypeFacts)> {
        let mut types: Vec<_> =
            self.types.iter().filter(|(_, facts)| facts.seen.objects > 0).collect();
        types.sort_by_key(|(_, facts)| std::cmp::Reverse(facts.seen.objects));
        types
    }
}

pub(crate) fn text<'j>(item: &'j Json<'_>, name: &str) -> Option<&'j str> {
    item.get(name)?.as_str()
}

fn status(item: &Json<'_>) -> Option<usize> {
    let status = text(item, "status")?;
    STATUSES.iter().position(|known| *known == status)
}

fn find<'j, 'a>(items: &'j [Json<'a>], name: &str) -> Option<&'j Json<'a>> {
    items.iter().find(|item| text(item, "type") == Some(name))
}
