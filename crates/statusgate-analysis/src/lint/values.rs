//! The values that a convention names beside checks: the checks of the same place accept them.

use std::collections::BTreeSet;

use serde_json::Value;

use super::rulings::members_of;
use super::{Kind, Lint, Remark, each_once};
use crate::facts::{Question, checks_of, checks_of_member, passes};
use crate::line::Clause;
use crate::table::phase_questions;
use statusgate_core::language::{AnyWord, Reference};
use statusgate_core::policy::Check;
use statusgate_core::policy::convention::{ConditionList, Filling, MEMBERS, Reasons};
use statusgate_core::source::tree::near;

/// Shorter names are all similar.
const SHORT: usize = 4;

/// A value that a predicate or a table names.
struct Named<'c> {
    value: Value,
    /// `/status/state`, or "the reason of Ready".
    place: String,
    checks: Vec<&'c Check>,
    /// The declared reasons, if it is a reason of a condition.
    reasons: Option<&'c Reasons>,
}

/// Checks accept the values that predicates and tables name. A reason is not similar to a declared one.
pub(super) fn named_values_can_occur(lint: &Lint<'_>) -> Vec<Remark> {
    let convention = lint.convention;
    let phase = convention.phase.as_ref();
    let health = convention.health.iter().flat_map(|health| &health.rules).filter_map(|rule| {
        let list = rule.list.as_ref().and_then(|path| convention.list_of_any_version(path));
        Some(Question { predicate: rule.when.as_ref()?, list, of_element: false })
    });
    let clauses = lint.clauses.iter().map(Clause::question);
    let questions =
        phase.into_iter().flat_map(|rules| phase_questions(rules)).chain(clauses).chain(health);
    let named = questions.flat_map(|question| lint.named_by(question));
    let tables = convention.conditions.iter().flat_map(|list| of_tables(list));
    let reason = phase.and_then(|phase| Some((phase, phase.reason.as_ref()?)));
    let of_phases = reason.into_iter().flat_map(|(phase, reason)| {
        let names = phase.phases.iter().flat_map(|phase| phase.reasons.iter());
        names.map(|name| Named {
            value: name.as_str().into(),
            place: reason.path.to_string(),
            checks: checks_of(convention, &reason.path),
            reasons: None,
        })
    });
    let mut known = BTreeSet::new();
    let found = named.chain(tables).chain(of_phases).filter_map(|named| named.remark());
    found.filter(|remark| known.insert(remark.message.clone())).collect()
}

/// The members that rules, keys and defaults name are not similar to declared ones of their list.
pub(super) fn members_are_declared(lint: &Lint<'_>) -> Vec<Remark> {
    let defaults = &lint.convention.backfill;
    let found = lint.convention.conditions.iter().flat_map(|list| {
        let usual = if list.element.is_none() { &MEMBERS[..] } else { &[] };
        let declared = list.members.iter().map(|(name, _)| name.as_str());
        let known: BTreeSet<&str> = declared.chain(usual.iter().copied()).collect();
        let of_defaults = defaults.iter().flat_map(|default| match &default.filling {
            Filling::Member { list: of, member, .. }
            | Filling::AbsentMember { list: of, member, .. }
            | Filling::Steady { list: of, member, .. }
                if *of == *list.path =>
            {
                Some(member.as_str())
            }
            _ => None,
        });
        let of_rules = members_of(&list.each);
        let time = list.transition_time.iter().map(|_| list.time_member());
        let used = of_rules.iter().chain(list.key()).map(String::as_str);
        let used: BTreeSet<&str> = used.chain(of_defaults).chain(time).collect();
        let remarks = used.iter().filter(|name| !known.contains(**name)).filter_map(|name| {
            let meant = near(name, known.iter().copied()).filter(|meant| meant.len() >= SHORT)?;
            let noun = list.a_noun();
            let message = format!("{noun} has no member \"{name}\"; did you mean \"{meant}\"?");
            Some(Remark::new(Kind::UndeclaredValue, Vec::new(), message, None))
        });
        remarks.collect::<Vec<_>>()
    });
    found.collect()
}

/// The reasons that the types of a list declare.
fn of_tables(list: &ConditionList) -> impl Iterator<Item = Named<'_>> {
    list.types.values().flat_map(move |kind| {
        let names = kind.reasons.iter().flat_map(Reasons::all);
        names.map(move |name| Named {
            value: name.into(),
            place: format!("the reason of {}", kind.name),
            checks: checks_of_member(list, "reason"),
            reasons: None,
        })
    })
}

impl Named<'_> {
    fn remark(&self) -> Option<Remark> {
        let Self { value, place, checks, .. } = self;
        // It means that there is no value.
        if value.is_null() || value == "" {
            return None;
        }
        let refusing = checks.iter().filter(|check| !passes(&[check], value));
        let rules = each_once(refusing.map(|check| check.rule.to_string()));
        let text = value.as_str();
        let message = if rules.is_empty() {
            let (reasons, text) = (self.reasons?, text?);
            if reasons.statuses(text).next().is_some() {
                return None;
            }
            let meant = near(text, reasons.all())?;
            format!("a predicate names {value}, {place}; did you mean \"{meant}\"?")
        } else {
            let words = checks.iter().flat_map(|check| &check.values);
            let meant =
                text.and_then(|text| near(text, words.filter_map(|word| word.value().as_str())));
            let meant = meant.map(|word| format!("; did you mean \"{word}\"?")).unwrap_or_default();
            format!("the convention names {value}, but the checks of {place} reject it{meant}")
        };
        Some(Remark::new(Kind::UndeclaredValue, rules, message, None))
    }
}

impl<'c> Lint<'c> {
    fn named_by(&self, question: Question<'_>) -> Vec<Named<'c>> {
        let list = question.list.or_else(|| self.convention.primary_conditions(self.stage.version));
        let list = list.and_then(|list| self.convention.list_of_any_version(&list.path));
        let mut named = Vec::new();
        for word in question.predicate.questions() {
            match word {
                AnyWord::Value(word) => {
                    let wanted =
                        word.is.iter().chain(&word.is_not).flat_map(|values| values.iter());
                    let (place, checks) = self.checks_of(&word.reference, list);
                    named.extend(wanted.map(|value| Named {
                        value: value.value().clone(),
                        place: place.clone(),
                        checks: checks.clone(),
                        reasons: None,
                    }));
                }
                AnyWord::Condition(word) => {
                    let kind = word.of.kind();
                    let reasons = list.and_then(|list| list.find(kind)?.reasons.as_ref());
                    for (member, wanted, reasons) in
                        [("reason", &word.reason, reasons), ("severity", &word.severity, None)]
                    {
                        let checks =
                            list.map(|list| checks_of_member(list, member)).unwrap_or_default();
                        named.extend(wanted.iter().flat_map(|names| names.iter()).map(|name| {
                            Named {
                                value: name.as_str().into(),
                                place: format!("the {member} of {kind}"),
                                checks: checks.clone(),
                                reasons,
                            }
                        }));
                    }
                }
                _ => {}
            }
        }
        named
    }

    /// What a reference is called, and the checks of its value.
    fn checks_of(
        &self,
        reference: &Reference,
        list: Option<&'c ConditionList>,
    ) -> (String, Vec<&'c Check>) {
        match reference {
            Reference::Field(path) | Reference::OldField(path) => {
                (path.to_string(), checks_of(self.convention, path))
            }
            Reference::Member(name) | Reference::OldMember(name) => {
                let checks = list.map(|list| checks_of_member(list, name));
                (format!("the member {name}"), checks.unwrap_or_default())
            }
            Reference::OfCondition(of) => (of.member.clone(), Vec::new()),
        }
    }
}
