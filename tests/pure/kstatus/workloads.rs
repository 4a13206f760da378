//! The controllers of Pods.

use serde_json::{Value, json};

use super::{answer, message, object, short};

#[test]
fn upstream_stateful_sets() {
    let numbers = |current: i64, ready: i64, replicas: i64| {
        json!({"observedGeneration": 1, "currentReplicas": current, "readyReplicas": ready,
            "replicas": replicas})
    };
    let four = json!({"replicas": 4});
    let partition = |partition: i64| json!({"replicas": 4, "updateStrategy": {"rollingUpdate": {"partition": partition}}});
    let updated = |updated: i64| json!({"readyReplicas": 4, "replicas": 4, "currentReplicas": 0, "updatedReplicas": updated});
    for (name, spec, status, expected, said) in [
        ("stsNoStatus", json!(null), json!(null), "InProgress LessReplicas", "Replicas: 0/1"),
        (
            "stsBadStatus",
            json!(null),
            json!({"observedGeneration": 1, "currentReplicas": 1}),
            "InProgress LessReplicas",
            "Replicas: 0/1",
        ),
        (
            "stsOK",
            four.clone(),
            numbers(4, 4, 4),
            "Current",
            "All replicas scheduled as expected. Replicas: 4",
        ),
        ("stsLessReady", four.clone(), numbers(4, 2, 4), "InProgress LessReady", "Ready: 2/4"),
        (
            "stsLessCurrent",
            four.clone(),
            numbers(2, 4, 4),
            "InProgress LessCurrent",
            "current: 2/4",
        ),
        ("stsExtraPods", four, numbers(4, 4, 8), "InProgress ExtraPods", "Pending termination: 4"),
        (
            "on delete, with any numbers",
            json!({"replicas": 4, "updateStrategy": {"type": "OnDelete"}}),
            json!(null),
            "Current",
            "StatefulSet is using the ondelete update strategy",
        ),
        (
            "partition behind",
            partition(1),
            updated(2),
            "InProgress PartitionRollout",
            "updated: 2/3",
        ),
        (
            "partition done",
            partition(1),
            updated(3),
            "Current",
            "Partition rollout complete. updated: 3",
        ),
        ("partition 0", partition(0), updated(3), "InProgress PartitionRollout", "updated: 3/4"),
        (
            "partition above",
            partition(9),
            updated(0),
            "Current",
            "Partition rollout complete. updated: 0",
        ),
        (
            "partition -1 means no partition",
            partition(-1),
            updated(4),
            "InProgress LessCurrent",
            "current: 0/4",
        ),
        (
            "revisions differ",
            json!(null),
            json!({"replicas": 1, "readyReplicas": 1, "currentReplicas": 1,
                "currentRevision": "a", "updateRevision": "b"}),
            "InProgress RevisionMismatch",
            "Waiting for updated revision to match current",
        ),
        (
            "scaled to nothing",
            json!({"replicas": 0}),
            json!(null),
            "Current",
            "All replicas scheduled as expected. Replicas: 0",
        ),
        (
            "Go's arithmetic wraps",
            json!({"replicas": -2, "updateStrategy": {"rollingUpdate": {"partition": i64::MAX}}}),
            json!({"replicas": -2}),
            "InProgress PartitionRollout",
            "updated: 0/9223372036854775807",
        ),
    ] {
        let object = object("apps/v1", "StatefulSet", &json!({"spec": spec, "status": status}));
        assert_eq!(
            (short(&object).as_str(), message(&object).as_str()),
            (expected, said),
            "{name}"
        );
    }
}

#[test]
fn upstream_daemon_sets() {
    let numbers = |current: i64, updated: i64, available: i64, ready: i64| {
        json!({"observedGeneration": 1, "desiredNumberScheduled": 4,
            "currentNumberScheduled": current, "updatedNumberScheduled": updated,
            "numberAvailable": available, "numberReady": ready})
    };
    for (name, generation, status, expected, said) in [
        (
            "dsNoStatus",
            json!(1),
            json!(null),
            "InProgress NoObservedGeneration",
            "DaemonSet status.observedGeneration not found",
        ),
        (
            "dsBadStatus",
            json!(1),
            json!({"observedGeneration": 1, "currentReplicas": 1}),
            "InProgress NoDesiredNumber",
            "Missing .status.desiredNumberScheduled",
        ),
        (
            "dsOK",
            json!(1),
            numbers(4, 4, 4, 4),
            "Current",
            "All replicas scheduled as expected. Replicas: 4",
        ),
        ("dsLessReady", json!(1), numbers(4, 4, 4, 2), "InProgress LessReady", "Ready: 2/4"),
        (
            "dsDifferentGeneration",
            json!(2),
            numbers(4, 4, 4, 4),
            "InProgress LatestGenerationNotObserved",
            "DaemonSet generation is 2, but latest observed generation is 1",
        ),
        (
            "dsLessAvailable",
            json!(1),
            numbers(4, 4, 2, 4),
            "InProgress LessAvailable",
            "Available: 2/4",
        ),
        ("less current", json!(1), numbers(3, 0, 0, 0), "InProgress LessCurrent", "Current: 3/4"),
        ("less updated", json!(1), numbers(4, 3, 0, 0), "InProgress LessUpdated", "Updated: 3/4"),
    ] {
        let mut object = object("apps/v1", "DaemonSet", &json!({"status": status}));
        object["metadata"]["generation"] = generation;
        assert_eq!(
            (short(&object).as_str(), message(&object).as_str()),
            (expected, said),
            "{name}"
        );
        object["apiVersion"] = json!("extensions/v1beta1");
        assert_eq!(short(&object), expected, "{name}");
    }
    let mut no_generation = object("apps/v1", "DaemonSet", &json!({"status": numbers(4, 4, 4, 4)}));
    no_generation["metadata"] = json!({"name": "test"});
    assert_eq!(short(&no_generation), "InProgress NoGeneration");
    assert_eq!(message(&no_generation), "DaemonSet metadata.generation not found");
    no_generation["status"]["observedGeneration"] = json!("x");
    assert_eq!(short(&no_generation), "InProgress NoGeneration", "not looked at");
}

#[test]
fn upstream_deployments() {
    let available = json!({"type": "Available", "status": "True"});
    let rolled_out =
        json!({"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"});
    let one = |conditions: Value| {
        json!({"observedGeneration": 1, "updatedReplicas": 1, "readyReplicas": 1,
            "availableReplicas": 1, "replicas": 1, "conditions": conditions})
    };
    let numbers = |replicas: i64, updated: i64, available: i64, ready: i64| {
        json!({"replicas": replicas, "updatedReplicas": updated, "availableReplicas": available,
            "readyReplicas": ready, "conditions": [{"type": "Available", "status": "True"}]})
    };
    let four = json!({"replicas": 4});
    let deadline = json!({"progressDeadlineSeconds": 45});
    for (name, spec, status, expected, said) in [
        ("depNoStatus", json!(null), json!(null), "InProgress LessReplicas", "Replicas: 0/1"),
        (
            "depOK",
            json!(null),
            one(json!([rolled_out, available])),
            "Current",
            "Deployment is available. Replicas: 1",
        ),
        (
            "depNotProgressing",
            deadline.clone(),
            one(json!([{"type": "Progressing", "status": "False", "reason": "Some reason"},
                available])),
            "InProgress ReplicaSetNotAvailable",
            "ReplicaSet not Available",
        ),
        (
            "depNoProgressDeadlineSeconds",
            json!(null),
            one(json!([available])),
            "Current",
            "Deployment is available. Replicas: 1",
        ),
        (
            "depNotAvailable",
            json!(null),
            one(json!([rolled_out, {"type": "Available", "status": "False"}])),
            "InProgress DeploymentNotAvailable",
            "Deployment not Available",
        ),
        (
            "the largest deadline means no deadline",
            json!({"progressDeadlineSeconds": i32::MAX}),
            one(json!([available])),
            "Current",
            "Deployment is available. Replicas: 1",
        ),
        (
            "progress with another reason",
            deadline.clone(),
            one(json!([{"type": "Progressing", "status": "True", "reason": "ReplicaSetUpdated"},
                available])),
            "InProgress ReplicaSetNotAvailable",
            "ReplicaSet not Available",
        ),
        (
            "the deadline is exceeded, with any status",
            deadline,
            one(json!([available, {"type": "Progressing", "status": "True",
                "reason": "ProgressDeadlineExceeded", "message": "m"}])),
            "Failed ProgressDeadlineExceeded",
            "Progress deadline exceeded",
        ),
        (
            "less replicas",
            four.clone(),
            numbers(3, 9, 9, 9),
            "InProgress LessReplicas",
            "Replicas: 3/4",
        ),
        (
            "less updated",
            four.clone(),
            numbers(5, 3, 0, 0),
            "InProgress LessUpdated",
            "Updated: 3/4",
        ),
        (
            "extra",
            four.clone(),
            numbers(5, 4, 0, 0),
            "InProgress ExtraPods",
            "Pending termination: 1",
        ),
        (
            "less available than updated",
            four.clone(),
            numbers(4, 6, 5, 0),
            "InProgress LessAvailable",
            "Available: 5/6",
        ),
        ("less ready", four, numbers(4, 4, 4, 3), "InProgress LessReady", "Ready: 3/4"),
        (
            "scaled to nothing, and never available",
            json!({"replicas": 0}),
            json!(null),
            "InProgress DeploymentNotAvailable",
            "Deployment not Available",
        ),
    ] {
        for version in ["apps/v1", "extensions/v1beta1"] {
            let object = object(version, "Deployment", &json!({"spec": spec, "status": status}));
            let found = (short(&object), message(&object));
            assert_eq!((found.0.as_str(), found.1.as_str()), (expected, said), "{name}");
        }
    }
    let exceeded = object(
        "apps/v1",
        "Deployment",
        &json!({"status": {"conditions": [{"type": "Progressing", "status": "False",
            "reason": "ProgressDeadlineExceeded", "message": "m"}]}}),
    );
    assert_eq!(answer(&exceeded).unwrap().conditions[0].message, "m", "the controller's own words");
}

#[test]
fn upstream_replica_sets() {
    let numbers = |replicas: i64, labelled: i64, available: i64, ready: i64| {
        json!({"observedGeneration": 1, "replicas": replicas, "readyReplicas": ready,
            "availableReplicas": available, "fullyLabeledReplicas": labelled})
    };
    let two = json!({"replicas": 2});
    let failing = json!({"replicas": 2, "fullyLabeledReplicas": 2, "availableReplicas": 2,
        "readyReplicas": 2, "conditions": [{"type": "ReplicaFailure", "status": "True"}]});
    for (name, spec, status, expected, said) in [
        ("rsNoStatus", json!(null), json!(null), "InProgress LessLabelled", "Labelled: 0/1"),
        (
            "rsOK1",
            two.clone(),
            numbers(2, 2, 2, 2),
            "Current",
            "ReplicaSet is available. Replicas: 2",
        ),
        (
            "rsOK2",
            two.clone(),
            json!({"replicas": 2, "readyReplicas": 2, "availableReplicas": 2,
                "fullyLabeledReplicas": 2,
                "conditions": [{"type": "ReplicaFailure", "status": "False"}]}),
            "Current",
            "ReplicaSet is available. Replicas: 2",
        ),
        (
            "rsLessAvailable",
            two.clone(),
            numbers(2, 2, 1, 2),
            "InProgress LessAvailable",
            "Available: 1/2",
        ),
        ("rsLessReady", two.clone(), numbers(2, 2, 2, 1), "InProgress LessReady", "Ready: 1/2"),
        (
            "rsReplicaFailure",
            two.clone(),
            failing,
            "InProgress ReplicaFailure",
            "Replica Failure condition. Check Pods",
        ),
        ("extra", two, numbers(4, 4, 4, 4), "InProgress ExtraPods", "Pending termination: 2"),
    ] {
        for version in ["apps/v1", "extensions/v1beta1"] {
            let object = object(version, "ReplicaSet", &json!({"spec": spec, "status": status}));
            let found = (short(&object), message(&object));
            assert_eq!((found.0.as_str(), found.1.as_str()), (expected, said), "{name}");
        }
    }
}
