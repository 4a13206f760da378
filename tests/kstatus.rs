//! kstatus, compared with what kstatus said.
//!
//! `tests/fixtures/oracles` holds recorded answers of the Go code, one case a line: `kstatus.jsonl` of
//! custom resources, `kstatus-builtin.jsonl` of random objects of all kinds, the shortest one for
//! each kind and answer. Beside them stand the cases of upstream's own tests
//! (`status_compute_test.go`, `core_test.go`), under the same names, and what those leave out.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests, and their helpers too")]

use serde_json::{Value, json};
use statusgate::kstatus::{ComputeError, KStatus, compute};
use statusgate::model::Json;

/// 2024-06-01T12:00:00Z
const NOW: i64 = 1_717_243_200;

fn answer(object: &Value) -> Result<KStatus, ComputeError> {
    compute(&Json::parse(&object.to_string()).unwrap(), NOW)
}

/// `STATUS reason`, `STATUS` alone without a condition, or `error`.
fn short(object: &Value) -> String {
    match answer(object) {
        Err(_) => "error".to_owned(),
        Ok(result) => match result.conditions.as_slice() {
            [] => result.status.to_string(),
            [condition] => {
                let kind = condition.kind;
                assert_eq!(kind == "Stalled", result.status.name() == "Failed", "{object}");
                assert_eq!(kind == "Reconciling", result.status.name() == "InProgress", "{object}");
                format!("{} {}", result.status, condition.reason)
            }
            more => panic!("{more:?}"),
        },
    }
}

fn message(object: &Value) -> String {
    answer(object).unwrap().message
}

/// An object of a built-in kind at generation 1, with the given members beside its metadata.
fn object(api_version: &str, kind: &str, members: &Value) -> Value {
    let mut object = json!({"apiVersion": api_version, "kind": kind,
        "metadata": {"name": "test", "namespace": "qual", "generation": 1}});
    for (name, value) in members.as_object().unwrap() {
        object[name] = value.clone();
    }
    object
}

#[test]
fn every_recorded_answer_is_given() {
    let custom = include_str!("fixtures/oracles/kstatus.jsonl");
    let builtin = include_str!("fixtures/oracles/kstatus-builtin.jsonl");
    let mut cases = 0;
    for line in custom.lines().chain(builtin.lines()) {
        // The object's own text, not a copy through another tree: 1e0 is no 1 here.
        let (head, text) = line.split_once(r#","obj":"#).unwrap();
        let head: Value = serde_json::from_str(&format!("{head}}}")).unwrap();
        let text = text.strip_suffix('}').unwrap();
        let (name, expect) = (&head["name"], &head["expect"]);
        match compute(&Json::parse(text).unwrap(), NOW) {
            // The texts of errors are Go's there and ours here.
            Err(_) => assert_eq!(expect["error"], true, "{name}"),
            Ok(result) => assert_eq!(&serde_json::to_value(&result).unwrap(), expect, "{name}"),
        }
        cases += 1;
    }
    assert_eq!(cases, 399 + 559, "the files were read to their ends");
}

#[test]
fn upstream_custom_resources() {
    for (name, generation, status, expected) in [
        ("crdNoStatus", 1, json!(null), "Current"),
        ("crdReady", 1, json!({"conditions": [{"type": "Ready", "status": "True"}]}), "Current"),
        (
            "crdNotReady",
            1,
            json!({"observedGeneration": 1,
                "conditions": [{"type": "Ready", "status": "False", "reason": "NotReadyYet"}]}),
            "InProgress NotReadyYet",
        ),
        (
            "crdNoCondition",
            1,
            json!({"conditions": [{"type": "SomeCondition", "status": "False"}]}),
            "Current",
        ),
        (
            "crdMismatchStatusGeneration",
            2,
            json!({"observedGeneration": 1}),
            "InProgress LatestGenerationNotObserved",
        ),
    ] {
        let mut object = object("something/v1", "MyCR", &json!({"status": status}));
        object["metadata"]["generation"] = generation.into();
        assert_eq!(short(&object), expected, "{name}");
    }
}

#[test]
fn upstream_pods() {
    let unschedulable =
        json!([{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]);
    let crash_looping =
        json!([{"name": "nginx", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]);
    for (name, status, expected) in [
        ("podNoStatus", json!(null), "InProgress PodNotObserved"),
        (
            "podReady",
            json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}),
            "Current",
        ),
        (
            "podCompletedSuccessfully",
            json!({"phase": "Succeeded",
                "conditions": [{"type": "Ready", "status": "False", "reason": "PodCompleted"}]}),
            "Current",
        ),
        (
            "podCompletedFailed",
            json!({"phase": "Failed",
                "conditions": [{"type": "Ready", "status": "False", "reason": "PodCompleted"}]}),
            "Current",
        ),
        (
            "podUnschedulable",
            json!({"phase": "Pending", "conditions": unschedulable}),
            "Failed PodUnschedulable",
        ),
        (
            "podCrashLooping",
            json!({"phase": "Running", "conditions": unschedulable,
                "containerStatuses": crash_looping}),
            "Failed ContainerCrashLooping",
        ),
        ("pending", json!({"phase": "Pending"}), "InProgress PodPending"),
        ("running", json!({"phase": "Running"}), "InProgress PodRunningNotReady"),
        ("unknown", json!({"phase": "Unknown"}), "error"),
        ("case", json!({"phase": "running"}), "error"),
        ("phase of a wrong type", json!({"phase": 5}), "InProgress PodNotObserved"),
        (
            "ready wins over a crash loop",
            json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "False"},
                {"type": "Ready", "status": "True"}], "containerStatuses": crash_looping}),
            "Current",
        ),
        (
            "another reason",
            json!({"phase": "Pending", "conditions":
                [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]}),
            "InProgress PodPending",
        ),
        (
            "only the first PodScheduled that is False is asked",
            json!({"phase": "Pending", "conditions": [
                {"type": "PodScheduled", "status": "True", "reason": "Unschedulable"},
                {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"},
                {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}),
            "InProgress PodPending",
        ),
        (
            "an init container in a crash loop is not seen",
            json!({"phase": "Running", "initContainerStatuses": crash_looping}),
            "InProgress PodRunningNotReady",
        ),
    ] {
        assert_eq!(short(&object("v1", "Pod", &json!({"status": status}))), expected, "{name}");
    }
}

#[test]
fn a_pod_has_fifteen_seconds_to_find_a_node() {
    let pod = |created: Value| {
        let mut pod = object(
            "v1",
            "Pod",
            &json!({"status": {"phase": "Pending", "conditions":
                [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}}),
        );
        pod["metadata"]["creationTimestamp"] = created;
        short(&pod)
    };
    let (waits, failed) = ("InProgress PodNotScheduled", "Failed PodUnschedulable");
    for (created, expected) in [
        (json!("2024-06-01T12:00:00Z"), waits),
        (json!("2024-06-01T11:59:46Z"), waits),
        (json!("2024-06-01T11:59:45Z"), failed),
        (json!("2024-06-01T13:59:46+02:00"), waits),
        (json!("2024-06-01T13:00:00Z"), waits),
        (json!("soon"), failed),
        (json!(""), failed),
        (json!(null), failed),
        (json!(1_717_243_200), failed),
    ] {
        assert_eq!(pod(created.clone()), expected, "{created}");
    }
}

/// Go asserts types while it walks and panics where they do not hold; what it passes over first may
/// be anything.
#[test]
fn containers_are_read_as_far_as_go_reads_them() {
    let looping = json!({"reason": "CrashLoopBackOff"});
    let not_ready = "InProgress PodRunningNotReady";
    for (containers, expected) in [
        (json!([]), not_ready),
        (json!(null), "error"),
        (json!({}), "error"),
        (json!("x"), "error"),
        (json!([null]), "error"),
        (json!(["x"]), "error"),
        (json!([{}]), not_ready),
        (json!([{"name": null}]), "error"),
        (json!([{"name": 5}]), "error"),
        (json!([{"state": 5}]), not_ready),
        (json!([{"name": "a"}]), not_ready),
        (json!([{"name": "a", "state": null}]), "error"),
        (json!([{"name": "a", "state": []}]), "error"),
        (json!([{"name": "a", "state": {}}]), not_ready),
        (json!([{"name": "a", "state": {"waiting": null}}]), "error"),
        (json!([{"name": "a", "state": {"waiting": {}}}]), not_ready),
        (json!([{"name": "a", "state": {"waiting": {"reason": null}}}]), "error"),
        (json!([{"name": "a", "state": {"waiting": {"reason": "ContainerCreating"}}}]), not_ready),
        (json!([{"name": "a", "state": {"waiting": looping}}, 5]), "error"),
        (json!([{"state": {"waiting": looping}}]), not_ready),
        (json!([{"name": "a", "state": {"waiting": looping}}]), "Failed ContainerCrashLooping"),
    ] {
        let status = json!({"phase": "Running", "containerStatuses": containers});
        let found = short(&object("v1", "Pod", &json!({"status": status})));
        assert_eq!(found, expected, "{containers}");
    }
    let status = json!({"phase": "Running", "containerStatuses": [
        {"name": "a", "state": {"waiting": looping}}, {"name": "b", "state": {"running": {}}},
        {"name": "c", "state": {"waiting": looping}}]});
    let pod = object("v1", "Pod", &json!({"status": status}));
    assert_eq!(message(&pod), "Containers in CrashLoop state: a,c");
}

#[test]
fn upstream_claims_and_services() {
    let claim = |status: Value| object("v1", "PersistentVolumeClaim", &json!({"status": status}));
    for (name, status, expected) in [
        ("pvcNoStatus", json!(null), "PVC is not Bound. phase: unknown"),
        ("pvcBound", json!({"phase": "Bound"}), "PVC is Bound"),
        ("empty", json!({"phase": ""}), "PVC is not Bound. phase: "),
        ("lost", json!({"phase": "Lost"}), "PVC is not Bound. phase: Lost"),
        ("of a wrong type", json!({"phase": true}), "PVC is not Bound. phase: unknown"),
    ] {
        assert_eq!(message(&claim(status)), expected, "{name}");
    }
    assert_eq!(short(&claim(json!(null))), "InProgress NotBound");
    assert_eq!(short(&claim(json!({"phase": "Bound"}))), "Current");
    for (name, spec, expected) in [
        ("serviceDefault", json!(null), "Current"),
        ("serviceNodePort", json!({"type": "NodePort"}), "Current"),
        ("serviceLBok", json!({"type": "LoadBalancer", "clusterIP": "1.2.3.4"}), "Current"),
        ("serviceLBnok", json!({"type": "LoadBalancer"}), "InProgress NoIPAssigned"),
        ("headless", json!({"type": "LoadBalancer", "clusterIP": "None"}), "Current"),
        ("empty", json!({"type": "LoadBalancer", "clusterIP": ""}), "InProgress NoIPAssigned"),
        ("number", json!({"type": "LoadBalancer", "clusterIP": 1}), "InProgress NoIPAssigned"),
        ("type of a wrong type", json!({"type": ["LoadBalancer"]}), "Current"),
    ] {
        assert_eq!(short(&object("v1", "Service", &json!({"spec": spec}))), expected, "{name}");
    }
    let balancer = object("v1", "Service", &json!({"spec": {"type": "LoadBalancer"}}));
    assert_eq!(message(&balancer), "ClusterIP not set. Service type: LoadBalancer");
}

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
            "on delete, whatever the numbers",
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
            "partition -1 is none",
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
            "the largest deadline is none",
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
            "the deadline is exceeded, whatever the status",
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

#[test]
fn upstream_jobs() {
    let suspended = |status: &str| json!({"conditions": [{"type": "Suspended", "status": status}]});
    for (name, spec, status, expected, said) in [
        ("jobNoStatus", json!(null), json!(null), "InProgress JobNotStarted", "Job not started"),
        (
            "jobComplete",
            json!(null),
            json!({"succeeded": 1, "active": 0,
                "conditions": [{"type": "Complete", "status": "True"}]}),
            "Current",
            "Job Completed. succeeded: 1/1",
        ),
        (
            "jobFailed",
            json!({"completions": 4}),
            json!({"succeeded": 3, "failed": 1,
                "conditions": [{"type": "Failed", "status": "True", "reason": "JobFailed"}]}),
            "Failed JobFailed",
            "Job Failed. failed: 1/4",
        ),
        (
            "jobInProgress",
            json!({"completions": 10, "parallelism": 2}),
            json!({"startTime": "2019-06-04T01:17:13Z", "succeeded": 3, "failed": 1, "active": 2,
                "conditions": [{"type": "Failed", "status": "False"},
                    {"type": "Complete", "status": "False"}]}),
            "Current",
            "Job in progress. success:3, active: 2, failed: 1",
        ),
        (
            "TestSuspendedJobConditions",
            json!({"suspend": true}),
            suspended("True"),
            "Current",
            "Job is suspended",
        ),
        (
            "TestPreviouslySuspendedJobConditions",
            json!({"suspend": false}),
            suspended("False"),
            "InProgress JobNotStarted",
            "Job not started",
        ),
        (
            "TestSuspendedJobTransitionConditions, to",
            json!({"suspend": true}),
            suspended("False"),
            "InProgress JobNotStarted",
            "Job not started",
        ),
        (
            "TestSuspendedJobTransitionConditions, from",
            json!({"suspend": false}),
            suspended("True"),
            "InProgress JobNotStarted",
            "Job not started",
        ),
        (
            "suspend of a wrong type",
            json!({"suspend": "true"}),
            suspended("True"),
            "InProgress JobNotStarted",
            "Job not started",
        ),
        (
            "completions default to the parallelism",
            json!({"parallelism": 3}),
            json!({"succeeded": 2, "conditions": [{"type": "Complete", "status": "True"}]}),
            "Current",
            "Job Completed. succeeded: 2/3",
        ),
        (
            "the first that decides",
            json!(null),
            json!({"conditions": [{"type": "Failed", "status": "True"},
                {"type": "Complete", "status": "True"}]}),
            "Failed JobFailed",
            "Job Failed. failed: 0/1",
        ),
    ] {
        let object = object("batch/v1", "Job", &json!({"spec": spec, "status": status}));
        assert_eq!(
            (short(&object).as_str(), message(&object).as_str()),
            (expected, said),
            "{name}"
        );
    }
}

#[test]
fn upstream_definitions() {
    let accepted = json!({"type": "NamesAccepted", "status": "True", "reason": "NoConflicts"});
    let established = |status: &str, reason: &str| json!({"type": "Established", "status": status, "reason": reason, "message": "m"});
    let taken = json!({"type": "NamesAccepted", "status": "False", "reason": "SomeReason"});
    for (name, conditions, expected) in [
        ("crdNoConditions", json!(null), "InProgress Installing"),
        (
            "crdInstalling",
            json!([accepted, established("False", "Installing")]),
            "InProgress Installing",
        ),
        ("crdNamesNotAccepted", json!([taken]), "Failed SomeReason"),
        (
            "crdEstablished",
            json!([accepted, established("True", "InitialNamesAccepted")]),
            "Current",
        ),
        ("not established", json!([established("False", "Broken")]), "Failed Broken"),
        ("unknown", json!([established("Unknown", "Broken")]), "InProgress Installing"),
        ("the first that decides", json!([established("True", ""), taken]), "Current"),
        ("and the other way round", json!([taken, established("True", "")]), "Failed SomeReason"),
        (
            "Ready is not asked",
            json!([{"type": "Ready", "status": "True"}]),
            "InProgress Installing",
        ),
    ] {
        let members = json!({"status": {"conditions": conditions}});
        let object = object("apiextensions.k8s.io/v1", "CustomResourceDefinition", &members);
        assert_eq!(short(&object), expected, "{name}");
    }
}

#[test]
fn kinds_that_are_always_current_once_their_generation_is_observed() {
    for (version, kind, said) in [
        ("v1", "Secret", "Resource is always ready"),
        ("v1", "ConfigMap", "Resource is always ready"),
        ("batch/v1", "CronJob", "Resource is always ready"),
        ("policy/v1beta1", "PodDisruptionBudget", "AllowedDisruptions has been computed."),
    ] {
        let ready = json!({"conditions": [{"type": "Ready", "status": "False"}]});
        for status in [json!(null), json!({"observedGeneration": 1}), ready] {
            let object = object(version, kind, &json!({"status": status}));
            assert_eq!((short(&object).as_str(), message(&object).as_str()), ("Current", said));
        }
        let stale = object(version, kind, &json!({"status": {"observedGeneration": 0}}));
        assert_eq!(short(&stale), "InProgress LatestGenerationNotObserved", "{kind}");
    }
}

#[test]
fn built_in_kinds_are_known_by_group_and_kind() {
    // A Service of LoadBalancer type without an address is InProgress, a Job not started too; any
    // other kind with the same content is Current.
    let members = json!({"spec": {"type": "LoadBalancer"}});
    for (version, kind, expected) in [
        ("v1", "Service", "InProgress NoIPAssigned"),
        ("v7", "Service", "InProgress NoIPAssigned"),
        ("", "Service", "InProgress NoIPAssigned"),
        ("/v1", "Service", "InProgress NoIPAssigned"),
        ("serving.knative.dev/v1", "Service", "Current"),
        ("a/b/v1", "Service", "Current"),
        ("v1", "service", "Current"),
        ("batch/v1beta1", "Job", "InProgress JobNotStarted"),
        ("batch", "Job", "Current"),
        ("v1", "Job", "Current"),
        ("Batch/v1", "Job", "Current"),
        ("v1", "batch/Job", "InProgress JobNotStarted"),
        ("extensions/v1", "StatefulSet", "Current"),
        ("apps/v1", "StatefulSet", "InProgress LessReplicas"),
        ("volcano.sh/v1", "Job", "Current"),
    ] {
        assert_eq!(short(&object(version, kind, &members)), expected, "{version} {kind}");
    }
    let mut without = object("v1", "Service", &members);
    without.as_object_mut().unwrap().remove("apiVersion");
    assert_eq!(short(&without), "InProgress NoIPAssigned");
    without["kind"] = json!(5);
    assert_eq!(short(&without), "Current");
}

// --- properties -----------------------------------------------------------------------------------

/// Every built-in kind, and one that is none, in a state that its own rules read all of.
fn complete_objects() -> Vec<Value> {
    let spec = json!({"replicas": 1, "parallelism": 1, "completions": 1, "suspend": true,
        "progressDeadlineSeconds": 60, "type": "LoadBalancer", "clusterIP": "10.0.0.1",
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}});
    let status = json!({"observedGeneration": 1, "phase": "Bound", "replicas": 1,
        "readyReplicas": 1, "currentReplicas": 1, "updatedReplicas": 1, "availableReplicas": 1,
        "fullyLabeledReplicas": 1, "currentRevision": "a", "updateRevision": "a",
        "desiredNumberScheduled": 1, "currentNumberScheduled": 1, "updatedNumberScheduled": 1,
        "numberAvailable": 1, "numberReady": 1, "succeeded": 1, "active": 1, "failed": 1,
        "startTime": "2024-01-01T00:00:00Z",
        "conditions": [{"type": "Available", "status": "True"},
            {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
            {"type": "Established", "status": "True"}]});
    [
        ("v1", "Service"),
        ("v1", "Secret"),
        ("v1", "ConfigMap"),
        ("v1", "PersistentVolumeClaim"),
        ("v1", "Pod"),
        ("apps/v1", "Deployment"),
        ("apps/v1", "ReplicaSet"),
        ("apps/v1", "StatefulSet"),
        ("apps/v1", "DaemonSet"),
        ("extensions/v1beta1", "Deployment"),
        ("extensions/v1beta1", "ReplicaSet"),
        ("extensions/v1beta1", "DaemonSet"),
        ("policy/v1", "PodDisruptionBudget"),
        ("batch/v1", "Job"),
        ("batch/v1", "CronJob"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
        ("something/v1", "MyCR"),
    ]
    .into_iter()
    .map(|(version, kind)| {
        let mut status = status.clone();
        if kind == "Pod" {
            status["phase"] = json!("Pending");
        }
        object(version, kind, &json!({"spec": spec, "status": status}))
    })
    .collect()
}

/// One value of every type that is not the one of `value`; whole numbers in their other spellings.
fn of_other_types(value: &Value) -> Vec<Value> {
    let same = |other: &Value| {
        std::mem::discriminant(value) == std::mem::discriminant(other)
            && (!value.is_i64() || other.is_i64())
    };
    [
        json!(null),
        json!(true),
        json!(7),
        json!(1.0),
        json!(u64::MAX),
        json!("1"),
        json!([]),
        json!({}),
    ]
    .into_iter()
    .filter(|other| !same(other))
    .collect()
}

/// Numbers, texts and flags of the kinds' own rules are read leniently.
#[test]
fn a_field_of_a_wrong_type_is_as_good_as_none() {
    let mut changed = 0;
    for object in complete_objects() {
        for part in ["spec", "status"] {
            let names: Vec<String> = object[part].as_object().unwrap().keys().cloned().collect();
            for name in names
                .iter()
                .filter(|name| !matches!(name.as_str(), "observedGeneration" | "conditions"))
            {
                let mut without = object.clone();
                without[part].as_object_mut().unwrap().remove(name);
                let expected = answer(&without);
                changed += usize::from(expected != answer(&object));
                for other in of_other_types(&object[part][name]) {
                    let mut wrong = object.clone();
                    wrong[part][name] = other;
                    assert_eq!(answer(&wrong), expected, "{wrong}");
                }
            }
        }
    }
    assert!(changed > 25, "the fields matter: {changed}");
}

/// A spec that cannot be walked is an empty one.
#[test]
fn a_spec_of_a_wrong_type_is_as_good_as_none() {
    for object in complete_objects() {
        let mut without = object.clone();
        without.as_object_mut().unwrap().remove("spec");
        for other in of_other_types(&object["spec"]) {
            let mut wrong = object.clone();
            wrong["spec"] = other;
            assert_eq!(answer(&wrong), answer(&without), "{wrong}");
        }
    }
}

/// Generations, the time of deletion, the status itself and the conditions are read strictly, of every
/// kind, and even of those whose own rules look at nothing.
#[test]
fn what_all_objects_have_in_common_is_an_error_where_its_type_is_wrong() {
    let fails = |object: &Value| assert_eq!(short(object), "error", "{object}");
    for object in complete_objects() {
        let expected = answer(&object).map(|result| result.status);
        assert!(expected.is_ok(), "{object}");
        for (part, name) in [("metadata", "generation"), ("status", "observedGeneration")] {
            for other in of_other_types(&json!(1)) {
                let mut wrong = object.clone();
                wrong[part][name] = other;
                fails(&wrong);
            }
        }
        for other in of_other_types(&json!("")) {
            let mut wrong = object.clone();
            wrong["metadata"]["deletionTimestamp"] = other;
            fails(&wrong);
        }
        for part in ["metadata", "status"] {
            for other in of_other_types(&json!({})).into_iter().filter(|other| !other.is_null()) {
                let mut wrong = object.clone();
                wrong[part] = other;
                fails(&wrong);
            }
        }
        for other in of_other_types(&json!([])).into_iter().filter(|other| !other.is_null()) {
            let mut wrong = object.clone();
            wrong["status"]["conditions"] = other;
            fails(&wrong);
        }
        for other in of_other_types(&json!({})).into_iter().filter(|other| !other.is_null()) {
            let mut wrong = object.clone();
            wrong["status"]["conditions"].as_array_mut().unwrap().push(other);
            fails(&wrong);
        }
        for name in ["type", "status", "reason", "message"] {
            for other in of_other_types(&json!("")) {
                let mut wrong = object.clone();
                let null = other.is_null();
                // On a condition that no rule reads, and behind all that any rule would stop at.
                let condition = json!({"type": "Other", "status": "True"});
                wrong["status"]["conditions"].as_array_mut().unwrap().push(condition);
                wrong["status"]["conditions"][3][name] = other;
                if null {
                    assert_eq!(answer(&wrong).map(|result| result.status), expected, "{wrong}");
                } else {
                    fails(&wrong);
                }
            }
        }
    }
}

/// In the order of the algorithm: each step hides what is wrong further down.
#[test]
fn an_earlier_answer_hides_a_later_error() {
    for object in complete_objects() {
        let mut wrong = object.clone();
        wrong["status"]["conditions"] = json!({});
        assert_eq!(short(&wrong), "error");
        wrong["status"]["observedGeneration"] = json!(9);
        assert_eq!(short(&wrong), "InProgress LatestGenerationNotObserved");
        wrong["status"] = json!("x");
        assert_eq!(short(&wrong), "error");
        wrong["metadata"]["deletionTimestamp"] = json!("not even a time");
        assert_eq!(short(&wrong), "Terminating");
        wrong["metadata"]["generation"] = json!("x");
        assert_eq!(short(&wrong), "Terminating");
    }
}

/// A standard condition decides before the rules of any kind, and of two the first.
#[test]
fn standard_conditions_come_before_the_kind_in_list_order() {
    let reconciling =
        json!({"type": "Reconciling", "status": "True", "reason": "R", "message": "r"});
    let stalled = json!({"type": "Stalled", "status": "True", "reason": "S", "message": "s"});
    for object in complete_objects() {
        for (conditions, expected, said) in [
            (json!([reconciling, stalled]), "InProgress R", "r"),
            (json!([stalled, reconciling]), "Failed S", "s"),
            (json!([{"type": "Ready", "status": "True"}, null, stalled]), "Failed S", "s"),
        ] {
            let mut object = object.clone();
            object["status"]["conditions"] = conditions;
            assert_eq!((short(&object).as_str(), message(&object).as_str()), (expected, said));
        }
        let mut off = object.clone();
        for status in ["False", "Unknown", "true", ""] {
            let conditions = off["status"]["conditions"].as_array_mut().unwrap();
            conditions.push(json!({"type": "Stalled", "status": status}));
        }
        assert_eq!(answer(&off), answer(&object), "only True counts");
    }
}

#[test]
fn the_last_of_duplicate_members_counts_and_names_are_case_sensitive() {
    let status_of = |text: &str| compute(&Json::parse(text).unwrap(), NOW).unwrap().status.name();
    let head = r#""apiVersion":"a/v1","kind":"A""#;
    for (rest, expected) in [
        (
            r#""metadata":{"generation":2,"generation":1},"status":{"observedGeneration":1}"#,
            "Current",
        ),
        (
            r#""metadata":{"generation":1},"status":{"observedGeneration":1,"observedGeneration":0}"#,
            "InProgress",
        ),
        // The last status as a whole: nothing is merged.
        (r#""metadata":{"generation":1},"status":{"observedGeneration":0},"status":{}"#, "Current"),
        (r#""metadata":{"generation":1},"status":{"ObservedGeneration":0}"#, "Current"),
        (r#""metadata":{"DeletionTimestamp":"2024-01-01T00:00:00Z"}"#, "Current"),
        (r#""status":{"Conditions":[{"type":"Stalled","status":"True"}]}"#, "Current"),
        (r#""status":{"conditions":[{"Type":"Stalled","status":"True"}]}"#, "Current"),
        (
            r#""status":{"conditions":[{"type":"Stalled","status":"False","status":"True"}]}"#,
            "Failed",
        ),
    ] {
        assert_eq!(status_of(&format!("{{{head},{rest}}}")), expected, "{rest}");
    }
}

#[test]
fn an_error_names_the_field_and_what_is_there() {
    let said = |members: Value| {
        let mut object = object("a/v1", "A", &json!({}));
        for (name, value) in members.as_object().unwrap() {
            object[name] = value.clone();
        }
        answer(&object).unwrap_err().to_string()
    };
    for (members, expected) in [
        (
            json!({"status": {"observedGeneration": "1"}}),
            "status.observedGeneration is a string, and kstatus reads only a 64-bit integer without \
             fraction or exponent there",
        ),
        (json!({"status": []}), "status is a list, and kstatus reads only an object there"),
        (
            json!({"status": {"conditions": [{}, {"type": "A", "status": true}]}}),
            "status.conditions[1].status is a boolean, and kstatus reads only a string there",
        ),
        (
            json!({"apiVersion": "v1", "kind": "Pod", "status": {"phase": "Gone"}}),
            "status.phase is \"Gone\", and kstatus knows no such phase of a Pod",
        ),
        (
            json!({"apiVersion": "v1", "kind": "Pod", "status": {"phase": "Running",
                "containerStatuses": [{"name": "a", "state": {"waiting": {"reason": 5}}}]}}),
            "status.containerStatuses[0].state.waiting.reason is a number, and kstatus reads only a \
             string there",
        ),
    ] {
        assert_eq!(said(members), expected);
    }
}
