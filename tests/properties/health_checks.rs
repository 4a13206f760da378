//! The expressions for Flux, auto-ready and kro equal the engine.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cel::extractors::This;
use cel::{Context, Program as Compiled};
use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::TestRunner;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use statusgate_core::engine::{Health, HealthStatus};
use statusgate_core::language::Pattern;
use statusgate_core::model::{Object, Resource};
use statusgate_core::policy::convention::{Convention, HealthClass};
use statusgate_pages::readers::{Program, checks};

use crate::health_objects::{objects, plurals};
use crate::support::built_in;

/// What the tools ask about one plural under one convention.
struct Checks {
    convention: &'static Convention,
    plural: String,
    failed: Option<String>,
    current: String,
    ready: String,
    typed: String,
}

/// The answer of an expression; `None` is an error.
type Answer = Option<bool>;

impl Checks {
    fn all() -> Vec<Self> {
        let all = built_in().conventions().values();
        let of = |convention: &'static Convention| {
            plurals(convention).into_iter().map(move |plural| Self::of(convention, plural))
        };
        all.flat_map(|convention| of(convention)).collect()
    }

    fn of(convention: &'static Convention, plural: String) -> Self {
        let program = Program::of(convention, &resource(&plural)).unwrap();
        let (failed, current) = checks::flux_expressions(&program);
        Self {
            convention,
            failed,
            current,
            ready: checks::current(&program, "object", false),
            typed: checks::current(&program, "myThing", true),
            plural,
        }
    }

    /// The first of these objects for which a tool and the engine differ.
    fn difference(&self, objects: &[Value]) -> Option<String> {
        let compiled = |text: &String| Compiled::compile(text).unwrap();
        let failed = self.failed.as_ref().map(compiled);
        let [current, ready, typed] = [&self.current, &self.ready, &self.typed].map(compiled);
        objects.iter().find_map(|object| {
            let health = self.health(object);
            let is_current = health.is == HealthStatus::Current;
            // An error is not current.
            let accepts = |answer: Answer, expected: bool| match answer {
                Some(answer) => answer == expected,
                None => !self.is_regular(object),
            };
            let say = |tool: &str, expression: &str, found: String| {
                let (name, plural) = (&self.convention.name, &self.plural);
                Some(format!("{name} {plural}: {tool} found {found}, but it is {health}: {object}\n{expression}"))
            };
            for (root, program, text) in [("object", &ready, &self.ready), ("myThing", &typed, &self.typed)] {
                let answer = ask(program, &json!({root: object}));
                if !accepts(answer, is_current) {
                    return say(root, text, format!("{answer:?}"));
                }
            }
            if let Some(Some(expected)) = flux_reads(object).then(|| flux(failed.as_ref(), &current, object)) {
                let expected_of_flux = [health.is_final_failure(), is_current];
                if expected != expected_of_flux {
                    return say("Flux", &format!("{:?}\n{}", self.failed, self.current), format!("{expected:?}"));
                }
            } else if flux_reads(object) && self.is_regular(object) && object["status"].is_object() && object["spec"].is_object() {
                return say("Flux", &format!("{:?}\n{}", self.failed, self.current), "an error".to_owned());
            }
            None
        })
    }

    fn health(&self, object: &Value) -> HealthClass {
        let text = object.to_string();
        let object = Object::parse(&text).unwrap();
        Health::of(self.convention, &object, &resource(&self.plural)).unwrap().class
    }

    /// Whether the object can be stored under a CRD with these lists.
    fn is_regular(&self, object: &Value) -> bool {
        let is_list = |list: &Value| {
            let is_condition = |condition: &Value| condition["type"].is_string();
            // Null and other values are no list, and not asked.
            list.as_array().is_none_or(|conditions| conditions.iter().all(is_condition))
        };
        let is_list_or_absent = |list: Option<&Value>| list.is_none_or(is_list);
        let status = object.get("status");
        let lists = self.convention.conditions.iter().all(|list| match &list.outer {
            None => is_list_or_absent(object.pointer(&list.path.to_string())),
            Some(outer) => object.pointer(&outer.path.to_string()).is_none_or(|parents| {
                let inner: String = outer.inner.iter().map(|name| format!("/{name}")).collect();
                let is_regular = |parent: &Value| {
                    parent.is_object() && is_list_or_absent(parent.pointer(&inner))
                };
                parents.as_array().is_none_or(|parents| parents.iter().all(is_regular))
            }),
        });
        lists && status.is_none_or(|status| status.is_object())
    }

    /// Random objects in which each condition of a list has another type, as the API server requires of
    /// lists that are maps.
    fn objects(&self, count: usize) -> Vec<Value> {
        let mut runner = TestRunner::deterministic();
        let random = objects(self.convention);
        let object = |index| {
            let mut object = random.new_tree(&mut runner).unwrap().current();
            remove_duplicates(&mut object);
            self.remove_numbers_of_another_type(&mut object);
            if index % 9 == 0 {
                object["metadata"]["deletionTimestamp"] = "2024-06-01T09:00:00Z".into();
            }
            object
        };
        // Only the condition of the other list decides, and it has no severity.
        let bare = json!({"apiVersion": "g/v1", "kind": "Thing", "metadata": {"name": "n", "generation": 1}, "spec": {},
            "status": {"two": 1, "other": [{"type": "A", "status": "False"}]}});
        (0..count).map(object).chain([bare]).collect()
    }
}

impl Checks {
    /// A convention says whether the observedGeneration is a string, and the CRDs say so too.
    fn remove_numbers_of_another_type(&self, object: &mut Value) {
        let is_text = self.ready.contains(".matches('^(0|");
        if object["status"]["observedGeneration"].is_string() != is_text
            && let Some(status) = object["status"].as_object_mut()
        {
            status.remove("observedGeneration");
        }
    }
}

pub(crate) fn resource(plural: &str) -> Resource<'_> {
    Resource { version: "v1".into(), resource: plural.into(), ..Resource::default() }
}

fn remove_duplicates(value: &mut Value) {
    match value {
        Value::Array(items) => {
            let mut known = BTreeSet::new();
            items.retain(|item| {
                item["type"].as_str().is_none_or(|kind| known.insert(kind.to_owned()))
            });
            items.iter_mut().for_each(remove_duplicates);
        }
        Value::Object(members) => members.values_mut().for_each(remove_duplicates),
        _ => {}
    }
}

pub(crate) fn ask(program: &Compiled, variables: &Value) -> Answer {
    let mut context = Context::default();
    for (name, value) in variables.as_object().unwrap() {
        context.add_variable(name.as_str(), Decoded(value)).unwrap();
    }
    // The crate has no regular expressions without a feature.
    let matches = |This(text): This<Arc<String>>, pattern: Arc<String>| {
        pattern.parse::<Pattern>().unwrap().is_match(&text)
    };
    context.add_function("matches", matches).unwrap();
    match program.execute(&context) {
        Ok(cel::Value::Bool(answer)) => Some(answer),
        _ => None,
    }
}

/// A value as the readers decode it: integers are signed.
struct Decoded<'v>(&'v Value);

impl Serialize for Decoded<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Number(number) => match number.as_i64() {
                Some(integer) => serializer.serialize_i64(integer),
                None => number.serialize(serializer),
            },
            Value::Array(items) => serializer.collect_seq(items.iter().map(Decoded)),
            Value::Object(members) => {
                serializer.collect_map(members.iter().map(|(name, value)| (name, Decoded(value))))
            }
            other => other.serialize(serializer),
        }
    }
}

/// Whether Flux asks its expressions. Before, it compares `status.observedGeneration`, if that is an integer,
/// with the newest generation (`StatusEvaluator.Evaluate` in fluxcd/pkg 3619c73).
pub(crate) fn flux_reads(object: &Value) -> bool {
    let observed = object.pointer("/status/observedGeneration");
    let newest = object.pointer("/metadata/generation");
    observed
        .is_none_or(|observed| !observed.is_i64() || newest.is_none_or(|newest| observed == newest))
}

/// Whether Flux finds that an object failed, and that it is current; `None` is an error.
pub(crate) fn flux(
    failed: Option<&Compiled>,
    current: &Compiled,
    object: &Value,
) -> Option<[bool; 2]> {
    let failed = failed.map_or(Some(false), |failed| ask(failed, object))?;
    let current = !failed && ask(current, object)?;
    Some([failed, current])
}

#[test]
fn the_checks_equal_the_engine_for_random_objects() {
    for checks in Checks::all() {
        let found = checks.difference(&checks.objects(300));
        assert!(found.is_none(), "{}", found.unwrap());
    }
}

#[test]
fn the_checks_equal_the_engine_for_the_objects_of_each_rule() {
    let text = include_str!("../fixtures/health.yaml");
    let cases: BTreeMap<String, BTreeMap<String, Value>> = serde_saphyr::from_str(text).unwrap();
    let objects: Vec<Value> = cases
        .into_values()
        .flatten()
        .map(|(_, mut case)| {
            let mut object = case["object"].take();
            object["metadata"]["name"] = "a".into();
            object
        })
        .collect();
    for checks in Checks::all() {
        let found = checks.difference(&objects);
        assert!(found.is_none(), "{}", found.unwrap());
    }
}

/// Otherwise the properties would hold trivially.
#[test]
fn random_objects_are_current_failed_and_neither_under_every_convention() {
    for checks in Checks::all() {
        // A convention may have rules for some resources only; others are never current.
        if checks.current.ends_with("&& false") {
            assert_eq!(checks.plural, "things");
            continue;
        }
        // Of many types, an object rarely has the one or two that make it current.
        let found = [1_200, 40_000].into_iter().find_map(|count| {
            let objects = checks.objects(count);
            let regular = objects.iter().filter(|of| checks.is_regular(of)).count();
            let mut current = objects.iter().map(|of| checks.health(of).is);
            current.any(|is| is == HealthStatus::Current).then_some(regular)
        });
        let (name, plural) = (&checks.convention.name, &checks.plural);
        assert!(found.is_some_and(|regular| regular >= 300), "{name} {plural}: {found:?}");
    }
}
