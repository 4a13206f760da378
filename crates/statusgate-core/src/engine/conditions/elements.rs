//! One element of a list: its members, its type and reason, its time.

use super::super::Cause;
use super::super::because::{escaped, explained, quoted};
use super::super::violation::{Sink, Violation};
use super::keys::{Key, shortened};
use super::{Circumstances, Facts, Path, Truth, fields, same, with_element};
use crate::language::{Predicate, quoted_if_odd};
use crate::model::{ConditionStatus, Conditions, Json, is_before_write, parse_rfc3339};
use crate::policy::convention::{ConditionType, Filling, Position, Sanction, TransitionTime};

/// An element that is judged, with its key, rules and stored value.
pub(super) struct JudgedElement<'p, 's, 'a> {
    pub(super) path: Path<'p, 's, 'a>,
    pub(super) item: &'s Json<'a>,
    pub(super) position: Position<'s>,
    pub(super) kind: Option<&'s str>,
    pub(super) key: Key<'p>,
    /// The rules of its type.
    pub(super) known: Option<&'p ConditionType>,
    /// The stored element of the same key.
    pub(super) before: Option<&'s Json<'a>>,
}

impl<'p: 's, 's, 'a> JudgedElement<'p, 's, 'a> {
    /// Judges an element that this write changed.
    pub(super) fn judge(
        &self,
        circumstances: &Circumstances<'p, '_, 's, 'a>,
        violations: &mut dyn Sink<'p>,
    ) {
        self.judge_key(violations);
        self.judge_members(violations);
        self.judge_type(circumstances.facts, violations);
        if let Some(times) = &self.path.list.transition_time {
            self.judge_time(times, circumstances, violations);
        }
        if let Some(generations) = circumstances.generations {
            const MEMBER: &str = "observedGeneration";
            let number = |item: &Json<'_>| item.get(MEMBER).and_then(Json::as_i64);
            if let Some(new) = number(self.item)
                && let Some((sanction, message)) =
                    generations.judge(new, self.before.and_then(number))
            {
                violations.push(self.violation(sanction, MEMBER, message).transition());
            }
        }
    }

    /// Judges the convention's rules about each element.
    pub(super) fn judge_rules(&self, facts: &Facts<'s, 'a>, violations: &mut dyn Sink<'p>) {
        if self.path.list.each.is_empty() {
            return;
        }
        let facts = with_element(*facts, self.item, self.before, self.known);
        for rule in &self.path.list.each {
            if facts.ask(&rule.when.0) == Truth::True {
                violations.push(self.located(&rule.member, |field| {
                    let message = explained(&rule.message, &rule.when.0, &facts);
                    Violation::new(&rule.rule, rule.action, field, message)
                }));
            }
        }
    }

    fn judge_key(&self, violations: &mut dyn Sink<'p>) {
        let checks = &self.path.list.keys;
        let (Some(key), false) = (self.position.own_key(), checks.is_empty()) else { return };
        let key = Json::String(key.into());
        let fault =
            checks.iter().find_map(|check| Some((check, fields::violation(check, Some(&key))?)));
        if let Some((check, (cause, message))) = fault {
            let found = self.located("", |field| {
                Violation::new(&check.rule, check.action(), field, format!("the key: {message}"))
            });
            violations.push(found.cause(cause));
        }
    }

    fn judge_members(&self, violations: &mut dyn Sink<'p>) {
        for (member, checks) in self.path.list.members.iter() {
            let value = self.item.get(member);
            // The first violation of a member is enough: an empty reason also violates its pattern.
            let fault =
                checks.iter().find_map(|check| Some((check, fields::violation(check, value)?)));
            if let Some((check, (cause, message))) = fault {
                let found = self.located(member, |field| {
                    Violation::new(&check.rule, check.action(), field, message)
                });
                violations.push(found.cause(cause).of_value(value));
            }
        }
        let Some(sanction) = &self.path.list.other_members else { return };
        let Json::Object(members) = self.item else { return };
        for (name, value) in members.iter() {
            if !self.path.list.members.contains_key(name) && !value.is_null() {
                let noun = self.path.list.noun();
                let message = format!("is not a known member of this {noun}");
                violations.push(self.violation(sanction, &escaped(name), message));
            }
        }
    }

    fn judge_type(&self, facts: &Facts<'s, 'a>, violations: &mut dyn Sink<'p>) {
        let Some(kind) = self.kind else { return };
        self.judge_kept_reason(violations);
        let is_declared = self.known.is_some_and(|known| known.glob.exact().is_some());
        let misspelled = if is_declared { None } else { self.misspelled_type(kind, facts) };
        misspelled.into_iter().for_each(|found| violations.push(found));
        let Some(known) = self.known else {
            if let Some(sanction) = &self.path.list.other_types {
                let names = self.path.list.types.values().map(|known| known.name.as_str());
                let message = fields::unsupported(kind, names);
                let found = self.violation(sanction, "type", message).cause(Cause::NotSupported);
                violations.push(found.of_value(self.item.get("type")));
            }
            return;
        };
        let status = Conditions::status_of(self.item);
        if let Some(sanction) = &known.not_true
            && let Some(status) = status.filter(|status| *status != ConditionStatus::True)
        {
            let message = format!("must be True or absent, it is {}", status.name());
            violations.push(self.violation(sanction, "status", message));
        }
        if let Some(sanction) = &known.reverted
            && self.before.and_then(Conditions::status_of) == Some(ConditionStatus::True)
            && status != Some(ConditionStatus::True)
        {
            let message = "must stay True";
            violations.push(self.violation(sanction, "status", message));
        }
        let Some(reason) = self.item.get("reason").and_then(Json::as_str) else { return };
        let Some(reasons) = known.reasons.as_ref().filter(|_| !reason.is_empty()) else { return };
        let mut statuses = reasons.statuses(reason).map(ConditionStatus::name).peekable();
        let (sanction, member, message) = if statuses.peek().is_none() {
            if let Some(misspelled) = self.misspelled_reason(reason, reasons) {
                return violations.push(misspelled);
            }
            (&reasons.other, "reason", fields::unsupported(reason, reasons.all()))
        } else {
            let found = self.item.get("status").and_then(Json::as_str).unwrap_or_default();
            if statuses.clone().any(|status| status == found) {
                return;
            }
            let (reason, found) = (quoted(reason), quoted(found));
            let statuses = statuses.map(quoted).collect::<Vec<_>>().join(" or ");
            let message = format!("reason {reason} requires status {statuses}, not {found}");
            (&reasons.action, "status", message)
        };
        if let Some(sanction) = sanction {
            violations.push(self.violation(sanction, member, message));
        }
    }

    /// A change of the status has a reason or a message.
    fn judge_kept_reason(&self, violations: &mut dyn Sink<'p>) {
        let (Some(sanction), Some(before)) = (&self.path.list.reason_kept, self.before) else {
            return;
        };
        let text = |item: &'s Json<'a>, member| item.get(member).filter(|value| !value.is_empty());
        let is_kept = |member| same(text(before, member), text(self.item, member));
        let statuses = [before, self.item].map(Conditions::status_of);
        let [Some(old), Some(new)] = statuses else { return };
        let reason = text(self.item, "reason").and_then(Json::as_str);
        let Some(reason) = reason.filter(|_| old != new && is_kept("reason") && is_kept("message"))
        else {
            return;
        };
        let reasons = self.known.and_then(|known| known.reasons.as_ref());
        let may_stay = reasons.is_some_and(|reasons| {
            [old, new].iter().all(|status| reasons.statuses(reason).any(|known| known == *status))
        });
        if !may_stay {
            let message =
                format!("must change, or the message, when the status changes to {}", new.name());
            violations.push(self.violation(sanction, "reason", message).transition());
        }
    }

    /// A change of a `must` member moves the time, a change of a `may` member can, and nothing else does.
    /// `must` is a subset of `may`.
    fn judge_time(
        &self,
        times: &'p TransitionTime,
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
        let moved = |member: &String| {
            let set = |item: &'s Json<'a>| item.get(member).filter(|value| !value.is_empty());
            before.is_some_and(|before| !same(set(self.item), set(before)))
        };
        let old = before.and_then(time);
        let mirrored = self.known.is_some_and(|known| known.mirrored);
        let mut report = |sanction: Option<&'p Sanction>, message: &str| {
            if let Some(sanction) = sanction {
                violations.push(self.violation(sanction, &times.member, message).transition());
            }
        };
        if old != Some(new) && new > now.saturating_add(times.skew()) {
            report(times.future.as_ref(), "is in the future");
        }
        let Some(old) = old else { return };
        let changed = mirrored || times.moves_freely() || times.may_move_on.iter().any(moved);
        if old == new {
            let mut members = times.must_move_on.iter().filter(|member| {
                moved(member) && !self.is_removed_by_webhook(member, circumstances)
            });
            if !mirrored && members.next().is_some() && is_before_write(old, now) {
                report(times.kept.as_ref(), "must change when the condition changes");
            }
        } else if new < old {
            let sanction = if changed { times.backwards.as_ref() } else { times.unchanged() };
            report(sanction, "moved backwards");
        } else if !changed {
            let message = match times.may_move_on.join(" and ") {
                none if none.is_empty() => "must not change".to_owned(),
                members => format!("changed although {members} did not"),
            };
            report(times.moved.as_ref(), &message);
        }
    }

    /// Whether the mutating webhook removes a member from the stored element. Then the writer did not
    /// remove it.
    fn is_removed_by_webhook(
        &self,
        member: &str,
        circumstances: &Circumstances<'p, '_, 's, 'a>,
    ) -> bool {
        let Some(stored) = self.before.filter(|_| self.item.get(member).is_none()) else {
            return false;
        };
        let of_element = with_element(*circumstances.facts, stored, Some(stored), self.known);
        let holds = |facts: &Facts<'s, 'a>, when: &Predicate| facts.ask(when) == Truth::True;
        circumstances.backfill.iter().any(|fill| match &fill.filling {
            Filling::AbsentMember { list, member: removed, of } => {
                *list == *self.path.list.path
                    && removed == member
                    && fill.when.as_ref().is_none_or(|when| holds(circumstances.facts, when))
                    && holds(&of_element, of)
            }
            _ => false,
        })
    }

    /// A violation at a member of this element, or at the element if `member` is empty.
    pub(super) fn violation(
        &self,
        sanction: &'p Sanction,
        member: &str,
        message: impl Into<String>,
    ) -> Violation<'p> {
        self.located(member, |field| Violation::by(sanction, field, message))
    }

    /// Makes a violation with the field and the place of a member. The message names the condition, because
    /// the field has only its index.
    fn located(
        &self,
        member: &str,
        violation: impl FnOnce(String) -> Violation<'p>,
    ) -> Violation<'p> {
        let dot = if member.is_empty() { "" } else { "." };
        let (path, position) = (self.path.field(), self.position.name());
        let mut found = violation(format!("{path}[{position}]{dot}{member}"));
        let list = self.path.list;
        let named = match list.key().first().filter(|_| list.element.is_some()) {
            Some(key) => self.item.get(key).and_then(Json::as_str).filter(|_| member != key),
            None => self.kind.filter(|_| member != "type"),
        };
        if let Some(name) = named {
            let name = quoted_if_odd(&escaped(name));
            found.message.push_str(&format!(" ({} {name})", list.noun()));
        }
        // By its key, because the index changes when elements are inserted. In a history by its type.
        match (&self.path.list.history, self.kind) {
            (None, _) => {
                let key = self.position.key().unwrap_or_else(|| self.key.place(self.item));
                let path = self.path.place();
                found.at(format!("{path}[{key}]{dot}{member}"))
            }
            (Some(_), Some(kind)) => {
                let (path, kind) = (self.path.place(), shortened(kind));
                found.at(format!("{path}[type={kind:?}]{dot}{member}"))
            }
            (Some(_), None) => found,
        }
    }
}
