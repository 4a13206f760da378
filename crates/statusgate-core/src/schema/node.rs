//! A node of a structural schema, compiled.

use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::format::Format;
use super::number;
use super::pattern::Pattern;
use super::rule::Rule;
use super::{FieldSchema, INT32_RANGES, RULES};

/// The deepest node that is compiled. The deepest schema in a collection of 885 definitions has 36 levels.
const MAX_DEPTH: usize = 100;

/// A node of a structural schema.
#[derive(Debug, Default)]
pub struct Node {
    /// No type accepts each value; two are those of `x-kubernetes-int-or-string`.
    pub(super) types: &'static [&'static str],
    pub(super) nullable: bool,
    pub(super) preserves_unknown: bool,
    pub(super) is_embedded: bool,
    /// `additionalProperties: true`.
    pub(super) keeps_additional: bool,
    pub(super) list: ListType,
    /// Sorted by name.
    pub(super) properties: Box<[(Box<str>, Self)]>,
    pub(super) additional: Option<Box<Self>>,
    pub(super) items: Option<Box<Self>>,
    pub(super) required: Box<[Box<str>]>,
    pub(super) default: Option<Box<Value>>,
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
#[derive(Debug, Default)]
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
    /// Whether numbers must be in the range of their type and format.
    pub(super) has_ranges: bool,
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

    /// The types that a value may have, by their names in JSON Schema; none if it may have any.
    pub fn types(&self) -> &'static [&'static str] {
        self.types
    }

    /// Whether a null is stored.
    pub fn is_nullable(&self) -> bool {
        self.nullable
    }

    /// Whether unknown members are stored.
    pub fn preserves_unknown(&self) -> bool {
        self.preserves_unknown
    }

    /// Whether the value is a complete object with `apiVersion`, `kind` and `metadata`.
    pub fn is_embedded(&self) -> bool {
        self.is_embedded
    }

    /// Whether the value is an integer or a string.
    pub fn is_int_or_string(&self) -> bool {
        self.types == INT_OR_STRING
    }

    /// How the elements of a list are identified.
    pub fn list_type(&self) -> &ListType {
        &self.list
    }

    /// The declared members.
    pub fn properties(&self) -> impl Iterator<Item = (&str, &Self)> {
        self.properties.iter().map(|(name, node)| (&**name, node))
    }

    /// The elements of a list.
    pub fn items(&self) -> Option<&Self> {
        self.items.as_deref()
    }

    /// The values of a map.
    pub fn additional(&self) -> Option<&Self> {
        self.additional.as_deref()
    }

    /// The members that an object must have.
    pub fn required(&self) -> impl Iterator<Item = &str> {
        self.required.iter().map(|name| &**name)
    }

    /// The values of `enum`; empty if there is none.
    pub fn members(&self) -> &[Value] {
        self.limits.as_ref().map_or(&[], |limits| &limits.members)
    }

    /// The format, if the API server checks it.
    pub fn format(&self) -> Option<&str> {
        self.limits.as_ref()?.format.as_ref().map(|(_, name)| &**name)
    }

    /// The value that the API server sets where it is missing.
    pub fn default_value(&self) -> Option<&Value> {
        self.default.as_deref()
    }

    /// How the schema treats a member or an element.
    pub(super) fn below(&self, token: &str) -> FieldSchema<'_> {
        let items = self.items.as_deref().filter(|_| is_index(token));
        let is_meta = || self.is_embedded && TYPE_META.contains(&token);
        if let Some(node) = self.property(token).or(items).or(self.additional.as_deref()) {
            FieldSchema::Declared(node)
        } else if self.preserves_unknown || is_meta() {
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
        let mut children = children.chain(self.additional()).chain(self.items());
        !self.rules.is_empty() || self.has_junctor_rules || children.any(Self::has_rules)
    }
}

impl Range {
    pub(super) fn is_below(self, count: usize) -> bool {
        self.min.is_some_and(|min| i64::try_from(count).is_ok_and(|count| count < min))
    }

    pub(super) fn is_above(self, count: usize) -> bool {
        self.max.is_some_and(|max| i64::try_from(count).is_ok_and(|count| count > max))
    }
}

/// The members of an embedded object that are never pruned.
pub(super) const TYPE_META: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// The values of `additionalProperties: true`: their members are pruned.
static EMPTY: LazyLock<Node> = LazyLock::new(Node::default);

/// An index, or what stands for one in a pointer: `*` for each element, `-1` for the last.
fn is_index(token: &str) -> bool {
    matches!(token, "*" | "-1")
        || (!token.is_empty() && token.bytes().all(|byte| byte.is_ascii_digit()))
}

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
        let boxed = |name: &str| keywords.get(name).map(|schema| Box::new(child(schema)));
        let types = types(keywords);
        let additional = keywords.get("additionalProperties");
        let mut properties: Vec<(Box<str>, Node)> = match keywords.get("properties") {
            Some(Value::Object(all)) => {
                all.iter().map(|(name, schema)| (name.as_str().into(), child(schema))).collect()
            }
            _ => Vec::new(),
        };
        properties.sort_by(|(one, _), (other, _)| one.cmp(other));
        let mut junctors = Vec::new();
        let several =
            [("allOf", Junctor::AllOf), ("anyOf", Junctor::AnyOf), ("oneOf", Junctor::OneOf)];
        for (name, junctor) in several {
            if let Some(Value::Array(list)) =
                keywords.get(name).filter(|list| *list != &Value::Array(Vec::new()))
            {
                junctors.push((junctor, list.iter().map(child).collect()));
            }
        }
        if let Some(not) = keywords.get("not") {
            junctors.push((Junctor::Not, Box::from([child(not)])));
        }
        let has_junctor_rules =
            junctors.iter().flat_map(|(_, nodes): &(_, Box<[Node]>)| nodes).any(Node::has_rules);
        let rules = keywords.get("x-kubernetes-validations").and_then(Value::as_array);
        let rules = rules.filter(|_| self.minor >= RULES).into_iter().flatten();
        Node {
            types,
            nullable: is_true(keywords, "nullable"),
            preserves_unknown: is_true(keywords, "x-kubernetes-preserve-unknown-fields"),
            is_embedded: is_true(keywords, "x-kubernetes-embedded-resource"),
            keeps_additional: additional == Some(&Value::Bool(true)),
            list: match keywords.get("x-kubernetes-list-type").and_then(Value::as_str) {
                Some("set") => ListType::Set,
                Some("map") => ListType::Map(texts(keywords, "x-kubernetes-list-map-keys")),
                _ => ListType::Atomic,
            },
            properties: properties.into(),
            additional: boxed("additionalProperties")
                .filter(|_| additional.is_some_and(Value::is_object)),
            items: boxed("items"),
            required: texts(keywords, "required"),
            default: keywords
                .get("default")
                .filter(|value| !value.is_null())
                .map(|value| Box::new(number::stored(value))),
            limits: self.limits(keywords, types),
            junctors: junctors.into(),
            has_junctor_rules,
            rules: rules.map(|rule| Rule::new(rule, keywords, self.correlates)).collect(),
            unknown: forbidden(keywords),
        }
    }

    fn limits(self, keywords: &Map<String, Value>, types: &[&str]) -> Option<Box<Limits>> {
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
        let limits = Limits {
            members: members.into_iter().flatten().map(number::stored).collect(),
            format: text("format")
                .and_then(|name| Some((Format::find(name, types, self.minor)?, name.into()))),
            pattern: text("pattern").filter(|text| !text.is_empty()).map(Pattern::new),
            length: range("minLength", "maxLength"),
            items: range("minItems", "maxItems"),
            properties: range("minProperties", "maxProperties"),
            minimum: bound("minimum", "exclusiveMinimum"),
            maximum: bound("maximum", "exclusiveMaximum"),
            multiple_of: number("multipleOf"),
            has_ranges: self.minor >= INT32_RANGES && types.len() == 1,
        };
        let is_needed = !limits.members.is_empty()
            || limits.format.is_some()
            || limits.pattern.is_some()
            || [limits.length, limits.items, limits.properties] != [Range::default(); 3]
            || limits.minimum.is_some()
            || limits.maximum.is_some()
            || limits.multiple_of.is_some();
        is_needed.then(|| Box::new(limits))
    }
}

fn types(keywords: &Map<String, Value>) -> &'static [&'static str] {
    if is_true(keywords, "x-kubernetes-int-or-string") {
        return INT_OR_STRING;
    }
    match keywords.get("type").and_then(Value::as_str) {
        Some("object") => &["object"],
        Some("array") => &["array"],
        Some("string") => &["string"],
        Some("integer") => &["integer"],
        Some("number") => &["number"],
        Some("boolean") => &["boolean"],
        _ => &[],
    }
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
