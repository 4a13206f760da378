//! What may be asked of a single field: presence, type, enum, pattern, length, range, format.

use std::fmt;

use crate::model::Pointer;

use super::Action;
use super::predicate::pointer;
use crate::language::Pattern;
use crate::source::tree::{Map, Node, Problems};

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
            Self::Integer => "an integer",
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
    /// A name as label keys and condition types have it: an optional DNS subdomain of up to 253
    /// characters, a slash, and up to 63 characters. What apimachinery's `ValidateConditions` asks.
    QualifiedName,
}

/// What is asked of one field, and what happens when it does not hold.
#[derive(Clone, Debug)]
pub struct Check {
    /// The rule id in findings, `appcat/condition-reason`.
    pub rule: String,
    /// Whether the field must be there. Null counts as absent: writers' nulls are pruned.
    pub required: bool,
    /// Whether it must not be there. Empty counts as absent.
    pub forbidden: bool,
    /// Whether null counts as absent; as a value of a wrong type, where it does not.
    pub nullable: bool,
    /// Its type.
    pub kind: Option<FieldType>,
    /// The texts it may have.
    pub values: Vec<String>,
    /// A pattern that is found in the text; of the whole text where it says so, with `^` and `$`.
    pub pattern: Option<Pattern>,
    /// The least number of characters.
    pub min_length: Option<usize>,
    /// The largest number of characters: code points, as OpenAPI counts.
    pub max_length: Option<usize>,
    /// The largest number of bytes of UTF-8, as Go counts.
    pub max_bytes: Option<usize>,
    /// The least number.
    pub minimum: Option<f64>,
    /// The largest number.
    pub maximum: Option<f64>,
    /// A named form.
    pub format: Option<Format>,
    /// What happens on a violation.
    pub action: Action,
    /// Where it comes from.
    pub source: String,
}

/// A check of a field that is named by a pointer.
#[derive(Clone, Debug)]
pub struct FieldRule {
    /// Where the field is.
    pub path: Pointer,
    /// What is asked of it.
    pub check: Check,
}

/// Reads a list of `{path: …, type: …, enum: …}`.
pub(crate) fn read_fields(node: &Node, problems: &Problems, prefix: &str) -> Vec<FieldRule> {
    let mut wanted: Vec<(Pointer, bool)> = Vec::new();
    problems.list(node, |item| {
        let field = read_field(item, problems, prefix)?;
        if field.check.required != field.check.forbidden {
            if wanted.contains(&(field.path.clone(), !field.check.required)) {
                let message = format!("{} is both required and forbidden", field.path);
                problems.report(&item.span, message);
            }
            wanted.push((field.path.clone(), field.check.required));
        }
        Some(field)
    })
}

fn read_field(node: &Node, problems: &Problems, prefix: &str) -> Option<FieldRule> {
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
    let id = map.get("id").and_then(|node| problems.identifier(node)).unwrap_or(default_id);
    let length = |name| map.get(name).and_then(|node| size(node, problems));
    let flag = |name| map.get(name).and_then(|node| problems.boolean(node));
    let check = Check {
        rule: format!("{prefix}/{id}"),
        required: flag("required").unwrap_or(false),
        forbidden: flag("forbidden").unwrap_or(false),
        nullable: flag("nullable").unwrap_or(true),
        kind: map.get("type").and_then(|node| problems.word(node, &TYPES)),
        values: map.get("enum").map(|node| read_enum(node, problems)).unwrap_or_default(),
        pattern: map.get("pattern").and_then(|node| problems.parsed(node)),
        min_length: length("minLength"),
        max_length: length("maxLength"),
        max_bytes: length("maxBytes"),
        minimum: map.get("minimum").and_then(|node| problems.number(node)),
        maximum: map.get("maximum").and_then(|node| problems.number(node)),
        format: map.get("format").and_then(|node| problems.word(node, &FORMATS)),
        action: map
            .get("action")
            .and_then(|node| Action::read(node, problems))
            .unwrap_or(Action::Deny),
        source: map
            .get("source")
            .and_then(|node| problems.string(node))
            .unwrap_or_default()
            .to_owned(),
    };
    if check.required && check.forbidden {
        problems.report(&map.node.span, "a field cannot be both required and forbidden");
    }
    refuse_the_impossible(&map, &check, problems);
    map.close();
    check
}

/// Texts: all that an enum of a status field is known to have.
fn read_enum(node: &Node, problems: &Problems) -> Vec<String> {
    let why = "an empty enum says nothing";
    problems.filled_list(node, why, |item| problems.string(item).map(str::to_owned))
}

/// What no value could fit would refuse every write.
fn refuse_the_impossible(map: &Map<'_>, check: &Check, problems: &Problems) {
    let report = |key, message: String| {
        if let Some(node) = map.get(key) {
            problems.report(&node.span, message);
        }
    };
    if !check.values.is_empty() && !check.values.iter().any(|value| fits(check, value)) {
        report("enum", "none of these has the pattern and the length that are asked".to_owned());
    }
    if let (Some(least), Some(most)) = (check.minimum, check.maximum)
        && least > most
    {
        report("maximum", format!("no number is at least {least} and at most {most}"));
    }
    for (key, most) in [("maxLength", check.max_length), ("maxBytes", check.max_bytes)] {
        if let (Some(least), Some(most)) = (check.min_length, most)
            && least > most
        {
            report(key, format!("no text has at least {least} characters and {key} {most}"));
        }
    }
    let Some(kind) = check.kind else { return };
    let is_number = matches!(kind, FieldType::Integer | FieldType::Number);
    if kind != FieldType::String {
        if !check.values.is_empty() {
            report("enum", format!("these are texts, but the type is {kind}"));
        }
        for key in ["pattern", "minLength", "maxLength", "maxBytes", "format"] {
            // A plain number is a quantity.
            if key != "format" || !is_number || check.format != Some(Format::Quantity) {
                report(key, format!("this is asked of texts, but the type is {kind}"));
            }
        }
    }
    for key in ["minimum", "maximum"].into_iter().filter(|_| !is_number) {
        report(key, format!("this is asked of numbers, but the type is {kind}"));
    }
}

fn fits(check: &Check, value: &str) -> bool {
    let length = value.chars().count();
    check.pattern.as_ref().is_none_or(|pattern| pattern.is_match(value))
        && check.min_length.is_none_or(|least| length >= least)
        && check.max_length.is_none_or(|most| length <= most)
        && check.max_bytes.is_none_or(|most| value.len() <= most)
}

/// A number of things.
pub(crate) fn size(node: &Node, problems: &Problems) -> Option<usize> {
    let number = problems.integer(node)?;
    usize::try_from(number)
        .map_err(|_| problems.report(&node.span, "a length cannot be negative"))
        .ok()
}

const TYPES: [(&str, FieldType); 6] = [
    ("string", FieldType::String),
    ("integer", FieldType::Integer),
    ("number", FieldType::Number),
    ("boolean", FieldType::Boolean),
    ("object", FieldType::Object),
    ("array", FieldType::Array),
];

const FORMATS: [(&str, Format); 3] = [
    ("date-time", Format::DateTime),
    ("quantity", Format::Quantity),
    ("qualified-name", Format::QualifiedName),
];

/// `lastTransitionTime` or `ACK.Terminal` as a part of a rule id: `last-transition-time`,
/// `ack-terminal`.
pub(crate) fn kebab(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let mut id = String::with_capacity(name.len() + 4);
    for (index, letter) in letters.iter().enumerate() {
        if !letter.is_ascii_alphanumeric() {
            id.push('-');
            continue;
        }
        let before = index.checked_sub(1).and_then(|before| letters.get(before));
        let after = letters.get(index + 1);
        // A word begins at a capital after a small letter, and at the last of several capitals.
        let begins = letter.is_ascii_uppercase()
            && before.is_some_and(|before| {
                before.is_ascii_lowercase()
                    || (before.is_ascii_uppercase() && after.is_some_and(char::is_ascii_lowercase))
            });
        if begins {
            id.push('-');
        }
        id.push(letter.to_ascii_lowercase());
    }
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_parts_of_rule_ids() {
        for (name, id) in [
            ("lastTransitionTime", "last-transition-time"),
            ("PodReady", "pod-ready"),
            ("ACK.ResourceSynced", "ack-resource-synced"),
            ("IAMRole", "iam-role"),
            ("Ready", "ready"),
        ] {
            assert_eq!(kebab(name), id);
        }
    }
}
