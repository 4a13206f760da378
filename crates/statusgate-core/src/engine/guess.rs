//! A guess at the health of an object whose kind no convention describes, from the words of its status.
//!
//! The worst sign counts, and no sign is unknown. The words were chosen with half of the vendors whose health tests Argo CD
//! has, and judged once with the other half. `hack/argo-health.sh` compares them with all of these tests.

mod words;

use super::Health;
use crate::documents::HealthStatus;
use crate::model::Json;
use crate::policy::convention::HealthClass;
use words::{Says, is_goal, says};

/// Members of a status with a word for the whole, by their ending.
const WORDS: &[&str] = &["phase", "state", "status", "health", "compliant"];
/// Members that are about something else than the present state.
const HISTORY: &[&str] =
    &["histor", "event", "log", "executor", "attempt", "timestamp", "transition"];
const OTHER_TIMES: &[&str] =
    &["last", "previous", "prev", "old", "desired", "target", "backup", "restore"];
/// Members with the text of an error.
const ERRORS: &[&str] = &["error", "errMsg", "errorMessage", "failureMessage", "failureReason"];
/// The reasons of Progressing=True of a rollout that is done (pkg/controller/deployment/util, and OpenShift's operators).
const ROLLED_OUT: &[&str] = &["NewReplicaSetAvailable", "RolloutCompleted", "AsExpected"];

/// How deep lists of conditions are, and words about parts.
const MAX_DEPTH: (usize, usize) = (4, 8);

type Sign = (HealthStatus, String);

/// Guesses.
pub fn guess(object: &Json<'_>) -> Health {
    let member = |path: [&str; 2]| path.iter().try_fold(object, |value, name| value.get(name));
    if member(["metadata", "deletionTimestamp"]).is_some_and(|time| !time.is_null()) {
        return Health::new(HealthStatus::Terminating, "metadata.deletionTimestamp is set");
    }
    for name in ["paused", "suspend", "suspended"] {
        if matches!(member(["spec", name]), Some(Json::Bool(true))) {
            return Health::new(HealthStatus::Suspended, &format!("spec.{name} is true"));
        }
    }
    let Some(status) = object.get("status").filter(|status| !status.is_empty()) else {
        return Health::new(HealthStatus::InProgress, "no status");
    };
    let generation = member(["metadata", "generation"]).and_then(Json::as_i64);
    let is_old = |about: Option<&Json<'_>>| {
        let observed = about.and_then(|about| match about {
            Json::String(text) => text.parse().ok(),
            about => about.as_i64(),
        });
        observed.zip(generation).is_some_and(|(observed, newest): (i64, i64)| observed < newest)
    };
    if is_old(status.get("observedGeneration")) {
        return Health::new(HealthStatus::InProgress, super::health::STALE);
    }
    let mut signs = Vec::new();
    let mut is_stale = false;
    each_list(status, 0, &mut |list| {
        let (old, newest): (Vec<&Json<'_>>, Vec<&Json<'_>>) =
            list.iter().partition(|item| is_old(item.get("observedGeneration")));
        is_stale |= !old.is_empty();
        of_conditions(&newest, &mut signs);
    });
    of_members(status, &mut signs);
    of_replicas(status, member(["spec", "replicas"]), &mut signs);
    // Of several signs, the first of the worst.
    let worst = signs.into_iter().rev().max_by_key(|(is, _)| rank(*is));
    let health = match (worst, part(status, 0)) {
        (Some((HealthStatus::Current, _)), _) if is_stale => {
            (HealthStatus::InProgress, super::health::STALE.to_owned())
        }
        (Some((HealthStatus::Current, _)), Some((_, because))) => {
            (HealthStatus::InProgress, because)
        }
        (Some(sign), _) => sign,
        (None, Some(sign)) => sign,
        (None, None) if is_stale => (HealthStatus::InProgress, super::health::STALE.to_owned()),
        (None, None) => (HealthStatus::Unknown, "no word of its status says".to_owned()),
    };
    let (is, reason) = health;
    // Whether the controller tries again is unknown.
    let retried = is == HealthStatus::Failed;
    Health { class: HealthClass { is, retried }, reason }
}

const fn rank(is: HealthStatus) -> u8 {
    match is {
        HealthStatus::Failed => 3,
        HealthStatus::Suspended => 2,
        HealthStatus::InProgress => 1,
        _ => 0,
    }
}

/// Calls a function with each list of conditions.
fn each_list<'j, 'a>(value: &'j Json<'a>, depth: usize, found: &mut impl FnMut(&'j [Json<'a>])) {
    match value {
        Json::Object(members) if depth <= MAX_DEPTH.0 => {
            for (name, value) in members.iter() {
                match value {
                    Json::Array(items) if is_list_name(name) => found(items),
                    value => each_list(value, depth + 1, found),
                }
            }
        }
        Json::Array(items) if depth <= MAX_DEPTH.0 => {
            items.iter().for_each(|item| each_list(item, depth + 1, found));
        }
        _ => {}
    }
}

fn is_list_name(name: &str) -> bool {
    name.to_ascii_lowercase().ends_with("conditions")
}

/// The signs of the conditions of one list.
fn of_conditions(list: &[&Json<'_>], signs: &mut Vec<Sign>) {
    let text = |item: &Json<'_>, name: &str| match item.get(name) {
        Some(Json::Bool(true)) => "True".to_owned(),
        Some(Json::Bool(false)) => "False".to_owned(),
        value => value.and_then(Json::as_str).unwrap_or_default().to_owned(),
    };
    let conditions = list.iter().map(|item| {
        let kind = text(item, "type");
        // A type can have the prefix of a domain.
        let kind = kind.rsplit('/').next().unwrap_or_default().to_owned();
        (kind, text(item, "status"), text(item, "reason"))
    });
    let conditions: Vec<(String, String, String)> = conditions.collect();
    let has_ready = conditions.iter().any(|(kind, ..)| kind == "Ready");
    let is_done = conditions.iter().any(|(kind, status, _)| {
        status == "True" && ["Complete", "Completed", "Succeeded"].contains(&kind.as_str())
    });
    for (kind, status, reason) in &conditions {
        let because = match reason.as_str() {
            "" => format!("{kind} is {status}"),
            reason => format!("{kind} is {status}: {reason}"),
        };
        let is = of_condition(kind, status, reason, is_done, has_ready);
        signs.extend(is.map(|is| (is, because)));
    }
}

fn of_condition(
    kind: &str,
    status: &str,
    reason: &str,
    is_done: bool,
    has_ready: bool,
) -> Option<HealthStatus> {
    use HealthStatus::{Current, Failed, InProgress, Suspended};
    let (says, why) = (says(kind), says(reason));
    // Ready is the summary of its list; these are about the spec.
    let counts = matches!(kind, "Ready" | "Synced" | "Reconciled")
        || !has_ready && matches!(says, Some(Says::Good | Says::Milestone));
    match (says, status) {
        (Some(Says::Bad), "True") => Some(Failed),
        (Some(Says::Paused), "True") => Some(Suspended),
        (Some(Says::Working), "True") => {
            let is_over = kind == "Progressing" && ROLLED_OUT.contains(&reason);
            (!is_over).then_some(InProgress)
        }
        (Some(Says::Working), "False") => {
            (kind == "Progressing" && why == Some(Says::Bad)).then_some(Failed)
        }
        (Some(Says::Bad | Says::Paused | Says::Working), _) => None,
        _ if !counts => None,
        (_, "True") if why == Some(Says::Bad) => Some(Failed),
        (Some(Says::Good), "True") => Some(Current),
        (_, "Unknown") => (!is_done).then_some(InProgress),
        (_, "False") if !is_done => Some(match why {
            Some(Says::Bad) => Failed,
            Some(Says::Paused) => Suspended,
            // `PullRequestNotReady` names what failed, `NotReady` nothing.
            Some(Says::Working) if reason == "NotReady" || !reason.ends_with("NotReady") => {
                InProgress
            }
            _ if reason.is_empty() || reason.to_ascii_lowercase().ends_with("running") => {
                InProgress
            }
            _ if is_goal(kind) => InProgress,
            _ => Failed,
        }),
        _ => None,
    }
}

/// The signs of the members of a status.
fn of_members(status: &Json<'_>, signs: &mut Vec<Sign>) {
    let Json::Object(members) = status else { return };
    let is_run = ["startTime", "startedAt", "startTimestamp"].iter();
    let is_run = is_run.copied().any(|name| status.get(name).is_some());
    for (name, value) in members.iter() {
        if !is_word(name) {
            continue;
        }
        let inner = ["phase", "state", "status", "health"].iter();
        let mut inner = inner.filter_map(|inner| value.get(inner)?.as_str());
        let Some(word) = value.as_str().or_else(|| inner.next()) else { continue };
        let is = match says(word) {
            // A run that is running is not done; a service is.
            _ if word.eq_ignore_ascii_case("running") && is_run => Some(HealthStatus::InProgress),
            _ if word.eq_ignore_ascii_case("running") => Some(HealthStatus::Current),
            says => says.and_then(Says::health),
        };
        signs.extend(is.map(|is| (is, format!("status.{name} is {word}"))));
    }
    for name in ERRORS {
        let is_set = match status.get(name) {
            None | Some(Json::Bool(false)) => false,
            Some(value) => !value.is_empty() && value.as_i64() != Some(0),
        };
        signs.extend(is_set.then(|| (HealthStatus::Failed, format!("status.{name} is set"))));
    }
    for name in ["ready", "healthy", "available"] {
        if let Some(Json::Bool(value)) = status.get(name) {
            let is = if *value { HealthStatus::Current } else { HealthStatus::InProgress };
            signs.push((is, format!("status.{name} is {value}")));
        }
    }
}

fn of_replicas(status: &Json<'_>, wanted: Option<&Json<'_>>, signs: &mut Vec<Sign>) {
    let counts = ["readyReplicas", "availableReplicas"].iter();
    let least = counts.filter_map(|name| status.get(name)?.as_i64()).min();
    if let (Some(wanted), Some(least)) = (wanted.and_then(Json::as_i64), least) {
        let is = if least < wanted { HealthStatus::InProgress } else { HealthStatus::Current };
        signs.push((is, format!("{least} of {wanted} replicas")));
    }
}

/// A part of the status that is bad or not done. It only prevents that the whole is current.
fn part(value: &Json<'_>, depth: usize) -> Option<Sign> {
    match value {
        Json::Object(members) if depth <= MAX_DEPTH.1 => {
            members.iter().find_map(|(name, value)| {
                if is_history(name) || is_list_name(name) {
                    return None;
                }
                let lower = name.to_ascii_lowercase();
                let is_word = ["phase", "state", "status", "health"].contains(&lower.as_str());
                let word = value.as_str().filter(|_| depth > 0 && is_word);
                let bad = word.and_then(|word| {
                    let says = says(word).filter(|says| matches!(says, Says::Bad | Says::Working));
                    Some((says.and_then(Says::health)?, format!("a part has {name} {word}")))
                });
                bad.or_else(|| part(value, depth + 1))
            })
        }
        Json::Array(items) if depth <= MAX_DEPTH.1 => {
            items.iter().find_map(|item| part(item, depth + 1))
        }
        _ => None,
    }
}

fn is_word(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    WORDS.iter().any(|ending| lower.ends_with(ending)) && !is_history(name)
}

fn is_history(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    OTHER_TIMES.iter().any(|start| lower.starts_with(start))
        || HISTORY.iter().any(|part| lower.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_sign_counts_and_no_sign_is_unknown() {
        for (object, expected) in [
            (r#"{"status": {"phase": "Running"}}"#, "current: status.phase is Running"),
            (
                r#"{"status": {"phase": "Running", "startTime": "t"}}"#,
                "inProgress: status.phase is Running",
            ),
            (
                r#"{"status": {"phase": "Active", "conditions": [{"type": "Degraded", "status": "True", "reason": "DiskFull"}]}}"#,
                "failed (retried): Degraded is True: DiskFull",
            ),
            (
                r#"{"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "Pending"}]}}"#,
                "inProgress: Ready is False: Pending",
            ),
            (
                r#"{"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "DatabaseNotReady"}]}}"#,
                "failed (retried): Ready is False: DatabaseNotReady",
            ),
            (
                r#"{"status": {"conditions": [{"type": "example.com/DependenciesInstalled", "status": "True"}]}}"#,
                "current: DependenciesInstalled is True",
            ),
            // A milestone that was reached proves nothing.
            (
                r#"{"status": {"conditions": [{"type": "Created", "status": "True"}]}}"#,
                "unknown: no word of its status says",
            ),
            // Parts can only prevent that the whole is current.
            (
                r#"{"status": {"state": "ready", "nodes": [{"state": "failed"}]}}"#,
                "inProgress: a part has state failed",
            ),
            (
                r#"{"status": {"nodes": [{"state": "ready"}]}}"#,
                "unknown: no word of its status says",
            ),
            (
                r#"{"metadata": {"generation": 2}, "status": {"conditions": [{"type": "Ready", "status": "True", "observedGeneration": 1}]}}"#,
                "inProgress: the controller has not observed the newest generation",
            ),
            (
                r#"{"spec": {"replicas": 3}, "status": {"readyReplicas": 2}}"#,
                "inProgress: 2 of 3 replicas",
            ),
            (
                r#"{"spec": {"suspend": true}, "status": {"error": "e"}}"#,
                "suspended: spec.suspend is true",
            ),
            (
                r#"{"status": {"error": "e", "ready": true}}"#,
                "failed (retried): status.error is set",
            ),
            (r#"{"status": {"lastState": "failed"}}"#, "unknown: no word of its status says"),
            (r#"{"status": {}}"#, "inProgress: no status"),
            (r#"{"status": []}"#, "inProgress: no status"),
            (r#"{"status": "Failed"}"#, "unknown: no word of its status says"),
        ] {
            let Health { class, reason } = guess(&Json::parse(object).unwrap());
            assert_eq!(format!("{class}: {reason}"), expected, "{object}");
        }
    }
}
