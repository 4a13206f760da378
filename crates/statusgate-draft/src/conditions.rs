//! The rules about a list of conditions.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use statusgate_core::policy::convention::ConditionList;
use statusgate_core::policy::kebab;
use statusgate_core::schema::Schema;

use super::document::{Draft, Entry};
use super::lists::{ListFacts, MOVING, STATUSES, TypeFacts};
use super::schema;
use super::tally::Seen;
use super::text::{about, shown};
use super::{CLOSED_OBJECTS, MIN_EXPECTED, MIN_OBJECTS};

/// The objects from which on a single contradiction is a question.
const NEAR_RULE: u32 = 20;

/// The names in a question.
const MAX_NAMES: usize = 8;

/// The types that are said to stay True.
const LATCHES: [&str; 6] =
    ["Initialized", "Established", "Succeeded", "Complete", "Completed", "Promoted"];

/// The rules and questions about one list.
pub(crate) struct ListMiner<'m> {
    pub(crate) path: &'m str,
    pub(crate) facts: &'m ListFacts,
    /// The list at this path in the base convention.
    pub(crate) inherited: Option<&'m ConditionList>,
    pub(crate) schema: &'m Schema,
    /// Whether the list is the first one, which predicates and people read.
    pub(crate) is_main: bool,
    pub(crate) draft: &'m mut Draft,
}

impl ListMiner<'_> {
    pub(crate) fn mine(mut self) {
        self.members();
        self.times();
        self.reasons_by_status();
        self.types();
        if self.is_main {
            self.questions();
        }
    }

    fn add(&mut self, at: &[&str], value: impl Into<Value>) -> &mut Entry {
        self.draft.add(&[&["conditions", self.path], at].concat(), value)
    }

    /// The members that the base convention does not know.
    fn members(&mut self) {
        let (facts, inherited) = (self.facts, self.inherited);
        for (name, member) in facts.members.iter() {
            if inherited.is_some_and(|list| list.members.contains_key(name)) {
                continue;
            }
            let mut check = json!({});
            if member.seen.writes == facts.elements && member.seen.objects >= MIN_OBJECTS {
                check["required"] = true.into();
            }
            if name == "status" && !facts.has_odd_status {
                check["enum"] = json!(STATUSES);
            } else if !member.is_other_than_text {
                check["type"] = "string".into();
            } else if !member.is_other_than_integer {
                check["type"] = "integer".into();
            }
            if check != json!({}) {
                check["action"] = "Warn".into();
            }
            let support = format!("{} of {} elements", member.seen.writes, facts.elements);
            let id = format!("condition-{}", kebab(name));
            self.add(&["members", name], check).support(support).rule(&id, member.seen.objects);
        }
        let keys = schema::keys(self.schema, self.path).unwrap_or_default();
        if keys.iter().any(|key| **key != *"type") {
            let key = self.add(&["key"], json!(keys)).support("the CRD");
            key.rule("condition-duplicate", facts.lists.objects);
        }
    }

    /// Which changes move the time.
    fn times(&mut self) {
        let facts = self.facts;
        if facts.transitions.objects < MIN_OBJECTS {
            return;
        }
        let inherited = self.inherited.and_then(|list| list.transition_time.as_ref());
        let old = inherited.map(|times| [&times.must_move_on, &times.may_move_on]);
        let [old_must, old_may] =
            old.map(|old| old.map(|names| names.to_vec())).unwrap_or_default();
        let (mut must, mut may) = (old_must.clone(), old_may.clone());
        for (name, moves) in MOVING.map(str::to_owned).into_iter().zip(&facts.moves) {
            if moves.kept.writes > 0 {
                must.retain(|known| *known != name);
            } else if moves.moved.objects >= MIN_OBJECTS && !must.contains(&name) {
                must.push(name.clone());
            }
            if moves.moved.writes > 0 && !may.contains(&name) {
                may.push(name);
            }
        }
        if inherited.is_none() {
            self.add(&["transitionTime", "member"], "lastTransitionTime");
        }
        if must != old_must {
            let moves = facts.moves.iter().map(|moves| moves.moved.writes).sum::<u32>();
            let support = format!("moved in {moves} changes");
            let moved = self.add(&["transitionTime", "mustMoveOn"], must).support(support);
            moved.rule("transition-time-kept", u32::MAX);
        }
        // A time that moves without a change moves for any reason.
        if may != old_may && facts.unchanged.moved.writes == 0 {
            let moved = self.add(&["transitionTime", "mayMoveOn"], may);
            moved.rule("transition-time-moved", u32::MAX);
        }
    }

    /// Statuses that always have a reason, or never, with the types that are exceptions.
    fn reasons_by_status(&mut self) {
        let facts = self.facts;
        let with_reason = facts.members.get("reason").map_or(0, |member| member.seen.writes);
        for (index, status) in STATUSES.into_iter().enumerate() {
            let of_status = facts.types.iter().filter(|(_, of)| of.statuses[index].writes > 0);
            let most = of_status.clone().map(|(_, of)| of.statuses[index].objects).max();
            let objects = most.unwrap_or_default();
            for (is_always, what, how) in
                [(true, "no-reason", "always"), (false, "reason", "never")]
            {
                let (exceptions, others): (Vec<_>, Vec<_>) =
                    of_status.clone().partition(|(_, of)| {
                        let with_reason = of.reasons.iter().any(|(_, row)| row[index].writes > 0);
                        if is_always { of.lacks_reason[index] } else { with_reason }
                    });
                // If all have one, or none, the member says so.
                let is_mixed = 0 < with_reason && with_reason < facts.elements;
                if !is_mixed || objects < MIN_OBJECTS || exceptions.len() >= others.len() {
                    continue;
                }
                let mut when = vec![
                    json!({"member": "status", "is": status}),
                    json!({"member": "reason", "set": !is_always}),
                ];
                let names: Vec<&str> = exceptions.iter().map(|(name, _)| *name).collect();
                if !names.is_empty() {
                    when.push(json!({"not": {"member": "type", "is": names}}));
                }
                let id = format!("{}-with-{what}", status.to_ascii_lowercase());
                let message = format!("this status {how} had a reason");
                let rule = json!({"id": id, "when": {"all": when}, "member": "reason", "action": "Warn", "message": message});
                let support = format!("{objects} objects");
                self.add(&["each", &id], rule).support(support).rule(&id, objects);
            }
        }
    }

    fn types(&mut self) {
        let facts = self.facts;
        let types = facts.types_by_objects();
        let once = types.iter().filter(|(_, of)| of.seen.objects == 1).count();
        let (is_settled, estimate) = facts.types.closing("types", facts.lists.objects, once);
        let is_inherited = self.inherited.is_some_and(|list| list.other_types.is_some());
        let is_closed = is_settled && !is_inherited;
        if is_closed {
            let others = self.add(&["otherTypes"], "Warn").support(estimate);
            others.rule("condition-type-unknown", u32::MAX);
        } else if !is_inherited {
            let names: Vec<String> = types.iter().map(|(name, _)| shown(name)).collect();
            let question = format!("may {} have other types? {estimate}; seen", self.path);
            self.draft.questions.extend(about(&names, MAX_NAMES, &question));
        }
        for (name, of) in types {
            if is_closed {
                let support = format!("{} objects", of.seen.objects);
                self.add(&["types", name], json!({})).support(support);
            }
            let declared = self.inherited.and_then(|list| list.find(name));
            let is_kept = !of.is_removed && declared.is_none_or(|kind| kind.removed.is_none());
            let is_latch = LATCHES.contains(&name)
                && of.latch.holds()
                && declared.is_none_or(|kind| kind.reverted.is_none());
            for (key, holds, what, seen) in [
                ("removed", is_kept, "kept", of.kept),
                ("reverted", is_latch, "stays True", of.latch.stays_true),
            ] {
                let id = format!("{}-{key}", kebab(name));
                if holds && seen.objects >= MIN_OBJECTS {
                    let support = format!("{what} in {} objects", seen.objects);
                    let entry = self.add(&["types", name, key], "Warn").support(support);
                    entry.rule(&id, seen.objects);
                }
            }
            if declared.is_none_or(|kind| kind.reasons.is_none()) {
                self.reasons(name, of);
            }
        }
    }

    /// The reasons of each status. If each reason of the type was seen in several objects, an unknown one is audited; new
    /// versions of a controller have new reasons.
    fn reasons(&mut self, name: &str, of: &TypeFacts) {
        let is_closed = !of.reasons.is_full
            && of.seen.objects >= CLOSED_OBJECTS
            && of.reasons.iter().all(|(_, row)| total(row) >= MIN_OBJECTS);
        let mut table: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        let (mut least, mut sum, mut is_expected) = (u32::MAX, 0, true);
        for (reason, row) in of.reasons.iter().filter(|(_, row)| total(row) >= MIN_OBJECTS) {
            let (objects, only) = (total(row), only(row));
            // One of several statuses says nothing about them, but belongs to a closed table.
            if only.is_some() || is_closed {
                for (status, _) in STATUSES.iter().zip(row).filter(|(_, seen)| seen.objects > 0) {
                    table.entry(status).or_default().push(reason);
                }
            }
            if let Some(index) = only {
                let others = f64::from(total(&of.statuses) - of.statuses[index].objects);
                let expected = f64::from(objects) * others / f64::from(of.seen.objects);
                is_expected &= expected >= MIN_EXPECTED;
                (least, sum) = (least.min(objects), sum + objects);
            }
        }
        if sum == 0 {
            return;
        }
        let mut value = json!(table);
        if !is_expected {
            value["action"] = "Audit".into();
        }
        if is_closed {
            value["other"] = "Audit".into();
        }
        let support = format!("each reason in at least {least} objects");
        let entry = self.add(&["types", name, "reasons"], value).support(support);
        entry.rule("condition-reason-status", sum).rule("condition-reason-unknown", sum);
    }

    fn questions(&mut self) {
        let facts = self.facts;
        let (mut constant, mut present) = (Vec::new(), Vec::new());
        for (name, of) in facts.types_by_objects() {
            let name = shown(name);
            for (reason, row) in of.reasons.iter().filter(|(_, row)| total(row) >= NEAR_RULE) {
                let most = (0..3).max_by_key(|index| row[*index].objects).unwrap_or_default();
                let (seen, objects) = (row[most].objects, total(row));
                if seen + 1 == objects {
                    let (reason, status) = (shown(reason), STATUSES[most]);
                    self.draft.questions.insert(0, format!("{name} with the reason {reason} is {status} in {seen} of {objects} objects: is the other one a bug?"));
                }
            }
            let objects = of.seen.objects;
            if let Some(index) = only(&of.statuses).filter(|_| objects >= MIN_OBJECTS) {
                constant.push(format!("{name} ({} in {objects} objects)", STATUSES[index]));
            }
            if of.seen.writes == facts.lists.writes {
                present.push(name);
            }
        }
        let always = format!("say if these always exist, as in all {} writes", facts.lists.writes);
        let others = about(&constant, MAX_NAMES, "say which other statuses these can have");
        self.draft.questions.extend(others);
        self.draft.questions.extend(about(&present, MAX_NAMES, &always));
    }
}

fn total(row: &[Seen; 3]) -> u32 {
    row.iter().map(|seen| seen.objects).sum()
}

/// The only status of a row.
fn only(row: &[Seen; 3]) -> Option<usize> {
    let mut seen = (0..3).filter(|index| row[*index].objects > 0);
    seen.next().filter(|_| seen.next().is_none())
}
