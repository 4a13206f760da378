//! From text to tree: the parser's events, put together.
//!
//! Without serde: a deserializer between parser and tree doubles the time. So its work is done here:
//! aliases, merge keys, duplicate keys, and limits on what aliases can make of a small text.

use std::borrow::Cow;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, Span as EventSpan, Tag};

use super::super::Diagnostic;
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

/// One document of a manifest; null if it is empty. Also warnings about duplicate keys.
pub(super) fn manifest(
    text: &str,
    part: &Range<usize>,
) -> Result<(Node, Vec<Diagnostic>), Diagnostic> {
    let mut reader = Reader::new(Dialect::Kubectl, 0, 0, part.len());
    reader.read(text, part)?;
    let null = reader.node(Value::Null, &(part.start..part.start));
    Ok((reader.roots.into_iter().next().unwrap_or(null), reader.duplicates))
}

/// All policies of a text, and the mistakes in those that cannot be read. Empty ones are left out.
pub(super) fn documents(source: usize, text: &str) -> (Vec<Document>, Vec<Diagnostic>) {
    let (mut documents, mut mistakes) = (Vec::new(), Vec::new());
    let mut repeated = 0;
    for part in parts(text) {
        let mut reader = Reader::new(Dialect::Core, source, repeated, part.len());
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

impl Reader {
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
        for event in Parser::new_from_str(&text[part.clone()]) {
            match event {
                Ok((event, span)) => self.take(event, &bytes(&span))?,
                Err(error) => {
                    let at = part.start + error.marker().byte_offset().unwrap_or(length);
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

    fn take(&mut self, event: Event<'_>, bytes: &Range<usize>) -> Result<(), Diagnostic> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let is_plain = style == ScalarStyle::Plain;
                let value = if self.expects_key() {
                    self.key(text, is_plain, tag.as_deref())
                } else {
                    self.dialect.scalar(text, is_plain, tag.as_deref())
                };
                let value = value.map_err(|message| self.mistake(bytes, &message))?;
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

    /// The name of a key: `on:` and `1.0:` are called what they look like.
    fn key(
        &mut self,
        text: Cow<'_, str>,
        is_plain: bool,
        tag: Option<&Tag>,
    ) -> Result<Value, String> {
        let Some(open) = self.open.last_mut() else { return Err(NO_KEY.to_owned()) };
        open.merges = text == MERGE && is_plain && tag.is_none();
        if tag.is_none()
            && is_plain
            && self.dialect == Dialect::Kubectl
            && self.dialect.is_null(&text)
        {
            return Err(NO_KEY.to_owned());
        }
        if tag.is_some()
            && let Value::String(text) = self.dialect.scalar(Cow::Borrowed(&text), is_plain, tag)?
        {
            return Ok(Value::String(text));
        }
        Ok(Value::String(text.into_owned()))
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
        let node = node.clone();
        self.complete(node, 0)
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
                        match open.names.entry(name.clone()) {
                            Entry::Occupied(earlier) => Some(*earlier.get()),
                            Entry::Vacant(new) => {
                                new.insert(entries.len());
                                None
                            }
                        }
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
        if self.dialect == Dialect::Core {
            return Err(self.mistake(&span.bytes, &message));
        }
        if self.duplicates.len() < MAX_DUPLICATES {
            let message = format!("{message}: the last value counts");
            self.duplicates.push(Diagnostic::new(span.clone(), message));
        }
        Ok(())
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

/// `{{ .Values.phase }}` is a mapping with a mapping as its key.
const NO_KEY: &str = "a key must be a text (a template must be rendered first)";

/// Keys from which on they are not compared one by one.
const MANY: usize = 32;

fn too_deep() -> String {
    format!("nested deeper than {MAX_DEPTH} levels")
}

/// How large a tree is.
#[derive(Clone, Copy, Default)]
struct Extent {
    nodes: usize,
    /// Levels of lists and mappings.
    depth: usize,
    /// Of texts and keys.
    bytes: usize,
}

impl Extent {
    fn of(node: &Node) -> Self {
        match &node.value {
            Value::List(items) => items.iter().fold(Self::of_collection(), Self::and),
            Value::Map(entries) => {
                entries.iter().fold(Self::of_collection(), |all, (key, node)| {
                    Self { bytes: all.bytes + key.name.len(), ..all }.and(node)
                })
            }
            Value::String(text) => Self { nodes: 1, depth: 0, bytes: text.len() },
            _ => Self { nodes: 1, depth: 0, bytes: 0 },
        }
    }

    const fn of_collection() -> Self {
        Self { nodes: 1, depth: 1, bytes: 0 }
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
        Ok(documents.iter().map(|document| serde_json::to_value(&document.root).unwrap()).collect())
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
    fn errors_of_yaml_have_a_location() {
        for (text, said) in [
            ("a: 1\nb: 2\na: 3", "the key \"a\" is here twice at \"a: 3\""),
            ("a: &x [*x]", "an alias of what it is a part of at \"*x]\""),
            ("a: *nowhere", "unknown anchor at \"*nowhere\""),
            ("a: &x 1\n---\na: *x", "unknown anchor at \"*x\""),
            ("{[a]: 1}", "a key must be a text (a template must be rendered first) at \"[a]: 1}\""),
            ("a: !mine 1", "this tag means nothing here at \"1\""),
            ("a: {<<: 1}", "only mappings can be merged at \"1}\""),
            ("a: [1", "unclosed bracket '[' at \"[1\""),
            ("a:\n\tb: 1", "tab"),
        ] {
            let error = read(text).unwrap_err();
            assert!(
                error.starts_with("invalid YAML: ") && error.contains(said),
                "{text:?}: {error}"
            );
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

    /// A manifest as JSON text.
    fn from_yaml(text: &str) -> Result<String, String> {
        match manifest(text, &(0..text.len())) {
            Ok((node, _)) => Ok(serde_json::to_string(&node).unwrap()),
            Err(error) => Err(error.message.replace("invalid YAML: ", "")),
        }
    }

    #[test]
    fn plain_scalars_arrive_as_the_api_server_would_see_them() {
        for (yaml, json) in [
            ("True", "true"),
            ("yes", "true"),
            ("off", "false"),
            ("'True'", "\"True\""),
            ("2024-01-01T00:00:00Z", "\"2024-01-01T00:00:00Z\""),
            ("2024-01-01", "\"2024-01-01\""),
            ("~", "null"),
            ("\"\"", "\"\""),
            ("012", "10"),
            ("-7", "-7"),
            ("18446744073709551615", "1.8446744073709552e+19"),
            ("1.5", "1.5"),
            ("1.20.2", "\"1.20.2\""),
            ("12:30:45", "\"12:30:45\""),
            ("!!str 5", "\"5\""),
            ("|\n  two\n  lines\n", "\"two\\nlines\\n\""),
        ] {
            let read = from_yaml(&format!("a: {yaml}\n"));
            assert_eq!(read.unwrap(), format!("{{\"a\":{json}}}"), "{yaml}");
        }
    }

    #[test]
    fn structures_anchors_and_merge_keys_are_unfolded() {
        let yaml = "1: [a, {b: }, []]\ntrue: {}\nbase: &base\n  x: 1\n  y: 2\nmore:\n  <<: *base\n  y: 3\nalias: *base\n";
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&from_yaml(yaml).unwrap()).unwrap(),
            serde_json::json!({"1": ["a", {"b": null}, []], "true": {}, "base": {"x": 1, "y": 2},
                "more": {"x": 1, "y": 3}, "alias": {"x": 1, "y": 2}})
        );
    }

    #[test]
    fn yaml_that_json_cannot_express_and_bombs_are_errors() {
        let deep = format!("a: {}1{}", "[".repeat(5000), "]".repeat(5000));
        let mut laughs = "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n".to_owned();
        for level in 1..12 {
            let aliases = vec![format!("*a{}", level - 1); 9].join(", ");
            laughs += &format!("a{level}: &a{level} [{aliases}]\n");
        }
        // Few events, each a large one.
        let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(100_000), vec!["*a"; 900].join(", "));
        for bad in ["a: .inf", "a: .nan", "a: [", "a: *nobody", &deep, &laughs, &long] {
            assert!(from_yaml(bad).is_err(), "{}", &bad[..bad.len().min(40)]);
        }
    }

    #[test]
    fn mistakes_are_told_in_words_for_those_who_write_manifests() {
        let nested = |levels: usize| format!("a: {}{}", "[".repeat(levels), "]".repeat(levels));
        let repeated = format!("a: &a [1, 2, 3]\nb: [{}]", vec!["*a"; 60_000].join(", "));
        let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(100_000), vec!["*a"; 900].join(", "));
        let template = "a key must be a text (a template must be rendered first)";
        for (text, said) in [
            ("a: {{ .Values.phase }}", template),
            ("{{ if x }}\na: 1", template),
            ("? [a]\n: b", template),
            ("~: 1", template),
            ("a: &x [*x]", "an alias of what it is a part of"),
            ("a: *nobody", "unknown anchor"),
            ("a: {<<: 1}", "only mappings can be merged"),
            ("a: -.inf", "JSON has no number -.inf"),
            ("a: !!int x", "this is not what its tag says"),
            ("a: [1", "unclosed bracket '['"),
            (&nested(5000), "nested deeper than 128 levels"),
            (&repeated, "aliases repeat more than 200000 values"),
            (&long, "its aliases unfold to much more than was written"),
        ] {
            assert_eq!(from_yaml(text).unwrap_err(), said, "{}", &text[..text.len().min(40)]);
        }
        assert_eq!(from_yaml(&nested(128)).unwrap_err(), "nested deeper than 128 levels");
        assert!(from_yaml(&nested(127)).is_ok());
    }

    #[test]
    fn the_last_of_duplicate_keys_counts_in_a_manifest() {
        let many: String = (0..40).map(|number| format!("k{number}: 0\n")).collect();
        for (text, key, value, warnings) in [
            ("a: 1\nb: 2\na: 3\n".to_owned(), "a", 3, vec!["a: 3"]),
            ("a: 1\na: 2\na: 3\n".to_owned(), "a", 3, vec!["a: 2", "a: 3"]),
            (format!("{many}k7: 1\nk39: 2\n"), "k39", 2, vec!["k7: 1", "k39: 2"]),
            ("b: &b {a: 1}\n<<: *b\na: 2\na: 3\n".to_owned(), "a", 3, vec!["a: 3"]),
        ] {
            let (node, duplicates) = manifest(&text, &(0..text.len())).unwrap();
            assert_eq!(serde_json::to_value(&node).unwrap()[key], value, "{text}");
            let at = duplicates.iter().map(|found| &text[found.span.bytes.start..]);
            let at: Vec<&str> = at.filter_map(|rest| rest.lines().next()).collect();
            assert_eq!(at, warnings, "{text}");
            assert!(
                duplicates.iter().all(|found| found.message.ends_with(": the last value counts"))
            );
        }
        let text = "a: 1\n".repeat(1000);
        assert_eq!(manifest(&text, &(0..text.len())).unwrap().1.len(), MAX_DUPLICATES);
    }

    #[test]
    fn an_anchor_may_be_used_as_often_as_it_is_of_use() {
        for count in [100, 5_000, 40_000] {
            let yaml = format!("a: &a {{x: 1}}\nb: [{}]\n", vec!["*a"; count].join(", "));
            let merged = format!("a: &a {{}}\nb:\n{}", "- {<<: *a}\n".repeat(count));
            for yaml in [yaml, merged] {
                let read = from_yaml(&yaml);
                assert!(read.is_ok(), "{count}: {:?}", read.err());
            }
        }
    }

    #[test]
    fn many_nodes_are_no_attack() {
        let yaml = format!("items: [{}]\n", "1,".repeat(260_000));
        assert!(from_yaml(&yaml).is_ok());
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
        fn yaml_written_by_a_library_is_read_unchanged(value in any_json()) {
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
