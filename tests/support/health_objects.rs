//! Random objects in the words of the rules about health of a convention.

#![allow(dead_code, reason = "each test crate uses a part of it")]

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use statusgate_core::language::{AnyWord, Reference};
use statusgate_core::model::Pointer;
use statusgate_core::policy::convention::Convention;

use crate::statuses::put;

/// The words of the rules.
#[derive(Default)]
struct Words {
    conditions: Vec<String>,
    reasons: Vec<String>,
    severities: Vec<String>,
    plurals: Vec<String>,
    /// Fields, with the values that rules name. `None`: rules compare the field with another one.
    fields: Vec<(Pointer, Option<Vec<Value>>)>,
}

impl Words {
    fn of(convention: &Convention) -> Self {
        let mut words = Self::default();
        for rule in convention.health.iter().flat_map(|health| &health.rules) {
            if let Some(when) = &rule.when {
                when.questions().into_iter().for_each(|word| words.add(word));
            }
        }
        words
    }

    fn add(&mut self, word: &AnyWord) {
        match word {
            AnyWord::ResourceName(word) => {
                let names = word.resource.iter();
                self.plurals.extend(names.map(|name| name.to_string().replace('*', "x")));
            }
            AnyWord::Condition(word) => {
                self.conditions.push(word.of.kind().to_owned());
                self.reasons.extend(word.reason.iter().flat_map(|names| names.iter().cloned()));
                self.severities
                    .extend(word.severity.iter().flat_map(|names| names.iter().cloned()));
            }
            AnyWord::Set(word) => self.field(&Reference::Field(word.set.clone()), Some(Vec::new())),
            AnyWord::Value(value) => {
                let named = value.is.iter().chain(&value.is_not).flat_map(|values| values.iter());
                let named: Vec<Value> = named.map(|scalar| scalar.value().clone()).collect();
                for operand in value.operands() {
                    self.conditions.extend(operand.condition().map(str::to_owned));
                    self.field(&operand.0, None);
                }
                let is_compared =
                    value.operands().next().is_some() || value.bounds().next().is_some();
                self.field(&value.reference, Some(named).filter(|_| !is_compared));
            }
            _ => {}
        }
    }

    fn field(&mut self, reference: &Reference, values: Option<Vec<Value>>) {
        let Reference::Field(path) = reference else { return };
        self.fields.push(((**path).clone(), values));
    }
}

/// The plurals that the rules distinguish, and another one.
pub(crate) fn plurals(convention: &Convention) -> Vec<String> {
    let mut plurals = Words::of(convention).plurals;
    plurals.push("things".to_owned());
    plurals.sort();
    plurals.dedup();
    plurals
}

/// Objects that are not being deleted.
pub(crate) fn objects(convention: &Convention) -> BoxedStrategy<Value> {
    let words = Words::of(convention);
    let mut parts: Vec<(Vec<String>, BoxedStrategy<Option<Value>>)> = Vec::new();
    let mut part = |path: &[String], value| parts.push((path.to_vec(), value));
    let odd = || select(vec![json!(null), json!(5), json!("x"), json!({}), json!({"type": "A"})]);
    for list in &convention.conditions {
        let element = prop_oneof![12 => conditions(&words), 1 => odd()];
        let inner = prop_oneof![9 => vec(element, 0..5).prop_map(Value::from), 1 => odd()].boxed();
        match &list.outer {
            None => part(list.path.tokens(), often(inner)),
            Some(outer) => {
                let names = outer.inner.clone();
                let parent = inner.prop_map(move |conditions| {
                    let mut parent = json!({"name": "a"});
                    put(&mut parent, &names, conditions);
                    parent
                });
                let parent = prop_oneof![9 => parent, 1 => odd()];
                let parents = vec(parent, 0..4).prop_map(Value::from);
                let parents = prop_oneof![9 => parents, 1 => odd()].boxed();
                part(outer.path.tokens(), often(parents));
            }
        }
    }
    if let Some(rules) = &convention.phase {
        let names: Vec<Value> =
            rules.phases.iter().map(|phase| phase.name.as_str().into()).collect();
        let more = [json!(null), json!(5), json!("?"), json!({"phase": "Succeeded"})];
        for path in rules.paths() {
            part(path.tokens(), often(select([&names[..], &more].concat()).boxed()));
        }
    }
    for (path, values) in &words.fields {
        let more = [
            json!(null),
            json!(true),
            json!(0),
            json!(2),
            json!(2.5),
            json!("x"),
            json!(""),
            json!([]),
            json!({}),
            json!(["x"]),
            json!(false),
            json!(3),
        ];
        // Lua compares the identity of lists and objects.
        let compared = [
            json!(1),
            json!(2),
            json!(3),
            json!(4),
            json!("1"),
            json!("2"),
            json!(null),
            json!(true),
        ];
        let values = match values {
            Some(values) => [values, &more[..]].concat(),
            None => compared.to_vec(),
        };
        part(path.tokens(), often(select(values).boxed()));
    }
    if let Some(health) = &convention.health {
        let observed = [
            json!(1),
            json!(2),
            json!(3),
            json!("1"),
            json!("2"),
            json!("x"),
            json!(null),
            json!(1.5),
            json!(true),
        ];
        if let Some(path) = &health.observed_generation {
            part(path.tokens(), often(select(observed.to_vec()).boxed()));
        }
        if let Some(path) = &health.message {
            part(path.tokens(), often(texts()));
        }
        // Lua loses null, so an object that holds only null would be empty.
        for path in health.rules.iter().filter_map(|rule| rule.message.as_deref()) {
            part(path.tokens(), often(select(vec![json!("m"), json!(""), json!(3)]).boxed()));
        }
    }
    let generation = select(vec![Some(json!(2)), Some(json!(2)), Some(json!(3)), None]).boxed();
    part(&["metadata".to_owned(), "generation".to_owned()], generation);
    let (paths, values): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
    let whole = values.prop_map(move |values| {
        let mut object = json!({"apiVersion": "g/v1", "kind": "Thing", "metadata": {"name": "n"}});
        for (path, value) in paths.iter().zip(values) {
            if let Some(value) = value {
                put(&mut object, path, value);
            }
        }
        object
    });
    let status = select(vec![json!(null), json!("x"), json!([])]);
    prop_oneof![
        30 => whole.clone(),
        1 => (whole, status).prop_map(|(mut object, status)| {
            object["status"] = status;
            object
        }),
    ]
    .boxed()
}

fn often(value: BoxedStrategy<Value>) -> BoxedStrategy<Option<Value>> {
    prop_oneof![3 => value.prop_map(Some), 1 => Just(None)].boxed()
}

fn texts() -> BoxedStrategy<Value> {
    select(vec![json!("m"), json!("a \"b\"\\ \n\u{1}ä"), json!(""), json!(null), json!(3)]).boxed()
}

fn conditions(words: &Words) -> BoxedStrategy<Value> {
    let of = |known: &[String], more: &[Value]| {
        let known: Vec<Value> = known.iter().map(|word| word.as_str().into()).collect();
        select([&known[..], more].concat()).boxed()
    };
    let kind = of(&words.conditions, &[json!("Custom")]);
    let status = of(
        &[],
        &[
            json!("True"),
            json!("False"),
            json!("Unknown"),
            json!("True"),
            json!("False"),
            json!("true"),
            json!(true),
            json!(null),
        ],
    );
    let reason = of(&words.reasons, &[json!(""), json!("Other"), json!(null), json!(7)]);
    let severity = of(&words.severities, &[json!(""), json!("Other"), json!(null), json!(false)]);
    let observed =
        of(&[], &[json!(1), json!(2), json!(2), json!(3), json!("1"), json!(1.5), json!(null)]);
    let time = of(
        &[],
        &[json!("2024-01-01T00:00:00Z"), json!("2024-06-01T00:00:00Z"), json!(""), json!(7)],
    );
    let members = (
        kind,
        often(status),
        often(reason),
        often(severity),
        often(texts()),
        often(observed),
        often(time),
    );
    members
        .prop_map(|(kind, status, reason, severity, message, observed, time)| {
            let names = [
                "status",
                "reason",
                "severity",
                "message",
                "observedGeneration",
                "lastTransitionTime",
            ];
            let mut condition = json!({"type": kind});
            for (name, value) in
                names.into_iter().zip([status, reason, severity, message, observed, time])
            {
                if let Some(value) = value {
                    condition[name] = value;
                }
            }
            condition
        })
        .boxed()
}
