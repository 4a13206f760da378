//! One subject through both webhooks, as a write goes.

use jiff::Timestamp;
use json_patch::PatchOperation;
use serde_json::Value;

use crate::engine::{Action, Finding, decide};
use crate::model::{Object, Subject, Webhook, Writer};
use crate::policy::PolicySet;

/// What both webhooks have to say about one write.
#[derive(Debug, Default)]
pub(super) struct Judgement {
    /// The policies that select it, by name.
    pub(super) policies: Vec<String>,
    /// What the mutating webhook found, then what the validating one did.
    pub(super) findings: Vec<Found>,
    /// What the mutating webhook changed before the other one looked.
    pub(super) patch: Vec<PatchOperation>,
    /// The object after that; `None` where nothing was changed.
    pub(super) patched: Option<Value>,
}

/// A finding that outlives its subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) policy: String,
    pub(super) rule: String,
    pub(super) field: String,
    /// The kind of mistake as `metav1.StatusCause` spells it.
    pub(super) cause: &'static str,
    pub(super) message: String,
    pub(super) action: Action,
}

/// Judges a write as a cluster with both webhooks would: the validating one sees what the mutating
/// one made of it. `text` is the JSON of the subject's object.
///
/// # Errors
/// One sentence on why the patched object cannot be judged: only JSON nested beyond reason.
pub(super) fn judge(
    policies: &PolicySet,
    subject: Subject<'_>,
    text: &str,
    now: Timestamp,
    mutate: bool,
) -> Result<Judgement, String> {
    let mut judgement = Judgement::default();
    if mutate {
        let verdict = decide(policies, &subject, Webhook::Mutate, now);
        judgement.findings.extend(verdict.findings.iter().map(Found::of));
        judgement.patch = verdict.patch.map(|patch| patch.0).unwrap_or_default();
    }
    if judgement.patch.is_empty() {
        judgement.validate(policies, &subject, now);
        return Ok(judgement);
    }
    let wrong = |error: &dyn std::fmt::Display| format!("the object cannot be patched: {error}");
    let mut object: Value = serde_json::from_str(text).map_err(|error| wrong(&error))?;
    json_patch::patch(&mut object, &judgement.patch).map_err(|error| wrong(&error))?;
    let patched = object.to_string();
    let mutated = Object::parse(&patched).map_err(|error| wrong(&error))?;
    judgement.validate(policies, &Subject { object: mutated, ..subject }, now);
    judgement.patched = Some(object);
    Ok(judgement)
}

impl Judgement {
    fn validate(&mut self, policies: &PolicySet, subject: &Subject<'_>, now: Timestamp) {
        let verdict = decide(policies, subject, Webhook::Validate, now);
        self.findings.extend(verdict.findings.iter().map(Found::of));
        let selected = verdict.policies.iter();
        let selected = selected.filter_map(|index| policies.policies().get(usize::from(*index)));
        self.policies = selected.map(|policy| policy.name.clone()).collect();
    }
}

impl Found {
    fn of(finding: &Finding<'_>) -> Self {
        Self {
            policy: finding.policy.to_owned(),
            rule: finding.rule.to_owned(),
            field: finding.field.clone(),
            cause: finding.cause.reason(),
            message: finding.message.clone(),
            action: finding.action,
        }
    }
}

/// The writer that the API server would make of a user name: it adds the groups that a service
/// account is in when none are named, and that of everybody who has a name.
pub(super) fn writer<'a>(user: &'a str, groups: &'a [String]) -> Writer<'a> {
    let mut groups: Vec<_> = groups.iter().map(|group| group.as_str().into()).collect();
    let account = user.strip_prefix("system:serviceaccount:");
    if let Some((namespace, _)) = account.and_then(|account| account.split_once(':'))
        && groups.is_empty()
    {
        groups.push("system:serviceaccounts".into());
        groups.push(format!("system:serviceaccounts:{namespace}").into());
    }
    if !user.is_empty() && user != "system:anonymous" {
        groups.push("system:authenticated".into());
    }
    Writer { user: user.into(), groups }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_account_is_in_its_groups() {
        let groups = |user: &str, given: &[&str]| {
            let given: Vec<String> = given.iter().map(|group| (*group).to_owned()).collect();
            writer(user, &given).groups.join(" ")
        };
        assert_eq!(
            groups("system:serviceaccount:ns:name", &[]),
            "system:serviceaccounts system:serviceaccounts:ns system:authenticated"
        );
        assert_eq!(groups("jane", &["admins"]), "admins system:authenticated");
        assert_eq!(groups("", &[]), "");
    }
}
