//! The schema of a custom resource: which fields of an object the API server stores.

use serde_json::Value;

/// The OpenAPI v3 schema of one version in a CustomResourceDefinition.
#[derive(Clone, Debug, PartialEq)]
pub struct Schema(Value);

/// How a schema treats a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FieldSchema<'s> {
    /// The field has this schema.
    Declared(&'s Value),
    /// The API server stores any value.
    Free,
    /// The API server prunes the field.
    Pruned,
}

impl From<Value> for Schema {
    fn from(schema: Value) -> Self {
        Self(schema)
    }
}

impl Schema {
    /// A schema that keeps everything.
    pub fn free() -> Self {
        Self(serde_json::json!({"x-kubernetes-preserve-unknown-fields": true}))
    }

    /// How the schema treats the field at a path. Like the API server, it keeps fields that are
    /// declared, that `additionalProperties` allows, or below `x-kubernetes-preserve-unknown-fields`.
    pub fn at(&self, tokens: &[String]) -> FieldSchema<'_> {
        let mut node = &self.0;
        for token in tokens {
            match below(node, token) {
                FieldSchema::Declared(next) => node = next,
                other => return other,
            }
        }
        FieldSchema::Declared(node)
    }

    /// The first name of a path that the schema prunes, by its position, and the names that it has
    /// there. `None` if the schema keeps the field.
    pub fn pruned(&self, tokens: &[String]) -> Option<(usize, Vec<&str>)> {
        let at = (0..tokens.len()).find(|at| self.at(&tokens[..=*at]) == FieldSchema::Pruned)?;
        let FieldSchema::Declared(node) = self.at(&tokens[..at]) else { return None };
        let properties = node.get("properties").and_then(Value::as_object);
        Some((at, properties.into_iter().flatten().map(|(name, _)| name.as_str()).collect()))
    }
}

fn below<'s>(node: &'s Value, token: &str) -> FieldSchema<'s> {
    let properties = node.get("properties").and_then(|properties| properties.get(token));
    let additional = node.get("additionalProperties");
    let items = node.get("items").filter(|_| is_index(token));
    if let Some(next) = properties.or(items) {
        FieldSchema::Declared(next)
    } else if is_true(node.get("x-kubernetes-preserve-unknown-fields")) || is_true(additional) {
        FieldSchema::Free
    } else if let Some(next @ Value::Object(_)) = additional {
        FieldSchema::Declared(next)
    } else if is_true(node.get("x-kubernetes-embedded-resource"))
        && matches!(token, "apiVersion" | "kind" | "metadata")
    {
        FieldSchema::Free
    } else {
        FieldSchema::Pruned
    }
}

fn is_true(value: Option<&Value>) -> bool {
    value == Some(&Value::Bool(true))
}

/// An index, or what stands for one in a pointer: `*` for each element, `-1` for the last.
fn is_index(token: &str) -> bool {
    matches!(token, "*" | "-1")
        || (!token.is_empty() && token.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declared_and_preserved_fields_are_stored() {
        let schema = Schema(serde_json::json!({"type":"object","properties":{
            "status":{"type":"object","properties":{
                "phase":{"type":"string"},
                "any":{"type":"object","x-kubernetes-preserve-unknown-fields":true,
                       "properties":{"strict":{"type":"object","properties":{}}}},
                "labels":{"type":"object","additionalProperties":{"type":"string"}},
                "open":{"type":"object","additionalProperties":true},
                "list":{"type":"array","items":{"type":"object","properties":{"a":{}}}}}}}}));
        for (path, expected) in [
            ("status/phase", "declared"),
            ("status/billing", "pruned"),
            ("status/any/thing", "free"),
            ("status/any/strict/x", "pruned"),
            ("status/labels/a", "declared"),
            ("status/labels/a/b", "pruned"),
            ("status/labels/*", "declared"),
            ("status/labels/*/b", "pruned"),
            ("status/open/a/b", "free"),
            ("status/list/0/a", "declared"),
            ("status/list/*/a", "declared"),
            ("status/list/-1/b", "pruned"),
            ("status/list/0/b", "pruned"),
            ("status/list/a", "pruned"),
        ] {
            let tokens: Vec<String> = path.split('/').map(str::to_owned).collect();
            let found = match schema.at(&tokens) {
                FieldSchema::Declared(_) => "declared",
                FieldSchema::Free => "free",
                FieldSchema::Pruned => "pruned",
            };
            assert_eq!(found, expected, "{path}");
            assert_eq!(schema.pruned(&tokens).is_some(), expected == "pruned", "{path}");
        }
    }
}
