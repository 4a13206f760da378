//! Lists with `x-kubernetes-list-type`: which elements are the same.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::cause::Cause;
use super::node::{ListType, Node};
use super::number::{self, Number};
use super::path::Path;

/// Appends the causes of duplicates in sets and maps: `ValidateListSetsAndMaps` of
/// apiextensions-apiserver, which ignores junctors.
pub(super) fn duplicates(node: &Node, value: &Value, path: &Path<'_>, causes: &mut Vec<Cause>) {
    match value {
        Value::Array(items) => {
            match &node.list {
                ListType::Atomic => {}
                ListType::Set => repeated(items, |item| item.clone(), path, causes),
                ListType::Map(keys) => in_map(keys, items, path, causes),
            }
            if let Some(node) = &node.items {
                for (index, item) in items.iter().enumerate() {
                    duplicates(node, item, &Path::Index(path, index), causes);
                }
            }
        }
        Value::Object(members) => {
            for (name, value) in members {
                if let Some(node) = node.member(name) {
                    duplicates(node, value, &Path::Key(path, name), causes);
                }
            }
        }
        _ => {}
    }
}

fn in_map(keys: &[Box<str>], items: &[Value], path: &Path<'_>, causes: &mut Vec<Cause>) {
    let other = items.iter().enumerate().find(|(_, item)| !item.is_object() && !item.is_null());
    if let Some((index, item)) = other {
        let why = "must be an object for an array of list-type map";
        causes.push(Cause::invalid(Path::Index(path, index).field(), item, why));
        return;
    }
    repeated(items, |item| key_members(keys, item), path, causes);
}

fn key_members(keys: &[Box<str>], item: &Value) -> Value {
    let members = keys.iter().filter_map(|key| Some((key.to_string(), item.get(&**key)?.clone())));
    members.collect::<Map<_, _>>().into()
}

/// Appends a cause for the first repetition of each element.
fn repeated(
    items: &[Value],
    identity: impl Fn(&Value) -> Value,
    path: &Path<'_>,
    causes: &mut Vec<Cause>,
) {
    let (mut seen, mut reported) = (HashSet::new(), HashSet::new());
    for (index, item) in items.iter().enumerate() {
        let value = identity(item);
        let text = unique(&value);
        if !seen.insert(text.clone()) && reported.insert(text) {
            causes.push(Cause::duplicate(Path::Index(path, index).field(), &value));
        }
    }
}

/// A text that two elements share if Go's check finds them equal: it compares scalars with their type, so
/// 1 and 1.0 differ, but other values as JSON, where both are 1.
fn unique(value: &Value) -> String {
    if let Some(Number::Float(number)) = Number::of(value) {
        return format!("float {number}");
    }
    let mut stored = number::stored(value);
    stored.sort_all_objects();
    stored.to_string()
}

/// The elements of a previous map list by their keys, so that each new element finds its own.
pub(super) struct Keyed<'o> {
    keys: &'o [Box<str>],
    items: HashMap<String, &'o Value>,
}

impl<'o> Keyed<'o> {
    /// `None` if the elements of the list do not correlate.
    pub(super) fn new(node: &'o Node, old: &'o [Value]) -> Option<Self> {
        let ListType::Map(keys) = &node.list else { return None };
        let mut items = HashMap::new();
        for item in old {
            if let Some(key) = key(keys, item) {
                items.entry(key).or_insert(item);
            }
        }
        Some(Self { keys, items })
    }

    pub(super) fn get(&self, item: &Value) -> Option<&'o Value> {
        self.items.get(&key(self.keys, item)?).copied()
    }
}

/// `CompositeKeyFor` of apiserver's `MapList`: the key must be complete, and consist of scalars.
fn key(keys: &[Box<str>], item: &Value) -> Option<String> {
    let mut text = String::new();
    for name in keys {
        let value = item.as_object()?.get(&**name)?;
        // Writing to a `String` does not fail.
        let _ = match (Number::of(value), value) {
            // `%f`.
            (Some(Number::Float(number)), _) if keys.len() > 1 => write!(text, "\0{number:.6}"),
            (Some(Number::Float(number)), _) => write!(text, "\0float {number}"),
            (_, Value::Array(_) | Value::Object(_) | Value::Null) => return None,
            _ => write!(text, "\0{value}"),
        };
    }
    Some(text).filter(|_| !keys.is_empty())
}
