//! One write through both webhooks, as in a cluster that registers both.

use jiff::Timestamp;
use json_patch::PatchOperation;
use serde_json::Value;

use super::{Action, Cause, Finding, decide};
use crate::model::{Subject, Webhook};
use crate::policy::PolicySet;

/// The result of both webhooks for one write.
#[derive(Clone, Debug, Default)]
pub struct Review {
    /// The policies that select the object, by their index in the set.
    pub policies: Vec<u16>,
    /// The findings of the mutating webhook, then those of the validating webhook.
    pub findings: Vec<Found>,
    /// The changes of the mutating webhook; empty if it changed nothing.
    pub patch: Vec<PatchOperation>,
    /// The patched status; `None` if nothing changed.
    pub status: Option<Value>,
    /// Whether the patch does not apply, which is a bug. The object was judged without the patch.
    pub patch_failed: bool,
}

/// A finding that does not borrow from its subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The policy of the rule. If several policies have the same finding, the one with the strongest
    /// action.
    pub policy: String,
    /// The rule id, such as `appcat/phase-ready`.
    pub rule: String,
    /// The field as in errors of the API server: `status.conditions[0].type`.
    pub field: String,
    /// The kind of the violation.
    pub cause: Cause,
    /// One complete sentence, without the rule id.
    pub message: String,
    /// The action.
    pub action: Action,
    /// The other policies with the same finding, each with its own action.
    pub others: Vec<(String, Action)>,
}

/// Judges a write as a cluster with both webhooks: the validating webhook gets the patched object. Without
/// an old object, the state is judged as a first write.
#[must_use]
pub fn review(policies: &PolicySet, subject: Subject<'_>, now: Timestamp) -> Review {
    let mut review = Review::default();
    let verdict = decide(policies, &subject, Webhook::Mutate, now);
    review.findings.extend(verdict.findings.iter().map(Found::from));
    review.patch_failed = verdict.patch_failed;
    if let (Some(patch), Some(status)) = (verdict.patch, verdict.status) {
        review.patch = patch.0;
        review.status = Some(status.to_value());
        // A patch changes only the status.
        let object = subject.object.with_status(Some(status));
        review.validate(policies, &Subject { object, ..subject }, now);
    } else {
        review.validate(policies, &subject, now);
    }
    review
}

impl Review {
    fn validate(&mut self, policies: &PolicySet, subject: &Subject<'_>, now: Timestamp) {
        let verdict = decide(policies, subject, Webhook::Validate, now);
        self.findings.extend(verdict.findings.iter().map(Found::from));
        self.policies = verdict.policies;
    }
}

impl From<&Finding<'_>> for Found {
    fn from(finding: &Finding<'_>) -> Self {
        Self {
            policy: finding.policy.to_string(),
            rule: finding.rule.to_string(),
            field: finding.field.clone(),
            cause: finding.cause,
            message: finding.message.clone(),
            action: finding.action,
            others: finding
                .others
                .iter()
                .map(|(name, action)| (name.to_string(), *action))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Object, Operation, Resource, Writer};

    fn reviewed(text: &str) -> Review {
        let policies = PolicySet::compile(&PolicySet::examples()).unwrap();
        let subject = Subject {
            resource: Resource {
                group: "vshn.appcat.vshn.io".into(),
                version: "v1".into(),
                resource: "vshnredis".into(),
            },
            subresource: "status".into(),
            operation: Operation::Update,
            writer: Writer::default(),
            object: Object::parse(text).unwrap(),
            old: None,
        };
        review(&policies, subject, Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn a_default_satisfies_the_validating_webhook() {
        let review = reviewed(r#"{"status":{"instanceNamespace":"n"}}"#);
        assert!(!review.patch.is_empty() && !review.patch_failed);
        assert_eq!((review.policies.len(), review.findings.as_slice()), (1, [].as_slice()));
    }

    #[test]
    fn a_contradiction_is_found_without_an_old_object() {
        let review = reviewed(
            r#"{"status":{"phase":"Ready","instanceNamespace":"n","lastTransitionTime":"1969-01-01T00:00:00Z",
                "conditions":[{"type":"Ready","status":"False","reason":"No",
                "lastTransitionTime":"1969-01-01T00:00:00Z"}]}}"#,
        );
        assert!(review.patch.is_empty());
        let denied = review.findings.iter().filter(|found| found.action == Action::Deny);
        let rules: Vec<&str> = denied.map(|found| found.rule.as_str()).collect();
        assert_eq!(rules, ["appcat/phase-ready"]);
    }
}
