//! The values that a convention names beside checks: the checks of the same place accept them.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Kind, Lint, Remark, each_once};
use crate::facts::{Question, checks_of, checks_of_member, passes};
use crate::line::Clause;
use crate::table::phase_questions;
use statusgate_core::documents::FieldType;
use statusgate_core::language::{self as word, AnyWord, Bound, Reference};
use statusgate_core::model::Pointer;
use statusgate_core::policy::convention::{ConditionList, Convention, Filling, MEMBERS, Reasons};
use statusgate_core::policy::{CelRule, Check, Policy};
use statusgate_core::source::tree::{did_you_mean, near};

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
    let named = lint.questions().flat_map(|question| lint.named_by(question));
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

/// Checks leave it open whether a test of a predicate holds.
pub(super) fn tests_are_open(lint: &Lint<'_>) -> Vec<Remark> {
    let decided = lint.questions().flat_map(|question| {
        let words = question.predicate.questions().into_iter();
        words.filter_map(move |word| match word {
            AnyWord::Value(word) => {
                let (place, checks) = lint.checks_of(&word.reference, lint.list_of(question));
                let what = decided(word, &checks)?;
                let rules = each_once(checks.iter().map(|check| check.rule.to_string()));
                Some((rules, format!("by its checks, {place} {what}, so a test of it is decided")))
            }
            _ => None,
        })
    });
    let remarks = each_once(decided).into_iter();
    remarks
        .map(|(rules, message)| Remark::new(Kind::UndeclaredValue, rules, message, None))
        .collect()
}

/// Why the checks of a value decide a test of it.
fn decided(word: &word::Value, checks: &[&Check]) -> Option<String> {
    let values = checks.iter().flat_map(|check| &check.values);
    let texts: Vec<&str> = values.filter_map(|value| value.value().as_str()).collect();
    if let Some(pattern) = &word.matches
        && !texts.is_empty()
        && !texts.iter().any(|text| pattern.is_match(text))
    {
        return Some(format!("never matches {}", pattern.as_str()));
    }
    let number = |bound: &Option<Bound>| match bound {
        Some(Bound::Number(number)) => number.as_f64(),
        _ => None,
    };
    let (least, most) = (number(&word.at_least), number(&word.at_most));
    let is_text = checks.iter().any(|check| check.kind == Some(FieldType::String));
    if is_text && (word.at_least.is_some() || word.at_most.is_some()) {
        return Some("is a string and no number".to_owned());
    }
    let mut limits = checks.iter().filter_map(|check| Some((check.maximum?, least?)));
    if let Some((maximum, least)) = limits.find(|(maximum, least)| maximum < least) {
        return Some(format!("is at most {maximum} and never at least {least}"));
    }
    let mut limits = checks.iter().filter_map(|check| Some((check.minimum?, most?)));
    let (minimum, most) = limits.find(|(minimum, most)| minimum > most)?;
    Some(format!("is at least {minimum} and never at most {most}"))
}

/// Checks and phases accept the constants with which a rule in CEL compares, and its members are not similar to declared ones.
pub(super) fn constants_can_occur(policy: &Policy, rule: &CelRule) -> Vec<Remark> {
    let convention = &*policy.convention;
    let mentions = &rule.expression.mentions;
    let of_constants = mentions.constants.iter().filter_map(|(pointer, value, _)| {
        if pointer.in_metadata().is_some() && !value.is_string() {
            return Some(format!("{} is a text, and {value} is none", pointer.field()));
        }
        let text = value.as_str().unwrap_or_default();
        if let Some(phase) = &convention.phase
            && phase.paths().any(|path| path == pointer)
        {
            let known = phase.phases.iter().map(|phase| phase.name.as_str());
            let known: Vec<&str> = known.chain(phase.default.as_deref()).collect();
            let is_odd = !text.is_empty() && !known.contains(&text);
            let help = did_you_mean(text, known.iter().copied());
            return is_odd.then(|| format!("no phase has the name \"{text}\"; {help}"));
        }
        let Some((list, member)) = list_with(convention, pointer) else {
            let of_policy = policy.fields.iter().filter(|field| *field.path == *pointer);
            let of_policy = of_policy.map(|field| &field.check);
            let checks = checks_of(convention, pointer).into_iter().chain(of_policy).collect();
            let place = pointer.to_string();
            return Named { value: value.clone(), place, checks, reasons: None }.message();
        };
        if member == "type" && list.find(text).is_none() {
            let types = list.types.values().filter_map(|kind| kind.glob.exact());
            let meant = near(text, types).filter(|meant| meant.len() > SHORT)?;
            return Some(format!(
                "no list declares the type \"{text}\"; did you mean \"{meant}\"?"
            ));
        }
        let (place, checks) = (format!("the member {member}"), checks_of_member(list, member));
        Named { value: value.clone(), place, checks, reasons: None }.message()
    });
    let of_members = mentions.members.keys().filter_map(|path| {
        let (list, member) = list_with(convention, path)?;
        similar_member(list, member)
    });
    let messages = each_once(of_constants.chain(of_members)).into_iter();
    let rules = vec![rule.id.to_string()];
    messages
        .map(|message| Remark::new(Kind::UndeclaredValue, rules.clone(), message, None))
        .collect()
}

/// The list, and the member of its elements, that an expression reads.
fn list_with<'c>(
    convention: &'c Convention,
    path: &'c Pointer,
) -> Option<(&'c ConditionList, &'c str)> {
    let (member, element) = path.tokens().split_last()?;
    let list = convention.conditions.iter().find(|list| {
        let tokens = list.path.tokens().iter().map(String::as_str);
        let index = (!list.is_map()).then_some("0");
        let tokens: Vec<&str> = tokens.chain(index).collect();
        tokens.len() == element.len()
            && tokens.iter().zip(element).all(|(wanted, found)| *wanted == "*" || *wanted == found)
    })?;
    Some((list, member))
}

/// The message about a member that is similar to a declared one of its list.
fn similar_member(list: &ConditionList, name: &str) -> Option<String> {
    let usual = if list.element.is_none() { &MEMBERS[..] } else { &[] };
    let declared = list.members.iter().map(|(name, _)| name.as_str());
    let known: BTreeSet<&str> = declared.chain(usual.iter().copied()).collect();
    if known.contains(name) {
        return None;
    }
    let meant = near(name, known.iter().copied()).filter(|meant| meant.len() >= SHORT)?;
    Some(format!("{} has no member \"{name}\"; did you mean \"{meant}\"?", list.a_noun()))
}

/// The members that rules, keys and defaults name are not similar to declared ones of their list.
pub(super) fn members_are_declared(lint: &Lint<'_>) -> Vec<Remark> {
    let defaults = &lint.convention.backfill;
    let found = lint.convention.conditions.iter().flat_map(|list| {
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
        let of_rules = lint.members_of(list);
        let time = list.transition_time.iter().map(|_| list.time_member());
        let used = of_rules.iter().chain(list.key()).map(String::as_str);
        let used: BTreeSet<&str> = used.chain(of_defaults).chain(time).collect();
        let messages = used.iter().filter_map(|name| similar_member(list, name));
        messages
            .map(|message| Remark::new(Kind::UndeclaredValue, Vec::new(), message, None))
            .collect::<Vec<_>>()
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
        let message = self.message()?;
        Some(Remark::new(Kind::UndeclaredValue, self.refusing(), message, None))
    }

    /// The rules that reject the value.
    fn refusing(&self) -> Vec<String> {
        let refusing = self.checks.iter().filter(|check| !passes(&[check], &self.value));
        each_once(refusing.map(|check| check.rule.to_string()))
    }

    fn message(&self) -> Option<String> {
        let Self { value, place, checks, .. } = self;
        // It means that there is no value.
        if value.is_null() || value == "" {
            return None;
        }
        let text = value.as_str();
        Some(if self.refusing().is_empty() {
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
        })
    }
}

impl<'c> Lint<'c> {
    /// What the convention asks: for phases, in rules, and about health.
    fn questions(&self) -> impl Iterator<Item = Question<'_>> {
        let phase = self.convention.phase.iter().flat_map(|rules| phase_questions(rules));
        let health = self.convention.health.iter().flat_map(|health| &health.rules);
        let health = health.filter_map(|rule| {
            let list = rule.list.as_ref();
            let list = list.and_then(|path| self.convention.list_of_any_version(path));
            Some(Question { predicate: rule.when.as_ref()?, list, of_element: false })
        });
        phase.chain(self.clauses.iter().map(Clause::question)).chain(health)
    }

    /// The list with the conditions that a question reads.
    fn list_of(&self, question: Question<'_>) -> Option<&'c ConditionList> {
        let list = question.list.or_else(|| self.convention.primary_conditions(self.stage.version));
        list.and_then(|list| self.convention.list_of_any_version(&list.path))
    }

    fn named_by(&self, question: Question<'_>) -> Vec<Named<'c>> {
        let list = self.list_of(question);
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
