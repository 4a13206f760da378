//! What holds for every kind: the fields that are read strictly, and the order of the rules.

use serde_json::{Value, json};

use super::{answer, message, object, short};

/// Every built-in kind and a custom one, with every field that the rules read.
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

/// One value of every other type; for integers also other number formats.
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

/// The rules of a kind ignore numbers, strings and booleans of a wrong type.
#[test]
fn a_field_with_a_wrong_type_counts_as_absent() {
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

#[test]
fn a_spec_with_a_wrong_type_counts_as_absent() {
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

/// Generations, the deletion time, the status and the conditions are read strictly for every kind.
#[test]
fn a_common_field_with_a_wrong_type_is_an_error() {
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
                // This condition is the last one, and no rule reads it.
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

/// Each step of the algorithm hides errors of the later ones.
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

/// Of two standard conditions the first one decides, before the rules of the kind.
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
