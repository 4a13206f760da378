//! A node of a structural schema, compiled.

use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::format::{self, Format};
use super::number;
use super::pattern::Pattern;
use super::rule::Rule;
use super::{FieldSchema, INT32_RANGES, RULES};
use crate::model::Index;

/// The deepest node that is compiled. The deepest schema in a collection of 885 definitions has 36 levels.
const MAX_DEPTH: usize = 100;

/// A node of a structural schema.
#[derive(Clone, Debug, Default)]
pub struct Node {
    /// The names of its types. No type accepts each value; two are those of `x-kubernetes-int-or-string`.
    pub types: &'static [&'static str],
    /// Whether a null is stored.
    pub is_nullable: bool,
    /// Whether unknown members are stored.
    pub preserves_unknown: bool,
    /// Whether the value is a complete object with `apiVersion`, `kind` and `metadata`.
    pub is_embedded: bool,
    /// `additionalProperties: true`.
    pub keeps_additional: bool,
    /// How the elements of a list are identified.
    pub list: ListType,
    /// The declared members, sorted by name.
    pub properties: Box<[(Box<str>, Self)]>,
    /// The values of a map.
    pub additional: Option<Box<Self>>,
    /// The elements of a list.
    pub items: Option<Box<Self>>,
    /// The members that an object must have.
    pub required: Box<[Box<str>]>,
    /// The value that the API server sets where it is missing.
    pub default: Option<Box<Value>>,
    /// Whether numbers must be in the range of their type and format.
    pub(super) has_ranges: bool,
    pub(super) limits: Option<Box<Limits>>,
    pub(super) junctors: Box<[(Junctor, Box<[Self]>)]>,
    /// Whether a rule is inside a junctor.
    pub(super) has_junctor_rules: bool,
    pub(super) rules: Box<[Rule]>,
    /// Why nothing can be proven about a value here.
    pub(super) unknown: Option<&'static str>,
}

/// `x-kubernetes-list-type`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ListType {
    /// Each change replaces the list.
    #[default]
    Atomic,
    /// Each element occurs once.
    Set,
    /// The elements are objects with these keys.
    Map(Box<[Box<str>]>),
}

/// The limits of one value.
#[derive(Clone, Debug, Default)]
pub(super) struct Limits {
    pub(super) members: Box<[Value]>,
    /// With its spelling.
    pub(super) format: Option<(Format, Box<str>)>,
    pub(super) pattern: Option<Pattern>,
    pub(super) length: Range,
    pub(super) items: Range,
    pub(super) properties: Range,
    pub(super) minimum: Option<Bound>,
    pub(super) maximum: Option<Bound>,
    pub(super) multiple_of: Option<f64>,
}

/// How many there may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) min: Option<i64>,
    pub(super) max: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bound {
    pub(super) value: f64,
    pub(super) is_exclusive: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Junctor {
    AllOf,
    AnyOf,
    OneOf,
    Not,
}

impl Node {
    pub(super) fn compile(schema: &Value, minor: u32) -> Self {
        Source { minor, correlates: true }.node(schema, 0)
    }

    /// The least and the largest number, length of a text, and number of elements.
    pub fn extents(&self) -> [(Option<f64>, Option<f64>); 3] {
        let Some(limits) = &self.limits else { return [(None, None); 3] };
        let [lengths, items] = [limits.length, limits.items]
            .map(|range| [range.min, range.max].map(|limit| limit.map(|limit| limit as f64)));
        let numbers = [limits.minimum, limits.maximum].map(|bound| bound.map(|bound| bound.value));
        [numbers, lengths, items].map(|[least, most]| (least, most))
    }

    /// The values of `enum`; empty if there is none.
    pub fn members(&self) -> &[Value] {
        &self.limits().members
    }

    /// The format, if the API server checks it.
    pub fn format(&self) -> Option<&str> {
        self.limits().format.as_ref().map(|(_, name)| &**name)
    }

    pub(super) fn limits(&self) -> &Limits {
        self.limits.as_deref().unwrap_or(&NO_LIMITS)
    }

    /// How the schema treats a member or an element.
    pub(super) fn below(&self, token: &str) -> FieldSchema<'_> {
        let items = self.items.as_deref().filter(|_| is_index(token));
        if let Some(node) = self.property(token).or(items).or(self.additional.as_deref()) {
            FieldSchema::Declared(node)
        } else if self.preserves_unknown || (self.is_embedded && TYPE_META.contains(&token)) {
            FieldSchema::Free
        } else if self.keeps_additional {
            FieldSchema::Declared(&EMPTY)
        } else {
            FieldSchema::Pruned
        }
    }

    pub(super) fn property(&self, name: &str) -> Option<&Self> {
        let at = self.properties.binary_search_by(|(known, _)| (**known).cmp(name)).ok()?;
        self.properties.get(at).map(|(_, node)| node)
    }

    /// The schema of a member.
    pub(super) fn member(&self, name: &str) -> Option<&Self> {
        self.property(name).or(self.additional.as_deref())
    }

    /// Whether it or a node below it has rules.
    pub(super) fn has_rules(&self) -> bool {
        let children = self.properties.iter().map(|(_, node)| node);
        let mut children = children.chain(self.additional.as_deref()).chain(self.items.as_deref());
        !self.rules.is_empty() || self.has_junctor_rules || children.any(Self::has_rules)
    }
}

/// The members of an embedded object that are never pruned.
pub(super) const TYPE_META: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// The values of `additionalProperties: true`: their members are pruned.
static EMPTY: LazyLock<Node> = LazyLock::new(Node::default);

static NO_LIMITS: LazyLock<Limits> = LazyLock::new(Limits::default);

/// How the keywords of [`Limits`] begin.
const LIMITS: [&str; 6] = ["enum", "format", "max", "min", "multipleOf", "pattern"];

/// An index, or its placeholder in a pointer: `*` is each element, `-1` the last.
pub(super) fn is_index(token: &str) -> bool {
    token == "*" || Index::of(token).is_some()
}

static TYPES: [[&str; 1]; 6] =
    [["object"], ["array"], ["string"], ["integer"], ["number"], ["boolean"]];

const INT_OR_STRING: &[&str] = &["integer", "string"];

/// What the meaning of a schema depends on.
#[derive(Clone, Copy)]
struct Source {
    minor: u32,
    /// Whether transition rules see previous values: not inside an atomic map.
    correlates: bool,
}

impl Source {
    fn node(self, schema: &Value, depth: usize) -> Node {
        let Some(keywords) = schema.as_object().filter(|_| depth <= MAX_DEPTH) else {
            let unknown = Some("the schema is nested too deep, or a part of it is not an object");
            return Node { unknown, preserves_unknown: true, ..Node::default() };
        };
        let is_atomic = keywords.get("x-kubernetes-map-type").is_some_and(|kind| kind == "atomic");
        let inner = Self { correlates: self.correlates && !is_atomic, ..self };
        let child = |schema: &Value| inner.node(schema, depth + 1);
        let types = types(keywords);
        let additional = keywords.get("additionalProperties");
        let declared = keywords.get("properties").and_then(Value::as_object);
        let mut properties: Vec<(Box<str>, Node)> = declared
            .into_iter()
            .flatten()
            .map(|(name, schema)| (name.as_str().into(), child(schema)))
            .collect();
        properties.sort_by(|(one, _), (other, _)| one.cmp(other));
        let mut junctors = Vec::new();
        for (name, junctor) in
            [("allOf", Junctor::AllOf), ("anyOf", Junctor::AnyOf), ("oneOf", Junctor::OneOf)]
        {
            let nodes = keywords.get(name).and_then(Value::as_array);
            if let Some(nodes) = nodes.filter(|nodes| !nodes.is_empty()) {
                junctors.push((junctor, nodes.iter().map(child).collect()));
            }
        }
        if let Some(not) = keywords.get("not") {
            junctors.push((Junctor::Not, Box::from([child(not)])));
        }
        let has_junctor_rules =
            junctors.iter().flat_map(|(_, nodes): &(_, Box<[Node]>)| nodes).any(Node::has_rules);
        let rules = keywords
            .get("x-kubernetes-validations")
            .and_then(Value::as_array)
            .filter(|_| self.minor >= RULES);
        Node {
            types,
            is_nullable: is_true(keywords, "nullable"),
            preserves_unknown: is_true(keywords, "x-kubernetes-preserve-unknown-fields"),
            is_embedded: is_true(keywords, "x-kubernetes-embedded-resource"),
            keeps_additional: additional == Some(&Value::Bool(true)),
            list: match keywords.get("x-kubernetes-list-type").and_then(Value::as_str) {
                Some("set") => ListType::Set,
                Some("map") => ListType::Map(texts(keywords, "x-kubernetes-list-map-keys")),
                _ => ListType::Atomic,
            },
            properties: properties.into(),
            additional: additional
                .filter(|schema| schema.is_object())
                .map(|schema| Box::new(child(schema))),
            items: keywords.get("items").map(|schema| Box::new(child(schema))),
            required: texts(keywords, "required"),
            default: keywords
                .get("default")
                .filter(|value| !value.is_null())
                .map(|value| Box::new(number::stored(value))),
            has_ranges: self.minor >= INT32_RANGES && types.len() == 1,
            limits: keywords
                .keys()
                .any(|name| LIMITS.iter().any(|limit| name.starts_with(limit)))
                .then(|| Box::new(self.limits(keywords, types))),
            junctors: junctors.into(),
            has_junctor_rules,
            rules: rules
                .into_iter()
                .flatten()
                .map(|rule| Rule::new(rule, keywords, self.correlates))
                .collect(),
            unknown: forbidden(keywords),
        }
    }

    fn limits(self, keywords: &Map<String, Value>, types: &[&str]) -> Limits {
        let number = |name: &str| keywords.get(name).and_then(Value::as_f64);
        let bound = |name: &str, exclusive: &str| {
            number(name).map(|value| Bound { value, is_exclusive: is_true(keywords, exclusive) })
        };
        let range = |min: &str, max: &str| {
            let count = |name: &str| keywords.get(name).and_then(Value::as_i64);
            Range { min: count(min), max: count(max) }
        };
        let text = |name: &str| keywords.get(name).and_then(Value::as_str);
        let members = keywords.get("enum").and_then(Value::as_array);
        Limits {
            members: members.into_iter().flatten().map(number::stored).collect(),
            format: text("format")
                .and_then(|name| Some((format::find(name, types, self.minor)?, name.into()))),
            pattern: text("pattern").filter(|text| !text.is_empty()).map(Pattern::new),
            length: range("minLength", "maxLength"),
            items: range("minItems", "maxItems"),
            properties: range("minProperties", "maxProperties"),
            minimum: bound("minimum", "exclusiveMinimum"),
            maximum: bound("maximum", "exclusiveMaximum"),
            multiple_of: number("multipleOf"),
        }
    }
}

fn types(keywords: &Map<String, Value>) -> &'static [&'static str] {
    if is_true(keywords, "x-kubernetes-int-or-string") {
        return INT_OR_STRING;
    }
    let kind = keywords.get("type").and_then(Value::as_str);
    TYPES.iter().find(|[known]| kind == Some(*known)).map_or(&[], |known| known.as_slice())
}

fn is_true(keywords: &Map<String, Value>, name: &str) -> bool {
    keywords.get(name) == Some(&Value::Bool(true))
}

/// A keyword that changes which values are valid, but that the API server rejects in a structural schema:
/// no server accepted this definition.
fn forbidden(keywords: &Map<String, Value>) -> Option<&'static str> {
    let absent = ["$ref", "additionalItems", "definitions", "dependencies", "patternProperties"];
    if is_true(keywords, "uniqueItems") {
        return Some("uniqueItems");
    }
    if keywords.get("additionalProperties") == Some(&Value::Bool(false)) {
        return Some("additionalProperties: false");
    }
    absent.into_iter().find(|name| keywords.get(*name).is_some_and(|value| !value.is_null()))
}

fn texts(keywords: &Map<String, Value>, name: &str) -> Box<[Box<str>]> {
    let list = keywords.get(name).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).map(Into::into).collect()
}
