//! Condition lists: the shape of their elements, their keys, and how their times move.

use std::collections::{HashMap, HashSet};

use crate::model::{Json, Object, in_status, parse_rfc3339, same_instant};
use crate::policy::convention::{ConditionList, GenerationRules, Sanction, TransitionTimes};

use super::Cause;
use super::evidence::quoted;
use super::fields;
use super::ratchet::Violation;

/// Up to here a list is scanned; above it a table is made. Real lists have fewer than a dozen
/// elements; a hostile one has ten thousand, and scanning it for each would take seconds.
const SCAN_LIMIT: usize = 16;

/// A status that changed within these many seconds after its last change may keep its time: a
/// `metav1.Time` has whole seconds, and two flips can fall into one.
const FLIP_SECONDS: i64 = 2;

/// The generation that may be observed, and how.
pub(crate) struct Generations<'p> {
    pub(crate) rules: &'p GenerationRules,
    /// The newest that exists.
    pub(crate) newest: i64,
    /// Whether the stored object has a status: a restored backup brings old generations with it.
    pub(crate) had_status: bool,
}

/// Judges one list.
pub(crate) fn judge<'p>(
    list: &'p ConditionList,
    object: &Object<'_>,
    old: Option<&Object<'_>>,
    generations: Option<&Generations<'p>>,
    now: i64,
    violations: &mut Vec<Violation<'p>>,
) {
    let path = list.path.field();
    let items = match in_status(object.status.as_ref(), &list.path) {
        None | Some(Json::Null) => return,
        Some(Json::Array(items)) => items,
        Some(other) => {
            let message = format!("must be a list, it is {}", other.kind());
            violations.push(violation(&list.shape_rule, path.to_owned(), message));
            return;
        }
    };
    let stored = old.and_then(|old| in_status(old.status.as_ref(), &list.path));
    let stored_items = stored.and_then(Json::as_array).unwrap_or_default();
    let stored = ByType::new(stored_items);
    let mut keys = Keys::new(items);
    for (index, item) in items.iter().enumerate() {
        if !matches!(item, Json::Object(_)) {
            let message = format!("must be an object, it is {}", item.kind());
            violations.push(violation(&list.shape_rule, format!("{path}[{index}]"), message));
            continue;
        }
        let kind = item.get("type").and_then(Json::as_str);
        let element = Element { list, item, index, kind };
        let twin = kind.is_some_and(|kind| keys.seen_before(index, kind));
        if twin {
            let message = format!("Duplicate value: {}", quoted(kind.unwrap_or_default()));
            violations.push(Violation {
                cause: Cause::Duplicate,
                ..element.violation(&list.duplicate_rule, "", message)
            });
        }
        // Of several elements of one type the stored list tells only the first apart.
        let before = kind.filter(|_| !twin).and_then(|kind| stored.find(kind));
        // What was not touched was judged when it came: nothing in it can be introduced. Elements
        // without a type of their own are known by their place, or in a short list by themselves.
        let untouched = before == Some(item)
            || stored_items.get(index) == Some(item)
            || (stored_items.len() <= SCAN_LIMIT && stored_items.contains(item));
        if untouched {
            continue;
        }
        element.judge_members(violations);
        if let Some(times) = &list.times {
            element.judge_time(times, before, now, violations);
        }
        if let Some(generations) = generations {
            element.judge_generation(generations, before, violations);
        }
    }
}

/// One element of a list.
struct Element<'p, 'j, 'a> {
    list: &'p ConditionList,
    item: &'j Json<'a>,
    index: usize,
    kind: Option<&'j str>,
}

impl<'p> Element<'p, '_, '_> {
    fn judge_members(&self, violations: &mut Vec<Violation<'p>>) {
        for (member, checks) in &self.list.members {
            let value = self.item.get(member);
            // The first fault of a member is enough: an empty reason has no bad form beside.
            let fault =
                checks.iter().find_map(|check| Some((check, fields::violation(check, value)?)));
            if let Some((check, (cause, message))) = fault {
                let found = self.violation(&check.rule, member, message);
                violations.push(Violation { cause, action: check.action, ..found });
            }
        }
    }

    /// `must` is a part of `may`: a change in a `must` member moves the time, one in a `may` member
    /// can, and nothing else does.
    fn judge_time(
        &self,
        times: &'p TransitionTimes,
        before: Option<&Json<'_>>,
        now: i64,
        violations: &mut Vec<Violation<'p>>,
    ) {
        let time = |element: &Json<'_>| {
            element.get(&times.member).and_then(Json::as_str).and_then(parse_rfc3339)
        };
        // What is no time has been said already.
        let Some(new) = time(self.item) else { return };
        let changed = |member: &String| {
            before.is_some_and(|before| !same(self.item.get(member), before.get(member)))
        };
        let old = before.and_then(time);
        let mut say = |sanction: &'p Sanction, message: &str| {
            let action = sanction.action;
            let found = self.violation(&sanction.rule, &times.member, message.to_owned());
            let cause = Cause::Invalid;
            violations.push(Violation { cause, action, ratcheted: false, ..found });
        };
        if old != Some(new) && new > now + times.skew {
            say(&times.future, "lies in the future");
        }
        let Some(old) = old else { return };
        if old == new {
            if times.must_move_on.iter().any(changed) && old < now - FLIP_SECONDS {
                say(&times.kept, "did not move although the condition changed");
            }
        } else if new < old {
            say(&times.backwards, "moved back");
        } else if !times.may_move_on.iter().any(changed) {
            say(&times.moved, "moved although nothing of the condition changed");
        }
    }

    fn judge_generation(
        &self,
        generations: &Generations<'p>,
        before: Option<&Json<'_>>,
        violations: &mut Vec<Violation<'p>>,
    ) {
        const MEMBER: &str = "observedGeneration";
        let Some(new) = self.item.get(MEMBER).and_then(Json::as_i64) else { return };
        let old = before.and_then(|before| before.get(MEMBER)).and_then(Json::as_i64);
        if let Some((sanction, message)) = generations.judge(new, old) {
            let found = self.violation(&sanction.rule, MEMBER, message.to_owned());
            let (cause, action) = (Cause::Invalid, generations.action(sanction));
            violations.push(Violation { cause, action, ratcheted: false, ..found });
        }
    }

    /// A violation at a member of this element, or at the element where `member` is empty.
    fn violation(&self, rule: &'p str, member: &str, message: String) -> Violation<'p> {
        let dot = if member.is_empty() { "" } else { "." };
        let path = self.list.path.field();
        let place = self.kind.map(|kind| format!("{path}[type={kind}]{dot}{member}"));
        Violation {
            place,
            ..violation(rule, format!("{path}[{}]{dot}{member}", self.index), message)
        }
    }
}

impl<'p> Generations<'p> {
    /// What a moved generation violates.
    pub(crate) const fn judge(
        &self,
        new: i64,
        old: Option<i64>,
    ) -> Option<(&'p Sanction, &'static str)> {
        match old {
            Some(old) if old == new => None,
            _ if new > self.newest => {
                Some((&self.rules.ahead, "is a generation that does not exist yet"))
            }
            // 0 is the same as none: SetStatusCondition resets to it.
            Some(old) if new < old && new != 0 => {
                Some((&self.rules.decreased, "went back to an older generation"))
            }
            _ => None,
        }
    }

    /// The action, milder for a status that comes as a whole: it may be restored from a backup onto
    /// an object whose generation starts anew.
    pub(crate) fn action(&self, sanction: &Sanction) -> crate::policy::Action {
        let ceiling =
            if self.had_status { crate::policy::Action::Deny } else { crate::policy::Action::Warn };
        sanction.action.min(ceiling)
    }
}

/// A violation of a list's shape, which is refused when it is introduced.
fn violation(rule: &str, field: String, message: String) -> Violation<'_> {
    Violation {
        rule,
        field,
        place: None,
        cause: Cause::TypeInvalid,
        message,
        action: crate::policy::Action::Deny,
        ratcheted: true,
    }
}

/// Equal, where null is the same as absence and times are compared as times.
pub(crate) fn same(one: Option<&Json<'_>>, other: Option<&Json<'_>>) -> bool {
    let present = |value: &&Json<'_>| !value.is_null();
    match (one.filter(present), other.filter(present)) {
        (Some(Json::String(one)), Some(Json::String(other))) => same_instant(one, other),
        (one, other) => one == other,
    }
}

/// Elements by type, the first of several.
enum ByType<'j, 'a> {
    Scan(&'j [Json<'a>]),
    Table(HashMap<&'j str, &'j Json<'a>>),
}

impl<'j, 'a> ByType<'j, 'a> {
    fn new(items: &'j [Json<'a>]) -> Self {
        if items.len() <= SCAN_LIMIT {
            return Self::Scan(items);
        }
        let keyed = |item: &'j Json<'a>| Some((item.get("type")?.as_str()?, item));
        // From the back, so that the first stays.
        Self::Table(items.iter().rev().filter_map(keyed).collect())
    }

    fn find(&self, kind: &str) -> Option<&'j Json<'a>> {
        match self {
            Self::Scan(items) => {
                items.iter().find(|item| item.get("type").and_then(Json::as_str) == Some(kind))
            }
            Self::Table(table) => table.get(kind).copied(),
        }
    }
}

/// The types met so far in a list.
enum Keys<'j, 'a> {
    Scan(&'j [Json<'a>]),
    Table(HashSet<&'j str>),
}

impl<'j, 'a> Keys<'j, 'a> {
    fn new(items: &'j [Json<'a>]) -> Self {
        if items.len() <= SCAN_LIMIT { Self::Scan(items) } else { Self::Table(HashSet::new()) }
    }

    fn seen_before(&mut self, index: usize, kind: &'j str) -> bool {
        match self {
            Self::Scan(items) => items[..index]
                .iter()
                .any(|item| item.get("type").and_then(Json::as_str) == Some(kind)),
            Self::Table(table) => !table.insert(kind),
        }
    }
}
