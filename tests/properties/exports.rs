//! Small conventions about health, small objects: each export agrees with the engine where nothing is left out, and nowhere
//! is it greener.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use cel::Program as Compiled;
use mlua::{Function, Lua, LuaOptions, StdLib};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};
use statusgate_core::documents::DocumentKind;
use statusgate_core::engine::{Health, HealthStatus};
use statusgate_core::language::{AnyWord, Condition, Predicate, Value as ValueWord};
use statusgate_core::model::Object;
use statusgate_core::policy::{PolicySet, Source};
use statusgate_pages::readers::{Program, Readable, Reader, checks, lua};

use crate::argo_cd;
use crate::health_checks::{ask, flux, flux_reads, resource};
use crate::statuses::put;

/// One predicate of each word.
const WORDS: [&str; 15] = [
    "{all: [{phase: A}]}",
    "{any: [{phase: A}]}",
    "{not: {phase: A}}",
    "{condition: Ready, present: true}",
    "{set: /status/x}",
    "{field: /status/x, is: 1}",
    "{phase: A}",
    "{oldPhase: A}",
    "{deleting: true}",
    "{observed: behind}",
    "{since: /status/x, moreThan: 4h}",
    "{length: /status/x, atLeast: 1}",
    "{gates: /spec/gates}",
    "{polarity: positive}",
    "{resource: things}",
];

/// The predicates with a word that a rule about health can have. A new word, or a new test of a condition or of a value, needs
/// some.
fn predicates(word: &AnyWord) -> &'static [&'static str] {
    match word {
        AnyWord::All(_) => &[
            "{all: [{condition: Ready, is: 'True'}, {field: /status/x, is: 1}]}",
            "{all: [{length: /status/x, atLeast: 1}, {condition: Ready, is: 'False'}]}",
            "{all: [{gates: /spec/gates}, {condition: Ready, is: 'False'}]}",
            "{all: [{any: [{condition: Ready, is: 'True'}, {condition: B, is: 'True'}]}, {condition: Ready, reason: R}]}",
            "{condition: Ready, is: 'True', reason: R, observed: current}",
        ],
        AnyWord::Any(_) => &[
            "{any: [{condition: Ready, is: 'False'}, {condition: B, is: 'False'}]}",
            "{any: [{field: /status/x, matches: 'a'}, {condition: Ready, is: 'True'}]}",
            "{any: [{gates: /spec/gates}, {phase: A}]}",
            "{any: [{all: [{condition: Ready, is: 'True'}, {phase: A}]}, {condition: B, is: 'True'}]}",
            "{any: [{observed: ahead}, {field: /status/x, equals: /status/y}]}",
        ],
        AnyWord::Not(_) => &[
            "{not: {all: [{condition: Ready, is: 'True'}, {condition: B, is: 'True'}]}}",
            "{not: {any: [{gates: /spec/gates}, {condition: Ready, is: 'True'}]}}",
            "{not: {not: {phase: [A, C]}}}",
        ],
        AnyWord::Condition(Condition {
            of: _,
            is: _,
            is_not: _,
            reason: _,
            severity: _,
            present: _,
            changed: _,
        }) => &[
            "{condition: Ready, is: 'True'}",
            "{condition: Ready, is: ['False', Unknown]}",
            "{condition: Ready, isNot: 'True'}",
            "{condition: Ready, reason: R}",
            "{condition: Ready, reason: ['', R]}",
            "{condition: Ready, severity: Error}",
            "{condition: Ready, severity: ['', Error]}",
            "{condition: Ready, present: true}",
            "{condition: Ready, present: false}",
            "{condition: Ready, changed: true}",
            "{oldCondition: Ready, is: 'True'}",
        ],
        AnyWord::Set(_) => &[
            "{set: /status/x}",
            "{set: /status/list/0}",
            "{set: /metadata/annotations/a.b~1c}",
            "{set: /spec/n}",
        ],
        AnyWord::Value(value) => {
            let ValueWord {
                reference: _,
                is: _,
                is_not: _,
                set: _,
                changed: _,
                decreased: _,
                future: _,
                past: _,
                matches: _,
                equals: _,
                before: _,
                at_least: _,
                at_most: _,
            } = &**value;
            &[
                "{field: /status/x, is: 1}",
                "{field: /status/x, is: [1, a, true]}",
                "{field: /status/x, is: 9007199254740993}",
                "{field: /status/x, isNot: [1, a, true]}",
                "{field: /status/x, isNot: 2}",
                "{field: /status/x, set: true}",
                "{field: /status/x, set: false}",
                "{field: /status/list/0, is: 1}",
                "{field: /status/list/-1, is: 1}",
                "{field: /status/list/0/a, isNot: 1}",
                "{field: /status/list/1, equals: /status/list/0}",
                "{field: /metadata/annotations/a.b~1c, is: b}",
                "{field: /status/x, matches: '^Failed$'}",
                "{field: /status/x, matches: '(?i)^failed$'}",
                "{field: /status/x, matches: '^(Failed|fAILED|a)$'}",
                "{field: /status/x, matches: 'a.l'}",
                "{field: /status/x, matches: '(?i)^[^a]{6}$'}",
                "{field: /status/x, matches: '^\\w+\\s\\d$'}",
                "{field: /status/x, equals: /status/y}",
                "{field: /status/x, equals: /spec/n}",
                "{field: /status/x, equals: {condition: Ready, member: reason}}",
                "{field: /status/x, before: /status/y}",
                "{field: /status/x, atLeast: 2}",
                "{field: /status/x, atMost: /spec/n}",
                "{field: /status/x, atLeast: 1, atMost: 1.5}",
                "{field: /status/x, changed: true}",
                "{field: /status/x, decreased: true}",
                "{field: /status/x, future: true}",
                "{field: /status/x, past: true}",
                "{oldField: /status/x, is: 1}",
                "{member: status, is: 'True'}",
                "{oldMember: status, is: 'True'}",
            ]
        }
        AnyWord::Phase(_) => &["{phase: A}", "{phase: [B, C]}"],
        AnyWord::OldPhase(_) => &["{oldPhase: A}"],
        AnyWord::Deleting(_) => &["{deleting: true}", "{deleting: false}"],
        AnyWord::ObservedGeneration(_) => &[
            "{observed: behind}",
            "{observed: current}",
            "{observed: ahead}",
            "{observed: [behind, ahead]}",
            "{observed: [behind, current, ahead]}",
        ],
        AnyWord::Elapsed(_) => &["{since: /status/x, moreThan: 4h}"],
        AnyWord::Length(_) => &[
            "{length: /status/x, atLeast: 1}",
            "{length: /status/x, atMost: 1}",
            "{length: /status/x, atLeast: 1, atMost: 1}",
            "{length: /status/x, atLeast: 0}",
            "{length: /status/list/0, atMost: 0}",
        ],
        AnyWord::Gates(_) => &["{gates: /spec/gates}"],
        AnyWord::ElementPolarity(_) => &["{polarity: positive}"],
        AnyWord::ResourceName(_) => &["{resource: things}", "{resource: 'x*'}"],
    }
}

/// All predicates, each also negated.
fn all_predicates() -> Vec<String> {
    let each = WORDS.iter().flat_map(|text| predicates(&read(text).words()[0]));
    each.flat_map(|text| [(*text).to_owned(), format!("{{not: {text}}}")]).collect()
}

fn read(text: &str) -> Predicate {
    serde_saphyr::from_str(text).unwrap()
}

/// The places of a predicate `P`, as rules.
const PLACES: [&str; 6] = [
    "{name: bad, is: failed, when: P}, {name: ok, is: current, when: {condition: Ready, is: 'True'}}",
    "{name: ok, is: current, when: P}, {name: phase}, {name: bad, is: failed, retried: true, when: {condition: Ready, is: 'False'}}",
    "{name: paused, is: suspended, evenIfStale: true, when: P}, {name: ok, is: current, when: {not: P}}",
    "{name: bad, is: failed, in: /status/other, when: P}, {name: ok, is: current, when: P}",
    "{name: bad, is: failed, in: '/status/parents/*/conditions', when: P}, {name: ok, is: current, when: {condition: Ready, is: 'True'}}",
    "{name: bad, is: failed, in: '/status/map/*', when: P}, {name: ok, is: current, when: P}",
];

/// Rules that some export leaves out.
const LEFT_OUT: [&str; 6] = [
    "{name: left, is: failed, when: {gates: /spec/gates}}",
    "{name: left, is: failed, when: {field: /status/x, matches: 'a'}}",
    "{name: left, is: current, when: {field: /status/x, before: /status/y}}",
    "{name: left, is: failed, when: {all: [{gates: /spec/gates}, {condition: Ready, is: 'False'}]}}",
    "{name: left, is: suspended, evenIfStale: true, when: {field: /status/x, equals: {condition: Ready, member: reason}}}",
    "{name: left, is: failed, in: '/status/map/*', when: {condition: Ready, is: 'False'}}",
];

/// The rules of each small convention. Those that ask about a write are none.
fn all_rules() -> Vec<String> {
    let predicates = all_predicates();
    let one = |text: &String| {
        let about_conditions = text.contains("ondition");
        let places = PLACES.iter().filter(move |place| about_conditions || !place.contains("in: "));
        places.map(|place| place.replace('P', text)).collect::<Vec<_>>()
    };
    let pair = |text: &String| {
        LEFT_OUT.map(|left| format!("{left}, {{name: ok, is: current, when: {text}}}"))
    };
    let rules = predicates.iter().flat_map(one).chain(predicates.iter().step_by(2).flat_map(pair));
    let rules: BTreeSet<String> = rules.collect();
    rules.into_iter().collect()
}

fn document(rules: &str, text_generation: bool) -> String {
    let fields = "fields: [{path: /status/observedGeneration, type: string}]";
    let fields = if text_generation { fields } else { "" };
    format!(
        "apiVersion: statusgate.dev/v1alpha1\nkind: StatusConvention\nmetadata: {{name: own}}\nspec:\n  \
         conditions: [{{path: /status/conditions}}, {{path: /status/other}}, \
         {{path: '/status/parents/*/conditions', parentKey: [name]}}, {{path: '/status/map/*'}}]\n  \
         phase: {{path: [/status/phase, /status/state], values: [{{phase: A, health: current}}, {{phase: B, health: failed}}, \
         {{phase: C}}]}}\n  health: {{message: /status/message, rules: [{rules}]}}\n  {fields}\n"
    )
}

/// A small convention, and what the tools ask.
struct Small {
    rules: String,
    set: PolicySet,
    /// The observedGeneration is a string.
    text_generation: bool,
    /// Two rules, of which an export leaves out the first.
    is_pair: bool,
    /// The script, `failed` of Flux if there is one, `current` of Flux, and the expressions for auto-ready and kro.
    texts: [Option<String>; 5],
    /// What Argo CD and CEL leave out.
    gaps: [bool; 2],
}

/// All small conventions.
static ALL: LazyLock<Vec<Small>> = LazyLock::new(|| {
    let both = |rules: String| {
        let is_text = if rules.contains("observed") { &[false, true][..] } else { &[false] };
        is_text.iter().filter_map(|is_text| Small::of(&rules, *is_text)).collect::<Vec<_>>()
    };
    all_rules().into_iter().flat_map(both).collect()
});

impl Small {
    /// `None` if rules about health cannot ask this.
    fn of(rules: &str, text_generation: bool) -> Option<Self> {
        let text = document(rules, text_generation);
        let set = PolicySet::compile(&[Source::new("own.yaml", text)]).ok()?;
        let program = Program::of(&set.conventions()["own"], &resource("things")).unwrap();
        let (failed, current) = checks::flux_expressions(&program);
        let [ready, typed] = [("object", false), ("myThing", true)]
            .map(|(root, typed)| checks::current(&program, root, typed));
        let (group, kind) = ("g".to_owned(), "Thing".to_owned());
        let versions = vec![("v1".to_owned(), program)];
        let kind = Readable { group, kind, versions, complete: true };
        let gaps = [Reader::ArgoCd, Reader::Kro].map(|reader| !reader.gaps(&kind).is_empty());
        let texts = [Some(lua::script(&kind)), failed, Some(current), Some(ready), Some(typed)];
        let (rules, is_pair) = (rules.to_owned(), rules.starts_with("{name: left"));
        Some(Self { rules, set, text_generation, is_pair, texts, gaps })
    }

    /// The fields that it names, with the values to try.
    fn fields(&self) -> Vec<(Vec<String>, Vec<Value>)> {
        let values = include_str!("../fixtures/readers/values.yaml");
        let mut values: BTreeMap<String, Vec<Value>> = serde_saphyr::from_str(values).unwrap();
        let mut take = |name: &str| values.remove(name).unwrap();
        let generations = [take("numbers"), take("texts")];
        let [conditions, generation] =
            [take("conditions"), generations[usize::from(self.text_generation)].clone()];
        let parent = |(name, list): (usize, &Value)| match list {
            Value::Null => json!({"name": name.to_string()}),
            list => json!({"name": name.to_string(), "conditions": list}),
        };
        let pairs = conditions.iter().zip(conditions.iter().rev());
        let parents =
            pairs.map(|(one, other)| [one, other].into_iter().enumerate().map(parent).collect());
        let lists = conditions.iter().filter(|list| !list.is_null());
        let maps = lists.map(|list| json!({"a": list}));
        values.insert("/status/parents".to_owned(), parents.collect());
        values.insert("/status/map".to_owned(), maps.collect());
        values.insert("/status/other".to_owned(), conditions.clone());
        // Other rules ask for a phase and for a condition.
        let is_named = |path: &str| {
            self.rules.contains(path)
                || (self.rules.contains("phase")
                    && ["/status/phase", "/status/state", "/status/message"].contains(&path))
        };
        values.retain(|path, _| is_named(path));
        values.insert("/status/conditions".to_owned(), conditions);
        values.insert("/status/observedGeneration".to_owned(), generation);
        let names =
            |path: &str| path.split('/').skip(1).map(|name| name.replace("~1", "/")).collect();
        values.into_iter().map(|(path, values)| (names(&path), values)).collect()
    }

    fn objects(&self) -> Vec<Value> {
        let fields = self.fields();
        let values: Vec<_> = fields.iter().map(|(_, values)| select(values.clone())).collect();
        let mut runner = TestRunner::deterministic();
        let object = |index| {
            let mut object = json!({"apiVersion": "g/v1", "kind": "Thing", "metadata": {"name": "n", "generation": 2}, "spec": {}, "status": {}});
            let values = values.new_tree(&mut runner).unwrap().current();
            for ((path, _), value) in
                fields.iter().zip(values).filter(|(_, value)| !value.is_null())
            {
                let value = if value == "~null" { Value::Null } else { value };
                put(&mut object, path, value);
            }
            match index % 12 {
                3 => object["metadata"] = json!({"name": "n"}),
                7 => object["metadata"]["deletionTimestamp"] = "2024-06-01T09:00:00Z".into(),
                11 => drop(object.as_object_mut().unwrap().remove("status")),
                _ => {}
            }
            object
        };
        let all = fields.iter().fold(1, |all, (_, values)| all * values.len());
        (0..if self.is_pair { 12 } else { (all / 8).clamp(24, 120) }).map(object).collect()
    }

    fn health(&self, object: &Value) -> Health {
        let text = object.to_string();
        let object = Object::parse(&text).unwrap();
        Health::of(&self.set.conventions()["own"], &object, &resource("things")).unwrap()
    }
}

/// Why the health is unknown in an export of which no rule is left out.
const UNSURE: &str = "two values may be equal in two forms";

/// How many answers of a script there were.
#[derive(Default, Debug)]
struct Count {
    conventions: usize,
    with_gaps: usize,
    answers: usize,
    /// Answers of a rule.
    of_rules: usize,
    /// Unknown, because a rule is left out.
    left_out: usize,
    /// Unknown, because two values cannot be compared.
    unsure: usize,
}

/// What runs a script and expressions, perhaps with a fault.
struct Tools<'t> {
    small: &'t Small,
    lua: &'t Lua,
    script: Function,
    failed: Option<Compiled>,
    current: Compiled,
    ready: Compiled,
    typed: Compiled,
}

impl<'t> Tools<'t> {
    fn of(small: &'t Small, lua: &'t Lua, fault: impl Fn(&str) -> String) -> Self {
        let [script, failed, current, ready, typed] = &small.texts;
        let compiled = |text: &String| Compiled::compile(&fault(text)).unwrap();
        let [current, ready, typed] =
            [current, ready, typed].map(|text| text.as_ref().map(compiled).unwrap());
        let script = lua.load(fault(script.as_deref().unwrap())).into_function().unwrap();
        Self { small, lua, script, failed: failed.as_ref().map(compiled), current, ready, typed }
    }

    /// How an answer about an object contradicts the engine.
    fn difference(&self, object: &Value, count: &mut Count) -> Option<String> {
        let small = self.small;
        let health = small.health(object);
        let is = health.class.is;
        // Argo CD decides about deletion.
        if is != HealthStatus::Terminating {
            let expected = (lua::argo_cd(is).to_owned(), health.reason.clone());
            let found = argo_cd::run(self.lua, &self.script, object);
            let message = found.as_ref().ok().filter(|(status, _)| status == "Unknown");
            let message = message.map(|(_, message)| message.as_str()).unwrap_or_default();
            let is_left_out = small.gaps[0] && message.starts_with("the rule ");
            let is_unsure = message == UNSURE;
            count.answers += 1;
            count.left_out += usize::from(is_left_out);
            count.unsure += usize::from(is_unsure);
            if !is_left_out && !is_unsure {
                count.of_rules += usize::from(!health.reason.starts_with("no rule"));
                if found.as_ref() != Ok(&expected) {
                    return Some(format!("Argo CD: {found:?}, but {expected:?}"));
                }
            }
        }
        let is_current = is == HealthStatus::Current;
        let is_time = |name: &str| {
            object["status"][name].as_str().is_some_and(|text| text.starts_with("202"))
        };
        let is_inexact = small.gaps[1]
            || (small.rules.contains("equals: /status/y") && is_time("x") && is_time("y"));
        let fits = |found: bool, expected: bool| found == expected || (!found && is_inexact);
        for (root, program) in [("object", &self.ready), ("myThing", &self.typed)] {
            let answer = ask(program, &json!({root: object}));
            if !answer.is_some_and(|answer| fits(answer, is_current)) {
                return Some(format!("{root}: {answer:?}, but {health:?}"));
            }
        }
        // Flux waits after an error about an absent status.
        if flux_reads(object) && object["status"].is_object() {
            let answer = flux(self.failed.as_ref(), &self.current, object);
            let is_failed = health.class.is_final_failure();
            if !answer.is_some_and(|[failed, current]| {
                fits(failed, is_failed) && fits(current, is_current)
            }) {
                return Some(format!("Flux: {answer:?}, but {health:?}"));
            }
        }
        None
    }
}

fn lua_state() -> Lua {
    Lua::new_with(StdLib::NONE, LuaOptions::default()).unwrap()
}

#[test]
fn each_word_and_each_test_of_the_language_has_a_predicate() {
    let schema = DocumentKind::StatusConvention.json_schema();
    let words = schema.pointer("/$defs/ElementPredicate/allOf").and_then(Value::as_array);
    let keys = |word: &Value| {
        word["then"]["properties"].as_object().unwrap().keys().cloned().collect::<Vec<_>>()
    };
    let mut keys: Vec<String> = words.unwrap().iter().flat_map(keys).collect();
    assert!(keys.len() > 30, "{keys:?}");
    let all = all_predicates().concat();
    keys.retain(|key| !all.contains(&format!("{key}: ")));
    assert_eq!(keys, [""; 0]);
}

#[test]
fn exports_agree_with_the_engine_and_nowhere_is_one_greener() {
    let (mut count, lua) = (Count::default(), lua_state());
    for small in ALL.iter() {
        count.conventions += 1;
        count.with_gaps += usize::from(small.gaps != [false; 2]);
        let tools = Tools::of(small, &lua, str::to_owned);
        for object in small.objects() {
            let found = tools.difference(&object, &mut count);
            assert!(
                found.is_none(),
                "{}\n{object}\n{}\n{}\n{:?}",
                small.rules,
                found.unwrap_or_default(),
                small.texts[0].as_deref().unwrap_or_default(),
                &small.texts[1..]
            );
        }
    }
    println!("{count:?}");
    assert!(count.of_rules * 3 > count.answers && count.unsure > 0, "{count:?}");
}

#[test]
fn each_seeded_fault_of_an_export_is_found() {
    let faults = include_str!("../fixtures/readers/faults.yaml");
    let mut faults: Vec<(String, String)> = serde_saphyr::from_str(faults).unwrap();
    let lua = lua_state();
    let objects: Vec<Vec<Value>> = ALL.iter().map(Small::objects).collect();
    faults.retain(|(right, wrong)| {
        let is_in = |small: &Small| small.texts.iter().flatten().any(|text| text.contains(right));
        let mut faulty = ALL.iter().zip(&objects).filter(|(small, _)| is_in(small));
        !faulty.any(|(small, objects)| {
            let tools = Tools::of(small, &lua, |text| text.replace(right, wrong));
            objects.iter().any(|object| tools.difference(object, &mut Count::default()).is_some())
        })
    });
    assert!(faults.is_empty(), "{faults:#?}");
}
