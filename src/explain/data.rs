//! A convention as data: everything that was compiled, and its truth table in full.

use serde_json::{Map, Value, json};

use super::facts::{Answer, Fact, Space};
use super::page::MAX_COMBINATIONS;
use super::table::{Table, has_evidence};
use super::words;
use crate::language::{Pattern, Predicate};
use crate::policy::convention::{
    Backfill, ConditionList, ConditionType, Convention, Filling, GenerationRules, Movers, Phase,
    PhaseRules, Presence, RepairTo, Rule, Sanction, Since, Trigger, ValueSource, Watched,
};
use crate::policy::{Check, FieldType, Format};

/// Everything that a convention says. Members that say nothing are left out. A predicate has its
/// words, and its parts as documents write them.
#[must_use]
pub fn convention(convention: &Convention) -> Value {
    let phase = convention.phase.as_ref();
    object([
        ("name", convention.name.as_str().into()),
        ("title", convention.title.as_str().into()),
        ("source", convention.source.as_str().into()),
        ("differences", json!(convention.differences)),
        ("conditions", convention.conditions.iter().map(condition_list).collect()),
        ("generation", convention.generation.as_ref().map(generation).unwrap_or_default()),
        ("phase", phase.map(phase_rules).unwrap_or_default()),
        (
            "fields",
            convention
                .fields
                .iter()
                .map(|field| with(check(&field.check), "path", field.path.to_string()))
                .collect(),
        ),
        ("rules", convention.rules.iter().map(rule).collect()),
        ("backfill", convention.backfill.iter().map(backfill).collect()),
        ("table", table(convention)),
    ])
}

/// An object without the members that are null, empty or false.
fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    let says = |value: &Value| match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
        _ => true,
    };
    let members = members.into_iter().filter(|(_, value)| says(value));
    members.map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>().into()
}

fn with(mut object: Value, member: &str, value: impl Into<Value>) -> Value {
    if let Value::Object(members) = &mut object {
        members.insert(member.to_owned(), value.into());
    }
    object
}

fn sanction(sanction: &Sanction) -> Value {
    json!({"rule": sanction.rule, "action": words::action(sanction.action)})
}

fn maybe(found: Option<&Sanction>) -> Value {
    found.map(sanction).unwrap_or_default()
}

fn texts<T: ToString>(items: &[T]) -> Value {
    items.iter().map(|item| Value::from(item.to_string())).collect()
}

fn condition_list(list: &ConditionList) -> Value {
    let members = list
        .members
        .iter()
        .map(|(name, checks)| (name.clone(), checks.iter().map(check).collect::<Value>()));
    let times = list.times.as_ref().map(|times| {
        let may = match &times.may_move_on {
            Movers::Anything => "anything".into(),
            Movers::Members(members) => json!(members),
        };
        object([
            ("member", times.member.as_str().into()),
            ("mustMoveOn", json!(times.must_move_on)),
            ("mayMoveOn", may),
            ("kept", sanction(&times.kept)),
            ("moved", sanction(&times.moved)),
            ("backwards", sanction(&times.backwards)),
            ("backwardsUnchanged", sanction(&times.backwards_unchanged)),
            ("future", sanction(&times.future)),
            ("skewSeconds", times.skew.into()),
            ("source", times.source.as_str().into()),
        ])
    });
    let history = list.history.as_ref().map(|history| {
        json!({
            "distinct": history.distinct,
            "rewritten": sanction(&history.rewritten),
            "repeated": sanction(&history.repeated),
        })
    });
    object([
        ("path", list.path.to_string().into()),
        ("apiVersions", texts(&list.versions)),
        ("key", json!(list.key)),
        ("duplicate", sanction(&list.duplicate)),
        ("maxItems", json!(list.max_items)),
        ("tooLong", if list.max_items.is_some() { sanction(&list.too_long) } else { Value::Null }),
        ("history", history.unwrap_or_default()),
        ("members", members.collect::<Map<_, _>>().into()),
        ("otherMembers", maybe(list.other_members.as_ref())),
        ("types", list.types.known.iter().map(condition_type).collect()),
        ("otherTypes", maybe(list.types.other.as_ref())),
        ("order", maybe(list.types.order.as_ref())),
        ("polarityFrom", texts(&list.types.polarity_from)),
        ("transitionTime", times.unwrap_or_default()),
        (
            "each",
            list.each
                .iter()
                .map(|rule| {
                    object([
                        ("id", rule.id.as_str().into()),
                        ("when", predicate(&rule.when)),
                        ("action", words::action(rule.action).into()),
                        ("member", rule.member.as_str().into()),
                        ("message", rule.message.as_str().into()),
                        ("optional", rule.optional.into()),
                        ("source", rule.source.as_str().into()),
                    ])
                })
                .collect(),
        ),
        ("source", list.source.as_str().into()),
    ])
}

fn condition_type(kind: &ConditionType) -> Value {
    let presence = |presence: Option<&Presence>| {
        presence.map(|presence| {
            let when = presence.when.as_ref().map(predicate).unwrap_or_default();
            object([
                ("rule", presence.sanction.rule.as_str().into()),
                ("action", words::action(presence.sanction.action).into()),
                ("when", when),
            ])
        })
    };
    object([
        ("type", kind.name.as_str().into()),
        ("aliases", json!(kind.aliases)),
        ("polarity", kind.polarity.name().into()),
        ("missing", presence(kind.missing.as_ref()).unwrap_or_default()),
        ("present", presence(kind.present.as_ref()).unwrap_or_default()),
        ("notTrue", maybe(kind.not_true.as_ref())),
        ("removed", maybe(kind.removed.as_ref())),
        ("reverted", maybe(kind.reverted.as_ref())),
        ("mirrored", kind.mirrored.into()),
        ("key", json!(kind.key)),
        (
            "reasons",
            kind.reasons
                .iter()
                .map(|row| {
                    object([
                        ("reason", row.reason.as_str().into()),
                        (
                            "expects",
                            row.expects
                                .iter()
                                .map(|(member, values)| (member.clone(), json!(values)))
                                .collect::<Map<_, _>>()
                                .into(),
                        ),
                        ("rule", row.sanction.rule.as_str().into()),
                        ("action", words::action(row.sanction.action).into()),
                    ])
                })
                .collect(),
        ),
        ("otherReasons", maybe(kind.other_reasons.as_ref())),
        ("meaning", kind.meaning.as_str().into()),
        ("source", kind.source.as_str().into()),
    ])
}

fn generation(rules: &GenerationRules) -> Value {
    object([
        ("paths", texts(&rules.paths)),
        ("ahead", sanction(&rules.ahead)),
        ("aheadAtFirst", sanction(&rules.ahead_at_first)),
        ("decreased", sanction(&rules.decreased)),
        ("reset", maybe(rules.reset.as_ref())),
        ("minimum", json!(rules.minimum)),
        (
            "belowMinimum",
            if rules.minimum.is_some() { sanction(&rules.below_minimum) } else { Value::Null },
        ),
        ("source", rules.source.as_str().into()),
    ])
}

fn phase_rules(rules: &PhaseRules) -> Value {
    let time = rules.transition_time.as_ref().map(|time| {
        json!({
            "path": time.path.to_string(),
            "inStep": time.in_step,
            "moved": sanction(&time.moved),
            "kept": sanction(&time.kept),
        })
    });
    let reason = rules.reason.as_ref().map(|reason| {
        object([
            ("path", reason.path.to_string().into()),
            ("always", json!(reason.always)),
            ("rule", reason.sanction.rule.as_str().into()),
            ("action", words::action(reason.sanction.action).into()),
        ])
    });
    let moves = rules.moves.as_ref().map(|moves| {
        let from = moves.from.iter().map(|(from, to)| (from.clone(), json!(to)));
        json!({
            "anyTo": moves.any_to,
            "from": from.collect::<Map<_, _>>(),
            "rule": moves.sanction.rule,
            "action": words::action(moves.sanction.action),
        })
    });
    let step = |step: &crate::policy::convention::RepairStep| {
        let to = match &step.to {
            RepairTo::Phase(name) => name.as_str(),
            RepairTo::Requested => "requested",
            RepairTo::Stored => "stored",
        };
        object([("to", to.into()), ("when", step.when.as_ref().map(predicate).unwrap_or_default())])
    };
    object([
        ("path", rules.path.to_string().into()),
        ("otherPaths", texts(&rules.other_paths)),
        ("default", json!(rules.default)),
        ("rule", rules.value_rule.as_str().into()),
        ("transitionTime", time.unwrap_or_default()),
        ("reason", reason.unwrap_or_default()),
        ("values", rules.phases.iter().map(phase).collect()),
        ("repair", rules.repair.iter().map(step).collect()),
        ("moves", moves.unwrap_or_default()),
        ("source", rules.source.as_str().into()),
    ])
}

fn phase(phase: &Phase) -> Value {
    let evidence = |found: Option<&Predicate>| found.map(predicate).unwrap_or_default();
    let imposed = phase.imposed.as_ref().map(|imposed| {
        let since = match imposed.since {
            Since::DeletionTimestamp => "/metadata/deletionTimestamp",
            Since::CreationTimestamp => "/metadata/creationTimestamp",
        };
        json!({"when": predicate(&imposed.when), "since": since})
    });
    object([
        ("phase", phase.name.as_str().into()),
        ("rule", phase.rule.as_str().into()),
        ("meaning", phase.meaning.as_str().into()),
        ("necessary", evidence(phase.necessary.as_ref())),
        ("sufficient", evidence(phase.sufficient.as_ref())),
        ("imposed", imposed.unwrap_or_default()),
        ("reasons", json!(phase.reasons)),
        ("source", phase.source.as_str().into()),
    ])
}

fn rule(rule: &Rule) -> Value {
    let watched = |watched: &[Watched]| -> Value {
        watched
            .iter()
            .map(|watched| match watched {
                Watched::Field(path) => Value::from(path.to_string()),
                Watched::Condition(kind) => format!("condition {kind}").into(),
            })
            .collect()
    };
    let trigger = match &rule.trigger {
        Trigger::State => "state".into(),
        Trigger::Introduced => "introduced".into(),
        Trigger::Moved(names) => json!({"moved": watched(names)}),
        Trigger::CoWritten(names) => json!({"coWritten": watched(names)}),
    };
    object([
        ("id", rule.id.as_str().into()),
        ("when", predicate(&rule.when)),
        ("trigger", trigger),
        ("action", words::action(rule.action).into()),
        ("path", rule.path.to_string().into()),
        ("in", rule.list.as_ref().map(|list| list.to_string().into()).unwrap_or_default()),
        ("message", rule.message.as_str().into()),
        ("optional", rule.optional.into()),
        ("source", rule.source.as_str().into()),
    ])
}

fn check(check: &Check) -> Value {
    let kind = check.kind.map(|kind| match kind {
        FieldType::String => "string",
        FieldType::Integer => "integer",
        FieldType::Number => "number",
        FieldType::Boolean => "boolean",
        FieldType::Object => "object",
        FieldType::Array => "array",
    });
    let format = check.format.map(|format| match format {
        Format::DateTime => "date-time",
        Format::Quantity => "quantity",
        Format::QualifiedName => "qualified-name",
    });
    object([
        ("rule", check.rule.as_str().into()),
        ("required", check.required.into()),
        ("forbidden", check.forbidden.into()),
        ("nullable", if check.nullable { Value::Null } else { json!("no") }),
        ("type", json!(kind)),
        ("enum", json!(check.values)),
        ("pattern", json!(check.pattern.as_ref().map(Pattern::as_str))),
        ("minLength", json!(check.min_length)),
        ("maxLength", json!(check.max_length)),
        ("maxBytes", json!(check.max_bytes)),
        ("minimum", json!(check.minimum)),
        ("maximum", json!(check.maximum)),
        ("format", json!(format)),
        ("action", words::action(check.action.into()).into()),
        ("source", check.source.as_str().into()),
    ])
}

fn backfill(fill: &Backfill) -> Value {
    let sources = |sources: &[ValueSource]| -> Value {
        let source = |source: &ValueSource| match source {
            ValueSource::Value(value) => json!({"value": value}),
            ValueSource::Stored => json!({"copyOf": "stored"}),
            ValueSource::Field(path) => json!({"copyOf": path.to_string()}),
            ValueSource::Condition { kind, member } => {
                json!({"copyOf": {"condition": kind, "member": member}})
            }
            ValueSource::CreationTimestamp => json!({"copyOf": "/metadata/creationTimestamp"}),
            ValueSource::DeletionTimestamp => json!({"copyOf": "/metadata/deletionTimestamp"}),
            ValueSource::Generation => json!({"copyOf": "/metadata/generation"}),
        };
        sources.iter().map(source).collect()
    };
    let filling = match &fill.filling {
        Filling::Absent(_) => json!({"absent": true}),
        Filling::Field(_, values) => json!({"values": sources(values)}),
        Filling::Member { member, sources: values, .. } => {
            json!({"member": member, "values": sources(values)})
        }
        Filling::Element { kind, members, .. } => {
            let members = members.iter().map(|(name, values)| (name.clone(), sources(values)));
            json!({"element": {"type": kind, "members": members.collect::<Map<_, _>>()}})
        }
        Filling::Steady { member, unless, .. } => json!({"member": member, "steadyWhile": unless}),
        Filling::AbsentMember { member, of, .. } => {
            json!({"member": member, "absentWhere": predicate(of)})
        }
    };
    object([
        ("name", fill.name.as_str().into()),
        ("optional", fill.optional.into()),
        ("path", fill.path().to_string().into()),
        ("filling", filling),
        ("when", fill.when.as_ref().map(predicate).unwrap_or_default()),
        ("source", fill.source.as_str().into()),
    ])
}

/// A predicate with its words.
fn predicate(found: &Predicate) -> Value {
    json!({"words": found.in_words(), "predicate": found})
}

/// The truth table in full: of the phase, or of each rule where there is no evidence about one.
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
                    let answers = table.space.answers.iter().enumerate();
                    let row = answers.map(|(fact, answers)| -> Value {
                        let chosen = answers.iter().enumerate();
                        let chosen = chosen.filter(|(at, _)| cube.includes(fact, *at));
                        chosen.map(|(_, answer)| Value::from(answer.label())).collect()
                    });
                    row.collect::<Value>()
                });
                json!({"facts": facts(&table.space), "combinations": table.rows.len(), "violated": rows.collect::<Value>()})
            }
            Err(space) => too_large(&space),
        };
        (rule.id.clone(), found)
    });
    object([("rules", rules.collect::<Map<_, _>>().into())])
}

/// Rows of answers, admissible phases, and for each that is not the one that Repair chooses.
fn phase_table(rules: &PhaseRules, table: &Table<super::table::PhaseOutcome>) -> Value {
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
        let cells = table.space.answers.iter().zip(combination);
        let cells = cells.filter_map(|(answers, at)| answers.get(at).map(Answer::label));
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
    space.facts.iter().map(Fact::label).map(Value::from).collect()
}

fn too_large(space: &Space) -> Value {
    json!({"facts": facts(space), "tooLarge": true})
}
