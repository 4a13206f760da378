//! The changes of a patch for people: the leaves that differ.

use std::collections::BTreeSet;

use json_patch::jsonptr::Token;
use serde::Serialize;
use serde_json::{Map, Value};

/// One changed value. The patch itself is not a diff: it contains created parents, but not the replaced
/// values.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChangedValue {
    /// `/status/phase`.
    pub path: String,
    /// The old value, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old: Option<Value>,
    /// The new value, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new: Option<Value>,
}

/// The differences between two values at a path.
pub(super) fn changes(path: &str, old: Option<&Value>, new: Option<&Value>) -> Vec<ChangedValue> {
    if old == new {
        return Vec::new();
    }
    let nothing = Map::new();
    let (before, after) = match (old, new) {
        (Some(Value::Object(old)), Some(Value::Object(new))) => (old, new),
        // A new object is shown as its members.
        (None, Some(Value::Object(new))) if !new.is_empty() => (&nothing, new),
        (old, new) => {
            let (path, old, new) = (path.to_owned(), old.cloned(), new.cloned());
            return vec![ChangedValue { path, old, new }];
        }
    };
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let below = names.into_iter().flat_map(|name| {
        let path = format!("{path}/{}", Token::new(name).encoded());
        changes(&path, before.get(name), after.get(name))
    });
    below.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lines(old: Option<&Value>, new: Option<&Value>) -> Vec<String> {
        let text =
            |value: &Option<Value>| value.as_ref().map_or_else(|| "-".into(), Value::to_string);
        changes("/status", old, new)
            .iter()
            .map(|change| format!("{} {} {}", change.path, text(&change.old), text(&change.new)))
            .collect()
    }

    #[test]
    fn only_leaves_that_differ_are_changes() {
        let old = json!({"phase": "", "a": {"b": 1, "c": 2}, "billing": null, "list": [1]});
        let new = json!({"phase": "Unknown", "a": {"b": 1, "c": 3}, "list": [1, 2], "x/y": true});
        assert_eq!(
            lines(Some(&old), Some(&new)),
            [
                "/status/a/c 2 3",
                "/status/billing null -",
                "/status/list [1] [1,2]",
                r#"/status/phase "" "Unknown""#,
                "/status/x~1y - true",
            ]
        );
    }

    #[test]
    fn a_new_status_is_shown_as_its_members() {
        let new = json!({"phase": "Unknown"});
        assert_eq!(lines(None, Some(&new)), [r#"/status/phase - "Unknown""#]);
        assert_eq!(lines(Some(&Value::Null), Some(&new)), [r#"/status null {"phase":"Unknown"}"#]);
        assert_eq!(lines(None, Some(&json!({}))), ["/status - {}"]);
    }
}
