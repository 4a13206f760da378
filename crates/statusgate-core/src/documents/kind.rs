//! What every document has: its version, its kind, its name.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Name, StatusConvention, StatusPolicy, schema};

/// The kinds of documents.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum DocumentKind {
    /// Which resources follow which convention.
    StatusPolicy,
    /// The rules about `.status` that one system follows.
    StatusConvention,
}

/// The API group of the documents.
pub const GROUP: &str = "statusgate.dev";

/// The version of the documents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ApiVersion {
    /// The only one.
    #[default]
    #[serde(rename = "statusgate.dev/v1alpha1")]
    V1Alpha1,
}

document! {
    /// The name of the document, and what Kubernetes objects also carry.
    pub struct Metadata {
        /// At most 63 of a-z, 0-9, `-` and `.`; it starts and ends with a letter or digit.
        name: Name,
        /// Ignored.
        namespace?: Value,
        /// Ignored.
        labels?: Value,
        /// Ignored.
        annotations?: Value,
    }

    /// What documents of all kinds have in common.
    pub struct Envelope {
        /// The version.
        api_version: ApiVersion,
        /// The kind.
        kind: DocumentKind,
        /// The name.
        metadata: Metadata,
        /// The content.
        spec: Value,
    }
}

impl DocumentKind {
    /// As documents have it in `kind`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::StatusPolicy => "StatusPolicy",
            Self::StatusConvention => "StatusConvention",
        }
    }

    /// The JSON Schema (draft 2020-12) of a document of this kind, for editors.
    pub fn json_schema(self) -> Value {
        match self {
            Self::StatusPolicy => schema::printed::<StatusPolicy>(false),
            Self::StatusConvention => schema::printed::<StatusConvention>(true),
        }
    }
}
