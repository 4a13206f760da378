//! Values as YAML in flow style, and recorded values for people.

use serde_json::Value;
use statusgate_core::source::{json_as_yaml, one_line};

/// The characters of a value in a comment or a question.
const MAX_SHOWN: usize = 60;

/// What YAML does not read as a string.
const NO_STRINGS: [&str; 11] =
    ["true", "false", "yes", "no", "on", "off", "null", "y", "n", "nan", "inf"];

/// The keys that people read first, and last. The others are between them.
const FIRST: [&str; 7] = ["id", "path", "phase", "condition", "oldField", "field", "member"];
const LAST: [&str; 2] = ["action", "message"];

/// A value on one line.
pub(crate) fn flow(value: &Value) -> String {
    match value {
        Value::String(text) => scalar(text),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", "))
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(name, _)| {
                let first = FIRST.iter().position(|known| known == name);
                (first.unwrap_or(FIRST.len()), LAST.iter().position(|known| known == name))
            });
            let pairs = members.iter().map(|(key, of)| format!("{}: {}", scalar(key), flow(of)));
            format!("{{{}}}", pairs.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

/// A string: plain if it can only mean this string, otherwise as in JSON.
pub(crate) fn scalar(text: &str) -> String {
    let is_plain = text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '/')
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || "/_.*~-".contains(letter))
        && !NO_STRINGS.contains(&text.to_ascii_lowercase().as_str());
    if is_plain {
        return text.to_owned();
    }
    json_as_yaml(&Value::from(text).to_string())
}

/// A recorded value for people, on one line, not too long.
pub(crate) fn shown(text: &str) -> String {
    one_line(text).chars().take(MAX_SHOWN).collect()
}

/// A remark about some names, if there are any.
pub(crate) fn about(names: &[String], most: usize, what: &str) -> Option<String> {
    let shown = names[..names.len().min(most)].join(", ");
    let more = match names.len().saturating_sub(most) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!names.is_empty()).then(|| format!("{what}: {shown}{more}"))
}

/// The last name of a pointer.
pub(crate) fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A name in a pointer.
pub(crate) fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Whether a path is named as phases are.
pub(crate) fn is_phase(path: &str) -> bool {
    let name = last(path).to_ascii_lowercase();
    name.ends_with("phase") || name.ends_with("state") || name == "status"
}
