//! The rules about a list of conditions.

use serde_json::{Value, json};
use statusgate_core::policy::kebab;

use super::base::Base;
use super::document::Draft;
use super::lists::{ListFacts, MOVING, STATUSES, TypeFacts};
use super::schema::StatusSchema;
use super::tally::Seen;
use super::text::{listed, one_or_list, shown};
use super::{CLOSED_EXPECTED, CLOSED_OBJECTS, MIN_EXPECTED, MIN_OBJECTS};

/// The writes that may contradict a rule of the base convention, of a hundred: then it only audits.
const TOLERATED_PERCENT: u32 = 2;

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
    pub(crate) base: &'m Base<'m>,
    pub(crate) schema: &'m StatusSchema,
    /// Whether the list is the first one, which predicates and people read.
    pub(crate) is_main: bool,
    pub(crate) draft: &'m mut Draft,
}

impl ListMiner<'_> {
    pub(crate) fn mine(mut self) {
        if self.facts.lists.objects < MIN_OBJECTS || (self.path.contains('*') && !self.parent()) {
            return;
        }
        self.members();
        self.times();
        self.reasons_by_status();
        self.types();
        if self.is_main {
            self.questions();
        }
    }

    fn add(&mut self, at: &[&str], value: Value, support: String, seen: u32, rules: &[&str]) {
        let weight = if self.is_main { seen.saturating_mul(10) } else { seen };
        let at = [&["conditions", self.path][..], at].concat();
        self.draft.add(&at, value, support, weight, rules);
    }

    /// Names the key of an outer list. Returns whether there is one.
    fn parent(&mut self) -> bool {
        let lists = self.facts.lists.writes;
        let always = self.facts.parent_members.iter().filter(|(_, seen)| seen.writes == lists);
        let keys: Vec<&str> = always.map(|(name, _)| name).filter(|name| is_key(name)).collect();
        if !keys.is_empty() {
            self.add(&["parentKey"], json!(keys), String::new(), 0, &[]);
        }
        !keys.is_empty()
    }

    /// The members that the base convention does not know.
    fn members(&mut self) {
        let (facts, inherited) = (self.facts, self.base.list(self.path));
        for (name, member) in facts.members.iter() {
            if inherited.is_some_and(|list| list.members.contains_key(name)) {
                continue;
            }
            let mut check = json!({});
            if member.seen.writes == facts.elements && member.seen.objects >= MIN_OBJECTS {
                check["required"] = true.into();
            }
            if name == "status" && facts.odd_statuses == 0 {
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
            let rule = format!("condition-{}", kebab(name));
            self.add(&["members", name], check, support, member.seen.objects, &[&rule]);
        }
        let keys = self.schema.keys.iter().find(|(path, _)| path == self.path);
        if let Some((_, keys)) = keys.filter(|(_, keys)| **keys != ["type"]) {
            let support = "the CRD".to_owned();
            self.add(&["key"], json!(keys), support, facts.lists.objects, &["condition-duplicate"]);
        }
    }

    /// Which changes move the time.
    fn times(&mut self) {
        let facts = self.facts;
        if facts.transitions.objects < MIN_OBJECTS {
            return;
        }
        let inherited = self.base.list(self.path).and_then(|list| list.transition_time.as_ref());
        let before = inherited
            .map(|times| [&times.must_move_on, &times.may_move_on].map(|names| names.to_vec()));
        let is_new = before.is_none();
        let [mut must, mut may] = before.clone().unwrap_or_default();
        let mut kept = Seen::default();
        for (name, moves) in MOVING.iter().zip(&facts.moves) {
            let is_known = must.iter().any(|known| known == name);
            if is_known && !is_tolerated(moves.kept, moves.moved) {
                must.retain(|known| known != name);
            } else if is_known {
                kept.writes += moves.kept.writes;
            } else if moves.kept.writes == 0 && moves.moved.objects >= MIN_OBJECTS {
                must.push((*name).to_owned());
            }
            if moves.moved.writes > 0 && !may.iter().any(|known| known == name) {
                may.push((*name).to_owned());
            }
        }
        let moving: u32 = facts.moves.iter().map(|moves| moves.moved.writes).sum();
        if is_new {
            self.add(
                &["transitionTime", "member"],
                json!("lastTransitionTime"),
                String::new(),
                0,
                &[],
            );
        }
        let [old_must, old_may] = before.unwrap_or_default();
        if must != old_must {
            let support = format!("moved in {moving} changes");
            self.add(
                &["transitionTime", "mustMoveOn"],
                json!(must),
                support,
                u32::MAX,
                &["transition-time-kept"],
            );
        }
        // A time that moves without a change moves for any reason.
        if may != old_may && is_tolerated(facts.unchanged.moved, facts.transitions) {
            self.add(
                &["transitionTime", "mayMoveOn"],
                json!(may),
                String::new(),
                u32::MAX,
                &["transition-time-moved"],
            );
        }
        // Rules that some writes contradict.
        for (key, against) in
            [("kept", kept), ("moved", facts.unchanged.moved), ("backwards", facts.backwards)]
        {
            if against.writes > 0 {
                let action = if is_tolerated(against, facts.transitions) {
                    json!("Audit")
                } else {
                    Value::Null
                };
                let support =
                    format!("{key} in {} of {} writes", against.writes, facts.transitions.writes);
                self.add(&["transitionTime", key], action, support, 0, &[]);
            }
        }
    }

    /// Statuses that always have a reason, or never, with the types that are exceptions. Nothing, if the base convention
    /// requires a reason.
    fn reasons_by_status(&mut self) {
        let facts = self.facts;
        let inherited = self.base.list(self.path).map(|list| list.checks("reason"));
        let is_required = !self.base.has_fired("condition-reason")
            && inherited.is_some_and(|checks| checks.iter().any(|check| check.required));
        let lacking = |of: &TypeFacts, index: usize| of.no_reason[index].writes > 0;
        let having =
            |of: &TypeFacts, index: usize| of.reasons.iter().any(|(_, row)| row[index].writes > 0);
        let is_any = |test: &dyn Fn(&TypeFacts, usize) -> bool| {
            facts.types.iter().any(|(_, of)| (0..3).any(|index| test(of, index)))
        };
        if !is_any(&having) || (is_required && !is_any(&lacking)) {
            return;
        }
        for (index, status) in STATUSES.into_iter().enumerate() {
            let of_status = facts.types.iter().filter(|(_, of)| of.statuses[index].writes > 0);
            let objects = of_status
                .clone()
                .map(|(_, of)| of.statuses[index].objects)
                .max()
                .unwrap_or_default();
            for (must, what, message) in [
                (true, "no-reason", "this status always had a reason"),
                (false, "reason", "this status never had a reason"),
            ] {
                let (exceptions, others): (Vec<_>, Vec<_>) = of_status
                    .clone()
                    .partition(|(_, of)| if must { lacking(of, index) } else { having(of, index) });
                if objects < MIN_OBJECTS || exceptions.len() >= others.len() {
                    continue;
                }
                let mut when = vec![
                    json!({"member": "status", "is": status}),
                    json!({"member": "reason", "set": !must}),
                ];
                if !exceptions.is_empty() {
                    let names: Vec<&str> = exceptions.iter().map(|(name, _)| *name).collect();
                    when.push(json!({"not": {"member": "type", "is": one_or_list(&names)}}));
                }
                let id = format!("{}-with-{what}", status.to_ascii_lowercase());
                let rule = json!({"id": id, "when": {"all": when}, "member": "reason", "action": "Warn", "message": message});
                self.add(&["each", &id], rule, format!("{objects} objects"), objects, &[&id]);
            }
        }
    }

    fn types(&mut self) {
        let facts = self.facts;
        let types = facts.types_by_objects();
        let names: Vec<&str> = types.iter().map(|(name, _)| *name).collect();
        let objects = facts.lists.objects;
        let expected = facts.types.expected_new(objects, |of| of.seen);
        let estimate = format!("{expected:.2} new types expected in the next object, of {objects}");
        let is_inherited = self.base.list(self.path).is_some_and(|list| list.other_types.is_some());
        let is_closed = !is_inherited
            && objects >= CLOSED_OBJECTS
            && expected <= CLOSED_EXPECTED
            && !facts.types.is_full;
        if is_closed {
            self.add(
                &["otherTypes"],
                json!("Warn"),
                estimate,
                u32::MAX,
                &["condition-type-unknown"],
            );
            for rule in self.base.rules_about_others(&names) {
                self.draft.add(&["without", &rule], Value::Null, "", 0, &[]);
            }
        } else if !is_inherited {
            let names: Vec<String> = names.iter().map(|name| shown(name)).collect();
            let names = listed(&names, MAX_NAMES);
            self.draft
                .questions
                .push(format!("may {} have other types than {names}? {estimate}", self.path));
        }
        for (name, of) in types {
            if is_closed {
                self.add(
                    &["types", name],
                    json!({}),
                    format!("{} objects", of.seen.objects),
                    0,
                    &[],
                );
            }
            let [removed, reverted] =
                ["removed", "reverted"].map(|what| format!("{}-{what}", kebab(name)));
            let (kept, stays) = (of.kept.objects, of.stays_true.objects);
            if kept >= MIN_OBJECTS && of.removed.writes == 0 && !self.base.declares(&removed) {
                self.add(
                    &["types", name, "removed"],
                    json!("Warn"),
                    format!("kept in {kept} objects"),
                    kept,
                    &[&removed],
                );
            }
            if LATCHES.contains(&name) && of.is_latch() && !self.base.declares(&reverted) {
                self.add(
                    &["types", name, "reverted"],
                    json!("Warn"),
                    format!("stays True in {stays} objects"),
                    stays,
                    &[&reverted],
                );
            }
            self.reasons(name, of);
        }
    }

    /// The reasons of each status. If each reason of the type was seen in several objects, an unknown one is audited; new
    /// versions of a controller have new reasons.
    fn reasons(&mut self, name: &str, of: &TypeFacts) {
        let inherited =
            self.base.list(self.path).and_then(|list| list.find(name)?.reasons.as_ref());
        let mut table: [Vec<&str>; 3] = Default::default();
        for (known, (_, reasons)) in
            table.iter_mut().zip(inherited.iter().flat_map(|reasons| reasons.lists()))
        {
            known.extend(reasons.iter().map(String::as_str));
        }
        let is_closed = inherited.is_none()
            && !of.reasons.is_full
            && of.seen.objects >= CLOSED_OBJECTS
            && of.reasons.iter().all(|(_, row)| total(row) >= MIN_OBJECTS);
        let (mut least, mut sum, mut is_expected) = (u32::MAX, 0, true);
        for (reason, row) in of.reasons.iter() {
            let objects = total(row);
            if objects < MIN_OBJECTS
                || inherited.is_some_and(|known| known.statuses(reason).next().is_some())
            {
                continue;
            }
            let Some(index) = only(row) else {
                // It says nothing about the status, but belongs to a closed table.
                let seen =
                    table.iter_mut().zip(row).filter(|(_, seen)| is_closed && seen.objects > 0);
                seen.for_each(|(reasons, _)| reasons.push(reason));
                continue;
            };
            let others: u32 = (0..3)
                .filter(|other| *other != index)
                .map(|other| of.statuses[other].objects)
                .sum();
            is_expected &=
                f64::from(objects) * f64::from(others) / f64::from(of.seen.objects) >= MIN_EXPECTED;
            table[index].push(reason);
            (least, sum) = (least.min(objects), sum + objects);
        }
        if sum == 0 {
            return;
        }
        let rows = STATUSES.iter().zip(&table).filter(|(_, reasons)| !reasons.is_empty());
        let mut value: Value =
            rows.map(|(status, reasons)| ((*status).to_owned(), json!(reasons))).collect();
        if !is_expected {
            value["action"] = "Audit".into();
        }
        if is_closed {
            value["other"] = "Audit".into();
        }
        let support = format!("each reason in at least {least} objects");
        self.add(
            &["types", name, "reasons"],
            value,
            support,
            sum,
            &["condition-reason-status", "condition-reason-unknown"],
        );
    }

    fn questions(&mut self) {
        let facts = self.facts;
        let (mut constant, mut present) = (Vec::new(), Vec::new());
        for (name, of) in facts.types_by_objects() {
            let name = shown(name);
            for (reason, row) in
                of.reasons.iter().filter(|(_, row)| total(row) >= NEAR_RULE && only(row).is_none())
            {
                let (most, objects) = (
                    (0..3).max_by_key(|index| row[*index].objects).unwrap_or_default(),
                    total(row),
                );
                if row[most].objects + 1 == objects {
                    let (reason, status, seen) = (shown(reason), STATUSES[most], row[most].objects);
                    self.draft.questions.insert(0, format!("{name} with the reason {reason} is {status} in {seen} of {objects} objects: is the other one a bug?"));
                }
            }
            if let Some(index) =
                only(&of.statuses).filter(|index| of.statuses[*index].objects >= MIN_OBJECTS)
            {
                constant
                    .push(format!("{name} ({} in {} objects)", STATUSES[index], of.seen.objects));
            }
            if of.seen.writes == facts.lists.writes {
                present.push(name);
            }
        }
        if !constant.is_empty() {
            self.draft.questions.push(format!(
                "which other statuses can these have: {}?",
                listed(&constant, MAX_NAMES)
            ));
        }
        if !present.is_empty() {
            let writes = facts.lists.writes;
            self.draft.questions.push(format!(
                "are these always present, as in all {writes} writes: {}?",
                listed(&present, MAX_NAMES)
            ));
        }
    }
}

/// Whether a member is named like one that identifies its object.
fn is_key(name: &str) -> bool {
    let end = ["name", "ref", "key", "id", "type"];
    end.iter().any(|end| name.to_ascii_lowercase().ends_with(end))
}

fn total(row: &[Seen; 3]) -> u32 {
    row.iter().map(|seen| seen.objects).sum()
}

/// The only status of a row.
fn only(row: &[Seen; 3]) -> Option<usize> {
    let mut seen = (0..3).filter(|index| row[*index].objects > 0);
    seen.next().filter(|_| seen.next().is_none())
}

fn is_tolerated(against: Seen, all: Seen) -> bool {
    against.writes * 100 <= (all.writes + against.writes) * TOLERATED_PERCENT
}
