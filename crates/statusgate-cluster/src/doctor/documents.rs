//! Whether the policies and conventions of the cluster are accepted and enforced, from their status.

use serde_json::Value;

use super::StoredDocuments;
use crate::{CheckResult, StoredDocument};

/// Checks each document of the cluster.
pub(super) fn check(documents: &StoredDocuments) -> Vec<CheckResult> {
    let mut checks = Vec::new();
    for (kind, documents) in documents {
        match documents {
            Ok(documents) => checks.extend(documents.iter().map(|document| one(kind, document))),
            Err(reason) => {
                checks.push(CheckResult::not_checked(ID, *kind, reason, "list them"));
            }
        }
    }
    checks
}

fn one(kind: &str, document: &StoredDocument) -> CheckResult {
    let StoredDocument { name, generation, status, .. } = document;
    let subject = format!("{kind} {name}");
    let observed = status["observedGeneration"].as_i64();
    if observed != Some(*generation) {
        let observed = observed.map_or_else(|| "none".to_owned(), |observed| observed.to_string());
        let message =
            format!("generation {generation} was not read yet; in the status: {observed}");
        let help = "run statusgate serve with --watch-policies, and look at its log";
        return CheckResult::problem(ID, subject, message, help);
    }
    let message = |condition: &Value| condition["message"].as_str().unwrap_or_default().to_owned();
    let (accepted, enforced) = (condition(status, "Accepted"), condition(status, "Enforced"));
    if accepted["status"] != "True" {
        let help = "correct the document: the last valid generation stays in use";
        return CheckResult::problem(ID, subject, message(accepted), help);
    }
    if enforced["status"] != "True" {
        let help = "wait some seconds; then look at the replicas and the registrations";
        return CheckResult::warning(ID, subject, message(enforced), help);
    }
    CheckResult::ok(ID, subject, message(enforced))
}

pub(super) fn condition<'s>(status: &'s Value, kind: &str) -> &'s Value {
    let conditions = status["conditions"].as_array();
    let found = conditions.and_then(|list| list.iter().find(|condition| condition["type"] == kind));
    found.unwrap_or(&Value::Null)
}

const ID: &str = "documents";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Level;

    #[test]
    fn a_document_is_correct_if_its_current_generation_is_accepted_and_enforced() {
        let level = |observed: i64, accepted: &str, enforced: &str| {
            let conditions = json!([
                {"type": "Accepted", "status": accepted, "message": "a"},
                {"type": "Enforced", "status": enforced, "message": "e"},
            ]);
            let status = json!({"observedGeneration": observed, "conditions": conditions});
            let name = "p".to_owned();
            let document = StoredDocument { name, generation: 2, status, ..Default::default() };
            let check = one("StatusPolicy", &document);
            (check.level, check.message)
        };
        assert_eq!(level(2, "True", "True"), (Level::Ok, "e".to_owned()));
        assert_eq!(level(2, "True", "False"), (Level::Warning, "e".to_owned()));
        assert_eq!(level(2, "True", "Unknown"), (Level::Warning, "e".to_owned()));
        assert_eq!(level(2, "False", "True"), (Level::Problem, "a".to_owned()));
        assert_eq!(level(1, "True", "True").0, Level::Problem);
        let unread = one("StatusPolicy", &StoredDocument { generation: 1, ..Default::default() });
        assert_eq!(unread.message, "generation 1 was not read yet; in the status: none");
    }
}
