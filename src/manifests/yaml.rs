//! Objects as YAML with comments.
//!
//! A comment is in the value, next to what it explains: the member `#replicas` explains the member
//! `replicas`, the member `#` the whole object, and a string `# text` in a list the next element. So the
//! manifests that people read and the objects that programs compare come from one value.

use serde_json::{Map, Value};

/// The columns of a line with a comment.
const WIDTH: usize = 120;

/// The members that begin an object, as kubectl's documentation writes them. The others are sorted.
const FIRST: [&str; 5] = ["apiVersion", "kind", "metadata", "name", "namespace"];

/// Prints documents, separated by `---`.
pub fn print(documents: &[Value]) -> String {
    let mut text = String::new();
    for document in documents {
        if !text.is_empty() {
            text.push_str("---\n");
        }
        block(document, 0, &mut text);
    }
    text
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

/// Writes the lines of a value that is not empty and not a scalar.
fn block(value: &Value, indent: usize, text: &mut String) {
    match value {
        Value::Object(members) => {
            if let Some(about) = members.get("#").and_then(Value::as_str) {
                comment(about, indent, text);
            }
            for (name, value) in in_order(members) {
                if let Some(about) = members.get(&format!("#{name}")).and_then(Value::as_str) {
                    comment(about, indent, text);
                }
                text.push_str(&" ".repeat(indent));
                text.push_str(&plain_or_quoted(name));
                text.push(':');
                member(value, indent, text);
            }
        }
        Value::Array(elements) => {
            for element in elements {
                if let Some(about) = comment_of(element) {
                    comment(about, indent, text);
                    continue;
                }
                text.push_str(&" ".repeat(indent));
                text.push('-');
                if is_block(element) {
                    let mut lines = String::new();
                    block(element, indent + 2, &mut lines);
                    // A comment before the first member precedes the dash.
                    let first = lines.lines().take_while(|line| line.trim().starts_with('#'));
                    let length: usize = first.map(|line| line.len() + 1).sum();
                    let (about, rest) = lines.split_at(length);
                    text.truncate(text.len() - indent - 1);
                    text.extend(about.lines().map(|line| format!("{}\n", &line[2..])));
                    text.push_str(&" ".repeat(indent));
                    text.push_str("- ");
                    text.push_str(rest.trim_start_matches(' '));
                } else {
                    member(element, indent, text);
                }
            }
        }
        _ => {
            text.push_str(&scalar(value));
            text.push('\n');
        }
    }
}

/// Writes a value after `name:` or `-`.
fn member(value: &Value, indent: usize, text: &mut String) {
    if let Some(list) = one_line(value) {
        text.push_str(&format!(" {list}\n"));
        return;
    }
    if is_block(value) {
        text.push('\n');
        block(value, indent + 2, text);
        return;
    }
    match value.as_str() {
        Some(lines) if is_literal(lines) => {
            text.push_str(" |\n");
            for line in lines.lines() {
                if !line.is_empty() {
                    text.push_str(&" ".repeat(indent + 2));
                    text.push_str(line);
                }
                text.push('\n');
            }
        }
        _ => {
            text.push(' ');
            text.push_str(&scalar(value));
            text.push('\n');
        }
    }
}

/// A short list of scalars: `[get, list]`.
fn one_line(value: &Value) -> Option<String> {
    let elements = value.as_array().filter(|elements| !elements.is_empty())?;
    let is_scalar = |element: &Value| !element.is_array() && !element.is_object();
    if !elements.iter().all(|element| is_scalar(element) && comment_of(element).is_none()) {
        return None;
    }
    let list = elements.iter().map(scalar).collect::<Vec<_>>().join(", ");
    (list.len() < 90).then(|| format!("[{list}]"))
}

fn in_order(members: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    let first = FIRST.iter().filter_map(|name| members.get_key_value(*name));
    let rest = members.iter().filter(|(name, _)| !FIRST.contains(&name.as_str()));
    first.chain(rest.filter(|(name, _)| !name.starts_with('#')))
}

fn is_block(value: &Value) -> bool {
    match value {
        Value::Object(members) => !members.is_empty(),
        Value::Array(elements) => !elements.is_empty(),
        _ => false,
    }
}

/// Several lines that a literal block keeps as they are.
fn is_literal(text: &str) -> bool {
    let readable = text.chars().all(|letter| letter == '\n' || !letter.is_control());
    readable
        && text.ends_with('\n')
        && !text.ends_with("\n\n")
        && !text.starts_with([' ', '\n'])
        && text.lines().count() > 1
}

fn scalar(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), plain_or_quoted)
}

/// A JSON string is a YAML string. It is plain if no version of YAML reads it as another type.
fn plain_or_quoted(text: &str) -> String {
    const WORDS: [&str; 10] = ["true", "false", "yes", "no", "on", "off", "null", "y", "n", "~"];
    let begins = |letter: char| letter.is_ascii_alphabetic() || letter == '/' || letter == '_';
    let flag = text.strip_prefix("--").unwrap_or(text);
    let plain = flag.starts_with(begins)
        && text
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || "-_./= $():@".contains(letter))
        && !text.contains(": ")
        && !text.ends_with([':', ' '])
        && !WORDS.contains(&text.to_ascii_lowercase().as_str());
    if plain { text.to_owned() } else { Value::from(text).to_string() }
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
        assert_eq!(read(&print(std::slice::from_ref(&value))), value);
    }

    #[test]
    fn comments_precede_what_they_explain() {
        let value = json!({
            "#": "The whole.", "kind": "A", "#spec": "The members.",
            "spec": {"#b": "One.\n\n  kept", "b": 1, "verbs": ["get", "list"], "a": ["x", "# Next.", "y", {"#v": "Of v.", "v": 1, "m": 2}]},
        });
        assert_eq!(
            print(&[value.clone(), json!({"a": 1})]),
            "# The whole.\nkind: A\n# The members.\nspec:\n  a:\n    - x\n    # Next.\n    - \"y\"\n    - m: 2\n      \
             # Of v.\n      v: 1\n  # One.\n  #\n  #   kept\n  b: 1\n  verbs: [get, list]\n---\na: 1\n"
        );
        let plain = json!({"kind": "A", "spec": {"b": 1, "verbs": ["get", "list"], "a": ["x", "y", {"v": 1, "m": 2}]}});
        assert_eq!(without_comments(value.clone()), plain);
        assert_eq!(read(&print(&[value])), plain);
    }

    #[test]
    fn a_comment_about_an_element_precedes_its_dash() {
        let value = json!({"ports": [{"#": "The probes.", "name": "probes", "port": 1}]});
        assert_eq!(print(&[value]), "ports:\n  # The probes.\n  - name: probes\n    port: 1\n");
    }

    #[test]
    fn long_comments_are_wrapped() {
        let text = print(&[json!({"#": "word ".repeat(60).trim(), "a": 1})]);
        assert_eq!(text.lines().count(), 4);
        assert!(text.lines().all(|line| line.len() <= WIDTH), "{text}");
    }
}
