//! `set`: a field that holds something. Short for `{field: …, set: true}`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::words::not;
use super::{AnyPointer, Around, Facts, Layout, Question, Reasons, Sides, Truth, Word};

/// A field that is present and not null, "", [] or {}.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Set {
    /// The field.
    pub set: AnyPointer,
}

impl Word for Set {
    const KEYS: &'static [&'static str] = &["set"];

    fn ask(&self, facts: &Facts<'_, '_>) -> Truth {
        Truth::of(Some(facts.at(&self.set).is_some_and(|value| !value.is_empty())))
    }

    fn because(&self, facts: &Facts<'_, '_>, reasons: &mut Reasons) {
        let is = if self.ask(facts) == Truth::True { "is set" } else { "is empty" };
        reasons.say(format_args!("{} {is}", self.set.field()));
    }

    fn words(&self, _: Around, negated: bool) -> String {
        format!("{} is {}set", self.set.field(), not(negated))
    }

    fn sides(&self, _: Layout<'_>) -> Sides {
        Sides::of(Question::Set((*self.set).clone()).into())
    }
}
