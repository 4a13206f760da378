//! The schema of a custom resource: which fields of a status the API server stores.

use serde_json::Value;

use super::pages::crd_path;
use super::{Cluster, ClusterError, Patience, Target};

/// The definition of a target.
#[derive(Clone, Debug, PartialEq)]
pub enum Definition {
    /// A custom resource.
    Custom {
        /// `metadata.uid`. It changes when the CRD is deleted and installed again.
        uid: String,
        /// The schema of the fields.
        schema: Schema,
    },
    /// Not a custom resource: a built-in kind, or a kind of an aggregated API.
    Other,
    /// A definition that this account may not read, or that is invalid, with the reason.
    Unknown(String),
}

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

impl Cluster {
    /// The definition of a target. Missing permission is not an error: backfill and audit work
    /// without it.
    ///
    /// # Errors
    /// When the API server does not respond.
    pub async fn definition(&self, target: &Target) -> Result<Definition, ClusterError> {
        let name = target.name();
        let what = format!("read the CustomResourceDefinition {name}");
        match self.read(&what, &crd_path(&name), Patience::SHORT).await {
            Ok(body) => Ok(Definition::read(&body, &target.version)),
            Err(ClusterError::Rejected { code: 404, .. }) => Ok(Definition::Other),
            Err(error @ ClusterError::Rejected { .. }) => {
                Ok(Definition::Unknown(error.to_string()))
            }
            Err(error) => Err(error),
        }
    }
}

impl Definition {
    /// Reads the schema of one version.
    pub fn read(text: &[u8], version: &str) -> Self {
        let mut document: Value = match serde_json::from_slice(text) {
            Ok(document) => document,
            Err(error) => return Self::Unknown(format!("invalid definition: {error}")),
        };
        let uid = document["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        // In definitions that were created as v1beta1.
        if document["spec"]["preserveUnknownFields"] == true {
            return Self::Custom { uid, schema: Schema(free()) };
        }
        let versions = document.pointer_mut("/spec/versions").and_then(Value::as_array_mut);
        let mut versions = versions.into_iter().flatten();
        let Some(found) = versions.find(|found| found["name"] == version) else {
            return Self::Unknown(format!("the definition has no version {version}"));
        };
        let schema = found.pointer_mut("/schema/openAPIV3Schema").map(Value::take);
        let schema = schema.filter(|schema| !schema.is_null()).unwrap_or_else(free);
        Self::Custom { uid, schema: Schema(schema) }
    }

    /// The uid of the definition; empty if it has none, or cannot be read.
    pub fn uid(&self) -> &str {
        match self {
            Self::Custom { uid, .. } => uid,
            Self::Other | Self::Unknown(_) => "",
        }
    }
}

impl Schema {
    /// How the schema treats the field at a path. Like the API server, it keeps fields that are
    /// declared, that `additionalProperties` allows, or below `x-kubernetes-preserve-unknown-fields`.
    pub fn at(&self, tokens: &[String]) -> FieldSchema<'_> {
        let mut node = &self.0;
        for token in tokens {
            let properties = node.get("properties").and_then(|properties| properties.get(token));
            let additional = node.get("additionalProperties");
            let items = node.get("items").filter(|_| is_index(token));
            if let Some(below) = properties.or(items) {
                node = below;
            } else if preserves(node) || additional == Some(&Value::Bool(true)) {
                return FieldSchema::Free;
            } else if let Some(below @ Value::Object(_)) = additional {
                node = below;
            } else if node.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true))
                && matches!(token.as_str(), "apiVersion" | "kind" | "metadata")
            {
                return FieldSchema::Free;
            } else {
                return FieldSchema::Pruned;
            }
        }
        FieldSchema::Declared(node)
    }
}

fn preserves(node: &Value) -> bool {
    node.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true))
}

fn is_index(token: &str) -> bool {
    !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_digit())
}

/// A schema that keeps everything.
fn free() -> Value {
    serde_json::json!({"x-kubernetes-preserve-unknown-fields": true})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(schema: &str, path: &str) -> &'static str {
        let text = format!(
            r#"{{"spec":{{"versions":[{{"name":"v0"}},{{"name":"v1","schema":{{"openAPIV3Schema":{schema}}}}}]}}}}"#
        );
        let Definition::Custom { schema, .. } = Definition::read(text.as_bytes(), "v1") else {
            return "unknown";
        };
        let tokens: Vec<String> = path.split('/').map(str::to_owned).collect();
        match schema.at(&tokens) {
            FieldSchema::Declared(_) => "declared",
            FieldSchema::Free => "free",
            FieldSchema::Pruned => "pruned",
        }
    }

    #[test]
    fn declared_and_preserved_fields_are_stored() {
        let schema = r#"{"type":"object","properties":{
            "status":{"type":"object","properties":{
                "phase":{"type":"string"},
                "any":{"type":"object","x-kubernetes-preserve-unknown-fields":true,
                       "properties":{"strict":{"type":"object","properties":{}}}},
                "labels":{"type":"object","additionalProperties":{"type":"string"}},
                "open":{"type":"object","additionalProperties":true},
                "list":{"type":"array","items":{"type":"object","properties":{"a":{}}}}}}}}"#;
        for (path, expected) in [
            ("status/phase", "declared"),
            ("status/billing", "pruned"),
            ("status/any/thing", "free"),
            ("status/any/strict/x", "pruned"),
            ("status/labels/a", "declared"),
            ("status/labels/a/b", "pruned"),
            ("status/open/a/b", "free"),
            ("status/list/0/a", "declared"),
            ("status/list/0/b", "pruned"),
            ("status/list/a", "pruned"),
        ] {
            assert_eq!(place(schema, path), expected, "{path}");
        }
    }

    #[test]
    fn a_missing_schema_keeps_everything_and_a_missing_version_is_unknown() {
        let kept = |uid: &str| Definition::Custom { uid: uid.into(), schema: Schema(free()) };
        let text = r#"{"metadata":{"uid":"u"},"spec":{"versions":[{"name":"v1"}]}}"#;
        assert_eq!(Definition::read(text.as_bytes(), "v1"), kept("u"));
        assert!(matches!(Definition::read(text.as_bytes(), "v2"), Definition::Unknown(_)));
        let text = r#"{"spec":{"preserveUnknownFields":true,"versions":[]}}"#;
        assert_eq!(Definition::read(text.as_bytes(), "v1"), kept(""));
    }
}
