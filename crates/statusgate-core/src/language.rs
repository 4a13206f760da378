//! The predicate language: the questions about an object that a document can contain.
//!
//! In a document a predicate is a mapping. Several words in one mapping must all hold, so most
//! predicates need no `all`:
//!
//! ```yaml
//! {all: […]}  {any: […]}  {not: …}
//! {condition: Ready, is: "True"}               # is, isNot: one status or several
//! {condition: Synced, reason: ReconcilePaused} # one reason or several; "" includes no reason
//! {condition: Ready, is: "False", severity: Error} # one severity or several; "" includes no severity
//! {condition: PodReady, present: false}
//! {condition: Ready, changed: true}            # this write changed it
//! {oldCondition: Ready, present: true}         # the same, of the stored object
//! {set: /status/instanceNamespace}             # present and not null, "", [] or {}
//! {field: /status/replicas, is: 0}             # is, isNot, set, changed, decreased, future, past, matches
//! {oldField: /spec/paused, is: true}           # the same, of the stored object
//! {field: /status/replicas, atMost: /spec/replicas}   # atLeast, atMost: a number, or another value
//! {field: /status/completionTime, equals: {condition: Succeeded, member: lastTransitionTime}} # equals, before
//! {field: /metadata/annotations/cnpg.io~1hibernation, is: "on"}  # a label or an annotation
//! {phase: [Ready, Degraded]}                   # the phase of this write
//! {oldPhase: Ready}                            # the stored phase
//! {deleting: true}                             # deletionTimestamp is set
//! {observed: behind}                           # observedGeneration: behind, current or ahead
//! {since: /status/startTimestamp, moreThan: 4h} # a time; only in rules that never reject
//! {length: /status/conditions, atLeast: 21}    # atLeast, atMost
//! {gates: /spec/readinessGates}                # the conditions that the spec asks for are good
//! {resource: "x*"}                             # the plural that is addressed
//! ```
//!
//! The rules about each element of a list have more words ([`ElementPredicate`]):
//!
//! ```yaml
//! {member: severity, set: true}                # a member of the element, with the tests of `field`
//! {oldMember: severity, set: true}             # a member of the stored element
//! {polarity: positive}                         # the polarity of the element's type
//! ```
//!
//! **The document form is the compiled form.** Each word is a type with serde and schemars: documents
//! contain [`Predicate`] and [`ElementPredicate`] as they are. A reader of documents does three things:
//!
//! 1. Walk the tree along the schema. Texts with an `x-check` are checked by [`shapes::CHECKS`]; documents
//!    add forms of their own.
//! 2. Deserialize. This compiles patterns and globs and rejects unknown keys.
//! 3. Call [`Predicate::check`] for errors in names; each [`Issue`] has a path inside the predicate.
//!
//! **To add a word**: write its file with an `impl Word`, add one line to `words!` below, and a test.
//! The compiler reports a missing required part, and the matches on all words in `explain` and `relevance`. A test of an
//! existing word has more places, which docs/architecture.md lists.

mod answers;
mod because;
mod checker;
mod condition;
mod deleting;
mod elapsed;
mod facts;
pub mod formula;
mod gates;
mod glob;
mod length;
mod logic;
mod observed;
mod pattern;
mod phase;
mod polarity;
mod predicate;
mod reference;
mod resource;
pub(crate) mod selector;
mod set;
pub mod shapes;
mod truth;
mod value;
mod words;

use std::fmt::Debug;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value as Json};

pub use answers::Answers;
pub use because::Reasons;
pub(crate) use because::quoted;
pub use checker::{Checker, Issue, Issues, Segment};
pub use condition::{Condition, ConditionOf};
pub use deleting::Deleting;
pub use elapsed::{Elapsed, Span};
pub use facts::{ElementFacts, Facts, List};
pub(crate) use formula::{Formula, Layout, Question, Sides};
pub use gates::Gates;
pub use glob::Glob;
pub use length::Length;
pub use logic::{All, Any, Not};
pub(crate) use observed::observed;
pub use observed::{Observed, ObservedGeneration};
pub use pattern::Pattern;
pub use phase::{OldPhase, Phase};
pub use polarity::{ElementPolarity, Polarity};
pub use predicate::{ElementPredicate, Predicate, Scope};
pub use reference::{Bound, MemberOf, Operand, Reference};
pub use resource::ResourceName;
pub use selector::plural_of_kind;
pub use set::Set;
pub use shapes::{AnyPointer, OneOrMany, Scalar, SpecPointer, ZeroOrMore};
pub use truth::Truth;
pub use value::Value;
pub(crate) use value::{SKEW_SECONDS, is_one_of};
pub use words::Around;
pub use words::{any_of, quoted_if_odd, shortest};

/// The parts of a word.
pub trait Word: Serialize + DeserializeOwned + JsonSchema + Clone + Debug + PartialEq {
    /// The keys that introduce the word. A predicate can have only one of them.
    const KEYS: &'static [&'static str];
    /// The additional keys. Words with a common additional key need separate predicates. An additional key
    /// does not introduce another word (`set` is a test in `{field: …, set: true}`).
    const TESTS: &'static [&'static str] = &[];
    /// The part of [`Self::KEYS`] that is valid only in rules about the elements of a list.
    const OF_ELEMENT: &'static [&'static str] = &[];

    /// Its schema, in which nested predicates have the same scope.
    fn schema(generator: &mut SchemaGenerator, _scope: Scope) -> Schema {
        Self::json_schema(generator)
    }

    /// Reports errors that the schema cannot find: unknown names, missing or contradictory tests.
    fn check(&self, _checker: &mut Checker) {}

    /// The answer. This is the hot path, so it must not allocate.
    fn ask(&self, facts: &Facts<'_, '_>) -> Truth;

    /// Explains why the answer is True or False. The word has one test ([`Self::split`]). Default: its
    /// clause, without the value itself, which may change with each write.
    fn because(&self, facts: &Facts<'_, '_>, reasons: &mut Reasons) {
        let negated = self.ask(facts) == Truth::False;
        reasons.say(format_args!("{}", self.words(Around::Nothing, negated)));
    }

    /// Whether several values give this answer, so that the predicate does not say which one the object
    /// has. The word has one test.
    fn is_open(&self, _answer: Truth) -> bool {
        false
    }

    /// The word as a clause of a page. The word has one test.
    fn words(&self, around: Around, negated: bool) -> String;

    /// Its formulas, for exports to other languages. The word has one test. Default: they cannot ask it.
    fn sides(&self, _layout: Layout<'_>) -> Sides {
        self.foreign()
    }

    /// The formulas if other languages cannot ask it.
    fn foreign(&self) -> Sides {
        Sides::foreign(self.words(Around::Nothing, false))
    }

    /// Whether its answer depends on the element. Other answers are the same for the whole list.
    fn is_about_element(&self) -> bool {
        !Self::OF_ELEMENT.is_empty()
    }

    /// A word for each of its tests. Together they are equivalent.
    fn split(&self) -> Vec<Self> {
        vec![self.clone()]
    }
}

/// Declares [`AnyWord`] and the table of words.
macro_rules! words {
    ($($word:ident($held:ty),)*) => {
        /// One word of a predicate.
        #[derive(Clone, Debug, PartialEq)]
        #[expect(missing_docs, reason = "each word has its own documentation")]
        pub enum AnyWord {
            $($word($held),)*
        }

        $(impl From<$word> for AnyWord {
            fn from(word: $word) -> Self {
                Self::$word(word.into())
            }
        })*

        impl Serialize for AnyWord {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self {
                    $(Self::$word(word) => word.serialize(serializer),)*
                }
            }
        }

        impl AnyWord {
            fn check(&self, checker: &mut Checker) {
                match self {
                    $(Self::$word(word) => {
                        checker.scope_of::<$word>(word);
                        word.check(checker);
                    })*
                }
            }

            fn ask(&self, facts: &Facts<'_, '_>) -> Truth {
                match self {
                    $(Self::$word(word) => word.ask(facts),)*
                }
            }

            fn because(&self, facts: &Facts<'_, '_>, reasons: &mut Reasons) {
                match self {
                    $(Self::$word(word) => word.because(facts, reasons),)*
                }
            }

            fn is_open(&self, answer: Truth) -> bool {
                match self {
                    $(Self::$word(word) => word.is_open(answer),)*
                }
            }

            fn words(&self, around: Around, negated: bool) -> String {
                match self {
                    $(Self::$word(word) => word.words(around, negated),)*
                }
            }

            fn sides(&self, layout: Layout<'_>) -> Sides {
                match self {
                    $(Self::$word(word) => word.sides(layout),)*
                }
            }

            fn is_about_element(&self) -> bool {
                match self {
                    $(Self::$word(word) => word.is_about_element(),)*
                }
            }

            fn split(&self) -> Vec<Self> {
                match self {
                    $(Self::$word(word) => word.split().into_iter().map(Self::from).collect(),)*
                }
            }
        }

        // Not a constant, which may have several addresses.
        static WORDS: &[WordFunctions] = &[$(WordFunctions::of::<$word>(),)*];
    };
}

// The order of words in messages and pages. `Value` is four times as large as any other.
words! {
    All(All),
    Any(Any),
    Not(Not),
    Condition(Condition),
    Set(Set),
    Value(Box<Value>),
    Phase(Phase),
    OldPhase(OldPhase),
    Deleting(Deleting),
    ObservedGeneration(ObservedGeneration),
    Elapsed(Elapsed),
    Length(Length),
    Gates(Gates),
    ElementPolarity(ElementPolarity),
    ResourceName(ResourceName),
}

/// The functions of a word, without its type.
struct WordFunctions {
    keys: &'static [&'static str],
    tests: &'static [&'static str],
    of_element: &'static [&'static str],
    schema: fn(&mut SchemaGenerator, Scope) -> Schema,
    read: fn(&Map<String, Json>) -> serde_json::Result<AnyWord>,
}

impl WordFunctions {
    const fn of<W: Word + Into<AnyWord>>() -> Self {
        Self {
            keys: W::KEYS,
            tests: W::TESTS,
            of_element: W::OF_ELEMENT,
            schema: W::schema,
            read: |members| W::deserialize(members).map(Into::into),
        }
    }

    /// The keys that introduce it in a scope.
    fn keys_in(&self, scope: Scope) -> impl Iterator<Item = &'static str> {
        let keys = self.keys.iter().copied();
        keys.filter(move |key| scope == Scope::Element || !self.of_element.contains(key))
    }

    /// The keys of other words that make a key of this word a test.
    fn not_beside(&self, scope: Scope) -> impl Iterator<Item = &'static str> {
        let others = WORDS.iter().filter(|other| !std::ptr::eq(*other, self));
        let others = others.filter(|other| self.keys.iter().any(|key| other.tests.contains(key)));
        others.flat_map(move |other| other.keys_in(scope))
    }

    /// Whether another key of this word, or another word, has the same tests.
    fn stands_alone(&self) -> bool {
        let mut others = WORDS.iter().filter(|other| !std::ptr::eq(*other, self));
        self.keys.len() > 1
            || others.any(|other| self.tests.iter().any(|test| other.tests.contains(test)))
    }
}

#[cfg(test)]
mod tests;
