//! From a field's name to the bytes where it stands.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Location, Spanned};

use super::document::Document;
use super::members::{Members, items};
use super::{document, json_text};

/// The bytes (of the file) of a field of a document: the value of a scalar, the key of anything
/// larger. Of a field that is not there, the nearest parent that is.
pub(super) fn find(document: &Document<'_>, tokens: &[String]) -> Range<usize> {
    let text = &document.file.text[document.range.clone()];
    let within = if matches!(document.json, Cow::Borrowed(_)) {
        find_in_json(text, tokens)
    } else {
        let tree = document.tree.get_or_init(|| Tree::parse(text));
        tree.as_ref().and_then(|tree| tree.find(tokens))
    };
    let within = within.unwrap_or_else(|| {
        let start = document::content(text, &(0..text.len()));
        start..start
    });
    document.range.start + within.start..document.range.start + within.end
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

/// In JSON the value is found by walking down: each step borrows from the text, so that an address
/// is a place.
fn find_in_json(text: &str, tokens: &[String]) -> Option<Range<usize>> {
    let mut value = text;
    let mut is_member = false;
    for token in tokens {
        let inner = match value.as_bytes().first() {
            Some(b'{') => Members::parse(value).and_then(|members| members.get(token)),
            Some(b'[') => {
                items(value).and_then(|items| Some(*items.get(token.parse::<usize>().ok()?)?))
            }
            _ => None,
        };
        match inner {
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

/// A YAML value with the bytes of everything in it.
#[derive(Debug)]
pub(super) struct Tree {
    content: Content,
    span: Range<usize>,
}

#[derive(Debug)]
enum Content {
    Scalar,
    List(Vec<Tree>),
    Map(Vec<(Key, Tree)>),
}

#[derive(Debug)]
struct Key {
    name: String,
    span: Range<usize>,
}

impl Tree {
    fn parse(text: &str) -> Option<Self> {
        serde_saphyr::from_str_with_options(text, json_text::options()).ok()
    }

    fn find(&self, tokens: &[String]) -> Option<Range<usize>> {
        let mut tree = self;
        let mut key = None;
        for token in tokens {
            let inner = match &tree.content {
                Content::Map(members) => members
                    .iter()
                    .find(|(key, _)| key.name == *token)
                    .map(|(key, value)| (Some(key.span.clone()), value)),
                Content::List(items) => {
                    token.parse().ok().and_then(|at: usize| items.get(at)).map(|item| (None, item))
                }
                Content::Scalar => None,
            };
            match inner {
                Some(inner) => (key, tree) = inner,
                None => break,
            }
        }
        match (&tree.content, key) {
            (Content::Scalar, _) if !tree.span.is_empty() => Some(tree.span.clone()),
            (_, Some(key)) => Some(key),
            // The root, of which nothing is there.
            _ if std::ptr::eq(tree, self) => None,
            _ => Some(tree.span.start..tree.span.start),
        }
    }
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Content>::deserialize(deserializer)?;
        let span = span(&spanned.defined).unwrap_or_default();
        Ok(Self { content: spanned.value, span })
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<String>::deserialize(deserializer)?;
        let span = span(&spanned.defined).unwrap_or_default();
        Ok(Self { name: spanned.value, span })
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ContentVisitor;
        impl<'de> Visitor<'de> for ContentVisitor {
            type Value = Content;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a YAML value")
            }
            fn visit_unit<E>(self) -> Result<Content, E> {
                Ok(Content::Scalar)
            }
            fn visit_none<E>(self) -> Result<Content, E> {
                Ok(Content::Scalar)
            }
            fn visit_bool<E>(self, _: bool) -> Result<Content, E> {
                Ok(Content::Scalar)
            }
            fn visit_i64<E>(self, _: i64) -> Result<Content, E> {
                Ok(Content::Scalar)
            }
            fn visit_u64<E>(self, _: u64) -> Result<Content, E> {
                Ok(Content::Scalar)
            }
            fn visit_f64<E>(self, _: f64) -> Result<Content, E> {
                Ok(Content::Scalar)
            }
            fn visit_str<E>(self, _: &str) -> Result<Content, E> {
                Ok(Content::Scalar)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Content, A::Error> {
                let mut list = Vec::new();
                while let Some(item) = items.next_element()? {
                    list.push(item);
                }
                Ok(Content::List(list))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Content, A::Error> {
                let mut map = Vec::new();
                while let Some(key) = members.next_key::<Key>()? {
                    // Nobody points into these, and they are half of what a cluster prints.
                    if key.name == "managedFields" {
                        members.next_value::<IgnoredAny>()?;
                    } else {
                        map.push((key, members.next_value()?));
                    }
                }
                Ok(Content::Map(map))
            }
        }
        deserializer.deserialize_any(ContentVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{File, Manifests};

    /// What is underlined for each field of the only object of a text.
    fn underlined<'t>(text: &'t str, fields: &[&str]) -> Vec<&'t str> {
        let files = [File::new("a.yaml", text)];
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
        let text = "apiVersion: g/v1\nkind: K\nspec: &s {phase: here}\nstatus: *s\n";
        assert_eq!(underlined(text, &["status.phase"]), ["here"]);
    }
}
