//! Built-in kinds other than Pods and their controllers.

use serde_json::{Value, json};

use super::{message, object, short};

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
fn some_kinds_are_current_when_their_generation_is_observed() {
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
fn built_in_kinds_are_matched_by_group_and_kind() {
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
