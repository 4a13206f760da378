//! Writes under a convention, through both webhooks.

use std::borrow::Cow;
use std::sync::Arc;

use indexmap::IndexSet;
use jiff::Timestamp;
use serde_json::Value;

use super::each_once;
use crate::facts::NOW;
use crate::scene::{Scene, Stage};
use statusgate_core::documents::PolicySpec;
use statusgate_core::engine::{Action, Found, Verdict, decide, review};
use statusgate_core::model::{Object, Resource, Subject, Webhook};
use statusgate_core::policy::convention::Convention;
use statusgate_core::policy::{Diagnostics, Policy, PolicySet};

/// The actions that a policy can choose for a disagreement and that change the result of a write.
const ACTIONS: [Action; 3] = [Action::Deny, Action::Repair, Action::Warn];

/// A convention under policies that differ in what they do about a disagreement. The first one denies it,
/// unless it is that of a policy to check.
pub(super) struct Gate {
    policies: Vec<(Action, PolicySet)>,
}

impl Gate {
    pub(super) fn new(policies: &PolicySet, name: &str) -> Result<Self, Diagnostics> {
        let all = policies.with_policy("lint", &with_all_parts(policies, name))?;
        let policies = ACTIONS.map(|disagreement| {
            let own = all.policies().iter().map(|policy| Policy { disagreement, ..policy.clone() });
            (disagreement, PolicySet::of(own.collect()))
        });
        Ok(Self { policies: policies.into() })
    }

    /// A policy with all that it adds to its convention, as if `enforcement` were `Deny`.
    pub(super) fn of_policy(policy: &Policy) -> Self {
        let mut convention = (*policy.convention).clone();
        convention.fields.extend(policy.fields.iter().cloned());
        convention.backfill.clone_from(&policy.backfill);
        let strict = Policy {
            convention: Arc::new(convention),
            fields: Vec::new(),
            resources: PolicySpec::for_everything("").resources,
            enforcement: Action::Deny,
            ..policy.clone()
        };
        let writers = policy.writers.iter().map(|writer| writer.disagreement);
        let actions: IndexSet<Action> = [policy.disagreement].into_iter().chain(writers).collect();
        let policies = actions.into_iter().map(|disagreement| {
            let policy = Policy { disagreement, writers: Vec::new(), ..strict.clone() };
            (disagreement, PolicySet::of(vec![policy]))
        });
        Self { policies: policies.collect() }
    }

    /// The convention with all its optional parts.
    pub(super) fn convention(&self) -> &Convention {
        &self.policy().convention
    }

    /// The first policy.
    pub(super) fn policy(&self) -> &Policy {
        // There is an action, and each set has exactly the one policy that was compiled for it.
        &self.policies[0].1.policies()[0]
    }

    /// The policies, by their action for a disagreement.
    pub(super) fn all(&self) -> &[(Action, PolicySet)] {
        &self.policies
    }

    /// The policy with this action for a disagreement, or the first one.
    pub(super) fn policies(&self, disagreement: Action) -> &PolicySet {
        let at = self.policies.iter().position(|(known, _)| *known == disagreement);
        &self.policies[at.unwrap_or_default()].1
    }
}

/// A policy for everything with all optional parts of a convention.
pub(super) fn with_all_parts(policies: &PolicySet, name: &str) -> PolicySpec {
    let convention = policies.conventions().get(name);
    let parts = convention.iter().flat_map(|convention| convention.optional_parts());
    let enable = parts.map(str::to_owned).collect();
    PolicySpec { enable, ..PolicySpec::for_everything(name) }
}

/// An update of a status: the stored object and the new one.
pub(super) struct Write<'w> {
    pub(super) resource: Resource<'w>,
    pub(super) old: Cow<'w, Value>,
    pub(super) new: &'w Value,
}

impl<'w> Write<'w> {
    /// The write of a scene.
    pub(super) fn of(stage: &Stage<'w>, scene: &'w Scene) -> Self {
        let resource = stage.resource(&scene.plural);
        Self { resource, old: scene.stored(), new: &scene.object }
    }

    /// The object after the mutating webhook, and the rules by which the validating webhook rejects it.
    pub(super) fn review(&self, policies: &PolicySet) -> (Value, Vec<String>) {
        let mut object = self.new.clone();
        let rules = self.parsed(|subject| {
            // Commands that judge real objects report a patch that does not apply.
            let review = review(policies, subject, true, now()).unwrap_or_default();
            if let Some(status) = review.status {
                object["status"] = status;
            }
            denying(review.findings)
        });
        (object, rules.unwrap_or_default())
    }

    /// The rules by which the validating webhook alone rejects the write.
    pub(super) fn rejecting(&self, policies: &PolicySet) -> Vec<String> {
        denying(self.findings(policies))
    }

    /// The findings of the validating webhook.
    pub(super) fn findings(&self, policies: &PolicySet) -> Vec<Found> {
        self.decided(policies, Webhook::Validate, |Verdict { findings, .. }| {
            findings.iter().map(Found::from).collect()
        })
    }

    /// The rules that reject the write only because of what the mutating webhook changes.
    pub(super) fn undone(&self, policies: &PolicySet) -> Vec<String> {
        let (_, mut rules) = self.review(policies);
        if !rules.is_empty() {
            let before = self.rejecting(policies);
            rules.retain(|rule| !before.contains(rule));
        }
        rules
    }

    /// The defaults that are not set because they contradict the phase of the write.
    pub(super) fn withheld(&self, policies: &PolicySet) -> Vec<String> {
        self.decided(policies, Webhook::Mutate, |Verdict { withheld, .. }| {
            withheld.iter().map(|name| (*name).to_owned()).collect()
        })
    }

    fn decided<T>(
        &self,
        policies: &PolicySet,
        webhook: Webhook,
        read: impl FnOnce(&Verdict<'_>) -> Vec<T>,
    ) -> Vec<T> {
        let decided = self.parsed(|subject| read(&decide(policies, &subject, webhook, now())));
        decided.unwrap_or_default()
    }

    fn parsed<T>(&self, judge: impl FnOnce(Subject<'_>) -> T) -> Option<T> {
        let (old, new) = (self.old.to_string(), self.new.to_string());
        Some(judge(Subject {
            resource: self.resource.clone(),
            subresource: "status".into(),
            object: Object::parse(&new).ok()?,
            old: Some(Object::parse(&old).ok()?),
            ..Subject::default()
        }))
    }
}

/// The ids of the rules of findings that reject a write, each once.
fn denying(findings: Vec<Found>) -> Vec<String> {
    let denying = findings.into_iter().filter(|found| found.action == Action::Deny);
    each_once(denying.map(|found| found.rule))
}

fn now() -> Timestamp {
    NOW.parse().unwrap_or(Timestamp::UNIX_EPOCH)
}
