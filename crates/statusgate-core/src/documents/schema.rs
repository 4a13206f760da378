//! The JSON Schemas that derive from the types.
//!
//! The structural check needs more than JSON Schema has a word for. These are the keys that begin with
//! `x-`; they are not printed:
//!
//! | key | on | meaning |
//! |---|---|---|
//! | `x-apart` | a predicate | the keys that need a predicate each |
//! | `x-check` | a string | the name of its form: see `documents::shapes` and `language::shapes` |
//! | `x-empty` | a list or mapping that must not be empty | the message |
//! | `x-help` | a union | the help when no alternative has the right type |
//! | `x-merge` | what a convention inherits | how: see `policy::extends` |
//! | `x-name` | items that are merged | the key that identifies an item, always required |
//! | `x-off` | a key with a default | null switches it off |
//! | `x-own` | a key of a convention | it is not inherited |

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::model::Json;

/// The schema of a type, for the structural check and for merging. It stays in memory, so it has no
/// descriptions and is no [`Value`]: 0.3 MB for all documents instead of 0.8.
#[derive(Debug)]
pub(crate) struct Schema {
    pub(super) root: Subschema,
}

/// A schema in a schema.
pub(super) type Subschema = Json<'static>;

impl Schema {
    pub(super) fn of<T: JsonSchema>() -> Self {
        let mut root = generated::<T>();
        // A property may also have the name `description`; its value is a schema.
        visit(&mut root, &mut |members| {
            members.retain(|key, value| key != "description" || !value.is_string());
        });
        Self { root: Json::from(&root) }
    }

    /// What a schema refers to.
    pub(super) fn solid<'s>(&'s self, mut schema: &'s Subschema) -> &'s Subschema {
        while let Some(name) = text(schema, "$ref").and_then(|to| to.strip_prefix("#/$defs/")) {
            let named = self.root.get("$defs").and_then(|named| named.get(name));
            schema = named.unwrap_or(&Json::Null);
        }
        schema
    }

    /// The alternatives of a schema, without references and unions.
    pub(super) fn choices<'s>(&'s self, schema: &'s Subschema) -> Vec<&'s Subschema> {
        let schema = self.solid(schema);
        match schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Json::as_array) {
            Some(choices) => choices.iter().flat_map(|choice| self.choices(choice)).collect(),
            None => vec![schema],
        }
    }
}

/// How a part of a convention is merged with what it inherits.
#[derive(Clone, Copy)]
pub(crate) struct Merge<'s> {
    schema: &'s Schema,
    part: &'s Subschema,
}

impl<'s> Merge<'s> {
    pub(crate) const fn of(schema: &'s Schema) -> Self {
        Self { schema, part: &schema.root }
    }

    /// `keys`, `items`, `above`, `types`, `members` or `defaults`; otherwise one replaces the other.
    pub(crate) fn how(self) -> Option<&'s str> {
        let own = text(self.part, "x-merge");
        own.or_else(|| self.choices().into_iter().find_map(|choice| text(choice, "x-merge")))
    }

    /// The value of a key.
    pub(crate) fn key(self, name: &str) -> Self {
        let part = self.choices().into_iter().find_map(|choice| {
            let named = choice.get("properties").and_then(|properties| properties.get(name));
            named.or_else(|| choice.get("additionalProperties"))
        });
        Self { part: part.unwrap_or(&Json::Null), ..self }
    }

    /// An item of a list, or of a list that one item can stand for.
    pub(crate) fn item(self) -> Self {
        let items = self.choices().into_iter().find_map(|choice| choice.get("items"));
        Self { part: items.unwrap_or(&Json::Null), ..self }
    }

    /// Whether it has a default: then null, which switches it off, is not the same as absence.
    pub(crate) fn has_default(self) -> bool {
        self.part.get("x-off").is_some()
    }

    /// Whether it is not inherited.
    pub(crate) fn is_own(self) -> bool {
        self.part.get("x-own").is_some()
    }

    fn choices(self) -> Vec<&'s Subschema> {
        self.schema.choices(self.part)
    }
}

pub(super) fn text<'s>(schema: &'s Subschema, key: &str) -> Option<&'s str> {
    schema.get(key)?.as_str()
}

fn generated<T: JsonSchema>() -> Value {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut root = generator.into_root_schema_for::<T>().to_value();
    visit(&mut root, &mut without_null);
    root
}

/// Changes all objects of a schema, the inner ones first.
fn visit(schema: &mut Value, change: &mut dyn FnMut(&mut Map<String, Value>)) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(|item| visit(item, change)),
        Value::Object(members) => {
            members.values_mut().for_each(|member| visit(member, change));
            change(members);
        }
        _ => {}
    }
}

/// No key of a document may be null: `Option` means that it may be absent. (What null switches off has
/// `x-off`.)
fn without_null(members: &mut Map<String, Value>) {
    // An API server would write a default into documents that inherit another value.
    if members.contains_key("x-off") {
        members.remove("default");
    }
    if let Some(Value::Array(types)) = members.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = &mut types[..] {
            let only = only.take();
            members.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(choices)) = members.get_mut("anyOf") {
        choices.retain(|choice| choice["type"] != "null");
        if let [only] = &mut choices[..] {
            let only = only.take();
            members.remove("anyOf");
            members.extend(only.as_object().cloned().unwrap_or_default());
        }
    }
}

/// The schema for editors.
pub(super) fn printed<T: JsonSchema>(inherits: bool) -> Value {
    let mut schema = generated::<T>();
    if inherits {
        visit(&mut schema, &mut allow_null);
    }
    visit(&mut schema, &mut |members| members.retain(|key, _| !key.starts_with("x-")));
    schema
}

/// Makes what may be inherited optional, and removable by null.
fn allow_null(schema: &mut Map<String, Value>) {
    if !schema.contains_key("x-merge") {
        return;
    }
    let name = schema.get("x-name").and_then(Value::as_str).map(str::to_owned);
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        for (key, property) in properties {
            if name.as_ref() != Some(key) && property.get("x-own").is_none()
                || property.get("x-off").is_some()
            {
                *property = or_null(property);
            }
        }
        schema.insert("required".to_owned(), name.into_iter().collect());
    }
    if let Some(values) = schema.get_mut("additionalProperties").filter(|values| values.is_object())
    {
        *values = or_null(values);
    }
}

fn or_null(schema: &Value) -> Value {
    let description = schema.get("description").cloned();
    let mut either = json!({"anyOf": [schema, {"type": "null"}]});
    if let Some(description) = description {
        either["description"] = description;
    }
    either
}
