//! Writes under a convention, through both webhooks.

use jiff::Timestamp;
use serde_json::Value;

use crate::documents::PolicySpec;
use crate::engine::{Action, decide};
use crate::explain::NOW;
use crate::model::{Object, Operation, Resource, Subject, Webhook, Writer};
use crate::policy::convention::Convention;
use crate::policy::{Diagnostics, Policy, PolicySet, Source};

/// The convention under three policies, one for each `disagreement`.
pub(super) struct Gate {
    modes: [PolicySet; 3],
}

/// The action for a disagreement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Mode {
    Deny,
    Repair,
    Warn,
}

pub(super) const MODES: [(Mode, Action); 3] =
    [(Mode::Deny, Action::Deny), (Mode::Repair, Action::Repair), (Mode::Warn, Action::Warn)];

/// The rules that reject a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refused(pub(super) Vec<String>);

impl Gate {
    pub(super) fn new(sources: &[Source], name: &str) -> Result<Self, Diagnostics> {
        let plain = PolicySet::compile(sources)?;
        let parts = plain
            .conventions()
            .get(name)
            .map(|convention| convention.optional_parts().map(str::to_owned).collect::<Vec<_>>());
        let enable = parts.unwrap_or_default();
        let spec = PolicySpec { enable, ..PolicySpec::for_everything(name) };
        let all = plain.with_policies(&[("lint", spec)])?;
        let modes = MODES.map(|(_, disagreement)| {
            let policy = all.policies().first();
            let of_mode = |policy: &Policy| Policy { disagreement, ..policy.clone() };
            PolicySet::of(policy.map(of_mode).into_iter().collect())
        });
        Ok(Self { modes })
    }

    /// The convention with all its optional parts.
    pub(super) fn convention(&self) -> &Convention {
        // Each set has exactly the one policy that was compiled for it.
        &self.modes[0].policies()[0].convention
    }

    /// The stored object after a status write of `new` over `old`, or the rules that reject it.
    pub(super) fn write(
        &self,
        mode: Mode,
        resource: &Resource<'_>,
        old: &Value,
        new: &Value,
    ) -> Result<Value, Refused> {
        let policies = self.policies(mode);
        let new = mutated(policies, resource, old, new);
        let rules = refusing(policies, resource, old, &new);
        if rules.is_empty() { Ok(new) } else { Err(Refused(rules)) }
    }

    /// The rules by which the validating webhook rejects a write.
    pub(super) fn rejecting(
        &self,
        resource: &Resource<'_>,
        old: &Value,
        new: &Value,
    ) -> Vec<String> {
        refusing(self.policies(Mode::Deny), resource, old, new)
    }

    /// The rules that reject a write only because of what the mutating webhook changes.
    pub(super) fn undone(
        &self,
        mode: Mode,
        resource: &Resource<'_>,
        old: &Value,
        new: &Value,
    ) -> Vec<String> {
        undone(self.policies(mode), resource, old, new)
    }

    /// The defaults that are not set because they contradict the phase of the write.
    pub(super) fn withheld(
        &self,
        resource: &Resource<'_>,
        old: &Value,
        new: &Value,
    ) -> Vec<String> {
        let (old, new) = (old.to_string(), new.to_string());
        let Some(subject) = subject(resource, &old, &new) else { return Vec::new() };
        let verdict = decide(self.policies(Mode::Deny), &subject, Webhook::Mutate, now());
        verdict.withheld.iter().map(|name| (*name).to_owned()).collect()
    }

    fn policies(&self, mode: Mode) -> &PolicySet {
        let at = MODES.iter().position(|(known, _)| *known == mode);
        // There is one for each mode.
        &self.modes[at.unwrap_or_default()]
    }
}

/// The rules that reject a write only because of what the mutating webhook changes.
pub(super) fn undone(
    policies: &PolicySet,
    resource: &Resource<'_>,
    old: &Value,
    new: &Value,
) -> Vec<String> {
    let patched = mutated(policies, resource, old, new);
    let mut rules = refusing(policies, resource, old, &patched);
    if !rules.is_empty() {
        let before = refusing(policies, resource, old, new);
        rules.retain(|rule| !before.contains(rule));
    }
    rules
}

/// The write after the mutating webhook.
pub(super) fn mutated(
    policies: &PolicySet,
    resource: &Resource<'_>,
    old: &Value,
    new: &Value,
) -> Value {
    let (old, text, mut new) = (old.to_string(), new.to_string(), new.clone());
    if let Some(subject) = subject(resource, &old, &text)
        && let Some(status) = decide(policies, &subject, Webhook::Mutate, now()).status
    {
        new["status"] = status.to_value();
    }
    new
}

/// The rules by which the validating webhook rejects a write.
pub(super) fn refusing(
    policies: &PolicySet,
    resource: &Resource<'_>,
    old: &Value,
    new: &Value,
) -> Vec<String> {
    let (old, new) = (old.to_string(), new.to_string());
    let Some(subject) = subject(resource, &old, &new) else { return Vec::new() };
    let verdict = decide(policies, &subject, Webhook::Validate, now());
    let refusing = verdict.findings.iter().filter(|finding| finding.action == Action::Deny);
    let mut rules: Vec<String> = refusing.map(|finding| finding.rule.to_string()).collect();
    rules.sort();
    rules.dedup();
    rules
}

fn now() -> Timestamp {
    NOW.parse().unwrap_or(Timestamp::UNIX_EPOCH)
}

fn subject<'t>(resource: &Resource<'t>, old: &'t str, new: &'t str) -> Option<Subject<'t>> {
    Some(Subject {
        resource: resource.clone(),
        subresource: "status".into(),
        operation: Operation::Update,
        writer: Writer::default(),
        object: Object::parse(new).ok()?,
        old: Some(Object::parse(old).ok()?),
    })
}
