//! `observed`: how the object's own `observedGeneration` relates to `metadata.generation`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::words::not;
use super::{
    Around, Facts, Formula, Layout, OneOrMany, Question, Reasons, Sides, Truth, Word, any_of,
};

/// How `observedGeneration` relates to `metadata.generation`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ObservedGeneration {
    /// observedGeneration is behind metadata.generation, current, or ahead of it.
    pub observed: OneOrMany<Observed>,
}

/// How the generation that a controller has seen relates to the newest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub enum Observed {
    /// It is older.
    Behind,
    /// It is the newest.
    Current,
    /// It does not exist yet.
    Ahead,
}

impl Word for ObservedGeneration {
    const KEYS: &'static [&'static str] = &["observed"];

    fn ask(&self, facts: &Facts<'_, '_>) -> Truth {
        Truth::of(observed(facts).map(|observed| self.observed.contains(&observed)))
    }

    fn because(&self, facts: &Facts<'_, '_>, reasons: &mut Reasons) {
        let is = if observed(facts) == Some(Observed::Behind) { "is" } else { "is not" };
        reasons.say(format_args!("observedGeneration {is} behind metadata.generation"));
    }

    fn words(&self, _: Around, negated: bool) -> String {
        let relations = any_of(self.observed.iter().map(|observed| match observed {
            Observed::Behind => "behind".to_owned(),
            Observed::Current => "equal to".to_owned(),
            Observed::Ahead => "ahead of".to_owned(),
        }));
        format!("observedGeneration is {}{relations} metadata.generation", not(negated))
    }

    fn sides(&self, layout: Layout<'_>) -> Sides {
        let side = |listed| {
            let among = Observed::ALL.into_iter();
            let among: Vec<_> =
                among.filter(|relation| self.observed.contains(relation) == listed).collect();
            match layout.observed_generation.cloned().filter(|_| !among.is_empty()) {
                Some(path) => {
                    Question::Observed { path, among, text: layout.generation_is_text }.into()
                }
                None => Formula::NEVER,
            }
        };
        Sides { yes: side(true), no: side(false) }
    }
}

impl Observed {
    /// All.
    pub(crate) const ALL: [Self; 3] = [Self::Behind, Self::Current, Self::Ahead];

    /// The spelling in documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Behind => "behind",
            Self::Current => "current",
            Self::Ahead => "ahead",
        }
    }
}

/// How the object's own `observedGeneration` relates to its generation; `None` if one of them is absent.
// Argo Rollouts writes the number as a string (`RolloutStatus.ObservedGeneration`).
pub(crate) fn observed(facts: &Facts<'_, '_>) -> Option<Observed> {
    let written = facts.object.at_status(facts.observed_generation?)?;
    let observed: i64 = match written.as_str() {
        Some(text) => text.parse().ok().filter(|number: &i64| number.to_string() == text)?,
        None => written.as_i64()?,
    };
    let old = facts.old.and_then(|old| old.metadata.generation);
    let newest = facts.object.metadata.generation.max(old)?;
    Some(match observed.cmp(&newest) {
        std::cmp::Ordering::Less => Observed::Behind,
        std::cmp::Ordering::Equal => Observed::Current,
        std::cmp::Ordering::Greater => Observed::Ahead,
    })
}
