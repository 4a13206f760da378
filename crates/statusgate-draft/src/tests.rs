use proptest::prelude::*;
use serde_json::{Value, json};
use statusgate_core::policy::{PolicySet, Source};
use statusgate_core::request::Served;
use statusgate_core::schema::NEWEST;
use statusgate_core::source::Manifests;

use super::base::judge;
use super::*;

/// A recorded write of a status, as `record` writes it.
fn write(name: usize, second: usize, old: &Value, new: &Value) -> String {
    let object = |status: &Value| json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": format!("t{name}"), "generation": 1}, "status": status});
    let request = json!({
        "resource": {"group": "example.com", "version": "v1", "resource": "things"}, "subResource": "status",
        "operation": "UPDATE", "userInfo": {"username": "controller"}, "object": object(new), "oldObject": object(old),
    });
    let time = format!("2026-01-01T{:02}:{:02}:{:02}Z", name / 60, name % 60, second);
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "requestReceivedTimestamp": time, "request": request}).to_string()
}

fn condition(kind: &str, status: &str, reason: &str, name: usize, second: usize) -> Value {
    let time = format!("2026-01-01T{:02}:{:02}:{:02}Z", name / 60, name % 60, second);
    json!({"type": kind, "status": status, "reason": reason, "message": "", "lastTransitionTime": time})
}

/// A controller that creates a volume, then is ready, then degraded, then ready.
fn recorded(objects: usize) -> String {
    let mut lines = Vec::new();
    for name in 0..objects {
        let states = [
            json!({"phase": "Creating", "conditions": [condition("Ready", "False", "Waiting", name, 1), condition("VolumeBound", "False", "NoVolume", name, 1)]}),
            json!({"phase": "Running", "bound": true, "conditions": [condition("Ready", "True", "Working", name, 10), condition("VolumeBound", "True", "Bound", name, 10)]}),
            json!({"phase": "Degraded", "bound": true, "conditions": [condition("Ready", "False", "Waiting", name, 20), condition("VolumeBound", "True", "Bound", name, 10)]}),
            json!({"phase": "Running", "bound": true, "conditions": [condition("Ready", "True", "Working", name, 30), condition("VolumeBound", "True", "Bound", name, 10)]}),
        ];
        let mut old = json!({});
        for (index, state) in states.iter().enumerate() {
            lines.push(write(name, index * 10 + 1, &old, state));
            old = state.clone();
        }
    }
    lines.join("\n")
}

fn drafted(text: &str, schema: &Schema, against: Option<Against<'_>>) -> (String, u32) {
    let files = [Source::new("writes.jsonl", text)];
    let manifests = Manifests::read(&files);
    let none = PolicySet::compile(&[]).unwrap();
    let recordings = Recording::all(&manifests, false, |identity| Served::guessed(identity, &none));
    assert_eq!(recordings.len(), 1);
    let draft = draft(&recordings[0], schema, against).unwrap();
    let yaml = draft.to_yaml();
    assert!(yaml.lines().count() <= MAX_LINES, "{yaml}");
    let policies = PolicySet::compile(&[Source::new("draft", yaml.as_str())])
        .unwrap_or_else(|mistakes| panic!("{mistakes}\n{yaml}"));
    let warned = judge(&recordings[0], &policies, |_| true);
    (yaml, warned.values().map(|seen| seen.writes).sum())
}

#[test]
fn a_regular_controller_becomes_rules_with_their_support() {
    let (yaml, warned) = drafted(&recorded(12), &Schema::free(), None);
    assert_eq!(warned, 0);
    for part in [
        "extends: metav1",
        "otherTypes: Warn  # 0.00 new types expected in the next object, of 12",
        "removed: Warn",
        "reasons: {\"False\": [Waiting], \"True\": [Working], other: Audit}",
        "path: /status/phase",
        "phase: Running, necessary:",
        "{id: ready-summary, path: /status/conditions, when: {all: [{condition: Ready, is: \"True\"}, {not: {condition: VolumeBound, is: \"True\"}}]}",
        "{id: bound-reverted,",
        "enforcement: Warn",
        "{apiGroups: [example.com], apiVersions: [v1], resources: [things]}",
        "# - which changes of /status/phase are valid?",
    ] {
        assert!(yaml.contains(part), "{part}\n{yaml}");
    }
    assert!(
        !yaml.contains("Deny") && !yaml.contains("backfill") && !yaml.contains("sufficient"),
        "{yaml}"
    );
}

#[test]
fn too_few_objects_become_no_rule() {
    let (yaml, _) = drafted(&recorded(4), &Schema::free(), None);
    assert!(
        yaml.contains("# - 4 objects were recorded, and a rule needs 5: record more"),
        "{yaml}"
    );
    assert!(!yaml.contains("removed:") && !yaml.contains("rules:"), "{yaml}");
    // Nine objects do not close a set.
    let (yaml, _) = drafted(&recorded(9), &Schema::free(), None);
    assert!(!yaml.contains("otherTypes"), "{yaml}");
    assert!(
        yaml.contains("# - may /status/conditions have other types? 0.00 new types expected in the next object, of 9; seen: Ready, VolumeBound"),
        "{yaml}"
    );
}

#[test]
fn one_object_that_contradicts_a_rule_turns_it_into_a_question() {
    let text = recorded(30).replacen(
        r#""reason":"Working","status":"True""#,
        r#""reason":"Waiting","status":"True""#,
        1,
    );
    let (yaml, warned) = drafted(&text, &Schema::free(), None);
    assert_eq!(warned, 0);
    assert!(
        yaml.contains("# - Ready with the reason Waiting is False in 30 of 31 objects"),
        "{yaml}"
    );
    assert!(yaml.contains("\"True\": [Waiting, Working]"), "{yaml}");
}

#[test]
fn questions_that_are_left_out_are_counted() {
    // Each of twelve types has one reason with which one object has another status.
    let mut lines = Vec::new();
    for name in 0..30 {
        let conditions: Vec<Value> = (0..12)
            .map(|kind| {
                let status = if name == kind { "False" } else { "True" };
                condition(&format!("Kind{kind}"), status, "Done", name, 1)
            })
            .collect();
        lines.push(write(name, 1, &json!({}), &json!({"conditions": conditions})));
    }
    let (yaml, _) = drafted(&lines.join("\n"), &Schema::free(), None);
    assert_eq!(yaml.matches("is the other one a bug?").count(), 10, "{yaml}");
    let left_out = yaml.lines().find(|line| line.ends_with("and questions were left out."));
    assert!(left_out.is_some(), "{yaml}");
}

#[test]
fn a_rule_of_the_base_that_the_recording_contradicts_is_switched_off() {
    // Without Ready, it is not a resource of Knative.
    let text =
        recorded(12).replace("VolumeBound", "volumeBound").replace("\"Ready\"", "\"Usable\"");
    let (yaml, warned) = drafted(&text, &Schema::free(), None);
    assert_eq!(warned, 0);
    assert!(
        yaml.contains("condition-type-case]  # 12 of 12 objects contradict condition-type-case"),
        "{yaml}"
    );
}

#[test]
fn a_definition_gives_enums_required_fields_and_keys() {
    let schema = Schema::compile(
        &json!({"properties": {"status": {
            "required": ["phase"],
            "properties": {
                "phase": {"enum": ["Creating", "Running", "Degraded", "Lost"]},
                "conditions": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type", "reason"]},
                "mode": {"enum": ["a", "b"]},
            },
        }}}),
        NEWEST,
    );
    let (yaml, warned) = drafted(&recorded(12), &schema, None);
    assert_eq!(warned, 0);
    for part in [
        "    path: /status/phase  # the CRD",
        "- {phase: Lost}  # 0 objects",
        "key: [type, reason]  # the CRD",
        "- {id: mode-enum, path: /status/mode, enum: [a, b], action: Warn}  # the CRD",
        "- {id: phase-required, path: /status/phase, required: true, action: Warn}  # the CRD",
    ] {
        assert!(yaml.contains(part), "{part}\n{yaml}");
    }
}

#[test]
fn an_existing_convention_is_compared() {
    let sources = [Source::new(
        "own.yaml",
        "apiVersion: statusgate.dev/v1alpha1\nkind: StatusConvention\nmetadata: {name: own}\nspec:\n  extends: metav1\n  conditions:\n    - path: /status/conditions\n      types:\n        Ready: {removed: Warn, reasons: {\"False\": [Waiting]}}\n",
    )];
    let against = Some(Against { convention: "own", sources: &sources });
    let files = [Source::new("writes.jsonl", recorded(12))];
    let manifests = Manifests::read(&files);
    let none = PolicySet::compile(&[]).unwrap();
    let recordings = Recording::all(&manifests, false, |identity| Served::guessed(identity, &none));
    let yaml = draft(&recordings[0], &Schema::free(), against).unwrap().to_yaml();
    for part in [
        "extends: own",
        "# - types and reasons that it does not know: Ready with Working, VolumeBound (12 objects)",
        "own/condition-removed",
        "VolumeBound: {reasons: {\"False\": [NoVolume], \"True\": [Bound]",
    ] {
        assert!(yaml.contains(part), "{part}\n{yaml}");
    }
    let ready = yaml.lines().find(|line| line.trim_start().starts_with("Ready: ")).unwrap();
    assert!(!ready.contains("removed") && !ready.contains("reasons"), "inherited: {ready}");
    let unknown = Against { convention: "other", sources: &[] };
    assert!(draft(&recordings[0], &Schema::free(), Some(unknown)).is_err());
}

#[test]
fn every_table_has_a_bound() {
    // 20 objects with 100 types of their own, and times, fields and repeated types that would be compared with each other.
    let mut lines = Vec::new();
    for name in 0..20 {
        let many: Vec<Value> = (0..100)
            .map(|index| {
                condition(&format!("T{name}-{index}"), "True", &format!("R{index}"), name, 1)
            })
            .collect();
        let same: Vec<Value> = (0..5000)
            .map(|index| condition("Ready", "True", &index.to_string(), name, 1))
            .collect();
        let fields: serde_json::Map<String, Value> = (0..2000)
            .map(|index| {
                (format!("at{index}"), json!(format!("2026-01-01T00:{:02}:00Z", index % 60)))
            })
            .collect();
        let status = json!({"conditions": many, "more": {"conditions": same}, "times": fields});
        lines.push(write(name, 1, &json!({}), &status));
    }
    let started = std::time::Instant::now();
    let (yaml, _) = drafted(&lines.join("\n"), &Schema::free(), None);
    assert!(started.elapsed().as_secs() < 60, "{:?}", started.elapsed());
    assert!(!yaml.contains("otherTypes") && !yaml.contains("/status/more"), "{yaml}");
    let repeated: Vec<String> = (0..MAX_WRITES_OF_OBJECT + 7)
        .map(|count| write(0, 1, &json!({}), &json!({"count": count})))
        .collect();
    let (yaml, _) = drafted(&repeated.join("\n"), &Schema::free(), None);
    assert!(yaml.contains("# - 7 more writes were not read"), "{yaml}");
}

#[test]
fn a_list_that_only_has_the_name_of_conditions_is_a_history() {
    let entry = |index: usize| json!({"phase": format!("P{index}"), "at": format!("2026-01-01T00:00:{index:02}Z")});
    let mut lines = Vec::new();
    for name in 0..6 {
        let mut old = json!({});
        for last in 1..8usize {
            let entries: Vec<Value> = (last.saturating_sub(4)..last).map(entry).collect();
            let new = json!({"conditions": entries});
            lines.push(write(name, last, &old, &new));
            old = new;
        }
    }
    let (yaml, warned) = drafted(&lines.join("\n"), &Schema::free(), None);
    assert_eq!(warned, 0);
    assert!(!yaml.contains("extends") && yaml.contains("history: {}"), "{yaml}");
    assert!(
        yaml.contains("history: {}, maxItems: 4, tooLong: Warn}  # only grew in 6 objects, and 6 reached this length"),
        "{yaml}"
    );
}

#[test]
fn names_that_yaml_does_not_allow_or_that_nobody_sees_are_no_rules() {
    let text = recorded(12)
        .replace("Running", "Run\u{fffe}ning")
        .replace("VolumeBound", "Volume\u{202e}Bound");
    let (yaml, warned) = drafted(&text, &Schema::free(), None);
    assert_eq!(warned, 0);
    assert!(
        !yaml.contains(['\u{fffe}', '\u{202e}', '\u{85}']) && !yaml.contains("correction"),
        "{yaml}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Any names and values give a document that compiles, and that the recording itself does not contradict.
    #[test]
    fn any_recording_becomes_a_document(
        kinds in prop::collection::vec("\\PC{1,12}|[A-Z][a-z]{1,8}", 1..4),
        reasons in prop::collection::vec("\\PC{0,12}|[A-Z][a-z]{1,8}|\u{202e}x: #", 1..4),
        phases in prop::collection::vec("\\PC{1,10}|true|~|- a|[A-Z][a-z]{1,8}", 1..4),
        objects in 5usize..14,
        seed in any::<u64>(),
    ) {
        let mut seed = seed;
        let mut next = |limit: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(seed >> 33).unwrap_or_default() % limit
        };
        let mut lines = Vec::new();
        for name in 0..objects {
            let mut old = json!({});
            for second in 0..4 {
                let conditions: Vec<Value> = kinds.iter().map(|kind| {
                    let status = ["True", "False", "Unknown", "odd"][next(4)];
                    condition(kind, status, &reasons[next(reasons.len())], name, next(50))
                }).collect();
                let phase = &phases[next(phases.len())];
                let new = json!({"phase": phase, "done": next(2) == 0, "a/b~c": phase, "conditions": conditions});
                lines.push(write(name, second * 10, &old, &new));
                old = new;
            }
        }
        drafted(&lines.join("\n"), &Schema::free(), None);
    }
}
