//! From the name of a field to the bytes where it is.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use super::Place;
use super::document::ManifestDocument;
use super::json::{Opened, range_in};
use super::record::Path;
use super::tree::{self, Node, Value};

/// The part of a document that is an object.
#[derive(Clone, Debug)]
pub(super) struct Part {
    /// The index of the item, if the document is a list.
    pub(super) item: Option<usize>,
    /// The names from the document or the item to the object; empty if that is the object.
    pub(super) path: Path,
    /// The bytes of the document's JSON.
    pub(super) range: Range<usize>,
}

impl Part {
    const fn is_document(&self) -> bool {
        self.item.is_none() && self.path.is_empty()
    }
}

/// The locations of the fields of one object. What is read for one of them is kept for the next.
pub struct Places<'m> {
    document: &'m ManifestDocument<'m>,
    part: &'m Part,
    /// The objects and lists of JSON that were opened, by their address.
    opened: HashMap<usize, Opened<'m>>,
}

impl<'m> Places<'m> {
    pub(super) fn of(document: &'m ManifestDocument<'m>, part: &'m Part) -> Self {
        Self { document, part, opened: HashMap::new() }
    }

    /// The location of a field: `status.conditions[0].type`, a JSON pointer, or nothing for the object
    /// itself. A missing field has the location of its nearest parent.
    pub fn at(&mut self, field: &str) -> Place {
        let span = self.bytes(&tokens(field));
        Place::in_lines(&self.document.lines, &span)
    }

    /// The bytes (of the file) of a field of the object: the value of a scalar, the key of anything
    /// larger. A missing field has the bytes of its nearest parent.
    pub(super) fn bytes(&mut self, tokens: &[String]) -> Range<usize> {
        let document = self.document;
        let text = &document.lines.source.text;
        if let Cow::Borrowed(json) = document.json {
            // Start at the object and not at the document: a list may have thousands of objects.
            return self.find_in_json(text, &json[self.part.range.clone()], tokens);
        }
        let is_document = self.part.is_document();
        // No tree is needed to find where an object begins, unless it is a part of its document.
        let object = if tokens.is_empty() && is_document { None } else { self.object() };
        if let Some(found) = object.and_then(|object| find(object, tokens)) {
            return found;
        }
        let start = match object {
            Some(object) if !is_document => object.span.bytes.start,
            _ => tree::content(text, &document.range),
        };
        start..start
    }

    /// The node of the object.
    fn object(&self) -> Option<&'m Node> {
        let root = self.document.tree()?;
        let item = match self.part.item {
            Some(at) => root.items_of("items").get(at)?,
            None => root,
        };
        self.part.path.iter().try_fold(item, |node, name| node.member(name))
    }

    /// Each step is opened once, however many findings are behind it.
    fn find_in_json(&mut self, text: &'m str, object: &'m str, tokens: &[String]) -> Range<usize> {
        let mut value = object;
        let mut is_member = false;
        for token in tokens {
            let opened =
                self.opened.entry(value.as_ptr().addr()).or_insert_with(|| Opened::of(value));
            match opened.get(token) {
                Some(inner) => (is_member, value) = (value.starts_with('{'), inner),
                None => break,
            }
        }
        let found = range_in(text, value);
        let start = found.start;
        if !value.starts_with(['{', '[']) {
            return found;
        }
        // Carets mark the name of an object or list, not all of it.
        let key = is_member.then(|| {
            let end = text[..start].trim_end().strip_suffix(':')?.trim_end().strip_suffix('"')?;
            Some(end.rfind('"')?..end.len() + 1)
        });
        key.flatten().unwrap_or(start..start + 1)
    }
}

/// The bytes of a scalar, or the key of anything larger. A missing field has the bytes of its nearest
/// parent; `None` if that is the object.
fn find(object: &Node, tokens: &[String]) -> Option<Range<usize>> {
    let (mut node, mut key) = (object, None);
    for token in tokens {
        let inner = match &node.value {
            Value::Map(entries) => entries.iter().find(|(key, _)| key.name == *token),
            Value::List(items) => {
                let item = token.parse::<usize>().ok().and_then(|at| items.get(at));
                let Some(item) = item else { break };
                (node, key) = (item, None);
                continue;
            }
            _ => None,
        };
        let Some((name, value)) = inner else { break };
        (node, key) = (value, Some(name));
    }
    let bytes = &node.span.bytes;
    let is_scalar = !matches!(node.value, Value::Map(_) | Value::List(_));
    match key {
        _ if is_scalar && !bytes.is_empty() => Some(bytes.clone()),
        Some(key) => Some(key.span.bytes.clone()),
        None if std::ptr::eq(node, object) => None,
        None => Some(bytes.start..bytes.start),
    }
}

/// `status.conditions[0].type`, as findings name fields, or a JSON pointer: the names on the way.
pub(super) fn tokens(field: &str) -> Vec<String> {
    if let Some(pointer) = field.strip_prefix('/') {
        let tokens = pointer.split('/');
        return tokens.map(|token| token.replace("~1", "/").replace("~0", "~")).collect();
    }
    let mut tokens = Vec::new();
    let mut rest = field;
    while !rest.is_empty() {
        let token;
        (token, rest) = match rest.strip_prefix('[') {
            Some(inner) => inner.split_once(']').unwrap_or((inner, "")),
            None => rest.split_at(rest.find(['.', '[']).unwrap_or(rest.len())),
        };
        rest = rest.strip_prefix('.').unwrap_or(rest);
        tokens.push(token.to_owned());
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::super::{Manifests, Source};

    /// What is underlined for each field of the only object of a text.
    fn underlined<'t>(text: &'t str, fields: &[&str]) -> Vec<&'t str> {
        let files = [Source::new("a.yaml", text)];
        let manifests = Manifests::read(&files);
        assert_eq!(manifests.mistakes(), []);
        let manifest = manifests.iter().last().unwrap();
        let line = |number: usize| text.split('\n').nth(number - 1).unwrap();
        let part = |field: &&str| {
            let place = manifest.place(field);
            &line(place.line)[place.column - 1..place.end_column - 1]
        };
        fields.iter().map(part).collect()
    }

    const FIELDS: [&str; 9] = [
        "status.phase",
        "status.conditions[1].type",
        "status.conditions[1].reason",
        "status.conditions[7]",
        "status.conditions",
        "/status/a~1b/x.y",
        "status[a/b][x.y]",
        "spec.nothing",
        "status.phase.deeper",
    ];

    #[test]
    fn a_field_of_yaml_is_underlined_or_else_its_nearest_parent() {
        let text = "# a comment\napiVersion: g/v1\nkind: K\nspec:\nstatus:\n  phase: \"ready\"\n  conditions:\n  - type: A\n  - status: x\n    type: B\n  a/b: {x.y: [1]}\n";
        let expected = [
            "\"ready\"",
            "B",
            "status",
            "conditions",
            "conditions",
            "x.y",
            "x.y",
            "spec",
            "\"ready\"",
        ];
        assert_eq!(underlined(text, &FIELDS), expected);
        assert_eq!(underlined(text, &["nothing.at.all", ""]), ["apiVersion", "apiVersion"]);
    }

    #[test]
    fn a_field_of_json_is_underlined_or_else_its_nearest_parent() {
        let text = r#"{"apiVersion":"g/v1","kind":"K","spec":{},
            "status":{"phase":"ready","conditions" : [{"type":"A"},{"status":"x","type":"B"}],"a/b":{"x.y":[1]}}}"#;
        let expected = [
            "\"ready\"",
            "\"B\"",
            "{",
            "\"conditions\"",
            "\"conditions\"",
            "\"x.y\"",
            "\"x.y\"",
            "\"spec\"",
            "\"ready\"",
        ];
        assert_eq!(underlined(text, &FIELDS), expected);
        assert_eq!(underlined(text, &["nothing.at.all"]), ["{"]);
    }

    #[test]
    fn a_field_of_an_item_is_looked_for_in_its_item() {
        let yaml = "kind: List\napiVersion: v1\nitems:\n- {apiVersion: g/v1, kind: A, status: {phase: one}}\n- {apiVersion: g/v1, kind: B, status: {phase: two}}\n";
        assert_eq!(underlined(yaml, &["status.phase", "spec"]), ["two", "{apiVersion"]);
        let json = r#"{"kind":"List","apiVersion":"v1","items":[{"apiVersion":"g/v1","kind":"A"},{"apiVersion":"g/v1","kind":"B","status":{"phase":"two"}}]}"#;
        assert_eq!(underlined(json, &["status.phase"]), ["\"two\""]);
    }

    #[test]
    fn values_from_an_alias_are_marked_at_their_anchor() {
        let text = "apiVersion: g/v1\nkind: K\nspec: &s {phase: here}\nstatus: *s\nmore:\n  <<: [*s]\n  phase: there\nless: {<<: *s}\n";
        let fields = ["status.phase", "more.phase", "less.phase", "less.nothing"];
        assert_eq!(underlined(text, &fields), ["here", "there", "here", "less"]);
    }
}
