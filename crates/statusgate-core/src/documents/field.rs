//! Checks of one value.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Disposition, FixedAction, Name, Sentence, StatusPointer};
use crate::language::{Pattern, Scalar};
use crate::model::Id;

/// A JSON type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum FieldType {
    /// A string.
    String,
    /// An integer.
    Integer,
    /// Any number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// An object.
    Object,
    /// A list.
    Array,
}

/// A format that a pattern cannot express.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// A time in strict RFC 3339.
    DateTime,
    /// A Kubernetes quantity (`20Gi`, `142500m`) or a plain number.
    Quantity,
    /// The name of a label key or a condition type: an optional DNS subdomain of up to 253 characters, a slash, and up to 63 characters.
    // This is what apimachinery's `ValidateConditions` requires.
    QualifiedName,
}

document! {
    /// The checks of one value.
    #[schemars(extend("x-merge" = "keys"))]
    pub struct Check {
        /// The second half of the rule id. Default: made from the name of the field.
        id?: Name,
        /// The rule id. Compiling sets it.
        #[serde(skip)]
        rule: Id,
        /// The field must be present. Null counts as absent.
        required = bool,
        /// The field must be absent. An empty value counts as absent.
        forbidden = bool,
        /// Whether null counts as absent; otherwise it is a value of a wrong type. Default: true.
        #[serde(default = "super::yes", skip_serializing_if = "super::is_yes")]
        nullable: bool,
        /// The empty string counts as absent: Go writes it for a text or time without `omitempty` that is not set.
        /// Default: false.
        empty_is_absent = bool,
        /// The type of the value.
        #[serde(rename = "type")]
        kind?: FieldType,
        /// The supported values, all of one type.
        #[serde(rename = "enum")]
        #[schemars(length(min = 1), extend("x-empty" = "an enum must not be empty"))]
        values = Vec<Scalar>,
        /// A regular expression that must match somewhere in the string.
        pattern?: Pattern,
        /// What the pattern requires, in words: "must start with a letter". The response has it and the pattern.
        message?: Sentence,
        /// The least number of characters.
        min_length?: usize,
        /// The largest number of characters.
        max_length?: usize,
        /// The largest number of bytes in UTF-8.
        max_bytes?: usize,
        /// The least number.
        minimum?: f64,
        /// The largest number.
        maximum?: f64,
        /// The format of the string.
        format?: Format,
        /// What happens on a violation. Default: Deny.
        #[schemars(with = "Option<FixedAction>")]
        action?: Disposition,
        /// Where the check comes from.
        source = String,
    }

    /// The checks of a status field.
    #[schemars(extend("x-merge" = "keys"))]
    pub struct Field {
        /// The field.
        path: StatusPointer,
        /// Its checks.
        #[serde(flatten)]
        check: Check,
    }
}

impl fmt::Display for FieldType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::String => "a string",
            Self::Integer => "an integer",
            Self::Number => "a number",
            Self::Boolean => "a boolean",
            Self::Object => "an object",
            Self::Array => "a list",
        })
    }
}
