//! `anyCondition`: some condition of a polarity, of any type.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check::Check;
use super::polarity::in_spec;
use super::{Around, Asks, Facts, OneOrMany, Polarity, Reasons, Truth, Word, any_of};
use crate::model::{ConditionStatus, Conditions, Json};

/// Some condition of this polarity has one of these statuses. Without such a condition, there is no
/// evidence. A condition without a status is no evidence for or against it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AnyCondition {
    /// Some condition of this polarity; ask is.
    pub any_condition: Polarity,
    /// Its status is one of these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is: Option<OneOrMany<ConditionStatus>>,
}

impl AnyCondition {
    /// The conditions of the polarity, from the convention, else from the spec.
    fn conditions<'s, 'a>(&self, facts: &Facts<'s, 'a>) -> impl Iterator<Item = &'s Json<'a>> {
        let (facts, wanted) = (*facts, self.any_condition);
        let polarity = move |kind: &str| {
            let known = facts.list.map(|list| list.types.polarity(kind)).unwrap_or_default();
            let named = || in_spec(&facts).find(|(name, _)| *name == kind);
            match known {
                Polarity::Unknown => named().map_or(known, |(_, polarity)| polarity),
                known => known,
            }
        };
        let items = facts.conditions.items().iter();
        items.filter(move |item| {
            item.get("type").and_then(Json::as_str).is_some_and(|kind| polarity(kind) == wanted)
        })
    }

    fn asked(&self) -> &[ConditionStatus] {
        self.is.as_deref().unwrap_or_default()
    }
}

impl Word for AnyCondition {
    const KEYS: &'static [&'static str] = &["anyCondition"];
    const TESTS: &'static [&'static str] = &["is"];

    fn check(&self, check: &mut Check<'_>) {
        if self.is.is_none() {
            let message = format!("there is no test of a {} condition", self.any_condition.name());
            check.error(&message, Some("add is"));
        }
    }

    fn ask(&self, facts: &Facts<'_, '_>) -> Truth {
        let mut conditions = self.conditions(facts).peekable();
        if conditions.peek().is_none() {
            return Truth::NoEvidence;
        }
        let has =
            |item| Truth::of(Conditions::status_of(item).map(|is| self.asked().contains(&is)));
        Truth::any(conditions.map(has))
    }

    fn because(&self, facts: &Facts<'_, '_>, reasons: &mut Reasons) {
        let found = self.conditions(facts).find_map(|item| {
            let status = Conditions::status_of(item).filter(|is| self.asked().contains(is))?;
            Some((item.get("type")?.as_str()?, status))
        });
        match found {
            Some((kind, status)) => {
                reasons.say(format_args!("condition {kind} is {}", status.name()));
            }
            None => reasons.say(format_args!("{}", self.words(Around::Nothing, true))),
        }
    }

    fn is_open(&self, answer: Truth) -> bool {
        answer == Truth::True
    }

    fn words(&self, _: Around, negated: bool) -> String {
        let statuses = any_of(self.asked().iter().map(|status| status.name().to_owned()));
        let polarity = self.any_condition.name();
        format!("{} {polarity} condition is {statuses}", if negated { "no" } else { "some" })
    }

    fn asks<'p>(&'p self, asks: &mut dyn Asks<'p>) {
        asks.conditions_of(self.any_condition);
    }
}
