//! Objects under construction.

use serde_json::{Value, json};

use super::super::facts::Answer;
use statusgate_core::language::Observed;
use statusgate_core::model::Pointer;
use statusgate_core::policy::convention::Convention;

/// The two objects of a write.
#[derive(Default)]
pub(super) struct Builder {
    pub(super) object: Side,
    pub(super) old: Option<Side>,
    pub(super) plural: String,
    pub(super) deleting: bool,
}

/// The `status` and `spec` of an object under construction.
#[derive(Default)]
pub(super) struct Side(pub(super) Value);

impl Builder {
    pub(super) fn side(&mut self, old: bool) -> &mut Side {
        if old { self.old.get_or_insert_default() } else { &mut self.object }
    }
}

impl Side {
    /// Sets the value at a path. `None` if there is another value, or if a list has no such element and may not
    /// `grow`.
    pub(super) fn set(&mut self, path: &Pointer, value: Value, grow: bool) -> Option<()> {
        let place = self.place(path, grow)?;
        match place {
            Value::Null => *place = value,
            // A member of the object was set before.
            Value::Object(members) if value.is_object() && !members.is_empty() => {}
            other if *other == value => {}
            _ => return None,
        }
        Some(())
    }

    /// The value at a path, null if there is none yet. `None` if another value blocks the path, or if a list
    /// has no such element and may not `grow`.
    fn place(&mut self, path: &Pointer, grow: bool) -> Option<&mut Value> {
        let mut place = &mut self.0;
        for token in path.tokens() {
            let index = token.parse::<usize>().ok();
            if place.is_null() {
                *place = if token == "-1" || index.is_some() { json!([]) } else { json!({}) };
            }
            place = match place {
                Value::Array(items) => {
                    let last = (token == "-1").then(|| items.len().saturating_sub(1));
                    let index = last.or(index)?;
                    while items.len() <= index {
                        if !grow {
                            return None;
                        }
                        items.push(Value::Null);
                    }
                    items.get_mut(index)?
                }
                Value::Object(members) => members.entry(token.clone()).or_insert(Value::Null),
                _ => return None,
            };
        }
        Some(place)
    }

    fn list(&mut self, path: &Pointer) -> Option<&mut Vec<Value>> {
        let place = self.place(path, true)?;
        if place.is_null() {
            *place = json!([]);
        }
        place.as_array_mut()
    }

    pub(super) fn push(&mut self, path: &Pointer, item: Value) -> Option<()> {
        self.list(path)?.push(item);
        Some(())
    }

    /// Whether a list has an element of this type.
    pub(super) fn has(&self, path: &Pointer, kind: Option<&Value>) -> bool {
        let list = self.get(path).and_then(Value::as_array);
        list.is_some_and(|items| items.iter().any(|item| item.get("type") == kind))
    }

    /// Sets or removes a member of a condition. `None` if there is no such condition for a value.
    pub(super) fn set_member(
        &mut self,
        list: &Pointer,
        kind: &str,
        member: &str,
        answer: &Answer,
    ) -> Option<()> {
        let items = self.list(list)?.iter_mut().filter_map(Value::as_object_mut);
        let mut found = items.filter(|item| item.get("type").is_some_and(|of| of == kind));
        match (found.next(), answer) {
            (Some(item), Answer::Value { value, .. }) => {
                item.insert(member.to_owned(), value.clone());
            }
            (Some(item), _) => {
                item.remove(member);
            }
            (None, answer) => return (*answer == Answer::Absent).then_some(()),
        }
        Some(())
    }

    /// The integer at a path.
    pub(super) fn number(&self, path: &Pointer) -> Option<i64> {
        self.get(path)?.as_i64()
    }

    fn get(&self, path: &Pointer) -> Option<&Value> {
        path.tokens().iter().try_fold(&self.0, |value, token| match value {
            Value::Array(items) if token == "-1" => items.last(),
            Value::Array(items) => items.get(token.parse::<usize>().ok()?),
            value => value.get(token),
        })
    }

    /// The newest generation for an observed one. That is set to `own`, if it is absent and may be set.
    pub(super) fn observe(
        &mut self,
        path: &Pointer,
        own: Option<i64>,
        observed: Observed,
    ) -> Option<i64> {
        let place = self.place(path, true)?;
        if place.is_null() {
            *place = own?.into();
        }
        let own = place.as_i64()?;
        Some(match observed {
            Observed::Behind => own.checked_add(1)?,
            Observed::Current => own,
            Observed::Ahead => own.checked_sub(1)?,
        })
    }

    /// Sorts the conditions of lists that have an order.
    pub(super) fn sort(&mut self, convention: &Convention, version: &str) {
        let lists = convention.lists(version);
        for list in lists.filter(|list| list.order.is_some() && list.outer.is_none()) {
            let mut tokens = list.path.tokens().iter();
            let place = tokens.try_fold(&mut self.0, |place, token| place.get_mut(token));
            if let Some(Value::Array(items)) = place {
                items.sort_by_key(|item| {
                    item["type"].as_str().and_then(|kind| list.rank(kind)).unwrap_or(usize::MAX)
                });
            }
        }
    }

    /// Extends a list to `count` items; `None` if it is longer.
    pub(super) fn stretch(
        &mut self,
        path: &Pointer,
        count: usize,
        item: impl Fn(usize) -> Value,
    ) -> Option<()> {
        let list = self.list(path)?;
        if list.len() > count {
            return None;
        }
        // A list in the spec repeats its condition, which has the same result as naming it once.
        let gate = list.last().filter(|item| item.get("conditionType").is_some()).cloned();
        for number in list.len()..count {
            list.push(gate.clone().unwrap_or_else(|| item(number)));
        }
        Some(())
    }
}
