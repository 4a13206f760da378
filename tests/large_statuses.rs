//! Statuses that nobody means to write: as large as a request can carry. What one write may cost
//! grows with its size, not with the square of it.
//!
//! Nothing here looks at a clock. The lists are so long that work for each pair of elements would
//! take an unoptimised build many minutes, and work for each element takes an instant.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests, and their helpers too")]

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::{Value, json};
use statusgate::engine::{Action, Verdict, decide};
use statusgate::model::{Object, Operation, Resource, Subject, Webhook, Writer};
use statusgate::policy::{PolicySet, Source};
use statusgate::server::admit::{Reply, admit};

const MANY: usize = 30_000;

/// A policy for resources `things` of the group `t.example`.
fn policy(name: &str, spec: &str) -> String {
    format!(
        "apiVersion: statusgate.dev/v1alpha1\nkind: StatusPolicy\nmetadata: {{name: {name}}}\n\
         spec:\n  resources: [{{apiGroups: [t.example], apiVersions: [v1], resources: [things]}}]\n{spec}"
    )
}

fn convention(spec: &str) -> String {
    format!(
        "---\napiVersion: statusgate.dev/v1alpha1\nkind: StatusConvention\nmetadata: {{name: c}}\nspec:\n{spec}"
    )
}

fn compile(documents: &str) -> PolicySet {
    let source = Source { name: "t.yaml".into(), text: documents.to_owned() };
    PolicySet::compile(&[source]).unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

/// A write of `new` over `old`: whole objects, as text.
fn subject<'a>(new: &'a str, old: Option<&'a str>) -> Subject<'a> {
    Subject {
        resource: Resource {
            group: "t.example".into(),
            version: "v1".into(),
            resource: "things".into(),
        },
        subresource: "status".into(),
        operation: Operation::Update,
        writer: Writer::default(),
        object: Object::parse(new).unwrap(),
        old: old.map(|old| Object::parse(old).unwrap()),
    }
}

fn judge<'p>(policies: &'p PolicySet, subject: &'p Subject<'_>, webhook: Webhook) -> Verdict<'p> {
    decide(policies, subject, webhook, jiff::Timestamp::UNIX_EPOCH)
}

/// An object with these conditions.
fn object(conditions: impl Iterator<Item = String>) -> String {
    let mut list = String::new();
    for condition in conditions {
        let comma = if list.is_empty() { "" } else { "," };
        write!(list, "{comma}{condition}").unwrap();
    }
    format!(r#"{{"metadata":{{"generation":1}},"status":{{"conditions":[{list}]}}}}"#)
}

/// The operations of a patch: place and value of each.
fn operations(verdict: &Verdict<'_>) -> Vec<(String, Value)> {
    let patch = serde_json::to_value(verdict.patch.as_ref()).unwrap();
    let text = |operation: &Value| operation["path"].as_str().unwrap_or_default().to_owned();
    let all = patch.as_array().map(Vec::as_slice).unwrap_or_default();
    all.iter().map(|operation| (text(operation), operation["value"].clone())).collect()
}

#[test]
fn a_member_is_filled_in_for_each_of_many_elements() {
    let policies = compile(
        &(policy("p", "  convention: c\n")
            + &convention(
                "  conditions:\n  - path: /status/conditions\n  backfill:\n\
                 \x20 - {list: /status/conditions, member: message, copyOf: [stored, {condition: T7, member: status}]}\n\
                 \x20 - {list: /status/conditions, member: reason, value: None}\n",
            )),
    );
    let stored = object((0..MANY).rev().map(|at| match at % 2 {
        0 => format!(r#"{{"type":"T{at}","message":"m{at}"}}"#),
        _ => format!(r#"{{"type":"T{at}"}}"#),
    }));
    let written = object((0..MANY).map(|at| format!(r#"{{"type":"T{at}","status":"s{at}"}}"#)));
    let subject = subject(&written, Some(&stored));
    let operations = operations(&judge(&policies, &subject, Webhook::Mutate));
    assert_eq!(operations.len(), 2 * MANY);
    let place = |at: usize, member: &str| format!("/status/conditions/{at}/{member}");
    assert_eq!(operations[28_000], (place(28_000, "message"), "m28000".into()));
    assert_eq!(operations[28_001], (place(28_001, "message"), "s7".into()));
    assert_eq!(operations[MANY + 5], (place(5, "reason"), "None".into()));
}

#[test]
fn a_member_is_kept_steady_in_each_of_many_elements() {
    let policies = compile(
        &(policy("p", "  convention: c\n")
            + &convention(
                "  conditions:\n  - path: /status/conditions\n  backfill:\n\
                 \x20 - {list: /status/conditions, member: at, steadyWhile: [status]}\n",
            )),
    );
    let conditions =
        |time: &str| object((0..MANY).map(|at| format!(r#"{{"type":"T{at}","at":"{time}"}}"#)));
    let (written, stored) = (conditions("new"), conditions("old"));
    let subject = subject(&written, Some(&stored));
    let operations = operations(&judge(&policies, &subject, Webhook::Mutate));
    assert_eq!(operations.len(), MANY);
    assert!(operations.iter().all(|(_, value)| value == "old"));
}

#[test]
fn members_of_many_names_are_found_without_looking_at_each() {
    let policies = compile(
        &(policy("p", "  convention: c\n")
            + &convention(
                "  conditions:\n  - path: /status/conditions\n  backfill:\n\
                 \x20 - {list: /status/conditions, member: reason, value: None}\n",
            )),
    );
    let names = (0..MANY).fold(String::new(), |mut all, at| {
        write!(all, r#","m{at}":0"#).unwrap();
        all
    });
    let written = object((0..MANY).map(|at| format!(r#"{{"type":"T{at}"}}"#)));
    let written = written.replace("]}}", &format!("]{names}}}}}"));
    let subject = subject(&written, None);
    assert_eq!(operations(&judge(&policies, &subject, Webhook::Mutate)).len(), MANY);
}

#[test]
fn members_in_any_order_are_sorted_once() {
    let members = (0..MANY).rev().fold(String::new(), |mut all, at| {
        write!(all, r#","m{at}":0"#).unwrap();
        all
    });
    let stored = object([format!(r#"{{"type":"T"{members}}}"#)].into_iter());
    let written = object((0..MANY).map(|at| format!(r#"{{"type":"T{at}","b":0,"a":0}}"#)));
    let subject = subject(&written, Some(&stored));
    let verdict = judge(&strict(), &subject, Webhook::Validate).findings.len();
    assert!(verdict > 100, "each is new and judged: {verdict}");
}

#[test]
fn what_is_taken_out_of_many_elements_is_looked_for_once() {
    let policies = compile(
        &(policy("p", "  convention: c\n")
            + &convention(
                "  conditions:\n  - path: /status/conditions\n\
                 \x20   transitionTime: {member: at, mustMoveOn: [severity], mayMoveOn: [severity], kept: Deny}\n\
                 \x20 backfill:\n\
                 \x20 - {list: /status/conditions, member: severity, absentWhere: {all: [{member: status, is: \"True\"}, {condition: Ready, is: \"True\"}]}}\n",
            )),
    );
    let conditions = |severity: &str| {
        let all = (0..MANY).map(move |at| {
            format!(r#"{{"type":"T{at}","status":"True",{severity}"at":"1970-01-01T00:00:00Z"}}"#)
        });
        object(all.chain([r#"{"type":"Ready","status":"True"}"#.to_owned()]))
    };
    let (with, without) = (conditions(r#""severity":"Error","#), conditions(""));
    let subject = subject(&with, None);
    assert_eq!(operations(&judge(&policies, &subject, Webhook::Mutate)).len(), MANY);
    // That it is gone is not held against the times.
    let subject = self::subject(&without, Some(&with));
    assert_eq!(judge(&policies, &subject, Webhook::Validate).findings, []);
}

#[test]
fn a_long_history_is_compared_once() {
    let policies = compile(
        &(policy("p", "  convention: c\n")
            + &convention(
                "  conditions:\n  - path: /status/conditions\n    maxItems: 10\n    history: {rewritten: Deny}\n",
            )),
    );
    // Each overlap of the two but the last fails at its very end.
    let same = || (0..MANY).map(|_| r#"{"type":"A"}"#.to_owned());
    let stored = object(same().chain([r#"{"type":"B"}"#.to_owned()]));
    let written = object(same());
    let subject = subject(&written, Some(&stored));
    let verdict = judge(&policies, &subject, Webhook::Validate);
    // That it is too long is nothing new.
    assert_eq!(verdict.findings, []);
}

#[test]
fn what_two_policies_say_of_many_elements_is_joined() {
    let convention = convention(
        "  conditions:\n  - path: /status/conditions\n    members: {type: {required: true, type: string}}\n",
    );
    let a = policy("a", "  convention: c\n  enforcement: Warn\n");
    let policies = compile(&(a + "---\n" + &policy("b", "  convention: c\n") + &convention));
    let written = object((0..MANY).map(|_| "{}".to_owned()));
    let subject = subject(&written, None);
    let verdict = judge(&policies, &subject, Webhook::Validate);
    let both = [("b", Action::Deny), ("a", Action::Warn)];
    assert!(verdict.findings.iter().all(|finding| finding.said_by().eq(both)));
    assert!(verdict.is_denied());
}

/// A convention that warns of a missing reason and refuses a status of another kind.
fn strict() -> PolicySet {
    let members = "{reason: {required: true, action: Warn}, status: {enum: [\"True\"]}}";
    let convention = convention(&format!(
        "  conditions:\n  - path: /status/conditions\n    members: {members}\n"
    ));
    compile(&(policy("p", "  convention: c\n") + &convention))
}

#[test]
fn a_refusal_is_found_behind_any_number_of_warnings() {
    let policies = strict();
    let bad = r#"{"type":"Z","status":"Bad","reason":"R"}"#;
    let good = (0..MANY).map(|at| format!(r#"{{"type":"T{at}","status":"True"}}"#));
    let written = object(good.chain([bad.to_owned()]));
    let subject = subject(&written, None);
    let verdict = judge(&policies, &subject, Webhook::Validate);
    assert!(verdict.is_denied());
    let last = format!("status.conditions[{MANY}].status");
    assert!(verdict.findings.iter().any(|finding| finding.field == last));
    // The others are counted, not kept.
    assert!(verdict.findings.len() < 200, "{}", verdict.findings.len());
    let more = format!("{} more of these are left out", MANY - 100);
    assert_eq!(verdict.findings.iter().filter(|finding| finding.message == more).count(), 1);
}

#[test]
fn what_is_new_is_found_among_any_number_of_old_mistakes() {
    let policies = strict();
    let condition = |at: usize| format!(r#"{{"type":"T{at}","status":"Bad","reason":"R"}}"#);
    let stored = object((0..MANY).map(condition));
    let written = object((0..=MANY).rev().map(condition));
    let subject = subject(&written, Some(&stored));
    let verdict = judge(&policies, &subject, Webhook::Validate);
    let fields: Vec<&str> = verdict.findings.iter().map(|finding| finding.field.as_str()).collect();
    assert_eq!(fields, ["status.conditions[0].status"]);
}

#[test]
fn a_long_type_is_not_copied_for_each_mistake_of_its_element() {
    let convention = convention(
        "  conditions:\n  - path: /status/conditions\n    members: {type: {required: true}}\n    otherMembers: Deny\n",
    );
    let policies = compile(&(policy("p", "  convention: c\n") + &convention));
    let members: String = (0..MANY).fold(String::new(), |mut all, at| {
        write!(all, r#","m{at}":0"#).unwrap();
        all
    });
    let kind = "T".repeat(4 << 20);
    let stored = object([format!(r#"{{"type":"{kind}"}}"#)].into_iter());
    let written = object([format!(r#"{{"type":"{kind}"{members}}}"#)].into_iter());
    let subject = subject(&written, Some(&stored));
    assert!(judge(&policies, &subject, Webhook::Validate).is_denied());
}

/// The rules that find something in what is written.
fn rules(convention: &str, written: &str) -> BTreeSet<String> {
    let policies = compile(&policy("p", &format!("  convention: {convention}\n")));
    let subject = subject(written, None);
    let verdict = judge(&policies, &subject, Webhook::Validate);
    verdict.findings.iter().map(|finding| finding.rule.to_owned()).collect()
}

#[test]
fn rules_about_each_element_look_through_the_list_once() {
    let written = |more: usize| {
        let more = (0..more).map(|at| format!(r#"{{"type":"T{at}","observedGeneration":2}}"#));
        let last = [
            r#"{"type":"Stalled","status":"True","observedGeneration":1}"#.to_owned(),
            r#"{"type":"Ready","status":"True","observedGeneration":1}"#.to_owned(),
        ];
        object(more.chain(last))
            .replace(r#""conditions""#, r#""observedGeneration":1,"conditions""#)
    };
    let many = rules("kstatus-flux", &written(MANY));
    assert_eq!(many, rules("kstatus-flux", &written(2)));
    for rule in ["bad-condition-and-ready", "ready-generation-differs"] {
        assert!(many.iter().any(|found| found.ends_with(rule)), "{rule}: {many:?}");
    }
}

#[test]
fn as_many_gates_as_conditions_are_looked_up_not_searched_for() {
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
    let convention = "c\n".to_owned()
        + &convention(
            "  conditions:\n  - path: /status/conditions\n\
             \x20   polarityFrom: [/spec/readinessGates]\n\
             \x20   each:\n\
             \x20   - id: severity\n\
             \x20     when: {all: [{polarity: positive}, {member: severity, set: true}, {gates: /spec/readinessGates}]}\n\
             \x20     member: severity\n\
             \x20     action: Warn\n\
             \x20     message: all is well\n\
             \x20 rules:\n\
             \x20 - id: gates\n\
             \x20   when: {gates: /spec/readinessGates}\n\
             \x20   path: /status/x\n\
             \x20   action: Warn\n\
             \x20   message: all gates are open\n",
        );
    let many = rules(&convention, &written(MANY));
    assert_eq!(many, BTreeSet::from(["c/gates".to_owned(), "c/severity".to_owned()]));
    assert_eq!(many, rules(&convention, &written(3)));
}

/// More values than are read, told apart by the last.
fn too_large(last: usize) -> Value {
    let list: Vec<usize> = std::iter::repeat_n(0, 200_000).chain([last]).collect();
    json!({"list": list})
}

/// What both webhooks answer, the mutating one first.
fn answers(request: &Value) -> Vec<Value> {
    let members = "{reason: {required: true, action: Deny}}";
    let convention = convention(&format!(
        "  conditions:\n  - path: /status/conditions\n    members: {members}\n"
    ));
    let owners = "  owners: [{path: /status/owned, users: [somebody]}]\n";
    let policies = compile(&(policy("p", &format!("  convention: c\n{owners}")) + &convention));
    let mut review = json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u",
            "kind": {"group": "t.example", "version": "v1", "kind": "Thing"},
            "resource": {"group": "t.example", "version": "v1", "resource": "things"},
            "subResource": "status",
            "operation": "UPDATE",
        },
    });
    for (name, value) in request.as_object().into_iter().flatten() {
        review["request"][name] = value.clone();
    }
    let body = review.to_string();
    [Webhook::Mutate, Webhook::Validate]
        .map(|webhook| {
            let now = jiff::Timestamp::UNIX_EPOCH;
            let Reply { status, body } = admit(&policies, webhook, body.as_bytes(), now, |_, _| {});
            assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
            serde_json::from_slice::<Value>(&body).unwrap()["response"].clone()
        })
        .to_vec()
}

#[test]
fn what_does_not_change_a_status_passes_however_large_it_is() {
    let object = |status: Value| json!({"metadata": {"name": "n"}, "status": status});
    let other = json!({"group": "t.example", "version": "v1", "resource": "others"});
    let finalizer = json!({"metadata": {"name": "n", "finalizers": ["f"]}, "status": too_large(1)});
    let requests = [
        json!({"operation": "DELETE", "subResource": "", "oldObject": object(too_large(1))}),
        json!({"resource": other, "object": object(too_large(1)), "oldObject": object(too_large(2))}),
        json!({"subResource": "", "object": object(too_large(1)), "oldObject": finalizer}),
        json!({"object": object(too_large(1)), "oldObject": object(too_large(1))}),
    ];
    let allowed = json!({"uid": "u", "allowed": true});
    for request in requests {
        assert_eq!(answers(&request), [allowed.clone(), allowed.clone()]);
    }
}

#[test]
fn a_new_status_of_too_many_values_is_refused_and_a_smaller_one_is_the_way_out() {
    let object = |status: Value| json!({"metadata": {"name": "n"}, "status": status});
    for old in [json!(null), object(json!({"a": 1})), object(too_large(2))] {
        let answers = answers(&json!({"object": object(too_large(1)), "oldObject": old}));
        assert_eq!(answers[0]["allowed"], true);
        let cause = &answers[1]["status"]["details"]["causes"][0];
        assert_eq!(
            (&cause["field"], &cause["reason"]),
            (&json!("status"), &json!("FieldValueTooLong"))
        );
    }
    // Whose field it was, and what was wrong before, nobody can tell any more.
    let small = |conditions: Value| {
        let status = json!({"owned": 1, "conditions": conditions});
        answers(&json!({"object": object(status), "oldObject": object(too_large(1))}))
    };
    assert_eq!(small(json!([{"type": "A", "reason": "R"}]))[1]["allowed"], true);
    assert_eq!(small(json!([{"type": "A"}]))[1]["allowed"], false);
}

#[test]
fn what_is_filled_in_beyond_the_limit_is_no_failure() {
    let defaults: String = (0..4).fold(String::new(), |mut all, at| {
        writeln!(all, "  - {{list: /status/conditions, member: m{at}, value: x}}").unwrap();
        all
    });
    // A copy may wait for other defaults: there is a second round.
    let copy = "  - {path: /status/copy, copyOf: /status/conditions}\n";
    let convention = convention(&format!(
        "  conditions:\n  - path: /status/conditions\n  backfill:\n{defaults}{copy}"
    ));
    let policies = compile(&(policy("p", "  convention: c\n") + &convention));
    let written = object((0..MANY).map(|at| format!(r#"{{"type":"T{at}"}}"#)));
    let subject = subject(&written, None);
    let verdict = judge(&policies, &subject, Webhook::Mutate);
    assert!(verdict.patch.is_some() && !verdict.patch_failed);
}

#[test]
fn a_long_text_is_not_copied_into_many_elements() {
    let convention = convention(
        "  conditions:\n  - path: /status/conditions\n  backfill:\n\
         \x20 - {list: /status/conditions, member: message, copyOf: stored}\n\
         \x20 - {list: /status/conditions, member: at, steadyWhile: [status]}\n",
    );
    let policies = compile(&(policy("p", "  convention: c\n") + &convention));
    let long = "x".repeat(1 << 20);
    let stored =
        object([format!(r#"{{"type":"A","message":"{long}","at":"{long}"}}"#)].into_iter());
    let written = object((0..MANY).map(|_| r#"{"type":"A"}"#.to_owned()));
    let subject = subject(&written, Some(&stored));
    // A few megabytes; copied to each it would be sixty thousand.
    assert!(operations(&judge(&policies, &subject, Webhook::Mutate)).len() < 10);
}
