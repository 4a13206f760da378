//! The scripts for Argo CD give the same health and message as the engine.

use std::collections::BTreeMap;
use std::fs;

use mlua::{Function, Lua, LuaOptions, StdLib, Table};
use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::TestRunner;
use serde_json::Value;
use statusgate_core::engine::Health;
use statusgate_core::model::{Object, Resource};
use statusgate_core::policy::convention::Convention;
use statusgate_pages::readers::{Program, Readable, Reader, lua};

use crate::health_objects::{objects, plurals};
use crate::support::built_in;

/// The script of one plural under one convention.
struct Script {
    convention: &'static Convention,
    plural: String,
    text: String,
}

impl Script {
    /// Those of every built-in convention.
    fn all() -> Vec<Self> {
        let all = built_in().conventions().values();
        let of = |convention: &'static Convention| {
            plurals(convention).into_iter().map(move |plural| Self::of(convention, plural))
        };
        all.flat_map(|convention| of(convention)).collect()
    }

    fn of(convention: &'static Convention, plural: String) -> Self {
        let resource = Resource { resource: plural.as_str().into(), ..resource() };
        let program = Program::of(convention, &resource).unwrap();
        let kind = Readable {
            group: "g".to_owned(),
            kind: "Thing".to_owned(),
            versions: vec![("v1".to_owned(), program)],
            complete: true,
        };
        assert_eq!(Reader::ArgoCd.gaps(&kind), [""; 0], "{}", convention.name);
        Self { convention, plural, text: lua::script(&kind) }
    }

    /// The first of these objects for which a script, perhaps another one, and the engine differ.
    fn difference(&self, text: &str, objects: &[Value]) -> Option<String> {
        let lua = Lua::new_with(StdLib::NONE, LuaOptions::default()).unwrap();
        let script = lua.load(text).into_function().unwrap();
        objects.iter().find_map(|object| {
            let (expected, found) = (self.expected(object), run(&lua, &script, object));
            let differs = found.as_ref() != Ok(&expected);
            differs.then(|| {
                let (name, plural) = (&self.convention.name, &self.plural);
                format!("{name} {plural}: {expected:?}, but {found:?} of {object}\n{text}")
            })
        })
    }

    fn expected(&self, object: &Value) -> (String, String) {
        let text = object.to_string();
        let object = Object::parse(&text).unwrap();
        let resource = Resource { resource: self.plural.as_str().into(), ..resource() };
        let health = Health::of(self.convention, &object, &resource).unwrap();
        (lua::argo_cd(health.class.is).to_owned(), health.reason)
    }

    fn random_objects(&self, count: usize) -> Vec<Value> {
        let mut runner = TestRunner::deterministic();
        let objects = objects(self.convention);
        (0..count).map(|_| objects.new_tree(&mut runner).unwrap().current()).collect()
    }
}

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures");

fn fixture(path: &str) -> String {
    fs::read_to_string(format!("{FIXTURES}/{path}")).unwrap()
}

fn resource() -> Resource<'static> {
    Resource { version: "v1".into(), ..Resource::default() }
}

/// The status and message of a script.
pub(crate) fn run(
    lua: &Lua,
    script: &Function,
    object: &Value,
) -> Result<(String, String), String> {
    let result = || -> mlua::Result<(String, String)> {
        lua.globals().set("obj", decoded(lua, object)?)?;
        let health: Table = script.call(())?;
        Ok((health.get("status")?, health.get("message")?))
    };
    result().map_err(|error| error.to_string())
}

/// An object as Argo CD decodes it: null is nil, and a list loses it (`decodeValue` in util/lua, and
/// `LTable.Append` of gopher-lua).
fn decoded(lua: &Lua, value: &Value) -> mlua::Result<mlua::Value> {
    Ok(match value {
        Value::Null => mlua::Value::Nil,
        Value::Bool(value) => mlua::Value::Boolean(*value),
        Value::Number(number) => mlua::Value::Number(number.as_f64().unwrap()),
        Value::String(text) => mlua::Value::String(lua.create_string(text)?),
        Value::Array(items) => {
            let table = lua.create_table()?;
            for item in items.iter().filter(|item| !item.is_null()) {
                table.raw_push(decoded(lua, item)?)?;
            }
            mlua::Value::Table(table)
        }
        Value::Object(members) => {
            let table = lua.create_table()?;
            for (name, value) in members {
                table.raw_set(name.as_str(), decoded(lua, value)?)?;
            }
            mlua::Value::Table(table)
        }
    })
}

#[test]
fn the_scripts_equal_the_engine_for_random_objects() {
    for script in Script::all() {
        let found = script.difference(&script.text, &script.random_objects(300));
        assert!(found.is_none(), "{}", found.unwrap());
    }
}

#[test]
fn the_scripts_equal_the_engine_for_the_objects_of_fixtures() {
    let mut objects: Vec<Value> = Vec::new();
    for folder in ["recorded", "oracles"] {
        for entry in fs::read_dir(format!("{FIXTURES}/{folder}")).unwrap() {
            for line in fs::read_to_string(entry.unwrap().path()).unwrap().lines() {
                let mut line: Value = serde_json::from_str(line).unwrap();
                let object = ["object", "obj"].map(|name| line[name].take());
                objects.extend(object.into_iter().filter(Value::is_object));
            }
        }
    }
    let cases: BTreeMap<String, BTreeMap<String, Value>> =
        serde_saphyr::from_str(&fixture("health.yaml")).unwrap();
    let of_cases = cases.into_values().flatten().map(|(_, mut case)| case["object"].take());
    objects.extend(of_cases);
    objects.retain(|object| Object::parse(&object.to_string()).is_ok());
    // Argo CD decides about deletion.
    objects.retain(|object| object.pointer("/metadata/deletionTimestamp").is_none());
    assert!(objects.len() > 1000, "{}", objects.len());
    for script in Script::all() {
        let found = script.difference(&script.text, &objects);
        assert!(found.is_none(), "{}", found.unwrap());
    }
}

/// The test data in the layout of Argo CD's repository.
#[test]
fn most_clauses_have_a_witness_for_which_script_and_engine_agree() {
    let (mut clauses, mut found) = (0, 0);
    for script in Script::all() {
        let resource = Resource { resource: script.plural.as_str().into(), ..resource() };
        let program = Program::of(script.convention, &resource).unwrap();
        let witnesses = program.witnesses(script.convention, &resource, "Thing");
        let objects: Vec<Value> = witnesses.into_iter().map(|witness| witness.object).collect();
        assert_eq!(script.difference(&script.text, &objects), None);
        clauses += program.clauses.len();
        found += objects.len();
    }
    assert!(found * 10 > clauses * 9, "{found} of {clauses}");
}
