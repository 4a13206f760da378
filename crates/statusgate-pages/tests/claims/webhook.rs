//! The answers of the webhooks about one write.

use serde_json::{Value, json};
use statusgate_core::engine::{Action, Finding, Verdict, decide};
use statusgate_core::model::{Object, Operation, Resource, Subject, Webhook, Writer};
use statusgate_core::policy::PolicySet;

/// When every write happens.
const NOW: &str = "2026-01-01T00:00:00Z";

/// A write as the API server sends it.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub(crate) old: Option<Value>,
    pub(crate) new: Value,
    pub(crate) user: &'static str,
    /// A write of the main resource that has no status subresource.
    pub(crate) main: bool,
}

/// A finding that rejects a write.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Denial {
    pub(crate) rule: String,
    pub(crate) field: String,
    pub(crate) message: String,
}

/// The patch of the mutating webhook, and the object after it.
#[derive(Clone, Debug)]
pub(crate) struct Mutated {
    pub(crate) patch: Option<String>,
    pub(crate) object: Value,
    /// Whether the phase was repaired.
    pub(crate) repaired: bool,
}

impl Write {
    /// A write of `/status`.
    pub(crate) fn of(old: &Value, new: &Value) -> Self {
        Self { old: Some(old.clone()), new: new.clone(), user: "u", main: false }
    }

    /// A write of `/status` by an owner of fields.
    pub(crate) fn by_owner(old: &Value, new: &Value) -> Self {
        Self { user: "o", ..Self::of(old, new) }
    }

    /// The same write with another object.
    pub(crate) fn sending(&self, new: Value) -> Self {
        Self { new, ..self.clone() }
    }

    fn ask<T>(
        &self,
        policies: &PolicySet,
        webhook: Webhook,
        read: impl FnOnce(Verdict<'_>) -> T,
    ) -> T {
        let (old, new) = (self.old.as_ref().map(Value::to_string), self.new.to_string());
        let subject = Subject {
            operation: if old.is_some() { Operation::Update } else { Operation::Create },
            resource: Resource::new("g", "v1", "things"),
            subresource: if self.main { "".into() } else { "status".into() },
            object: Object::parse(&new).unwrap(),
            old: old.as_deref().map(|old| Object::parse(old).unwrap()),
            writer: Writer { user: self.user.into(), ..Writer::default() },
        };
        let verdict = decide(policies, &subject, webhook, NOW.parse().unwrap());
        assert!(!verdict.policies.is_empty() && !verdict.patch_failed, "{self:?}");
        read(verdict)
    }

    /// The answer of the mutating webhook.
    pub(crate) fn mutate(&self, policies: &PolicySet) -> Mutated {
        self.ask(policies, Webhook::Mutate, |verdict| {
            let mut object = self.new.clone();
            if let Some(status) = &verdict.status {
                object["status"] = status.to_value();
            }
            let repaired = verdict.findings.iter().any(|finding| finding.action == Action::Repair);
            Mutated { patch: verdict.patch.map(|patch| json!(patch).to_string()), object, repaired }
        })
    }

    /// What the validating webhook says to the writer: denials and warnings.
    pub(crate) fn said(&self, policies: &PolicySet) -> Vec<String> {
        self.ask(policies, Webhook::Validate, |verdict| {
            let findings = verdict.findings.iter();
            let heard = findings.filter(|finding| finding.action != Action::Audit);
            heard
                .map(|found| format!("{:?} {}: {}", found.action, found.rule, found.message))
                .collect()
        })
    }

    /// The denials of the validating webhook, for the object as it is sent.
    pub(crate) fn denials(&self, policies: &PolicySet) -> Vec<Denial> {
        self.found(policies, |action| action == Action::Deny)
    }

    /// All its findings.
    pub(crate) fn findings(&self, policies: &PolicySet) -> Vec<Denial> {
        self.found(policies, |_| true)
    }

    /// The rules that found something, with what the webhook does about it.
    pub(crate) fn actions(&self, policies: &PolicySet) -> Vec<(String, Action)> {
        self.ask(policies, Webhook::Validate, |verdict| {
            let found = verdict.findings.iter();
            found.map(|found| (found.rule.to_string(), found.action)).collect()
        })
    }

    fn found(&self, policies: &PolicySet, counts: fn(Action) -> bool) -> Vec<Denial> {
        self.ask(policies, Webhook::Validate, |verdict| {
            let found = verdict.findings.into_iter().filter(|found| counts(found.action));
            let denial = |found: Finding<'_>| Denial {
                rule: found.rule.to_string(),
                field: found.field,
                message: found.message,
            };
            found.map(denial).collect()
        })
    }
}
