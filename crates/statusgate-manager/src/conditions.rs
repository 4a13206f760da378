//! The status of a document: what is stored, and what it should be.
//!
//! It follows metav1 and kstatus: Stalled exists only while the document is not accepted, and Reconciling
//! only while it is accepted and not enforced everywhere. Both are then True.

use jiff::{Timestamp, Unit};
use serde::{Deserialize, Serialize};

use super::registry::{LastAccepted, Problem, ProblemKind};
use statusgate_cluster::manifests::coverage::Coverage;
use statusgate_server::telemetry::lines::last_boundary;

/// The status of a document, as stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Status {
    /// The generation that the conditions are about.
    pub observed_generation: Option<i64>,
    /// Accepted, Enforced, Reconciling, Stalled, and those of others.
    pub conditions: Vec<Condition>,
    /// What each replica enforces.
    pub replicas: Vec<ReplicaEntry>,
    /// The last accepted text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_accepted: Option<LastAccepted>,
}

/// A `metav1.Condition`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Condition {
    /// The type.
    pub r#type: String,
    /// True, False or Unknown.
    pub status: String,
    /// The generation that it is about.
    pub observed_generation: Option<i64>,
    /// When the status changed.
    pub last_transition_time: String,
    /// One word.
    pub reason: String,
    /// Sentences.
    pub message: String,
}

/// What a replica enforces of a document.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReplicaEntry {
    /// The name of the replica.
    pub name: String,
    /// The generation that it enforces.
    pub generation: i64,
    /// When it loaded this generation.
    pub loaded_time: String,
}

/// What is known of the registrations for the resources of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registered<'c> {
    /// The document needs no registration: it is a convention.
    NotNeeded,
    /// statusgate does not manage the registrations.
    NotManaged,
    /// They were not read yet.
    NotRead,
    /// They were read.
    Known(&'c Coverage),
}

/// What decides the conditions of a document.
#[derive(Clone, Copy, Debug)]
pub struct DocumentState<'f> {
    /// `metadata.generation`.
    pub generation: i64,
    /// Why this generation is not accepted.
    pub problem: Option<&'f Problem>,
    /// The names of the replicas that are alive.
    pub live: &'f [String],
    /// The registrations.
    pub registered: Registered<'f>,
}

const ACCEPTED: &str = "Accepted";
const ENFORCED: &str = "Enforced";
const RECONCILING: &str = "Reconciling";
const STALLED: &str = "Stalled";

/// The types that statusgate writes.
const TYPES: [&str; 4] = [ACCEPTED, ENFORCED, RECONCILING, STALLED];

/// The limit of `metav1.Condition`, in bytes: the API server counts characters, Go clients bytes.
const MAX_MESSAGE: usize = 32_768;

/// The names in one sentence.
const MAX_NAMES: usize = 10;

/// How long an entry stays without a Lease of its replica. The entry of a new replica may be
/// written before its Lease is read.
const GRACE_SECONDS: i64 = 20;

impl Status {
    /// The conditions that a document should have. A time is kept unless the status changes.
    pub fn conditions_for(&self, state: &DocumentState<'_>, now: Timestamp) -> Vec<Condition> {
        let accepted = state.accepted();
        let (enforced, reason, message) = state.enforced(&self.replicas);
        let mut wanted = vec![accepted, (ENFORCED, enforced, reason, message.clone())];
        if let Some(problem) = state.problem {
            let first = problem.message.lines().next().unwrap_or_default();
            wanted.push((STALLED, TRUE, problem.kind.reason(), first.to_owned()));
        } else if enforced != TRUE {
            wanted.push((RECONCILING, TRUE, reason, message));
        }
        let conditions = wanted.into_iter().map(|(r#type, status, reason, message)| {
            let stored = self.conditions.iter().find(|stored| stored.r#type == r#type);
            let kept = stored.filter(|stored| stored.status == status);
            let kept = kept.map(|stored| stored.last_transition_time.clone());
            Condition {
                r#type: r#type.to_owned(),
                status: status.to_owned(),
                observed_generation: Some(state.generation),
                last_transition_time: kept.unwrap_or_else(|| seconds(now)),
                reason: reason.to_owned(),
                message: cut(message),
            }
        });
        conditions.collect()
    }

    /// Whether these conditions are stored, and no other ones of the types that statusgate writes.
    pub fn has(&self, generation: i64, conditions: &[Condition]) -> bool {
        let own = self.conditions.iter().filter(|stored| TYPES.contains(&stored.r#type.as_str()));
        self.observed_generation == Some(generation)
            && own.count() == conditions.len()
            && conditions.iter().all(|condition| self.conditions.contains(condition))
    }

    /// The generation in the entry of a replica.
    pub fn generation_of(&self, replica: &str) -> Option<i64> {
        self.replicas.iter().find(|entry| entry.name == replica).map(|entry| entry.generation)
    }

    /// The replicas that have an entry and are no longer alive.
    pub fn dead<'s>(
        &'s self,
        live: &'s [String],
        now: Timestamp,
    ) -> impl Iterator<Item = &'s str> + 's {
        let old = self.replicas.iter().filter(move |entry| !entry.is_new(now));
        old.filter(|entry| !live.contains(&entry.name)).map(|entry| entry.name.as_str())
    }

    /// Whether a replica that is not known to be alive has just written its entry.
    pub fn has_unknown(&self, live: &[String], now: Timestamp) -> bool {
        self.replicas.iter().any(|entry| !live.contains(&entry.name) && entry.is_new(now))
    }
}

impl ReplicaEntry {
    fn is_new(&self, now: Timestamp) -> bool {
        let loaded: Result<Timestamp, _> = self.loaded_time.parse();
        // A time far in the future comes from a wrong clock.
        loaded.is_ok_and(|loaded| (now.as_second() - loaded.as_second()).abs() < GRACE_SECONDS)
    }
}

/// Type, status, reason, message.
type Wanted = (&'static str, &'static str, &'static str, String);

const TRUE: &str = "True";
const FALSE: &str = "False";
const UNKNOWN: &str = "Unknown";

impl DocumentState<'_> {
    fn accepted(&self) -> Wanted {
        if let Some(problem) = self.problem {
            return (ACCEPTED, FALSE, problem.kind.reason(), problem.message.clone());
        }
        let (mut message, mut reason) = ("the document has no mistakes".to_owned(), "Accepted");
        if let Registered::Known(Coverage { left_out, withheld, .. }) = self.registered {
            if !left_out.is_empty() {
                let versions = listed(left_out);
                message.push_str(&format!("; it does not select the served {versions}"));
            }
            if !withheld.is_empty() {
                reason = "DefaultsWithheld";
                let what = listed(withheld);
                message.push_str(&format!("; some values are not set: {what}"));
            }
        }
        (ACCEPTED, TRUE, reason, message)
    }

    /// Status, reason and message.
    fn enforced(&self, entries: &[ReplicaEntry]) -> (&'static str, &'static str, String) {
        let mut late = Vec::new();
        for name in self.live {
            let entry = entries.iter().find(|entry| entry.name == *name);
            match entry.map(|entry| entry.generation) {
                Some(generation) if generation == self.generation => {}
                Some(generation) => late.push(format!("{name} enforces generation {generation}")),
                None => late.push(format!("{name} enforces none")),
            }
        }
        let (all, generation) = (self.live.len(), self.generation);
        let (replicas, enforce) = match all {
            1 => ("replica", "enforces"),
            _ => ("replicas", "enforce"),
        };
        let mut message =
            format!("{} of {all} {replicas} {enforce} generation {generation}", all - late.len());
        if !late.is_empty() {
            message.push_str(&format!(": {}", listed(&late)));
        }
        let (status, reason, text) = self.covered();
        message.push_str(&text);
        // With a conflict, the text is in use, but not for all of its resources.
        let problem = self.problem.filter(|problem| problem.kind != ProblemKind::ConventionDeleted);
        match (problem, late.is_empty()) {
            (Some(_), _) => (FALSE, "NotAccepted", message),
            (None, false) => (FALSE, "ReplicasPending", message),
            (None, true) => (status, reason, message),
        }
    }

    /// Status and reason if all replicas enforce the document, and the end of the message: whether the
    /// registrations cover all resources.
    fn covered(&self) -> (&'static str, &'static str, String) {
        let coverage = match self.registered {
            Registered::NotNeeded => return (TRUE, "Enforced", String::new()),
            Registered::NotManaged => {
                let text = "; statusgate does not manage the registrations";
                return (TRUE, "Enforced", text.to_owned());
            }
            Registered::NotRead => {
                let text = "; the registrations were not read yet";
                return (UNKNOWN, "RegistrationsNotRead", text.to_owned());
            }
            Registered::Known(coverage) => coverage,
        };
        let Coverage { covered, missing, absent, fault, .. } = coverage;
        let mut text = match (covered.len(), missing.is_empty()) {
            (_, false) => format!("; the registrations do not cover {}", listed(missing)),
            // Nothing to enforce it for is no reason to wait.
            (0, _) => {
                let text = "; the cluster has none of its resources";
                return (TRUE, "NoResources", text.to_owned());
            }
            (1, _) => "; the registrations cover 1 resource".to_owned(),
            (count, _) => format!("; the registrations cover {count} resources"),
        };
        if let Some(fault) = fault {
            text.push_str(&format!(": {fault}"));
        }
        // Not an error: a policy for a product may be installed without all of its parts.
        if !absent.is_empty() {
            text.push_str(&format!("; the cluster does not serve {}", listed(absent)));
        }
        match missing.is_empty() {
            true => (TRUE, "Enforced", text),
            false => (FALSE, "NotRegistered", text),
        }
    }
}

impl ProblemKind {
    const fn reason(self) -> &'static str {
        match self {
            Self::Invalid => "Invalid",
            Self::BreaksOthers => "BreaksOthers",
            Self::ConventionNotAccepted => "ConventionNotAccepted",
            Self::ConventionDeleted => "ConventionDeleted",
            Self::Conflict => "Conflict",
        }
    }
}

/// A time as `metav1.Time` writes it.
pub fn seconds(time: Timestamp) -> String {
    time.round(Unit::Second).unwrap_or(time).to_string()
}

fn listed(names: &[String]) -> String {
    match names.len().checked_sub(MAX_NAMES) {
        None | Some(0) => names.join(", "),
        Some(more) => format!("{} and {more} more", names[..MAX_NAMES].join(", ")),
    }
}

/// A message within the limit, cut at the end of a line.
fn cut(mut message: String) -> String {
    const MORE: &str = "\n… and more: see statusgate lint";
    if message.len() > MAX_MESSAGE {
        let end = last_boundary(&message, MAX_MESSAGE - MORE.len());
        let end = message[..end].rfind('\n').unwrap_or(end);
        message.truncate(end);
        message.push_str(MORE);
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::constant(1_800_000_000, 600_000_000);

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn entry(name: &str, generation: i64) -> ReplicaEntry {
        let loaded_time = "2026-01-01T00:00:00Z".to_owned();
        ReplicaEntry { name: name.to_owned(), generation, loaded_time }
    }

    fn said(status: &Status, state: &DocumentState<'_>) -> Vec<String> {
        let conditions = status.conditions_for(state, NOW);
        let said =
            conditions.iter().map(|Condition { r#type, status, reason, message, .. }| {
                format!("{type}={status} {reason}: {message}")
            });
        said.collect()
    }

    #[test]
    fn the_message_names_what_is_missing() {
        let live = names(&["a", "b"]);
        let status =
            |entries: &[ReplicaEntry]| Status { replicas: entries.to_vec(), ..Status::default() };
        let both = status(&[entry("a", 3), entry("b", 3), entry("dead", 1)]);
        let covered = names(&["x.g", "y.g"]);
        let coverage = Coverage { covered, ..Coverage::default() };
        let state = DocumentState {
            generation: 3,
            problem: None,
            live: &live,
            registered: Registered::Known(&coverage),
        };
        assert_eq!(
            said(&both, &state),
            [
                "Accepted=True Accepted: the document has no mistakes",
                "Enforced=True Enforced: 2 of 2 replicas enforce generation 3; the registrations cover 2 resources"
            ]
        );
        let one = status(&[entry("a", 3), entry("b", 2)]);
        let message = "1 of 2 replicas enforce generation 3: b enforces generation 2; the registrations cover 2 resources";
        assert_eq!(
            said(&one, &state)[1..],
            [
                format!("Enforced=False ReplicasPending: {message}"),
                format!("Reconciling=True ReplicasPending: {message}")
            ]
        );
        let missing: Vec<String> = (0..12).map(|number| format!("r{number}.g")).collect();
        let coverage = Coverage { missing, ..Coverage::default() };
        let uncovered = DocumentState { registered: Registered::Known(&coverage), ..state };
        assert_eq!(
            said(&both, &uncovered)[1],
            "Enforced=False NotRegistered: 2 of 2 replicas enforce generation 3; the registrations do not cover \
             r0.g, r1.g, r2.g, r3.g, r4.g, r5.g, r6.g, r7.g, r8.g, r9.g and 2 more"
        );
        let fault = Some("mutate.statusgate.dev is not registered".to_owned());
        let faulty = Coverage { missing: names(&["x.g"]), fault, ..Coverage::default() };
        let faulty = DocumentState { registered: Registered::Known(&faulty), ..state };
        assert!(said(&both, &faulty)[1].ends_with(
            "the registrations do not cover x.g: mutate.statusgate.dev is not registered"
        ));
        let left_out = names(&["x.g v1", "y.g v1"]);
        let some = Coverage { left_out, ..Coverage::default() };
        let some = DocumentState { registered: Registered::Known(&some), ..state };
        assert_eq!(
            said(&both, &some),
            [
                "Accepted=True Accepted: the document has no mistakes; it does not select the served x.g v1, y.g v1",
                "Enforced=True NoResources: 2 of 2 replicas enforce generation 3; the cluster has none of its resources",
            ]
        );
        let withheld = names(&["x.g v1: the API server rejects status.phase: too long"]);
        let some = Coverage { withheld, ..Coverage::default() };
        let some = DocumentState { registered: Registered::Known(&some), ..state };
        assert_eq!(
            said(&both, &some)[0],
            "Accepted=True DefaultsWithheld: the document has no mistakes; some values are not set: x.g v1: the API server \
             rejects status.phase: too long"
        );
        let unread = DocumentState { registered: Registered::NotRead, ..state };
        assert!(
            said(&both, &unread)[1].starts_with("Enforced=Unknown RegistrationsNotRead: 2 of 2")
        );
        let problem =
            Problem { kind: ProblemKind::Invalid, message: "error: a\n --> b".to_owned() };
        let invalid =
            DocumentState { problem: Some(&problem), registered: Registered::NotNeeded, ..state };
        assert_eq!(
            said(&one, &invalid),
            [
                "Accepted=False Invalid: error: a\n --> b",
                "Enforced=False NotAccepted: 1 of 2 replicas enforce generation 3: b enforces generation 2",
                "Stalled=True Invalid: error: a"
            ]
        );
    }

    #[test]
    fn a_written_status_needs_no_other_write() {
        let live = names(&["a"]);
        let state = DocumentState {
            generation: 1,
            problem: None,
            live: &live,
            registered: Registered::NotNeeded,
        };
        let mut status = Status::default();
        status.conditions = status.conditions_for(&state, NOW);
        assert!(!status.has(1, &status.conditions.clone()), "observedGeneration is not set");
        status.observed_generation = Some(1);
        let later = NOW + jiff::SignedDuration::from_secs(60);
        assert!(status.has(1, &status.conditions_for(&state, later)));
        assert_eq!(status.conditions[2].r#type, "Reconciling");
        status.replicas = vec![entry("a", 1)];
        let enforced = status.conditions_for(&state, later);
        assert!(!status.has(1, &enforced), "Reconciling is to be removed");
        assert_eq!(enforced[0].last_transition_time, "2027-01-15T08:00:01Z", "it is kept");
        assert_eq!(enforced[1].last_transition_time, "2027-01-15T08:01:01Z", "it is new");
        // A condition of someone else stays.
        status.conditions = enforced.clone();
        status.conditions.push(Condition { r#type: "Other".to_owned(), ..Condition::default() });
        assert!(status.has(1, &enforced));
    }

    #[test]
    fn an_entry_is_dead_some_time_after_it_was_written() {
        let fresh = ReplicaEntry { loaded_time: seconds(NOW), ..entry("fresh", 1) };
        let wrong = seconds(NOW + jiff::SignedDuration::from_hours(8766));
        let future = ReplicaEntry { loaded_time: wrong, ..entry("future", 1) };
        let replicas = vec![entry("a", 1), entry("old", 1), fresh, future];
        let status = Status { replicas, ..Status::default() };
        assert_eq!(status.dead(&names(&["a"]), NOW).collect::<Vec<_>>(), ["old", "future"]);
    }

    #[test]
    fn a_long_message_is_cut_at_a_line() {
        let text = "ä line of text\n".repeat(5000);
        let cut = cut(text);
        assert!(cut.len() <= MAX_MESSAGE && cut.len() > MAX_MESSAGE - 100, "{}", cut.len());
        assert!(cut.ends_with("ä line of text\n… and more: see statusgate lint"));
    }
}
