//! Which findings are disagreements, and how long an object is unchanged.

use statusgate_core::model::{Json, Object, parse_rfc3339};
use statusgate_core::policy::convention::ConditionList;
use statusgate_core::policy::{Disposition, Policy};

/// Whether a rule of a policy reports disagreements, between phase and conditions or between conditions.
/// A finding has only the resulting action, so the rule id identifies it.
pub(super) fn is_disagreement(policy: &Policy, rule: &str) -> bool {
    policy.rule(rule).is_some_and(|rule| rule.actions.contains(&Disposition::Disagreement))
}

/// The newest transition time of the phase and of the conditions in all lists of the convention, in Unix
/// seconds. Invalid and future times are ignored: with a future time, a disagreement would never
/// persist.
pub(super) fn newest_transition(
    policy: &Policy,
    object: &Object<'_>,
    version: &str,
    now: i64,
) -> Option<i64> {
    let convention = &policy.convention;
    let lists = convention.conditions.iter().filter(|list| list.applies_to(version));
    let conditions = lists.flat_map(|list| {
        let time = |item: &Json<'_>| parse_rfc3339(item.get(member(list))?.as_str()?);
        let items = list.items(object).into_iter().flatten();
        items.filter_map(time).collect::<Vec<_>>()
    });
    let phase = convention.phase.as_ref().and_then(|rules| rules.transition_time.as_ref());
    let phase = phase.and_then(|time| object.at_status(&time.path)?.as_str());
    let times = conditions.chain(phase.and_then(parse_rfc3339));
    times.filter(|time| *time <= now.saturating_add(SKEW)).max()
}

/// The tolerated clock skew in seconds.
const SKEW: i64 = 300;

/// The member with the transition time: that of the convention, otherwise that of metav1.
fn member(list: &ConditionList) -> &str {
    match &list.times {
        Some(times) if !times.member.is_empty() => &times.member,
        _ => "lastTransitionTime",
    }
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

    #[test]
    fn the_newest_time_of_phase_and_conditions_counts() {
        let policies = PolicySet::compile(&PolicySet::examples()).unwrap();
        let policy = policies.policies().iter().find(|policy| *policy.name == *"appcat").unwrap();
        let newest =
            |text: &str| newest_transition(policy, &Object::parse(text).unwrap(), "v1", 1000);
        let conditions = r#""conditions":[{"lastTransitionTime":"1970-01-01T00:00:07Z"},
            {"lastTransitionTime":"soon"},{"lastTransitionTime":"1970-01-01T00:00:05Z"}]"#;
        assert_eq!(newest(&format!(r#"{{"status":{{{conditions}}}}}"#)), Some(7));
        let phase = r#""lastTransitionTime":"1970-01-01T00:00:09Z""#;
        assert_eq!(newest(&format!(r#"{{"status":{{{phase},{conditions}}}}}"#)), Some(9));
        assert_eq!(newest(r#"{"status":{"phase":"Ready"}}"#), None);
        assert_eq!(newest("{}"), None);
        let to_come = phase.replace("1970", "2999");
        assert_eq!(newest(&format!(r#"{{"status":{{{to_come},{conditions}}}}}"#)), Some(7));
        let skewed = phase.replace("00:00:09", "00:21:40");
        assert_eq!(newest(&format!(r#"{{"status":{{{skewed},{conditions}}}}}"#)), Some(1300));
    }
}
