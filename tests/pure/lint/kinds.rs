//! Each kind of remark has an example, which gets such a remark.

use serde_json::{Value, json};
use statusgate_analysis::lint::{self, Kind, Remark};

use crate::support::compile;

#[test]
fn the_example_of_each_kind_gets_one_remark_of_this_kind() {
    for kind in Kind::ALL {
        let policies = compile(&[kind.example().to_owned()]);
        let conventions = policies.given_names().map(|name| lint::lint(&policies, name).unwrap());
        let of_policies =
            policies.policies().iter().map(|policy| lint::lint_policy(&policies, policy));
        let remarks = conventions.chain(of_policies).flat_map(|report| report.remarks);
        // kstatus has no phases, so examples about health also differ from it.
        let differs = |remark: &Remark| remark.kind == Kind::HealthDiffersFromKstatus;
        let found: Vec<Remark> =
            remarks.filter(|remark| remark.kind == kind || !differs(remark)).collect();
        let kinds: Vec<Kind> = found.iter().map(|remark| remark.kind).collect();
        assert_eq!(kinds, [kind], "{found:#?}");
    }
}

/// The documents with moves from every phase to every phase. `None` if they have no phases, or moves of their own.
fn with_moves(documents: &str) -> Option<String> {
    let mut all = documents.split("---\n").map(|text| serde_saphyr::from_str(text).unwrap());
    let moved = all.find_map(|mut document: Value| {
        let phase = document["spec"]["phase"].as_object_mut()?;
        let values = phase["values"].as_array()?.clone();
        let names: Vec<&str> = values.iter().map(|of| of["phase"].as_str().unwrap()).collect();
        let from: serde_json::Map<String, Value> =
            names.iter().chain([&""]).map(|name| ((*name).to_owned(), json!(names))).collect();
        let known = phase.insert("moves".to_owned(), json!({"from": from, "action": "Deny"}));
        known.is_none().then(|| document.to_string())
    });
    Some(format!("{}\n", moved?))
}

#[test]
fn complete_moves_hide_no_fault() {
    let mut count = 0;
    for kind in Kind::ALL.into_iter().filter(|kind| kind.is_fault()) {
        let Some(documents) = with_moves(kind.example()) else { continue };
        let report = lint::lint(&compile(&[documents]), "example").unwrap();
        let found = report.remarks.iter().find(|remark| remark.kind == kind);
        assert!(found.is_some(), "{}: {report:#?}", kind.name());
        count += 1;
    }
    assert!(count >= 6, "{count}");
}

#[test]
fn each_kind_has_a_meaning_and_a_help_in_sentences() {
    for kind in Kind::ALL {
        for text in [kind.meaning(), kind.help()] {
            assert!(text.ends_with('.') && !text.contains("  "), "{}: {text}", kind.name());
        }
    }
}
