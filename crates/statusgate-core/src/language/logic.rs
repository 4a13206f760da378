//! `all`, `any` and `not`: predicates about predicates.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::checker::{Checker, Segment};
use super::words::join;
use super::{AnyWord, Around, Facts, Layout, Predicate, Reasons, Scope, Sides, Truth, Word};

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

/// Implements a list of predicates. Its key is also the name of its function in [`Truth`]. `$one` is the
/// answer that a single predicate decides.
macro_rules! list_word {
    ($word:ident, $key:ident, $around:ident, $one:ident, $empty:literal) => {
        impl Word for $word {
            const KEYS: &'static [&'static str] = &[stringify!($key)];

            fn schema(generator: &mut SchemaGenerator, scope: Scope) -> Schema {
                let items = scope.subschema(generator);
                let list = json_schema!({"type": "array", "items": items, "minItems": 1, "x-empty": $empty});
                json_schema!({"type": "object", "properties": {(stringify!($key)): list}})
            }

            fn check(&self, checker: &mut Checker) {
                checker.at(Segment::Key(stringify!($key)), |checker| {
                    for (index, part) in self.$key.iter().enumerate() {
                        checker.at(Segment::Item(index), |checker| part.check_in(checker));
                    }
                });
            }

            fn ask(&self, facts: &Facts<'_, '_>) -> Truth {
                Truth::$key(self.$key.iter().map(|part| facts.ask(part)))
            }

            fn because(&self, facts: &Facts<'_, '_>, reasons: &mut Reasons) {
                let whole = self.ask(facts);
                let deciding = self.$key.iter().filter(|part| facts.ask(part) == whole);
                let explain = |reasons: &mut Reasons| {
                    deciding.for_each(|part| facts.explain(part, reasons));
                };
                if whole == Truth::$one && self.$key.len() > 1 {
                    reasons.of_alternative(explain);
                } else {
                    explain(reasons);
                }
            }

            fn is_open(&self, _: Truth) -> bool {
                true
            }

            fn words(&self, around: Around, negated: bool) -> String {
                match &self.$key[..] {
                    [one] => one.clause(around, negated),
                    parts => join(parts, Around::$around, (around, negated), |part, around| {
                        part.clause(around, false)
                    }),
                }
            }

            fn sides(&self, layout: Layout<'_>) -> Sides {
                Sides::$key(self.$key.iter().map(|part| part.sides(layout)).collect())
            }

            fn is_about_element(&self) -> bool {
                self.$key.iter().any(Predicate::is_about_element)
            }
        }
    };
}
list_word!(All, all, And, False, "an empty list: this would always hold");
list_word!(Any, any, Or, True, "an empty list: this would never hold");

impl Word for Not {
    const KEYS: &'static [&'static str] = &["not"];

    fn schema(generator: &mut SchemaGenerator, scope: Scope) -> Schema {
        json_schema!({"type": "object", "properties": {"not": scope.subschema(generator)}})
    }

    fn check(&self, checker: &mut Checker) {
        checker.at(Segment::Key("not"), |checker| self.not.check_in(checker));
    }

    fn ask(&self, facts: &Facts<'_, '_>) -> Truth {
        !facts.ask(&self.not)
    }

    fn because(&self, facts: &Facts<'_, '_>, reasons: &mut Reasons) {
        facts.explain(&self.not, reasons);
    }

    fn is_open(&self, _: Truth) -> bool {
        true
    }

    fn words(&self, around: Around, negated: bool) -> String {
        self.not.clause(around, !negated)
    }

    fn sides(&self, layout: Layout<'_>) -> Sides {
        !self.not.sides(layout)
    }

    fn is_about_element(&self) -> bool {
        self.not.is_about_element()
    }
}

impl Predicate {
    /// The words at any depth that contain no predicates.
    pub fn questions(&self) -> Vec<&AnyWord> {
        let mut found = Vec::new();
        self.collect(None, &mut found);
        found
    }

    fn collect<'p>(&'p self, facts: Option<&Facts<'_, '_>>, found: &mut Vec<&'p AnyWord>) {
        let mut words = self.words().iter();
        match words.find(|word| facts.is_some_and(|facts| word.ask(facts) == Truth::False)) {
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
        match parts.iter().find(|part| facts.is_some_and(|facts| facts.ask(part) == decides)) {
            Some(part) => part.collect(facts, found),
            None => parts.iter().for_each(|part| part.collect(facts, found)),
        }
    }
}

impl Facts<'_, '_> {
    /// Words that alone decide the answer of a predicate.
    pub fn deciding<'p>(&self, predicate: &'p Predicate) -> Vec<&'p AnyWord> {
        let mut found = Vec::new();
        predicate.collect(Some(self), &mut found);
        found
    }
}

fn filled<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Predicate>, D::Error> {
    let parts = Vec::deserialize(from)?;
    if parts.is_empty() { Err(D::Error::custom("this list must not be empty")) } else { Ok(parts) }
}
