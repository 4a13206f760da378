//! From a field's name to the bytes where it stands.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use granit_parser::{Event, Parser};
use serde_saphyr::Location;

use super::Place;
use super::document::Document;
use super::members::{Members, items};
use crate::source::tree;

/// Which part of a document an object is.
#[derive(Clone, Debug)]
pub(super) struct Part {
    /// Which item, from 0, where the document is a list.
    pub(super) item: Option<usize>,
    /// The bytes of the document's JSON.
    pub(super) range: Range<usize>,
}

/// Where the fields of one object stand. What has been read for one of them is there for the next.
pub struct Places<'m> {
    document: &'m Document<'m>,
    part: &'m Part,
    /// The objects and lists of JSON that fields were looked for in, by where they begin in memory.
    opened: HashMap<usize, Opened<'m>>,
}

impl<'m> Places<'m> {
    pub(super) fn of(document: &'m Document<'m>, part: &'m Part) -> Self {
        Self { document, part, opened: HashMap::new() }
    }

    /// Where a field stands: `status.conditions[0].type`, a JSON pointer, or nothing for the object
    /// itself. Of a field that is not there, the nearest parent.
    pub fn at(&mut self, field: &str) -> Place {
        let span = self.bytes(&tokens(field));
        Place::in_lines(&self.document.lines, &span)
    }

    /// The bytes (of the file) of a field of the object: the value of a scalar, the key of anything
    /// larger. Of a field that is not there, the nearest parent that is.
    pub(super) fn bytes(&mut self, tokens: &[String]) -> Range<usize> {
        let document = self.document;
        let text = &document.lines.source.text[document.range.clone()];
        let within = match document.json {
            // From the object on and not from the document's start: a list may have thousands.
            Cow::Borrowed(_) => self.find_in_json(text, &text[self.part.range.clone()], tokens),
            Cow::Owned(_) => {
                let tree = document.tree.get_or_init(|| Tree::parse(text));
                tree.as_ref().and_then(|tree| tree.find(self.part.item, tokens))
            }
        };
        let within = within.unwrap_or_else(|| {
            let start = tree::content(text, &(0..text.len()));
            start..start
        });
        document.range.start + within.start..document.range.start + within.end
    }

    /// In JSON the value is found by walking down: each step borrows from the text, so that an
    /// address is a place. A step is taken apart once, however many findings lie behind it.
    fn find_in_json(
        &mut self,
        text: &'m str,
        object: &'m str,
        tokens: &[String],
    ) -> Option<Range<usize>> {
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
        let start = value.as_ptr().addr() - text.as_ptr().addr();
        if !value.starts_with(['{', '[']) {
            return Some(start..start + value.len());
        }
        // A whole object underlined says nothing; its name does.
        let key = is_member.then(|| {
            let end = text[..start].trim_end().strip_suffix(':')?.trim_end().strip_suffix('"')?;
            Some(end.rfind('"')?..end.len() + 1)
        });
        Some(key.flatten().unwrap_or(start..start + 1))
    }
}

/// A JSON value taken apart by one level.
enum Opened<'t> {
    Object(Members<'t>),
    List(Vec<&'t str>),
    Scalar,
}

impl<'t> Opened<'t> {
    fn of(value: &'t str) -> Self {
        match value.as_bytes().first() {
            Some(b'{') => Members::parse(value).map_or(Self::Scalar, Self::Object),
            Some(b'[') => items(value).map_or(Self::Scalar, Self::List),
            _ => Self::Scalar,
        }
    }

    fn get(&self, token: &str) -> Option<&'t str> {
        match self {
            Self::Object(members) => members.get(token),
            Self::List(items) => items.get(token.parse::<usize>().ok()?).copied(),
            Self::Scalar => None,
        }
    }
}

/// `status.conditions[0].type`, as findings name fields, or a JSON pointer: the names on the way.
pub(super) fn tokens(field: &str) -> Vec<String> {
    if let Some(pointer) = field.strip_prefix('/') {
        let unescaped = |token: &str| token.replace("~1", "/").replace("~0", "~");
        return pointer.split('/').map(unescaped).collect();
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

/// The bytes of a location. Syntax errors come without byte offsets, only with line and column.
pub(super) fn bytes(text: &str, location: &Location) -> Range<usize> {
    if let Some(span) = span(location) {
        return span;
    }
    let line = usize::try_from(location.line()).unwrap_or(1).max(1);
    let column = usize::try_from(location.column()).unwrap_or(1).max(1);
    let before: usize = text.split_inclusive('\n').take(line - 1).map(str::len).sum();
    let within = text[before..].chars().take(column - 1).map(char::len_utf8).sum::<usize>();
    before + within..before + within + 1
}

fn span(location: &Location) -> Option<Range<usize>> {
    let start = usize::try_from(location.span().byte_offset()?).ok()?;
    Some(start..start + usize::try_from(location.span().byte_len()?).ok()?)
}

/// A YAML document as places: which names it has, and on which bytes they and their values stand.
///
/// Read from the parser's events and not through serde: that makes three times as fast what has to be
/// done for every object with a finding, and needs no limits. An alias is a link to what stands
/// elsewhere, not a copy.
#[derive(Debug)]
pub(super) struct Tree {
    /// The root is the first.
    nodes: Vec<Node>,
}

#[derive(Debug)]
struct Node {
    content: Content,
    span: Range<usize>,
}

/// Values by their places in [`Tree::nodes`].
#[derive(Debug)]
enum Content {
    Scalar,
    List(Vec<usize>),
    Map(Vec<(Key, usize)>),
}

#[derive(Debug)]
struct Key {
    name: String,
    span: Range<usize>,
}

/// A list or mapping whose end has not been met.
struct Open {
    node: usize,
    /// The key whose value comes next, in a mapping.
    key: Option<Key>,
}

impl Tree {
    fn parse(text: &str) -> Option<Self> {
        let mut tree = Self { nodes: Vec::new() };
        let mut open: Vec<Open> = Vec::new();
        let mut anchors: HashMap<usize, usize> = HashMap::new();
        for event in Parser::new_from_str(text) {
            let (event, span) = event.ok()?;
            let span = span.byte_range()?;
            let (content, anchor, name) = match event {
                Event::Scalar(text, _, anchor, _) => (Content::Scalar, anchor, Some(text)),
                Event::SequenceStart(_, anchor, _) => (Content::List(Vec::new()), anchor, None),
                Event::MappingStart(_, anchor, _) => (Content::Map(Vec::new()), anchor, None),
                Event::SequenceEnd | Event::MappingEnd => {
                    open.pop();
                    continue;
                }
                Event::Alias(anchor) => {
                    tree.attach(&mut open, *anchors.get(&anchor)?, None, &span);
                    continue;
                }
                _ => continue,
            };
            let is_open = !matches!(content, Content::Scalar);
            let node = tree.nodes.len();
            tree.nodes.push(Node { content, span: span.clone() });
            anchors.insert(anchor, node);
            tree.attach(&mut open, node, name.as_deref(), &span);
            if is_open {
                open.push(Open { node, key: None });
            }
        }
        Some(tree)
    }

    /// Puts a node where it belongs: it is an item, a key, or the value of the last key.
    fn attach(&mut self, open: &mut [Open], node: usize, name: Option<&str>, span: &Range<usize>) {
        let Some(open) = open.last_mut() else { return };
        match &mut self.nodes[open.node].content {
            Content::Scalar => {}
            Content::List(items) => items.push(node),
            Content::Map(members) => match open.key.take() {
                Some(key) => members.push((key, node)),
                // A list as a key has no name that anybody could ask for.
                None => {
                    let name = name.unwrap_or_default().to_owned();
                    open.key = Some(Key { name, span: span.clone() });
                }
            },
        }
    }

    fn find(&self, item: Option<usize>, tokens: &[String]) -> Option<Range<usize>> {
        let root = self.nodes.first()?;
        let (mut node, mut key) = (root, None);
        if let Some(item) = item {
            let at = match &root.content {
                Content::Map(members) => match &self.member(members, "items")?.1.content {
                    Content::List(items) => items.get(item),
                    _ => None,
                },
                // An item that was cut out of its list stands alone behind its dash.
                Content::List(items) => items.first(),
                Content::Scalar => None,
            };
            node = self.nodes.get(*at?)?;
        }
        for token in tokens {
            let inner = match &node.content {
                Content::Map(members) => self.member(members, token),
                Content::List(items) => token
                    .parse()
                    .ok()
                    .and_then(|at: usize| Some((None, self.nodes.get(*items.get(at)?)?))),
                Content::Scalar => None,
            };
            match inner {
                Some(inner) => (key, node) = inner,
                None => break,
            }
        }
        match (&node.content, key) {
            (Content::Scalar, _) if !node.span.is_empty() => Some(node.span.clone()),
            (_, Some(key)) => Some(key.span.clone()),
            // The root, of which nothing is there.
            _ if std::ptr::eq(node, root) => None,
            _ => Some(node.span.start..node.span.start),
        }
    }

    /// A member, or what a merge key brings in.
    fn member<'t>(
        &'t self,
        members: &'t [(Key, usize)],
        name: &str,
    ) -> Option<(Option<&'t Key>, &'t Node)> {
        if let Some((key, node)) = members.iter().find(|(key, _)| key.name == name) {
            return Some((Some(key), self.nodes.get(*node)?));
        }
        let (_, merged) = members.iter().find(|(key, _)| key.name == "<<")?;
        match &self.nodes.get(*merged)?.content {
            Content::Map(members) => self.member(members, name),
            Content::List(items) => {
                items.iter().find_map(|item| match &self.nodes.get(*item)?.content {
                    Content::Map(members) => self.member(members, name),
                    _ => None,
                })
            }
            Content::Scalar => None,
        }
    }
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
    fn what_an_alias_brings_in_is_underlined_where_it_is_written() {
        let text = "apiVersion: g/v1\nkind: K\nspec: &s {phase: here}\nstatus: *s\nmore:\n  <<: [*s]\n  phase: there\nless: {<<: *s}\n";
        let fields = ["status.phase", "more.phase", "less.phase", "less.nothing"];
        assert_eq!(underlined(text, &fields), ["here", "there", "here", "less"]);
    }
}
