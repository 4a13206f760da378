//! Rules that reject every status only together, and proofs that are too large.

use statusgate_analysis::lint::{self, Kind, Remark};

use super::{CONDITIONS, only, remarks, two_phases};
use crate::support::compile;

/// The value of the map in the witness has only the members that the rules ask for.
#[test]
fn rules_that_together_reject_every_value_of_a_map_are_reported() {
    let spec = "conditions:
  - path: /status/instances/*
    otherMembers: Deny
    members:
      primary: {required: true, type: boolean}
      role: {type: string}
    each:
      - {id: is-primary, action: Deny, message: m, when: {member: primary, is: true}}
      - {id: is-standby, action: Deny, message: m, when: {member: primary, is: false}}";
    let fault = only(Kind::Contradiction, spec);
    assert_eq!(fault.rules, ["test/condition-primary", "test/is-primary", "test/is-standby"]);
    let witness = fault.witness.unwrap();
    let map = "  instances:\n    example:\n      primary: ";
    assert!(witness.contains(map) && !witness.contains("type:"), "{witness}");
    assert_eq!(remarks(&spec.replace("is: false", "is: true")), []);
    // Its predicates read the conditions of the object.
    let changed = spec.replace("{member: primary, is: false}", "{condition: Ready, changed: true}");
    assert_eq!(only(Kind::NeverFires, &changed).rules, ["test/is-standby"]);
    let list = "conditions:\n  - path: /status/conditions\n";
    assert_eq!(remarks(&changed.replace("conditions:\n", list)), []);
}

/// A list of nodes has a `status`, too, which is no status of a condition.
#[test]
fn elements_with_a_status_of_their_own_can_be_written() {
    for status in [
        "{required: true, enum: [Running, Failed]}",
        "{type: integer, required: true}",
        "{type: boolean}",
        "{maxLength: 3}",
        "{minLength: 10}",
        "{forbidden: true}",
    ] {
        let spec = format!(
            "conditions:\n  - path: /status/nodes\n    key: [name]\n    members: {{name: {{required: true}}, status: {status}}}"
        );
        assert_eq!(remarks(&spec), [], "{status}");
    }
}

/// The rules of the one contradiction, which has a witness.
fn contradiction(spec: &str) -> Vec<String> {
    let fault = only(Kind::Contradiction, spec);
    assert!(fault.witness.is_some(), "{fault:?}");
    fault.rules
}

#[test]
fn rules_that_reject_everything_only_all_together_are_reported() {
    let rules = ["True", "False", "Unknown"].map(|status| {
        format!("  - {{id: is-{}, path: /status/x, action: Deny, message: m, when: {{condition: A, is: '{status}'}}}}\n", status.to_lowercase())
    });
    let spec = format!(
        "{CONDITIONS}\nrules:\n{}  - {{id: absent, path: /status/x, action: Deny, message: m, when: {{condition: A, present: false}}}}
  - {{id: harmless, path: /status/x, action: Deny, message: m, when: {{condition: B, is: 'True'}}}}",
        rules.concat()
    );
    let all = ["test/absent", "test/is-false", "test/is-true", "test/is-unknown"];
    assert_eq!(contradiction(&spec), all);
    let fewer = spec.replace("is: 'Unknown'", "is: 'True'");
    assert_eq!(remarks(&fewer), []);

    let too_many = "conditions: [{path: /status/conditions, maxItems: 1, types: {A: {missing: Deny}, B: {missing: Deny}}}]";
    assert_eq!(
        contradiction(too_many),
        ["test/a-missing", "test/b-missing", "test/conditions-length"]
    );
    assert_eq!(remarks(&too_many.replace("maxItems: 1", "maxItems: 2")), []);

    let always =
        "conditions: [{path: /status/conditions, types: {A: {missing: Deny, notTrue: Deny}}}]
rules: [{id: never, path: /status/x, action: Deny, message: m, when: {condition: A, is: 'True'}}]";
    assert_eq!(contradiction(always), ["test/a-missing", "test/a-not-true", "test/never"]);

    let field = format!(
        "{CONDITIONS}\nfields: [{{path: /status/x, required: true, enum: [a, b], id: x}}]
rules: [{{id: not-a, path: /status/x, action: Deny, message: m, when: {{field: /status/x, is: a}}}},
  {{id: not-b, path: /status/x, action: Deny, message: m, when: {{field: /status/x, is: b}}}}]"
    );
    assert_eq!(contradiction(&field), ["test/not-a", "test/not-b", "test/x"]);
    assert_eq!(remarks(&field.replace("enum: [a, b]", "pattern: '^[a-c]$'")), []);
}

/// The rules of the one contradiction that a document has. It may have other faults.
fn contradiction_in(name: &str, text: String) -> Vec<String> {
    let report = lint::lint(&compile(&[text]), name).unwrap();
    assert!(report.remarks.iter().all(|remark| remark.kind != Kind::NotProven), "{report:#?}");
    let mut found = report.remarks.into_iter();
    let mut found = found.by_ref().filter(|remark| remark.kind == Kind::Contradiction);
    let fault = found.next().unwrap();
    assert_eq!(found.next(), None);
    assert_eq!(fault.message, "these rules together reject every status");
    assert!(fault.witness.unwrap().contains("status:"));
    fault.rules
}

#[test]
fn rules_that_contradict_the_evidence_of_the_only_phase_are_reported() {
    let text = include_str!("../../fixtures/lint/core.yaml").to_owned();
    assert_eq!(
        contradiction_in("core", text),
        [
            "core/has-phase",
            "core/only-ready",
            "core/phase-ready",
            "core/pod-there",
            "core/pod-true"
        ]
    );
}

/// Each condition must be True if the one before it is True; the last one must not be True.
#[test]
fn a_chain_of_conditions_that_contradicts_its_end_is_reported() {
    let rule = |id: String, when: String| {
        format!(
            "    - {{id: {id}, path: /status/conditions, trigger: state, action: Deny, message: m, when: {when}}}\n"
        )
    };
    let chain = |count: usize| -> String {
        let there = (0..count)
            .map(|at| rule(format!("there-{at}"), format!("{{condition: C{at}, present: false}}")));
        let links = (1..count).map(|at| {
            let one = format!("{{condition: C{}, is: 'True'}}", at - 1);
            rule(
                format!("chain-{at}"),
                format!("{{all: [{one}, {{condition: C{at}, isNot: 'True'}}]}}"),
            )
        });
        let first = rule("first".into(), "{condition: C0, isNot: 'True'}".into());
        let last = rule("last".into(), format!("{{condition: C{}, is: 'True'}}", count - 1));
        let rules: String = there.chain(links).chain([first, last]).collect();
        format!(
            "apiVersion: statusgate.dev/v1alpha1\nkind: StatusConvention\nmetadata: {{name: chain}}\nspec:\n  \
             title: t\n  source: t\n  extends: metav1\n  rules:\n{rules}"
        )
    };
    for count in [9, 16] {
        let text = chain(count);
        assert_eq!(contradiction_in("chain", text.clone()).len(), 2 * count + 1);
        // Without any one of the rules there is a status.
        let open = text
            .replace("chain-4", "other")
            .replace("{condition: C3, is: 'True'}", "{condition: C3, is: 'False'}");
        let report = lint::lint(&compile(&[open]), "chain").unwrap();
        assert!(!report.has_faults(), "{report:#?}");
    }
}

#[test]
fn conditions_that_cannot_be_written_are_reported() {
    let each = |more: &str, rules: &str| {
        format!("conditions:\n  - path: /status/conditions\n{more}    each: [{rules}]")
    };
    let one = "{id: a, action: Deny, message: m, when: {member: status, is: 'True'}}";
    let other = "{id: b, action: Deny, message: m, when: {not: {member: status, is: 'True'}}}";
    assert_eq!(contradiction(&each("", &format!("{one}, {other}"))), ["test/a", "test/b"]);
    let types = "    types: {A: {notTrue: Deny}, B: {polarity: positive}}\n";
    assert_eq!(contradiction(&each(types, one)), ["test/a", "test/a-not-true"]);
    let types = "    types: {A: {notTrue: Deny}, B: {notTrue: Deny}, C: {polarity: positive}}\n";
    let fault = only(Kind::Contradiction, &each(types, one));
    assert_eq!(fault.message, "these rules together reject every condition A or B");
    assert_eq!(fault.rules, ["test/a", "test/a-not-true", "test/b-not-true"]);
    // One rule may require that a type is absent, unless another rule requires it.
    let types = "    types: {A: {polarity: positive}}\n";
    let none = "{id: none, action: Deny, message: m, when: {member: type, is: A}}";
    assert_eq!(remarks(&each(types, none)), []);
    let needed = each("    types: {A: {missing: Deny}}\n", none);
    assert_eq!(contradiction(&needed), ["test/a-missing", "test/none"]);
    // Checks of members do not prevent a condition.
    let members = "    members: {type: {required: true}, status: {required: true, enum: ['True', 'False']}, severity: {required: true, pattern: '^x[0-9]+$'}}\n";
    let severe = "{id: severe, action: Deny, message: m, when: {member: severity, is: x1}}";
    assert_eq!(remarks(&each(members, severe)), []);
}

/// The rules of each contradiction, and a change of the convention that ends it.
const CONTRADICTIONS: &[(&str, &[&str], (&str, &str))] = &[
    (
        "generation: {paths: [/status/observed], minimum: 10}
fields: [{path: /status/observed, id: few, required: true, type: integer, maximum: 5}]",
        &["test/few", "test/generation-minimum"],
        ("maximum: 5", "maximum: 10"),
    ),
    (
        "generation: {paths: [/status/observed], minimum: 10}
fields: [{path: /status/observed, id: number, required: true, type: integer}]
rules: [{id: few, path: /status/observed, action: Deny, message: m, when: {not: {field: /status/observed, atMost: 9}}}]",
        &["test/few", "test/generation-minimum", "test/number"],
        ("atMost: 9", "atMost: 10"),
    ),
    (
        "generation: {paths: [/status/observed], aheadAtFirst: Deny}
fields: [{path: /status/observed, id: number, required: true, type: integer}]
rules: [{id: newest, path: /status/observed, action: Deny, message: m, when: {observed: [behind, current]}}]",
        &["test/generation-ahead", "test/newest", "test/number"],
        ("[behind, current]", "behind"),
    ),
    (
        "conditions: [{path: /status/conditions, otherTypes: Deny, types: {Ready: {notTrue: Deny}}}]
rules:
  - {id: not-ready, path: /status/conditions, when: {condition: Ready, is: 'True'}, action: Deny, message: m}
  - {id: needs, path: /status/conditions, when: {length: /status/conditions, atMost: 0}, action: Deny, message: m}",
        &["test/condition-type-unknown", "test/needs", "test/not-ready", "test/ready-not-true"],
        ("otherTypes: Deny, ", ""),
    ),
    (
        "conditions:
  - path: /status/conditions
    members: {type: {required: true}, status: {required: true}}
    otherMembers: Deny
    each: [{id: said, action: Deny, message: m, when: {member: message, set: false}}]",
        &["test/condition-member-unknown", "test/said"],
        ("{required: true}}", "{required: true}, message: {type: string}}"),
    ),
    (
        "conditions: [{path: /status/conditions, members: {type: {required: true}, status: {required: true}}, otherMembers: Deny}]
rules: [{id: severe, path: /status/conditions, when: {not: {all: [{condition: Ready, present: true}, {condition: Ready, severity: Error}]}}, action: Deny, message: m}, {id: rated, path: /status/conditions, when: {condition: Ready, severity: ''}, action: Deny, message: m}]",
        &["test/condition-member-unknown", "test/rated", "test/severe"],
        ("{required: true}}, other", "{required: true}, severity: {type: string}}, other"),
    ),
    (
        "conditions:
  - path: /status/conditions
    types: {Ready: {missing: Deny}}
    each:
      - {id: done, action: Deny, message: m, when: {all: [{member: type, is: Ready}, {member: status, is: 'True'}]}}
rules: [{id: not-yet, path: /status/conditions, when: {condition: Ready, isNot: 'True'}, action: Deny, message: m}]"
,
        &["test/done", "test/not-yet", "test/ready-missing"],
        ("isNot: 'True'", "is: 'False'"),
    ),
    (
        "conditions: [{path: /status/conditions, types: {Ready: {missing: Deny, reasons: {'False': Down, action: Deny}}}}]
rules: [{id: down, path: /status/conditions, when: {not: {all: [{condition: Ready, is: 'True'}, {condition: Ready, reason: Down}]}}, action: Deny, message: m}, {id: why, path: /status/conditions, when: {condition: Ready, reason: ''}, action: Deny, message: m}]",
        &["test/condition-reason-status", "test/down", "test/ready-missing", "test/why"],
        ("'False': Down", "'False': Down, 'True': Down"),
    ),
    (
        "phase:
  path: /status/phase
  reason: {path: /status/reason, action: Deny}
  values: [{phase: Up, reasons: [Started]}]
fields: [{path: /status/reason, id: why, required: true, enum: [Stopped]}]
rules: [{id: known, path: /status/reason, when: {not: {set: /status/phase}}, action: Deny, message: m}]",
        &["test/known", "test/phase-reason", "test/why"],
        ("[Started]", "[Started, Stopped]"),
    ),
    (
        "conditions: [{path: /status/conditions, otherTypes: Deny, types: {Ready: {present: Deny}, Failed: {present: {when: {deleting: false}, action: Deny}}}}]",
        &["test/condition-type-unknown", "test/failed-present", "test/ready-present"],
        ("deleting: false", "deleting: true"),
    ),
    (
        "conditions: [{path: /status/conditions, maxItems: 0}]",
        &["test/conditions-length"],
        ("maxItems: 0", "maxItems: 1"),
    ),
];

#[test]
fn every_kind_of_rule_that_can_reject_is_part_of_a_contradiction() {
    for (spec, rules, (part, instead)) in CONTRADICTIONS {
        let found = remarks(spec);
        let faults: Vec<&Remark> = found.iter().filter(|remark| remark.kind.is_fault()).collect();
        assert_eq!(faults.len(), 1, "{spec}\n{found:#?}");
        assert_eq!(
            (faults[0].kind, faults[0].rules.as_slice()),
            (
                Kind::Contradiction,
                &*rules.iter().map(|rule| (*rule).to_owned()).collect::<Vec<_>>()
            ),
            "{spec}"
        );
        let changed = spec.replace(part, instead);
        assert_ne!(changed, *spec);
        let left = remarks(&changed);
        // One reason more is enough; the other one is still impossible.
        let left: Vec<_> = left.iter().filter(|note| note.kind != Kind::UndeclaredValue).collect();
        assert!(left.is_empty(), "{changed}\n{left:#?}");
    }
}

#[test]
fn checks_that_no_value_passes_are_reported() {
    let fields = |fields: &str| format!("{CONDITIONS}\nfields: [{fields}]");
    for (checks, rules) in [
        (
            "{path: /status/x, enum: [a], id: a}, {path: /status/x, enum: [b], id: b, required: true}",
            vec!["test/a", "test/b"],
        ),
        (
            "{path: /status/x, type: string, id: a, required: true}, {path: /status/x, type: integer, id: b}, {path: /status/x, maximum: 5, id: c}",
            vec!["test/a", "test/b"],
        ),
        (
            "{path: /status/x, enum: [x], id: a}, {path: /status/x, pattern: '^z$', required: true, id: b}",
            vec!["test/a", "test/b"],
        ),
        (
            "{path: /status/x, enum: [abc], id: a}, {path: /status/x, maxLength: 2, id: b}",
            vec!["test/a", "test/b"],
        ),
        (
            "{path: /status/x, type: integer, minimum: 1.2, id: a}, {path: /status/x, maximum: 1.8, id: b}",
            vec!["test/a", "test/b"],
        ),
        (
            "{path: /status/x, type: string, minLength: 5, id: a}, {path: /status/x, maxBytes: 4, id: b}",
            vec!["test/a", "test/b"],
        ),
        (
            "{path: /status/x, type: string, format: date-time, id: a}, {path: /status/x, maxLength: 10, id: b}",
            vec!["test/a", "test/b"],
        ),
        (
            "{path: /status/x, type: string, format: date-time, id: a}, {path: /status/x, format: qualified-name, id: b}",
            vec!["test/a", "test/b"],
        ),
    ] {
        assert_eq!(contradiction(&fields(checks)), rules, "{checks}");
    }
    for checks in [
        "{path: /status/x, enum: [a, b]}, {path: /status/x, enum: [b, c], required: true}",
        "{path: /status/x, type: string, pattern: '^[a-z]+$', minLength: 7, required: true}",
        "{path: /status/x, type: number, minimum: 0.2, maximum: 0.7, required: true}",
        "{path: /status/x, forbidden: true}",
        "{path: /status/x, enum: [a]}, {path: /status/x, enum: [b], action: Warn}",
        "{path: /status/x, format: quantity, required: true}, {path: /status/y, format: qualified-name, required: true}",
    ] {
        assert_eq!(remarks(&fields(checks)), [], "{checks}");
    }
    // A check that cannot be decided is reported as not proven.
    let hard = "{path: /status/x, type: string, pattern: '^(ab|c)d$', id: a}, {path: /status/x, pattern: '^..$', id: b}";
    assert_eq!(only(Kind::NotProven, &fields(hard)).rules, ["test/a", "test/b"]);
    let member = "conditions: [{path: /status/conditions, members: {severity: [{required: true, enum: [x], id: a}, {pattern: '^y', id: b}]}}]";
    assert_eq!(contradiction(member), ["test/a", "test/b"]);
}

#[test]
fn rules_that_fire_only_in_special_states_are_not_reported_as_dead() {
    for rule in [
        "{length: /status/history, atLeast: 200}",
        "{field: /status/x, isNot: [example, Other, Example]}",
        "{all: [{field: /status/x, matches: '^a'}, {field: /status/x, matches: 'b$'}]}",
        "{field: /status/n, decreased: true, is: 0}",
        "{field: /status/n, decreased: true, is: 1, isNot: 0}",
        "{all: [{field: /status/a, before: /status/b}, {field: /status/b, before: /status/c}]}",
        "{all: [{not: {field: /status/a, atLeast: /status/b}}, {field: /status/b, is: 3}]}",
        "{field: /status/a, atLeast: 3, atMost: 3}",
        "{not: {field: /status/a, atMost: /spec/b}}",
        "{not: {field: /status/a, equals: {condition: A, member: message}}}",
        "{condition: A, is: 'False', since: {condition: A, member: lastTransitionTime}, moreThan: 4h}",
        "{all: [{since: /status/a, moreThan: 1h}, {not: {since: /status/a, moreThan: 2h}}]}",
        "{field: /metadata/annotations/a.b~1c, is: 'on', deleting: false}",
        "{all: [{not: {field: /status/p, equals: /status/q}}, {not: {field: /status/q, equals: /status/r}}, {not: {field: /status/p, equals: /status/r}}]}",
        "{all: [{condition: A, changed: true}, {condition: A, is: 'True'}, {oldCondition: A, is: 'True'}]}",
        "{all: [{gates: /spec/gates}, {length: /spec/gates, atLeast: 2}]}",
        "{all: [{not: {gates: /spec/gates}}, {length: /spec/gates, atLeast: 2}]}",
    ] {
        let spec = format!(
            "{CONDITIONS}\nrules: [{{id: alive, path: /status/x, action: Warn, message: m, when: {rule}}}]"
        );
        assert_eq!(remarks(&spec), [], "{rule}");
    }
    // Checks that only warn reject no write.
    let warned = format!(
        "{CONDITIONS}\nfields: [{path}, forbidden: true, action: Warn}}]\nrules: [{{id: r, path: /status/x, action: Deny, message: m, when: {{set: /status/x}}}}]",
        path = "{path: /status/x"
    );
    assert_eq!(remarks(&warned), []);
    let second = "conditions:
  - {path: /status/conditions, apiVersions: [v1], types: {Ready: {polarity: positive}}}
  - path: /status/conditions
    apiVersions: [v2]
    types: {Paused: {polarity: negative}}
    each: [{id: bad, action: Deny, message: m, when: {polarity: negative, member: status, is: 'True'}}]";
    assert_eq!(remarks(second), []);
}

#[test]
fn bounds_that_exclude_each_other_are_reported() {
    for rule in [
        "{all: [{field: /status/a, atLeast: 4}, {field: /status/a, atMost: 3}]}",
        "{all: [{field: /status/a, atLeast: /status/b}, {not: {field: /status/b, atMost: /status/a}}]}",
        "{all: [{since: /status/a, moreThan: 2h}, {not: {since: /status/a, moreThan: 1h}}]}",
        "{condition: A, present: false, since: {condition: A, member: lastTransitionTime}, moreThan: 4h}",
    ] {
        let spec = format!(
            "{CONDITIONS}\nrules: [{{id: dead, path: /status/x, action: Warn, message: m, when: {rule}}}]"
        );
        assert_eq!(only(Kind::NeverFires, &spec).rules, ["test/dead"], "{rule}");
    }
}

#[test]
fn a_space_that_is_too_large_is_not_proven() {
    for rule in [
        "{length: /status/history, atLeast: 2000}",
        "{all: [{field: /status/x, matches: '^a'}, {field: /status/x, matches: 'b$'}, {field: /status/x, matches: '^.{3}$'}]}",
        "{all: [{condition: A, changed: true}, {condition: B, changed: false}, {oldCondition: A, is: 'True'}, {condition: A, is: 'True'}, {oldCondition: B, is: 'True'}]}",
    ] {
        let spec = format!(
            "{CONDITIONS}\nrules: [{{id: odd, path: /status/x, action: Warn, message: m, when: {rule}}}]"
        );
        assert_eq!(only(Kind::NotProven, &spec).rules, ["test/odd"], "{rule}");
    }
}

#[test]
fn a_table_that_would_take_too_long_is_not_built() {
    let all: Vec<String> =
        (0..9).map(|number| format!("{{condition: C{number}, is: 'True'}}")).collect();
    let necessary = format!("necessary: {{all: [{}]}}", all.join(", "));
    let spec = two_phases("").replace("necessary: {condition: Ready, isNot: 'True'}", &necessary);
    let found = remarks(&spec);
    let table = "not proven: the truth table of the phase has too many combinations";
    assert!(found.iter().any(|remark| remark.message == table), "{found:?}");
}

#[test]
fn a_dead_rule_is_shown_with_the_state_that_comes_nearest() {
    let spec = format!(
        "{CONDITIONS}\nrules: [{{id: dead, path: /status/x, action: Warn, message: m, when: {{all: [{{condition: A, is: 'True'}}, {{condition: A, is: 'False'}}, {{set: /status/y}}]}}}}]"
    );
    let fault = only(Kind::NeverFires, &spec);
    assert_eq!(
        fault.message,
        "no state violates this rule; the nearest one satisfies 2 of its 3 parts"
    );
    let witness = fault.witness.unwrap();
    assert!(witness.contains("y\": example") && witness.contains("type: A"), "{witness}");
}
