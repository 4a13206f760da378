//! The documents as JSON Schemas, for editors: what may stand where, with a word about each key.
//!
//! The reader of documents reports more than a schema can (names that do not exist, predicates that
//! ask nothing), and stays the judge. `tests/json_schemas.rs` holds the two together: what the
//! reader takes the schema takes, and a key that one does not know the other does not either.

#![expect(
    clippy::needless_pass_by_value,
    reason = "schemas are built inside out: each part ends up in the next"
)]

mod convention;
mod shapes;

use serde_json::{Value, json};

use shapes::{array, described, reference, strings};

/// The documents that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocumentKind {
    /// Which resources follow which convention.
    StatusPolicy,
    /// What is true of `.status` under one system.
    StatusConvention,
}

impl DocumentKind {
    /// As `kind` spells it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::StatusPolicy => "StatusPolicy",
            Self::StatusConvention => "StatusConvention",
        }
    }

    /// The schema (draft 2020-12) of a document of this kind.
    #[must_use]
    pub fn json_schema(self) -> Value {
        let (description, spec) = match self {
            Self::StatusPolicy => (
                "Which resources follow which convention, how strictly, with what local additions.",
                policy(),
            ),
            Self::StatusConvention => {
                ("What is true of .status under one system.", convention::spec())
            }
        };
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": self.name(),
            "description": description,
            "type": "object",
            "required": ["apiVersion", "kind", "metadata", "spec"],
            "additionalProperties": false,
            "properties": {
                "apiVersion": {"const": "statusgate.dev/v1alpha1"},
                "kind": {"const": self.name()},
                "metadata": {
                    "type": "object",
                    "required": ["name"],
                    "additionalProperties": false,
                    "properties": {
                        "name": {"type": "string", "maxLength": 63, "pattern": "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"},
                        "namespace": {},
                        "labels": {},
                        "annotations": {},
                    },
                },
                "spec": spec,
            },
            "$defs": shapes::definitions(),
        })
    }
}

fn policy() -> Value {
    let writers = json!({
        "users": described(strings(), "User names; * stands for any run of characters."),
        "groups": described(strings(), "Group names."),
    });
    let with = |mut members: Value, more: Value| {
        if let (Some(members), Value::Object(more)) = (members.as_object_mut(), more) {
            members.extend(more);
        }
        members
    };
    json!({
        "type": "object",
        "required": ["convention", "resources"],
        "additionalProperties": false,
        "properties": {
            "convention": described(json!({"type": "string"}), "The name of a convention, built in or a StatusConvention."),
            "enable": described(strings(), "Optional rules and defaults of the convention that are wanted."),
            "resources": described(array(json!({
                "type": "object",
                "required": ["apiGroups", "apiVersions", "resources"],
                "additionalProperties": false,
                "properties": {
                    "apiGroups": strings(),
                    "apiVersions": strings(),
                    "resources": strings(),
                    "statusSubresource": described(json!({"type": "boolean"}), "False for CRDs without the status subresource."),
                },
            })), "Whose status it is, in the vocabulary of webhook rules, with *."),
            "enforcement": described(reference("action"), "The ceiling over every rule (Deny)."),
            "disagreement": described(reference("disagreement"), "What happens when a write brings in a disagreement (Deny)."),
            "writers": described(array(json!({
                "type": "object",
                "required": ["disagreement"],
                "additionalProperties": false,
                "properties": with(writers.clone(), json!({"disagreement": reference("disagreement")})),
            })), "Writers whose disagreements are met in another way."),
            "backfill": described(array(reference("fill")), "Fields to fill in, beside the convention's own."),
            "fields": described(array(reference("field")), "Local schema."),
            "owners": described(array(json!({
                "type": "object",
                "required": ["path"],
                "additionalProperties": false,
                "properties": with(writers, json!({"path": reference("pointer")})),
            })), "Who may set a field; anyone else's change to it is refused."),
            "preserve": described(array(reference("pointer")), "What a writer who is not the owner cannot drop."),
            "rules": described(array(reference("celRule")), "CEL, for what the convention cannot say."),
        },
    })
}
