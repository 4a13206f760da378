//! The words of the language, each in the rule of an operator that needs it.

use serde_json::{Value, json};
use statusgate_core::policy::PolicySet;

use super::with;
use crate::support::{NOW, T0, Write, under};

/// A convention with one rule that warns.
fn warning(rule: &str) -> PolicySet {
    under(format!("rules: [{{id: r, message: m, path: /status/x, action: Warn, {rule}}}]"), "")
}

#[track_caller]
fn warns(policies: &PolicySet, write: &Write, expected: bool) {
    let rules = write.validate(policies).findings.len();
    assert_eq!(rules, usize::from(expected), "{write:?}");
}

/// `hibernation_types.go` of CloudNativePG: a hibernated cluster has this annotation.
#[test]
fn an_annotation_decides_whether_a_status_is_valid() {
    let rule =
        "when: {field: /metadata/annotations/cnpg.io~1hibernation, is: 'on', phase: Healthy}";
    let phase = "phase: {path: /status/phase, values: [{phase: Healthy}, {phase: Hibernated}]}";
    let policies = under(
        format!("{phase}, rules: [{{id: r, message: m, action: Deny, {rule}}}]"),
        "rules: [{name: cel, message: m, action: Warn, expression: \"self.status.phase != 'Healthy' || \
         self.metadata.?annotations[?'cnpg.io/hibernation'].orValue('off') == 'off'\"}]",
    );
    let write = |annotations: Value| {
        let write = Write::of(json!({"phase": "Hibernated"}), json!({"phase": "Healthy"}));
        write.both("/metadata/annotations", annotations).validate(&policies)
    };
    write(json!({"cnpg.io/hibernation": "off"})).is_clean();
    write(json!({"other": "on"})).is_clean();
    let found = write(json!({"cnpg.io/hibernation": "on"}));
    let rules: Vec<_> = found.findings.iter().map(|found| found.rule.to_string()).collect();
    assert_eq!(rules, ["c/r", "p/cel"]);
}

/// `readyInstances` of CloudNativePG is a part of `instances`.
#[test]
fn a_number_has_another_one_as_its_bound() {
    let policies =
        warning("when: {not: {field: /status/readyInstances, atMost: /status/instances}}");
    for (ready, all, expected) in
        [(json!(3), json!(3), false), (json!(4), json!(3), true), (json!(4), json!("3"), false)]
    {
        let status = json!({"readyInstances": ready, "instances": all});
        warns(&policies, &Write::of(json!({}), status), expected);
    }
    let policies = warning("when: {field: /status/instances, atLeast: 2, atMost: 2.5}");
    for (all, expected) in [(json!(1), false), (json!(2), true), (json!(3), false)] {
        warns(&policies, &Write::of(json!({}), json!({"instances": all})), expected);
    }
}

/// `MarkResourceFailed` of Tekton sets `completionTime` to the transition time of the condition.
#[test]
fn a_field_is_compared_with_a_member_of_a_condition() {
    let rule = "when: {not: {field: /status/completionTime, \
                equals: {condition: Succeeded, member: lastTransitionTime}}}";
    let policies = under(
        format!(
            "conditions: [{{path: /status/conditions}}], rules: [{{id: r, message: m, \
                       path: /status/completionTime, action: Warn, {rule}}}]"
        ),
        "",
    );
    let succeeded = json!([super::condition("Succeeded", "True")]);
    for (completed, expected) in [(T0, false), (NOW, true)] {
        let status = json!({"completionTime": completed, "conditions": succeeded});
        warns(&policies, &Write::of(json!({}), status), expected);
        let alone = json!({"completionTime": completed});
        warns(&policies, &Write::of(json!({}), alone), false);
    }
}

/// Velero waits 4 hours for the plugins of a backup (`defaultItemOperationTimeout`).
#[test]
fn time_alone_only_warns_a_writer_and_only_with_a_trigger() {
    let rule =
        "when: {field: /status/phase, is: InProgress, since: /status/startTimestamp, moreThan: 4h}";
    let policies = warning(&format!("{rule}, trigger: state"));
    let status = |done: u32| json!({"phase": "InProgress", "startTimestamp": T0, "done": done});
    let write = Write::of(status(1), status(2));
    warns(&policies, &write.clone().at("2024-06-01T15:00:00Z"), false);
    warns(&policies, &write.clone().at("2024-06-01T15:00:01Z"), true);
    // The stored object is as old, so nothing is introduced. An audit reports it.
    let policies = warning(rule);
    warns(&policies, &write.clone().at("2024-06-02T15:00:00Z"), false);
    warns(&policies, &write.without_stored_object().at("2024-06-02T15:00:00Z"), true);
}

/// `status.listeners` of Strimzi's Kafka has no conditions, but objects with a name.
#[test]
fn any_list_of_objects_with_a_key_is_judged_like_conditions() {
    let policies = under(
        "conditions: [{path: /status/listeners, key: [name], \
         members: {name: {required: true}, bootstrapServers: {type: string, pattern: ':[0-9]+$'}}, \
         each: [{id: has-addresses, member: addresses, action: Deny, message: has no addresses, \
         when: {member: addresses, set: false}}]}]",
        "",
    );
    let listener = |name: &str| json!({"name": name, "bootstrapServers": "kafka:9092", "addresses": [{"host": "kafka"}]});
    let denied = |listeners: Value| {
        let stored = json!({"listeners": [with(listener("tls"), "addresses", json!([])), listener("plain")]});
        let found = Write::of(stored, json!({"listeners": listeners})).validate(&policies).findings;
        found.into_iter().map(|found| format!("{} {}", found.rule, found.field)).collect::<Vec<_>>()
    };
    // The stored listener has no addresses either, at another index.
    let old = with(listener("tls"), "addresses", json!([]));
    assert_eq!(denied(json!([listener("plain"), old])), [""; 0]);
    let broken = with(with(listener("new"), "addresses", json!([])), "bootstrapServers", "kafka");
    assert_eq!(
        denied(json!([listener("plain"), broken])),
        [
            "c/condition-bootstrap-servers status.listeners[1].bootstrapServers",
            "c/has-addresses status.listeners[1].addresses"
        ]
    );
    assert_eq!(
        denied(json!([listener("plain"), listener("plain")])),
        ["c/condition-duplicate status.listeners[1].name"]
    );
}

/// A TaskRun of Tekton has no phase: the reason of its first condition, Succeeded, is one.
#[test]
fn the_reason_of_a_condition_is_a_phase() {
    let policies = under(
        "conditions: [{path: /status/conditions}], \
         phase: {path: /status/conditions/0/reason, values: [{phase: Started}, {phase: Running}, \
         {phase: Succeeded, final: true, necessary: {condition: Succeeded, is: 'True'}}, \
         {phase: Failed, final: true, necessary: {condition: Succeeded, is: 'False'}}], \
         moves: {from: {'': Started, Started: [Running, Failed], Running: [Succeeded, Failed]}, action: Deny}}",
        "disagreement: Deny",
    );
    let status = |reason: &str, status: &str| json!({"conditions": [{"type": "Succeeded", "status": status, "reason": reason}]});
    let write = |old: Value, new: Value| Write::of(old, new).review(&policies);
    write(json!({}), status("Started", "Unknown")).is_clean();
    write(status("Running", "Unknown"), status("Succeeded", "True")).is_clean();
    let denied = [
        (status("Running", "Unknown"), status("Done", "True"), "c/phase-value"),
        (status("Running", "Unknown"), status("Succeeded", "False"), "c/phase-succeeded"),
        (status("Failed", "False"), status("Running", "Unknown"), "c/phase-move"),
    ];
    for (old, new, rule) in denied {
        write(old, new).denied_by(&[rule]);
    }
}
