//! Which facts become rules, and which become questions.

use indexmap::IndexMap;
use serde_json::{Value, json};
use statusgate_core::policy::kebab;
use statusgate_core::schema::Schema;

use super::base::Base;
use super::conditions::ListMiner;
use super::document::{Draft, Entry};
use super::facts::Facts;
use super::pairs::{Implication, Kind};
use super::schema;
use super::text::{about, is_phase, last, shown};
use super::{CONDITIONS, MIN_OBJECTS};

/// What one value implies at most; the rest is weaker.
const MAX_IMPLIED: usize = 6;

/// The changes of a phase in a question.
const MAX_MOVES: usize = 12;

pub(crate) fn mine(draft: &mut Draft, facts: &Facts, schema: &Schema, base: &Base<'_>) {
    let lists = facts.lists.iter().filter(|(_, list)| list.lists.objects >= MIN_OBJECTS);
    let mut lists: Vec<_> = lists.collect();
    lists.sort_by_key(|(path, _)| path.matches('/').count());
    for (index, (path, list)) in lists.into_iter().enumerate() {
        let (is_main, inherited) = (index == 0, base.list(path));
        if is_main && inherited.is_none() && !base.name().is_empty() {
            draft.add(&["conditions", path, "like"], base.name());
        }
        ListMiner { path, facts: list, inherited, schema, is_main, draft }.mine();
    }
    histories(draft, facts);
    let (required, enums) = schema::fields(schema);
    if !base.has_phase() {
        phase(draft, facts, &enums);
    }
    summaries(draft, facts);
    latches(draft, facts);
    orders(draft, facts);
    let entry = draft.entries.iter().find(|entry| entry.at == ["phase", "path"]);
    let phase = entry.map(|entry| entry.value.clone());
    let allowed = enums.iter().filter(|(path, _)| phase != Some(json!(path)));
    let allowed = allowed.map(|(path, values)| (path, "enum", json!(values)));
    let needed = required.iter().map(|path| (path, "required", json!(true)));
    for (path, word, value) in allowed.chain(needed) {
        let id = format!("{}-{word}", kebab(last(path)));
        let check = json!({"id": id, "path": path, word: value, "action": "Warn"});
        draft.add(&["fields", &format!("{path} {word}")], check).support("the CRD").rule(&id, 1);
    }
}

/// Lists that only grow. Their length needs a limit, and only lists that reached it show it.
fn histories(draft: &mut Draft, facts: &Facts) {
    for (path, of) in facts.histories.iter() {
        let (grown, full) = (of.grown.objects, of.at_longest.objects);
        if grown < MIN_OBJECTS || full < MIN_OBJECTS || !of.has_dropped || of.is_rewritten {
            continue;
        }
        let support = format!("only grew in {grown} objects, and {full} reached this length");
        let value = json!({"path": path, "history": {}, "maxItems": of.longest, "tooLong": "Warn"});
        let entry = draft.add(&["conditions", path], value).support(support);
        entry.rule("history-rewritten", grown).rule("conditions-length", grown);
    }
}

fn phase(draft: &mut Draft, facts: &Facts, enums: &IndexMap<String, Vec<&str>>) {
    let fields = facts.fields.iter().filter(|(path, of)| is_phase(path) && of.has_phases());
    let best = fields.min_by_key(|(path, _)| {
        let name = last(path).to_ascii_lowercase();
        (path.matches('/').count(), name != "phase", name != "state")
    });
    let Some((path, of)) = best else { return };
    let declared = enums.get(path);
    let once = of.texts.iter().filter(|(_, seen)| seen.objects == 1).count();
    let (is_settled, estimate) = of.texts.closing("values", of.seen.objects, once);
    // A failure is rare: a value of two objects shows that there may be others.
    let is_common = of.texts.iter().all(|(_, seen)| seen.objects > 2);
    let is_closed = declared.is_some() || (is_settled && is_common);
    let mut values: Vec<&str> = of.texts.iter().map(|(name, _)| name).collect();
    let others = declared.into_iter().flatten().copied();
    values.extend(others.filter(|value| of.texts.get(value).is_none()));
    if is_closed {
        let support = declared.map_or(estimate, |_| "the CRD".to_owned());
        draft.add(&["phase", "path"], path).support(support);
    } else {
        let names: Vec<String> = values.iter().map(|value| shown(value)).collect();
        let question = format!("may {path} have other values? {estimate}; seen");
        draft.questions.extend(about(&names, MAX_MOVES, &question));
    }
    let variable = (Kind::Phase, path.to_owned());
    for value in values {
        let mut found = facts.pairs.implications(&variable, value);
        if is_closed {
            let seen = of.texts.get(value).map_or(0, |seen| seen.objects);
            let entry = draft.add(&["phase", "values", value], json!({"phase": value}));
            entry.support(format!("{seen} objects"));
        }
        found.truncate(MAX_IMPLIED);
        let Some(first) = found.first() else { continue };
        let id = format!("phase-{}", kebab(value));
        let entry = if is_closed {
            let holds = one_or("all", found.iter().map(holds).collect());
            draft.add(&["phase", "values", value, "necessary"], holds)
        } else {
            let when = json!({"all": [{"field": path, "is": value}, any_violated(&found)]});
            let message = format!("this phase disagrees with {}", shown(&first.other.1));
            draft.check(&id, &when, path, &message)
        };
        entry.implied(&found).rule(&id, first.objects);
    }
    let moves: Vec<String> =
        of.moves.iter().map(|(name, seen)| format!("{} ({})", shown(name), seen.objects)).collect();
    let question = format!("which changes of {path} are valid? Seen in objects");
    draft.questions.extend(about(&moves, MAX_MOVES, &question));
}

fn summaries(draft: &mut Draft, facts: &Facts) {
    for variable in facts.pairs.variables.iter().filter(|of| of.0 == Kind::Condition) {
        let mut found = facts.pairs.implications(variable, "True");
        found.retain(|one| one.other.0 == Kind::Condition);
        found.truncate(MAX_IMPLIED);
        let Some(first) = found.first() else { continue };
        let name = &variable.1;
        let (id, shown) = (format!("{}-summary", kebab(name)), shown(name));
        let when = json!({"all": [{"condition": name, "is": "True"}, any_violated(&found)]});
        let message =
            format!("{shown} is True but a condition that it summarizes is not as it should be");
        draft.check(&id, &when, CONDITIONS, &message).implied(&found).rule(&id, first.objects);
    }
}

/// Booleans that stay true.
fn latches(draft: &mut Draft, facts: &Facts) {
    for (path, of) in facts.fields.iter().filter(|(_, of)| of.latch.holds()) {
        let when =
            json!({"all": [{"oldField": path, "is": true}, {"not": {"field": path, "is": true}}]});
        let (id, objects) =
            (format!("{}-reverted", kebab(last(path))), of.latch.stays_true.objects);
        let support = format!("stays true in {objects} objects");
        let message = "was never reset once it was true";
        draft.check(&id, &when, path, message).support(support).rule(&id, objects);
    }
}

/// Times of which one is never before the other.
fn orders(draft: &mut Draft, facts: &Facts) {
    let orders = facts.orders.iter().filter(|_| !facts.orders.is_full);
    for (pair, seen) in orders.filter(|(_, seen)| seen.objects >= MIN_OBJECTS) {
        let Some((later, earlier)) = pair.split_once(' ') else { continue };
        if facts.orders.get(&format!("{earlier} {later}")).is_some() {
            continue;
        }
        let id = format!("{}-before", kebab(last(later)));
        let when = json!({"field": later, "before": earlier});
        let message = format!("was never before {}", shown(last(earlier)));
        let support = format!("later in {} objects", seen.objects);
        draft.check(&id, &when, later, &message).support(support).rule(&id, seen.objects);
    }
}

impl Draft {
    fn check(&mut self, id: &str, when: &Value, path: &str, message: &str) -> &mut Entry {
        let rule =
            json!({"id": id, "when": when, "path": path, "action": "Warn", "message": message});
        self.add(&["rules", &format!("{id} {path}")], rule)
    }
}

impl Entry {
    /// What shows some implications, the best supported first.
    fn implied(&mut self, found: &[Implication<'_>]) -> &mut Self {
        let parts = found.iter().map(|Implication { other, objects, expected, .. }| {
            format!("{}: {objects} objects, {expected:.0} expected otherwise", shown(&other.1))
        });
        self.support(parts.collect::<Vec<_>>().join("; "))
    }
}

/// The predicate that an implication holds.
fn holds(one: &Implication<'_>) -> Value {
    let (kind, name) = one.other;
    match kind {
        Kind::Condition => json!({"condition": name, "is": one.value}),
        Kind::Phase => json!({"field": name, "is": one.value}),
        Kind::Bool => json!({"field": name, "is": one.value == "true"}),
        Kind::Deletion => json!({"deleting": one.value == "true"}),
    }
}

/// The predicate that one of some implications is violated.
fn any_violated(found: &[Implication<'_>]) -> Value {
    one_or("any", found.iter().map(|one| json!({"not": holds(one)})).collect())
}

/// The only predicate, or all or any of several.
fn one_or(word: &str, mut predicates: Vec<Value>) -> Value {
    if predicates.len() == 1 { predicates.remove(0) } else { json!({word: predicates}) }
}
