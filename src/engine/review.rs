//! One write through both webhooks, as it goes where both are registered.

use jiff::Timestamp;
use json_patch::PatchOperation;
use serde_json::Value;

use super::{Action, Cause, Finding, decide};
use crate::model::{Subject, Webhook};
use crate::policy::PolicySet;

/// What both webhooks say to one write.
#[derive(Clone, Debug, Default)]
pub struct Review {
    /// The policies that select it, by their place in the set.
    pub policies: Vec<u16>,
    /// What the mutating webhook found, then what the validating one did.
    pub findings: Vec<Found>,
    /// What the mutating webhook changed before the other one looked; empty where nothing.
    pub patch: Vec<PatchOperation>,
    /// The status after that; `None` where nothing changed.
    pub status: Option<Value>,
    /// A patch was made that does not apply: a bug of ours. The object was judged without it.
    pub patch_failed: bool,
}

/// A finding that outlives its subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The policy that applied the rule; of several that say the same, the one with the strongest
    /// action.
    pub policy: String,
    /// The rule id, `appcat/phase-ready`.
    pub rule: String,
    /// The field, as the API server names fields: `status.conditions[0].type`.
    pub field: String,
    /// What kind of mistake it is.
    pub cause: Cause,
    /// One sentence that stands alone, without the rule id.
    pub message: String,
    /// What happens.
    pub action: Action,
    /// The other policies that say the same, and what would happen by each of them alone.
    pub others: Vec<(String, Action)>,
}

/// Judges a write as a cluster with both webhooks would: the validating one sees what the mutating
/// one made of it. Without an old object the state is judged as if it were written for the first
/// time.
#[must_use]
pub fn review(policies: &PolicySet, subject: Subject<'_>, now: Timestamp) -> Review {
    let mut review = Review::default();
    let verdict = decide(policies, &subject, Webhook::Mutate, now);
    review.findings.extend(verdict.findings.iter().map(Found::from));
    review.patch_failed = verdict.patch_failed;
    if let (Some(patch), Some(status)) = (verdict.patch, verdict.status) {
        review.patch = patch.0;
        review.status = Some(status.to_value());
        // Nothing outside of the status is ever patched.
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
    fn what_the_first_webhook_fills_in_the_second_one_does_not_miss() {
        let review = reviewed(r#"{"status":{"instanceNamespace":"n"}}"#);
        assert!(!review.patch.is_empty() && !review.patch_failed);
        assert_eq!((review.policies.len(), review.findings.as_slice()), (1, [].as_slice()));
    }

    #[test]
    fn what_contradicts_itself_is_found_in_a_state_that_nobody_wrote_before() {
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
