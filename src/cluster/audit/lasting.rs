//! Which findings are disagreements.

use statusgate_core::policy::{Disposition, Policy};

/// Whether a rule of a policy reports disagreements, between phase and conditions or between conditions.
/// A finding has only the resulting action, so the rule id identifies it.
pub(super) fn is_disagreement(policy: &Policy, rule: &str) -> bool {
    policy.rule(rule).is_some_and(|rule| rule.actions.contains(&Disposition::Disagreement))
}

#[cfg(test)]
mod tests {
    use super::*;
    use statusgate_core::policy::PolicySet;

    #[test]
    fn disagreements_are_contradicted_phases_and_rules_with_this_action() {
        let policies = PolicySet::compile(&PolicySet::examples()).unwrap();
        let is = |name: &str, rule: &str| {
            let policy = policies.policies().iter().find(|policy| *policy.name == *name);
            is_disagreement(policy.unwrap(), rule)
        };
        assert!(is("appcat", "appcat/phase-ready"));
        assert!(!is("appcat", "appcat/phase-value"));
        assert!(!is("appcat", "appcat/phase-unknown"), "nothing contradicts Unknown");
        assert!(is("stackable", "stackable/paused-and-stopped"));
        assert!(
            !is("stackable", "stackable/available-while-stopped"),
            "it always warns, independent of the policy"
        );
    }
}
