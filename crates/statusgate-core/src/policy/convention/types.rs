//! The types of conditions in a list: polarity, presence, and what their reasons say.

use super::super::checks::kebab;
use super::super::compile::{Compiler, Purpose};
use super::{ConditionList, ConditionType, Presence, Reasons, Sanction};
use crate::documents::Name;
use crate::language::{Glob, Predicate};
use crate::model::ConditionStatus;
use crate::source::tree::At;

impl ConditionType {
    /// Whether this is its name, or a name of its family.
    pub fn matches(&self, name: &str) -> bool {
        self.glob.matches(name)
    }

    /// Whether a rule depends on its presence.
    pub(crate) const fn is_looked_for(&self) -> bool {
        self.missing.is_some() || self.present.is_some()
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

impl Reasons {
    /// The lists, each with its status.
    pub fn lists(&self) -> impl Iterator<Item = (ConditionStatus, &[String])> + Clone {
        let lists: [(_, &[String]); 3] = [
            (ConditionStatus::True, &self.of_true),
            (ConditionStatus::False, &self.of_false),
            (ConditionStatus::Unknown, &self.of_unknown),
        ];
        lists.into_iter()
    }

    /// All reasons. One of several statuses occurs several times.
    pub fn all(&self) -> impl Iterator<Item = &str> + Clone {
        self.lists().flat_map(|(_, reasons)| reasons).map(String::as_str)
    }

    /// The statuses of a reason: none if it is in no list.
    pub fn statuses(&self, reason: &str) -> impl Iterator<Item = ConditionStatus> + Clone {
        let lists =
            self.lists().filter(move |(_, reasons)| reasons.iter().any(|one| one == reason));
        lists.map(|(status, _)| status)
    }
}

impl Compiler<'_> {
    pub(super) fn condition_types(&self, list: &mut ConditionList, at: At<'_>) {
        let mut known: Vec<&str> = Vec::new();
        for (name, kind) in &mut list.types {
            let at = at.key("types").key(name);
            self.condition_type(name, kind, &list.source, list.element.as_ref(), at);
            // What an entry above matches is not found below.
            if let Some(other) = known.iter().find(|other| Glob::from(**other).matches(name)) {
                let message = format!("type {name} is \"{other}\" above already");
                let help = "the first entry that fits counts: put this one above it";
                at.name().report_with_help(message, help);
            }
            known.push(name);
        }
        let rules = self.tables(&[&list.source]).of_list(list.element.as_ref());
        rules.name("condition-type-unknown", list.other_types.as_mut());
        rules.name("condition-order", list.order.as_mut());
    }

    fn condition_type(
        &self,
        name: &str,
        kind: &mut ConditionType,
        source: &str,
        element: Option<&Name>,
        at: At<'_>,
    ) {
        let own = kind.source.clone();
        let rules = self.tables(&[&own, source]).of_list(element);
        let id = |what: &str| format!("{}-{what}", kebab(name));
        if let (Some(Presence::Always(_)), Some(Presence::Always(_))) =
            (&kind.missing, &kind.present)
        {
            at.key("present").report_with_help(
                "every status violates a rule, with the type by \"present\" and without it by \"missing\"",
                "remove one of them, or give it a \"when\"",
            );
        }
        // One rule for all types: a convention can have a hundred of them.
        let of_list = self.tables(&[source]).of_list(element);
        for (key, rules, rule, presence) in [
            ("missing", rules, id("missing"), &mut kind.missing),
            ("present", rules, id("present"), &mut kind.present),
            ("removed", of_list, "condition-removed".to_owned(), &mut kind.removed),
        ] {
            let sanction = presence.as_mut().map(|presence| match presence {
                Presence::Always(sanction) => sanction,
                Presence::Guarded(guarded) => {
                    self.report(guarded.when.check(), Purpose::Decide, at.key(key).key("when"));
                    &mut guarded.action
                }
            });
            rules.name(&rule, sanction);
        }
        rules.name(&id("not-true"), kind.not_true.as_mut());
        rules.name(&id("reverted"), kind.reverted.as_mut());
        if let Some(summary) = &mut kind.summary {
            rules.name_mild("summary-better", summary.better.as_mut());
            rules.name_mild("summary-worse", summary.worse.as_mut());
            rules.name_mild("summary-reason", summary.other_reason.as_mut());
        }
        if let Some(reasons) = &mut kind.reasons {
            of_list.name("condition-reason-status", reasons.action.as_mut());
            of_list.name("condition-reason-unknown", reasons.other.as_mut());
        }
        (kind.name, kind.glob) = (name.to_owned(), name.into());
    }
}
