//! The status that statusgate writes to its own documents, judged by its own conventions.

use crate::support::{NOW, Write, following};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use statusgate_cluster::manifests::coverage::Coverage;
use statusgate_core::kstatus::{Fork, compute};
use statusgate_core::model::Json;
use statusgate_manager::conditions::{DocumentState, Registered, ReplicaEntry, Status, seconds};
use statusgate_manager::registry::{LastAccepted, Problem, ProblemKind, Spec};

/// A document in the cluster.
struct Stored {
    generation: i64,
    status: Status,
    now: Timestamp,
}

impl Stored {
    fn status(&self) -> Value {
        let status = serde_json::to_value(&self.status).unwrap();
        // A new document has no status.
        if self.status == Status::default() { json!({}) } else { status }
    }

    /// Writes the conditions for a state. Returns the result of kstatus.
    fn write(&mut self, state: &DocumentState<'_>) -> String {
        let before = self.status();
        self.status.conditions = self.status.conditions_for(state, self.now);
        self.status.observed_generation = Some(self.generation);
        let write = Write::of(before, self.status())
            .both("/metadata/generation", self.generation)
            .at(&seconds(self.now));
        for convention in ["metav1", "kstatus"] {
            let outcome = write.review(&following(convention, ""));
            assert_eq!(outcome.findings, [], "{convention}: {write:?}");
            assert!(!outcome.is_patched(), "{convention}: {write:?}");
        }
        let object = write.new_object().to_string();
        let object = Json::parse(&object).unwrap();
        format!("{:?}", compute(&object, self.now.as_second(), Fork::default()).unwrap().status)
    }
}

#[test]
fn metav1_and_kstatus_find_nothing_in_any_status_or_transition() {
    let live = ["a".to_owned(), "b".to_owned()];
    let invalid =
        Problem { kind: ProblemKind::Invalid, message: "error: a\n --> b:1:1".to_owned() };
    let deleted = Problem { kind: ProblemKind::ConventionDeleted, message: "deleted".to_owned() };
    let covered = Coverage { covered: vec!["x.g".to_owned()], ..Coverage::default() };
    let missing = Coverage { missing: vec!["x.g".to_owned()], ..Coverage::default() };
    let nothing = Coverage::default();
    let registered = [
        Registered::NotNeeded,
        Registered::Known(&nothing),
        Registered::NotManaged,
        Registered::NotRead,
        Registered::Known(&covered),
        Registered::Known(&missing),
    ];
    let mut stored = Stored { generation: 1, status: Status::default(), now: NOW.parse().unwrap() };
    // Each number selects one value for each member of the state, in an order that leads from each state to
    // many others.
    for step in 0_usize..600 {
        let choice = step * 7919 / 3;
        let problem = [None, None, Some(&invalid), Some(&deleted)][choice % 4];
        let registered = registered[choice / 4 % 6];
        stored.generation += i64::from(choice % 11 == 0);
        stored.now += SignedDuration::from_secs(10);
        let enforce = |name: &str, lag: usize| ReplicaEntry {
            name: name.to_owned(),
            generation: stored.generation - i64::try_from(lag).unwrap(),
            loaded_time: seconds(stored.now),
        };
        let lag = choice / 24 % 3;
        stored.status.replicas = match lag {
            2 => vec![enforce("a", 0)],
            lag => vec![enforce("a", 0), enforce("b", lag)],
        };
        let generation = stored.generation;
        let spec = json!({"convention": "metav1"});
        let accepted = LastAccepted { generation: generation - 1, spec: Spec::of(&spec) };
        stored.status.last_accepted = (choice % 3 > 0).then_some(accepted);
        let found = stored.write(&DocumentState { generation, problem, live: &live, registered });
        let read = !matches!(registered, Registered::NotRead);
        let covers = !matches!(registered, Registered::Known(coverage) if *coverage == missing);
        let expected = match (problem, lag == 0 && read && covers) {
            (Some(_), _) => "Failed",
            (None, true) => "Current",
            (None, false) => "InProgress",
        };
        assert_eq!(found, expected, "{:?}", stored.status);
    }
}
