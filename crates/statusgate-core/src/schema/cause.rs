//! Why the API server rejects a value, in its words.

use serde_json::Value;

use super::number::Number;
use crate::model::{quote, shortened};

/// The most characters of a value in a message.
const MOST: usize = 200;

/// A cause as in `status.details.causes`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// `status.conditions[0].type`.
    pub field: String,
    /// The type of the cause: `FieldValueRequired`.
    pub reason: &'static str,
    /// `Unsupported value: "Unknown": supported values: "Failed", "Ready"`.
    pub message: String,
}

impl Cause {
    pub(super) fn new(field: String, reason: &'static str, message: impl Into<String>) -> Self {
        Self { field, reason, message: message.into() }
    }

    /// A value that breaks a rule.
    pub(super) fn invalid(field: String, value: &Value, why: &str) -> Self {
        Self::new(field, INVALID, format!("Invalid value: {}: {why}", printed(value)))
    }

    pub(super) fn wrong_type(field: String, name: &str, kind: &str, value: &str) -> Self {
        let value = quote(value, MOST);
        let message =
            format!("Invalid value: {value}: {name} in body must be of type {kind}: {value}");
        Self::new(field, "FieldValueTypeInvalid", message)
    }

    pub(super) fn unsupported(field: String, value: &Value, members: &[Value]) -> Self {
        let members = members.iter().map(|member| match member {
            Value::String(text) => quote(text, MOST),
            other => quote(&other.to_string(), MOST),
        });
        let members: Vec<String> = members.collect();
        let message = format!(
            "Unsupported value: {}: supported values: {}",
            printed(value),
            members.join(", ")
        );
        Self::new(field, "FieldValueNotSupported", message)
    }

    pub(super) fn required(field: String) -> Self {
        Self::new(field, REQUIRED, "Required value")
    }

    pub(super) fn too_long(field: String, most: i64) -> Self {
        let noun = if most == 1 { "byte" } else { "bytes" };
        let message = format!("Too long: may not be more than {most} {noun}");
        Self::new(field, "FieldValueTooLong", message)
    }

    pub(super) fn too_many(field: String, count: i64, most: i64) -> Self {
        let noun = if most == 1 { "item" } else { "items" };
        let message = format!("Too many: {count}: must have at most {most} {noun}");
        Self::new(field, "FieldValueTooMany", message)
    }

    pub(super) fn duplicate(field: String, value: &Value) -> Self {
        Self::new(field, "FieldValueDuplicate", format!("Duplicate value: {}", printed(value)))
    }
}

/// The reason of most causes.
pub(super) const INVALID: &str = "FieldValueInvalid";

/// The reason of a missing member.
pub const REQUIRED: &str = "FieldValueRequired";

/// A value as in the messages of apimachinery's `field.Error`.
fn printed(value: &Value) -> String {
    match (value, Number::of(value)) {
        (Value::String(text), _) => quote(text, MOST),
        (Value::Null, _) => "null".to_owned(),
        (_, Some(number)) => number.to_string(),
        _ => shortened(&value.to_string(), MOST),
    }
}
