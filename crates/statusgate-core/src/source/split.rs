//! Cuts a block-style YAML list into its items before it is parsed.
//!
//! `kubectl get -o yaml` prints one document for any number of objects. Cut at the dashes, its items
//! are read on all processors, and a finding in one item needs a tree of that item only.
//!
//! The cut is a guess that is checked: the rest without the items must be a `List`, and each item must
//! be valid YAML by itself. Otherwise (an alias to another item, another style, broken YAML) the
//! document is read as a whole.

use std::ops::Range;

use super::Source;
use super::tree::{self, Value};

/// A list that was cut apart.
pub(super) struct Split {
    /// `group/version` of the list.
    pub(super) api_version: String,
    /// Its kind, which ends in `List`.
    pub(super) kind: String,
    /// The bytes (of the file) of each item, from its dash on.
    pub(super) items: Vec<Range<usize>>,
}

/// Cuts a part of a file, if it looks like a list with several items.
pub(super) fn split(file: &Source, part: &Range<usize>) -> Option<Split> {
    let text = &file.text[part.clone()];
    let mut lines = Lines { text, at: 0 };
    // The line that is nothing but the key of the items.
    while lines.next()?.trim_end() != "items:" {}
    let head = lines.at;
    let indent = lead(lines.next()?);
    let mut starts = vec![head];
    let mut end = text.len();
    let is_dash = |line: &str| {
        line[lead(line)..].strip_prefix('-').is_some_and(|rest| rest.starts_with([' ', '\n', '\r']))
    };
    if !is_dash(&text[head..]) {
        return None;
    }
    loop {
        let at = lines.at;
        let Some(line) = lines.next() else { break };
        let inner = line.trim();
        if inner.is_empty() || inner.starts_with('#') || lead(line) > indent {
            continue;
        }
        if lead(line) == indent && is_dash(line) {
            starts.push(at);
        } else {
            end = at;
            break;
        }
    }
    if starts.len() < 2 {
        return None;
    }
    let rest = [&text[..head], &text[end..]].concat();
    // The warnings about duplicate keys need the whole document.
    let (rest, duplicates) = tree::manifest(&rest, &(0..rest.len())).ok()?;
    if !duplicates.is_empty() {
        return None;
    }
    let word = |name| match rest.member(name).map(|node| &node.value) {
        Some(Value::String(text)) => Some(text.clone()),
        _ => None,
    };
    let kind = word("kind").filter(|kind| kind.ends_with("List"))?;
    if !matches!(rest.member("items")?.value, Value::Null) {
        return None;
    }
    let ends = starts.iter().skip(1).copied().chain([end]);
    let range = |(start, end): (&usize, usize)| part.start + start..part.start + end;
    Some(Split {
        api_version: word("apiVersion").unwrap_or_default(),
        kind,
        items: starts.iter().zip(ends).map(range).collect(),
    })
}

/// Lines with their line breaks, and the start of the next line.
struct Lines<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Lines<'t> {
    fn next(&mut self) -> Option<&'t str> {
        let line = self.text[self.at..].split_inclusive('\n').next()?;
        self.at += line.len();
        Some(line)
    }
}

/// The number of spaces at the start of a line.
fn lead(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

#[cfg(test)]
mod tests {
    use super::super::Manifests;
    use super::*;

    fn pieces(text: &str) -> Option<Vec<&str>> {
        let file = Source::new("a.yaml", text);
        let split = split(&file, &(0..text.len()))?;
        Some(split.items.into_iter().map(|range| &text[range]).collect())
    }

    #[test]
    fn a_list_printed_by_kubectl_is_split_at_its_items() {
        let text = "apiVersion: v1\nitems:\n- a: |\n    - no item\n\n  b: 1\n# c\n- - x\n-\n  d: [\n  ]\nkind: List\nmetadata:\n  resourceVersion: ''\n";
        let expected = ["- a: |\n    - no item\n\n  b: 1\n# c\n", "- - x\n", "-\n  d: [\n  ]\n"];
        assert_eq!(pieces(text).unwrap(), expected);
        let indented = "kind: AList\nitems:\n  - a\n  - b\n";
        assert_eq!(pieces(indented).unwrap(), ["  - a\n", "  - b\n"]);
    }

    #[test]
    fn other_documents_are_not_split() {
        for text in [
            "kind: List\nitems:\n- a\n",
            "kind: List\nitems: [a, b]\n",
            "kind: Thing\nitems:\n- a\n- b\n",
            "kind: List\nitems:\n  a: 1\n  b: 2\n",
            "kind: List\nitems:\n- a\n- b\nitems:\n- c\n",
            "kind: List\nitems:\n- a\n- b\n  kind: x\n]\n",
            "items:\n",
            "",
        ] {
            assert_eq!(pieces(text), None, "{text}");
        }
    }

    #[test]
    fn a_list_that_only_makes_sense_as_a_whole_is_read_as_one() {
        let item = |name: &str, status: &str| {
            format!(
                "- apiVersion: g/v1\n  kind: K\n  metadata: {{name: {name}}}\n  status: {status}\n"
            )
        };
        let list =
            |items: &[String]| format!("apiVersion: v1\nkind: List\nitems:\n{}", items.concat());
        let read = |text: String| {
            let files = [Source::new("a.yaml", text)];
            let manifests = Manifests::read(&files);
            let texts: Vec<(String, usize, Option<usize>)> = manifests
                .iter()
                .map(|manifest| {
                    (manifest.text.to_owned(), manifest.place("status.a").line, manifest.item)
                })
                .collect();
            (texts, manifests.mistakes().len())
        };
        let json = |name: &str| {
            format!(
                r#"{{"apiVersion":"g/v1","kind":"K","metadata":{{"name":"{name}"}},"status":{{"a":1}}}}"#
            )
        };
        let apart = list(&[item("a", "{a: 1}"), item("b", "{a: 1}")]);
        assert_eq!(read(apart), (vec![(json("a"), 7, Some(0)), (json("b"), 11, Some(1))], 0));
        let linked = list(&[item("a", "&s {a: 1}"), item("b", "*s")]);
        assert_eq!(read(linked), (vec![(json("a"), 7, Some(0)), (json("b"), 7, Some(1))], 0));
        let broken = list(&[item("a", "{a: 1}"), item("b", "{a: 1")]);
        assert_eq!(read(broken), (Vec::new(), 1));
    }
}
