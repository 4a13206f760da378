//! Sets defaults: absent fields, members of conditions, and complete conditions. Removes members that some
//! elements must not have.

use std::cell::OnceCell;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::conditions::{ByKey, ByType, Key, MAX_ELEMENTS, SCAN_LIMIT, same, surplus};
use super::draft::Draft;
use super::evidence::{Answers, Facts, Truth, with_element};
use super::fields;
use super::status_write::StatusChange;
use crate::documents::{CopySource, Origin};
use crate::language::{MemberOf, Predicate};
use crate::model::{Conditions, Json, Object, Pointer, Subject};
use crate::policy::Disposition;
use crate::policy::convention::{Backfill, ConditionList, Convention, Filling, ValueSource};

/// The input of the defaults of one policy.
pub(super) struct Defaults<'f, 's, 'a> {
    pub(super) convention: &'f Convention,
    /// The facts of the subject's object with the changes so far.
    pub(super) facts: &'f Facts<'s, 'a>,
    pub(super) subject: &'f Subject<'a>,
    /// The time of the write.
    pub(super) now: i64,
}

/// Whether a default certainly changes nothing. This is a fast check, because most writes need no default.
pub(super) fn is_idle(default: &Backfill, object: &Object<'_>) -> bool {
    match &default.filling {
        Filling::Absent(path) => object.at_status(path).is_none_or(|value| !value.is_null()),
        Filling::Field(path, _) => object.at_status(path).is_some_and(|value| !value.is_null()),
        _ => false,
    }
}

/// The place that needs a value, for sources that read the same place of the stored object.
struct Wanted<'w> {
    /// The member of a condition, if the place is in a condition.
    member: Option<Member<'w>>,
    stored: Option<&'w Json<'w>>,
    /// Whether the condition is what it was in the stored object.
    settled: bool,
}

/// A member of the conditions of a list.
#[derive(Clone, Copy)]
struct Member<'w> {
    list: &'w Pointer,
    name: &'w str,
    /// The written conditions of the list.
    written: &'w ByType<'w, 'w>,
}

/// The stored conditions of a list.
struct StoredConditions<'j, 'a> {
    rules: Option<&'j ConditionList>,
    by_key: ByKey<'j, 'j, 'a>,
    by_type: ByType<'j, 'a>,
}

impl<'j, 'a> StoredConditions<'j, 'a> {
    /// The stored element with the same key. Without rules for the list, the one with the same type.
    fn find(&mut self, item: &Json<'_>) -> Option<&'j Json<'a>> {
        let kind = item.get("type").and_then(Json::as_str);
        match self.rules {
            Some(rules) => {
                let known = kind.and_then(|kind| rules.find(kind));
                self.by_key.find(item, Key::of(rules, known))
            }
            None => self.by_type.find(kind?),
        }
    }
}

impl Defaults<'_, '_, '_> {
    /// Sets one default, in a draft of the object.
    pub(super) fn set(&self, default: &Backfill, draft: &mut Draft<'_, '_>) {
        if default.when.as_ref().is_some_and(|when| self.facts.ask(when) != Truth::True) {
            return;
        }
        match &default.filling {
            Filling::Absent(path) => {
                if draft.get(path).is_some_and(Json::is_null) {
                    draft.remove(path);
                }
            }
            Filling::Field(path, sources) => {
                let stored = self.stored(path);
                let wanted = Wanted { member: None, stored, settled: false };
                let value = self.first_of(sources, &wanted);
                let absent = draft.get(path).is_none();
                // A null does not replace a null.
                if let Some(value) = value.filter(|value| absent || !value.is_null()) {
                    draft.set(path, value);
                }
            }
            Filling::Member { list, member, sources } => {
                self.set_members(list, member, sources, draft);
            }
            Filling::Element { list, kind, members } => {
                self.add_element(list, kind, members, draft);
            }
            Filling::Steady { list, member, unless } => {
                self.keep_steady(list, member, unless, draft);
            }
            Filling::SteadyStatus { path, times } => {
                let (written, stored) = (draft.get(path), self.stored(path));
                if let (Some(written), Some(stored)) = (written, stored)
                    && StatusChange::between(times, written, stored) == StatusChange::Times
                    // A skipped value cannot be restored.
                    && stored.is_whole()
                {
                    draft.set(path, stored.to_value());
                }
            }
            Filling::AbsentMember { list, member, of } => {
                self.remove_members(list, member, of, draft);
            }
            Filling::Unique(path) => {
                let items = self.facts.object.at_status(path).and_then(Json::as_array);
                if let (Some(list), Some(items)) = (self.rules_of(path), items) {
                    draft.remove_elements(path, &surplus(list, items));
                }
            }
        }
    }

    fn stored(&self, path: &Pointer) -> Option<&Json<'_>> {
        self.subject.old.as_ref()?.at_status(path)
    }

    /// The rules of the list at a path.
    fn rules_of(&self, list: &Pointer) -> Option<&ConditionList> {
        self.convention.list_at(list, &self.facts.resource.version)
    }

    /// The written elements of a list. `None` if it is no list, or one that is too long to be judged.
    fn elements(&self, list: &Pointer) -> Option<&[Json<'_>]> {
        match self.facts.object.at_status(list) {
            None | Some(Json::Null) => Some(&[]),
            Some(Json::Array(items)) if items.len() <= MAX_ELEMENTS => Some(items),
            Some(_) => None,
        }
    }

    /// The written conditions of a list.
    fn written_list(&self, list: &Pointer) -> ByType<'_, '_> {
        ByType::new(self.elements(list).unwrap_or_default())
    }

    /// The stored conditions of a list.
    fn stored_list(&self, list: &Pointer) -> StoredConditions<'_, '_> {
        let items = Conditions::of(self.stored(list)).items();
        let (by_key, by_type) = (ByKey::new(items), ByType::new(items));
        StoredConditions { rules: self.rules_of(list), by_key, by_type }
    }

    fn set_members(
        &self,
        list: &Pointer,
        member: &str,
        sources: &[ValueSource],
        draft: &mut Draft<'_, '_>,
    ) {
        let (written, mut stored) = (self.written_list(list), self.stored_list(list));
        for (index, item) in written.items().iter().enumerate() {
            let there = item.get(member).is_some_and(|value| !value.is_null());
            if there || item.get("type").and_then(Json::as_str).is_none() {
                continue;
            }
            let before = stored.find(item);
            let wanted = Wanted {
                member: Some(Member { list, name: member, written: &written }),
                stored: before.and_then(|before| before.get(member)),
                settled: before.is_some_and(|before| self.is_settled(list, item, before)),
            };
            if let Some(value) = self.first_of(sources, &wanted) {
                draft.set_member(list, index, member, value);
            }
        }
    }

    /// Whether an element keeps its transition time.
    fn is_settled(&self, list: &Pointer, item: &Json<'_>, before: &Json<'_>) -> bool {
        let time = self.rules_of(list).and_then(|rules| rules.transition_time.as_ref());
        let is_same = |member: &str| same(item.get(member), before.get(member));
        match time.map(|time| &time.must_move_on).filter(|members| !members.is_empty()) {
            Some(members) => members.iter().all(|member| is_same(member)),
            None => is_same("status"),
        }
    }

    fn add_element(
        &self,
        list: &Pointer,
        kind: &str,
        members: &[(String, Vec<ValueSource>)],
        draft: &mut Draft<'_, '_>,
    ) {
        let Some(items) = self.elements(list) else { return };
        let written = ByType::new(items);
        if written.find(kind).is_some() {
            return;
        }
        let stored = self.stored_list(list).by_type.find(kind);
        let mut element = Map::new();
        element.insert("type".to_owned(), kind.into());
        for (member, sources) in members {
            let wanted = Wanted {
                member: Some(Member { list, name: member, written: &written }),
                stored: stored.and_then(|item| item.get(member)),
                settled: stored.and_then(|item| item.get("status")?.as_str())
                    == element.get("status").and_then(Value::as_str),
            };
            if let Some(value) = self.first_of(sources, &wanted) {
                element.insert(member.clone(), value);
            }
        }
        if self.accepts(list, items, &element) {
            draft.insert(list, self.place_for(list, items, kind), element.into());
        }
    }

    /// Whether the list can have one more element, and the element has all required members. Otherwise
    /// the validating webhook would reject the write because of the default.
    fn accepts(&self, list: &Pointer, items: &[Json<'_>], element: &Map<String, Value>) -> bool {
        let Some(rules) = self.rules_of(list) else { return true };
        let missing = rules.members.iter().filter(|(member, _)| !element.contains_key(*member));
        let mut checks = missing.flat_map(|(_, checks)| checks.iter());
        items.len() < rules.max_items.unwrap_or(MAX_ELEMENTS).min(MAX_ELEMENTS)
            && !checks.any(|check| check.required && check.action() == Disposition::Deny)
    }

    /// Whether a copied value is valid as a member of a condition. An invalid value is not copied.
    fn fits(&self, value: &Json<'_>, wanted: &Wanted<'_>) -> bool {
        let Some(Member { list, name: member, .. }) = wanted.member else { return true };
        let Some(rules) = self.rules_of(list) else { return true };
        let checks = rules.checks(member).iter();
        let mut denying = checks.filter(|check| check.action() == Disposition::Deny);
        denying.all(|check| fields::violation(check, Some(value)).is_none())
    }

    /// The index of a new element: at the end, or according to the order of types.
    fn place_for(&self, list: &Pointer, items: &[Json<'_>], kind: &str) -> usize {
        let rules = self.rules_of(list).filter(|rules| rules.order.is_some());
        let Some(rules) = rules else { return items.len() };
        let own = rules.rank(kind);
        let later = items.iter().position(|item| {
            let other = item.get("type").and_then(Json::as_str).and_then(|kind| rules.rank(kind));
            other.is_some() && other > own
        });
        later.unwrap_or(items.len())
    }

    /// Restores the stored value of a member unless one of certain other members changed.
    fn keep_steady(
        &self,
        list: &Pointer,
        member: &str,
        unless: &[String],
        draft: &mut Draft<'_, '_>,
    ) {
        let mut stored_list = self.stored_list(list);
        for (index, item) in self.written_list(list).items().iter().enumerate() {
            let Some(before) = stored_list.find(item) else { continue };
            let Some(stored) = before.get(member).filter(|stored| !stored.is_null()) else {
                continue;
            };
            let kept = unless.iter().all(|name| same(item.get(name), before.get(name)));
            if kept && item.get(member) != Some(stored) {
                draft.set_member(list, index, member, stored.to_value());
            }
        }
    }

    /// Removes a member from the elements that must not have it.
    fn remove_members(
        &self,
        list: &Pointer,
        member: &str,
        of: &Predicate,
        draft: &mut Draft<'_, '_>,
    ) {
        let Some(rules) = self.rules_of(list) else { return };
        let facts = self.facts.reading(rules.for_predicates());
        let items = self.elements(list).unwrap_or_default();
        // Both are made when the first element has the member: in most writes, none has it.
        let (mut stored, answers) = (None, OnceCell::new());
        for (index, item) in items.iter().enumerate() {
            if item.get(member).is_none() {
                continue;
            }
            let facts = match items.len() > SCAN_LIMIT {
                true => {
                    let answers = answers.get_or_init(|| Answers::to([of].into_iter(), &facts));
                    Facts { answers: Some(answers), ..facts }
                }
                false => facts,
            };
            let kind = item.get("type").and_then(Json::as_str).and_then(|kind| rules.find(kind));
            let before = stored.get_or_insert_with(|| self.stored_list(list)).find(item);
            if with_element(facts, item, before, kind).ask(of) == Truth::True {
                draft.remove_member(list, index, member);
            }
        }
    }

    /// The value of the first source that has one.
    fn first_of(&self, sources: &[ValueSource], wanted: &Wanted<'_>) -> Option<Value> {
        sources.iter().find_map(|source| self.value_of(source, wanted))
    }

    fn value_of(&self, source: &ValueSource, wanted: &Wanted<'_>) -> Option<Value> {
        let metadata = &self.subject.object.metadata;
        let whole = |value: &Json<'_>| {
            let valid = !value.is_null() && value.is_whole() && self.fits(value, wanted);
            valid.then(|| value.to_value())
        };
        match source {
            ValueSource::Value(value) => Some(value.clone()),
            ValueSource::Copy(CopySource::Member(MemberOf { condition, member })) => {
                whole(wanted.member?.written.find(condition)?.get(member)?)
            }
            ValueSource::Copy(CopySource::Origin(origin)) => match origin {
                Origin::Stored => whole(wanted.stored?),
                Origin::Transition => {
                    wanted.stored.filter(|_| wanted.settled).and_then(whole).or_else(|| {
                        let now = Timestamp::from_second(self.now).ok()?.to_string();
                        whole(&Json::String(now.into()))
                    })
                }
                Origin::Field(path) => whole(self.facts.object.at_status(path)?),
                Origin::CreationTimestamp => {
                    metadata.creation_timestamp.as_deref().map(Value::from)
                }
                Origin::DeletionTimestamp => {
                    metadata.deletion_timestamp.as_deref().map(Value::from)
                }
                Origin::Generation => metadata.generation.map(Value::from),
            },
        }
    }
}
