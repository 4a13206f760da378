//! One write through both webhooks, as in a cluster that registers both.

use std::fmt;

use jiff::Timestamp;
use json_patch::PatchOperation;
use serde::{Serialize, Serializer};
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
}

/// The mutating webhook made a patch that does not apply, so there is nothing to validate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a patch was made that does not apply: a bug in statusgate")]
pub struct PatchFailed;

/// A finding that does not borrow from its subject.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Found {
    /// The policy of the rule. If several policies have the same finding, the one with the strongest
    /// action.
    pub policy: String,
    /// The rule id, such as `appcat/phase-ready`.
    pub rule: String,
    /// The action.
    #[serde(serialize_with = "label")]
    pub action: Action,
    /// The field as in errors of the API server: `status.conditions[0].type`.
    pub field: String,
    /// The kind of the violation.
    pub cause: Cause,
    /// One complete sentence, without the rule id.
    pub message: String,
    /// The other policies with the same finding, each with its own action.
    #[serde(skip)]
    pub others: Vec<(String, Action)>,
}

/// `deny: status.phase: phase Ready disagrees: … [appcat/phase-ready]`
impl fmt::Display for Found {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { action, field, message, rule, .. } = self;
        write!(formatter, "{}: {field}: {message} [{rule}]", action.label())
    }
}

fn label<S: Serializer>(action: &Action, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(action.label())
}

/// Judges a write as a cluster with both webhooks, or with the validating webhook alone. The validating
/// webhook gets the patched object. Without an old object, the state is judged as a first write.
///
/// # Errors
/// When the patch does not apply.
pub fn review<'a>(
    policies: &'a PolicySet,
    mut subject: Subject<'a>,
    mutate: bool,
    now: Timestamp,
) -> Result<Review, PatchFailed> {
    let mut review = Review::default();
    if mutate {
        let verdict = decide(policies, &subject, Webhook::Mutate, now);
        if verdict.patch_failed {
            return Err(PatchFailed);
        }
        review.findings.extend(verdict.findings.iter().map(Found::from));
        if let (Some(patch), Some(status)) = (verdict.patch, verdict.status) {
            review.patch = patch.0;
            review.status = Some(status.to_value());
            // A patch changes only the status.
            subject.object = subject.object.with_status(Some(status));
        }
    }
    let verdict = decide(policies, &subject, Webhook::Validate, now);
    review.findings.extend(verdict.findings.iter().map(Found::from));
    review.policies = verdict.policies;
    Ok(review)
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
    use crate::model::{Object, Resource};

    fn reviewed(text: &str) -> Review {
        let policies = PolicySet::compile(&PolicySet::examples()).unwrap();
        let subject = Subject {
            resource: Resource::new("vshn.appcat.vshn.io", "v1", "vshnredis"),
            subresource: "status".into(),
            object: Object::parse(text).unwrap(),
            ..Subject::default()
        };
        review(&policies, subject, true, Timestamp::UNIX_EPOCH).unwrap()
    }

    #[test]
    fn a_default_satisfies_the_validating_webhook() {
        let review = reviewed(r#"{"status":{"instanceNamespace":"n"}}"#);
        assert!(!review.patch.is_empty());
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
