//! The phase of a stored object: its value, the admissible values, and what the webhook would change.

use crate::model::{Object, Resource};
use crate::policy::Policy;

use super::agreement::{self, Choice, choose};
use super::because::quoted;
use super::evidence::{facts_of, phase_of, phase_path};

/// The phase of an object, and the phases that its evidence allows.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Standing<'p> {
    /// The written phase; `None` if it is absent or not a string.
    pub phase: Option<String>,
    /// The phases that the evidence does not contradict, highest priority first.
    #[serde(rename = "admissiblePhases")]
    pub admissible: Vec<&'p str>,
    /// Why the written phase is invalid. An absent phase contradicts nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contradiction: Option<String>,
    /// The phase that the mutating webhook would set: the imposed or the repaired phase.
    #[serde(rename = "wouldBecome", skip_serializing_if = "Option::is_none")]
    pub instead: Option<&'p str>,
}

impl<'p> Standing<'p> {
    /// The phase of an object under a policy; `None` if its convention has no phase. Evidence from a
    /// previous object is absent, and absent evidence contradicts nothing.
    pub fn of<'a>(
        policy: &'p Policy,
        object: &Object<'a>,
        resource: &Resource<'a>,
    ) -> Option<Self> {
        let convention = &*policy.convention;
        let rules = convention.phase.as_ref()?;
        let facts = facts_of(convention, object, None, resource);
        let phase = phase_of(convention, object);
        let contradicted = agreement::contradicted(rules, &facts);
        let written = object.at_status(phase_path(rules, object));
        let contradiction = match (phase, contradicted) {
            // As in a review, an object that is being deleted may have any phase.
            (Some(_), _) if facts.deleting() => None,
            (Some(_), Some(phase)) => Some(agreement::reason(phase, &facts)),
            (Some(name), None) => rules
                .find(name)
                .is_none()
                .then(|| format!("convention {} has no phase {}", convention.name, quoted(name))),
            (None, _) => written
                .filter(|value| !value.is_empty())
                .map(|value| format!("the phase is {}, not a string", value.kind())),
        };
        let instead = match choose(rules, &facts) {
            Choice::Imposed(phase) => Some(phase.name.as_str()),
            Choice::Contradicted(_) if !facts.deleting() => agreement::repaired(rules, &facts),
            // An unknown value is rejected, not repaired.
            _ => None,
        };
        let admissible = rules.phases.iter().filter(|phase| agreement::admits(&facts, phase));
        Some(Self {
            phase: phase.map(str::to_owned),
            admissible: admissible.map(|phase| &*phase.name).collect(),
            contradiction,
            instead: instead.filter(|instead| phase != Some(*instead)),
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::policy::PolicySet;

    use super::*;

    /// The standing of an object under the example policy of AppCat.
    fn standing(object: &str) -> (Option<String>, String, Option<String>, Option<String>) {
        let policies = PolicySet::compile(&PolicySet::examples()).unwrap();
        let policy = policies.policies().iter().find(|policy| *policy.name == *"appcat").unwrap();
        let object = Object::parse(object).unwrap();
        let resource = Resource { resource: "xvshnredis".into(), ..Resource::default() };
        let standing = Standing::of(policy, &object, &resource).unwrap();
        let instead = standing.instead.map(str::to_owned);
        (standing.phase, standing.admissible.join(" "), standing.contradiction, instead)
    }

    const ANY: &str = "Failed Provisioning Maintenance Scaling Degraded Ready Unknown";

    #[test]
    fn a_contradicted_phase_has_the_reason_and_its_repair() {
        let (phase, admissible, contradiction, instead) = standing(
            r#"{"status": {"phase": "Ready", "conditions": [{"type": "Ready", "status": "False"}]}}"#,
        );
        assert_eq!(phase.as_deref(), Some("Ready"));
        assert_eq!(admissible, ANY.replace("Ready ", ""));
        assert_eq!(
            contradiction.as_deref(),
            Some("phase Ready disagrees: condition Ready is False")
        );
        assert_eq!(instead.as_deref(), Some("Provisioning"));
    }

    #[test]
    fn missing_evidence_contradicts_nothing() {
        for object in ["{}", r#"{"status": null}"#, r#"{"status": {"phase": ""}}"#] {
            assert_eq!(standing(object), (None, ANY.to_owned(), None, None), "{object}");
        }
        let ready = standing(r#"{"status": {"phase": "Ready"}}"#);
        assert_eq!(ready, (Some("Ready".to_owned()), ANY.to_owned(), None, None));
    }

    #[test]
    fn an_invalid_phase_is_reported_and_not_replaced() {
        let (phase, _, contradiction, instead) = standing(r#"{"status": {"phase": "ready"}}"#);
        assert_eq!((phase.as_deref(), instead), (Some("ready"), None));
        assert_eq!(contradiction.as_deref(), Some("convention appcat has no phase \"ready\""));
        let (phase, _, contradiction, _) = standing(r#"{"status": {"phase": 5}}"#);
        assert_eq!(phase, None);
        assert_eq!(contradiction.as_deref(), Some("the phase is a number, not a string"));
    }

    #[test]
    fn an_object_that_is_being_deleted_becomes_deleting_without_a_contradiction() {
        let (_, admissible, contradiction, instead) = standing(
            r#"{"metadata": {"deletionTimestamp": "2024-01-01T00:00:00Z"}, "status":
                {"phase": "Ready", "conditions": [{"type": "Ready", "status": "False"}]}}"#,
        );
        assert!(admissible.starts_with("Deleting "), "{admissible}");
        assert_eq!((contradiction, instead.as_deref()), (None, Some("Deleting")));
    }
}
