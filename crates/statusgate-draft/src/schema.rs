//! What a CustomResourceDefinition says about a status.

use serde_json::Value;

use super::text::escaped;

/// The parts of a CustomResourceDefinition that become rules.
#[derive(Debug, Default)]
pub struct StatusSchema {
    /// The fields with an enum, by path.
    pub(crate) enums: Vec<(String, Vec<String>)>,
    /// The required fields.
    pub(crate) required: Vec<String>,
    /// The keys of lists, by path.
    pub(crate) keys: Vec<(String, Vec<String>)>,
}

/// The fields that are read, and how deep.
const MAX_FIELDS: usize = 256;
const MAX_DEPTH: usize = 3;

impl StatusSchema {
    /// Reads the schema of one version; of an unknown version, of the first. What is no definition has none.
    pub fn read(definition: &str, version: &str) -> Self {
        let mut schema = Self::default();
        let Ok(definition) = serde_json::from_str::<Value>(definition) else { return schema };
        let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
        let mut versions = versions.into_iter().flatten();
        let first = versions.clone().next();
        let found = versions.find(|found| found["name"] == version).or(first);
        let status =
            found.and_then(|found| found.pointer("/schema/openAPIV3Schema/properties/status"));
        if let Some(status) = status {
            schema.walk(status, "/status", 0);
        }
        schema
    }

    fn walk(&mut self, node: &Value, path: &str, depth: usize) {
        if self.enums.len() + self.required.len() + self.keys.len() >= MAX_FIELDS {
            return;
        }
        let values: Vec<String> = texts(&node["enum"]);
        if !values.is_empty() {
            self.enums.push((path.to_owned(), values));
        }
        let keys = texts(&node["x-kubernetes-list-map-keys"]);
        if !keys.is_empty() {
            self.keys.push((path.to_owned(), keys));
        }
        let required = texts(&node["required"]);
        self.required.extend(
            required.iter().filter(|_| depth == 0).map(|name| format!("{path}/{}", escaped(name))),
        );
        let properties = node["properties"].as_object().filter(|_| depth < MAX_DEPTH);
        for (name, inner) in properties.into_iter().flatten() {
            self.walk(inner, &format!("{path}/{}", escaped(name)), depth + 1);
        }
    }

    /// The enum of a field.
    pub(crate) fn values(&self, path: &str) -> Option<&[String]> {
        self.enums.iter().find(|(known, _)| known == path).map(|(_, values)| values.as_slice())
    }
}

fn texts(list: &Value) -> Vec<String> {
    let items = list.as_array().into_iter().flatten();
    items.filter_map(|item| Some(item.as_str()?.to_owned())).collect()
}
