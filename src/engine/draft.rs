//! A status being filled in: what it holds by now, and the operations that got it there.

use std::collections::BTreeMap;
use std::ops::Bound;

use json_patch::{AddOperation, PatchOperation, RemoveOperation, ReplaceOperation};
use serde_json::{Value, json};

use super::conditions::SCAN_LIMIT;
use super::replay::put;
use crate::model::{Json, Object, Pointer};

/// Bytes of text that are put into lists. A default for members copies one text into as many elements
/// as there are: a megabyte into ten thousand of one type. No API server takes more than 3 MiB.
const MAX_IN_LISTS: usize = 4 << 20;

/// The object's status with the changes made so far. Costs nothing until the first change.
pub(crate) struct Draft<'s, 'a> {
    status: Option<&'s Json<'a>>,
    changes: Changes,
    operations: Vec<PatchOperation>,
    /// Lists that an element was put into: their indices are no longer those of `status`.
    grown: Vec<Pointer>,
    /// Bytes of text that were put into lists.
    in_lists: usize,
}

/// The changes made so far, in their order.
#[derive(Default)]
struct Changes {
    list: Vec<Change>,
    /// Where in the list the latest change of a place is: empty while the list is short. A default
    /// for members changes as many places as a list has elements.
    latest: BTreeMap<Vec<String>, usize>,
}

/// A place below `/status` and what it holds now; `None` where it was removed.
struct Change {
    tokens: Vec<String>,
    value: Option<Value>,
}

/// What came of a draft in which something changed.
pub(crate) struct Finished {
    pub(crate) operations: Vec<PatchOperation>,
    pub(crate) status: Value,
}

/// A value of the draft: as it came, or as it was changed.
pub(crate) enum Seen<'d, 'a> {
    Absent,
    Original(&'d Json<'a>),
    Changed(&'d Value),
}

/// A patch of ours that does not apply to the object it was made for.
#[derive(Debug)]
pub(crate) struct PatchDoesNotApply;

impl<'s, 'a> Draft<'s, 'a> {
    pub(crate) fn new(object: &'s Object<'a>) -> Self {
        Self {
            status: object.status.as_ref(),
            changes: Changes::default(),
            operations: Vec::new(),
            grown: Vec::new(),
            in_lists: 0,
        }
    }

    /// Whether there is a status to work on: an object, or nothing yet. A list or a text in its
    /// place is for the judge, not for a patch.
    pub(crate) const fn is_workable(&self) -> bool {
        matches!(self.status, None | Some(Json::Null | Json::Object(_)))
    }

    /// What is at a pointer now.
    pub(crate) fn get<'d>(&'d self, pointer: &Pointer) -> Seen<'d, 'a> {
        self.at(pointer.below_status())
    }

    /// A copy of what is at a pointer now, with all that was changed below it. `None` where there is
    /// nothing whole to copy.
    pub(crate) fn copy(&self, pointer: &Pointer) -> Option<Value> {
        let tokens = pointer.below_status();
        let seen = self.at(tokens);
        let mut value = if seen.is_null() { None } else { seen.to_value() }?;
        for change in self.changes.below(tokens) {
            let place = change.tokens.get(tokens.len()..).unwrap_or_default();
            put(&mut value, place, change.value.clone());
        }
        Some(value)
    }

    /// Puts a value at a pointer, parents first. Leaves everything as it is where a parent is
    /// something that has no members.
    pub(crate) fn set(&mut self, pointer: &Pointer, value: Value) {
        let tokens = pointer.tokens();
        let parents = 1..tokens.len();
        // `add /status/phase` fails where `/status` is missing or null. Of a missing parent with a
        // numbered child nobody knows whether it is a list: it is not made.
        let numbered =
            |token: &String| token == "-1" || token.bytes().all(|byte| byte.is_ascii_digit());
        let unfit = |depth: usize| {
            let parent = self.at(&tokens[1..depth]);
            !parent.can_have_members() || (parent.is_null() && numbered(&tokens[depth]))
        };
        if parents.clone().any(unfit) {
            return;
        }
        for depth in parents {
            if self.at(&tokens[1..depth]).is_null() {
                self.write(&tokens[..depth], json!({}));
            }
        }
        self.write(tokens, value);
    }

    /// What is at a place in a list now: an index, and the names from there on.
    pub(crate) fn in_list<'d>(&'d self, list: &Pointer, place: &[&str]) -> Seen<'d, 'a> {
        if self.has_grown(list) {
            return Seen::Absent;
        }
        self.at(&below(list, place))
    }

    /// Puts a value at a place in a list. The caller has seen the element it goes into.
    pub(crate) fn set_in_list(&mut self, list: &Pointer, place: &[&str], value: Value) {
        if !self.has_grown(list) {
            let mut tokens = vec!["status".to_owned()];
            tokens.extend(below(list, place));
            self.in_lists += text_in(&value);
            self.write(&tokens, value);
        }
    }

    /// Removes what is at a place in a list. The caller has seen the element it is in.
    pub(crate) fn remove_in_list(&mut self, list: &Pointer, place: &[&str]) {
        if matches!(self.in_list(list, place), Seen::Absent) {
            return;
        }
        let tokens = below(list, place);
        let whole = std::iter::once("status").chain(tokens.iter().map(String::as_str));
        let path = json_patch::jsonptr::PointerBuf::from_tokens(whole);
        self.operations.push(PatchOperation::Remove(RemoveOperation { path }));
        self.changes.push(Change { tokens, value: None });
    }

    /// Whether nothing more is put into the elements of lists: what came of it could not be stored.
    pub(crate) const fn is_full(&self) -> bool {
        self.in_lists > MAX_IN_LISTS
    }

    /// Whether an element was put into a list. What else is to be done there waits for the next
    /// round, which sees the list as it is then.
    pub(crate) fn has_grown(&self, list: &Pointer) -> bool {
        self.grown.contains(list)
    }

    /// Puts an element into a list, at an index of the list as it came; makes the list first where
    /// there is none.
    pub(crate) fn insert(&mut self, list: &Pointer, index: usize, element: Value) {
        if self.get(list).is_null() {
            self.set(list, json!([]));
        }
        let is_list = matches!(
            self.get(list),
            Seen::Original(Json::Array(_)) | Seen::Changed(Value::Array(_))
        );
        if is_list {
            let mut path = list.to_patch_path();
            path.push_back(index);
            self.operations.push(PatchOperation::Add(AddOperation { path, value: element }));
            self.grown.push(list.clone());
        }
    }

    /// Removes what is at a pointer.
    pub(crate) fn remove(&mut self, pointer: &Pointer) {
        let below = pointer.below_status();
        let parent = self.at(&below[..below.len().saturating_sub(1)]);
        // Out of a list nothing is removed: the next element would take its place.
        if matches!(self.get(pointer), Seen::Absent) || !parent.can_have_members() {
            return;
        }
        let path = pointer.to_patch_path();
        self.operations.push(PatchOperation::Remove(RemoveOperation { path }));
        self.changes.push(Change { tokens: pointer.below_status().to_vec(), value: None });
    }

    /// How many changes were made so far.
    pub(crate) const fn len(&self) -> usize {
        self.operations.len()
    }

    /// The operations and the status they make, replayed before they leave: the API server answers
    /// a patch that does not apply with a 500 to the user, whatever the failurePolicy.
    pub(crate) fn finish(self) -> Result<Option<Finished>, PatchDoesNotApply> {
        if self.operations.is_empty() {
            return Ok(None);
        }
        let mut replay = json!({});
        if let (Some(status), Some(members)) = (self.status, replay.as_object_mut()) {
            members.insert("status".to_owned(), status.to_value());
        }
        json_patch::patch(&mut replay, &self.operations).map_err(|_| PatchDoesNotApply)?;
        Ok(Some(Finished { operations: self.operations, status: replay["status"].take() }))
    }

    fn write(&mut self, tokens: &[String], value: Value) {
        let path = json_patch::jsonptr::PointerBuf::from_tokens(tokens);
        let below = tokens.get(1..).unwrap_or_default();
        let operation = match self.at(below) {
            Seen::Absent => PatchOperation::Add(AddOperation { path, value: value.clone() }),
            _ => PatchOperation::Replace(ReplaceOperation { path, value: value.clone() }),
        };
        self.operations.push(operation);
        self.changes.push(Change { tokens: below.to_vec(), value: Some(value) });
    }

    /// The latest change at or above a place wins over what came in.
    fn at<'d>(&'d self, tokens: &[String]) -> Seen<'d, 'a> {
        if let Some((change, rest)) = self.changes.latest(tokens) {
            let Some(value) = &change.value else { return Seen::Absent };
            let found = rest.iter().try_fold(value, |value, token| match value {
                Value::Array(items) => token.parse().ok().and_then(|at: usize| items.get(at)),
                value => value.get(token),
            });
            return found.map_or(Seen::Absent, Seen::Changed);
        }
        self.status.and_then(|status| status.at(tokens)).map_or(Seen::Absent, Seen::Original)
    }
}

impl Changes {
    fn push(&mut self, change: Change) {
        self.list.push(change);
        let indexed = if self.latest.is_empty() { 0 } else { self.list.len() - 1 };
        if self.list.len() > SCAN_LIMIT {
            for (index, change) in self.list.iter().enumerate().skip(indexed) {
                self.latest.insert(change.tokens.clone(), index);
            }
        }
    }

    /// The latest change at or above a place, and the way from there.
    fn latest<'t>(&self, tokens: &'t [String]) -> Option<(&Change, &'t [String])> {
        let change = self.list.get(self.latest_index(tokens)?)?;
        Some((change, tokens.get(change.tokens.len()..)?))
    }

    fn latest_index(&self, tokens: &[String]) -> Option<usize> {
        if self.latest.is_empty() {
            return self.list.iter().rposition(|change| tokens.starts_with(&change.tokens));
        }
        (0..=tokens.len()).filter_map(|depth| self.latest.get(&tokens[..depth])).copied().max()
    }

    /// The changes below a place since it was last changed itself, in their order.
    fn below(&self, tokens: &[String]) -> impl Iterator<Item = &Change> {
        let is_below = |place: &[String]| place.len() > tokens.len() && place.starts_with(tokens);
        let mut found: Vec<usize> = if self.latest.is_empty() {
            let all = self.list.iter().enumerate();
            all.filter(|(_, change)| is_below(&change.tokens)).map(|(index, _)| index).collect()
        } else {
            let behind = (Bound::Excluded(tokens), Bound::Unbounded);
            let places = self.latest.range::<[String], _>(behind);
            places.take_while(|(place, _)| is_below(place)).map(|(_, index)| *index).collect()
        };
        let own = self.latest_index(tokens);
        found.retain(|index| own.is_none_or(|own| own < *index));
        found.sort_unstable();
        found.into_iter().filter_map(|index| self.list.get(index))
    }
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

/// The names below `/status` of a place in a list.
fn below(list: &Pointer, place: &[&str]) -> Vec<String> {
    let place = place.iter().map(|token| (*token).to_owned());
    list.below_status().iter().cloned().chain(place).collect()
}

impl<'d> Seen<'d, '_> {
    /// Absent or null: the same to every rule, and to the API server's pruning.
    pub(crate) const fn is_null(&self) -> bool {
        matches!(self, Self::Absent | Self::Original(Json::Null) | Self::Changed(Value::Null))
    }

    /// The text, where it is one.
    pub(crate) fn as_str(&self) -> Option<&'d str> {
        match self {
            Self::Absent => None,
            Self::Original(json) => json.as_str(),
            Self::Changed(value) => value.as_str(),
        }
    }

    /// An owned copy, where there is something whole to copy.
    pub(crate) fn to_value(&self) -> Option<Value> {
        match self {
            Self::Absent => None,
            Self::Original(json) => json.is_whole().then(|| json.to_value()),
            Self::Changed(value) => Some((*value).clone()),
        }
    }

    fn can_have_members(&self) -> bool {
        self.is_null()
            || matches!(self, Self::Original(Json::Object(_)) | Self::Changed(Value::Object(_)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patch_of(status: &str, change: impl FnOnce(&mut Draft<'_, '_>)) -> String {
        let object = Object::parse(status).unwrap();
        let mut draft = Draft::new(&object);
        change(&mut draft);
        let finished = draft.finish().unwrap();
        serde_json::to_string(&finished.map(|finished| finished.operations)).unwrap()
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
        let object = Object::parse(r#"{"status":{}}"#).unwrap();
        let mut draft = Draft::new(&object);
        draft.set(&pointer("/status/billing"), json!({"unit": "GiB"}));
        assert_eq!(draft.get(&pointer("/status/billing/unit")).as_str(), Some("GiB"));
        draft.remove(&pointer("/status/billing"));
        assert!(draft.get(&pointer("/status/billing/unit")).is_null());
    }

    #[test]
    fn a_copy_has_what_was_changed_below_it_however_much_was_changed() {
        for more in [0, 2 * SCAN_LIMIT] {
            let object = Object::parse(r#"{"status":{"a":{"b":1,"c":2},"ab":5}}"#).unwrap();
            let mut draft = Draft::new(&object);
            for at in 0..more {
                draft.set(&pointer(&format!("/status/z/{at}x")), json!(at));
            }
            draft.set(&pointer("/status/a/d/e"), json!(3));
            draft.remove(&pointer("/status/a/b"));
            let copy = |draft: &Draft<'_, '_>, place| draft.copy(&pointer(place));
            assert_eq!(copy(&draft, "/status/a"), Some(json!({"c": 2, "d": {"e": 3}})));
            assert_eq!(copy(&draft, "/status/ab"), Some(json!(5)));
            assert_eq!(copy(&draft, "/status/a/b"), None);
            // What is put in its place does not have what was changed before.
            draft.set(&pointer("/status/a"), json!({"f": 4}));
            assert_eq!(copy(&draft, "/status/a"), Some(json!({"f": 4})));
        }
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
