//! Recorded status writes of real controllers, judged one after the other at the time of the record.
//!
//! Each file of `tests/fixtures/recorded` has the writes of one system in the order of their times, from
//! the audit log of kube-apiserver 1.36. Metadata and spec have only the members that some rule reads.

use std::collections::BTreeMap;
use std::fs;

use serde::Deserialize;
use serde_json::Value;
use statusgate_core::policy::{PolicySet, Source};

use crate::support::{Write, policy};

/// A status write that the API server accepted.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Recorded {
    resource: String,
    user: String,
    time: String,
    /// The stored status, unless it is the one of the previous write of this object.
    stored: Option<Value>,
    /// The object of the write.
    object: Value,
    /// The findings of the validating webhook: action, field and rule.
    #[serde(default)]
    findings: Vec<String>,
}

#[test]
fn no_recorded_write_of_a_controller_is_denied_or_patched() {
    let linkerd = "convention: metav1, resources: [{apiGroups: [policy.linkerd.io], \
                   apiVersions: [v1alpha1], resources: [httplocalratelimitpolicies]}]";
    let mut documents = PolicySet::examples();
    documents.push(Source::new("linkerd.yaml", policy("linkerd", linkerd)));
    let policies = PolicySet::compile(&documents).unwrap();
    let mut faults = Vec::new();
    let recorded = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/recorded");
    for path in fs::read_dir(recorded).unwrap().map(|entry| entry.unwrap().path()) {
        let text = fs::read_to_string(&path).unwrap();
        let mut stored: BTreeMap<String, Value> = BTreeMap::new();
        let (mut judged, mut system) = (0, path.file_stem().unwrap().to_string_lossy());
        system.to_mut().push(':');
        for (number, line) in (1..).zip(text.lines()) {
            let write: Recorded = serde_json::from_str(line).unwrap();
            let metadata = &write.object["metadata"];
            let name = format!("{} {}/{}", write.resource, metadata["namespace"], metadata["name"]);
            let new = write.object["status"].clone();
            let before = stored.insert(name.clone(), new);
            let before =
                write.stored.clone().or(before).expect("the first write states the stored status");
            let outcome = write.write(before).review(&policies);
            let found = outcome.findings.iter();
            let found: Vec<String> = found
                .map(|found| format!("{} {} {}", found.action.label(), found.field, found.rule))
                .collect();
            let fits = found == write.findings && !outcome.is_denied() && !outcome.is_patched();
            if !fits {
                let lines = outcome.lines();
                faults.push(format!(
                    "{system}{number}: {name}: {lines:#?} {}\n{found:?}",
                    outcome.patch
                ));
            }
            judged += 1;
        }
        assert!(judged >= 35, "{}: {judged} writes", path.display());
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

impl Recorded {
    fn write(&self, stored: Value) -> Write {
        let api_version = self.object["apiVersion"].as_str().unwrap();
        let (group, version) = api_version.split_once('/').unwrap();
        let mut old = self.object.clone();
        old["status"] = stored;
        Write::of_texts(Some(old.to_string()), self.object.to_string())
            .addressing(group, version, &self.resource)
            .by(&self.user)
            .at(&self.time)
    }
}
