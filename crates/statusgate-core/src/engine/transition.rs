//! The times at which a status last changed, from the status itself.

use crate::model::{GO_ZERO_TIME, Json, Object, parse_rfc3339};
use crate::policy::convention::Convention;

/// The newest transition time under these conventions, otherwise the creation, in Unix seconds.
pub fn since<'c>(
    conventions: impl IntoIterator<Item = &'c Convention>,
    object: &Object<'_>,
    version: &str,
    now: i64,
) -> Option<i64> {
    let times = conventions.into_iter();
    let newest = times.filter_map(|of| newest_transition(of, object, version, now)).max();
    newest.or_else(|| parse_rfc3339(object.metadata.creation_timestamp.as_deref()?))
}

/// The newest transition time of the phase and of the conditions in all lists of the convention, in Unix
/// seconds. Invalid and future times are ignored: with a future time, a disagreement would never
/// persist.
pub(super) fn newest_transition(
    convention: &Convention,
    object: &Object<'_>,
    version: &str,
    now: i64,
) -> Option<i64> {
    let phase = time_of_phase(convention, object).flatten();
    newest_of_conditions(convention, object, version).chain(phase).filter(is_past(now)).max()
}

/// Since when the object has its phase: the time of the phase, if the convention has one, otherwise the newest
/// transition time of its conditions.
pub(super) fn phase_since(
    convention: &Convention,
    object: &Object<'_>,
    version: &str,
    now: i64,
) -> Option<i64> {
    match time_of_phase(convention, object) {
        Some(time) => time.filter(is_past(now)),
        None => newest_of_conditions(convention, object, version).filter(is_past(now)).max(),
    }
}

/// The tolerated clock skew in seconds.
const SKEW: i64 = 300;

fn is_past(now: i64) -> impl Fn(&i64) -> bool {
    move |time| *time > GO_ZERO_TIME && *time <= now.saturating_add(SKEW)
}

/// The transition time of the phase; `None` outside if the convention has none.
fn time_of_phase(convention: &Convention, object: &Object<'_>) -> Option<Option<i64>> {
    let time = convention.phase.as_ref()?.transition_time.as_ref()?;
    Some(object.at_status(&time.path).and_then(Json::as_str).and_then(parse_rfc3339))
}

fn newest_of_conditions<'o>(
    convention: &'o Convention,
    object: &'o Object<'_>,
    version: &'o str,
) -> impl Iterator<Item = i64> {
    let lists = convention.conditions.iter().filter(move |list| list.applies_to(version));
    lists.flat_map(move |list| {
        let items = list.items(object).into_iter().flatten();
        items.filter_map(|item| parse_rfc3339(item.get(list.time_member())?.as_str()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::PolicySet;

    const CONDITIONS: &str = r#""conditions":[{"lastTransitionTime":"1970-01-01T00:00:07Z"},
        {"lastTransitionTime":"soon"},{"lastTransitionTime":"1970-01-01T00:00:05Z"}]"#;
    const PHASE: &str = r#""lastTransitionTime":"1970-01-01T00:00:02Z""#;

    type Time = fn(&Convention, &Object<'_>, &str, i64) -> Option<i64>;

    fn time(time: Time, convention: &str, status: &str) -> Option<i64> {
        let policies = PolicySet::compile(&[]).unwrap();
        let object = format!(r#"{{"status":{{{status}}}}}"#);
        time(&policies.conventions()[convention], &Object::parse(&object).unwrap(), "v1", 1000)
    }

    #[test]
    fn the_newest_time_of_phase_and_conditions_counts() {
        let newest = |status: &str| time(newest_transition, "appcat", status);
        assert_eq!(newest(CONDITIONS), Some(7));
        assert_eq!(newest(&format!("{PHASE},{CONDITIONS}")), Some(7));
        assert_eq!(newest(&PHASE.replace(":02Z", ":09Z")), Some(9));
        assert_eq!(newest(r#""phase":"Ready""#), None);
        let to_come = PHASE.replace("1970", "2999");
        assert_eq!(newest(&format!("{to_come},{CONDITIONS}")), Some(7));
        let skewed = PHASE.replace("00:00:02", "00:21:40");
        assert_eq!(newest(&format!("{skewed},{CONDITIONS}")), Some(1300));
        assert_eq!(
            newest(&PHASE.replace("1970-01-01T00:00:02", "0001-01-01T00:00:00")),
            None,
            "Go's unset time"
        );
    }

    #[test]
    fn the_time_of_a_phase_comes_before_those_of_conditions() {
        let since = |convention: &str, status: &str| time(phase_since, convention, status);
        assert_eq!(since("appcat", &format!("{PHASE},{CONDITIONS}")), Some(2));
        assert_eq!(since("appcat", CONDITIONS), None);
        assert_eq!(since("argo-rollouts", CONDITIONS), Some(7));
        assert_eq!(since("argo-rollouts", ""), None);
    }
}
