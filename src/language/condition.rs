//! `condition` and `oldCondition`: one condition of the object, or of the stored one.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::check::Check;
use super::{OneOrMany, Word};
use crate::model::ConditionStatus;

/// A condition, and what must hold of it: all of the tests that are there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// The condition.
    #[serde(flatten)]
    pub of: ConditionOf,
    /// Its status is one of these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is: Option<OneOrMany<ConditionStatus>>,
    /// Its status is none of these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_not: Option<OneOrMany<ConditionStatus>>,
    /// Its reason is one of these. The empty one includes no reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<OneOrMany<String>>,
    /// Whether it is in the list. The only test that has an answer where the condition is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub present: Option<bool>,
    /// Whether this write changed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed: Option<bool>,
}

/// The type of a condition, and the object that has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ConditionOf {
    /// A condition of this write.
    Condition(String),
    /// A condition of the stored object.
    OldCondition(String),
}

impl Condition {
    /// No tests of a condition of this write yet.
    #[must_use]
    pub fn of(kind: impl Into<String>) -> Self {
        let of = ConditionOf::Condition(kind.into());
        Self { of, is: None, is_not: None, reason: None, present: None, changed: None }
    }
}

impl ConditionOf {
    /// Its type.
    #[must_use]
    pub fn kind(&self) -> &str {
        match self {
            Self::Condition(kind) | Self::OldCondition(kind) => kind,
        }
    }
}

impl Word for Condition {
    const KEYS: &'static [&'static str] = &["condition", "oldCondition"];
    const TESTS: &'static [&'static str] = &["is", "isNot", "reason", "present", "changed"];
    const OF_ELEMENT: &'static [&'static str] = &[];

    fn check(&self, check: &mut Check<'_>) {
        if *self == (Self { of: self.of.clone(), ..Self::of("") }) {
            let message = format!("nothing is asked of condition {}", self.of.kind());
            check.error(&message, Some("add is, isNot, reason, present or changed"));
        }
    }
}

impl JsonSchema for ConditionOf {
    fn schema_name() -> Cow<'static, str> {
        "ConditionOf".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "object", "properties": {
            "condition": {
                "description": "A condition of this write; ask is, isNot, reason, present or changed.",
                "type": "string",
            },
            "oldCondition": {"description": "A condition of the stored object.", "type": "string"},
        }})
    }
}
