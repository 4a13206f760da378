//! A status under change: the tree as it is by now, and the patch that leads there.

use std::cell::Cell;

use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, PatchOperation, RemoveOperation, ReplaceOperation};
use serde_json::{Value, json};

use crate::model::{Json, Object, Pointer};

/// Bytes of text that are put into lists. A default for members copies one text into as many
/// elements as there are: a megabyte into ten thousand of one type. No API server takes more than
/// 3 MiB.
const MAX_IN_LISTS: usize = 4 << 20;

/// The status of an object with the changes so far. Costs nothing until the first change.
pub(super) struct Draft<'s, 'a> {
    object: &'s Object<'a>,
    /// The changed tree, once there is a change.
    changed: Option<Json<'a>>,
    operations: Vec<PatchOperation>,
    /// Bytes of text that were put into lists, in this draft and those before.
    in_lists: &'s Cell<usize>,
}

impl<'s, 'a> Draft<'s, 'a> {
    pub(super) const fn new(object: &'s Object<'a>, in_lists: &'s Cell<usize>) -> Self {
        Self { object, changed: None, operations: Vec::new(), in_lists }
    }

    /// What is at a pointer now.
    pub(super) fn get(&self, pointer: &Pointer) -> Option<&Json<'a>> {
        self.at(pointer.below_status())
    }

    /// Puts a value at a pointer, parents first. Changes nothing where a parent has no members, or
    /// where a missing one might be a list.
    pub(super) fn set(&mut self, pointer: &Pointer, value: Value) {
        let tokens = pointer.tokens();
        let numbered =
            |token: &String| token == "-1" || token.bytes().all(|byte| byte.is_ascii_digit());
        let unfit = |depth: usize| match self.at(&tokens[1..depth]) {
            None | Some(Json::Null) => numbered(&tokens[depth]),
            Some(parent) => !matches!(parent, Json::Object(_)),
        };
        if (1..tokens.len()).any(unfit) {
            return;
        }
        // `add /status/phase` fails where `/status` is missing or null.
        for depth in 1..tokens.len() {
            if is_null(self.at(&tokens[1..depth])) {
                self.write(&tokens[..depth], json!({}));
            }
        }
        self.write(tokens, value);
    }

    /// Removes what is at a pointer. Not out of a list: the next item would take its place.
    pub(super) fn remove(&mut self, pointer: &Pointer) {
        let Some((name, parent)) = pointer.below_status().split_last() else { return };
        let parent = self.at(parent).filter(|parent| matches!(parent, Json::Object(_)));
        if parent.is_some_and(|parent| parent.get(name).is_some()) {
            self.take(pointer.tokens());
        }
    }

    /// Puts a member into an element of a list. The caller has seen the element.
    pub(super) fn set_member(&mut self, list: &Pointer, index: usize, name: &str, value: Value) {
        // What comes of more could not be stored.
        if self.in_lists.get() <= MAX_IN_LISTS {
            self.in_lists.set(self.in_lists.get() + text_in(&value));
            self.write(&member(list, index, name), value);
        }
    }

    /// Removes a member of an element of a list. The caller has seen the element.
    pub(super) fn remove_member(&mut self, list: &Pointer, index: usize, name: &str) {
        self.take(&member(list, index, name));
    }

    /// Puts an element into a list, which is made where there is none.
    pub(super) fn insert(&mut self, list: &Pointer, index: usize, element: Value) {
        if is_null(self.get(list)) {
            self.set(list, json!([]));
        }
        let added = Json::from(&element);
        let Some(Json::Array(items)) = self.tree().at_mut(list.below_status()) else { return };
        items.insert(index, added);
        let mut path = list.to_patch_path();
        path.push_back(index);
        self.operations.push(PatchOperation::Add(AddOperation { path, value: element }));
    }

    /// The changed status and the operations that made it; nothing where nothing changed.
    pub(super) fn finish(self) -> Option<(Json<'a>, Vec<PatchOperation>)> {
        let changed = self.changed.filter(|_| !self.operations.is_empty())?;
        Some((changed, self.operations))
    }

    fn at(&self, below_status: &[String]) -> Option<&Json<'a>> {
        self.changed.as_ref().or(self.object.status.as_ref())?.at(below_status)
    }

    fn tree(&mut self) -> &mut Json<'a> {
        let status = &self.object.status;
        self.changed.get_or_insert_with(|| status.clone().unwrap_or(Json::Null))
    }

    fn write(&mut self, tokens: &[String], value: Value) {
        let (path, below) = (PointerBuf::from_tokens(tokens), tokens.get(1..).unwrap_or_default());
        let written = Json::from(&value);
        self.operations.push(match self.at(below) {
            None => PatchOperation::Add(AddOperation { path, value }),
            Some(_) => PatchOperation::Replace(ReplaceOperation { path, value }),
        });
        self.tree().put(below, Some(written));
    }

    fn take(&mut self, tokens: &[String]) {
        let path = PointerBuf::from_tokens(tokens);
        self.operations.push(PatchOperation::Remove(RemoveOperation { path }));
        self.tree().put(tokens.get(1..).unwrap_or_default(), None);
    }
}

/// Absent or null: the same to every rule, and to the API server's pruning.
fn is_null(value: Option<&Json<'_>>) -> bool {
    value.is_none_or(Json::is_null)
}

/// The tokens of a member of an element.
fn member(list: &Pointer, index: usize, name: &str) -> Vec<String> {
    let place = [index.to_string(), name.to_owned()];
    list.tokens().iter().cloned().chain(place).collect()
}

/// The bytes of all texts in a value.
fn text_in(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(text_in).sum(),
        Value::Object(members) => {
            members.iter().map(|(name, value)| name.len() + text_in(value)).sum()
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patch_of(status: &str, change: impl FnOnce(&mut Draft<'_, '_>)) -> String {
        let object = Object::parse(status).unwrap();
        let in_lists = Cell::new(0);
        let mut draft = Draft::new(&object, &in_lists);
        change(&mut draft);
        let finished = draft.finish();
        if let Some((status, operations)) = &finished {
            let mut whole = json!({});
            if let Some(status) = &object.status {
                whole["status"] = status.to_value();
            }
            json_patch::patch(&mut whole, operations).unwrap();
            assert_eq!(whole["status"], status.to_value(), "the tree is what the patch makes");
        }
        serde_json::to_string(&finished.map(|(_, operations)| operations)).unwrap()
    }

    fn pointer(text: &str) -> Pointer {
        text.parse().unwrap()
    }

    #[test]
    fn parents_come_first_where_they_are_missing_or_null() {
        for object in ["{}", r#"{"status":null}"#] {
            let patch = patch_of(object, |draft| draft.set(&pointer("/status/a/b"), json!(1)));
            assert!(patch.contains(r#""path":"/status","value":{}"#), "{patch}");
            assert!(patch.ends_with(
                r#"{"op":"add","path":"/status/a","value":{}},{"op":"add","path":"/status/a/b","value":1}]"#
            ), "{patch}");
        }
    }

    #[test]
    fn what_has_no_members_gets_none() {
        let patch =
            patch_of(r#"{"status":{"a":5}}"#, |draft| draft.set(&pointer("/status/a/b"), json!(1)));
        assert_eq!(patch, "null");
    }

    #[test]
    fn a_later_change_sees_an_earlier_one() {
        let object = Object::parse(r#"{"status":{"a":{"b":1}}}"#).unwrap();
        let in_lists = Cell::new(0);
        let mut draft = Draft::new(&object, &in_lists);
        draft.set(&pointer("/status/billing"), json!({"unit": "GiB"}));
        draft.set(&pointer("/status/a/c"), json!(2));
        draft.remove(&pointer("/status/a/b"));
        let unit = draft.get(&pointer("/status/billing/unit"));
        assert_eq!(unit.and_then(Json::as_str), Some("GiB"));
        assert_eq!(draft.get(&pointer("/status/a")).map(Json::to_value), Some(json!({"c": 2})));
        draft.remove(&pointer("/status/billing"));
        assert!(draft.get(&pointer("/status/billing/unit")).is_none());
    }

    #[test]
    fn lists_change_in_place_and_grow() {
        let conditions = r#"{"status":{"conditions":[{"type":"A","x":1},{"type":"B"}]}}"#;
        let list = pointer("/status/conditions");
        let patch = patch_of(conditions, |draft| {
            draft.set_member(&list, 1, "y", json!(2));
            draft.remove_member(&list, 0, "x");
            draft.insert(&list, 1, json!({"type": "C"}));
        });
        assert!(patch.contains(r#"{"op":"remove","path":"/status/conditions/0/x"}"#), "{patch}");
        patch_of("{}", |draft| draft.insert(&list, 0, json!({"type": "C"})));
    }

    #[test]
    fn nobody_makes_a_list_for_what_is_in_one() {
        for place in ["/status/history/0/owner", "/status/history/-1/owner"] {
            assert_eq!(patch_of("{}", |draft| draft.set(&pointer(place), json!("me"))), "null");
        }
    }

    #[test]
    fn names_with_slashes_and_tildes_are_escaped() {
        let patch = patch_of(r#"{"status":{}}"#, |draft| {
            draft.set(&pointer("/status/a~1b~0c"), json!(1));
        });
        assert_eq!(patch, r#"[{"op":"add","path":"/status/a~1b~0c","value":1}]"#);
    }
}
