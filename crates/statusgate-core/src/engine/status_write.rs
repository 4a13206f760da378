//! What a write means for the life of an object, for metrics.

use super::evidence::phase_of;
use super::health::Health;
use super::transition::phase_since;
use crate::model::{Json, Object, Subject, parse_rfc3339};
use crate::policy::Policy;
use crate::policy::convention::{Convention, PhaseRules};

/// How much of a status a write changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusChange {
    /// Nothing: the API server stores nothing, unless something outside the status changed.
    None,
    /// Only the times that `steady-times` would restore.
    Times,
    /// Something else.
    Content,
}

impl StatusChange {
    /// All, by their position.
    pub const ALL: [Self; 3] = [Self::None, Self::Times, Self::Content];

    /// The name in metrics.
    pub const fn label(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Times => "times",
            Self::Content => "content",
        }
    }

    /// How much a value differs from the stored one, where the members with these names may be times.
    pub(super) fn between(times: &[String], written: &Json<'_>, stored: &Json<'_>) -> Self {
        let mut some_time_differs = false;
        match differ_only_in(times, written, stored, &mut some_time_differs) {
            false => Self::Content,
            true if some_time_differs => Self::Times,
            true => Self::None,
        }
    }
}

/// Whether two values are equal except for the times of members with these names.
fn differ_only_in(times: &[String], one: &Json<'_>, other: &Json<'_>, differs: &mut bool) -> bool {
    let is_time = |value: &Json<'_>| value.as_str().and_then(parse_rfc3339).is_some();
    match (one, other) {
        (Json::Object(one), Json::Object(other)) => one.all_pairs(other, |name, one, other| {
            differ_only_in(times, one, other, differs) || {
                let may_differ = times.iter().any(|time| time == name);
                let differs_here = may_differ && is_time(one) && is_time(other);
                *differs |= differs_here;
                differs_here
            }
        }),
        (Json::Array(one), Json::Array(other)) => {
            let mut pairs = one.iter().zip(other);
            one.len() == other.len()
                && pairs.all(|(one, other)| differ_only_in(times, one, other, differs))
        }
        _ => one == other,
    }
}

/// A write of a status under one policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusWrite {
    /// How much it changes.
    pub change: StatusChange,
    /// The phases before and after, if they differ: their positions in [`phase_names`].
    pub phases: Option<(usize, usize)>,
    /// How many seconds the object had the phase that the write replaces, if its status shows since when.
    pub in_phase: Option<u64>,
    /// The age of the object in seconds, if the write makes its health current. The object may have been
    /// current before: no status shows that.
    pub age_when_current: Option<u64>,
}

impl StatusWrite {
    /// The write of a request that the policy selects; `None` if it does not write a status: without the status
    /// subresource, every write of the object carries its status.
    pub fn of(policy: &Policy, subject: &Subject<'_>, now: i64) -> Option<Self> {
        let Subject { object, resource, .. } = subject;
        let old = subject.old.as_ref();
        let convention = &*policy.convention;
        let change = change_of(&convention.times, object, old);
        if change == StatusChange::None && subject.subresource.is_empty() {
            return None;
        }
        let mut write = Self { change, phases: None, in_phase: None, age_when_current: None };
        if change != StatusChange::Content {
            return Some(write);
        }
        let [from, to] = [old, Some(object)].map(|object| phase_of(convention, object?));
        if let Some(rules) = convention.phase.as_ref().filter(|_| from != to) {
            let (before, after) = (place_of(rules, from), place_of(rules, to));
            write.phases = (before != after).then_some((before, after));
        }
        if let (Some(_), Some(_), Some(old)) = (write.phases, from, old) {
            let since = phase_since(convention, old, &resource.version, now);
            write.in_phase = since.map(|since| seconds(since, now));
        }
        let is_current = |object: &Object<'_>| Health::is_current(convention, object, resource);
        // The stored object first: most objects stay current.
        if !old.is_some_and(is_current) && is_current(object) {
            let created = object.metadata.creation_timestamp.as_deref().and_then(parse_rfc3339);
            write.age_when_current = created.map(|created| seconds(created, now));
        }
        Some(write)
    }
}

/// The phases of a convention, and the words for an object without a phase and for every other text; empty
/// for a convention without a phase.
pub fn phase_names(convention: &Convention) -> impl Iterator<Item = &str> {
    convention.phase.iter().flat_map(|rules| {
        rules.phases.iter().map(|phase| &*phase.name).chain(["(none)", "(other)"])
    })
}

fn place_of(rules: &PhaseRules, phase: Option<&str>) -> usize {
    let others = rules.phases.len();
    let Some(phase) = phase else { return others };
    rules.phases.iter().position(|known| known.name == phase).unwrap_or(others + 1)
}

fn change_of(times: &[String], object: &Object<'_>, old: Option<&Object<'_>>) -> StatusChange {
    match (&object.status, old.and_then(|old| old.status.as_ref())) {
        _ if object.has_no_status() && old.is_none_or(Object::has_no_status) => StatusChange::None,
        (Some(written), Some(stored)) => StatusChange::between(times, written, stored),
        _ => StatusChange::Content,
    }
}

/// Clocks differ: a time after now is now.
fn seconds(since: i64, now: i64) -> u64 {
    u64::try_from(now.saturating_sub(since)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Operation, Resource, Writer};
    use crate::policy::PolicySet;

    const NOW: i64 = 1000;

    fn write(policy: &str, subresource: &str, old: &str, new: &str) -> Option<StatusWrite> {
        let policies = PolicySet::compile(&PolicySet::examples()).unwrap();
        let policy = policies.policies().iter().find(|found| *found.name == *policy).unwrap();
        let subject = Subject {
            resource: Resource { version: "v1".into(), ..Resource::default() },
            subresource: subresource.into(),
            operation: Operation::Update,
            writer: Writer::default(),
            object: Object::parse(new).unwrap(),
            old: (!old.is_empty()).then(|| Object::parse(old).unwrap()),
        };
        StatusWrite::of(policy, &subject, NOW)
    }

    fn change(policy: &str, old: &str, new: &str) -> StatusChange {
        write(policy, "status", old, new).unwrap().change
    }

    #[test]
    fn only_equal_statuses_are_no_change_and_only_known_members_are_times() {
        let status = |time: &str, member: &str, reason: &str| {
            format!(
                r#"{{"status":{{"{member}":"2024-01-01T00:00:0{time}Z","conditions":[{{"type":"Ready",
                    "status":"True","reason":"{reason}","lastTransitionTime":"2024-01-01T00:00:0{time}Z"}}]}}}}"#
            )
        };
        let stored = status("1", "lastUpdateTime", "Up");
        for policy in ["metav1", "cert-manager", "appcat"] {
            let change = |new: &str| change(policy, &stored, new);
            assert_eq!(change(&stored), StatusChange::None);
            assert_eq!(change(&status("2", "lastUpdateTime", "Up")), StatusChange::Times);
            assert_eq!(change(&status("2", "lastUpdateTime", "Down")), StatusChange::Content);
            assert_eq!(change("{}"), StatusChange::Content);
        }
        let other = status("1", "lastSync", "Up");
        assert_eq!(change("metav1", &other, &status("2", "lastSync", "Up")), StatusChange::Content);
        assert_eq!(change("metav1", "{}", r#"{"status":{}}"#), StatusChange::None);
    }

    #[test]
    fn without_an_inherited_list_the_transition_times_are_times() {
        let policies = PolicySet::compile(&[]).unwrap();
        let times = |name: &str| policies.conventions()[name].times.join(" ");
        assert_eq!(times("ack"), "lastTransitionTime");
        assert_eq!(times("appcat"), times("metav1"));
        assert!(times("metav1").contains("lastHeartbeatTime"));
    }

    #[test]
    fn an_unchanged_status_in_the_main_resource_is_no_status_write() {
        let ready = r#"{"status":{"phase":"Ready"}}"#;
        assert_eq!(write("appcat", "", ready, ready), None);
        assert_eq!(write("appcat", "", "", "{}"), None);
        let created = write("appcat", "", "", ready).unwrap();
        assert_eq!(created.change, StatusChange::Content);
        assert!(write("appcat", "", ready, r#"{"status":{"phase":"Failed"}}"#).is_some());
    }

    #[test]
    fn a_phase_ends_with_its_replacement_and_counts_since_its_time() {
        let names: Vec<String> = {
            let policies = PolicySet::compile(&[]).unwrap();
            phase_names(&policies.conventions()["appcat"]).map(str::to_owned).collect()
        };
        let phases = |old: &str, new: &str| {
            let write = write("appcat", "status", old, new).unwrap();
            let names = write.phases.map(|(from, to)| format!("{}→{}", names[from], names[to]));
            (names.unwrap_or_default(), write.in_phase)
        };
        let status = |status: &str| format!(r#"{{"status":{{{status}}}}}"#);
        let failed = status(r#""phase":"Failed","lastTransitionTime":"1970-01-01T00:10:00Z""#);
        let ready = status(r#""phase":"Ready""#);
        let odd = status(r#""phase":"ready""#);
        assert_eq!(phases(&failed, &ready), ("Failed→Ready".to_owned(), Some(400)));
        assert_eq!(phases(&ready, &failed), ("Ready→Failed".to_owned(), None));
        assert_eq!(phases("{}", &ready), ("(none)→Ready".to_owned(), None));
        assert_eq!(phases(&ready, &odd), ("Ready→(other)".to_owned(), None));
        assert_eq!(phases(&ready, &ready.replace('}', r#","message":"x"}"#)).0, "");
        let ahead = failed.replace("00:10:00", "00:16:41");
        assert_eq!(phases(&ahead, &ready).1, Some(0), "the clock of its writer is ahead");
    }

    #[test]
    fn an_object_that_becomes_current_has_its_age() {
        let object = |phase: &str| {
            format!(
                r#"{{"metadata":{{"creationTimestamp":"1970-01-01T00:01:40Z"}},"status":{{"phase":"{phase}"}}}}"#
            )
        };
        let age = |old: &str, new: &str| {
            write("appcat", "status", old, new).and_then(|write| write.age_when_current)
        };
        let (ready, failed) = (object("Ready"), object("Failed"));
        assert_eq!(age("{}", &ready), Some(900));
        assert_eq!(age(&failed, &ready), Some(900), "also when it returns");
        assert_eq!(age(&ready, &failed), None);
        assert_eq!(age(&ready, &ready.replace("\"Ready\"", "\"Ready\",\"message\":\"x\"")), None);
        assert_eq!(age(&failed, r#"{"status":{"phase":"Ready"}}"#), None, "without a creation");
    }
}
