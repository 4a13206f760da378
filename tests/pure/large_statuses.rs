//! Very large statuses: the work for one write grows with its size, not with its square, and what exceeds a
//! limit is reported once.
//!
//! No test reads a clock. The texts, objects and lists of `LONG` parts are so long that work for each pair of
//! parts would take an unoptimized build many minutes. Work for each part takes an instant.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::Value;
use statusgate_core::engine::Action;
use statusgate_core::model::{MAX_ELEMENTS, Webhook};
use statusgate_core::policy::PolicySet;

use crate::support::{Outcome, Write, compile, convention, following, policy, under};

/// One element less than the longest list that is judged.
const MANY: usize = MAX_ELEMENTS - 1;

const LONG: usize = 30_000;

/// A write of whole objects as text: the new one, and the stored one; without it, the same without a status.
fn write(new: &str, old: Option<&str>) -> Write {
    let without_status = || {
        let mut object: Value = serde_json::from_str(new).unwrap();
        object.as_object_mut().unwrap().remove("status");
        object.to_string()
    };
    let old = old.map_or_else(without_status, str::to_owned);
    Write::of_texts(Some(old), new.to_owned()).at("1970-01-01T00:00:00Z")
}

/// A convention with one list of conditions.
fn list(spec: &str, more: &str) -> PolicySet {
    under(format!("conditions: [{{path: /status/conditions{spec}}}]{more}"), "")
}

/// An object with these conditions.
fn object(conditions: impl Iterator<Item = String>) -> String {
    let conditions: Vec<String> = conditions.collect();
    format!(
        r#"{{"metadata":{{"generation":1}},"status":{{"conditions":[{}]}}}}"#,
        conditions.join(",")
    )
}

/// Members `m0`, `m1`, …, each after a comma.
fn members(order: impl Iterator<Item = usize>) -> String {
    order.fold(String::new(), |mut all, at| {
        write!(all, r#","m{at}":0"#).unwrap();
        all
    })
}

/// The path and value of each operation of the patch.
fn operations(outcome: &Outcome) -> Vec<(&str, &Value)> {
    let all = outcome.patch.as_array().map(Vec::as_slice).unwrap_or_default();
    all.iter().map(|operation| (operation["path"].as_str().unwrap(), &operation["value"])).collect()
}

// --- defaults ---------------------------------------------------------------------------------

#[test]
fn a_default_member_is_set_in_each_of_many_elements() {
    let policies = list(
        "",
        ", backfill: [{list: /status/conditions, member: message, copyOf: [stored, {condition: T7, member: status}]}, \
        {list: /status/conditions, member: reason, value: None}]",
    );
    let stored = object((0..MANY).rev().map(|at| match at % 2 {
        0 => format!(r#"{{"type":"T{at}","message":"m{at}"}}"#),
        _ => format!(r#"{{"type":"T{at}"}}"#),
    }));
    let written = object((0..MANY).map(|at| format!(r#"{{"type":"T{at}","status":"s{at}"}}"#)));
    let outcome = write(&written, Some(&stored)).mutate(&policies);
    let operations = operations(&outcome);
    assert_eq!(operations.len(), 2 * MANY);
    assert_eq!(operations[900], ("/status/conditions/900/message", &"m900".into()));
    assert_eq!(operations[901], ("/status/conditions/901/message", &"s7".into()));
    assert_eq!(operations[MANY + 5], ("/status/conditions/5/reason", &"None".into()));
}

#[test]
fn a_steady_member_is_restored_in_each_of_many_elements() {
    let policies =
        list("", ", backfill: [{list: /status/conditions, member: at, steadyWhile: [status]}]");
    let conditions =
        |time: &str| object((0..MANY).map(|at| format!(r#"{{"type":"T{at}","at":"{time}"}}"#)));
    let outcome = write(&conditions("new"), Some(&conditions("old"))).mutate(&policies);
    let operations = operations(&outcome);
    assert_eq!(operations.len(), MANY);
    assert!(operations.iter().all(|(_, value)| *value == "old"));
}

#[test]
fn a_status_with_many_members_is_searched_by_name() {
    let policies =
        list("", ", backfill: [{list: /status/conditions, member: reason, value: None}]");
    let written = object((0..MANY).map(|at| format!(r#"{{"type":"T{at}"}}"#)));
    let written = written.replace("]}}", &format!("]{}}}}}", members(0..LONG)));
    assert_eq!(operations(&write(&written, None).mutate(&policies)).len(), MANY);
}

#[test]
fn a_member_is_removed_from_many_elements_in_one_pass() {
    let policies = list(
        ", transitionTime: {member: at, mustMoveOn: [severity], mayMoveOn: [severity], kept: Deny}",
        ", backfill: [{list: /status/conditions, member: severity, \
        absentWhere: {all: [{member: status, is: 'True'}, {condition: Ready, is: 'True'}]}}]",
    );
    let conditions = |severity: &str| {
        let all = (0..MANY).map(move |at| {
            format!(r#"{{"type":"T{at}","status":"True",{severity}"at":"1970-01-01T00:00:00Z"}}"#)
        });
        object(all.chain([r#"{"type":"Ready","status":"True"}"#.to_owned()]))
    };
    let (with, without) = (conditions(r#""severity":"Error","#), conditions(""));
    assert_eq!(operations(&write(&with, None).mutate(&policies)).len(), MANY);
    // The times may stay: the webhook removed the member.
    write(&without, Some(&with)).validate(&policies).is_clean();
}

/// The parser leaves such a list as text until then.
#[test]
fn a_rule_reads_the_end_of_a_long_list() {
    let policies = under("fields: [{path: /status/items/-1/name, enum: [last]}]", "");
    let status = |last: &str| {
        let items = r#"{"name":"some"},"#.repeat(LONG);
        format!(r#"{{"status":{{"items":[{items}{{"name":"{last}"}}]}}}}"#)
    };
    write(&status("last"), None).validate(&policies).is_clean();
    write(&status("last"), Some(&status("other"))).validate(&policies).is_clean();
    let denials = write(&status("other"), Some(&status("last"))).validate(&policies).denials();
    assert_eq!(denials.len(), 1, "{denials:?}");
    // The change of another member does not make it worse.
    let changed = status("other").replace(r#""items""#, r#""a":1,"items""#);
    write(&changed, Some(&status("other"))).validate(&policies).is_allowed();
}

#[test]
fn a_patch_may_exceed_the_limit_of_values() {
    let copy = |at: usize| format!("{{path: /status/m{at}, copyOf: /status/list}}");
    let copies: Vec<String> = (0..8).map(copy).collect();
    let policies = under("", &format!("backfill: [{}]", copies.join(", ")));
    let written = format!(r#"{{"status":{{"list":[{}0]}}}}"#, "0,".repeat(LONG));
    assert!(write(&written, None).mutate(&policies).is_patched());
}

#[test]
fn a_long_text_is_not_copied_into_many_elements() {
    let policies = list(
        "",
        ", backfill: [{list: /status/conditions, member: message, copyOf: stored}, \
        {list: /status/conditions, member: at, steadyWhile: [status]}]",
    );
    let long = "x".repeat(1 << 20);
    let stored =
        object([format!(r#"{{"type":"A","message":"{long}","at":"{long}"}}"#)].into_iter());
    let written = object((0..MANY).map(|_| r#"{"type":"A"}"#.to_owned()));
    // A copy for each element would be two gigabytes.
    assert!(operations(&write(&written, Some(&stored)).mutate(&policies)).len() < 10);
}

// --- findings ---------------------------------------------------------------------------------

/// A convention that warns about a missing reason and denies a status that is not `True`.
fn strict() -> PolicySet {
    list(", members: {reason: {required: true, action: Warn}, status: {enum: ['True']}}", "")
}

#[test]
fn members_in_any_order_are_sorted_once() {
    let stored = object([format!(r#"{{"type":"T"{}}}"#, members((0..LONG).rev()))].into_iter());
    let written = object((0..MANY).map(|at| format!(r#"{{"type":"T{at}","b":0,"a":0}}"#)));
    let found = write(&written, Some(&stored)).validate(&strict()).findings.len();
    assert!(found > 100, "every element is new and judged: {found}");
}

#[test]
fn a_long_history_is_compared_once() {
    let policies = list(", maxItems: 10, history: {rewritten: Deny}", "");
    // Every shorter overlap of the two lists fails at its last element.
    let same = || (0..MANY).map(|_| r#"{"type":"A"}"#.to_owned());
    let stored = object(same().chain([r#"{"type":"B"}"#.to_owned()]));
    // The stored list was already too long.
    write(&object(same()), Some(&stored)).validate(&policies).is_clean();
}

#[test]
fn equal_findings_of_two_policies_are_joined() {
    let policies = compile(&[
        policy("a", "convention: c, enforcement: Warn"),
        policy("b", "convention: c"),
        convention(
            "c",
            "conditions: [{path: /status/conditions, members: {type: {required: true, type: string}}}]",
        ),
    ]);
    let written = object((0..MANY).map(|_| "{}".to_owned()));
    write(&written, None).ask(&policies, Webhook::Validate, |verdict| {
        let both = [("b", Action::Deny), ("a", Action::Warn)];
        let by_both = verdict.findings.iter().all(|finding| {
            finding.reported_by().map(|(policy, action)| (policy.as_str(), action)).eq(both)
        });
        assert!(by_both);
        assert!(verdict.is_denied());
    });
}

#[test]
fn a_denial_is_found_behind_many_warnings() {
    let bad = r#"{"type":"Z","status":"Bad","reason":"R"}"#;
    let good = (0..MANY).map(|at| format!(r#"{{"type":"T{at}","status":"True"}}"#));
    let outcome = write(&object(good.chain([bad.to_owned()])), None).validate(&strict());
    assert!(outcome.is_denied());
    let last = format!("status.conditions[{MANY}].status");
    assert!(outcome.findings.iter().any(|found| found.field == last));
    // The engine counts the other warnings and does not keep them.
    assert!(outcome.findings.len() < 200, "{}", outcome.findings.len());
    let more = format!("{} more ", MANY - 100);
    assert_eq!(outcome.findings.iter().filter(|f| f.message.starts_with(&more)).count(), 1);
}

#[test]
fn a_new_violation_is_found_among_many_stored_ones() {
    let condition = |at: usize| format!(r#"{{"type":"T{at}","status":"Bad","reason":"R"}}"#);
    let stored = object((0..MANY).map(condition));
    let written = object((0..=MANY).rev().map(condition));
    let outcome = write(&written, Some(&stored)).validate(&strict());
    let fields: Vec<&str> = outcome.findings.iter().map(|found| found.field.as_str()).collect();
    assert_eq!(fields, ["status.conditions[0].status"]);
}

#[test]
fn a_long_type_is_not_copied_for_each_finding_of_its_element() {
    let policies = list(", members: {type: {required: true}}, otherMembers: Deny", "");
    let kind = "T".repeat(4 << 20);
    let stored = object([format!(r#"{{"type":"{kind}"}}"#)].into_iter());
    let written = object([format!(r#"{{"type":"{kind}"{}}}"#, members(0..LONG))].into_iter());
    assert!(write(&written, Some(&stored)).validate(&policies).is_denied());
}

/// The rules that find something in a first status.
fn rules(policies: &PolicySet, written: &str) -> BTreeSet<String> {
    let findings = write(written, None).validate(policies).findings;
    findings.into_iter().map(|found| found.rule).collect()
}

#[test]
fn a_rule_about_each_element_reads_the_list_once() {
    let written = |more: usize| {
        let more = (0..more).map(|at| format!(r#"{{"type":"T{at}","observedGeneration":2}}"#));
        let last = [
            r#"{"type":"Stalled","status":"True","observedGeneration":1}"#.to_owned(),
            r#"{"type":"Ready","status":"True","observedGeneration":0}"#.to_owned(),
        ];
        object(more.chain(last))
            .replace(r#""conditions""#, r#""observedGeneration":0,"conditions""#)
    };
    let flux = following("kstatus-flux", "");
    let many = rules(&flux, &written(MANY - 1));
    assert_eq!(many, rules(&flux, &written(2)));
    for rule in ["ready-with-old-generation", "stalled-and-ready"] {
        assert!(many.iter().any(|found| found.ends_with(rule)), "{rule}: {many:?}");
    }
}

#[test]
fn many_gates_are_looked_up_among_many_conditions() {
    let written = |many: usize| {
        let conditions =
            (0..many).map(|at| format!(r#"{{"type":"T{at}","status":"True","severity":"Error"}}"#));
        let gates: Vec<String> = (0..many)
            .rev()
            .map(|at| format!(r#"{{"conditionType":"T{at}","polarity":"Positive"}}"#))
            .collect();
        let spec = format!(r#"{{"spec":{{"readinessGates":[{}]}},"#, gates.join(","));
        let ready = r#"{"type":"Ready","status":"True"}"#.to_owned();
        object(conditions.chain([ready])).replacen('{', &spec, 1)
    };
    let policies = list(
        ", polarityFrom: [/spec/readinessGates], each: [{id: severity, \
        when: {all: [{polarity: positive}, {member: severity, set: true}, {gates: /spec/readinessGates}]}, \
        member: severity, action: Warn, message: all is well}]",
        ", rules: [{id: gates, when: {gates: /spec/readinessGates}, path: /status/x, action: Warn, \
        message: all gates are open}]",
    );
    let many = rules(&policies, &written(MANY));
    assert_eq!(many, BTreeSet::from(["c/gates".to_owned(), "c/severity".to_owned()]));
    assert_eq!(many, rules(&policies, &written(3)));
}

// --- limits -----------------------------------------------------------------------------------

/// What a policy finds in each element.
const IN_EACH: &str = ", members: {reason: {required: true}}, \
    each: [{id: e, when: {member: status, set: false}, action: Warn, message: m}]";

#[test]
fn a_list_that_becomes_too_long_is_rejected_and_not_patched() {
    let policies = list(
        IN_EACH,
        ", backfill: [{list: /status/conditions, member: message, value: ''}, \
        {list: /status/conditions, member: at, steadyWhile: [status]}, \
        {list: /status/conditions, member: m, absentWhere: {member: status, set: false}}, \
        {list: /status/conditions, element: {type: New, status: Unknown}}]",
    );
    let element = |at: usize| format!(r#"{{"type":"T{at}","at":"x","m":1}}"#);
    let mut elements: Vec<String> = (0..=MAX_ELEMENTS).map(element).collect();
    let status = |elements: &[String]| {
        format!(r#"{{"status":{{"n":{},"conditions":[{}]}}}}"#, elements.len(), elements.join(","))
    };
    let long = status(&elements);
    elements.pop();
    let longest = status(&elements);
    elements.pop();
    let shorter = status(&elements);
    let message =
        "deny status.conditions: must have at most 1000 items to be judged [c/condition-shape]";
    for stored in [None, Some("{}"), Some(longest.as_str())] {
        let outcome = write(&long, stored).review(&policies);
        assert_eq!((outcome.is_patched(), outcome.lines()), (false, vec![message.to_owned()]));
    }
    // A stored list may stay too long, and become shorter.
    let kept = long.replace(r#""n":"#, r#""n":-"#);
    let warning = message.replace("deny", "warn");
    assert_eq!(write(&kept, Some(&long)).review(&policies).lines(), [warning]);
    write(&shorter, Some(&long)).validate(&policies).is_allowed();
    // No default makes a list too long.
    let kinds = |status: &Value| status["conditions"].as_array().map(Vec::len);
    let outcome = write(&longest, Some("{}")).mutate(&policies);
    assert_eq!(kinds(&outcome.status()), Some(MAX_ELEMENTS));
}

#[test]
fn lists_inside_a_list_and_maps_are_limited_too() {
    let object = |list: &str| format!(r#"{{"status":{{"parents":{list}}}}}"#);
    let parents = |count: usize, inside: usize| {
        let conditions = vec![r#"{"type":"A"}"#; inside].join(",");
        let parent = |at: usize| format!(r#"{{"name":"p{at}","conditions":[{conditions}]}}"#);
        object(&format!("[{}]", (0..count).map(parent).collect::<Vec<_>>().join(",")))
    };
    let values: Vec<String> = (0..=MAX_ELEMENTS).map(|at| format!(r#""k{at}":{{}}"#)).collect();
    let under = |path: &str| under(format!("conditions: [{{path: {path}{IN_EACH}}}]"), "");
    let nested = under("/status/parents/*/conditions, parentKey: [name]");
    let map = under("/status/parents/*");
    for (policies, written, most) in [
        (&nested, parents(MAX_ELEMENTS + 1, 0), 1000),
        (&nested, parents(10, MAX_ELEMENTS / 2 + 1), 5000),
        (&map, object(&format!("{{{}}}", values.join(","))), 1000),
    ] {
        let outcome = write(&written, None).validate(policies);
        let message = format!("must have at most {most} items to be judged");
        let found: Vec<&str> = outcome.findings.iter().map(|found| &*found.message).collect();
        assert_eq!((found, outcome.is_denied()), (vec![message.as_str()], true));
        let kept = written.replacen(r#"{"parents""#, r#"{"n":1,"parents""#, 1);
        assert!(!write(&kept, Some(&written)).validate(policies).is_denied());
    }
}

#[test]
fn only_the_write_that_makes_a_status_too_large_to_be_judged_is_rejected() {
    let policies = following("appcat", "");
    let large = |phase: &str| {
        let list = "0,".repeat(200_000);
        format!(r#"{{"metadata":{{}},"status":{{"phase":"{phase}","list":[{list}0]}}}}"#)
    };
    let small = r#"{"status":{"phase":"Ready","instanceNamespace":"n"}}"#;
    let rule = "appcat/status";
    write(&large("Ready"), None).review(&policies).denied_by(&[rule]);
    write(&large("Ready"), Some(small)).review(&policies).denied_by(&[rule]);
    for phase in ["Unknown", "Ready", "ready"] {
        let write = write(&large(phase), Some(&large("Failed")));
        write.review(&policies).warns(rule);
        write.deleting().review(&policies).warns(rule);
    }
    write(small, Some(&large("Failed"))).review(&policies).is_allowed();
    // A smaller status is judged as a first one.
    let unsupported = small.replace("Ready", "ready");
    write(&unsupported, Some(&large("Failed")))
        .review(&policies)
        .denied_by(&["appcat/phase-value"]);
}
