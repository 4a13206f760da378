//! Which elements of a list are the same one: found by their key, in short lists by scanning.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use super::super::because::quoted;
use crate::model::Json;
use crate::policy::convention::ConditionList;

/// Up to here a list is scanned; above it a table is made. Real lists have fewer than a dozen
/// elements; a hostile one has ten thousand, and scanning it for each would take seconds.
pub(crate) const SCAN_LIMIT: usize = 16;

/// The texts of an element's key. `None` where one is missing: such an element is like no other.
fn key_of<'j>(item: &'j Json<'_>, members: &[String]) -> Option<Cow<'j, str>> {
    match members {
        [member] => item.get(member).and_then(Json::as_str).map(Cow::Borrowed),
        members => {
            let mut key = String::new();
            for member in members {
                key.push_str(item.get(member)?.as_str()?);
                // No text of JSON has a lone NUL that matters here; it keeps "a","bc" from "ab","c".
                key.push('\0');
            }
            Some(Cow::Owned(key))
        }
    }
}

pub(super) fn are_one(one: &Json<'_>, other: &Json<'_>, members: &[String]) -> bool {
    members.iter().all(|member| {
        let texts = (one.get(member), other.get(member));
        matches!(texts, (Some(Json::String(one)), Some(Json::String(other))) if one == other)
    })
}

/// The member to name where a key is there twice: of several none is the wrong one. As
/// `ValidateConditions` does, which names `conditions[1].type`.
pub(super) fn member(members: &[String]) -> &str {
    match members {
        [member] => member,
        _ => "",
    }
}

/// The key of an element, for a message.
pub(super) fn describe(item: &Json<'_>, members: &[String]) -> String {
    let texts = members.iter().filter_map(|member| item.get(member)?.as_str());
    texts.map(quoted).collect::<Vec<_>>().join(", ")
}

/// The elements of a list by key, the first of several.
pub(crate) enum ByKey<'j, 'a> {
    Scan(&'j [Json<'a>]),
    /// By type alone, all of a type: keys of more members are told apart among them.
    Table(HashMap<&'j str, Vec<&'j Json<'a>>>),
}

impl<'j, 'a> ByKey<'j, 'a> {
    pub(crate) fn new(items: &'j [Json<'a>]) -> Self {
        if items.len() <= SCAN_LIMIT {
            return Self::Scan(items);
        }
        let mut table: HashMap<&str, Vec<&Json<'a>>> = HashMap::new();
        for item in items {
            if let Some(kind) = item.get("type").and_then(Json::as_str) {
                table.entry(kind).or_default().push(item);
            }
        }
        Self::Table(table)
    }

    pub(super) fn find(&self, item: &Json<'_>, key: &[String]) -> Option<&'j Json<'a>> {
        match self {
            Self::Scan(items) => items.iter().find(|other| are_one(other, item, key)),
            Self::Table(table) => {
                let twins = table.get(item.get("type")?.as_str()?)?;
                twins.iter().take(SCAN_LIMIT).copied().find(|other| are_one(other, item, key))
            }
        }
    }

    /// The first element of a type.
    pub(crate) fn of_type(&self, kind: &str) -> Option<&'j Json<'a>> {
        match self {
            Self::Scan(items) => {
                items.iter().find(|item| item.get("type").and_then(Json::as_str) == Some(kind))
            }
            Self::Table(table) => table.get(kind)?.first().copied(),
        }
    }
}

/// The keys met so far in a list.
#[expect(clippy::large_enum_variant, reason = "one lives for a moment; a box is an allocation")]
pub(super) enum Keys<'j, 'a> {
    /// The texts of a key of one member, the same for all types: by place.
    Texts([Option<&'j str>; SCAN_LIMIT]),
    Scan(&'j [Json<'a>]),
    Table(HashSet<Cow<'j, str>>),
}

impl<'j, 'a> Keys<'j, 'a> {
    pub(super) fn new(items: &'j [Json<'a>], list: &ConditionList) -> Self {
        if items.len() > SCAN_LIMIT {
            Self::Table(HashSet::new())
        } else if list.types.has_keys || list.key.len() != 1 {
            Self::Scan(items)
        } else {
            Self::Texts([None; SCAN_LIMIT])
        }
    }

    /// Asked of each element of the list that is an object, in their order.
    pub(super) fn seen_before(&mut self, index: usize, item: &'j Json<'a>, key: &[String]) -> bool {
        match self {
            Self::Texts(texts) => {
                let text = key.first().and_then(|member| item.get(member)?.as_str());
                let seen = text.is_some() && texts[..index].contains(&text);
                texts[index] = text;
                seen
            }
            Self::Scan(items) => items[..index].iter().any(|other| are_one(other, item, key)),
            Self::Table(table) => key_of(item, key).is_some_and(|key| !table.insert(key)),
        }
    }
}
