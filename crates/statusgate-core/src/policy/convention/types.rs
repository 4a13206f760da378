//! The types of conditions in a list: polarity, presence, and what their reasons say.

use serde_json::Value;

use super::super::Disposition;
use super::super::checks::kebab;
use super::super::compile::{Compiler, Purpose};
use super::{ConditionList, ConditionType, Presence, ReasonRow, Sanction};
use crate::language::{Glob, Predicate, Scalar};
use crate::model::ConditionStatus;
use crate::source::tree::At;

impl ConditionType {
    /// Whether this is its name, or a name of its family.
    pub fn matches(&self, name: &str) -> bool {
        self.glob.matches(name)
    }

    /// Whether a rule depends on its presence.
    pub(crate) const fn is_looked_for(&self) -> bool {
        self.missing.is_some() || self.present.is_some() || self.removed.is_some()
    }

    /// A type of this name; of a family, an example.
    pub fn sample(&self) -> String {
        self.glob.sample()
    }
}

impl Presence {
    /// The condition under which the rule applies, if it has one, and the rule.
    pub fn parts(&self) -> (Option<&Predicate>, &Sanction) {
        match self {
            Self::Always(sanction) => (None, sanction),
            Self::Guarded(guarded) => (Some(&guarded.when), &guarded.action),
        }
    }
}

impl ReasonRow {
    /// Members and their admissible texts; the empty text also stands for absence.
    pub fn expects(&self) -> impl Iterator<Item = (&str, impl Iterator<Item = &str> + Clone)> {
        let (status, others) = match self {
            Self::Status(status) => (Some(status), None),
            Self::Members(members) => (members.status.as_ref(), Some(&members.others)),
        };
        let status = status.into_iter().map(|status| ("status", texts(status, &[])));
        let others = others.into_iter().flatten();
        status.chain(others.map(|(member, scalars)| (member.as_str(), texts(&[], scalars))))
    }

    /// What happens when a member has another text.
    pub fn action(&self) -> Disposition {
        match self {
            Self::Status(_) => None,
            Self::Members(members) => members.action,
        }
        .unwrap_or(Disposition::Deny)
    }
}

impl Compiler<'_> {
    pub(super) fn condition_types(&self, list: &mut ConditionList, at: At<'_>) {
        let mut known: Vec<&str> = Vec::new();
        for (name, kind) in &mut list.types {
            let at = at.key("types").key(name);
            self.condition_type(name, kind, &list.source, at);
            // What an entry above matches is not found below.
            if let Some(other) = known.iter().find(|other| Glob::from(**other).matches(name)) {
                let message = format!("type {name} is \"{other}\" above already");
                let help = "the first entry that fits counts: put this one above it";
                at.name().report_with_help(message, help);
            }
            known.push(name);
        }
        let rules = self.tables(&[&list.source]);
        rules.name("condition-type-unknown", list.other_types.as_mut());
        rules.name("condition-order", list.order.as_mut());
    }

    fn condition_type(&self, name: &str, kind: &mut ConditionType, source: &str, at: At<'_>) {
        let own = kind.source.clone();
        let rules = self.tables(&[&own, source]);
        let id = |what: &str| format!("{}-{what}", kebab(name));
        for (key, presence) in [("missing", &mut kind.missing), ("present", &mut kind.present)] {
            let sanction = presence.as_mut().map(|presence| match presence {
                Presence::Always(sanction) => sanction,
                Presence::Guarded(guarded) => {
                    self.report(guarded.when.check(), Purpose::Decide, at.key(key).key("when"));
                    &mut guarded.action
                }
            });
            rules.name(&id(key), sanction);
        }
        rules.name(&id("not-true"), kind.not_true.as_mut());
        rules.name(&id("removed"), kind.removed.as_mut());
        rules.name(&id("reverted"), kind.reverted.as_mut());
        for (reason, row) in &kind.reasons {
            kind.reason_rule = rules.rule(&id("reason"), row.action());
            check_texts(row, at.key("reasons").key(reason));
        }
        (kind.name, kind.glob) = (name.to_owned(), name.into());
    }
}

/// Reports numbers: the members of conditions are strings.
fn check_texts(row: &ReasonRow, at: At<'_>) {
    let ReasonRow::Members(members) = row else { return };
    for (member, scalars) in &members.others {
        let scalars = at.key(member).each(scalars.iter());
        for (at, _) in scalars.filter(|(_, scalar)| text(scalar).is_none()) {
            at.report("this must be a string, it is a number (quote it)");
        }
    }
}

/// A text as members of conditions have it; none for a number. YAML reads an unquoted `True` as a
/// boolean; in a condition it can only mean the status.
fn texts<'r>(
    statuses: &'r [ConditionStatus],
    scalars: &'r [Scalar],
) -> impl Iterator<Item = &'r str> + Clone {
    let names = statuses.iter().map(|status| status.name());
    names.chain(scalars.iter().map(|scalar| text(scalar).unwrap_or_default()))
}

pub(super) fn text(scalar: &Scalar) -> Option<&str> {
    match scalar.value() {
        Value::Bool(value) => Some(if *value { "True" } else { "False" }),
        other => other.as_str(),
    }
}
