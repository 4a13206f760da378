//! The structural check: every unknown key, wrong type, missing key and unsupported word of a tree at
//! once, found by walking it along the schema of its type.
//!
//! Each rejected value is replaced by a placeholder of the right type, and so is each missing one. The
//! rest of the document can then be read and compiled, so no error hides another. A placeholder has
//! [`Span::NOWHERE`], and `Problems` drops what is reported there.

use std::sync::LazyLock;

use indexmap::IndexSet;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::kind::Envelope;
use super::schema::{Schema, Subschema, text};
use super::shapes::check_form;
use super::{ConventionSpec, DocumentKind, PolicySpec};
use crate::language::any_of;
use crate::model::Json;
use crate::source::tree::{Key, Node, Problems, Span, Value};

static ENVELOPE: LazyLock<Schema> = LazyLock::new(Schema::of::<Envelope>);
static POLICY: LazyLock<Schema> = LazyLock::new(Schema::of::<PolicySpec>);
static CONVENTION: LazyLock<Schema> = LazyLock::new(Schema::of::<ConventionSpec>);

/// A `spec` that can be checked.
pub(crate) trait Spec: DeserializeOwned {
    /// Its schema.
    const SCHEMA: &'static LazyLock<Schema>;
}

impl Spec for PolicySpec {
    const SCHEMA: &'static LazyLock<Schema> = &POLICY;
}

impl Spec for ConventionSpec {
    const SCHEMA: &'static LazyLock<Schema> = &CONVENTION;
}

/// Checks everything of a document but its `spec`. Returns its kind, if it has one.
pub(crate) fn envelope(document: &mut Node, problems: &Problems) -> Option<DocumentKind> {
    move_below_spec(document, problems);
    let validator = Validator { schema: &ENVELOPE, complete: true, problems };
    validator.node(document, &ENVELOPE.root);
    let kind = document.member("kind").filter(|kind| kind.span != Span::NOWHERE)?;
    DocumentKind::deserialize(kind).ok()
}

/// Moves the keys of a spec that are next to it into it: they are not missing there.
fn move_below_spec(document: &mut Node, problems: &Problems) {
    let kind = document.member("kind").and_then(|kind| DocumentKind::deserialize(kind).ok());
    let schema = match kind {
        Some(DocumentKind::StatusPolicy) => &*POLICY,
        Some(DocumentKind::StatusConvention) => &*CONVENTION,
        None => return,
    };
    let Some(entries) = document.entries_mut() else { return };
    let misplaced: Vec<_> = entries
        .extract_if(.., |(key, _)| property(schema.solid(&schema.root), &key.name).is_some())
        .collect();
    for (key, _) in &misplaced {
        let message = format!("unknown key \"{}\"", key.name);
        problems.report_with_help(&key.span, message, Some("move it below \"spec\"".to_owned()));
    }
    if let Some(spec) = document.member_mut("spec").and_then(Node::entries_mut) {
        for (key, node) in misplaced {
            if spec.iter().all(|(known, _)| known.name != key.name) {
                spec.push((key, node));
            }
        }
    }
}

/// Checks a `spec` and reads it. `complete` is false for a convention that extends an unknown one: what
/// it inherits is not missing. `spec` keeps the placeholders.
pub(crate) fn spec<T: Spec>(spec: &mut Node, complete: bool, problems: &Problems) -> Option<T> {
    let validator = Validator { schema: T::SCHEMA, complete, problems };
    validator.node(spec, &T::SCHEMA.root);
    // The validator and serde have the same types, so this cannot fail; a test breaks documents at random.
    T::deserialize(&*spec).map_err(|error| problems.report(&spec.span, error.to_string())).ok()
}

struct Validator<'c> {
    schema: &'c Schema,
    complete: bool,
    problems: &'c Problems,
}

impl Validator<'_> {
    fn node(&self, node: &mut Node, schema: &Subschema) {
        let choices = self.schema.choices(schema);
        if choices.iter().any(|choice| types(choice).is_empty()) {
            self.finite(node);
            return;
        }
        let mut fitting = choices.clone();
        fitting.retain(|choice| is_type(choice, &node.value));
        let accepted = match &mut node.value {
            _ if fitting.is_empty() => {
                self.wrong_type(node, schema, &choices);
                false
            }
            Value::Map(entries) => {
                let best = fitting.into_iter().max_by_key(|choice| {
                    entries.iter().filter(|(key, _)| property(choice, &key.name).is_some()).count()
                });
                best.is_some_and(|best| self.mapping(&node.span, entries, best))
            }
            Value::List(items) => {
                // A union has at most one list.
                fitting.first().is_some_and(|list| self.list(&node.span, items, list, schema))
            }
            value => self.scalar(&node.span, value, &fitting),
        };
        if !accepted {
            *node = self.placeholder(schema);
        }
    }

    fn wrong_type(&self, node: &Node, schema: &Subschema, choices: &[&Subschema]) {
        let wanted: IndexSet<&str> =
            choices.iter().flat_map(|choice| types(choice)).map(called).collect();
        let is_scalar = matches!(node.value, Value::Bool(_) | Value::Integer(_) | Value::Float(_));
        let hint = if is_scalar && wanted.contains("a string") { " (quote it)" } else { "" };
        let wanted = any_of(wanted.into_iter().map(str::to_owned));
        let found = node.value.kind();
        let inherits = text(self.schema.solid(&self.schema.root), "x-merge").is_some();
        let help = match &node.value {
            Value::Null if inherits => {
                Some("null removes what is inherited; nothing is inherited here")
            }
            _ => text(self.schema.solid(schema), "x-help"),
        };
        let message = format!("this must be {wanted}, it is {found}{hint}");
        self.problems.report_with_help(&node.span, message, help.map(str::to_owned));
    }

    /// Whether a list has the items that it needs.
    fn list(&self, span: &Span, items: &mut [Node], schema: &Subschema, outer: &Subschema) -> bool {
        if let Some(schema) = schema.get("items") {
            items.iter_mut().for_each(|item| self.node(item, schema));
        }
        let empty = items.is_empty()
            && schema.get("minItems").is_some_and(|least| least.as_i64() != Some(0));
        if empty {
            let why = text(outer, "x-empty").or_else(|| text(schema, "x-empty"));
            self.problems.report(span, why.unwrap_or("this list must not be empty"));
        }
        !empty
    }

    /// Whether what is left of a mapping can be read.
    fn mapping(&self, span: &Span, entries: &mut Vec<(Key, Node)>, schema: &Subschema) -> bool {
        let must_not_be_empty = schema.get("minProperties").is_some();
        if entries.is_empty() && must_not_be_empty {
            let why = text(schema, "x-empty").unwrap_or("this mapping must not be empty");
            self.problems.report(span, why);
            return false;
        }
        let apart = two_apart(schema, entries).map(|(one, other)| {
            let message = format!("\"{}\" and \"{}\" need a predicate each", one.name, other.name);
            let help = "several predicates that must all hold are a list: all: [{…}, {…}]";
            self.problems.report_with_help(&other.span, message, Some(help.to_owned()));
        });
        let mut parts = vec![schema];
        let mut elsewhere = Vec::new();
        for part in schema.get("allOf").and_then(Json::as_array).into_iter().flatten() {
            match (part.get("if"), part.get("then")) {
                (Some(condition), Some(then)) if holds(condition, entries) => {
                    parts.push(self.schema.solid(then));
                }
                (Some(condition), _) => mentioned(condition, &mut elsewhere),
                _ => {}
            }
        }
        let inherits = !self.complete && text(schema, "x-merge").is_some();
        let name = text(schema, "x-name");
        if inherits {
            // Null removes what is inherited, which is unknown here.
            entries.retain(|(key, node)| {
                let known = property(schema, &key.name).or_else(|| others(schema));
                let is_own = known.is_none_or(|known| known.get("x-own").is_some());
                is_own || name == Some(&key.name) || !matches!(node.value, Value::Null)
            });
        }
        for (part, key) in parts.iter().flat_map(|part| required(part).map(move |key| (part, key)))
        {
            if entries.iter().any(|(known, _)| known.name == key) {
                continue;
            }
            if !inherits || name == Some(key) {
                self.problems.report(span, format!("missing required key \"{key}\""));
            }
            entries.extend(self.missing(part, key));
        }
        entries.retain_mut(|(key, node)| {
            let named = parts.iter().find_map(|part| property(part, &key.name));
            if let Some(schema) = named.or_else(|| others(schema)) {
                // Placeholders too: the one of a value that is not JSON is null.
                if !matches!(node.value, Value::Null) || schema.get("x-off").is_none() {
                    self.node(node, schema);
                }
                return true;
            }
            let keys = parts.iter().flat_map(|part| properties(part)).map(|(key, _)| key);
            let keys: Vec<&str> = keys.chain(elsewhere.iter().copied()).collect();
            self.problems.unknown(&key.span, "key", &key.name, keys.into_iter());
            false
        });
        apart.is_none() && !(entries.is_empty() && must_not_be_empty)
    }

    /// Whether a scalar is one of the words and has the form of its type.
    fn scalar(&self, span: &Span, value: &Value, fitting: &[&Subschema]) -> bool {
        let value = serde_json::to_value(value).unwrap_or_default();
        let supported: Vec<&Subschema> = fitting.iter().flat_map(|choice| words(choice)).collect();
        if value.is_null() {
            self.problems.report(span, NO_JSON);
            return false;
        }
        if supported.contains(&&Json::from(&value)) {
            return true;
        }
        if fitting.iter().all(|choice| words(choice).next().is_some()) {
            let found = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let words = supported.iter().filter_map(|word| word.as_str());
            self.problems.unknown(span, "value", &found, words);
            return false;
        }
        let error = fitting.iter().find_map(|choice| {
            if let (Some(form), Some(text)) = (text(choice, "x-check"), value.as_str()) {
                return check_form(form, text).err();
            }
            let Json::Number(least) = choice.get("minimum")? else { return None };
            let both = value.as_f64().zip(least.as_f64());
            let too_small = both.is_some_and(|(number, least)| number < least);
            too_small.then(|| format!("this must be at least {least}, it is {value}"))
        });
        let Some(error) = error else { return true };
        self.problems.report(span, error);
        false
    }

    /// `.inf` and `.nan` exist only in YAML. In a patch they would be null.
    fn finite(&self, node: &mut Node) {
        match &mut node.value {
            Value::Float(value) if !value.is_finite() => {
                self.problems.report(&node.span, NO_JSON);
                *node = Node::placeholder(Value::Null);
            }
            Value::List(items) => items.iter_mut().for_each(|item| self.finite(item)),
            Value::Map(entries) => entries.iter_mut().for_each(|(_, node)| self.finite(node)),
            _ => {}
        }
    }

    /// Something that can be read in the place of a value that was rejected or is missing.
    fn placeholder(&self, schema: &Subschema) -> Node {
        let choices = self.schema.choices(schema);
        let Some(schema) = choices.first() else { return Node::placeholder(Value::Null) };
        if let Some(Json::String(word)) = words(schema).next() {
            return Node::placeholder(Value::String(word.to_string()));
        }
        Node::placeholder(match types(schema).first().copied() {
            Some("string") => {
                let form = text(schema, "x-check").unwrap_or_default();
                let mut texts =
                    ["", "placeholder", PLACEHOLDER_POINTER, "/spec/placeholder", "1s"].into_iter();
                let fitting = texts.find(|text| check_form(form, text).is_ok());
                Value::String(fitting.unwrap_or_default().to_owned())
            }
            Some("boolean") => Value::Bool(false),
            Some("integer" | "number") => Value::Integer(0),
            Some("array") => {
                let needed = schema.get("minItems").and_then(|_| schema.get("items"));
                Value::List(needed.map(|item| self.placeholder(item)).into_iter().collect())
            }
            Some("object") => {
                Value::Map(required(schema).filter_map(|key| self.missing(schema, key)).collect())
            }
            _ => Value::Null,
        })
    }

    fn missing(&self, schema: &Subschema, key: &str) -> Option<(Key, Node)> {
        Some((Key::placeholder(key), self.placeholder(property(schema, key)?)))
    }
}

/// The placeholder of a pointer below `.status`.
pub(crate) const PLACEHOLDER_POINTER: &str = "/status/placeholder";

const NO_JSON: &str = "JSON does not support this number";

fn property<'s>(schema: &'s Subschema, key: &str) -> Option<&'s Subschema> {
    schema.get("properties")?.get(key)
}

fn properties(schema: &Subschema) -> impl Iterator<Item = (&str, &Subschema)> {
    let properties = match schema.get("properties") {
        Some(Json::Object(properties)) => Some(properties.iter()),
        _ => None,
    };
    properties.into_iter().flatten()
}

/// The schema of keys that are names.
fn others(schema: &Subschema) -> Option<&Subschema> {
    schema
        .get("additionalProperties")
        .filter(|others| matches!(others, Json::Object(_) | Json::Bool(true)))
}

fn required(schema: &Subschema) -> impl Iterator<Item = &str> {
    schema.get("required").and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str)
}

/// The words that a schema lists.
fn words(schema: &Subschema) -> impl Iterator<Item = &Subschema> {
    let several = schema.get("enum").and_then(Json::as_array).into_iter().flatten();
    several.chain(schema.get("const"))
}

/// Two keys of a predicate that need a predicate each.
fn two_apart<'e>(schema: &Subschema, entries: &'e [(Key, Node)]) -> Option<(&'e Key, &'e Key)> {
    let apart = schema.get("x-apart")?.as_array()?;
    let keys = entries.iter().map(|(key, _)| key);
    let mut keys = keys.filter(|key| apart.iter().any(|name| name.as_str() == Some(&key.name)));
    keys.next().zip(keys.next())
}

/// Whether the keys of a mapping fulfil an `if`.
fn holds(condition: &Subschema, entries: &[(Key, Node)]) -> bool {
    let any = condition.get("anyOf").and_then(Json::as_array);
    required(condition).all(|name| entries.iter().any(|(key, _)| key.name == name))
        && any.is_none_or(|any| any.iter().any(|part| holds(part, entries)))
        && condition.get("not").is_none_or(|not| !holds(not, entries))
}

/// The keys that an `if` is about.
fn mentioned<'s>(condition: &'s Subschema, keys: &mut Vec<&'s str>) {
    keys.extend(required(condition));
    let any = condition.get("anyOf").and_then(Json::as_array);
    any.into_iter().flatten().for_each(|part| mentioned(part, keys));
}

/// The types of a schema; nothing where it allows all.
fn types(schema: &Subschema) -> Vec<&str> {
    match schema.get("type") {
        Some(Json::String(one)) => vec![one],
        Some(Json::Array(several)) => several.iter().filter_map(Json::as_str).collect(),
        _ => words(schema)
            .map(|word| if matches!(word, Json::Bool(_)) { "boolean" } else { "string" })
            .collect(),
    }
}

fn is_type(schema: &Subschema, value: &Value) -> bool {
    types(schema).into_iter().any(|name| match value {
        Value::Null => false,
        Value::Bool(_) => name == "boolean",
        Value::Integer(_) => matches!(name, "integer" | "number"),
        Value::Float(_) => name == "number",
        Value::String(_) => name == "string",
        Value::List(_) => name == "array",
        Value::Map(_) => name == "object",
    })
}

fn called(name: &str) -> &'static str {
    match name {
        "string" => "a string",
        "boolean" => "a boolean",
        "integer" => "an integer",
        "number" => "a number",
        "array" => "a list",
        "object" => "a mapping",
        _ => "null",
    }
}
