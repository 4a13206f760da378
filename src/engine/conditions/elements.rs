//! One element of a list: its members, its type and reason, its time.

use super::super::Cause;
use super::super::because::{escaped, quoted};
use super::super::ratchet::{Digest, Sink, Violation};
use super::evidence::{self, Facts, Truth};
use super::keys::{Key, shortened};
use super::{Circumstances, fields, same, violation};
use crate::language::Predicate;
use crate::model::{ConditionStatus, Conditions, Json, parse_rfc3339};
use crate::policy::Id;
use crate::policy::convention::{
    ConditionList, ConditionType, Filling, Movers, Sanction, TransitionTimes,
};

/// A status that changes within this many seconds after its last change may keep its time: a
/// `metav1.Time` has a resolution of seconds, and two changes may fall into one.
const FLIP_SECONDS: i64 = 2;

/// One element of a list.
pub(super) struct Element<'p, 's, 'a> {
    pub(super) list: &'p ConditionList,
    pub(super) item: &'s Json<'a>,
    pub(super) index: usize,
    pub(super) kind: Option<&'s str>,
    pub(super) key: Key<'p>,
    /// The rules of its type.
    pub(super) known: Option<&'p ConditionType>,
    /// The stored element of the same key.
    pub(super) before: Option<&'s Json<'a>>,
}

impl<'p: 's, 's, 'a> Element<'p, 's, 'a> {
    /// Judges an element that this write changed.
    pub(super) fn judge(
        &self,
        circumstances: &Circumstances<'p, '_, 's, 'a>,
        violations: &mut dyn Sink<'p>,
    ) {
        self.judge_members(violations);
        self.judge_type(violations);
        if let Some(times) = &self.list.times {
            self.judge_time(times, circumstances, violations);
        }
        if let Some(generations) = circumstances.generations {
            const MEMBER: &str = "observedGeneration";
            let number = |item: &Json<'_>| item.get(MEMBER).and_then(Json::as_i64);
            if let Some(new) = number(self.item)
                && let Some((sanction, message)) =
                    generations.judge(new, self.before.and_then(number))
            {
                let found = self.violation(&sanction.rule, MEMBER, message.to_owned());
                let (cause, action) = (Cause::Invalid, sanction.action);
                violations.push(Violation { cause, action, ratcheted: false, ..found });
            }
        }
    }

    /// Judges the convention's rules about each element.
    pub(super) fn judge_rules(&self, facts: &Facts<'s, 'a>, violations: &mut dyn Sink<'p>) {
        if self.list.each.is_empty() {
            return;
        }
        let (item, before, kind) = (self.item, self.before, self.known);
        let facts = facts.of_element(evidence::Element { item, before, kind });
        for rule in &self.list.each {
            if facts.ask(&rule.when) == Truth::True {
                let found = self.violation(&rule.id, &rule.member, rule.message.clone());
                violations.push(Violation { cause: Cause::Invalid, action: rule.action, ..found });
            }
        }
    }

    fn judge_members(&self, violations: &mut dyn Sink<'p>) {
        for (member, checks) in &self.list.members {
            let value = self.item.get(member);
            // The first violation of a member is enough: an empty reason also violates its pattern.
            let fault =
                checks.iter().find_map(|check| Some((check, fields::violation(check, value)?)));
            if let Some((check, (cause, message))) = fault {
                let found = self.violation(&check.rule, member, message);
                let (action, value) = (check.action.into(), fields::judged(cause, value));
                violations.push(Violation { cause, action, value, ..found });
            }
        }
        let Some(sanction) = &self.list.other_members else { return };
        let Json::Object(members) = self.item else { return };
        for (name, value) in members.iter() {
            let known = self.list.members.iter().any(|(known, _)| known == name);
            if !known && !value.is_null() {
                let message = "is not a known member of this condition".to_owned();
                let found = self.violation(&sanction.rule, &escaped(name), message);
                let (cause, action) = (Cause::Invalid, sanction.action);
                violations.push(Violation { cause, action, ..found });
            }
        }
    }

    fn judge_type(&self, violations: &mut dyn Sink<'p>) {
        let mut say = |sanction: &'p Sanction, member: &str, cause, message| {
            let found = self.violation(&sanction.rule, member, message);
            let unsupported = cause == Cause::NotSupported;
            let value = self.item.get(member).filter(|_| unsupported).map(Digest::of);
            violations.push(Violation { cause, action: sanction.action, value, ..found });
        };
        let Some(kind) = self.kind else { return };
        let Some(known) = self.known else {
            if let Some(sanction) = &self.list.types.other {
                let names = self.list.types.known.iter().map(|known| &known.name);
                say(sanction, "type", Cause::NotSupported, fields::unsupported(kind, names));
            }
            return;
        };
        let status = Conditions::status_of(self.item);
        if let Some(sanction) = &known.not_true
            && status.is_some_and(|status| status != ConditionStatus::True)
        {
            let message = format!("condition {} must be True or absent", known.name);
            say(sanction, "status", Cause::Invalid, message);
        }
        if let Some(sanction) = &known.reverted
            && self.before.and_then(Conditions::status_of) == Some(ConditionStatus::True)
            && status != Some(ConditionStatus::True)
        {
            let message = format!("condition {} must stay True", known.name);
            say(sanction, "status", Cause::Invalid, message);
        }
        let Some(reason) = self.item.get("reason").and_then(Json::as_str) else { return };
        match known.row(reason) {
            Some(row) => {
                for (member, texts) in &row.expects {
                    let value = self.item.get(member).and_then(Json::as_str).unwrap_or_default();
                    if !texts.iter().any(|text| text == value) {
                        let texts: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
                        let message = format!(
                            "reason {} requires {member} {}, not {}",
                            quoted(reason),
                            texts.join(" or "),
                            quoted(value)
                        );
                        say(&row.sanction, member, Cause::Invalid, message);
                    }
                }
            }
            None => {
                if let Some(sanction) = &known.other_reasons {
                    let reasons = known.reasons.iter().map(|row| &row.reason);
                    let message = fields::unsupported(reason, reasons);
                    say(sanction, "reason", Cause::NotSupported, message);
                }
            }
        }
    }

    /// A change of a `must` member moves the time, a change of a `may` member can, and nothing else does.
    /// `must` is a subset of `may`.
    fn judge_time(
        &self,
        times: &'p TransitionTimes,
        circumstances: &Circumstances<'p, '_, 's, 'a>,
        violations: &mut dyn Sink<'p>,
    ) {
        let time = |element: &Json<'_>| {
            element.get(&times.member).and_then(Json::as_str).and_then(parse_rfc3339)
        };
        let now = circumstances.now;
        // An invalid time is reported as a violation of its format.
        let Some(new) = time(self.item) else { return };
        let before = self.before;
        // Go's writers omit empty strings, so "" equals absence (AS-S3).
        let moved = |member: &str| {
            let said = |item: &'s Json<'a>| item.get(member).filter(|value| !value.is_empty());
            before.is_some_and(|before| !same(said(self.item), said(before)))
        };
        let any = |members: &[String]| members.iter().any(|member| moved(member));
        let old = before.and_then(time);
        let mirrored = self.known.is_some_and(|known| known.mirrored);
        let mut say = |sanction: &'p Sanction, message: &str| {
            let found = self.violation(&sanction.rule, &times.member, message.to_owned());
            let (cause, action) = (Cause::Invalid, sanction.action);
            violations.push(Violation { cause, action, ratcheted: false, ..found });
        };
        if old != Some(new) && new > now.saturating_add(times.skew) {
            say(&times.future, "is in the future");
        }
        let Some(old) = old else { return };
        let changed = match &times.may_move_on {
            Movers::Anything => true,
            Movers::Members(members) => mirrored || any(members),
        };
        if old == new {
            let must =
                |member: &String| moved(member) && !self.was_taken_out(member, circumstances);
            if let Some(kept) = &times.kept
                && !mirrored
                && times.must_move_on.iter().any(must)
                && old < now - FLIP_SECONDS
            {
                say(kept, "must change when the condition changes");
            }
        } else if new < old {
            let sanction = if changed { &times.backwards } else { &times.backwards_unchanged };
            say(sanction, "moved backwards");
        } else if let Some(moved) = times.moved.as_ref().filter(|_| !changed) {
            say(moved, "changed although the condition did not");
        }
    }

    /// Whether the mutating webhook removes a member from the stored element. Then the writer did not
    /// remove it.
    fn was_taken_out(&self, member: &str, circumstances: &Circumstances<'p, '_, 's, 'a>) -> bool {
        let Some(stored) = self.before.filter(|_| self.item.get(member).is_none()) else {
            return false;
        };
        let element = evidence::Element { item: stored, before: Some(stored), kind: self.known };
        let holds = |facts: &Facts<'s, 'a>, when: &Predicate| facts.ask(when) == Truth::True;
        circumstances.backfill.iter().any(|fill| match &fill.filling {
            Filling::AbsentMember { list, member: taken, of } => {
                *list == self.list.path
                    && taken == member
                    && fill.when.as_ref().is_none_or(|when| holds(circumstances.facts, when))
                    && holds(&circumstances.facts.of_element(element), of)
            }
            _ => false,
        })
    }

    /// A violation at a member of this element, or at the element if `member` is empty.
    pub(super) fn violation(&self, rule: &'p Id, member: &str, message: String) -> Violation<'p> {
        let dot = if member.is_empty() { "" } else { "." };
        let path = self.list.path.field();
        // By its key, because the index changes when elements are inserted. In a history by its type.
        let place = match (&self.list.history, self.kind) {
            (None, _) => Some(format!("{path}[{}]{dot}{member}", self.key.place(self.item))),
            (Some(_), Some(kind)) => {
                Some(format!("{path}[type={:?}]{dot}{member}", shortened(kind)))
            }
            (Some(_), None) => None,
        };
        Violation {
            place,
            ..violation(rule, format!("{path}[{}]{dot}{member}", self.index), message)
        }
    }
}
