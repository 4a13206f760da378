//! `polarity`: which status of a condition is the good one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::facts::at;
use super::words::not;
use super::{Around, Facts, OneOrMany, Reasons, Truth, Word, any_of};
use crate::model::{ConditionStatus, Json};

/// The polarity of the element's type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ElementPolarity {
    /// The polarity of the element's type is one of these.
    pub polarity: OneOrMany<Polarity>,
}

/// Which status of a condition is the good one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub enum Polarity {
    /// True is good.
    Positive,
    /// True is bad.
    Negative,
    /// Neither is.
    Neutral,
    /// The convention does not say. No document can ask for this.
    #[default]
    #[serde(skip)]
    Unknown,
}

impl Word for ElementPolarity {
    const KEYS: &'static [&'static str] = &["polarity"];
    const OF_ELEMENT: &'static [&'static str] = &["polarity"];

    fn ask(&self, facts: &Facts<'_, '_>) -> Truth {
        let polarity = of_element(facts);
        let known = polarity != Polarity::Unknown;
        Truth::of(known.then(|| self.polarity.contains(&polarity)))
    }

    fn because(&self, facts: &Facts<'_, '_>, reasons: &mut Reasons) {
        reasons.say(format_args!("its polarity is {}", of_element(facts).name()));
    }

    fn words(&self, _: Around, negated: bool) -> String {
        let polarities = self.polarity.iter().map(|polarity| polarity.name().to_owned());
        format!("its polarity is {}{}", not(negated), any_of(polarities))
    }
}

impl Polarity {
    /// The spelling in documents and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Positive => "positive",
            Self::Negative => "negative",
            Self::Neutral => "neutral",
            Self::Unknown => "unknown",
        }
    }

    /// The good status. For a type of unknown polarity, True.
    pub const fn good(self) -> ConditionStatus {
        match self {
            Self::Negative => ConditionStatus::False,
            Self::Positive | Self::Neutral | Self::Unknown => ConditionStatus::True,
        }
    }

    /// The polarity of an entry of `spec.readinessGates`; positive by default.
    pub fn of_gate(gate: &Json<'_>) -> Self {
        let negative = gate.get("polarity").and_then(Json::as_str) == Some("Negative");
        if negative { Self::Negative } else { Self::Positive }
    }
}

/// The polarity of the element's type: from the convention, otherwise from the spec.
fn of_element(facts: &Facts<'_, '_>) -> Polarity {
    let Some(element) = facts.element else { return Polarity::Unknown };
    if element.polarity != Polarity::Unknown {
        return element.polarity;
    }
    let Some(kind) = element.item.get("type").and_then(Json::as_str) else {
        return Polarity::Unknown;
    };
    match facts.answers {
        Some(answers) => answers.polarity(kind),
        None => in_spec(facts)
            .find(|(known, _)| *known == kind)
            .map_or(Polarity::Unknown, |(_, polarity)| polarity),
    }
}

/// The object's own types with their polarity.
pub(super) fn in_spec<'s>(facts: &Facts<'s, '_>) -> impl Iterator<Item = (&'s str, Polarity)> {
    let object = facts.object;
    let paths = facts.list.map(|list| list.polarity_from).unwrap_or_default();
    let gates = paths.iter().filter_map(|path| at(object, path)?.as_array()).flatten();
    gates.filter_map(|gate| Some((gate.get("conditionType")?.as_str()?, Polarity::of_gate(gate))))
}
