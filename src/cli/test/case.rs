//! The documents with test cases.
//!
//! A case is read like a policy, in YAML 1.2, where `yes` is a string. Objects, statuses and patches are
//! read like manifests: a test that reads `status: yes` as a string would pass where the cluster rejects
//! it. So every document is read twice: these members come from the JSON of the manifest reader, their
//! locations from the tree.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use json_patch::PatchOperation;
use serde_json::Value;

use crate::cli::time;
use crate::engine::Action;
use crate::model::Operation;
use crate::source::Identity;
use crate::source::tree::{Node, Problems, Span};

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
    pub(super) name: String,
    /// The location of its name.
    pub(super) place: Span,
    pub(super) identity: Identity,
    /// JSON text.
    pub(super) object: String,
    pub(super) old: Option<String>,
    pub(super) user: String,
    pub(super) groups: Vec<String>,
    pub(super) operation: Option<Operation>,
    pub(super) subresource: Option<String>,
    pub(super) now: Timestamp,
    pub(super) expect: Expectation,
}

/// The expected result of a write. A part that is `None` is not compared.
#[derive(Debug, Default)]
pub(super) struct Expectation {
    pub(super) verdict: Option<Word>,
    /// All findings, in any order.
    pub(super) findings: Option<Vec<ExpectedFinding>>,
    /// All operations, in order; empty for none.
    pub(super) patch: Option<Vec<PatchOperation>>,
    /// The whole status after the mutating webhook.
    pub(super) status: Option<Value>,
}

/// A verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    Allow,
    /// Allowed with warnings.
    Warn,
    Deny,
}

/// An expected finding. A part that is `None` is not compared.
#[derive(Clone, Debug)]
pub(super) struct ExpectedFinding {
    pub(super) rule: String,
    pub(super) field: Option<String>,
    pub(super) action: Option<Action>,
    /// A part of the message.
    pub(super) message: Option<String>,
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
pub(super) fn is_suite(node: &Node, problems: &Problems) -> bool {
    problems.map(node).is_some_and(|map| map.get("apiVersion").is_none())
}

/// Reads a document with cases. `json` is the same document, read like a manifest; `folder` contains
/// it.
pub(super) fn read(node: &Node, json: &Value, folder: &Path, problems: &Problems) -> Option<Suite> {
    let map = problems.map(node)?;
    let policies_node = map.get("policies");
    let policies = policies_node
        .map(|node| problems.one_or_many(node, |item| problems.string(item)))
        .unwrap_or_default();
    let convention_node = map.get("convention");
    let convention = convention_node.and_then(|node| problems.string(node)).map(str::to_owned);
    let now = map.get("now").and_then(|node| read_time(node, problems)).unwrap_or(LATE);
    let mut cases: Vec<Case> = Vec::new();
    if let Some(node) = map.required("cases") {
        let mut index = 0..;
        problems.list(node, |item| {
            let json = &json["cases"][index.next().unwrap_or(usize::MAX)];
            let case = read_case(item, json, now, problems)?;
            if cases.iter().any(|other| other.name == case.name) {
                let message = format!("there is a case \"{}\" already", case.name);
                problems.report(&case.place, message);
            }
            cases.push(case);
            Some(())
        });
    }
    map.close();
    let place = policies_node.or(convention_node).unwrap_or(node).span.clone();
    let policies = policies.into_iter().map(|path| folder.join(path)).collect();
    Some(Suite { policies, convention, place, cases })
}

fn read_case(node: &Node, json: &Value, now: Timestamp, problems: &Problems) -> Option<Case> {
    let map = problems.map(node)?;
    let name = map.required("name");
    let object =
        map.required("object").and_then(|node| read_object(node, &json["object"], problems));
    let old = map.get("old").and_then(|node| read_object(node, &json["old"], problems));
    let (mut user, mut groups) = (String::new(), Vec::new());
    if let Some(writer) = map.get("writer").and_then(|node| problems.map(node)) {
        let text = writer.get("user").and_then(|node| problems.string(node));
        user = text.unwrap_or_default().to_owned();
        groups = writer.get("groups").map(|node| problems.strings(node)).unwrap_or_default();
        writer.close();
    }
    let operations = [Operation::Create, Operation::Update, Operation::Delete];
    let operation = map.get("operation").and_then(|node| {
        problems.word(node, &operations.map(|operation| (operation.name(), operation)))
    });
    let subresource = map.get("subresource").and_then(|node| problems.string(node));
    let now = map.get("now").map_or(Some(now), |node| read_time(node, problems));
    let expect =
        map.required("expect").and_then(|node| read_expectation(node, &json["expect"], problems));
    map.close();
    let (identity, object) = object?;
    let name_node = name?;
    Some(Case {
        name: problems.string(name_node)?.to_owned(),
        place: name_node.span.clone(),
        identity,
        object,
        old: old.map(|(_, text)| text),
        user,
        groups,
        operation,
        subresource: subresource.map(str::to_owned),
        now: now?,
        expect: expect?,
    })
}

fn read_time(node: &Node, problems: &Problems) -> Option<Timestamp> {
    let read = time::parse(problems.string(node)?);
    read.map_err(|message| problems.report(&node.span, message)).ok()
}

fn read_object(node: &Node, json: &Value, problems: &Problems) -> Option<(Identity, String)> {
    let text = json.to_string();
    match Identity::of(&text) {
        Ok(identity) => Some((identity, text)),
        Err(message) => {
            problems.report(&node.span, message);
            None
        }
    }
}

fn read_expectation(node: &Node, json: &Value, problems: &Problems) -> Option<Expectation> {
    let map = problems.map(node)?;
    let verdicts = [("allow", Word::Allow), ("warn", Word::Warn), ("deny", Word::Deny)];
    let verdict = map.get("verdict").and_then(|node| problems.word(node, &verdicts));
    let findings =
        map.get("findings").map(|node| problems.list(node, |item| read_finding(item, problems)));
    let patch_node = map.get("patch");
    let patch = patch_node.and_then(|node| read_patch(node, &json["patch"], problems));
    let status = map.get("status").map(|_| json["status"].clone());
    let is_empty = map.entries().is_empty();
    map.close();
    if is_empty {
        problems.report(&node.span, "a case that expects nothing cannot fail");
    }
    Some(Expectation { verdict, findings, patch, status })
}

const ACTIONS: [(&str, Action); 4] = [
    ("Deny", Action::Deny),
    ("Repair", Action::Repair),
    ("Warn", Action::Warn),
    ("Audit", Action::Audit),
];

fn read_finding(node: &Node, problems: &Problems) -> Option<ExpectedFinding> {
    let map = problems.map(node)?;
    let text = |node: Option<&Node>| node.and_then(|node| problems.string(node)).map(str::to_owned);
    let rule = text(map.required("rule"));
    let field = text(map.get("field"));
    let action = map.get("action").and_then(|node| problems.word(node, &ACTIONS));
    let message = text(map.get("message"));
    map.close();
    Some(ExpectedFinding { rule: rule?, field, action, message })
}

fn read_patch(node: &Node, json: &Value, problems: &Problems) -> Option<Vec<PatchOperation>> {
    if json == "none" {
        return Some(Vec::new());
    }
    let patch = serde_json::from_value(json.clone());
    if let Err(error) = &patch {
        let help =
            "write `none`, or a list such as [{op: add, path: /status/phase, value: Unknown}]";
        let message = format!("not a JSON patch: {error}");
        problems.report_with_help(&node.span, message, Some(help.to_owned()));
    }
    patch.ok()
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
