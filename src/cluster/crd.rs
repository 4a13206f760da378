//! The schema of a custom resource, as far as it says what of a status is stored.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::pages::crd_path;
use super::{Cluster, ClusterError, Identity, Patience, Target};

/// What is known of the schema of a target.
#[derive(Clone, Debug, PartialEq)]
pub enum Definition {
    /// A custom resource.
    Custom {
        /// `metadata.uid`: another one where the definition was installed anew.
        uid: String,
        /// What it says of the fields.
        schema: Schema,
    },
    /// No custom resource: a built-in kind, or one of an aggregated API.
    Other,
    /// A definition that this account may not read, or that is not understood.
    Unknown(String),
}

/// An OpenAPI v3 schema of one version, as a CustomResourceDefinition has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Schema(Value);

/// Where a path leads in a schema.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Place<'s> {
    /// To a field with a schema of its own.
    Declared(&'s Value),
    /// To where everything is kept as it comes.
    Free,
    /// Nowhere: what is written there is pruned.
    Pruned,
}

#[derive(Deserialize)]
struct Document<'a> {
    #[serde(borrow, default)]
    metadata: Identity<'a>,
    #[serde(borrow)]
    spec: Spec<'a>,
}

#[derive(Deserialize)]
struct Spec<'a> {
    #[serde(borrow)]
    versions: Vec<Version<'a>>,
    /// Of definitions that were once v1beta1.
    #[serde(rename = "preserveUnknownFields", default)]
    preserve: bool,
}

#[derive(Deserialize)]
struct Version<'a> {
    name: String,
    #[serde(borrow, default)]
    schema: Option<VersionSchema<'a>>,
}

#[derive(Deserialize)]
struct VersionSchema<'a> {
    #[serde(borrow, rename = "openAPIV3Schema", default)]
    schema: Option<&'a RawValue>,
}

impl Cluster {
    /// The definition of a target. Not a failure where it cannot be read: objects can be judged
    /// and written without it.
    ///
    /// # Errors
    /// When the API server does not answer.
    pub async fn definition(&self, target: &Target) -> Result<Definition, ClusterError> {
        let name = target.name();
        let what = format!("read the CustomResourceDefinition {name}");
        match self.read(&what, &crd_path(&name), Patience::SHORT).await {
            Ok(body) => Ok(Definition::read(&body, &target.version)),
            Err(ClusterError::Refused { code: 404, .. }) => Ok(Definition::Other),
            Err(error @ ClusterError::Refused { .. }) => Ok(Definition::Unknown(error.to_string())),
            Err(error) => Err(error),
        }
    }
}

impl Definition {
    /// Reads the schema of one version out of a definition. The other versions are skipped: a
    /// definition may be a megabyte.
    #[must_use]
    pub fn read(text: &[u8], version: &str) -> Self {
        let document: Document<'_> = match serde_json::from_slice(text) {
            Ok(document) => document,
            Err(error) => return Self::Unknown(format!("invalid definition: {error}")),
        };
        let custom = |schema| {
            let uid = document.metadata.uid.into_owned();
            Self::Custom { uid, schema: Schema(schema) }
        };
        if document.spec.preserve {
            return custom(free());
        }
        let Some(found) = document.spec.versions.into_iter().find(|found| found.name == version)
        else {
            return Self::Unknown(format!("the definition has no version {version}"));
        };
        let schema = found.schema.and_then(|schema| schema.schema);
        match schema.map(|schema| serde_json::from_str(schema.get())) {
            None => custom(free()),
            Some(Ok(schema)) => custom(schema),
            Some(Err(error)) => Self::Unknown(format!("invalid schema: {error}")),
        }
    }

    /// The uid of the definition; empty where it has none, or may not be read.
    #[must_use]
    pub fn uid(&self) -> &str {
        match self {
            Self::Custom { uid, .. } => uid,
            Self::Other | Self::Unknown(_) => "",
        }
    }
}

impl Schema {
    /// Where a path of names leads. As the API server prunes: a field stays that is declared, that
    /// `additionalProperties` let in, or that lies below `x-kubernetes-preserve-unknown-fields`.
    #[must_use]
    pub fn at(&self, tokens: &[String]) -> Place<'_> {
        let mut node = &self.0;
        for token in tokens {
            let properties = node.get("properties").and_then(|properties| properties.get(token));
            let additional = node.get("additionalProperties");
            let items = node.get("items").filter(|_| is_index(token));
            if let Some(below) = properties.or(items) {
                node = below;
            } else if preserves(node) || additional == Some(&Value::Bool(true)) {
                return Place::Free;
            } else if let Some(below @ Value::Object(_)) = additional {
                node = below;
            } else if node.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true))
                && matches!(token.as_str(), "apiVersion" | "kind" | "metadata")
            {
                return Place::Free;
            } else {
                return Place::Pruned;
            }
        }
        Place::Declared(node)
    }
}

fn preserves(node: &Value) -> bool {
    node.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true))
}

fn is_index(token: &str) -> bool {
    !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_digit())
}

/// The schema of what keeps everything.
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
            Place::Declared(_) => "declared",
            Place::Free => "free",
            Place::Pruned => "pruned",
        }
    }

    #[test]
    fn what_is_stored_is_what_the_schema_lets_through() {
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
    fn without_a_schema_everything_is_kept_and_without_the_version_nothing_is_known() {
        let kept = |uid: &str| Definition::Custom { uid: uid.into(), schema: Schema(free()) };
        let text = r#"{"metadata":{"uid":"u"},"spec":{"versions":[{"name":"v1"}]}}"#;
        assert_eq!(Definition::read(text.as_bytes(), "v1"), kept("u"));
        assert!(matches!(Definition::read(text.as_bytes(), "v2"), Definition::Unknown(_)));
        let text = r#"{"spec":{"preserveUnknownFields":true,"versions":[]}}"#;
        assert_eq!(Definition::read(text.as_bytes(), "v1"), kept(""));
    }
}
