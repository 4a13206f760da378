//! From text to tree: the parser's events, put together.
//!
//! Not through serde: half of the time that all conventions take to load was spent between the
//! parser and its deserializer. What a deserializer would have done is here: plain scalars, aliases,
//! merge keys, keys that are there twice, and limits on what aliases can make of a small text.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use granit_parser::{Event, Parser, ScalarStyle, Span as EventSpan, Tag};

use super::super::Diagnostic;
use super::{Document, Key, Node, Span, Value, parts};

/// How deep lists and mappings may stand in one another: documents are read by recursion.
const MAX_DEPTH: usize = 128;

/// How many nodes aliases may repeat. What is written out bounds itself; nine lines of aliases
/// of aliases would be a billion nodes.
const MAX_REPEATED: usize = 100_000;

/// All documents of a text, and what is wrong with those that cannot be read. Empty ones are left
/// out.
pub(super) fn documents(source: usize, text: &str) -> (Vec<Document>, Vec<Diagnostic>) {
    let (mut documents, mut mistakes) = (Vec::new(), Vec::new());
    let mut repeated = 0;
    for part in parts(text) {
        let mut reader = Reader::new(source, repeated);
        match reader.read(text, &part) {
            Ok(()) => {
                let roots = reader.roots.into_iter();
                let roots = roots.filter(|root| !matches!(root.value, Value::Null));
                let span = Span { source, bytes: part };
                documents.extend(roots.map(|root| Document { root, span: span.clone() }));
            }
            Err(mistake) => mistakes.push(mistake),
        }
        repeated = reader.repeated;
    }
    (documents, mistakes)
}

struct Reader {
    source: usize,
    roots: Vec<Node>,
    /// The lists and mappings that have not ended, outermost first.
    open: Vec<Open>,
    /// What has been named for aliases, by the parser's number for the name.
    anchors: HashMap<usize, Anchored>,
    /// How many nodes aliases have repeated so far, in all documents of the text.
    repeated: usize,
}

/// A list or mapping that has not ended.
struct Open {
    node: Node,
    anchor: usize,
    /// The key whose value comes next, in a mapping.
    key: Option<Key>,
    /// The keys of a mapping that has many.
    names: HashSet<String>,
}

struct Anchored {
    node: Node,
    /// All nodes in it, itself included.
    size: usize,
    /// Levels of lists and mappings.
    depth: usize,
}

impl Reader {
    fn new(source: usize, repeated: usize) -> Self {
        Self { source, roots: Vec::new(), open: Vec::new(), anchors: HashMap::new(), repeated }
    }

    /// Reads one part of a text.
    fn read(&mut self, text: &str, part: &Range<usize>) -> Result<(), Diagnostic> {
        let length = part.len();
        // Of a text that is in memory as a whole, the parser always knows the bytes.
        let bytes = |span: &EventSpan| {
            let bytes = span.byte_range().unwrap_or_default();
            part.start + bytes.start..part.start + bytes.end
        };
        for event in Parser::new_from_str(&text[part.clone()]) {
            match event {
                Ok((event, span)) => self.take(event, &bytes(&span))?,
                Err(error) => {
                    let at = part.start + error.marker().byte_offset().unwrap_or(length);
                    return Err(self.mistake(&(at..at + 1), &error.info()));
                }
            }
        }
        Ok(())
    }

    fn take(&mut self, event: Event<'_>, bytes: &Range<usize>) -> Result<(), Diagnostic> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let value = match kind_of(tag.as_deref()) {
                    // `on:` and `1.0:` are called what they look like.
                    Some(_) if self.expects_key() => Value::String(text.into_owned()),
                    Some(Kind::Text) => Value::String(text.into_owned()),
                    Some(Kind::Open) if style == ScalarStyle::Plain => plain(&text),
                    Some(Kind::Open) => Value::String(text.into_owned()),
                    Some(Kind::Resolved) => plain(&text),
                    None => return Err(self.mistake(bytes, "this tag means nothing here")),
                };
                let node = self.node(value, bytes);
                self.complete(node, anchor)
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.open(Value::List(Vec::new()), anchor, tag.as_deref(), bytes)
            }
            Event::MappingStart(_, anchor, tag) => {
                self.open(Value::Map(Vec::new()), anchor, tag.as_deref(), bytes)
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(Open { mut node, anchor, .. }) => {
                    self.merge(&mut node)?;
                    self.complete(node, anchor)
                }
                None => Ok(()),
            },
            Event::Alias(anchor) => self.repeat(anchor, bytes),
            _ => Ok(()),
        }
    }

    fn expects_key(&self) -> bool {
        let is_map = |open: &&Open| matches!(open.node.value, Value::Map(_));
        self.open.last().filter(is_map).is_some_and(|open| open.key.is_none())
    }

    fn open(
        &mut self,
        value: Value,
        anchor: usize,
        tag: Option<&Tag>,
        bytes: &Range<usize>,
    ) -> Result<(), Diagnostic> {
        if kind_of(tag).is_none() {
            return Err(self.mistake(bytes, "this tag means nothing here"));
        }
        self.stay_above(self.open.len() + 1, bytes)?;
        let node = self.node(value, bytes);
        self.open.push(Open { node, anchor, key: None, names: HashSet::new() });
        Ok(())
    }

    fn stay_above(&self, depth: usize, bytes: &Range<usize>) -> Result<(), Diagnostic> {
        if depth <= MAX_DEPTH {
            return Ok(());
        }
        Err(self.mistake(bytes, &format!("nested deeper than {MAX_DEPTH} levels")))
    }

    /// An alias: a copy of what it names, which keeps its places.
    fn repeat(&mut self, anchor: usize, bytes: &Range<usize>) -> Result<(), Diagnostic> {
        let Some(Anchored { node, size, depth }) = self.anchors.get(&anchor) else {
            return Err(self.mistake(bytes, "an alias of what it is a part of"));
        };
        self.stay_above(self.open.len() + depth, bytes)?;
        self.repeated += size;
        if self.repeated > MAX_REPEATED {
            let message = format!("aliases repeat more than {MAX_REPEATED} values");
            return Err(self.mistake(bytes, &message));
        }
        let node = node.clone();
        self.complete(node, 0)
    }

    /// Puts a node where it belongs: it is a document, an item, a key, or the value of the last key.
    fn complete(&mut self, node: Node, anchor: usize) -> Result<(), Diagnostic> {
        if anchor != 0 {
            let (size, depth) = measure(&node);
            self.anchors.insert(anchor, Anchored { node: node.clone(), size, depth });
        }
        let Some(open) = self.open.last_mut() else {
            self.roots.push(node);
            return Ok(());
        };
        match &mut open.node.value {
            Value::List(items) => items.push(node),
            Value::Map(entries) => match open.key.take() {
                Some(key) => entries.push((key, node)),
                None => {
                    let Value::String(name) = node.value else {
                        return Err(self.mistake(&node.span.bytes, "this cannot be a key"));
                    };
                    let twice = if entries.len() < MANY {
                        entries.iter().any(|(key, _)| key.name == name)
                    } else {
                        if open.names.is_empty() {
                            open.names.extend(entries.iter().map(|(key, _)| key.name.clone()));
                        }
                        !open.names.insert(name.clone())
                    };
                    if twice && name != MERGE {
                        let message = format!("the key \"{name}\" is here twice");
                        return Err(self.mistake(&node.span.bytes, &message));
                    }
                    open.key = Some(Key { name, span: node.span });
                }
            },
            // Nothing else is ever open.
            _ => {}
        }
        Ok(())
    }

    /// `<<: *base`: the entries of another mapping, or of a list of mappings, where there is none of
    /// that name. Of YAML 1.1, but what everybody expects of anchors.
    fn merge(&self, node: &mut Node) -> Result<(), Diagnostic> {
        let Value::Map(entries) = &mut node.value else { return Ok(()) };
        while let Some(at) = entries.iter().position(|(key, _)| key.name == MERGE) {
            let (key, merged) = entries.remove(at);
            let maps = match merged.value {
                Value::List(items) => items,
                _ => vec![merged],
            };
            for map in maps {
                let Value::Map(more) = map.value else {
                    return Err(self.mistake(&key.span.bytes, "only mappings can be merged"));
                };
                for (key, node) in more {
                    if !entries.iter().any(|(known, _)| known.name == key.name) {
                        entries.push((key, node));
                    }
                }
            }
        }
        Ok(())
    }

    fn node(&self, value: Value, bytes: &Range<usize>) -> Node {
        Node { value, span: Span { source: self.source, bytes: bytes.clone() } }
    }

    fn mistake(&self, bytes: &Range<usize>, message: &str) -> Diagnostic {
        let span = Span { source: self.source, bytes: bytes.clone() };
        Diagnostic::new(span, format!("not YAML: {message}"))
    }
}

const MERGE: &str = "<<";

/// Keys from which on they are not compared one by one.
const MANY: usize = 32;

/// What a tag says of a node.
enum Kind {
    /// Nothing: the text decides, if it is not quoted.
    Open,
    /// `!!int`, `!!map`: one of the kinds that there are. The text decides.
    Resolved,
    /// `!!str` or `!`.
    Text,
}

/// `None` for a tag that is somebody else's.
fn kind_of(tag: Option<&Tag>) -> Option<Kind> {
    let Some(tag) = tag else { return Some(Kind::Open) };
    match tag.core_suffix() {
        Some("str") => Some(Kind::Text),
        Some(_) => Some(Kind::Resolved),
        None => (tag.parts() == ("", "!") || tag.parts() == ("!", "")).then_some(Kind::Text),
    }
}

/// What a scalar without quotes is, by the core schema of YAML 1.2 (section 10.3.2): `no`, `on` and
/// `y` are names in policies, not booleans.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    number(text).unwrap_or_else(|| Value::String(text.to_owned()))
}

fn number(text: &str) -> Option<Value> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if matches!(digits, ".inf" | ".Inf" | ".INF") {
        return Some(Value::Float(if negative { f64::NEG_INFINITY } else { f64::INFINITY }));
    }
    if matches!(text, ".nan" | ".NaN" | ".NAN") {
        return Some(Value::Float(f64::NAN));
    }
    for (prefix, radix) in [("0x", 16), ("0o", 8)] {
        if let Some(digits) = text.strip_prefix(prefix) {
            let good = digits.bytes().all(|byte| byte.is_ascii_alphanumeric());
            return i64::from_str_radix(digits, radix).ok().filter(|_| good).map(Value::Integer);
        }
    }
    // What Rust reads as a number beyond this (`infinity`) is a text.
    let is_digit = |byte: u8| byte.is_ascii_digit() || byte == b'.';
    if !digits.bytes().next().is_some_and(is_digit) {
        return None;
    }
    text.parse().map(Value::Integer).or_else(|_| text.parse().map(Value::Float)).ok()
}

/// How many nodes a tree has, and how many levels of lists and mappings.
fn measure(node: &Node) -> (usize, usize) {
    let inner = |(size, depth): (usize, usize), node: &Node| {
        let (more, deeper) = measure(node);
        (size + more, depth.max(deeper + 1))
    };
    match &node.value {
        Value::List(items) => items.iter().fold((1, 1), inner),
        Value::Map(entries) => entries.iter().map(|(_, node)| node).fold((1, 1), inner),
        _ => (1, 0),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value as Json, json};

    use super::*;

    fn read(text: &str) -> Result<Vec<Json>, String> {
        let (documents, mistakes) = documents(0, text);
        if let Some(mistake) = mistakes.first() {
            let at = mistake.span.bytes.start.min(text.len());
            return Err(format!("{} at {:?}", mistake.message, &text[at..]));
        }
        Ok(documents.iter().map(|document| document.root.to_json()).collect())
    }

    /// What a library makes of the same text.
    fn expected(text: &str) -> Vec<Json> {
        let options = serde_saphyr::options! { strict_booleans: true, with_snippet: false };
        let all: Vec<Json> = serde_saphyr::from_multiple_with_options(text, options).unwrap();
        all.into_iter().filter(|value| !value.is_null()).collect()
    }

    #[test]
    fn the_documents_of_the_product_are_read_as_a_library_reads_them() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        for folder in ["src/conventions", "deploy/policies"] {
            for entry in std::fs::read_dir(root.join(folder)).unwrap() {
                let path = entry.unwrap().path();
                if path.extension().is_some_and(|kind| kind == "yaml") {
                    let text = std::fs::read_to_string(&path).unwrap();
                    assert_eq!(read(&text).unwrap(), expected(&text), "{}", path.display());
                }
            }
        }
    }

    #[test]
    fn scalars_are_of_the_core_schema() {
        let text = "[~, null, True, false, no, on, y, 1, -2, +3, 0o17, 0x1F, 0123, 1.5, -.5, 1e3, 1_000, 1.0.0, \
                    v1, infinity, NaN, --, ., 0x, 0x-1, 2024-01-01, 99999999999999999999, '1', \"true\", !!str 7, ! 8]";
        let expected = json!([
            null,
            null,
            true,
            false,
            "no",
            "on",
            "y",
            1,
            -2,
            3,
            15,
            31,
            123,
            1.5,
            -0.5,
            1000.0,
            "1_000",
            "1.0.0",
            "v1",
            "infinity",
            "NaN",
            "--",
            ".",
            "0x",
            "0x-1",
            "2024-01-01",
            1e20,
            "1",
            "true",
            "7",
            "8"
        ]);
        assert_eq!(read(text).unwrap(), [expected]);
        let document = documents(0, "[.inf, -.INF, .nan]").0.remove(0);
        let Value::List(items) = document.root.value else { panic!("a list") };
        let float = |node: &Node| match node.value {
            Value::Float(value) => value,
            _ => panic!("{node:?}"),
        };
        assert_eq!(float(&items[0]), f64::INFINITY);
        assert_eq!(float(&items[1]), f64::NEG_INFINITY);
        assert!(float(&items[2]).is_nan());
    }

    #[test]
    fn keys_are_called_what_they_look_like() {
        assert_eq!(
            read("{on: 1, 1.0: 2, ~: 3, 'a b': 4}").unwrap(),
            [json!({"on": 1, "1.0": 2, "~": 3, "a b": 4})]
        );
    }

    #[test]
    fn aliases_are_copies_and_merge_keys_fill_in() {
        let text = "base: &b {x: 1, y: [&n name]}\nsame: *b\nmore: {<<: *b, x: 2}\nboth: {<<: [*b, {z: 3, x: 9}]}\n*n : 4";
        let base = json!({"x": 1, "y": ["name"]});
        let expected = json!({
            "base": base, "same": base, "more": {"x": 2, "y": ["name"]},
            "both": {"x": 1, "y": ["name"], "z": 3}, "name": 4
        });
        assert_eq!(read(text).unwrap(), [expected]);
    }

    #[test]
    fn what_cannot_be_read_is_told_with_its_place() {
        for (text, said) in [
            ("a: 1\nb: 2\na: 3", "the key \"a\" is here twice at \"a: 3\""),
            ("a: &x [*x]", "an alias of what it is a part of at \"*x]\""),
            ("a: *nowhere", "unknown anchor at \"*nowhere\""),
            ("a: &x 1\n---\na: *x", "unknown anchor at \"*x\""),
            ("{[a]: 1}", "this cannot be a key at \"[a]: 1}\""),
            ("a: !mine 1", "this tag means nothing here at \"1\""),
            ("a: {<<: 1}", "only mappings can be merged at \"<<: 1}\""),
            ("a: [1", "unclosed bracket '[' at \"[1\""),
            ("a:\n\tb: 1", "tab"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with("not YAML: ") && error.contains(said), "{text:?}: {error}");
        }
    }

    #[test]
    fn depth_is_limited_also_where_aliases_make_it() {
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(read(&nested(MAX_DEPTH)).is_ok());
        assert!(read(&nested(MAX_DEPTH + 1)).unwrap_err().contains("nested deeper"));
        let aliased = format!("- &a {}\n- {}*a{}", nested(100), "[".repeat(28), "]".repeat(28));
        assert!(read(&aliased).unwrap_err().contains("nested deeper"));
        let aliased = format!("- &a {}\n- {}*a{}", nested(100), "[".repeat(27), "]".repeat(27));
        assert!(read(&aliased).is_ok());
    }

    #[test]
    fn a_small_text_does_not_become_a_large_tree() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..9 {
            let below = format!("*a{}, ", level - 1).repeat(10);
            text += &format!("a{level}: &a{level} [{below}]\n");
        }
        assert!(read(&text).unwrap_err().contains("aliases repeat more than"));
    }

    fn any_json() -> impl Strategy<Value = Json> {
        let text = prop_oneof!["[ -~]{0,8}", "\\PC{0,6}", "true|no|null|~|1e3|0x1F|- a|#b|a: b"];
        let leaf = prop_oneof![
            Just(Json::Null),
            any::<bool>().prop_map(Json::from),
            any::<i64>().prop_map(Json::from),
            (-1e9..1e9).prop_map(|number: f64| Json::from(number)),
            text.clone().prop_map(Json::from),
        ];
        leaf.prop_recursive(4, 32, 5, move |inner| {
            let list = prop::collection::vec(inner.clone(), 0..5).prop_map(Json::from);
            let map = prop::collection::btree_map(text.clone(), inner, 0..5);
            let map = map.prop_map(|map| Json::Object(map.into_iter().collect()));
            prop_oneof![list, map]
        })
    }

    proptest! {
        #[test]
        fn what_a_library_writes_is_read_as_it_was(value in any_json()) {
            prop_assume!(!value.is_null() && !value.to_string().contains("\"<<\""));
            let text = serde_saphyr::to_string(&value).unwrap();
            prop_assert_eq!(read(&text), Ok(vec![value]), "{}", text);
        }

        #[test]
        fn no_text_does_harm(text in "([\\[\\]{}:,&*!|>#'\"%@`?~ \\n\\t-]|[a-c]|\\PC){0,40}") {
            let _ = read(&text);
        }
    }
}
