//! Which facts become rules, and which become questions.

use serde_json::{Value, json};
use statusgate_core::policy::kebab;

use super::base::Base;
use super::conditions::ListMiner;
use super::document::Draft;
use super::facts::Facts;
use super::fields::is_phase;
use super::pairs::{Implication, Variable};
use super::recording::Recording;
use super::schema::StatusSchema;
use super::text::{last, listed, shown};
use super::{CLOSED_EXPECTED, CLOSED_OBJECTS, CONDITIONS, MIN_OBJECTS};

/// What one value implies at most; the rest is weaker.
const MAX_IMPLIED: usize = 6;

/// The values of a phase, and the changes of it in a question.
const MAX_PHASES: usize = 32;
const MAX_MOVES: usize = 12;

pub(crate) fn mine(
    recording: &Recording<'_>,
    facts: &Facts,
    schema: &StatusSchema,
    base: &Base<'_>,
) -> Draft {
    let mut draft = Draft::new(recording, base.name());
    if recording.objects < MIN_OBJECTS {
        let objects = recording.objects;
        draft.questions.push(format!(
            "{objects} objects were recorded, and a rule needs {MIN_OBJECTS}: record more"
        ));
    }
    if recording.left_out > 0 {
        draft.questions.push(format!("{} more writes were not read", recording.left_out));
    }
    let mut lists: Vec<_> = facts.lists.iter().collect();
    lists.sort_by_key(|(path, _)| path.matches('/').count());
    let main = lists.first().map(|(path, _)| *path);
    for (path, list) in lists {
        let is_main = Some(path) == main;
        if is_main && base.list(path).is_none() && !base.name().is_empty() {
            draft.add(&["conditions", path, "like"], base.name().into(), "", 0, &[]);
        }
        ListMiner { path, facts: list, base, schema, is_main, draft: &mut draft }.mine();
    }
    histories(&mut draft, facts);
    if !base.has_phase() {
        phase(&mut draft, facts, schema);
    }
    summaries(&mut draft, facts);
    fields(&mut draft, facts);
    for (path, values) in &schema.enums {
        if !draft.has_phase(path) {
            let id = format!("field-{}", kebab(last(path)));
            let value = json!({"path": path, "enum": values, "action": "Warn"});
            draft.add(&["fields", path], value, "the CRD", 1, &[&id]);
        }
    }
    for path in &schema.required {
        let id = format!("{}-required", kebab(last(path)));
        let value = json!({"path": path, "required": true, "action": "Warn", "id": id});
        draft.add(&["fields", &id], value, "the CRD", 1, &[&id]);
    }
    draft
}

/// Lists that only grow. Their length needs a limit, and only lists that reached it show it.
fn histories(draft: &mut Draft, facts: &Facts) {
    for (path, of) in facts.histories.iter() {
        let (grown, full) = (of.grown.objects, of.at_longest.objects);
        if grown < MIN_OBJECTS || full < MIN_OBJECTS || of.dropped == 0 || of.rewritten {
            continue;
        }
        let support = format!("only grew in {grown} objects, and {full} reached this length");
        let rules = ["history-rewritten", "conditions-length"];
        draft.add(&["conditions", path, "history"], json!({}), "", grown, &rules);
        draft.add(&["conditions", path, "maxItems"], json!(of.longest), support, grown, &rules);
        draft.add(&["conditions", path, "tooLong"], json!("Warn"), "", grown, &rules);
    }
}

fn phase(draft: &mut Draft, facts: &Facts, schema: &StatusSchema) {
    let fields = facts.fields.iter().filter(|(path, of)| {
        is_phase(path)
            && of.has_words()
            && of.texts.len() <= MAX_PHASES
            && of.seen.objects >= MIN_OBJECTS
    });
    let best = fields.min_by_key(|(path, _)| {
        let name = last(path).to_ascii_lowercase();
        (path.matches('/').count(), name != "phase", name != "state")
    });
    let Some((path, of)) = best else { return };
    let (declared, objects) = (schema.values(path), of.seen.objects);
    let expected = of.texts.expected_new(objects, |seen| *seen);
    // A failure is rare: a value of two objects shows that there may be others.
    let is_settled =
        expected <= CLOSED_EXPECTED && of.texts.iter().all(|(_, seen)| seen.objects > 2);
    let is_closed = declared.is_some() || (objects >= CLOSED_OBJECTS && is_settled);
    let mut values: Vec<&str> = of.texts.iter().map(|(name, _)| name).collect();
    let others = declared.into_iter().flatten().map(String::as_str);
    values.extend(others.filter(|value| of.texts.get(value).is_none()));
    let estimate = format!("{expected:.2} new values expected in the next object, of {objects}");
    if is_closed {
        let support = declared.map_or(estimate, |_| "the CRD".to_owned());
        draft.add(&["phase", "path"], path.into(), support, 0, &[]);
    } else {
        let names: Vec<String> = values.iter().map(|value| shown(value)).collect();
        draft
            .questions
            .push(format!("may {path} have other values than {}? {estimate}", names.join(", ")));
    }
    let all: Vec<(&str, Vec<Implication<'_>>)> = values
        .iter()
        .map(|value| (*value, facts.pairs.implications(&Variable::Phase(path.to_owned()), value)))
        .collect();
    // Some phase must be admissible in every state.
    let weakest =
        all.iter().min_by_key(|(_, found)| found.iter().map(|one| one.objects).sum::<u32>());
    let weakest = weakest
        .map(|(value, _)| *value)
        .filter(|_| is_closed && all.iter().all(|(_, found)| !found.is_empty()));
    for (value, mut found) in all {
        if is_closed {
            let seen = of.texts.get(value).map_or(0, |seen| seen.objects);
            draft.add(&["phase", "values", value], json!({}), format!("{seen} objects"), 0, &[]);
        }
        found.truncate(MAX_IMPLIED);
        let (Some(first), true) = (found.first(), Some(value) != weakest) else { continue };
        let (id, weight) = (format!("phase-{}", kebab(value)), first.objects.saturating_mul(10));
        if is_closed {
            let holds: Vec<Value> = found.iter().map(holds).collect();
            let value_of =
                if let [one] = holds.as_slice() { one.clone() } else { json!({"all": holds}) };
            draft.add(
                &["phase", "values", value, "necessary"],
                value_of,
                support(&found),
                weight,
                &[&id],
            );
        } else {
            let when = json!({"all": [{"field": path, "is": value}, any_violated(&found)]});
            let message = format!("this phase disagrees with {}", shown(first.other.name()));
            draft.rule(&id, &when, path, &message, support(&found), weight);
        }
    }
    let moves: Vec<String> =
        of.moves.iter().map(|(name, seen)| format!("{} ({})", shown(name), seen.objects)).collect();
    if !moves.is_empty() {
        draft.questions.push(format!(
            "which changes of {path} are valid? Seen in objects: {}",
            listed(&moves, MAX_MOVES)
        ));
    }
}

fn summaries(draft: &mut Draft, facts: &Facts) {
    for variable in facts.pairs.summaries() {
        let mut found = facts.pairs.implications(variable, "True");
        found.retain(|one| matches!(one.other, Variable::Condition(_)));
        found.truncate(MAX_IMPLIED);
        let Some(first) = found.first() else { continue };
        let when =
            json!({"all": [{"condition": variable.name(), "is": "True"}, any_violated(&found)]});
        let message = format!(
            "{} is True but a condition that it summarizes is not as it should be",
            shown(variable.name())
        );
        let id = format!("{}-summary", kebab(variable.name()));
        draft.rule(
            &id,
            &when,
            CONDITIONS,
            &message,
            support(&found),
            first.objects.saturating_mul(10),
        );
    }
}

fn fields(draft: &mut Draft, facts: &Facts) {
    for (path, of) in facts.fields.iter().filter(|(_, of)| of.is_latch()) {
        let when =
            json!({"all": [{"oldField": path, "is": true}, {"not": {"field": path, "is": true}}]});
        let (id, objects) = (format!("{}-reverted", kebab(last(path))), of.stays_true.objects);
        draft.rule(
            &id,
            &when,
            path,
            "was never reset once it was true",
            format!("stays true in {objects} objects"),
            objects,
        );
    }
    let orders = facts
        .orders
        .iter()
        .filter(|(_, seen)| seen.objects >= MIN_OBJECTS && !facts.orders.is_full);
    for (pair, seen) in orders {
        let Some((later, earlier)) = pair.split_once(' ') else { continue };
        if facts.orders.get(&format!("{earlier} {later}")).is_none() {
            let (id, when) = (
                format!("{}-before", kebab(last(later))),
                json!({"field": later, "before": earlier}),
            );
            let message = format!("was never before {}", shown(last(earlier)));
            draft.rule(
                &id,
                &when,
                later,
                &message,
                format!("later in {} objects", seen.objects),
                seen.objects,
            );
        }
    }
}

impl Draft {
    fn rule(
        &mut self,
        id: &str,
        when: &Value,
        path: &str,
        message: &str,
        support: String,
        weight: u32,
    ) {
        let rule =
            json!({"id": id, "when": when, "path": path, "action": "Warn", "message": message});
        self.add(&["rules", &format!("{id} {path}")], rule, support, weight, &[id]);
    }

    fn has_phase(&self, path: &str) -> bool {
        self.entries.iter().any(|entry| entry.at[0] == "phase" && entry.value == path)
    }
}

fn support(found: &[Implication<'_>]) -> String {
    let parts = found.iter().map(|one| {
        format!(
            "{}: {} objects, {:.0} expected otherwise",
            shown(one.other.name()),
            one.objects,
            one.expected
        )
    });
    parts.collect::<Vec<_>>().join("; ")
}

/// The predicate that an implication holds.
fn holds(one: &Implication<'_>) -> Value {
    match one.other {
        Variable::Condition(name) => json!({"condition": name, "is": one.value}),
        Variable::Phase(path) => json!({"field": path, "is": one.value}),
        Variable::Bool(path) => json!({"field": path, "is": one.value == "true"}),
        Variable::Deleting => json!({"deleting": one.value == "true"}),
    }
}

/// The predicate that one of some implications is violated.
fn any_violated(found: &[Implication<'_>]) -> Value {
    let all: Vec<Value> = found.iter().map(|one| json!({"not": holds(one)})).collect();
    if let [one] = all.as_slice() { one.clone() } else { json!({"any": all}) }
}
