//! Writes as fixtures describe them, and what the two webhooks say of them.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use statusgate::engine::{Action, decide};
use statusgate::kstatus::compute;
use statusgate::model::{Json, Object, Operation, Resource, Subject, Webhook, Writer};
use statusgate::policy::{PolicySet, Source};

pub(crate) const NOW: &str = "2024-06-01T12:00:00Z";
const CREATED: &str = "2024-05-01T00:00:00Z";

/// An UPDATE of the status subresource.
#[derive(Clone, Debug, Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Write {
    #[serde(default = "version")]
    pub(crate) version: String,
    #[serde(default = "plural")]
    pub(crate) plural: String,
    #[serde(default = "generation")]
    pub(crate) generation: i64,
    #[serde(default)]
    pub(crate) metadata: Value,
    #[serde(default)]
    pub(crate) spec: Value,
    /// The stored status; absent, where nobody has written one.
    #[serde(default)]
    pub(crate) old: Value,
    pub(crate) new: Value,
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

/// What came of a write.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// `null` where there is none.
    pub(crate) patch: Value,
    /// Action, rule id and field, in the order they were found.
    pub(crate) findings: Vec<(Action, String, String)>,
}

impl Outcome {
    /// `deny`, `warn`, `mutate` or `allow`.
    pub(crate) fn verdict(&self) -> &'static str {
        let has = |wanted| self.findings.iter().any(|(action, ..)| *action == wanted);
        match (has(Action::Deny), has(Action::Warn), self.patch.is_null()) {
            (true, ..) => "deny",
            (_, true, _) => "warn",
            (.., false) => "mutate",
            _ => "allow",
        }
    }

    pub(crate) fn rules(&self) -> BTreeSet<&str> {
        self.findings.iter().map(|(_, rule, _)| rule.as_str()).collect()
    }
}

/// A bare policy: everything with this convention, at default settings but for `additions`.
pub(crate) fn policy(convention: &str, additions: &str, documents: &[Source]) -> PolicySet {
    let text = format!(
        "apiVersion: statusgate.dev/v1alpha1\nkind: StatusPolicy\nmetadata: {{name: test}}\nspec:\n  \
         convention: {convention}\n  resources: [{{apiGroups: [g], apiVersions: ['*'], resources: ['*']}}]\n{additions}"
    );
    let mut sources = documents.to_vec();
    sources.push(Source { name: "policy.yaml".into(), text });
    PolicySet::compile(&sources).unwrap_or_else(|error| panic!("{error}"))
}

impl Write {
    /// As the cluster does it: mutate, apply, validate.
    pub(crate) fn through_both(&self, policies: &PolicySet) -> Outcome {
        let mutated = self.ask(policies, Webhook::Mutate, &self.new);
        let mut object = json!({"status": self.new});
        if let Ok(patch) = serde_json::from_value(mutated.patch.clone()) {
            let patch: json_patch::Patch = patch;
            json_patch::patch(&mut object, &patch).unwrap();
        }
        let judged = self.ask(policies, Webhook::Validate, &object["status"]);
        Outcome { patch: mutated.patch, ..judged }
    }

    /// The validating webhook alone: defaults that are filled in hide the rules that miss them.
    pub(crate) fn validated(&self, policies: &PolicySet) -> Outcome {
        self.ask(policies, Webhook::Validate, &self.new)
    }

    fn ask(&self, policies: &PolicySet, webhook: Webhook, new: &Value) -> Outcome {
        let (new, old) = (self.object(Some(new)), self.object(Some(&self.old)));
        let subject = Subject {
            resource: Resource {
                group: "g".into(),
                version: self.version.as_str().into(),
                resource: self.plural.as_str().into(),
            },
            subresource: "status".into(),
            operation: Operation::Update,
            writer: Writer { user: "operator".into(), groups: Vec::new() },
            object: Object::parse(&new).unwrap(),
            old: Some(Object::parse(&old).unwrap()),
        };
        let verdict = decide(policies, &subject, webhook, NOW.parse().unwrap());
        assert!(!verdict.patch_failed, "a patch always applies");
        assert_eq!(verdict.policies, [0], "the policy applies");
        let found = |finding: &statusgate::engine::Finding<'_>| {
            (finding.action, finding.rule.to_owned(), finding.field.clone())
        };
        Outcome {
            patch: serde_json::to_value(&verdict.patch).unwrap(),
            findings: verdict.findings.iter().map(found).collect(),
        }
    }

    /// What kstatus makes of the object as it would be stored, with the patch.
    pub(crate) fn kstatus(&self, patch: &Value) -> String {
        let mut object: Value = serde_json::from_str(&self.object(Some(&self.new))).unwrap();
        let patch: json_patch::Patch = serde_json::from_value(patch.clone()).unwrap_or_default();
        json_patch::patch(&mut object, &patch).unwrap();
        let now = NOW.parse::<jiff::Timestamp>().unwrap().as_second();
        let text = object.to_string();
        compute(&Json::parse(&text).unwrap(), now).unwrap().status.to_string()
    }

    fn object(&self, status: Option<&Value>) -> String {
        let mut metadata =
            json!({"name": "n", "generation": self.generation, "creationTimestamp": CREATED});
        for (name, value) in self.metadata.as_object().into_iter().flatten() {
            metadata[name] = value.clone();
        }
        let mut object = json!({"apiVersion": format!("g/{}", self.version), "kind": "Thing",
            "metadata": metadata});
        let parts = [("spec", Some(&self.spec)), ("status", status)];
        for (name, value) in parts {
            if let Some(value) = value.filter(|value| !value.is_null()) {
                object[name] = value.clone();
            }
        }
        object.to_string()
    }
}

pub(crate) fn fixtures(folder: &str) -> Vec<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(folder);
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// Reads a fixture, with names for times: `t0` and `t1` are before `now`, the time of the write.
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
                "t0" => "2024-06-01T11:00:00Z",
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
