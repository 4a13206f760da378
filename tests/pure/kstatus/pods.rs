//! Pods.

use serde_json::{Value, json};

use super::{message, object, short};

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

/// Go panics at a wrong type when it reads a field. Fields that it skips may have any type.
#[test]
fn container_statuses_are_read_as_strictly_as_in_go() {
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
