//! Names and values in documents that nothing can have, or that are similar to others.

use statusgate_analysis::lint::{self, Kind, Remark};

use super::{document, lint_policy, remarks};
use crate::support::{compile, policy};

/// The messages of the notes about names and values.
fn notes(found: &[Remark]) -> Vec<&str> {
    let notes = found.iter().filter(|remark| remark.kind == Kind::UndeclaredValue);
    notes.map(|note| note.message.as_str()).collect()
}

#[test]
fn values_that_their_checks_reject_and_misspelled_reasons_are_noted() {
    let spec = "conditions: [{path: /status/conditions,
  types: {Ready: {reasons: {'False': [Failed, Timeout], action: Audit}}, Other: {}},
  members: {severity: {enum: ['', Error, Info]}, reason: {pattern: '^[A-Z]'}},
  each: [{id: e, action: Audit, message: m, when: {member: severity, is: [Eror, Info]}}]}]
fields: [{path: /status/state, enum: [healthy, faulted]}, {path: /status/count, type: integer}]
phase: {path: /status/phase, values: [{phase: A, necessary: {field: /status/state, isNot: fautled}}, {phase: B}]}
health: {rules: [{name: r, is: failed, when: {condition: Ready, reason: [Failed, Timout, '']}}]}
rules:
  - {id: r, path: /status/x, action: Warn, message: m, when: {any: [{condition: Other, reason: [lower, Failde]}, {set: /status/x}]}}
  - {id: s, path: /status/x, action: Warn, message: m, when: {any: [{oldField: /status/count, is: ['3', 3]}, {set: /status/x}]}}";
    let found = remarks(spec);
    let notes = found.iter().filter(|remark| remark.kind == Kind::UndeclaredValue);
    let notes: Vec<String> =
        notes.map(|note| format!("{} {:?}", note.message, note.rules)).collect();
    assert_eq!(
        notes,
        [
            r#"the convention names "fautled", but the checks of /status/state reject it; did you mean "faulted"? ["test/field-state"]"#,
            r#"the convention names "Eror", but the checks of the member severity reject it; did you mean "Error"? ["test/condition-severity"]"#,
            r#"the convention names "lower", but the checks of the reason of Other reject it ["test/condition-reason"]"#,
            r#"the convention names "3", but the checks of /status/count reject it ["test/field-count"]"#,
            r#"a predicate names "Timout", the reason of Ready; did you mean "Timeout"? []"#,
        ],
    );
}

#[test]
fn members_that_are_similar_to_declared_ones_are_noted() {
    let spec = "conditions:
  - {path: /status/conditions, transitionTime: {member: lastTransitonTime}, each: [{id: e, action: Audit, message: m, when: {member: mesage, is: ''}}]}
  - {path: /status/nodes, element: node, key: [nmae], members: {name: {required: true}, zone: {type: string}},
     each: [{id: f, action: Audit, message: m, when: {any: [{member: zoen, set: true}, {member: rack, set: true}]}}]}
backfill: [{list: /status/nodes, member: zones, value: a}]";
    let found = remarks(spec);
    assert_eq!(
        notes(&found),
        [
            r#"a condition has no member "lastTransitonTime"; did you mean "lastTransitionTime"?"#,
            r#"a condition has no member "mesage"; did you mean "message"?"#,
            r#"a node has no member "nmae"; did you mean "name"?"#,
            r#"a node has no member "zoen"; did you mean "zone"?"#,
            r#"a node has no member "zones"; did you mean "zone"?"#,
        ]
    );
}

#[test]
fn tests_that_their_checks_decide_are_noted() {
    let of = |when: &str| {
        let fields = "{path: /status/tier, enum: [Small, Large]}, {path: /status/count, minimum: 1, maximum: 10}, {path: /status/size, type: string}";
        let spec = format!(
            "fields: [{fields}]\nrules: [{{id: r, path: /status/x, action: Warn, message: m, when: {{any: [{{set: /status/x}}, {{{when}}}]}}}}]"
        );
        notes(&remarks(&spec)).iter().map(|note| (*note).to_owned()).collect::<Vec<_>>()
    };
    for open in [
        "field: /status/tier, matches: ^S",
        "field: /status/count, atLeast: 10",
        "field: /status/count, atMost: 1",
        "field: /status/other, atMost: 1",
    ] {
        assert_eq!(of(open), [""; 0], "{open}");
    }
    for (decided, why) in [
        ("field: /status/tier, matches: ^M", "/status/tier never matches ^M"),
        ("field: /status/count, atLeast: 11", "/status/count is at most 10 and never at least 11"),
        ("field: /status/count, atMost: 0", "/status/count is at least 1 and never at most 0"),
        ("field: /status/size, atMost: 3", "/status/size is a string and no number"),
    ] {
        assert_eq!(of(decided), [format!("by its checks, {why}, so a test of it is decided")]);
    }
}

#[test]
fn fields_with_similar_names_are_noted() {
    let of = |one: &str, other: &str| {
        let spec = format!(
            "fields: [{{path: {one}, type: integer}}]\nrules: [{{id: r, path: /status/x, action: Warn, message: m, when: {{set: {other}}}}}]"
        );
        notes(&remarks(&spec)).len()
    };
    assert_eq!(of("/status/readyReplicas", "/status/readyReplicas"), 0);
    assert_eq!(of("/status/readyReplicas", "/status/readyReplica"), 1);
    assert_eq!(of("/status/node/rackName", "/status/node/rackname"), 1);
    assert_eq!(of("/status/readyReplicas", "/status/currentReplicas"), 0);
    assert_eq!(of("/status/zone1", "/status/zone2"), 0);
    assert_eq!(of("/status/one/count", "/spec/one/count"), 0);
    // A policy, and its convention.
    let convention = document("fields: [{path: /status/readyReplicas, type: integer}]");
    let preserve = |path: &str| {
        let policies = compile(&[
            convention.clone(),
            policy("p", format!("convention: test, preserve: [{path}]")),
        ]);
        notes(&lint_policy(&policies, "p")).len()
    };
    assert_eq!((preserve("/status/readyReplicas"), preserve("/status/readyReplica")), (0, 1));
}

#[test]
fn a_resource_that_no_policy_selects_is_noted() {
    let of = |glob: &str| {
        let spec = format!(
            "rules: [{{id: r, path: /status/x, action: Warn, message: m, when: {{resource: {glob}, set: /status/x}}}}]"
        );
        let policy = policy(
            "p",
            "convention: test, resources: [{apiGroups: [g], apiVersions: [v1], resources: [things]}]",
        );
        let found = lint::lint(&compile(&[document(&spec), policy]), "test").unwrap();
        notes(&found.remarks).len()
    };
    assert_eq!((of("things"), of("'th*'"), of("thing")), (0, 0, 1));
}

#[test]
fn constants_and_members_in_cel_that_nothing_can_have_are_noted() {
    let convention = document(
        "extends: metav1
conditions: [{path: /status/conditions, types: {Synced: {polarity: positive}}}]
phase: {path: /status/phase, values: [{phase: Ready}, {phase: Failed}]}
fields: [{path: /status/tier, enum: [Small, Large]}]",
    );
    let of = |expression: &str| {
        let rule = format!(
            "convention: test, rules: [{{name: r, action: Warn, message: m, expression: \"{expression}\"}}]"
        );
        let found = lint_policy(&compile(&[convention.clone(), policy("p", rule)]), "p");
        assert!(found.iter().all(|remark| remark.rules == ["p/r"]), "{found:?}");
        notes(&found).join(", ")
    };
    let each = |test: &str| {
        of(&format!("!has(self.status.conditions) || self.status.conditions.all(c, {test})"))
    };
    for sound in [
        "self.status.?phase.orValue('') != 'Ready'",
        "!has(self.status.phase) || self.status.phase in ['Ready', 'Failed', '']",
        "!has(self.status.other) || self.status.other == 'any'",
    ] {
        assert_eq!(of(sound), "", "{sound}");
    }
    assert_eq!(each("c.type != 'Other' || c.status == 'True' || has(c.message)"), "");
    assert_eq!(
        of("!has(self.status.phase) || self.status.phase != 'Faild'"),
        r#"no phase has the name "Faild"; did you mean "Failed"?"#
    );
    assert_eq!(
        of("self.status.?phase.orValue('') != 'Redy'"),
        r#"no phase has the name "Redy"; did you mean "Ready"?"#
    );
    assert_eq!(
        of("!has(self.status.tier) || self.status.tier == 'small'"),
        r#"the convention names "small", but the checks of /status/tier reject it; did you mean "Small"?"#
    );
    assert_eq!(
        each("c.type != 'Sinced'"),
        r#"no list declares the type "Sinced"; did you mean "Synced"?"#
    );
    assert_eq!(
        each("c.status == 'true'"),
        r#"the convention names "true", but the checks of the member status reject it; did you mean "True"?"#
    );
    assert_eq!(
        of("self.?metadata.?annotations['x.io/paused'].orValue('') != true"),
        "metadata.annotations[x.io/paused] is a text, and true is none"
    );
    assert_eq!(
        each("!has(c.mesage)"),
        r#"a condition has no member "mesage"; did you mean "message"?"#
    );
}

#[test]
fn evidence_that_excludes_the_other_evidence_of_its_phase_is_a_fault() {
    let of = |necessary: &str| {
        let spec = format!(
            "conditions: [{{path: /status/conditions}}]
phase:
  path: /status/phase
  default: Unknown
  values: [{{phase: Up, necessary: {{{necessary}}}, sufficient: {{condition: Ready, is: 'True'}}}}, {{phase: Unknown}}]"
        );
        let found = remarks(&spec);
        let faults = found.iter().filter(|remark| remark.kind.is_fault());
        faults.map(|fault| fault.message.clone()).collect::<Vec<_>>()
    };
    for sound in ["condition: Ready, is: 'True'", "condition: Synced, is: 'True'"] {
        assert_eq!(of(sound), [""; 0], "{sound}");
    }
    assert_eq!(
        of("condition: Ready, is: 'False'"),
        ["the necessary and the sufficient evidence of phase Up exclude each other"]
    );
}

#[test]
fn a_repair_step_behind_one_that_always_applies_is_a_fault() {
    let of = |repair: &str| {
        let spec = format!(
            "conditions: [{{path: /status/conditions}}]
phase:
  path: /status/phase
  default: Unknown
  values: [{{phase: Up, necessary: {{condition: Ready, is: 'True'}}}}, {{phase: Unknown}}]
  repair: [{repair}]"
        );
        let found = remarks(&spec);
        let faults = found.iter().filter(|remark| remark.kind.is_fault());
        faults.map(|fault| fault.message.clone()).collect::<Vec<_>>()
    };
    assert_eq!(of("{to: Up}, {to: Unknown}"), [""; 0]);
    assert_eq!(of("{to: requested}, {to: Unknown}"), [""; 0]);
    assert_eq!(
        of("{to: Unknown}, {to: Up}"),
        ["repair step 2 applies in no state: step 1 always applies"]
    );
}
