//! Writes as the fixtures describe them.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use statusgate_core::engine::Action;
use statusgate_core::kstatus::compute;
use statusgate_core::model::Json;

use crate::support::{NOW, Outcome, T0, Write};

const CREATED: &str = "2024-05-01T00:00:00Z";

/// An update of the status subresource.
#[derive(Clone, Debug, Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    #[serde(default = "version")]
    version: String,
    #[serde(default = "plural")]
    plural: String,
    #[serde(default = "generation")]
    generation: i64,
    #[serde(default)]
    metadata: Value,
    #[serde(default)]
    spec: Value,
    /// The stored status; null without one.
    #[serde(default)]
    old: Value,
    new: Value,
}

fn version() -> String {
    "v1".to_owned()
}

fn plural() -> String {
    "things".to_owned()
}

const fn generation() -> i64 {
    1
}

impl Case {
    pub(crate) fn write(&self) -> Write {
        let present = |status: &Value| Some(status.clone()).filter(|status| !status.is_null());
        let mut write = Write::to(&self.plural)
            .version(&self.version)
            .stored(present(&self.old))
            .sent(present(&self.new))
            .both("/metadata/generation", self.generation)
            .both("/metadata/creationTimestamp", CREATED);
        for (name, value) in self.metadata.as_object().into_iter().flatten() {
            write = write.both(&format!("/metadata/{name}"), value.clone());
        }
        if self.spec.is_null() { write } else { write.both("/spec", self.spec.clone()) }
    }
}

/// `deny`, `warn`, `mutate` or `allow`.
pub(crate) fn verdict(outcome: &Outcome) -> &'static str {
    let warns = outcome.findings.iter().any(|found| found.action == Action::Warn);
    match (outcome.is_denied(), warns, outcome.is_patched()) {
        (true, ..) => "deny",
        (_, true, _) => "warn",
        (.., true) => "mutate",
        _ => "allow",
    }
}

pub(crate) fn rules(outcome: &Outcome) -> BTreeSet<&str> {
    outcome.findings.iter().map(|found| found.rule.as_str()).collect()
}

/// The kstatus result of the object after the patch.
pub(crate) fn kstatus(outcome: &Outcome) -> String {
    let object = outcome.object().to_string();
    let now = NOW.parse::<jiff::Timestamp>().unwrap().as_second();
    compute(&Json::parse(&object).unwrap(), now).unwrap().status.name().to_owned()
}

pub(crate) fn fixtures(folder: &str) -> Vec<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(folder);
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// Reads a fixture. Its times have names: `t0` and `t1` are before `now`, the time of the write.
pub(crate) fn read<T: DeserializeOwned>(path: &PathBuf) -> T {
    let text = fs::read_to_string(path).unwrap();
    let mut value: Value =
        serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    name_times(&mut value);
    serde_json::from_value(value).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn name_times(value: &mut Value) {
    match value {
        Value::String(text) => {
            let time = match text.as_str() {
                "t0" => T0,
                "t1" => "2024-06-01T11:30:00Z",
                "now" => NOW,
                "created" => CREATED,
                _ => return,
            };
            time.clone_into(text);
        }
        Value::Array(items) => items.iter_mut().for_each(name_times),
        Value::Object(members) => members.values_mut().for_each(name_times),
        _ => {}
    }
}
