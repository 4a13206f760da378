//! The built-in conventions have no faults, and the engine confirms what lint proves.

use serde_json::Value;
use statusgate_analysis::lint::{self, Kind, Remark};
use statusgate_core::model::Pointer;
use statusgate_core::policy::PolicySet;

use crate::support::{Write, built_in, following};

#[test]
fn the_built_in_conventions_have_no_faults() {
    for name in PolicySet::built_in_names() {
        let report = lint::lint(built_in(), name).unwrap();
        let faults: Vec<&Remark> =
            report.remarks.iter().filter(|remark| remark.kind.is_fault()).collect();
        assert!(faults.is_empty(), "{name}: {faults:#?}");
        let unproven = report.remarks.iter().any(|remark| remark.kind == Kind::NotProven);
        assert!(!unproven, "{name}: {:#?}", report.remarks);
    }
}

/// In each row of each truth table with evidence, the two webhooks admit a phase, repair a contradicted
/// phase to an admissible one, and change nothing in a second run.
#[test]
fn repair_lands_on_an_admissible_phase_in_every_row() {
    use statusgate_analysis::facts::{Answer, Fact, Represents};
    use statusgate_analysis::table::{Table, has_evidence};
    let with_evidence = built_in()
        .conventions()
        .values()
        .filter(|convention| convention.phase.as_deref().is_some_and(has_evidence));
    let mut walked = 0;
    for convention in with_evidence {
        let rules = convention.phase.as_ref().unwrap();
        let table = Table::of_phase(convention, rules).unwrap();
        let policies = following(&convention.name, "disagreement: Repair");
        let phase_at = rules.paths().next().unwrap();
        for (number, outcome) in table.iter() {
            assert!(outcome.admissible.contains(&true), "{}: row {number}", convention.name);
            let combination = table.space.combination(number);
            // An object for the row, built without the table's code.
            let mut object =
                serde_json::json!({"metadata": {"name": "x"}, "status": {"conditions": []}});
            let mut old = object.clone();
            let mut resource = "things";
            for ((fact, answers), at) in table.space.facts.iter().zip(&combination) {
                match (fact, &answers[*at]) {
                    (Fact::Deleting, Answer::Flag(true)) => {
                        for object in [&mut object, &mut old] {
                            object["metadata"]["deletionTimestamp"] = TIME.into();
                        }
                    }
                    (
                        Fact::Condition { kind, .. },
                        Answer::Condition { status, reason, represents },
                    ) => {
                        let mut condition = serde_json::json!({
                            "type": kind, "status": status.name(), "reason": reason,
                            "message": "", "lastTransitionTime": TIME,
                        });
                        if reason.is_empty() {
                            assert_eq!(*represents, Represents::Itself);
                            condition.as_object_mut().unwrap().remove("reason");
                        }
                        object["status"]["conditions"].as_array_mut().unwrap().push(condition);
                    }
                    (Fact::Resource, Answer::Value { value, .. }) => {
                        resource = value.as_str().unwrap();
                    }
                    (Fact::Field { path, .. }, Answer::Value { value, .. }) => {
                        *at_path(&mut object, path) = value.clone();
                    }
                    (Fact::Phase { old: true }, Answer::Value { value, .. }) => {
                        *at_path(&mut old, phase_at) = value.clone();
                    }
                    (_, Answer::Absent | Answer::Flag(false)) => {}
                    other => panic!("a fact that this test does not know: {other:?}"),
                }
            }
            // A contradicted phase of each row, another one in each.
            let wrong: Vec<usize> =
                (0..rules.phases.len()).filter(|at| !outcome.admissible[*at]).collect();
            walked += 1;
            if wrong.is_empty() {
                continue;
            }
            let written = &rules.phases[wrong[number % wrong.len()]];
            *at_path(&mut object, phase_at) = written.name.as_str().into();
            let phase_in = |object: &Value| object.pointer(&phase_at.to_string()).cloned();
            let stood_before = phase_in(&old) == phase_in(&object);
            let mutated = |object| mutated(&policies, resource, &old, object);
            let stored = mutated(&object);
            let phase = phase_in(&stored).unwrap();
            let at = rules
                .phases
                .iter()
                .position(|known| known.name == phase.as_str().unwrap())
                .unwrap();
            if let Some(imposed) = outcome.imposed {
                assert_eq!(at, imposed, "{}: row {number}", convention.name);
            } else if !stood_before {
                // Without a phase to choose, the written one stays.
                let from = wrong[number % wrong.len()];
                let repaired = outcome.repairs[from];
                assert_eq!(at, repaired.unwrap_or(from), "{}: row {number}", convention.name);
                assert!(repaired.is_none_or(|at| outcome.admissible[at]), "{}", convention.name);
            }
            assert_eq!(mutated(&stored), stored, "{}: row {number}", convention.name);
        }
    }
    // AppCat's 4032 and the proposed CSV's 252.
    assert!(walked >= 4284, "{walked}");
}

const TIME: &str = "2026-01-01T00:00:00Z";

fn at_path<'o>(object: &'o mut Value, path: &Pointer) -> &'o mut Value {
    path.tokens().iter().fold(object, |object, token| &mut object[token.as_str()])
}

fn mutated(policies: &PolicySet, resource: &str, old: &Value, new: &Value) -> Value {
    let write = Write::of_texts(Some(old.to_string()), new.to_string());
    write.addressing("g", "v1", resource).at("2026-01-10T00:00:00Z").mutate(policies).object()
}
