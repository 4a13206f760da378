//! Two policies of which each would undo what the other repairs. The engine lets one of them set the phase;
//! whoever reads the documents should not have to work out which.

use serde_json::Value;

use super::gate::mutated;
use super::rules::{plain, stored};
use super::{Kind, policy::Lint};
use crate::explain::{Question, Scene, space_of};
use crate::policy::convention::PhaseRules;
use crate::policy::{Action, Policy, PolicySet};

impl Lint<'_, '_> {
    /// Looks at this policy beside another one, which comes before it.
    pub(super) fn beside(&mut self, earlier: &Policy) {
        let (Some(one), Some(other)) = (rules_of(earlier), rules_of(self.policy)) else { return };
        if one.path != other.path || !repairs(earlier) || !repairs(self.policy) {
            return;
        }
        let evidence = [one, other].into_iter().flat_map(|rules| &rules.phases);
        let evidence = evidence.flat_map(|phase| phase.necessary.iter().chain(&phase.sufficient));
        let questions: Vec<Question<'_>> = evidence.map(plain).collect();
        let space = space_of(self.stage.convention, self.stage.version, &questions);
        let (first, second) = (alone(earlier), alone(self.policy));
        let phases: Vec<&str> = [one, other]
            .into_iter()
            .flat_map(|rules| &rules.phases)
            .map(|phase| phase.name.as_str())
            .collect();
        for mut scene in self.scenes(&space) {
            for phase in &phases {
                self.stage.set_phase(&mut scene.object, phase);
                let set = |policies, written: &Value| self.set(policies, &scene, written);
                let by_one = set(&first, &scene.object);
                let by_other = set(&second, &by_one);
                if by_other != by_one && set(&first, &by_other) != by_other {
                    let at = |object: &Value| {
                        let found = object.pointer(&one.path.to_string());
                        found.and_then(Value::as_str).unwrap_or_default().to_owned()
                    };
                    let message = format!(
                        "policy {} repairs to {} what this policy would make {}: only the first of them that selects a write sets its phase",
                        earlier.name,
                        at(&by_one),
                        at(&by_other)
                    );
                    self.say(Kind::PoliciesDisagree, Vec::new(), message, &scene);
                    return;
                }
            }
        }
    }

    fn set(&self, policies: &PolicySet, scene: &Scene, written: &Value) -> Value {
        mutated(policies, &self.resource(scene), &stored(scene), written)
    }
}

fn rules_of(policy: &Policy) -> Option<&PhaseRules> {
    policy.convention.phase.as_ref()
}

/// For some writer.
fn repairs(policy: &Policy) -> bool {
    let mut writers = policy.writers.iter().map(|rule| rule.disagreement);
    policy.disagreement == Action::Repair || writers.any(|action| action == Action::Repair)
}

/// The policy by itself, repairing for everybody, and filling in nothing.
fn alone(policy: &Policy) -> PolicySet {
    let mut policy = policy.clone();
    policy.enforcement = Action::Deny;
    policy.disagreement = Action::Repair;
    policy.writers.clear();
    policy.backfill.clear();
    policy.resources.iter_mut().for_each(|rule| rule.status_subresource = true);
    PolicySet::of(vec![policy])
}
