//! `all`, `any` and `not`: predicates about predicates.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::check::{Check, Step};
use super::{Predicate, Scope, Word};

/// All of these predicates hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct All {
    /// The predicates.
    #[serde(deserialize_with = "filled")]
    pub all: Vec<Predicate>,
}

/// At least one of these predicates holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Any {
    /// The predicates.
    #[serde(deserialize_with = "filled")]
    pub any: Vec<Predicate>,
}

/// This predicate does not hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Not {
    /// The predicate.
    pub not: Predicate,
}

impl Word for All {
    const KEYS: &'static [&'static str] = &["all"];
    const TESTS: &'static [&'static str] = &[];
    const OF_ELEMENT: &'static [&'static str] = &[];

    fn schema(generator: &mut SchemaGenerator, scope: Scope) -> Schema {
        list("all", "an empty list: this would always hold", generator, scope)
    }

    fn check(&self, check: &mut Check<'_>) {
        check_each("all", &self.all, check);
    }
}

impl Word for Any {
    const KEYS: &'static [&'static str] = &["any"];
    const TESTS: &'static [&'static str] = &[];
    const OF_ELEMENT: &'static [&'static str] = &[];

    fn schema(generator: &mut SchemaGenerator, scope: Scope) -> Schema {
        list("any", "an empty list: this would never hold", generator, scope)
    }

    fn check(&self, check: &mut Check<'_>) {
        check_each("any", &self.any, check);
    }
}

impl Word for Not {
    const KEYS: &'static [&'static str] = &["not"];
    const TESTS: &'static [&'static str] = &[];
    const OF_ELEMENT: &'static [&'static str] = &[];

    fn schema(generator: &mut SchemaGenerator, scope: Scope) -> Schema {
        json_schema!({"type": "object", "properties": {"not": scope.subschema(generator)}})
    }

    fn check(&self, check: &mut Check<'_>) {
        check.at(Step::Key("not"), |check| self.not.check_in(check));
    }
}

fn list(key: &str, empty: &str, generator: &mut SchemaGenerator, scope: Scope) -> Schema {
    let items = scope.subschema(generator);
    let list = json_schema!({"type": "array", "items": items, "minItems": 1, "x-empty": empty});
    json_schema!({"type": "object", "properties": {key: list}})
}

fn check_each(key: &'static str, parts: &[Predicate], check: &mut Check<'_>) {
    check.at(Step::Key(key), |check| {
        for (index, part) in parts.iter().enumerate() {
            check.at(Step::Item(index), |check| part.check_in(check));
        }
    });
}

fn filled<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Predicate>, D::Error> {
    let parts = Vec::deserialize(from)?;
    if parts.is_empty() { Err(D::Error::custom("an empty list says nothing")) } else { Ok(parts) }
}
