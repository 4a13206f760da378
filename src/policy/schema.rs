//! What may be asked of a single field: presence, type, enum, pattern, length, range, format.

use std::fmt;

use regex::bytes::Regex;

use crate::model::Pointer;

use super::Action;
use super::predicate::pointer;
use super::yaml::{Map, Node, Problems};

/// The largest pattern that is compiled. Patterns come from documents that people write: the
/// longest known, the one of metav1 condition types, needs a tenth of this.
const PATTERN_SIZE_LIMIT: usize = 1 << 20;

/// A JSON type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldType {
    /// A string.
    String,
    /// A whole number.
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

impl fmt::Display for FieldType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::String => "a string",
            Self::Integer => "a whole number",
            Self::Number => "a number",
            Self::Boolean => "a boolean",
            Self::Object => "an object",
            Self::Array => "a list",
        })
    }
}

/// A shape that a pattern cannot say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Strict RFC 3339; see [`crate::model::parse_rfc3339`].
    DateTime,
    /// A Kubernetes quantity (`20Gi`, `142500m`) or a plain number.
    Quantity,
}

/// What is asked of one field, and what happens when it does not hold.
#[derive(Clone, Debug)]
pub struct Check {
    /// The rule id in findings, `appcat/condition-reason`.
    pub rule: String,
    /// Whether the field must be there. Null counts as absent: writers' nulls are pruned.
    pub required: bool,
    /// Its type.
    pub kind: Option<FieldType>,
    /// The texts it may have.
    pub values: Vec<String>,
    /// A pattern over the whole text.
    pub pattern: Option<Regex>,
    /// The least number of characters.
    pub min_length: Option<usize>,
    /// The largest number of characters (code points, as OpenAPI counts; Go counts bytes).
    pub max_length: Option<usize>,
    /// The least number.
    pub minimum: Option<f64>,
    /// The largest number.
    pub maximum: Option<f64>,
    /// A named form.
    pub format: Option<Format>,
    /// What happens on a violation.
    pub action: Action,
}

/// A check of a field that is named by a pointer.
#[derive(Clone, Debug)]
pub struct FieldRule {
    /// Where the field is.
    pub path: Pointer,
    /// What is asked of it.
    pub check: Check,
}

/// Reads `{path: …, type: …, enum: …}`.
pub(crate) fn read_field(node: &Node, problems: &Problems, prefix: &str) -> Option<FieldRule> {
    let map = problems.map(node)?;
    let path = map.required("path").and_then(|node| pointer(node, problems));
    let name = path.as_ref().and_then(|path| path.tokens().last()).map(|name| kebab(name));
    let check = read_members(map, problems, prefix, &format!("field-{}", name.unwrap_or_default()));
    Some(FieldRule { path: path?, check })
}

/// Reads the checks of one field: a mapping, or a list of them where parts have actions of
/// their own.
pub(crate) fn read_checks(
    node: &Node,
    problems: &Problems,
    prefix: &str,
    default_id: &str,
) -> Vec<Check> {
    problems.one_or_many(node, |item| {
        problems.map(item).map(|map| read_members(map, problems, prefix, default_id))
    })
}

fn read_members(map: Map<'_>, problems: &Problems, prefix: &str, default_id: &str) -> Check {
    let id = map.get("id").and_then(|node| problems.string(node)).unwrap_or(default_id);
    let length = |name| {
        let node = map.get(name)?;
        let number = problems.integer(node)?;
        usize::try_from(number)
            .map_err(|_| problems.report(&node.span, "a length cannot be negative"))
            .ok()
    };
    let check = Check {
        rule: format!("{prefix}/{id}"),
        required: map.get("required").and_then(|node| problems.boolean(node)).unwrap_or(false),
        kind: map.get("type").and_then(|node| problems.word(node, &TYPES)),
        values: map.get("enum").map(|node| problems.strings(node)).unwrap_or_default(),
        pattern: map.get("pattern").and_then(|node| pattern(node, problems)),
        min_length: length("minLength"),
        max_length: length("maxLength"),
        minimum: map.get("minimum").and_then(|node| problems.number(node)),
        maximum: map.get("maximum").and_then(|node| problems.number(node)),
        format: map.get("format").and_then(|node| problems.word(node, &FORMATS)),
        action: map
            .get("action")
            .and_then(|node| Action::read(node, problems))
            .unwrap_or(Action::Deny),
    };
    map.close();
    check
}

const TYPES: [(&str, FieldType); 6] = [
    ("string", FieldType::String),
    ("integer", FieldType::Integer),
    ("number", FieldType::Number),
    ("boolean", FieldType::Boolean),
    ("object", FieldType::Object),
    ("array", FieldType::Array),
];

const FORMATS: [(&str, Format); 2] =
    [("date-time", Format::DateTime), ("quantity", Format::Quantity)];

fn pattern(node: &Node, problems: &Problems) -> Option<Regex> {
    let text = problems.string(node)?;
    regex::bytes::RegexBuilder::new(text)
        .size_limit(PATTERN_SIZE_LIMIT)
        // Patterns are those of OpenAPI schemas: they speak of ASCII names, and the tables for
        // Unicode classes are not built in.
        .unicode(false)
        .build()
        .map_err(|error| problems.report(&node.span, format!("not a pattern: {error}")))
        .ok()
}

/// `lastTransitionTime` as a part of a rule id: `last-transition-time`.
pub(crate) fn kebab(name: &str) -> String {
    let mut id = String::with_capacity(name.len() + 4);
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            if !id.is_empty() {
                id.push('-');
            }
            id.push(letter.to_ascii_lowercase());
        } else {
            id.push(letter);
        }
    }
    id
}
