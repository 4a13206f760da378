//! A status with changes: the current tree, and the patch that results in it.

use std::cell::Cell;

use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, PatchOperation, RemoveOperation, ReplaceOperation};
use serde_json::{Value, json};

use super::unique;
use crate::model::{Index, Json, Object, Pointer};

/// The maximum number of bytes of text that defaults add to lists. A default for a member copies one text
/// into each element: a megabyte into a thousand. An API server accepts at most 3 MiB.
const MAX_IN_LISTS: usize = 1 << 20;

/// The status of an object with the changes so far. Costs nothing until the first change.
pub(super) struct Draft<'s, 'a> {
    object: &'s Object<'a>,
    /// The changed tree, after the first change.
    changed: Option<Json<'a>>,
    operations: Vec<PatchOperation>,
    /// The bytes of text added to lists, in this draft and previous ones.
    in_lists: &'s Cell<usize>,
}

impl<'s, 'a> Draft<'s, 'a> {
    pub(super) const fn new(object: &'s Object<'a>, in_lists: &'s Cell<usize>) -> Self {
        Self { object, changed: None, operations: Vec::new(), in_lists }
    }

    /// The current value at a pointer.
    pub(super) fn get(&self, pointer: &Pointer) -> Option<&Json<'a>> {
        self.at(pointer.below_status())
    }

    /// Sets the value at a pointer, and creates its parents. Changes nothing if a parent is not an object,
    /// or if a missing parent might be a list.
    pub(super) fn set(&mut self, pointer: &Pointer, value: Value) {
        let tokens = pointer.tokens();
        let mut depths = (1..tokens.len()).filter(|depth| is_null(self.at(&tokens[1..*depth])));
        if !depths.any(|depth| Index::of(&tokens[depth]).is_some()) {
            self.set_in_maps(pointer, value);
        }
    }

    /// Sets a value. Missing parents become objects, also for names that are numbers. Returns whether it
    /// changed anything.
    pub(super) fn set_in_maps(&mut self, pointer: &Pointer, value: Value) -> bool {
        let tokens = pointer.tokens();
        let mut parents = (1..tokens.len()).map(|depth| self.at(&tokens[1..depth]));
        if !parents.all(|parent| matches!(parent, None | Some(Json::Null | Json::Object(_)))) {
            return false;
        }
        // The operation `add /status/phase` fails if `/status` is missing or null.
        for depth in 1..tokens.len() {
            if is_null(self.at(&tokens[1..depth])) {
                self.write(&tokens[..depth], json!({}));
            }
        }
        self.write(tokens, value);
        true
    }

    /// Removes the value at a pointer, but not an item of a list: the next item would take its index.
    pub(super) fn remove(&mut self, pointer: &Pointer) {
        let Some((name, parent)) = pointer.below_status().split_last() else { return };
        let parent = self.at(parent).filter(|parent| matches!(parent, Json::Object(_)));
        if parent.is_some_and(|parent| parent.get(name).is_some()) {
            self.take(pointer.tokens());
        }
    }

    /// Sets a member of an existing element of a list.
    pub(super) fn set_member(&mut self, list: &Pointer, index: usize, name: &str, value: Value) {
        // The API server could not store a larger object.
        if self.in_lists.get() <= MAX_IN_LISTS {
            self.in_lists.set(self.in_lists.get() + text_in(&value));
            self.write(&member(list, index, name), value);
        }
    }

    /// Removes a member of an existing element of a list.
    pub(super) fn remove_member(&mut self, list: &Pointer, index: usize, name: &str) {
        self.take(&member(list, index, name));
    }

    /// Inserts an element into a list. Creates an absent list.
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

    /// Removes the elements with these indices from a list, from its end: the others keep their indices.
    pub(super) fn remove_elements(&mut self, list: &Pointer, indices: &[usize]) {
        if indices.is_empty() {
            return;
        }
        self.operations.extend(indices.iter().rev().map(|index| {
            let mut path = list.to_patch_path();
            path.push_back(*index);
            PatchOperation::Remove(RemoveOperation { path })
        }));
        if let Some(list) = self.tree().at_mut(list.below_status()) {
            unique::remove(list, indices);
        }
    }

    /// The changed status and its operations; `None` if nothing changed.
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

/// Whether a value is absent or null. Rules and the API server's pruning treat both alike.
fn is_null(value: Option<&Json<'_>>) -> bool {
    value.is_none_or(Json::is_null)
}

/// The tokens of a member of an element.
fn member(list: &Pointer, index: usize, name: &str) -> Vec<String> {
    let place = [index.to_string(), name.to_owned()];
    list.tokens().iter().cloned().chain(place).collect()
}

/// The bytes of all strings in a value.
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
            assert_eq!(whole["status"], status.to_value(), "the tree equals the patched object");
        }
        serde_json::to_string(&finished.map(|(_, operations)| operations)).unwrap()
    }

    fn pointer(text: &str) -> Pointer {
        text.parse().unwrap()
    }

    #[test]
    fn missing_and_null_parents_are_created_first() {
        for object in ["{}", r#"{"status":null}"#] {
            let patch = patch_of(object, |draft| draft.set(&pointer("/status/a/b"), json!(1)));
            assert!(patch.contains(r#""path":"/status","value":{}"#), "{patch}");
            assert!(patch.ends_with(
                r#"{"op":"add","path":"/status/a","value":{}},{"op":"add","path":"/status/a/b","value":1}]"#
            ), "{patch}");
        }
    }

    #[test]
    fn a_parent_that_is_not_an_object_is_not_changed() {
        let patch =
            patch_of(r#"{"status":{"a":5}}"#, |draft| draft.set(&pointer("/status/a/b"), json!(1)));
        assert_eq!(patch, "null");
    }

    #[test]
    fn a_change_reads_the_changes_before_it() {
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
    fn elements_of_lists_are_changed_and_inserted() {
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
    fn a_missing_list_is_not_created_for_one_of_its_items() {
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
