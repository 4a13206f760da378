//! The definition of a custom resource.

use serde_json::Value;

use super::pages::crd_path;
use super::{Cluster, ClusterError, Patience, Target};
use statusgate_core::policy::Defined;

/// The definition of a target.
#[derive(Clone, Debug)]
pub enum Definition {
    /// A custom resource, with the schema of its fields.
    Custom(Defined),
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
            Ok(body) => Ok(Definition::read(&body, &target.version, self.minor())),
            Err(ClusterError::Rejected { code: 404, .. }) => Ok(Definition::Other),
            Err(error @ ClusterError::Rejected { .. }) => {
                Ok(Definition::Unknown(error.to_string()))
            }
            Err(error) => Err(error),
        }
    }
}

impl Definition {
    /// Reads one version, as an API server with this minor version treats it.
    pub fn read(text: &[u8], version: &str, minor: u32) -> Self {
        let document: Value = match serde_json::from_slice(text) {
            Ok(document) => document,
            Err(error) => return Self::Unknown(format!("invalid definition: {error}")),
        };
        let mut versions = Defined::served(&document, minor).into_iter();
        versions.find(|defined| defined.version == version).map_or_else(
            || Self::Unknown(format!("the definition has no version {version}")),
            Self::Custom,
        )
    }
}

#[cfg(test)]
mod tests {
    use statusgate_core::schema::NEWEST;

    use super::*;

    #[test]
    fn a_missing_schema_keeps_everything_and_a_missing_version_is_unknown() {
        let is_kept = |text: &str| {
            let definition = Definition::read(text.as_bytes(), "v1", NEWEST);
            matches!(definition, Definition::Custom(defined) if defined.schema.is_free())
        };
        let text = r#"{"spec":{"versions":[{"name":"v1"}]}}"#;
        assert!(is_kept(text));
        assert!(matches!(Definition::read(text.as_bytes(), "v2", NEWEST), Definition::Unknown(_)));
        let text = r#"{"spec":{"preserveUnknownFields":true,"versions":[{"name":"v1",
            "schema":{"openAPIV3Schema":{"type":"object"}}}]}}"#;
        assert!(is_kept(text));
    }
}
