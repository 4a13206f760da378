//! The CustomResourceDefinitions of StatusPolicy and StatusConvention.
//!
//! Their schema is a structural one, made of the JSON Schema of the documents: keys, types and
//! descriptions. Everything else is left to the webhook for documents, which reports all mistakes at
//! once with their lines, and which also accepts an object that the API server would have rejected
//! before. So the schema
//!
//! - keeps unknown keys in every object: a newer version may know them, and a typo is reported;
//! - has no words, patterns, limits and required keys;
//! - describes neither unions nor what contains itself: a structural schema can express neither.

mod structural;

use serde_json::{Value, json};

use statusgate_core::documents::DocumentKind;
use statusgate_core::source::{Source, json_at};

/// The API group of the documents.
pub use statusgate_core::documents::GROUP;

/// The version of the documents.
pub const VERSION: &str = "v1alpha1";

/// The plural name of a kind of document.
pub const fn plural(kind: DocumentKind) -> &'static str {
    match kind {
        DocumentKind::StatusPolicy => "statuspolicies",
        DocumentKind::StatusConvention => "statusconventions",
    }
}

/// The definitions of both kinds.
pub fn crds() -> [Value; 2] {
    [DocumentKind::StatusPolicy, DocumentKind::StatusConvention].map(crd)
}

/// The definition of a kind.
pub fn crd(kind: DocumentKind) -> Value {
    let name = kind.name();
    let (short, mut columns) = match kind {
        DocumentKind::StatusPolicy => (
            "spol",
            vec![
                column("Convention", ".spec.convention"),
                column("Enforcement", ".spec.enforcement"),
            ],
        ),
        DocumentKind::StatusConvention => ("sconv", vec![column("Extends", ".spec.extends")]),
    };
    let mut message = column("Status", ".status.conditions[?(@.type==\"Enforced\")].message");
    // Only with `kubectl get -o wide`.
    message["priority"] = json!(1);
    columns.extend([
        column("Accepted", ".status.conditions[?(@.type==\"Accepted\")].status"),
        column("Enforced", ".status.conditions[?(@.type==\"Enforced\")].status"),
        message,
        json!({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}),
    ]);
    let plural = plural(kind);
    let schema = kind.json_schema();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("{plural}.{GROUP}"),
            "labels": {"app.kubernetes.io/name": "statusgate"},
        },
        "spec": {
            "group": GROUP,
            "names": {
                "kind": name,
                "listKind": format!("{name}List"),
                "plural": plural,
                "singular": name.to_lowercase(),
                "shortNames": [short],
            },
            "scope": "Cluster",
            "versions": [{
                "name": VERSION,
                "served": true,
                "storage": true,
                "subresources": {"status": {}},
                "additionalPrinterColumns": columns,
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "description": schema["description"],
                    "required": ["spec"],
                    "properties": {
                        "apiVersion": {"type": "string"},
                        "kind": {"type": "string"},
                        "metadata": {"type": "object"},
                        "spec": structural::of(&schema, "spec"),
                        "status": status(),
                    },
                }},
            }],
        },
    })
}

fn column(name: &str, path: &str) -> Value {
    json!({"name": name, "type": "string", "jsonPath": path})
}

/// The status that statusgate itself writes.
fn status() -> Value {
    let schema = Source::new("status.yaml", include_str!("crds/status.yaml"));
    // The files in deploy/crds show that it is valid.
    let json = json_at(&schema, 0).map(|(json, _)| json).unwrap_or_default();
    serde_json::from_str(&json).unwrap_or_default()
}
