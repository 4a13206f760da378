//! What the schema of a resource says about its status.

use indexmap::IndexMap;
use serde_json::Value;
use statusgate_core::model::Pointer;
use statusgate_core::schema::{FieldSchema, ListType, Node, Schema};

use super::text::escaped;

/// The fields that are read, and how deep.
const MAX_FIELDS: usize = 256;
const MAX_DEPTH: usize = 3;

/// The required fields, and the texts of each field with an enum, by path.
pub(crate) fn fields(schema: &Schema) -> (Vec<String>, IndexMap<String, Vec<&str>>) {
    let mut enums = IndexMap::new();
    let Some(status) = node(schema, "/status") else { return (Vec::new(), enums) };
    let required = status.required.iter().take(MAX_FIELDS);
    walk(status, "/status".to_owned(), 0, &mut enums);
    (required.map(|name| format!("/status/{}", escaped(name))).collect(), enums)
}

/// The keys of a list.
pub(crate) fn keys<'s>(schema: &'s Schema, path: &str) -> Option<&'s [Box<str>]> {
    match &node(schema, path)?.list {
        ListType::Map(keys) => Some(keys),
        ListType::Atomic | ListType::Set => None,
    }
}

fn node<'s>(schema: &'s Schema, path: &str) -> Option<&'s Node> {
    match schema.at(Pointer::of_list(path).ok()?.tokens()) {
        FieldSchema::Declared(node) => Some(node),
        FieldSchema::Free | FieldSchema::Pruned => None,
    }
}

fn walk<'s>(
    node: &'s Node,
    path: String,
    depth: usize,
    enums: &mut IndexMap<String, Vec<&'s str>>,
) {
    for (name, inner) in node.properties.iter().filter(|_| depth < MAX_DEPTH) {
        walk(inner, format!("{path}/{}", escaped(name)), depth + 1, enums);
    }
    let texts: Vec<&str> = node.members().iter().filter_map(Value::as_str).collect();
    if !texts.is_empty() && enums.len() < MAX_FIELDS {
        enums.insert(path, texts);
    }
}
