//! The documents with test cases.
//!
//! A case is read like a policy, in YAML 1.2, where `yes` is a string. Objects, statuses and patches are
//! read like manifests: a test that reads `status: yes` as a string would pass where the cluster rejects
//! it. So every document is read twice: these members come from the JSON of the manifest reader, their
//! locations from the tree.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use json_patch::PatchOperation;
use serde_json::{Value, json};

use crate::cli::time;
use statusgate_core::documents::{PolicySpec, suite};
use statusgate_core::source::Identity;
use statusgate_core::source::tree::{At, Node, Problems, Span, near};

/// One document: the policies, and the cases.
#[derive(Debug)]
pub(super) struct Suite {
    /// Files and folders, relative to the document.
    pub(super) policies: Vec<PathBuf>,
    pub(super) convention: Option<String>,
    /// The location of the policies.
    pub(super) place: Span,
    pub(super) cases: Vec<Case>,
}

/// One write with its expected result.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) written: suite::Case,
    /// The location of its name.
    pub(super) place: Span,
    /// The locations of the rules of the expected findings.
    pub(super) rules: Vec<Span>,
    /// A policy of its own, and where it is written.
    pub(super) policy: Option<(PolicySpec, Node)>,
    pub(super) identity: Identity,
    /// JSON text.
    pub(super) object: String,
    pub(super) old: Option<String>,
    pub(super) now: Timestamp,
    /// All operations, in order; empty for none.
    pub(super) patch: Option<Vec<PatchOperation>>,
}

impl Suite {
    /// The policies, for messages.
    pub(super) fn policies_named(&self) -> String {
        let paths = self.policies.iter().map(|path| path.display().to_string());
        let convention = self.convention.iter().map(|name| format!("convention {name}"));
        paths.chain(convention).collect::<Vec<_>>().join(", ")
    }
}

/// Whether a document contains cases. Policies in the same folder do not.
pub(super) fn is_suite(node: &Node) -> bool {
    node.member("apiVersion").is_none()
}

/// Reads a document with cases. `json` is the same document, read like a manifest; `folder` contains
/// it.
pub(super) fn read(
    mut node: Node,
    json: &Value,
    folder: &Path,
    problems: &Problems,
) -> Option<Suite> {
    let suite::Suite { policies, convention, now, cases } =
        suite::Suite::read(&mut node, problems)?;
    let at = At::root(&node, problems);
    let now = now.and_then(|text| read_time(&text, at.key("now"))).unwrap_or(LATE);
    let mut names = HashSet::new();
    let mut read = Vec::with_capacity(cases.len());
    for (index, case) in cases.into_iter().enumerate() {
        let at = at.key("cases").item(index);
        if !names.insert(case.name.clone()) {
            at.key("name").report(format!("there is a case \"{}\" already", case.name));
        }
        read.extend(read_case(case, &json["cases"][index], convention.as_deref(), now, at));
    }
    let policies = policies.map(|paths| paths.0).unwrap_or_default();
    let place = node.member("policies").or_else(|| node.member("convention")).unwrap_or(&node);
    Some(Suite {
        policies: policies.into_iter().map(|path| folder.join(path)).collect(),
        convention,
        place: place.span.clone(),
        cases: read,
    })
}

fn read_case(
    mut written: suite::Case,
    json: &Value,
    convention: Option<&str>,
    now: Timestamp,
    at: At<'_>,
) -> Option<Case> {
    let mut objects = json!({"object": json["object"]});
    if let Some(old) = json.get("old") {
        objects["old"] = old.clone();
    }
    change(&mut objects, &written, &json["with"], at);
    let object = read_object(&objects["object"], at.key("object"));
    let old = objects.get("old").and_then(|old| read_object(old, at.key("old")));
    let policy = written.policy.as_ref().and_then(|policy| {
        let at = at.key("policy");
        if convention.is_none() {
            let help = "name the convention at the top, or write a policy and name its file";
            at.report_with_help("\"policy\" needs the \"convention\" of the file", help);
        }
        Some((policy.of(convention?), at.node().clone()))
    });
    let now = written.now.as_ref().map_or(Some(now), |text| read_time(text, at.key("now")));
    let expected = &json["expect"];
    let findings = at.key("expect").key("findings");
    let rules = 0..written.expect.findings.as_ref().map_or(0, Vec::len);
    let rules = rules.map(|index| findings.item(index).key("rule").node().span.clone());
    let rules = rules.collect();
    let patch = expected.get("patch").map(|json| read_patch(json, at.key("expect").key("patch")));
    written.expect.status = expected.get("status").cloned();
    let (identity, object) = object?;
    Some(Case {
        written,
        place: at.key("name").node().span.clone(),
        rules,
        policy,
        identity,
        object,
        old: old.map(|(_, text)| text),
        now: now?,
        patch: patch.flatten(),
    })
}

/// Applies `with` and `without`.
fn change(objects: &mut Value, written: &suite::Case, with: &Value, at: At<'_>) {
    for pointer in written.with.keys() {
        let op = if objects.pointer(pointer).is_some() { "replace" } else { "add" };
        let operation = json!({"op": op, "path": pointer, "value": with[pointer]});
        apply(objects, pointer, operation, at.key("with").key(pointer).name());
    }
    for (index, pointer) in written.without.iter().enumerate() {
        let operation = json!({"op": "remove", "path": pointer});
        apply(objects, pointer, operation, at.key("without").item(index));
    }
}

fn apply(objects: &mut Value, pointer: &str, operation: Value, at: At<'_>) {
    let mut names = pointer.split('/').skip(1);
    let applied = match (names.next(), serde_json::from_value(operation)) {
        (Some("object" | "old"), Ok(operation)) => json_patch::patch(objects, &[operation]).is_ok(),
        _ => false,
    };
    if !applied {
        let help = near_pointer(objects, pointer).map_or_else(
            || "a pointer begins with /object or /old, as in /object/status/phase".to_owned(),
            |near| format!("did you mean \"{near}\"?"),
        );
        at.report_with_help(format!("there is no {pointer} in this case"), help);
    }
}

/// The name that is most like the first one of a pointer that does not exist.
fn near_pointer<'v>(mut value: &'v Value, pointer: &str) -> Option<&'v str> {
    for name in pointer.split('/').skip(1) {
        match value.pointer(&format!("/{name}")) {
            Some(inner) => value = inner,
            None => return near(name, value.as_object()?.keys().map(String::as_str)),
        }
    }
    None
}

fn read_time(text: &str, at: At<'_>) -> Option<Timestamp> {
    time::parse(text).map_err(|message| at.report(message)).ok()
}

fn read_object(json: &Value, at: At<'_>) -> Option<(Identity, String)> {
    let text = json.to_string();
    let identity = Identity::of(&text).map_err(|message| at.report(message)).ok()?;
    Some((identity, text))
}

fn read_patch(json: &Value, at: At<'_>) -> Option<Vec<PatchOperation>> {
    if json == "none" {
        return Some(Vec::new());
    }
    let patch = serde_json::from_value(json.clone());
    let help = "write `none`, or a list such as [{op: add, path: /status/phase, value: Unknown}]";
    patch.map_err(|error| at.report_with_help(format!("not a JSON patch: {error}"), help)).ok()
}

/// The default time of a case: constant, so that results do not change, and late, so that no time in a
/// case is in the future.
const LATE: Timestamp = Timestamp::constant(4_102_444_800, 0);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_time_matches_the_documentation() {
        assert_eq!(LATE.to_string(), "2100-01-01T00:00:00Z");
    }
}
