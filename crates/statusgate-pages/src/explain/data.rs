//! A convention as data: its document with everything that it extends, and its truth table in full.

use serde_json::{Map, Value, json};

use super::page::MAX_COMBINATIONS;
use statusgate_analysis::facts::{Fact, Space};
use statusgate_analysis::table::{PhaseOutcome, Table, has_evidence};
use statusgate_core::documents::StatusConvention;
use statusgate_core::policy::convention::{Convention, PhaseRules};

/// A convention in the list of all.
pub fn summary(convention: &Convention) -> Value {
    let lists = convention.conditions.iter().map(|list| list.path.field());
    json!({
        "name": convention.name,
        "title": convention.title,
        "phases": convention.phase.as_ref().map_or(0, |rules| rules.phases.len()),
        "conditions": lists.collect::<Vec<_>>(),
    })
}

/// The content of a convention: its name, the keys of its `spec`, and `table`.
pub fn convention(document: &StatusConvention, convention: &Convention) -> Value {
    let mut data = json!(document.spec);
    data["name"] = convention.name.as_str().into();
    data["table"] = table(convention);
    data
}

/// An object without the members that are null or empty.
fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    let filled = members.into_iter().filter(|(_, value)| match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
        _ => true,
    });
    filled.map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>().into()
}

/// The full truth table of the phase; without evidence about phases, that of each rule.
fn table(convention: &Convention) -> Value {
    if let Some(rules) = convention.phase.as_ref().filter(|rules| has_evidence(rules)) {
        return match Table::of_phase(convention, rules) {
            Ok(table) => phase_table(rules, &table),
            Err(space) => too_large(&space),
        };
    }
    let rules = convention.rules.iter().enumerate().map(|(number, rule)| {
        let found = match Table::of_rules(convention, &[number], MAX_COMBINATIONS) {
            Ok(table) => {
                let violated = table.collapsed(|_, firing| (!firing.is_empty()).then_some(()));
                let rows = violated.iter().map(|(cube, ())| {
                    let answers = table.space.facts.values().enumerate();
                    let row = answers.map(|(fact, answers)| -> Value {
                        let chosen =
                            answers.iter().enumerate().filter(|(at, _)| cube.includes(fact, *at));
                        chosen.map(|(_, answer)| Value::from(answer.label())).collect()
                    });
                    row.collect::<Value>()
                });
                json!({"facts": facts(&table.space), "combinations": table.rows.len(), "violated": rows.collect::<Value>()})
            }
            Err(space) => too_large(&space),
        };
        (rule.rule.to_string(), found)
    });
    object([("rules", rules.collect::<Map<_, _>>().into())])
}

/// Rows of answers, admissible phases, and the phase that Repair chooses for each other phase.
fn phase_table(rules: &PhaseRules, table: &Table<PhaseOutcome>) -> Value {
    let name = |at: usize| rules.phases.get(at).map(|phase| phase.name.as_str());
    let outcomes = table.outcomes.iter().map(|outcome| {
        let places = 0..rules.phases.len();
        let admissible = places.clone().filter(|at| outcome.admissible.get(*at) == Some(&true));
        let repairs = places.filter_map(|at| {
            let chosen = outcome.repairs.get(at).copied().flatten()?;
            Some((name(at)?.to_owned(), json!(name(chosen)?)))
        });
        object([
            ("imposed", json!(outcome.imposed.and_then(name))),
            ("admissible", admissible.filter_map(name).map(Value::from).collect()),
            ("repair", repairs.collect::<Map<_, _>>().into()),
        ])
    });
    let rows = table.rows.iter().enumerate().filter_map(|(number, outcome)| {
        let combination = table.space.combination(number);
        let cells = table.space.chosen(&combination).map(|(_, answer)| answer.label());
        let row: Value = cells.map(Value::from).chain([json!((*outcome)?)]).collect();
        Some(row)
    });
    json!({
        "facts": facts(&table.space),
        "outcomes": outcomes.collect::<Value>(),
        "rows": rows.collect::<Value>(),
    })
}

fn facts(space: &Space) -> Value {
    space.facts.keys().map(Fact::label).map(Value::from).collect()
}

fn too_large(space: &Space) -> Value {
    json!({"facts": facts(space), "tooLarge": true})
}
