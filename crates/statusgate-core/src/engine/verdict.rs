//! The result of a decision.

use std::collections::HashMap;

use json_patch::Patch;

use crate::model::Json;
use crate::policy::{Action, Id};

/// One violation of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding<'p> {
    /// The policy of the rule. If several policies have the same finding, the one with the strongest
    /// action.
    pub policy: &'p Id,
    /// The rule id, such as `appcat/phase-ready`.
    pub rule: &'p Id,
    /// The field as in errors of the API server: `status.conditions[0].type`.
    pub field: String,
    /// The kind of the violation.
    pub cause: Cause,
    /// One complete sentence, without the rule id.
    pub message: String,
    /// The action.
    pub action: Action,
    /// The other policies with the same finding, each with its own action.
    pub others: Vec<(&'p Id, Action)>,
}

impl<'p> Finding<'p> {
    /// Every policy with this finding, with its own action.
    pub fn reported_by(&self) -> impl Iterator<Item = (&'p Id, Action)> {
        std::iter::once((self.policy, self.action)).chain(self.others.iter().copied())
    }

    /// Its rule and field.
    pub(super) fn place(&self) -> (&str, &str) {
        (self.rule.as_str(), &self.field)
    }

    /// Adds the policies of the same finding.
    fn merge(&mut self, mut twin: Self) {
        if self.action < twin.action {
            twin.others = std::mem::take(&mut self.others);
            std::mem::swap(self, &mut twin);
        }
        let (policy, action) = (twin.policy, twin.action);
        if policy == self.policy {
            return;
        }
        match self.others.iter_mut().find(|(other, _)| *other == policy) {
            Some((_, known)) => *known = action.max(*known),
            None => self.others.push((policy, action)),
        }
    }
}

/// Keeps one of several findings with the same rule, field and message: the one with the strongest action,
/// with all its policies.
pub(super) fn merge_duplicates(findings: &mut Vec<Finding<'_>>) {
    // A table, because two policies can have findings for many thousand elements.
    let mut first = HashMap::with_capacity(findings.len());
    let twins: Vec<usize> = findings
        .iter()
        .enumerate()
        .map(|(index, finding)| {
            let Finding { rule, field, message, .. } = finding;
            *first.entry((rule.as_str(), field.as_str(), message.as_str())).or_insert(index)
        })
        .collect();
    let mut places = Vec::with_capacity(findings.len());
    let mut kept: Vec<Finding<'_>> = Vec::with_capacity(first.len());
    for (index, (finding, twin)) in findings.drain(..).zip(twins).enumerate() {
        if twin == index {
            places.push(kept.len());
            kept.push(finding);
        } else {
            places.push(places[twin]);
            kept[places[twin]].merge(finding);
        }
    }
    *findings = kept;
}

/// The kind of a violation, as in `metav1.StatusCause`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A required field is absent.
    Required,
    /// A value of the wrong type.
    TypeInvalid,
    /// A value outside its set of values.
    NotSupported,
    /// An invalid value.
    Invalid,
    /// A duplicate key.
    Duplicate,
    /// A string or list that is too long.
    TooLong,
    /// A value that this writer must not set.
    Forbidden,
}

impl Cause {
    /// The `reason` of the cause in a response.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Invalid => "FieldValueInvalid",
            Self::Duplicate => "FieldValueDuplicate",
            Self::TooLong => "FieldValueTooLong",
            Self::Forbidden => "FieldValueForbidden",
        }
    }

    /// The cause with this `reason`; `Invalid` for others.
    pub fn of_reason(reason: &str) -> Self {
        let known = [
            Self::Required,
            Self::TypeInvalid,
            Self::NotSupported,
            Self::Duplicate,
            Self::TooLong,
            Self::Forbidden,
        ];
        known.into_iter().find(|cause| cause.reason() == reason).unwrap_or(Self::Invalid)
    }
}

impl serde::Serialize for Cause {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.reason())
    }
}

/// Why the mutating webhook sets a field, or does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// A default, also of the phase.
    Default,
    /// A phase that follows from the metadata of the object.
    Imposed,
    /// A phase in place of one that the conditions contradict.
    Repair,
    /// The time of a phase that the writer wrote.
    Time,
    /// A field that the writer must not remove.
    Restored,
    /// No change: the schema of the resource rejects the value.
    Withheld,
}

impl Change {
    /// All reasons, by their position.
    pub const ALL: [Self; 6] =
        [Self::Default, Self::Imposed, Self::Repair, Self::Time, Self::Restored, Self::Withheld];

    /// The name in metrics.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Imposed => "imposed",
            Self::Repair => "repair",
            Self::Time => "time",
            Self::Restored => "restored",
            Self::Withheld => "withheld",
        }
    }
}

/// The result for one subject.
#[derive(Clone, Debug, Default)]
pub struct Verdict<'p> {
    /// The policies that select the object, by their index in the set.
    pub policies: Vec<u16>,
    /// All findings, in the order of policies and rules.
    pub findings: Vec<Finding<'p>>,
    /// The changes. Never empty.
    pub patch: Option<Patch>,
    /// The reasons of the patch, each with its policy.
    pub changes: Vec<(&'p Id, Change)>,
    /// The patched status; `None` if there is no patch.
    pub status: Option<Json<'p>>,
    /// The names of the defaults that were not set because they would contradict the phase.
    pub withheld: Vec<&'p str>,
    /// What was not set because the schema of the resource rejects it: the policy, and the cause.
    pub refused: Vec<(&'p Id, crate::schema::Cause)>,
    /// Whether the patch does not apply to its own object. This is a bug: the patch is not sent, and the
    /// server reports the error.
    pub patch_failed: bool,
}

impl Verdict<'_> {
    /// Whether the write is rejected.
    pub fn is_denied(&self) -> bool {
        self.findings.iter().any(|finding| finding.action == Action::Deny)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> &'static Id {
        Box::leak(Box::new(Id::new(name.to_owned(), 0)))
    }

    fn finding(policy: &str, field: &str, action: Action) -> Finding<'static> {
        let (field, message) = (field.to_owned(), "m".to_owned());
        let cause = Cause::Invalid;
        Finding {
            policy: id(policy),
            rule: id("r"),
            field,
            cause,
            message,
            action,
            others: Vec::new(),
        }
    }

    #[test]
    fn the_same_finding_of_several_policies_is_reported_once_with_each_action() {
        let mut findings = vec![
            finding("a", "x", Action::Warn),
            finding("a", "y", Action::Deny),
            finding("b", "x", Action::Deny),
            finding("b", "y", Action::Audit),
            finding("b", "z", Action::Warn),
            finding("c", "x", Action::Audit),
        ];
        merge_duplicates(&mut findings);
        let merged: Vec<(&str, Vec<(&str, Action)>)> = findings
            .iter()
            .map(|finding| {
                let reported_by =
                    finding.reported_by().map(|(policy, action)| (policy.as_str(), action));
                (finding.field.as_str(), reported_by.collect())
            })
            .collect();
        assert_eq!(
            merged,
            [
                ("x", vec![("b", Action::Deny), ("a", Action::Warn), ("c", Action::Audit)]),
                ("y", vec![("a", Action::Deny), ("b", Action::Audit)]),
                ("z", vec![("b", Action::Warn)]),
            ]
        );
    }
}
