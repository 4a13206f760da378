//! Predicates: words that must all hold.

use std::ops::Deref;

use schemars::{Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::shapes::described;
use super::{All, AnyWord, Checker, Issues, WORDS, WordFunctions};

/// A question about an object: the words of one mapping, all of which must hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Predicate {
    words: Vec<AnyWord>,
}

/// A question about one element of a list and about its object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ElementPredicate(pub Predicate);

/// The subject of predicates, which determines the available words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// An object.
    Object,
    /// An element of a list, and its object.
    Element,
}

impl Predicate {
    /// Its words, in the order of the language.
    pub fn words(&self) -> &[AnyWord] {
        &self.words
    }

    /// All of these hold.
    pub fn all(parts: impl IntoIterator<Item = Self>) -> Self {
        All { all: parts.into_iter().collect() }.into()
    }

    /// Its words, each with one test.
    pub(super) fn parts(&self) -> Vec<AnyWord> {
        self.words.iter().flat_map(AnyWord::split).collect()
    }

    /// The parts that must all hold, as far as possible.
    pub fn conjuncts(&self) -> Vec<Self> {
        match &self.parts()[..] {
            [AnyWord::All(All { all })] => all.clone(),
            parts => parts.iter().cloned().map(Self::from).collect(),
        }
    }

    pub(super) fn is_about_element(&self) -> bool {
        self.words.iter().any(AnyWord::is_about_element)
    }

    /// What its schema cannot judge.
    pub fn check(&self) -> Issues {
        Checker::check(self, Scope::Object)
    }

    pub(super) fn check_in(&self, checker: &mut Checker) {
        if self.words.is_empty() {
            checker.error(EMPTY, None);
        }
        self.words.iter().for_each(|word| word.check(checker));
    }
}

impl ElementPredicate {
    /// What its schema cannot judge.
    pub fn check(&self) -> Issues {
        Checker::check(&self.0, Scope::Element)
    }
}

impl Deref for ElementPredicate {
    type Target = Predicate;

    fn deref(&self) -> &Predicate {
        &self.0
    }
}

impl<W: Into<AnyWord>> From<W> for Predicate {
    fn from(word: W) -> Self {
        Self { words: vec![word.into()] }
    }
}

impl FromIterator<AnyWord> for Predicate {
    fn from_iter<I: IntoIterator<Item = AnyWord>>(words: I) -> Self {
        Self { words: words.into_iter().collect() }
    }
}

impl<'de> Deserialize<'de> for Predicate {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut members: Map<String, Value> = Map::deserialize(from)?;
        // Null removes a key.
        members.retain(|_, value| !value.is_null());
        let has = |key: &str| members.contains_key(key);
        let named = WORDS.iter().filter(|entry| entry.keys.iter().any(|key| has(key)));
        let there: Vec<&WordFunctions> =
            named.filter(|entry| !entry.not_beside(Scope::Element).any(has)).collect();
        let known = |key: &String| {
            let mut keys = there.iter().flat_map(|entry| entry.keys.iter().chain(entry.tests));
            keys.any(|known| known == key)
        };
        if let Some(key) = members.keys().find(|key| !known(key)) {
            return Err(D::Error::custom(format!("unknown key \"{key}\"")));
        }
        let keys = WORDS.iter().filter(|entry| entry.stands_alone()).flat_map(|entry| entry.keys);
        let mut alone = keys.filter(|key| has(key));
        if let (Some(one), Some(other)) = (alone.next(), alone.next()) {
            let message = format!("\"{one}\" and \"{other}\" need a predicate each");
            return Err(D::Error::custom(message));
        }
        let words = there.iter().map(|entry| (entry.read)(&members)).collect::<Result<_, _>>();
        Ok(Self { words: words.map_err(D::Error::custom)? })
    }
}

impl Serialize for Predicate {
    /// Writes the members of all words into one mapping. Words with the same key become separate mappings in
    /// `all`.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::Error;
        let mut members = Map::new();
        for word in &self.words {
            let Value::Object(mut own) = serde_json::to_value(word).map_err(S::Error::custom)?
            else {
                return Err(S::Error::custom("a word is a mapping"));
            };
            // A test that the word does not have.
            own.retain(|_, value| !value.is_null());
            if own.keys().any(|key| members.contains_key(key)) {
                let words: Vec<Self> = self.words.iter().cloned().map(Self::from).collect();
                return json!({"all": words}).serialize(serializer);
            }
            members.extend(own);
        }
        members.serialize(serializer)
    }
}

described!(Predicate, inline: false, |generator| Scope::Object.schema(generator));
described!(ElementPredicate, inline: false, |generator| Scope::Element.schema(generator));

impl Scope {
    /// The schema of a nested predicate.
    pub(super) fn subschema(self, generator: &mut SchemaGenerator) -> Schema {
        match self {
            Self::Object => generator.subschema_for::<Predicate>(),
            Self::Element => generator.subschema_for::<ElementPredicate>(),
        }
    }

    /// One branch for each word. A predicate can have only one of the keys in `x-apart`.
    fn schema(self, generator: &mut SchemaGenerator) -> Schema {
        let required = |key: &&str| json!({"required": [key]});
        let one_of = |keys: &[&str]| match keys {
            [key] => required(key),
            keys => json!({"anyOf": keys.iter().map(required).collect::<Value>()}),
        };
        let mut words = Vec::new();
        for entry in WORDS {
            let keys: Vec<&str> = entry.keys_in(self).collect();
            if keys.is_empty() {
                continue;
            }
            let mut condition = one_of(&keys);
            let not_beside: Vec<&str> = entry.not_beside(self).collect();
            if !not_beside.is_empty() {
                condition["not"] = one_of(&not_beside);
            }
            let mut schema = (entry.schema)(generator, self).to_value();
            if let Some(properties) = schema["properties"].as_object_mut() {
                properties.retain(|key, _| {
                    self == Self::Element || !entry.of_element.contains(&key.as_str())
                });
            }
            words.push(json!({"if": condition, "then": schema}));
        }
        let alone = WORDS.iter().filter(|entry| entry.stands_alone());
        json_schema!({
            "description": "Several words must all hold.",
            "type": "object",
            "minProperties": 1,
            "x-empty": EMPTY,
            "allOf": words,
            "unevaluatedProperties": false,
            "x-apart": alone.flat_map(|entry| entry.keys_in(self)).collect::<Value>(),
        })
    }
}

const EMPTY: &str = "a predicate must not be empty";
