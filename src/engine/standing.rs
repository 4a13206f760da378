//! Where an object stands: what its phase is, may be and would become, with no write to judge.

use crate::model::{Object, Resource, in_status};
use crate::policy::Policy;

use super::agreement;
use super::because::quoted;
use super::choice::{Choice, choose};
use super::evidence::{Facts, phase_of, phase_path};

/// The phase of an object, beside what its evidence allows.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Standing<'p> {
    /// The phase as it is written; `None` where there is none or it is no text.
    pub phase: Option<String>,
    /// The phases that the evidence does not contradict, highest priority first.
    #[serde(rename = "admissiblePhases")]
    pub admissible: Vec<&'p str>,
    /// Why the written phase cannot stand. A phase that is not written contradicts nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contradiction: Option<String>,
    /// What the mutating webhook would put in its place: the imposed phase, else the repaired one.
    #[serde(rename = "wouldBecome", skip_serializing_if = "Option::is_none")]
    pub instead: Option<&'p str>,
}

impl<'p> Standing<'p> {
    /// Looks at an object under a policy; `None` where its convention has no phase. Evidence that only a stored object could give is missing, which contradicts
    /// nothing.
    #[must_use]
    pub fn of<'a>(
        policy: &'p Policy,
        object: &Object<'a>,
        resource: &Resource<'a>,
    ) -> Option<Self> {
        let convention = &*policy.convention;
        let rules = convention.phase.as_ref()?;
        let facts = Facts::new(convention, object, None, resource);
        let phase = phase_of(convention, object);
        let contradicted = agreement::contradicted(rules, &facts);
        let written = in_status(object.status.as_ref(), phase_path(rules, object));
        let contradiction = match (phase, contradicted) {
            // As in a review: what is being deleted may say what it likes.
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
            Choice::Contradicted(_, repaired) if !facts.deleting() => repaired,
            // An unknown value is rejected, not repaired.
            _ => None,
        };
        Some(Self {
            phase: phase.map(str::to_owned),
            admissible: rules
                .phases
                .iter()
                .filter(|phase| facts.admits(phase))
                .map(|phase| phase.name.as_str())
                .collect(),
            contradiction,
            instead: instead.filter(|instead| phase != Some(*instead)),
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::policy::PolicySet;

    use super::*;

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
    fn a_contradicted_phase_comes_with_the_reason_and_its_repair() {
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
    fn what_is_no_phase_cannot_stand() {
        let (phase, _, contradiction, instead) = standing(r#"{"status": {"phase": "ready"}}"#);
        assert_eq!((phase.as_deref(), instead), (Some("ready"), None));
        assert_eq!(contradiction.as_deref(), Some("convention appcat has no phase \"ready\""));
        let (phase, _, contradiction, _) = standing(r#"{"status": {"phase": 5}}"#);
        assert_eq!(phase, None);
        assert_eq!(contradiction.as_deref(), Some("the phase is a number, not a string"));
    }

    #[test]
    fn what_is_being_deleted_becomes_deleting_and_contradicts_nothing() {
        let (_, admissible, contradiction, instead) = standing(
            r#"{"metadata": {"deletionTimestamp": "2024-01-01T00:00:00Z"}, "status":
                {"phase": "Ready", "conditions": [{"type": "Ready", "status": "False"}]}}"#,
        );
        assert!(admissible.starts_with("Deleting "), "{admissible}");
        assert_eq!((contradiction, instead.as_deref()), (None, Some("Deleting")));
    }
}
