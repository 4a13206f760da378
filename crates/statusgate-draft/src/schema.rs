//! What a CustomResourceDefinition says about a status.

use indexmap::IndexMap;
use serde_json::Value;

use super::text::escaped;

/// The parts of a CustomResourceDefinition that become rules.
#[derive(Debug, Default)]
pub struct StatusSchema {
    /// The fields with an enum, by path.
    pub(crate) enums: IndexMap<String, Vec<String>>,
    /// The required fields.
    pub(crate) required: Vec<String>,
    /// The keys of lists, by path.
    pub(crate) keys: IndexMap<String, Vec<String>>,
}

/// The fields that are read, and how deep.
const MAX_FIELDS: usize = 256;
const MAX_DEPTH: usize = 3;

impl StatusSchema {
    /// Reads the schema of one version; of an unknown version, of the first. What is no definition has none.
    pub fn read(definition: &str, version: &str) -> Self {
        let mut schema = Self::default();
        let definition: Value = serde_json::from_str(definition).unwrap_or_default();
        let versions = definition["spec"]["versions"].as_array().into_iter().flatten();
        let first = versions.clone().next();
        if let Some(found) = versions.clone().find(|found| found["name"] == version).or(first) {
            let status = &found["schema"]["openAPIV3Schema"]["properties"]["status"];
            let required = texts(&status["required"]).into_iter();
            schema.required = required.map(|name| format!("/status/{}", escaped(&name))).collect();
            schema.walk(status, "/status", 0);
        }
        schema
    }

    fn walk(&mut self, node: &Value, path: &str, depth: usize) {
        if self.enums.len() + self.required.len() + self.keys.len() >= MAX_FIELDS {
            return;
        }
        let (values, keys) = (texts(&node["enum"]), texts(&node["x-kubernetes-list-map-keys"]));
        if !values.is_empty() {
            self.enums.insert(path.to_owned(), values);
        }
        if !keys.is_empty() {
            self.keys.insert(path.to_owned(), keys);
        }
        let properties = node["properties"].as_object().filter(|_| depth < MAX_DEPTH);
        for (name, inner) in properties.into_iter().flatten() {
            self.walk(inner, &format!("{path}/{}", escaped(name)), depth + 1);
        }
    }
}

fn texts(list: &Value) -> Vec<String> {
    let items = list.as_array().into_iter().flatten();
    items.filter_map(|item| Some(item.as_str()?.to_owned())).collect()
}
