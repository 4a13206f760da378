//! From text to tree: the parser's events, put together.
//!
//! Without serde: a deserializer between parser and tree doubles the time. So its work is done here:
//! aliases, merge keys, duplicate keys, and limits on what aliases can make of a small text.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, Span as EventSpan, Tag};

use super::super::Diagnostic;
use super::continued::{Continued, end_of};
use super::{Dialect, Document, Key, Node, Span, Value, parts};

/// How deep lists and mappings may be nested: trees are walked by recursion, and serde_json has the
/// same limit.
const MAX_DEPTH: usize = 128;

/// How many nodes aliases may repeat. What is written out bounds itself; nine lines of aliases
/// of aliases would be a billion nodes.
const MAX_REPEATED: usize = 200_000;

/// How many bytes of text aliases may repeat, and how many more for each byte of the source.
const MAX_REPEATED_BYTES: usize = 8 << 20;
const MAX_GROWTH: usize = 6;

/// The maximum number of duplicate keys that are reported in a document.
const MAX_DUPLICATES: usize = 32;

/// Reads one document of a manifest as `kubectl` does, with warnings about duplicate keys. An empty
/// document is null. Its spans name source 0.
pub(in crate::source) fn manifest(
    text: &str,
    part: &Range<usize>,
) -> Result<(Node, Vec<Diagnostic>), Diagnostic> {
    let mut text = Continued::of(text, part.clone());
    let mut first_mistake = None;
    loop {
        let mut reader = TreeReader::new(Dialect::Kubectl, 0, 0, part.len());
        match reader.read(&text.text, &text.part) {
            Ok(()) => {
                let null = reader.node(Value::Null, &(part.start..part.start));
                let mut root = reader.roots.into_iter().next().unwrap_or(null);
                text.restore(&mut root, &mut reader.duplicates);
                return Ok((root, reader.duplicates));
            }
            Err(mistake) => {
                let first = first_mistake.get_or_insert(mistake);
                let continued = reader.continued;
                if !continued.is_some_and(|(quote, column)| text.indent(quote, column)) {
                    return Err(first.clone());
                }
            }
        }
    }
}

/// Reads all policies of one YAML (or JSON) text, and the mistakes in those that cannot be read.
/// Empty documents are left out.
pub fn parse(source: usize, text: &str) -> (Vec<Document>, Vec<Diagnostic>) {
    let (mut documents, mut mistakes) = (Vec::new(), Vec::new());
    let mut repeated = 0;
    for part in parts(text) {
        let mut reader = TreeReader::new(Dialect::Core, source, repeated, part.len());
        match reader.read(text, &part) {
            Ok(()) => {
                reader.roots.retain(|root| !matches!(root.value, Value::Null));
                let roots = reader.roots.into_iter();
                let span = Span { source, bytes: part };
                documents.extend(roots.map(|root| Document { root, span: span.clone() }));
            }
            Err(mistake) => mistakes.push(mistake),
        }
        repeated = reader.repeated;
    }
    (documents, mistakes)
}

struct TreeReader {
    dialect: Dialect,
    source: usize,
    roots: Vec<Node>,
    /// The lists and mappings that have not ended, outermost first.
    open: Vec<Open>,
    /// What has been named for aliases, by the parser's number for the name.
    anchors: HashMap<usize, Anchored>,
    /// How many nodes aliases have repeated so far, in all documents of the text.
    repeated: usize,
    /// How many bytes of text they may still repeat.
    bytes_left: usize,
    /// The duplicate keys of a manifest.
    duplicates: Vec<Diagnostic>,
    /// The opening quote of a text that continues at the indentation of the block around it, and that indentation.
    continued: Option<(usize, usize)>,
}

/// A list or mapping that has not ended.
struct Open {
    node: Node,
    anchor: usize,
    /// The key of the next value, in a mapping.
    key: Option<Key>,
    /// The earlier entry with that key.
    earlier: Option<usize>,
    /// Whether that key is `<<` without quotes.
    merges: bool,
    /// The mappings behind merge keys.
    merged: Vec<Node>,
    /// The keys of a mapping that has many, with the positions of their entries.
    names: HashMap<String, usize>,
}

struct Anchored {
    node: Node,
    extent: Extent,
}

impl TreeReader {
    fn new(dialect: Dialect, source: usize, repeated: usize, length: usize) -> Self {
        Self {
            dialect,
            source,
            roots: Vec::new(),
            open: Vec::new(),
            anchors: HashMap::new(),
            repeated,
            bytes_left: length.saturating_mul(MAX_GROWTH).saturating_add(MAX_REPEATED_BYTES),
            duplicates: Vec::new(),
            continued: None,
        }
    }

    /// Reads one part of a text.
    fn read(&mut self, text: &str, part: &Range<usize>) -> Result<(), Diagnostic> {
        let length = part.len();
        // Of a text that is in memory as a whole, the parser always knows the bytes.
        let bytes = |span: &EventSpan| {
            let bytes = span.byte_range().unwrap_or_default();
            part.start + bytes.start..part.start + bytes.end
        };
        let mut last = part.start;
        for event in Parser::new_from_str(&text[part.clone()]) {
            match event {
                Ok((event, span)) => {
                    let bytes = bytes(&span);
                    last = bytes.end;
                    self.take(event, &bytes)?;
                }
                Err(error) => {
                    let at = part.start + error.marker().byte_offset().unwrap_or(length);
                    let is_quote = *error.kind() == ErrorKind::InvalidQuotedScalarIndent;
                    let quote = is_quote.then(|| text.get(last..at)?.find(['"', '\'']));
                    if let Some(quote) = quote.flatten() {
                        let at = last + quote;
                        let blocks = self.open.iter().map(|open| open.node.span.bytes.start);
                        let indentation = blocks.map(|block| block - line_start(text, block)).max();
                        self.continued = Some((at, indentation.unwrap_or_default()));
                        let ends = end_of(&text[..part.end], at).is_some();
                        let message = if ends { NOT_INDENTED } else { "unclosed quote" };
                        return Err(self.mistake(&(at..at + 1), message));
                    }
                    if let Some(at) = self.unclosed_bracket(text, at) {
                        let message = format!("unclosed bracket '{}'", &text[at..=at]);
                        return Err(self.mistake(&(at..at + 1), &message));
                    }
                    let message = match error.info() {
                        // The parser has a limit of its own for brackets.
                        info if info == "recursion limit exceeded" => too_deep(),
                        _ if *error.kind() == ErrorKind::UnknownAnchor => "unknown anchor".into(),
                        info => info,
                    };
                    return Err(self.mistake(&(at..at + 1), &message));
                }
            }
        }
        Ok(())
    }

    /// The open bracket, if an error comes after its end: the parser reports the first line that cannot be
    /// inside of it. What is in brackets is indented more than the block around them (YAML 1.2.2, 7.4).
    fn unclosed_bracket(&self, text: &str, error: usize) -> Option<usize> {
        let start = |open: &Open| open.node.span.bytes.start;
        let is_bracket = |at: &usize| text[*at..].starts_with(['[', '{']);
        let bracket = self.open.last().map(start).filter(is_bracket)?;
        let block = self.open.iter().rev().map(start).find(|at| !is_bracket(at))?;
        let line = line_start(text, error);
        let inside = text[line..].trim_start_matches(' ');
        let indent = text.len() - line - inside.len();
        let is_outside = line > bracket && indent <= block - line_start(text, block);
        (is_outside && !inside.starts_with([']', '}'])).then_some(bracket)
    }

    fn take(&mut self, event: Event<'_>, bytes: &Range<usize>) -> Result<(), Diagnostic> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let is_plain = style == ScalarStyle::Plain;
                let value = if self.expects_key() {
                    self.key(text, is_plain, tag.as_deref())
                } else {
                    self.dialect.scalar(text, is_plain, tag.as_deref())
                }
                .map_err(|message| self.mistake(bytes, &message))?;
                let node = self.node(value, bytes);
                self.complete(node, anchor)
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.check_tag("seq", tag.as_deref(), bytes)?;
                self.open(Value::List(Vec::new()), anchor, bytes)
            }
            Event::MappingStart(_, anchor, tag) => {
                self.check_tag("map", tag.as_deref(), bytes)?;
                self.open(Value::Map(Vec::new()), anchor, bytes)
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(Open { mut node, anchor, merged, .. }) => {
                    merge(&mut node, merged);
                    // Room to grow was a fifth of the memory for the tree of a `List`, which is kept.
                    match &mut node.value {
                        Value::List(items) => items.shrink_to_fit(),
                        Value::Map(entries) => entries.shrink_to_fit(),
                        _ => {}
                    }
                    self.complete(node, anchor)
                }
                None => Ok(()),
            },
            Event::Alias(anchor) => self.repeat(anchor, bytes),
            _ => Ok(()),
        }
    }

    fn expects_key(&self) -> bool {
        let open = self.open.last();
        open.is_some_and(|open| matches!(open.node.value, Value::Map(_)) && open.key.is_none())
    }

    /// The name of a key. In policies it is its text; kubectl names `on:` and `1.0:` by their values, `true` and `1`.
    fn key(
        &mut self,
        text: Cow<'_, str>,
        is_plain: bool,
        tag: Option<&Tag>,
    ) -> Result<Value, String> {
        let Some(open) = self.open.last_mut() else { return Err(NO_KEY.to_owned()) };
        open.merges = text == MERGE && is_plain && tag.is_none();
        if tag.is_none() && (!is_plain || self.dialect == Dialect::Core) {
            return Ok(Value::String(text.into_owned()));
        }
        let name = match self.dialect.scalar(Cow::Borrowed(&text), is_plain, tag)? {
            Value::String(text) => text,
            Value::Bool(value) if self.dialect == Dialect::Kubectl => value.to_string(),
            Value::Integer(value) if self.dialect == Dialect::Kubectl => value.to_string(),
            Value::Float(value) if self.dialect == Dialect::Kubectl => value.to_string(),
            Value::Null if self.dialect == Dialect::Kubectl => return Err(NO_KEY.to_owned()),
            _ => text.into_owned(),
        };
        Ok(Value::String(name))
    }

    fn check_tag(
        &self,
        kind: &str,
        tag: Option<&Tag>,
        bytes: &Range<usize>,
    ) -> Result<(), Diagnostic> {
        let checked = self.dialect.collection(kind, tag);
        checked.map_err(|message| self.mistake(bytes, &message))
    }

    fn open(
        &mut self,
        value: Value,
        anchor: usize,
        bytes: &Range<usize>,
    ) -> Result<(), Diagnostic> {
        self.stay_above(self.open.len() + 1, bytes)?;
        let node = self.node(value, bytes);
        let (names, merged) = (HashMap::new(), Vec::new());
        let (key, earlier) = (None, None);
        self.open.push(Open { node, anchor, key, earlier, merges: false, merged, names });
        Ok(())
    }

    fn stay_above(&self, depth: usize, bytes: &Range<usize>) -> Result<(), Diagnostic> {
        if depth <= MAX_DEPTH {
            return Ok(());
        }
        Err(self.mistake(bytes, &too_deep()))
    }

    /// An alias: a copy of what it names, which keeps its places.
    fn repeat(&mut self, anchor: usize, bytes: &Range<usize>) -> Result<(), Diagnostic> {
        let Some(Anchored { node, extent }) = self.anchors.get(&anchor) else {
            return Err(self.mistake(bytes, "an alias of what it is a part of"));
        };
        self.stay_above(self.open.len() + extent.depth, bytes)?;
        self.repeated += extent.nodes;
        if self.repeated > MAX_REPEATED {
            let message = format!("aliases repeat more than {MAX_REPEATED} values");
            return Err(self.mistake(bytes, &message));
        }
        let Some(left) = self.bytes_left.checked_sub(extent.bytes) else {
            let message = "its aliases unfold to much more than was written";
            return Err(self.mistake(bytes, message));
        };
        self.bytes_left = left;
        self.complete(node.clone(), 0)
    }

    /// Puts a node where it belongs: it is a document, an item, a key, or the value of the last key.
    fn complete(&mut self, node: Node, anchor: usize) -> Result<(), Diagnostic> {
        if anchor != 0 {
            let anchored = Anchored { node: node.clone(), extent: Extent::of(&node) };
            self.anchors.insert(anchor, anchored);
        }
        let Some(open) = self.open.last_mut() else {
            self.roots.push(node);
            return Ok(());
        };
        match &mut open.node.value {
            Value::List(items) => items.push(node),
            Value::Map(entries) => match open.key.take() {
                Some(_) if open.merges => {
                    let maps = match node.value {
                        Value::List(items) => items,
                        Value::Null => Vec::new(),
                        _ => vec![node],
                    };
                    if let Some(other) = maps.iter().find(|map| !matches!(map.value, Value::Map(_)))
                    {
                        let bytes = other.span.bytes.clone();
                        return Err(self.mistake(&bytes, "only mappings can be merged"));
                    }
                    open.merges = false;
                    open.merged.extend(maps);
                }
                Some(key) => match open.earlier.take().and_then(|at| entries.get_mut(at)) {
                    Some(entry) => *entry = (key, node),
                    None => entries.push((key, node)),
                },
                None => {
                    let Value::String(name) = node.value else {
                        return Err(self.mistake(&node.span.bytes, NO_KEY));
                    };
                    open.earlier = if open.merges {
                        None
                    } else if entries.len() < MANY {
                        entries.iter().position(|(key, _)| key.name == name)
                    } else {
                        if open.names.is_empty() {
                            let names = entries.iter().map(|(key, _)| key.name.clone());
                            open.names.extend(names.zip(0..));
                        }
                        let at = *open.names.entry(name.clone()).or_insert(entries.len());
                        (at < entries.len()).then_some(at)
                    };
                    let is_duplicate = open.earlier.is_some();
                    open.key = Some(Key { name: name.clone(), span: node.span.clone() });
                    if is_duplicate {
                        self.report_duplicate(&name, &node.span)?;
                    }
                }
            },
            // Nothing else is ever open.
            _ => {}
        }
        Ok(())
    }

    /// A duplicate key is an error in a policy. `kubectl` uses the last value.
    fn report_duplicate(&mut self, name: &str, span: &Span) -> Result<(), Diagnostic> {
        let message = format!("the key \"{name}\" is here twice");
        if self.dialect == Dialect::Core && !self.is_in_manifest() {
            return Err(self.mistake(&span.bytes, &message));
        }
        if self.duplicates.len() < MAX_DUPLICATES {
            let message = format!("{message}: the last value counts");
            self.duplicates.push(Diagnostic::new(span.clone(), message));
        }
        Ok(())
    }

    /// Whether this is inside a part of a test case that is read like a manifest.
    fn is_in_manifest(&self) -> bool {
        let keys = self.open.iter().filter_map(|open| Some(open.key.as_ref()?.name.as_str()));
        match Vec::from_iter(keys.take(3)).as_slice() {
            ["cases", "object" | "old", ..] => self.open.len() > 3,
            ["cases", "with", _] => self.open.len() > 4,
            ["cases", "expect", "status" | "patch"] => self.open.len() > 4,
            _ => false,
        }
    }

    fn node(&self, value: Value, bytes: &Range<usize>) -> Node {
        Node { value, span: Span { source: self.source, bytes: bytes.clone() } }
    }

    fn mistake(&self, bytes: &Range<usize>, message: &str) -> Diagnostic {
        let span = Span { source: self.source, bytes: bytes.clone() };
        Diagnostic::new(span, format!("invalid YAML: {message}"))
    }
}

/// `<<: *base`: the entries of other mappings for the keys that a mapping does not have. Of YAML 1.1,
/// but everybody expects it of anchors.
fn merge(node: &mut Node, merged: Vec<Node>) {
    let Value::Map(entries) = &mut node.value else { return };
    if merged.is_empty() {
        return;
    }
    let mut names: HashSet<String> = entries.iter().map(|(key, _)| key.name.clone()).collect();
    for map in merged {
        let Value::Map(more) = map.value else { continue };
        entries.extend(more.into_iter().filter(|(key, _)| names.insert(key.name.clone())));
    }
}

const MERGE: &str = "<<";

const NOT_INDENTED: &str = "unclosed quote, or the text goes on in a line that is not indented more than its key: indent that line";

/// Where the line of a place begins.
fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |end| end + 1)
}

/// `{{ .Values.phase }}` is a mapping with a mapping as its key.
const NO_KEY: &str = "a key must be a text (a template must be rendered first)";

/// Keys from which on they are not compared one by one.
const MANY: usize = 32;

fn too_deep() -> String {
    format!("nested deeper than {MAX_DEPTH} levels")
}

/// How large a tree is.
#[derive(Clone, Copy)]
struct Extent {
    nodes: usize,
    /// Levels of lists and mappings.
    depth: usize,
    /// Of texts and keys.
    bytes: usize,
}

impl Extent {
    const COLLECTION: Self = Self { nodes: 1, depth: 1, bytes: 0 };

    fn of(node: &Node) -> Self {
        match &node.value {
            Value::List(items) => items.iter().fold(Self::COLLECTION, Self::and),
            Value::Map(entries) => entries.iter().fold(Self::COLLECTION, |all, (key, node)| {
                Self { bytes: all.bytes + key.name.len(), ..all }.and(node)
            }),
            Value::String(text) => Self { nodes: 1, depth: 0, bytes: text.len() },
            _ => Self { nodes: 1, depth: 0, bytes: 0 },
        }
    }

    fn and(self, node: &Node) -> Self {
        let inner = Self::of(node);
        Self {
            nodes: self.nodes + inner.nodes,
            depth: self.depth.max(inner.depth + 1),
            bytes: self.bytes + inner.bytes,
        }
    }
}

#[cfg(test)]
mod tests;
