//! Identifies elements of a list by their key. Short lists are scanned.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::super::because::quoted;
use crate::model::{Json, SCAN_LIMIT, parse_rfc3339};
use crate::policy::convention::{ConditionList, ConditionType};

/// The members that identify an element. Without members, all elements differ.
#[derive(Clone, Copy)]
pub(crate) struct Key<'p> {
    members: &'p [String],
}

impl<'p> Key<'p> {
    /// The key of a type's elements: its own, otherwise the list's.
    pub(crate) fn of(list: &'p ConditionList, known: Option<&'p ConditionType>) -> Self {
        let members = known.and_then(|known| known.key.as_deref()).unwrap_or_else(|| list.key());
        Self { members }
    }

    /// The key of an element.
    pub(crate) fn of_item(list: &'p ConditionList, item: &Json<'_>) -> Self {
        let kind = item.get("type").and_then(Json::as_str);
        Self::of(list, kind.and_then(|kind| list.find(kind)))
    }

    /// The key texts of an element. `None` if one is missing: such an element equals no other.
    pub(crate) fn texts<'j>(&self, item: &'j Json<'_>) -> Option<Cow<'j, str>> {
        if self.members.is_empty() {
            return None;
        }
        if let [member] = self.members {
            return text(item, member).map(Cow::Borrowed);
        }
        let mut key = String::new();
        for member in self.members {
            let text = text(item, member)?;
            // The length distinguishes "a","bc" from "ab","c".
            key.push_str(&text.len().to_string());
            key.push(' ');
            key.push_str(text);
        }
        Some(Cow::Owned(key))
    }

    pub(super) fn are_one(&self, one: &Json<'_>, other: &Json<'_>) -> bool {
        !self.members.is_empty()
            && self.members.iter().all(|member| {
                let found = text(one, member);
                found.is_some() && found == text(other, member)
            })
    }

    /// Whether a member of the key is missing.
    pub(super) fn is_missing(&self, item: &Json<'_>) -> bool {
        self.members.iter().any(|member| text(item, member).is_none())
    }

    /// The member that a duplicate is reported at; none if the key has several. `ValidateConditions` also
    /// names `conditions[1].type`.
    pub(super) fn member(&self) -> &'p str {
        match self.members {
            [member] => member,
            _ => "",
        }
    }

    /// The key of an element, for a message.
    pub(super) fn describe(&self, item: &Json<'_>) -> String {
        let texts = self.members.iter().filter_map(|member| item.get(member)?.as_str());
        texts.map(quoted).collect::<Vec<_>>().join(", ")
    }

    /// The key of an element as a place: `type="Ready"`. It is compared, not shown. Empty if a member is
    /// missing.
    pub(super) fn place(&self, item: &Json<'_>) -> String {
        let texts = self
            .members
            .iter()
            .map(|member| Some(format!("{member}={:?}", shortened(text(item, member)?))));
        texts.collect::<Option<Vec<_>>>().unwrap_or_default().join(",")
    }
}

/// The text of a member.
fn text<'j>(item: &'j Json<'_>, member: &str) -> Option<&'j str> {
    item.get(member)?.as_str()
}

/// A type as part of a place. Kubernetes allows 316 characters; a longer one would be copied for each
/// violation of its element.
pub(super) fn shortened(kind: &str) -> &str {
    const LIMIT: usize = 316;
    if kind.len() <= LIMIT {
        return kind;
    }
    kind.char_indices().nth(LIMIT).map_or(kind, |(end, _)| &kind[..end])
}

/// The elements that a list without duplicates would not have, by index: of those with one key, all but the one
/// with the newest transition time, or the last of these.
pub(crate) fn surplus(list: &ConditionList, items: &[Json<'_>]) -> Vec<usize> {
    let mut duplicates = Duplicates::new(items, list, list.has_keys_of_types());
    let mut items_with_keys =
        items.iter().enumerate().map(|(index, item)| (index, item, Key::of_item(list, item)));
    if !items_with_keys.clone().any(|(index, item, key)| duplicates.is_duplicate(index, item, key))
    {
        return Vec::new();
    }
    let (mut newest, mut surplus) = (HashMap::new(), Vec::new());
    for (index, item, key) in &mut items_with_keys {
        let Some(texts) = key.texts(item) else { continue };
        let time = item.get(list.time_member()).and_then(Json::as_str).and_then(parse_rfc3339);
        match newest.entry((key.members, texts)) {
            Entry::Vacant(entry) => drop(entry.insert((time, index))),
            Entry::Occupied(entry) if time < entry.get().0 => surplus.push(index),
            Entry::Occupied(mut entry) => surplus.push(entry.insert((time, index)).1),
        }
    }
    surplus.sort_unstable();
    surplus
}

/// Finds elements with the key of an element before them.
#[expect(clippy::large_enum_variant, reason = "one exists at a time; a box is an allocation")]
pub(super) enum Duplicates<'p, 'j, 'a> {
    /// The texts of the elements so far, for a short list with the same key of one member for all types.
    /// Nearly every list is of this kind, and each lookup by key would read all elements again.
    Texts([Option<&'j str>; SCAN_LIMIT]),
    ByKey(ByKey<'p, 'j, 'a>),
}

impl<'p: 'j, 'j, 'a> Duplicates<'p, 'j, 'a> {
    pub(super) fn new(
        items: &'j [Json<'a>],
        list: &ConditionList,
        has_keys_of_types: bool,
    ) -> Self {
        if items.len() <= SCAN_LIMIT && !has_keys_of_types && list.key().len() == 1 {
            Self::Texts([None; SCAN_LIMIT])
        } else {
            Self::ByKey(ByKey::new(items))
        }
    }

    /// Called for each element, in order.
    pub(super) fn is_duplicate(&mut self, index: usize, item: &'j Json<'a>, key: Key<'p>) -> bool {
        match self {
            Self::Texts(texts) => {
                let text = key.members.first().and_then(|member| text(item, member));
                let is_known = text.is_some() && texts[..index].contains(&text);
                texts[index] = text;
                is_known
            }
            Self::ByKey(first) => {
                first.find(item, key).is_some_and(|first| !std::ptr::eq(first, item))
            }
        }
    }
}

/// The elements of a list by key; the first if several have it.
pub(crate) enum ByKey<'p, 'j, 'a> {
    Scan(&'j [Json<'a>]),
    /// A table for each key in use: types may have their own keys.
    Tables(&'j [Json<'a>], Vec<(&'p [String], Table<'j, 'a>)>),
}

type Table<'j, 'a> = HashMap<Cow<'j, str>, &'j Json<'a>>;

impl<'p: 'j, 'j, 'a> ByKey<'p, 'j, 'a> {
    pub(crate) const fn new(items: &'j [Json<'a>]) -> Self {
        if items.len() <= SCAN_LIMIT { Self::Scan(items) } else { Self::Tables(items, Vec::new()) }
    }

    pub(crate) fn find(&mut self, item: &Json<'_>, key: Key<'p>) -> Option<&'j Json<'a>> {
        match self {
            Self::Scan(items) => items.iter().find(|other| key.are_one(other, item)),
            Self::Tables(items, tables) => {
                let known = tables.iter().position(|(members, _)| *members == key.members);
                let at = known.unwrap_or(tables.len());
                if known.is_none() {
                    let mut table = Table::with_capacity(items.len());
                    for item in *items {
                        if let Some(texts) = key.texts(item) {
                            table.entry(texts).or_insert(item);
                        }
                    }
                    tables.push((key.members, table));
                }
                let found = tables.get(at)?.1.get(key.texts(item)?.as_ref()).copied();
                found.filter(|found| key.are_one(found, item))
            }
        }
    }
}
