//! What pages say of a state or of a rule is what the engine says of objects.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use serde_json::{Value, json};
use statusgate_analysis::facts::{Answer, Fact, Represents, Space};
use statusgate_analysis::line::{lines, lines_of_policy};
use statusgate_analysis::table::{PhaseOutcome, Table};
use statusgate_analysis::words::short_id;
use statusgate_core::engine::Action;
use statusgate_core::language::Observed;
use statusgate_core::model::Pointer;
use statusgate_pages::explain::{Play, RuleText};

use crate::grammar::singles;
use crate::search::{Extent, Outcome, for_every_convention, in_every_world};
use crate::small::Small;
use crate::webhook::Write;
use crate::world::{Random, World};

const EXTENT: Extent = Extent { every: 11, worlds: [40, 150], pairs: [60, 1000], least: 300 };

#[test]
fn the_row_of_an_object_is_the_verdict_of_the_engine() {
    in_every_world("the row of an object is the engine's verdict", EXTENT, claim);
}

thread_local! {
    static TABLE: OnceCell<(String, Option<Table<PhaseOutcome>>)> = const { OnceCell::new() };
}

fn claim(small: &Small, world: &World) -> Outcome {
    let convention = &small.policies.policies()[0].convention;
    let Some(rules) = &convention.phase else { return Outcome::Outside };
    let table = TABLE.with(|cell| {
        let made =
            cell.get_or_init(|| (small.text.clone(), Table::of_phase(convention, rules).ok()));
        if made.0 == small.text { made.1.clone() } else { Table::of_phase(convention, rules).ok() }
    });
    let Some(table) = table else { return Outcome::Outside };
    let mut object = small.axes.written(world);
    // The table has one text that matches a pattern, and stands for all.
    if small.text.contains("matches:")
        && !["o", "two"].map(Value::from).contains(&object["status"]["word"])
    {
        return Outcome::Outside;
    }
    let Some(row) = row_of(&table.space, &object) else { return Outcome::Outside };
    let Some(outcome) = table.outcome(row) else {
        return Outcome::Broken(
            "the object is in a row that cannot be",
            format!("{:?}", table.space.combination(row)),
        );
    };
    let mut differs = false;
    for (phase, admissible) in rules.phases.iter().zip(&outcome.admissible) {
        object["status"]["phase"] = phase.name.as_str().into();
        let found = Write::of(&json!({}), &object).findings(&small.policies);
        let contradicts = found.iter().any(|found| found.rule == phase.rule.as_str());
        differs |= !admissible;
        if contradicts == *admissible && object["metadata"]["deletionTimestamp"].is_null() {
            let details =
                format!("phase {}: admissible {admissible} in the table, {found:?}", phase.name);
            return Outcome::Broken("the table and the engine disagree", details);
        }
    }
    if differs { Outcome::Held } else { Outcome::Trivial }
}

/// The page lets a reader choose a state, and shows its object, the phases that it admits, and what is set instead.
#[test]
fn a_state_on_the_page_is_the_verdict_of_the_engine() {
    let extent = Extent { least: 100, ..EXTENT };
    for_every_convention("a state on the page is the engine's verdict", extent, states);
}

fn states(small: &Small, count: usize, random: &mut Random) -> Outcome {
    let play = Play::of(&small.policies.policies()[0].convention);
    let facts = json!(play.facts());
    let sizes: Vec<usize> = facts
        .as_array()
        .unwrap()
        .iter()
        .map(|fact| fact["answers"].as_array().unwrap().len())
        .collect();
    let mut held = Outcome::Trivial;
    for _ in 0..count {
        let answers: Vec<usize> = sizes.iter().map(|size| random.below(*size)).collect();
        let Some(state) = play.state(&answers).map(|state| json!(state)) else { continue };
        let object = yaml(&state["object"]);
        // The claim is not about other resources or about deletion.
        if state["plural"] == "others" || !object["metadata"]["deletionTimestamp"].is_null() {
            continue;
        }
        for phase in state["phases"].as_array().unwrap() {
            if let Some(said) = differs(small, &state, phase, object.clone()) {
                let details = format!("{phase}, but the engine: {said}\n{object}");
                return Outcome::Broken("the page and the engine disagree", details);
            }
            if !phase["contradiction"].is_null() {
                held = Outcome::Held;
            }
        }
    }
    held
}

/// The difference between the page and the engine for this phase, if there is one.
fn differs(small: &Small, state: &Value, phase: &Value, mut object: Value) -> Option<String> {
    let old = if state["old"].is_null() { json!({}) } else { yaml(&state["old"]) };
    // A contradiction that is stored already is not held against a write.
    if old["status"]["phase"] == phase["phase"] {
        return None;
    }
    // What is imposed may depend on the phase of the state, and a policy that only warns repairs nothing.
    let is_own = object["status"]["phase"] == phase["phase"] || !small.text.contains("imposed");
    let is_set = is_own && !small.text.contains("enforcement: Warn");
    object["status"]["phase"] = phase["phase"].clone();
    let write = Write::of(&old, &object);
    let found = write.findings(&small.policies);
    let contradicts = found.iter().any(|found| found.rule == phase["rule"]);
    if contradicts == phase["contradiction"].is_null() {
        return Some(format!("{found:?}"));
    }
    let set = write.mutate(&small.policies.clone().repairing()).object;
    // The page is about a status to which the defaults have been applied.
    if without_phase(&set) != without_phase(&object) {
        return None;
    }
    let expected = [&state["imposed"], &phase["repair"], &phase["phase"]];
    let expected = expected.into_iter().find(|phase| !phase.is_null()).unwrap();
    (is_set && set["status"]["phase"] != *expected)
        .then(|| format!("{set} instead of phase {expected}"))
}

fn without_phase(object: &Value) -> Value {
    let mut status = object["status"].clone();
    status["phase"].take();
    status["time"].take();
    status
}

fn yaml(text: &Value) -> Value {
    serde_saphyr::from_str(text.as_str().unwrap()).unwrap()
}

/// A finding is weaker than its rule if the stored object violates the rule, too, and in some policies.
#[test]
fn every_rule_that_finds_something_has_an_explanation_with_its_action() {
    in_every_world("rules are explained", EXTENT, |small, world| {
        let policy = &small.policies.policies()[0];
        let write = Write::of(&small.axes.stored(world), &small.axes.written(world));
        let found = write.actions(&small.policies);
        let strongest = policy.writers.iter().map(|writer| writer.disagreement);
        let strongest = strongest.chain([policy.disagreement]).max().unwrap();
        for (rule, action) in &found {
            let text = RuleText::of_convention(&policy.convention, rule)
                .or_else(|| RuleText::of_policy(policy, rule));
            let violations = text.map(|text| text.violations).unwrap_or_default();
            let is_said = violations.iter().any(|violation| match violation.action {
                "Deny" => *action <= Action::Deny,
                "Warn" => *action <= Action::Warn,
                "Disagreement" => *action <= strongest,
                _ => false,
            });
            if !is_said {
                let details = format!("{rule}: {action:?}, but {violations:?}");
                return Outcome::Broken("a finding is stronger than its explanation", details);
            }
        }
        if found.is_empty() { Outcome::Trivial } else { Outcome::Held }
    });
}

/// Rules that no world violates: no status has another shape, no type or reason is misspelled or unknown, no list
/// has a condition with the status of a summary, two things of one name, or a time in the future.
const NEVER_VIOLATED: &[&str] = &[
    "condition-misspelled",
    "condition-reason-unknown",
    "condition-shape",
    "condition-type",
    "status",
    "summary-better",
    "summary-reason",
    "thing-duplicate",
    "thing-misspelled",
    "thing-shape",
    "transition-time-future",
];

/// A kind of rule that is declared and never judged fails no other claim.
#[test]
fn every_rule_finds_something_in_some_small_convention() {
    let (mut declared, mut found) = (BTreeSet::new(), BTreeSet::new());
    let mut random = Random(42);
    for small in singles().iter().step_by(7).filter_map(Small::compile) {
        let policy = &small.policies.policies()[0];
        let lines = lines(&policy.convention).into_iter().chain(lines_of_policy(policy));
        declared.extend(lines.map(|line| line.id.to_owned()));
        for world in small.axes.worlds(40, &mut random) {
            let write = Write::of(&small.axes.stored(&world), &small.axes.written(&world));
            found.extend(write.actions(&small.policies).into_iter().map(|(rule, _)| rule));
        }
    }
    let silent = declared.difference(&found).map(|rule| short_id(rule));
    assert_eq!(silent.collect::<Vec<_>>(), NEVER_VIOLATED, "of {} rules", declared.len());
}

/// The combination of an object without a stored one; `None` if a fact has no answer for it.
fn row_of(space: &Space, object: &Value) -> Option<usize> {
    space.facts.iter().try_fold(0, |row, (fact, answers)| {
        let at = answers.iter().position(|answer| is(fact, answer, answers, object))?;
        Some(row * answers.len() + at)
    })
}

/// Whether an answer is the one of an object. Others and any value are the last resort.
fn is(fact: &Fact, answer: &Answer, answers: &[Answer], object: &Value) -> bool {
    match fact {
        Fact::Deleting => {
            *answer == Answer::Flag(!object["metadata"]["deletionTimestamp"].is_null())
        }
        Fact::Resource => is_value(&json!("things"), answer, answers),
        Fact::Phase { old: false } => is_value(&object["status"]["phase"], answer, answers),
        Fact::Condition { old: false, list, kind } => {
            let found = list.as_ref().and_then(|list| condition(object, list, kind));
            match (found, answer) {
                (None, answer) => *answer == Answer::Absent,
                (Some(found), Answer::Condition { status, reason, represents }) => {
                    let wanted = found["reason"].as_str().unwrap_or_default();
                    let named = answers.iter().any(|answer| {
                        matches!(answer, Answer::Condition { reason, represents: Represents::Itself, .. } if reason == wanted)
                    });
                    found["status"] == status.name()
                        && match represents {
                            Represents::Itself => reason == wanted,
                            Represents::Others => !named,
                            Represents::Anything => true,
                        }
                }
                _ => false,
            }
        }
        Fact::Observed => {
            let observed = object["status"]["observedGeneration"].as_i64();
            let wanted = observed.map(|observed| match observed.cmp(&2) {
                std::cmp::Ordering::Less => Observed::Behind,
                std::cmp::Ordering::Equal => Observed::Current,
                std::cmp::Ordering::Greater => Observed::Ahead,
            });
            *answer == wanted.map_or(Answer::Absent, Answer::Observed)
        }
        Fact::Field { old: false, path } => is_value(at(object, path), answer, answers),
        Fact::Length(path) => {
            *answer == Answer::Count(at(object, path).as_array().map_or(0, Vec::len))
        }
        Fact::Gates(_) => match &object["spec"]["gates"][0]["conditionType"] {
            Value::Null => *answer == Answer::NotAsked,
            kind => {
                let list = "/status/conditions".parse().unwrap();
                let found = condition(object, &list, kind.as_str().unwrap());
                let status = found.and_then(|found| found["status"].as_str());
                *answer == Answer::Gate(status.map(|status| status == "True"))
            }
        },
        Fact::OfCondition { list, of } => {
            let found = list.as_ref().and_then(|list| condition(object, list, &of.condition));
            is_value(found.map_or(&Value::Null, |found| &found[&of.member]), answer, answers)
        }
        // A first write has no stored object, and the phase depends on no element.
        Fact::Phase { old: true }
        | Fact::Condition { old: true, .. }
        | Fact::Field { old: true, .. }
        | Fact::Member { .. } => false,
    }
}

fn is_value(value: &Value, answer: &Answer, answers: &[Answer]) -> bool {
    let is_named = answers.iter().any(|answer| {
        matches!(answer, Answer::Value { value: named, represents: Represents::Itself } if named == value)
    });
    match answer {
        Answer::Absent => value.is_null(),
        Answer::Value { value: named, represents: Represents::Itself } => named == value,
        Answer::Value { represents: Represents::Others, .. } => !value.is_null() && !is_named,
        Answer::Value { represents: Represents::Anything, .. } => !value.is_null(),
        _ => false,
    }
}

fn at<'o>(object: &'o Value, path: &Pointer) -> &'o Value {
    object.pointer(&path.to_string()).unwrap_or(&Value::Null)
}

fn condition<'o>(object: &'o Value, list: &Pointer, kind: &str) -> Option<&'o Value> {
    at(object, list).as_array()?.iter().find(|item| item["type"] == kind)
}
