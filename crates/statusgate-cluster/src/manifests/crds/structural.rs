//! A structural schema from the JSON Schema of a document.

use serde_json::{Map, Value, json};

/// The structural schema of a key of a document.
pub(super) fn of(document: &Value, key: &str) -> Value {
    let mut schema = Converter { document, inside: Vec::new() };
    schema.convert(&document["properties"][key])
}

struct Converter<'s> {
    document: &'s Value,
    /// The definitions that contain the current place.
    inside: Vec<&'s str>,
}

impl<'s> Converter<'s> {
    fn convert(&mut self, schema: &'s Value) -> Value {
        let mut converted = self.shape(schema);
        // The description of a key replaces that of its type.
        if let Some(about) = schema.get("description").and_then(Value::as_str) {
            converted["description"] = match self.words(schema) {
                Some(words) => format!("{about} One of {}.", words.join(", ")).into(),
                None => about.into(),
            };
        }
        converted
    }

    /// The words of which a value is one.
    fn words(&self, schema: &'s Value) -> Option<Vec<&'s str>> {
        if let Some(name) = name(schema) {
            return self.words(&self.document["$defs"][name]);
        }
        match &without_null(choices(schema)?)[..] {
            [only] => self.words(only),
            several => several.iter().map(|choice| choice.get("const")?.as_str()).collect(),
        }
    }

    fn shape(&mut self, schema: &'s Value) -> Value {
        if let Some(name) = name(schema) {
            if self.inside.contains(&name) {
                return anything();
            }
            self.inside.push(name);
            let converted = self.convert(&self.document["$defs"][name]);
            self.inside.pop();
            return converted;
        }
        if let Some(choices) = choices(schema) {
            return self.union(choices);
        }
        let Some(name) = schema.get("type").and_then(Value::as_str) else { return anything() };
        let mut converted = json!({"type": name});
        match name {
            "object" => {
                let keys = schema.get("properties").and_then(Value::as_object);
                let values = schema.get("additionalProperties").filter(|values| values.is_object());
                match (keys, values) {
                    (None, Some(values)) => {
                        converted["additionalProperties"] = self.convert(values);
                    }
                    (Some(keys), _) => {
                        let keys =
                            keys.iter().map(|(key, schema)| (key.clone(), self.convert(schema)));
                        converted["properties"] = keys.collect::<Map<_, _>>().into();
                        converted["x-kubernetes-preserve-unknown-fields"] = json!(true);
                    }
                    (None, None) => converted["x-kubernetes-preserve-unknown-fields"] = json!(true),
                }
            }
            "array" => converted["items"] = self.convert(&schema["items"]),
            _ => {}
        }
        converted
    }

    /// One of several, and null. What differs in its type can be anything.
    fn union(&mut self, choices: &'s [Value]) -> Value {
        let others = without_null(choices);
        let types: Option<Vec<&str>> =
            others.iter().map(|choice| choice["type"].as_str()).collect();
        let mut converted = match (&others[..], types.as_deref()) {
            ([only], _) => self.convert(only),
            (_, Some([first, rest @ ..])) if rest.iter().all(|other| other == first) => {
                json!({"type": first})
            }
            _ => anything(),
        };
        if others.len() < choices.len() {
            converted["nullable"] = json!(true);
        }
        converted
    }
}

/// The name of the definition that a schema refers to.
fn name(schema: &Value) -> Option<&str> {
    schema.get("$ref")?.as_str()?.strip_prefix("#/$defs/")
}

fn choices(schema: &Value) -> Option<&Vec<Value>> {
    schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array)
}

fn without_null(choices: &[Value]) -> Vec<&Value> {
    choices.iter().filter(|choice| choice["type"] != "null").collect()
}

/// Any value. A null stays, too: without `nullable`, the API server drops one from a document.
fn anything() -> Value {
    json!({"x-kubernetes-preserve-unknown-fields": true, "nullable": true})
}
