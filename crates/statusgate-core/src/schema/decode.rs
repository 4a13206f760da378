//! What the API server makes of an object before it validates it: it prunes, and sets defaults.

use serde_json::{Map, Value};

use super::cause::Cause;
use super::node::{Node, TYPE_META};
use super::path::Path;
use super::verdict::Fault;

/// Removes unknown members: `pruning.Prune`.
pub(super) fn prune(node: &Node, value: &mut Value) {
    prune_below(Some(node), false, value);
}

/// `keeps`: inside a list of `x-kubernetes-preserve-unknown-fields`.
fn prune_below(node: Option<&Node>, keeps: bool, value: &mut Value) {
    let keeps = keeps || node.is_some_and(|node| node.preserves_unknown);
    match (value, node) {
        (Value::Object(_) | Value::Array(_), None) if keeps => {}
        (Value::Object(members), None) => members.clear(),
        (Value::Object(members), Some(node)) => members.retain(|name, value| {
            if node.is_embedded && TYPE_META.contains(&name.as_str()) {
                return true;
            }
            let member = node.member(name);
            if member.is_none() && !node.keeps_additional {
                return keeps;
            }
            prune_below(member, false, value);
            true
        }),
        (Value::Array(items), _) => {
            let inner = node.and_then(|node| node.items.as_deref());
            items.iter_mut().for_each(|item| prune_below(inner, keeps, item));
        }
        _ => {}
    }
}

/// Removes declared members that are null without being nullable or having a default:
/// `PruneNonNullableNullsWithoutDefaults`.
pub(super) fn prune_nulls(node: Option<&Node>, value: &mut Value) {
    match value {
        Value::Object(members) => members.retain(|name, value| {
            let member = node.and_then(|node| node.member(name));
            let is_kept = !is_bad_null(member, value)
                || member.is_some_and(|member| member.default.is_some());
            prune_nulls(member, value);
            is_kept
        }),
        Value::Array(items) => {
            let inner = node.and_then(|node| node.items.as_deref());
            items.iter_mut().for_each(|item| prune_nulls(inner, item));
        }
        _ => {}
    }
}

/// A null where the schema is known and not nullable.
fn is_bad_null(node: Option<&Node>, value: &Value) -> bool {
    value.is_null() && node.is_some_and(|node| !node.is_nullable)
}

/// Sets defaults, also instead of nulls: `defaulting.Default`.
pub(super) fn set_defaults(node: &Node, value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, property) in &node.properties {
                if let Some(default) = &property.default
                    && members.get(&**name).is_none_or(|value| is_bad_null(Some(property), value))
                {
                    members.insert(name.to_string(), (**default).clone());
                }
            }
            for (name, value) in members.iter_mut() {
                if let Some(property) = node.property(name) {
                    set_defaults(property, value);
                } else if let Some(additional) = &node.additional {
                    replace_and_set(additional, value);
                }
            }
        }
        Value::Array(items) => {
            if let Some(inner) = &node.items {
                items.iter_mut().for_each(|item| replace_and_set(inner, item));
            }
        }
        _ => {}
    }
}

fn replace_and_set(node: &Node, value: &mut Value) {
    if is_bad_null(Some(node), value) {
        *value = node.default.as_deref().cloned().unwrap_or_default();
    }
    set_defaults(node, value);
}

/// Reads the metadata of embedded objects as Go does: `objectmeta.Coerce`. `drops` invalid members of stored
/// objects, where a write is rejected.
pub(super) fn coerce(
    node: &Node,
    value: &mut Value,
    drops: bool,
    path: &Path<'_>,
) -> Result<(), Fault> {
    match value {
        Value::Object(members) => {
            if node.is_embedded {
                coerce_embedded(members, drops, path)?;
            }
            coerce_members(node, members, drops, path)
        }
        Value::Array(items) => {
            let Some(inner) = &node.items else { return Ok(()) };
            let mut items = items.iter_mut().enumerate();
            items
                .try_for_each(|(index, item)| coerce(inner, item, drops, &Path::Index(path, index)))
        }
        _ => Ok(()),
    }
}

pub(super) fn coerce_members(
    node: &Node,
    members: &mut Map<String, Value>,
    drops: bool,
    path: &Path<'_>,
) -> Result<(), Fault> {
    members.iter_mut().try_for_each(|(name, value)| match node.member(name) {
        Some(member) => coerce(member, value, drops, &Path::Key(path, name)),
        None => Ok(()),
    })
}

fn coerce_embedded(
    members: &mut Map<String, Value>,
    drops: bool,
    path: &Path<'_>,
) -> Result<(), Fault> {
    for name in ["apiVersion", "kind"] {
        if let Some(value) = members.get(name).filter(|value| !value.is_string()) {
            if !drops {
                let field = Path::Key(path, name).field();
                return Err(Fault::proven(Cause::invalid(field, value, "must be a string")));
            }
            members.remove(name);
        }
    }
    let path = Path::Key(path, "metadata");
    match members.get_mut("metadata") {
        Some(Value::Object(metadata)) => {
            for (name, value) in std::mem::take(metadata) {
                if let Some(value) = coerce_metadata(&name, value, drops, &path)? {
                    metadata.insert(name, value);
                }
            }
            Ok(())
        }
        None => Ok(()),
        Some(Value::Null) => Err(Fault::unknown(path.field(), "metadata that is null")),
        Some(_) if drops => Ok(()),
        Some(value) => {
            let why = "json: cannot unmarshal it into an ObjectMeta";
            Err(Fault::proven(Cause::invalid(path.field(), value, why)))
        }
    }
}

/// A member of the metadata of an embedded object, or `None` if it is dropped.
fn coerce_metadata(
    name: &str,
    value: Value,
    drops: bool,
    path: &Path<'_>,
) -> Result<Option<Value>, Fault> {
    match (name, value) {
        ("name" | "namespace" | "generateName" | "uid" | "resourceVersion" | "selfLink", value) => {
            if !value.is_string() && !value.is_null() && !drops {
                let why = "json: cannot unmarshal it into a string";
                return Err(Fault::proven(Cause::invalid(
                    Path::Key(path, name).field(),
                    &value,
                    why,
                )));
            }
            Ok(Some(value).filter(|value| value.as_str().is_some_and(|text| !text.is_empty())))
        }
        ("labels" | "annotations", Value::Null) => Ok(None),
        ("labels" | "annotations", Value::Object(mut map))
            if map.values().all(|value| value.is_string() || value.is_null()) =>
        {
            for value in map.values_mut().filter(|value| value.is_null()) {
                *value = "".into();
            }
            Ok(Some(map).filter(|map| !map.is_empty()).map(Value::Object))
        }
        (
            "labels"
            | "annotations"
            | "generation"
            | "creationTimestamp"
            | "deletionTimestamp"
            | "deletionGracePeriodSeconds"
            | "ownerReferences"
            | "finalizers"
            | "managedFields",
            _,
        ) => Err(Fault::unknown(Path::Key(path, name).field(), "this member of embedded metadata")),
        _ => Ok(None),
    }
}
