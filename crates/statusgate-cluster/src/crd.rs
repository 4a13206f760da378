//! The definition of a custom resource.

use serde_json::Value;

use super::pages::crd_path;
use super::{Cluster, ClusterError, Patience, Target};
use statusgate_core::schema::{NEWEST, Schema};

/// The definition of a target.
#[derive(Clone, Debug)]
pub enum Definition {
    /// A custom resource, with the schema of its fields.
    Custom(Schema),
    /// Not a custom resource: a built-in kind, or a kind of an aggregated API.
    Other,
    /// A definition that this account may not read, or that is invalid, with the reason.
    Unknown(String),
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
        let document: Value = match serde_json::from_slice(text) {
            Ok(document) => document,
            Err(error) => return Self::Unknown(format!("invalid definition: {error}")),
        };
        // In definitions that were created as v1beta1.
        if document["spec"]["preserveUnknownFields"] == true {
            return Self::Custom(Schema::free());
        }
        let versions = document.pointer("/spec/versions").and_then(Value::as_array);
        let mut versions = versions.into_iter().flatten();
        let Some(found) = versions.find(|found| found["name"] == version) else {
            return Self::Unknown(format!("the definition has no version {version}"));
        };
        let schema = found.pointer("/schema/openAPIV3Schema").filter(|schema| !schema.is_null());
        Self::Custom(schema.map_or_else(Schema::free, |schema| Schema::compile(schema, NEWEST)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_schema_keeps_everything_and_a_missing_version_is_unknown() {
        let is_kept = |text: &str| {
            let definition = Definition::read(text.as_bytes(), "v1");
            matches!(definition, Definition::Custom(schema) if schema.is_free())
        };
        let text = r#"{"spec":{"versions":[{"name":"v1"}]}}"#;
        assert!(is_kept(text));
        assert!(matches!(Definition::read(text.as_bytes(), "v2"), Definition::Unknown(_)));
        let text = r#"{"spec":{"preserveUnknownFields":true,"versions":[]}}"#;
        assert!(is_kept(text));
    }
}
