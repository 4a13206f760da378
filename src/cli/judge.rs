//! One subject through both webhooks, as a write goes.

use jiff::Timestamp;
use json_patch::PatchOperation;
use serde_json::Value;

use crate::engine::{self, Found, Review, decide};
use crate::model::{Subject, Webhook, Writer};
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
    /// The status after that; `None` where nothing changed.
    pub(super) status: Option<Value>,
}

/// Judges a write as a cluster with both webhooks would, or with the validating one alone.
pub(super) fn judge(
    policies: &PolicySet,
    subject: Subject<'_>,
    now: Timestamp,
    mutate: bool,
) -> Judgement {
    let review = if mutate {
        engine::review(policies, subject, now)
    } else {
        let verdict = decide(policies, &subject, Webhook::Validate, now);
        let findings = verdict.findings.iter().map(Found::from).collect();
        Review { policies: verdict.policies, findings, ..Review::default() }
    };
    let names = review.policies.iter();
    let names = names.filter_map(|index| policies.policies().get(usize::from(*index)));
    Judgement {
        policies: names.map(|policy| policy.name.to_string()).collect(),
        findings: review.findings,
        patch: review.patch,
        status: review.status,
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
