//! What comes out of a judgement.

use std::collections::HashMap;

use json_patch::Patch;

use crate::model::Json;
use crate::policy::{Action, Id};

/// One thing a rule says about a subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding<'p> {
    /// The policy that applied the rule; of several that say the same, the one with the strongest
    /// action.
    pub policy: &'p Id,
    /// The rule id, `appcat/phase-ready`.
    pub rule: &'p Id,
    /// The field, as the API server names fields: `status.conditions[0].type`.
    pub field: String,
    /// What kind of mistake it is.
    pub cause: Cause,
    /// One sentence that stands alone, without the rule id.
    pub message: String,
    /// What happens.
    pub action: Action,
    /// The other policies that say the same, and what would happen by each of them alone.
    pub others: Vec<(&'p Id, Action)>,
}

impl<'p> Finding<'p> {
    /// Every policy that says this, with its own action.
    pub fn said_by(&self) -> impl Iterator<Item = (&'p Id, Action)> {
        std::iter::once((self.policy, self.action)).chain(self.others.iter().copied())
    }

    /// Takes over who else says this.
    fn join(&mut self, mut twin: Self) {
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

/// Of findings that say the same about the same field, keeps one, with the strongest action and all
/// policies that say it.
pub(super) fn join_twins(findings: &mut Vec<Finding<'_>>) {
    // A table: two policies can find something in each of many thousand elements.
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
            kept[places[twin]].join(finding);
        }
    }
    *findings = kept;
}

/// Kinds of mistakes, as `metav1.StatusCause` knows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A field that must be there is not.
    Required,
    /// A value of the wrong type.
    TypeInvalid,
    /// A value that is none of those that exist.
    NotSupported,
    /// A value that does not fit.
    Invalid,
    /// A key that is there twice.
    Duplicate,
    /// A text or list that is too long.
    TooLong,
    /// A value that this writer may not set.
    Forbidden,
}

impl Cause {
    /// The `reason` of a cause on the wire.
    #[must_use]
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
}

impl serde::Serialize for Cause {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.reason())
    }
}

/// The folded result.
#[derive(Clone, Debug, Default)]
pub struct Verdict<'p> {
    /// The policies that applied, by their place in the set.
    pub policies: Vec<u16>,
    /// Everything that was found, in the order of policies and rules.
    pub findings: Vec<Finding<'p>>,
    /// What to change. Never empty where it is there.
    pub patch: Option<Patch>,
    /// The status after the patch; `None` where there is no patch.
    pub status: Option<Json<'p>>,
    /// Defaults that were not set, by name: they would contradict the phase.
    pub withheld: Vec<&'p str>,
    /// A patch was made that did not apply to its own object. That is a bug of ours: nothing is
    /// sent, and someone should be told.
    pub patch_failed: bool,
}

impl Verdict<'_> {
    /// Whether the write is refused.
    #[must_use]
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
    fn what_several_policies_say_is_said_once_with_the_action_of_each() {
        let mut findings = vec![
            finding("a", "x", Action::Warn),
            finding("a", "y", Action::Deny),
            finding("b", "x", Action::Deny),
            finding("b", "y", Action::Audit),
            finding("b", "z", Action::Warn),
            finding("c", "x", Action::Audit),
        ];
        join_twins(&mut findings);
        let said: Vec<(&str, Vec<(&str, Action)>)> = findings
            .iter()
            .map(|finding| {
                let said_by = finding.said_by().map(|(policy, action)| (policy.as_str(), action));
                (finding.field.as_str(), said_by.collect())
            })
            .collect();
        assert_eq!(
            said,
            [
                ("x", vec![("b", Action::Deny), ("a", Action::Warn), ("c", Action::Audit)]),
                ("y", vec![("a", Action::Deny), ("b", Action::Audit)]),
                ("z", vec![("b", Action::Warn)]),
            ]
        );
    }
}
