//! `all`, `any` and `not`: predicates about predicates.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::check::{Check, Step};
use super::words::join;
use super::{Answers, AnyWord, Around, Asks, Facts, Predicate, Reasons, Scope, Truth, Word};

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

    fn ask(&self, facts: &Facts<'_, '_>) -> Truth {
        Truth::all(self.all.iter().map(|part| facts.ask(part)))
    }

    fn because(&self, facts: &Facts<'_, '_>, reasons: &mut Reasons) {
        because(&self.all, self.ask(facts), facts, reasons);
    }

    fn words(&self, around: Around, negated: bool) -> String {
        words(&self.all, Around::And, (around, negated))
    }

    fn asks<'p>(&'p self, asks: &mut dyn Asks<'p>) {
        self.all.iter().for_each(|part| part.asks(asks));
    }

    fn is_about_element(&self) -> bool {
        self.all.iter().any(Predicate::is_about_element)
    }

    fn prepare<'s, 'a>(&self, answers: &mut Answers<'s, 'a>, facts: &Facts<'s, 'a>) {
        self.all.iter().for_each(|part| answers.ask(part, facts));
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

    fn ask(&self, facts: &Facts<'_, '_>) -> Truth {
        Truth::any(self.any.iter().map(|part| facts.ask(part)))
    }

    fn because(&self, facts: &Facts<'_, '_>, reasons: &mut Reasons) {
        because(&self.any, self.ask(facts), facts, reasons);
    }

    fn words(&self, around: Around, negated: bool) -> String {
        words(&self.any, Around::Or, (around, negated))
    }

    fn asks<'p>(&'p self, asks: &mut dyn Asks<'p>) {
        self.any.iter().for_each(|part| part.asks(asks));
    }

    fn is_about_element(&self) -> bool {
        self.any.iter().any(Predicate::is_about_element)
    }

    fn prepare<'s, 'a>(&self, answers: &mut Answers<'s, 'a>, facts: &Facts<'s, 'a>) {
        self.any.iter().for_each(|part| answers.ask(part, facts));
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

    fn ask(&self, facts: &Facts<'_, '_>) -> Truth {
        !facts.ask(&self.not)
    }

    fn because(&self, facts: &Facts<'_, '_>, reasons: &mut Reasons) {
        facts.explain(&self.not, reasons);
    }

    fn words(&self, around: Around, negated: bool) -> String {
        self.not.clause(around, !negated)
    }

    fn asks<'p>(&'p self, asks: &mut dyn Asks<'p>) {
        self.not.asks(asks);
    }

    fn is_about_element(&self) -> bool {
        self.not.is_about_element()
    }

    fn prepare<'s, 'a>(&self, answers: &mut Answers<'s, 'a>, facts: &Facts<'s, 'a>) {
        answers.ask(&self.not, facts);
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

impl Predicate {
    /// The words that it is made of, at any depth: those that have no predicates in them.
    #[must_use]
    pub fn questions(&self) -> Vec<&AnyWord> {
        let mut found = Vec::new();
        self.collect(None, &mut found);
        found
    }

    fn collect<'p>(&'p self, facts: Option<&Facts<'_, '_>>, found: &mut Vec<&'p AnyWord>) {
        let decides = |word: &&AnyWord| facts.is_some_and(|facts| word.ask(facts) == Truth::False);
        match self.words().iter().find(decides) {
            Some(word) => word.collect(facts, found),
            None => self.words().iter().for_each(|word| word.collect(facts, found)),
        }
    }
}

impl AnyWord {
    fn collect<'p>(&'p self, facts: Option<&Facts<'_, '_>>, found: &mut Vec<&'p Self>) {
        let (parts, decides) = match self {
            Self::All(word) => (&word.all, Truth::False),
            Self::Any(word) => (&word.any, Truth::True),
            Self::Not(word) => return word.not.collect(facts, found),
            question => return found.push(question),
        };
        let decides = |part: &&Predicate| facts.is_some_and(|facts| facts.ask(part) == decides);
        match parts.iter().find(decides) {
            Some(part) => part.collect(facts, found),
            None => parts.iter().for_each(|part| part.collect(facts, found)),
        }
    }
}

impl Facts<'_, '_> {
    /// Questions that alone decide the answer of a predicate.
    #[must_use]
    pub fn deciding<'p>(&self, predicate: &'p Predicate) -> Vec<&'p AnyWord> {
        let mut found = Vec::new();
        predicate.collect(Some(self), &mut found);
        found
    }
}

/// The parts that decided: those that answer as the whole does.
fn because(parts: &[Predicate], whole: Truth, facts: &Facts<'_, '_>, reasons: &mut Reasons) {
    let deciding = parts.iter().filter(|part| facts.ask(part) == whole);
    deciding.for_each(|part| facts.explain(part, reasons));
}

fn words(parts: &[Predicate], inside: Around, outside: (Around, bool)) -> String {
    match parts {
        [one] => one.clause(outside.0, outside.1),
        parts => join(parts, inside, outside, |part, around| part.clause(around, false)),
    }
}

fn filled<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Predicate>, D::Error> {
    let parts = Vec::deserialize(from)?;
    if parts.is_empty() { Err(D::Error::custom("an empty list says nothing")) } else { Ok(parts) }
}
