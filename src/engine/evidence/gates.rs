//! Lists in the spec that name types of conditions: which must be good, and what is good of them.

use super::super::conditions::{ByType, SCAN_LIMIT};
use super::{Facts, Truth, at};
use crate::model::{Conditions, Json, Pointer};
use crate::policy::convention::Polarity;

impl Facts<'_, '_> {
    /// Whether every condition that a list in the spec asks for is good.
    pub(super) fn gates(&self, path: &Pointer) -> Truth {
        let gates = at(self.object, path).and_then(Json::as_array).unwrap_or_default();
        // Where there are many, the conditions are not scanned for each of them.
        let table = (gates.len() > SCAN_LIMIT).then(|| ByType::new(self.conditions.items()));
        let find = |kind: &str| match &table {
            None => self.find(self.conditions, kind),
            Some(table) => self.spelled(kind, |kind| table.find(kind)),
        };
        let mut answer = Truth::True;
        for gate in gates {
            let found = gate.get("conditionType").and_then(Json::as_str).and_then(find);
            let polarity = polarity_of(gate);
            match found.and_then(Conditions::status_of) {
                Some(status) if status == polarity.good() => {}
                Some(_) => return Truth::False,
                None => answer = Truth::NoEvidence,
            }
        }
        answer
    }

    /// The polarity of the element's type: what the convention says, else what the spec does.
    pub(super) fn polarity(&self) -> Polarity {
        let Some(element) = self.element else { return Polarity::Unknown };
        if let Some(known) = element.kind
            && known.polarity != Polarity::Unknown
        {
            return known.polarity;
        }
        let Some(kind) = element.item.get("type").and_then(Json::as_str) else {
            return Polarity::Unknown;
        };
        if let Some(answers) = self.answers {
            return answers.polarity(kind);
        }
        let gates = self.list.into_iter().flat_map(|list| &list.types.polarity_from);
        let mut gates = gates.filter_map(|path| at(self.object, path)?.as_array()).flatten();
        let gate =
            gates.find(|gate| gate.get("conditionType").and_then(Json::as_str) == Some(kind));
        gate.map_or(Polarity::Unknown, polarity_of)
    }
}

/// The polarity that an entry of a list in the spec gives to the type it names.
pub(super) fn polarity_of(gate: &Json<'_>) -> Polarity {
    Polarity::of_gate(gate.get("polarity").and_then(Json::as_str))
}
