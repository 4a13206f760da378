//! The fields that a document names.

use std::collections::BTreeSet;

use super::cel::{self, ELEMENT};
use crate::model::Pointer;
use crate::source::tree::{Node, Value};

/// Keys with texts that are no pointers.
const TEXTS: [&str; 8] =
    ["differences", "is", "isNot", "meaning", "message", "source", "title", "value"];

/// The pointers of a document below /spec and /status, also those in CEL, there without the elements of lists.
pub(crate) fn pointers(document: &Node) -> BTreeSet<Pointer> {
    let mut found = BTreeSet::new();
    collect("", document, &mut found);
    found.retain(is_judged);
    found
}

/// Whether the schema of a CRD may declare the field.
pub(super) fn is_judged(pointer: &Pointer) -> bool {
    matches!(pointer.tokens(), [root, _, ..] if root == "spec" || root == "status")
}

fn collect(key: &str, node: &Node, found: &mut BTreeSet<Pointer>) {
    match &node.value {
        Value::Map(entries) => {
            entries.iter().for_each(|(key, value)| collect(&key.name, value, found));
        }
        Value::List(items) => items.iter().for_each(|item| collect(key, item, found)),
        Value::String(text) if key == "expression" => {
            let members = cel::mentions(text).members.into_keys();
            found.extend(members.filter(|path| !path.tokens().iter().any(|name| name == ELEMENT)));
        }
        Value::String(text) => found.extend(pointer(key, text)),
        _ => {}
    }
}

/// The text of a key as a pointer, unless the key has other texts. The `message` of a rule about health is a field.
pub(super) fn pointer(key: &str, text: &str) -> Option<Pointer> {
    let is_field = key == "message" && text.starts_with("/status/") && !text.contains(' ');
    (!TEXTS.contains(&key) || is_field).then(|| Pointer::of_list(text).ok())?
}
