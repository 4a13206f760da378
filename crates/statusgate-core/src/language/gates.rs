//! `gates`: the conditions that a list in the spec names, such as `spec.readinessGates`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AnyPointer, Around, Facts, Polarity, Reasons, Truth, Word, quoted};
use crate::model::{ByType, ConditionStatus, Conditions, Json, SCAN_LIMIT};

/// Every condition that a list in the spec asks for is good.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Gates {
    /// A list of {conditionType, polarity}. Every condition that it asks for is good.
    pub gates: AnyPointer,
}

impl Word for Gates {
    const KEYS: &'static [&'static str] = &["gates"];

    fn ask(&self, facts: &Facts<'_, '_>) -> Truth {
        self.judge(facts).0
    }

    fn because(&self, facts: &Facts<'_, '_>, reasons: &mut Reasons) {
        match self.judge(facts) {
            (_, Some((kind, status))) => {
                let (kind, gates, status) = (quoted(kind), self.gates.field(), status.name());
                reasons.say(format_args!("condition {kind} of {gates} is {status}"));
            }
            _ => reasons.say(format_args!("{}", self.words(Around::Nothing, true))),
        }
    }

    fn is_open(&self, answer: Truth) -> bool {
        answer == Truth::False
    }

    fn words(&self, _: Around, negated: bool) -> String {
        let (each, not) = if negated { ("a", "not ") } else { ("every", "") };
        format!("{each} condition that {} asks for is {not}good", self.gates.field())
    }
}

impl Gates {
    /// The answer, and the first condition with a bad status.
    fn judge<'s>(&self, facts: &Facts<'s, '_>) -> (Truth, Option<(&'s str, ConditionStatus)>) {
        let gates = facts.at(&self.gates).and_then(Json::as_array).unwrap_or_default();
        // A table avoids a scan of the conditions for each of many gates.
        let table = (gates.len() > SCAN_LIMIT).then(|| ByType::new(facts.conditions.items()));
        let mut answer = Truth::True;
        for gate in gates {
            let kind = gate.get("conditionType").and_then(Json::as_str).unwrap_or_default();
            let found = match &table {
                None => facts.conditions.find(kind),
                Some(table) => table.find(kind),
            };
            match found.filter(|found| facts.is_evidence(found)).and_then(Conditions::status_of) {
                Some(status) if status == Polarity::of_gate(gate).good() => {}
                Some(status) => return (Truth::False, Some((kind, status))),
                None => answer = Truth::NoEvidence,
            }
        }
        (answer, None)
    }
}
