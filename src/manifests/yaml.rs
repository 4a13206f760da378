//! Objects as YAML with comments.
//!
//! A comment is in the value, next to what it explains: the member `#replicas` explains the member
//! `replicas`, the member `#` the whole object, and a string `# text` in a list the next element. So the
//! manifests that people read and the objects that programs compare come from one value.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;
use serde_saphyr::{DoubleQuoted, FlowSeq, SerializeError, ser_options, to_string_with_options};

/// The columns of a line with a comment.
const WIDTH: usize = 120;

/// The members that begin an object, as kubectl's documentation writes them. The others are sorted.
const FIRST: [&str; 5] = ["apiVersion", "kind", "metadata", "name", "namespace"];

/// Prints documents, separated by `---`.
///
/// # Errors
/// Those of the printer.
pub fn print(documents: &[Value]) -> Result<String, SerializeError> {
    let options = ser_options! { compact_list_indent: false, folded_wrap_chars: usize::MAX };
    let print = |document| to_string_with_options(&Ordered(document), options.clone());
    let texts: Result<Vec<_>, _> = documents.iter().map(print).collect();
    Ok(with_comments(&texts?.join("---\n")))
}

/// The value without its comments.
pub fn without_comments(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let members = members.into_iter().filter(|(name, _)| !name.starts_with('#'));
            members.map(|(name, value)| (name, without_comments(value))).collect()
        }
        Value::Array(elements) => {
            let elements = elements.into_iter().filter(|element| comment_of(element).is_none());
            elements.map(without_comments).collect()
        }
        other => other,
    }
}

fn comment_of(element: &Value) -> Option<&str> {
    element.as_str().and_then(|text| text.strip_prefix("# "))
}

/// A value with its members in order, and a member `#` with its comment before each.
struct Ordered<'v>(&'v Value);

impl Serialize for Ordered<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Object(members) => {
                let is_member = |name: &str| !FIRST.contains(&name) && !name.starts_with('#');
                let first = FIRST.iter().filter_map(|name| members.get_key_value(*name));
                let rest = members.iter().filter(|(name, _)| is_member(name));
                let comment =
                    |name: &str| members.get(&format!("#{name}"))?.as_str().map(DoubleQuoted);
                let mut map = serializer.serialize_map(Some(members.len()))?;
                if let Some(about) = comment("") {
                    map.serialize_entry("#", &about)?;
                }
                for (name, value) in first.chain(rest) {
                    if let Some(about) = comment(name) {
                        map.serialize_entry("#", &about)?;
                    }
                    map.serialize_entry(name, &Ordered(value))?;
                }
                map.end()
            }
            Value::Array(elements) if is_short(elements) => FlowSeq(elements).serialize(serializer),
            Value::Array(elements) => serializer.collect_seq(elements.iter().map(Ordered)),
            Value::String(text) if text.starts_with("# ") => {
                DoubleQuoted(text).serialize(serializer)
            }
            other => other.serialize(serializer),
        }
    }
}

/// A list of scalars that fits into a line: `[get, list]`.
fn is_short(elements: &[Value]) -> bool {
    let is_scalar = |element: &Value| !element.is_array() && !element.is_object();
    let length: usize = elements.iter().map(|element| element.to_string().len()).sum();
    length < 90
        && elements.iter().all(|element| is_scalar(element) && comment_of(element).is_none())
}

/// Turns the members `#` and the elements `# text` into comments.
fn with_comments(lines: &str) -> String {
    let mut text = String::new();
    // Whether an element began with a comment: its dash moves to its first member.
    let mut begins = false;
    for line in lines.lines() {
        let content = line.trim_start_matches(' ');
        let indent = line.len() - content.len() - 2 * usize::from(begins);
        let element = content.strip_prefix("- ");
        let member = element.unwrap_or(content).strip_prefix("\"#\": ");
        let about = member.or_else(|| element.filter(|element| element.starts_with("\"# ")));
        // Without control characters, the escapes are those of JSON.
        if let Some(about) = about.and_then(|it| serde_json::from_str::<String>(it).ok()) {
            comment(about.trim_start_matches("# "), indent, &mut text);
            begins |= element.is_some() && member.is_some();
        } else {
            let dash = if begins { "- " } else { "" };
            text.push_str(&format!("{}{dash}{content}\n", " ".repeat(indent)));
            begins = false;
        }
    }
    text
}

/// Writes the lines of a comment. An empty line separates its paragraphs, and a line with an indent
/// keeps its form.
fn comment(about: &str, indent: usize, text: &mut String) {
    let start = format!("{}#", " ".repeat(indent));
    for paragraph in about.lines() {
        if paragraph.starts_with(' ') || paragraph.is_empty() {
            text.push_str(format!("{start} {paragraph}").trim_end());
            text.push('\n');
            continue;
        }
        let mut line = start.clone();
        for word in paragraph.split(' ') {
            if line.len() + 1 + word.len() > WIDTH {
                text.push_str(&line);
                text.push('\n');
                line.clone_from(&start);
            }
            line.push(' ');
            line.push_str(word);
        }
        text.push_str(&line);
        text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Value {
        serde_saphyr::from_str(text).unwrap()
    }

    #[test]
    fn a_value_is_read_back_as_it_was() {
        let value = json!({
            "apiVersion": "v1", "a": {}, "b": [], "c": [[1, 2], [], {"x": 1, "name": "n"}], "d": null,
            "e": 1.5, "f": true, "strings": [
                "", " ", "yes", "No", "null", "~", "1", "1e3", "0x1", "1:30", "a: b", "a:", "#a", "a #b",
                "- a", "-", "--flag=x", "--listen=0.0.0.0:8443", "*", "&a", "!a", "a\nb", "é",
                "$(POD)", "@a", "%a", "a,b", "[a]", "{a}", "'", "\"", "=", "/a/b", "2026-11-22", "y", "..."
            ],
            "text": "one\n\n  two\n", "indented": " one\ntwo\n", "open": "one\ntwo", "short": ["a,b", "x", 1, null], "yes": 1, "a b": 2,
        });
        assert_eq!(read(&print(std::slice::from_ref(&value)).unwrap()), value);
    }

    #[test]
    fn comments_precede_what_they_explain() {
        let value = json!({
            "#": "The whole.", "kind": "A", "#spec": "The members.",
            "spec": {"#b": "One.\n\n  kept", "b": 1, "verbs": ["get", "list"], "a": ["x", "# Next.", "y", {"#v": "Of v.", "v": 1, "m": 2}]},
        });
        assert_eq!(
            print(&[value.clone(), json!({"a": 1})]).unwrap(),
            "# The whole.\nkind: A\n# The members.\nspec:\n  a:\n    - x\n    # Next.\n    - \"y\"\n    - m: 2\n      \
             # Of v.\n      v: 1\n  # One.\n  #\n  #   kept\n  b: 1\n  verbs: [get, list]\n---\na: 1\n"
        );
        let plain = json!({"kind": "A", "spec": {"b": 1, "verbs": ["get", "list"], "a": ["x", "y", {"v": 1, "m": 2}]}});
        assert_eq!(without_comments(value.clone()), plain);
        assert_eq!(read(&print(&[value]).unwrap()), plain);
    }

    #[test]
    fn a_comment_about_an_element_precedes_its_dash() {
        let value = json!({"ports": [{"#": "The probes.", "name": "probes", "port": 1}]});
        assert_eq!(
            print(&[value]).unwrap(),
            "ports:\n  # The probes.\n  - name: probes\n    port: 1\n"
        );
    }

    #[test]
    fn long_comments_are_wrapped() {
        let text = print(&[json!({"#": "word ".repeat(60).trim(), "a": 1})]).unwrap();
        assert_eq!(text.lines().count(), 4);
        assert!(text.lines().all(|line| line.len() <= WIDTH), "{text}");
    }
}
