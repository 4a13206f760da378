//! `phase` and `oldPhase`: the phase of this write, and the stored one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::checker::{Checker, Issue};
use super::words::not;
use super::{
    Around, Facts, Formula, Layout, OneOrMany, Question, Reasons, Sides, Truth, Word, any_of,
    quoted,
};

/// The phase of this write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Phase {
    /// The phase is one of these.
    pub phase: OneOrMany<String>,
}

/// The stored phase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OldPhase {
    /// The stored phase is one of these.
    pub old_phase: OneOrMany<String>,
}

impl Word for Phase {
    const KEYS: &'static [&'static str] = &["phase"];

    fn check(&self, checker: &mut Checker) {
        checker.each("phase", &self.phase, |checker, name| {
            checker.add(Issue::Phase(name.clone()));
        });
    }

    fn ask(&self, facts: &Facts<'_, '_>) -> Truth {
        is_one_of(facts.phase, &self.phase)
    }

    fn because(&self, facts: &Facts<'_, '_>, reasons: &mut Reasons) {
        let phase = quoted(facts.phase.unwrap_or_default());
        reasons.say(format_args!("the phase is {phase}"));
    }

    fn is_open(&self, answer: Truth) -> bool {
        answer == Truth::False || self.phase.len() > 1
    }

    fn words(&self, _: Around, negated: bool) -> String {
        format!("the phase is {}{}", not(negated), any_of(self.phase.iter().cloned()))
    }

    fn sides(&self, layout: Layout<'_>) -> Sides {
        let named = self.phase.iter().filter(|name| !name.is_empty());
        let among: Vec<_> = named.map(|name| name.as_str().into()).collect();
        let side = |negated| {
            let paths = layout.phase.iter().enumerate();
            Formula::any(paths.map(|(index, path)| {
                // A text has no fields, so these cannot both be texts.
                let before = layout.phase.iter().take(index).filter(|other| !other.contains(path));
                let absent = before.map(|other| !Formula::from(Question::IsText(other.clone())));
                let (path, among) = (path.clone(), among.clone());
                let is = Question::Value { path, among, negated, text: true }.into();
                Formula::all(absent.chain([is]))
            }))
        };
        Sides { yes: side(false), no: side(true) }
    }
}

impl Word for OldPhase {
    const KEYS: &'static [&'static str] = &["oldPhase"];

    fn check(&self, checker: &mut Checker) {
        checker.add(Issue::Write);
        checker.each("oldPhase", &self.old_phase, |checker, name| {
            checker.add(Issue::Phase(name.clone()));
        });
    }

    fn ask(&self, facts: &Facts<'_, '_>) -> Truth {
        is_one_of(facts.old_phase, &self.old_phase)
    }

    fn because(&self, facts: &Facts<'_, '_>, reasons: &mut Reasons) {
        let phase = quoted(facts.old_phase.unwrap_or_default());
        reasons.say(format_args!("the stored phase is {phase}"));
    }

    fn is_open(&self, answer: Truth) -> bool {
        answer == Truth::False || self.old_phase.len() > 1
    }

    fn words(&self, _: Around, negated: bool) -> String {
        format!("the stored phase is {}{}", not(negated), any_of(self.old_phase.iter().cloned()))
    }
}

fn is_one_of(phase: Option<&str>, names: &[String]) -> Truth {
    Truth::of(phase.map(|phase| names.iter().any(|name| name == phase)))
}
