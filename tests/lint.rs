//! `statusgate lint` finds each fault in a small convention that has it. The built-in conventions have
//! none, and the engine confirms it.

#![expect(clippy::unwrap_used, reason = "tests, and their helpers too")]

mod support;

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use statusgate::lint::{self, Kind, Remark};
use statusgate::policy::PolicySet;
use support::{Write, built_in, compile, examples, following, policy};

const CONDITIONS: &str = "conditions: [{path: /status/conditions}]";

/// A convention document. `spec` is YAML in block style.
fn document(spec: &str) -> String {
    let spec: String = spec.lines().map(|line| format!("  {line}\n")).collect();
    format!(
        "apiVersion: statusgate.dev/v1alpha1\nkind: StatusConvention\nmetadata: {{name: test}}\nspec:\n{spec}"
    )
}

fn remarks(spec: &str) -> Vec<Remark> {
    let report = lint::lint(&compile(&[document(spec)]), "test").unwrap();
    let mut faults = report.remarks.iter().filter(|remark| remark.kind.is_fault());
    assert_eq!(faults.find(|fault| fault.witness.is_none()), None, "each has a witness");
    report.remarks
}

/// The remarks about a policy of this name.
fn lint_policy(policies: &PolicySet, name: &str) -> Vec<Remark> {
    let policy = policies.policies().iter().find(|policy| *policy.name == *name).unwrap();
    lint::lint_policy(policies, policy).remarks
}

/// The one remark of a kind, and that there are no faults of other kinds.
fn only(kind: Kind, spec: &str) -> Remark {
    let remarks = remarks(spec);
    let others = remarks.iter().filter(|remark| remark.kind != kind && remark.kind.is_fault());
    assert_eq!(others.collect::<Vec<_>>(), Vec::<&Remark>::new());
    let mut found = remarks.into_iter().filter(|remark| remark.kind == kind);
    let remark = found.next().unwrap();
    assert_eq!(found.next(), None);
    remark
}

/// A convention with two phases that Ready tells apart, and more.
fn two_phases(more: &str) -> String {
    format!(
        "{CONDITIONS}
phase:
  path: /status/phase
  default: Unknown
  values:
    - {{phase: Up, necessary: {{condition: Ready, is: 'True'}}, sufficient: {{condition: Ready, is: 'True'}}}}
    - {{phase: Down, necessary: {{condition: Ready, isNot: 'True'}}}}
    - {{phase: Unknown}}
{more}"
    )
}

#[test]
fn a_sound_convention_has_no_faults() {
    let found = remarks(&two_phases(""));
    assert!(found.iter().all(|remark| !remark.kind.is_fault()), "{found:#?}");
}

#[test]
fn a_state_without_a_phase_is_found() {
    let spec = format!(
        "{CONDITIONS}
phase:
  path: /status/phase
  values:
    - {{phase: Up, necessary: {{condition: Ready, is: 'True'}}}}
    - {{phase: Down, necessary: {{condition: Ready, is: 'False'}}}}"
    );
    let remarks = remarks(&spec);
    let fault = remarks.iter().find(|remark| remark.kind == Kind::NoAdmissiblePhase).unwrap();
    assert_eq!(fault.message, "1 of 4 states admit no phase");
    assert_eq!(fault.rules, ["test/phase-up", "test/phase-down"]);
    assert!(fault.witness.as_ref().unwrap().contains("status: Unknown"), "{fault:#?}");
    // And with no default there is nothing that a repair could choose.
    let fault = remarks.iter().find(|remark| remark.kind == Kind::RepairFindsNothing).unwrap();
    assert_eq!(fault.rules, ["test/phase-up"]);
    assert!(fault.witness.as_ref().unwrap().contains("phase: Up"), "{fault:#?}");
}

#[test]
fn a_phase_that_may_never_stand_is_found() {
    let spec = two_phases("").replace(
        "- {phase: Unknown}",
        "- {phase: Lost, necessary: {all: [{deleting: true}, {deleting: false}]}}\n    - {phase: Unknown}",
    );
    let fault = only(Kind::UnreachablePhase, &spec);
    assert_eq!(fault.rules, ["test/phase-lost"]);
    assert!(fault.witness.unwrap().contains("phase: Lost"));
}

#[test]
fn rules_that_never_fire_are_found() {
    let never =
        |rule: &str| only(Kind::NeverFires, &format!("{CONDITIONS}\nrules:\n  - {rule}")).rules;
    assert_eq!(
        never(
            "{id: dead, path: /status/x, action: Warn, message: m, when: {all: [{condition: A, is: 'True'}, {condition: A, is: 'False'}]}}"
        ),
        ["test/dead"]
    );
    // Of an absent condition nothing can be asked.
    assert_eq!(
        never(
            "{id: dead, path: /status/x, action: Warn, message: m, when: {all: [{condition: A, present: false}, {condition: A, isNot: 'True'}]}}"
        ),
        ["test/dead"]
    );
    assert_eq!(
        never(
            "{id: dead, path: /status/x, action: Warn, message: m, when: {all: [{length: /status/list, atMost: 0}, {set: /status/list/-1}]}}"
        ),
        ["test/dead"]
    );
    let each = "conditions:
  - path: /status/conditions
    types: {Ready: {polarity: positive}}
    each:
      - {id: dead, action: Warn, message: m, when: {all: [{member: type, is: Ready}, {member: type, is: Synced}]}}
      - {id: alive, action: Warn, message: m, when: {all: [{polarity: positive}, {member: severity, set: true}]}}";
    assert_eq!(only(Kind::NeverFires, each).rules, ["test/dead"]);
}

#[test]
fn evidence_that_nothing_contradicts_is_found() {
    let spec = two_phases("").replace(
        "- {phase: Unknown}",
        "- {phase: Odd, necessary: {any: [{deleting: true}, {deleting: false}]}}\n    - {phase: Unknown}",
    );
    assert_eq!(only(Kind::NeverFires, &spec).rules, ["test/phase-odd"]);
}

#[test]
fn rules_that_refuse_everything_between_them_are_found() {
    let spec = format!(
        "{CONDITIONS}
rules:
  - {{id: must, path: /status/conditions, action: Deny, message: m, when: {{condition: A, present: false}}}}
  - {{id: must-not, path: /status/conditions, action: Deny, message: m, when: {{condition: A, present: true}}}}"
    );
    let fault = only(Kind::Contradiction, &spec);
    assert_eq!(fault.rules, ["test/must", "test/must-not"]);
    assert!(fault.witness.is_some());
}

#[test]
fn a_rule_that_is_wrong_alone_is_not_told_once_more_with_every_other() {
    let spec = format!(
        "{CONDITIONS}
rules:
  - {{id: one, path: /status/x, action: Deny, message: m, when: {{condition: A, is: 'True'}}}}
  - {{id: always, path: /status/x, action: Deny, message: m, when: {{any: [{{deleting: true}}, {{deleting: false}}]}}}}
  - {{id: other, path: /status/x, action: Deny, message: m, when: {{condition: B, is: 'True'}}}}"
    );
    let fault = only(Kind::Contradiction, &spec);
    assert_eq!(fault.rules, ["test/always"]);
}

#[test]
fn a_phase_that_rules_always_refuse_is_found() {
    let spec = two_phases(
        "rules:
  - {id: no-up, path: /status/x, action: Deny, message: m, when: {phase: Up, condition: Ready, is: 'True'}}
  - {id: no-up-without, path: /status/x, action: Deny, message: m, when: {phase: Up, condition: Ready, present: false}}",
    );
    let fault = only(Kind::PhaseNeverWritten, &spec);
    assert!(fault.message.starts_with("phase Up "), "{fault:?}");
    assert!(fault.rules.iter().any(|rule| rule.starts_with("test/no-up")), "{fault:?}");
    assert!(fault.witness.unwrap().contains("phase: Up"));
}

/// Lint tries only some of the combinations of many conditions.
#[test]
fn a_phase_that_is_accepted_in_a_rare_state_is_not_reported_as_never_written() {
    let part =
        |at| format!("{{condition: C{at}, present: false}}, {{condition: C{at}, isNot: 'True'}}");
    let parts: Vec<String> = (1..=8).map(part).collect();
    let spec = two_phases(&format!(
        "rules:\n  - {{id: rare, path: /status/x, action: Deny, message: m, when: {{all: [{{phase: Up}}, {{any: [{}]}}]}}}}",
        parts.join(", ")
    ));
    let found = remarks(&spec);
    assert!(found.iter().all(|remark| remark.kind != Kind::PhaseNeverWritten), "{found:#?}");
    let message =
        "not proven: the search for a state that accepts phase Up has too many combinations";
    let note = found.iter().find(|remark| remark.message == message).unwrap();
    assert_eq!(note.rules, ["test/rare"]);
}

#[test]
fn a_default_that_is_refused_is_found() {
    let spec = two_phases(
        "rules:
  - {id: say-something, path: /status/x, action: Deny, message: m, when: {phase: Unknown, condition: Ready, is: 'True'}}",
    );
    let found = remarks(&spec);
    let fault = found.iter().find(|remark| remark.kind == Kind::NoWayOut).unwrap();
    assert_eq!(fault.rules, ["test/say-something"]);
    assert!(fault.witness.as_ref().unwrap().contains("phase: Unknown"));
}

/// A list of conditions with a rule about each element, and a member that is taken out.
fn taken_out(rule: &str, of: &str) -> String {
    format!(
        "conditions:
  - path: /status/conditions
    types: {{Ready: {{polarity: positive}}}}
    each: [{{id: severity, action: Deny, message: m, when: {rule}}}]
backfill:
  - {{name: cleanup, list: /status/conditions, member: severity, absentWhere: {of}}}"
    )
}

#[test]
fn a_default_that_removes_a_required_member_is_reported() {
    let missed = "{all: [{member: status, is: Unknown}, {member: severity, set: false}]}";
    let fault = only(Kind::PatchRefused, &taken_out(missed, "{member: status, isNot: 'True'}"));
    assert_eq!(fault.rules, ["test/severity"]);
    let witness = fault.witness.unwrap();
    assert!(witness.contains("status: Unknown") && witness.contains("severity: "), "{witness}");
    let kept = taken_out(missed, "{polarity: positive, member: status, is: 'True'}");
    assert_eq!(remarks(&kept), []);
    let refused = "{all: [{member: status, is: Unknown}, {member: severity, set: true}]}";
    assert_eq!(remarks(&taken_out(refused, "{member: status, is: Unknown}")), []);
}

#[test]
fn a_default_that_never_removes_a_member_is_reported() {
    let refused = "{member: severity, is: Fatal}";
    let never = "{all: [{member: severity, set: false}, {polarity: positive}]}";
    let fault = only(Kind::NeverFires, &taken_out(refused, never));
    assert_eq!(fault.message, "default cleanup never removes a member severity");
}

/// Two conditions, the second of which is filled in.
fn filled_in(more: &str) -> String {
    format!(
        "{more}
backfill: [{{name: first, list: /status/conditions, element: {{type: A, status: Unknown}}}}]"
    )
}

#[test]
fn a_default_that_the_convention_rejects_is_reported() {
    let rules = |spec: &str| only(Kind::PatchRefused, spec).rules;
    let of_type =
        "backfill: [{path: /status/x, value: 5}]\nfields: [{path: /status/x, type: string, id: x}]";
    assert_eq!(rules(&format!("{CONDITIONS}\n{of_type}")), ["test/x"]);
    let never = "conditions: [{path: /status/conditions, types: {A: {present: Deny}}}]";
    assert_eq!(rules(&filled_in(never)), ["test/a-present"]);
    let other =
        "conditions: [{path: /status/conditions, members: {status: {enum: ['True', 'False']}}}]";
    assert_eq!(rules(&filled_in(other)), ["test/condition-status"]);
    let rule = "{id: r, path: /status/conditions, action: Deny, message: m, when: {condition: A, is: Unknown}}";
    let fault = only(Kind::PatchRefused, &filled_in(&format!("{CONDITIONS}\nrules: [{rule}]")));
    assert_eq!(fault.rules, ["test/r"]);
    assert!(fault.witness.unwrap().contains("written: true"));
}

#[test]
fn a_phase_that_is_imposed_against_its_evidence_is_found() {
    let spec = format!(
        "{CONDITIONS}
phase:
  path: /status/phase
  default: Unknown
  values:
    - {{phase: A, imposed: {{when: {{condition: Ready, is: 'True'}}, since: /metadata/creationTimestamp}}, necessary: {{condition: Ready, is: 'False'}}}}
    - {{phase: Unknown}}"
    );
    let fault = only(Kind::RepairNotAdmissible, &spec);
    assert_eq!(fault.rules, ["test/phase-a"]);
    assert_eq!(fault.message, "phase A is imposed in a state that contradicts it");
}

#[test]
fn a_default_that_waits_beside_a_phase_is_noted() {
    let more = "backfill: [{name: first, list: /status/conditions, element: {type: Ready, status: Unknown}}]";
    let note = only(Kind::DefaultWaits, &two_phases(more));
    assert_eq!(
        note.message,
        "default first is not set if the phase is Up: it would contradict that phase"
    );
    assert!(note.witness.unwrap().contains("phase: Up"));
}

#[test]
fn a_phase_that_gives_way_at_the_next_write_is_found() {
    let phases = |values: &str| {
        format!(
            "{CONDITIONS}\nphase: {{path: /status/phase, default: Unknown, values: [{values}, {{phase: Unknown}}]}}"
        )
    };
    let of = |spec: &str| -> Vec<String> {
        let found = remarks(spec).into_iter().filter(|remark| remark.kind == Kind::NotStable);
        found.map(|remark| remark.message).collect()
    };
    let turns = |name: &str| {
        format!(
            "{{phase: {name}, necessary: {{not: {{oldPhase: {name}}}}}, sufficient: {{not: {{oldPhase: {name}}}}}}}"
        )
    };
    assert_eq!(
        of(&phases(&format!("{}, {}", turns("A"), turns("B")))),
        [
            "Repair chooses phase A, but the next write changes it to B",
            "Repair chooses phase B, but the next write changes it to A"
        ]
    );
    let imposed =
        |when: &str| format!("imposed: {{when: {when}, since: /metadata/creationTimestamp}}");
    assert_eq!(
        of(&phases(&format!(
            "{{phase: A, {}}}, {{phase: B, {}}}",
            imposed("{not: {oldPhase: A}}"),
            imposed("{oldPhase: A}")
        ))),
        [
            "phase A is imposed, but the next write changes it to B",
            "phase B is imposed, but the next write changes it to A"
        ]
    );
    // A phase that stays where it is settled by itself.
    assert_eq!(of(&two_phases("")), [""; 0]);
}

#[test]
fn a_two_step_writer_that_is_locked_out_is_found() {
    let lockout = "rules:
  - {id: up, path: /status/x, action: Deny, message: m, when: {phase: Up, condition: Paused, is: 'True'}}
  - {id: down, path: /status/x, action: Deny, message: m, when: {phase: Down, condition: Paused, is: 'False'}}
";
    let spec = two_phases(lockout);
    let found = remarks(&spec);
    let faults: Vec<&Remark> =
        found.iter().filter(|remark| remark.kind == Kind::TwoStepLockout).collect();
    assert!(!faults.is_empty(), "{found:#?}");
    assert!(faults.iter().all(|fault| fault.witness.as_ref().unwrap().contains("# wanted")));
    assert!(faults.iter().any(|fault| fault.message.starts_with("with disagreement Repair, ")));
    assert!(faults.iter().any(|fault| fault.message.starts_with("with disagreement Warn, ")));
    // What only a policy that says Deny refuses is a note.
    let found = remarks(&two_phases(""));
    let note = found.iter().find(|remark| remark.kind == Kind::TwoStepDeadEnd).unwrap();
    assert!(!note.kind.is_fault());
    assert_eq!(note.rules, ["test/phase-down", "test/phase-up"]);
    assert!(note.witness.as_ref().unwrap().contains("# initial"));
}

#[test]
fn oversights_in_moves_and_reasons_are_noted() {
    let spec = "phase:
  path: /status/phase
  reason: {path: /status/reason, always: [Copied]}
  values:
    - {phase: A, reasons: [One, Two]}
    - {phase: B, reasons: [Two, Copied]}
    - {phase: C}
  moves: {from: {'': A, A: B}}";
    let found: Vec<(Kind, String)> =
        remarks(spec).into_iter().map(|remark| (remark.kind, remark.message)).collect();
    let expected = [
        (Kind::NoWayIn, "no move leads to phase C"),
        (Kind::NoMoveOut, "no move leads out of phase B"),
        (Kind::NoMoveOut, "no move leads out of phase C"),
        (Kind::SharedReason, "reason Two belongs to phases A and B"),
        (Kind::SharedReason, "phase B lists reason Copied, which all phases have"),
    ];
    assert_eq!(found, expected.map(|(kind, message)| (kind, message.to_owned())));
}

#[test]
fn a_phase_that_no_allowed_move_leads_to_is_found() {
    let moves = |action: &str| {
        two_phases(&format!(
            "  moves: {{action: {action}, from: {{Up: [Unknown], Unknown: [Up], Down: [Up]}}}}"
        ))
    };
    let fault = only(Kind::PhaseNeverEntered, &moves("Deny"));
    assert_eq!(fault.message, "no move leads to phase Down, and other moves are rejected");
    let witness = fault.witness.unwrap();
    let (stored, written) = witness.split_once("# written").unwrap();
    assert!(stored.contains("phase: Unknown") && written.contains("phase: Down"), "{witness}");
    let note = only(Kind::NoWayIn, &moves("Warn"));
    assert!(note.witness.unwrap().contains("phase: Down"));
    let out = only(
        Kind::NoMoveOut,
        &moves("Warn").replace(", Down: [Up]", ", Up: [Down]").replace("Up: [Unknown], ", ""),
    );
    assert!(out.witness.unwrap().contains("phase: Down"));
}

#[test]
fn a_rule_that_waits_for_a_type_is_noted() {
    let spec = "conditions:
  - path: /status/conditions
    types: {Ready: {polarity: positive}}
    each:
      - {id: bad, action: Warn, message: m, when: {polarity: negative}}";
    assert_eq!(only(Kind::WaitsForType, spec).rules, ["test/bad"]);
}

// --- all rules together ------------------------------------------------------------------------------

/// The rules of the one contradiction, which has a witness.
fn contradiction(spec: &str) -> Vec<String> {
    let fault = only(Kind::Contradiction, spec);
    assert!(fault.witness.is_some(), "{fault:?}");
    fault.rules
}

#[test]
fn rules_that_refuse_everything_only_all_together_are_found() {
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
fn rules_that_contradict_the_evidence_of_the_only_phase_are_found() {
    let text = include_str!("fixtures/lint/core.yaml").to_owned();
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

/// Each of the conditions has to be there and to be True if the one before it is; the last one must not be.
#[test]
fn a_chain_of_conditions_without_an_end_is_found() {
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
        assert!(report.remarks.is_empty(), "{report:#?}");
    }
}

#[test]
fn conditions_that_cannot_be_written_are_found() {
    let each = |more: &str, rules: &str| {
        format!("conditions:\n  - path: /status/conditions\n{more}    each: [{rules}]")
    };
    let one = "{id: a, action: Deny, message: m, when: {member: status, is: 'True'}}";
    let other = "{id: b, action: Deny, message: m, when: {not: {member: status, is: 'True'}}}";
    assert_eq!(contradiction(&each("", &format!("{one}, {other}"))), ["test/a", "test/b"]);
    let types = "    types: {A: {notTrue: Deny}, B: {polarity: positive}}\n";
    assert_eq!(contradiction(&each(types, one)), ["test/a", "test/a-not-true"]);
    // To have none of a type is what one rule can ask for, as long as no other asks for one.
    let types = "    types: {A: {polarity: positive}}\n";
    let none = "{id: none, action: Deny, message: m, when: {member: type, is: A}}";
    assert_eq!(remarks(&each(types, none)), []);
    let needed = each("    types: {A: {missing: Deny}}\n", none);
    assert_eq!(contradiction(&needed), ["test/none", "test/a-missing"]);
    // What its members have to look like is no reason.
    let members = "    members: {type: {required: true}, status: {required: true, enum: ['True', 'False']}, severity: {required: true, pattern: '^x[0-9]+$'}}\n";
    let severe = "{id: severe, action: Deny, message: m, when: {member: severity, is: x1}}";
    assert_eq!(remarks(&each(members, severe)), []);
    let reasons = "    types: {A: {missing: Deny, reasons: {Ok: 'True'}, otherReasons: Deny}}\n";
    let no_reason = "{id: ok, action: Deny, message: m, when: {not: {member: reason, is: Other}}}";
    let members = "    members: {reason: {required: true}}\n";
    assert_eq!(
        contradiction(&each(&format!("{members}{reasons}"), no_reason)),
        ["test/a-reason", "test/condition-reason", "test/ok", "test/a-missing"]
    );
}

#[test]
fn checks_that_no_value_passes_are_found() {
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
    // What cannot be decided is said to be so.
    let hard = "{path: /status/x, type: string, pattern: '^(ab|c)d$', id: a}, {path: /status/x, pattern: '^..$', id: b}";
    assert_eq!(only(Kind::NotProven, &fields(hard)).rules, ["test/a", "test/b"]);
    let member = "conditions: [{path: /status/conditions, members: {severity: [{required: true, enum: [x], id: a}, {pattern: '^y', id: b}]}}]";
    assert_eq!(contradiction(member), ["test/a", "test/b"]);
    let found = remarks_of_policy(
        "convention: metav1, fields: [{path: /status/x, type: string, id: a}, {path: /status/x, type: integer, id: b}]",
    );
    assert_eq!((found[0].kind, found.len()), (Kind::Contradiction, 1));
}

#[test]
fn rules_that_fire_only_in_special_states_are_not_called_dead() {
    for rule in [
        "{length: /status/history, atLeast: 200}",
        "{field: /status/x, isNot: [example, Other, Example]}",
        "{all: [{field: /status/x, matches: '^a'}, {field: /status/x, matches: 'b$'}]}",
        "{field: /status/n, decreased: true, is: 0}",
        "{field: /status/n, decreased: true, is: 1, isNot: 0}",
        "{all: [{field: /status/a, before: /status/b}, {field: /status/b, before: /status/c}]}",
        "{all: [{field: /status/a, before: /status/b}, {field: /status/b, is: 3}]}",
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
fn a_table_that_would_take_too_long_is_not_made() {
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

#[test]
fn every_version_of_a_policy_is_judged() {
    let convention = document("conditions:
  - {path: /status/a, apiVersions: [v1]}
  - {path: /status/b, apiVersions: [v2], members: {type: {required: true}, x: {required: true, enum: [q]}}}
backfill: [{list: /status/b, element: {type: Ready, x: nope}, name: el}]");
    for versions in ["v1, v2", "v2, v1", "'*'"] {
        let resources =
            format!("[{{apiGroups: [g], apiVersions: [{versions}], resources: [things]}}]");
        let policy = policy("local", format!("convention: test, resources: {resources}"));
        let found = lint_policy(&compile(&[convention.clone(), policy]), "local");
        assert_eq!(found.len(), 1, "{versions}");
        assert_eq!(found[0].kind, Kind::PatchRefused);
    }
}

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

// --- the engine's own word -----------------------------------------------------------------------

/// Every row of every truth table with evidence: the two webhooks, not only the table, admit a
/// phase, repair what is contradicted to one that they admit, and find nothing to do a second time.
#[test]
fn repair_lands_on_an_admissible_phase_in_every_row() {
    use statusgate::explain::{Answer, Fact, Represents, Table, has_evidence};
    let with_evidence = built_in()
        .conventions()
        .values()
        .filter(|convention| convention.phase.as_ref().is_some_and(has_evidence));
    let mut walked = 0;
    for convention in with_evidence {
        let rules = convention.phase.as_ref().unwrap();
        let table = Table::of_phase(convention, rules).unwrap();
        let policies = following(&convention.name, "disagreement: Repair");
        for (number, outcome) in table.iter() {
            assert!(outcome.admissible.contains(&true), "{}: row {number}", convention.name);
            let combination = table.space.combination(number);
            // An object of the row that is made here, not by the table.
            let mut object =
                serde_json::json!({"metadata": {"name": "x"}, "status": {"conditions": []}});
            let mut old = object.clone();
            for (fact, (answers, at)) in
                table.space.facts.iter().zip(table.space.answers.iter().zip(&combination))
            {
                match (fact, &answers[*at]) {
                    (Fact::Deleting, Answer::Flag(true)) => {
                        object["metadata"]["deletionTimestamp"] = TIME.into();
                    }
                    (
                        Fact::Condition { kind, .. },
                        Answer::Condition { status, reason, represents },
                    ) => {
                        assert!(*represents == Represents::Anything || !reason.is_empty());
                        object["status"]["conditions"].as_array_mut().unwrap().push(
                            serde_json::json!({
                                "type": kind, "status": status.name(), "reason": reason,
                                "message": "", "lastTransitionTime": TIME,
                            }),
                        );
                    }
                    (Fact::Field { path, .. }, Answer::Value { value, .. }) => {
                        object["status"][path.tokens().last().unwrap().as_str()] = value.clone();
                    }
                    (Fact::Phase { old: true }, Answer::Value { value, .. }) => {
                        old["status"]["phase"] = value.clone();
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
            object["status"]["phase"] = written.name.as_str().into();
            let stood_before = old["status"]["phase"] == object["status"]["phase"];
            let stored = mutated(&policies, &old, &object);
            let phase = stored["status"]["phase"].as_str().unwrap();
            let at = rules.phases.iter().position(|known| known.name == phase).unwrap();
            if let Some(imposed) = outcome.imposed {
                assert_eq!(at, imposed, "{}: row {number}", convention.name);
            } else if !stood_before {
                assert_eq!(Some(at), outcome.repairs[wrong[number % wrong.len()]]);
                assert!(outcome.admissible[at], "{}: row {number}: {phase}", convention.name);
            }
            assert_eq!(
                mutated(&policies, &old, &stored),
                stored,
                "{}: row {number}",
                convention.name
            );
        }
    }
    // AppCat's 4032 and the proposed CSV's 252.
    assert!(walked >= 4284, "{walked}");
}

const TIME: &str = "2026-01-01T00:00:00Z";

fn mutated(policies: &PolicySet, old: &Value, new: &Value) -> Value {
    let write = Write::of_texts(Some(old.to_string()), new.to_string());
    write.at("2026-01-10T00:00:00Z").mutate(policies).object()
}

// --- policies ----------------------------------------------------------------------------------------

/// What is found of a policy, and that it is refused, or not, by the engine's own word: each remark has
/// a witness.
fn remarks_of_policy(spec: &str) -> Vec<Remark> {
    let resources = "resources: [{apiGroups: [g], apiVersions: [v1], resources: [things]}]";
    let remarks =
        lint_policy(&compile(&[policy("local", format!("{resources}, {spec}"))]), "local");
    assert!(remarks.iter().all(|remark| remark.witness.is_some()), "{remarks:?}");
    remarks
}

#[test]
fn a_phase_that_a_policy_refuses_is_found() {
    let found = remarks_of_policy(
        "convention: appcat, enforcement: Audit, fields: [{path: /status/phase, enum: [Ready, Failed, Unknown, Deleting, Degraded, Provisioning]}]",
    );
    let phases: Vec<&str> = found
        .iter()
        .filter(|remark| remark.kind == Kind::PhaseNeverWritten)
        .map(|remark| remark.message.split_whitespace().nth(7).unwrap().trim_end_matches(','))
        .collect();
    assert_eq!(phases, ["Maintenance", "Scaling"]);
    assert!(found.iter().all(|remark| remark.rules == ["local/field-phase"]), "{found:?}");
    assert!(found[0].witness.as_ref().unwrap().contains("phase: Maintenance"));
    // Every state can change to the default phase: no check prevents it.
    let all = "Failed, Deleting, Provisioning, Maintenance, Scaling, Degraded, Ready";
    let check = |values: &str, action: &str| {
        remarks_of_policy(&format!(
            "convention: appcat, fields: [{{path: /status/phase, enum: [{values}], action: {action}}}]"
        ))
    };
    assert_eq!(check(all, "Deny"), []);
    assert_eq!(check("Ready", "Warn"), []);
}

#[test]
fn an_imposed_phase_that_a_policy_refuses_is_found_where_it_is_imposed() {
    let found = remarks_of_policy(
        "convention: appcat, fields: [{path: /status/phase, enum: [Failed, Provisioning, Maintenance, Scaling, Degraded, Ready]}]",
    );
    let patch = found.iter().find(|remark| remark.kind == Kind::PatchRefused).unwrap();
    assert!(patch.witness.as_ref().unwrap().contains("deletionTimestamp"), "{found:?}");
}

#[test]
fn a_default_that_a_policy_refuses_is_found() {
    let tier = "fields: [{path: /status/tier, enum: [small, large]}]";
    for (more, rule) in [
        (format!("backfill: [{{path: /status/tier, value: basic}}], {tier}"), "local/field-tier"),
        (
            format!("backfill: [{{path: /status/tier, value: basic, when: {{field: /status/a, is: 1}}}}], {tier}"),
            "local/field-tier",
        ),
        (
            "backfill: [{path: /status/tier, value: {}}], rules: [{name: none, message: m, expression: '!has(self.status.tier)'}]".to_owned(),
            "local/none",
        ),
    ] {
        let found = remarks_of_policy(&format!("convention: metav1, {more}"));
        let rules: Vec<&[String]> = found.iter().map(|remark| remark.rules.as_slice()).collect();
        assert_eq!(rules, [[rule]], "{more}");
        assert_eq!(found[0].kind, Kind::PatchRefused);
    }
    let good = "backfill: [{path: /status/tier, value: small}], owners: [{path: /status/tier, users: [biller]}]";
    assert_eq!(remarks_of_policy(&format!("convention: metav1, {good}, {tier}")), []);
}

#[test]
fn a_member_that_a_policy_takes_out_and_misses_is_found() {
    let found = remarks_of_policy(
        "convention: metav1, backfill: [{list: /status/conditions, member: note, absentWhere: {member: status, is: Unknown}}], \
         rules: [{name: noted, message: m, expression: 'self.status.conditions.all(c, has(c.note))'}]",
    );
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].kind, found[0].rules[0].as_str()), (Kind::PatchRefused, "local/noted"));
}

#[test]
fn a_second_policy_with_a_phase_is_noted() {
    let following = |name: &str, convention: &str, things: &str| {
        let resources = format!("[{{apiGroups: [g], apiVersions: [v1], resources: [{things}]}}]");
        policy(name, format!("convention: {convention}, resources: {resources}"))
    };
    let noted = |things: &str, convention: &str| {
        let first = following("pa", "appcat", "things");
        let policies = compile(&[first, following("pb", convention, things)]);
        let second = |remark: &Remark| remark.kind == Kind::SecondOwner;
        assert!(!lint_policy(&policies, "pa").iter().any(second));
        lint_policy(&policies, "pb").into_iter().find(second)
    };
    let note = noted("'*'", "olm-csv").unwrap();
    assert!(!note.kind.is_fault() && note.message.starts_with("policy pa "), "{note:?}");
    assert_eq!(noted("'*s'", "appcat").map(|note| note.kind), Some(Kind::SecondOwner));
    assert_eq!(noted("'*'", "metav1"), None);
    assert_eq!(noted("others", "appcat"), None);
}

#[test]
fn the_example_policies_have_no_faults() {
    for name in examples().names() {
        assert_eq!(lint_policy(examples(), name), [], "{name}");
    }
}

// --- the command -------------------------------------------------------------------------------------

fn run(args: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_statusgate"))
        .arg("lint")
        .args(args)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")))
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn exit_codes_tell_sound_from_faulty_from_unreadable() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let good = write("good.yaml", &document(&two_phases("")));
    let (code, out, _) = run(&[&good]);
    assert_eq!(code, Some(0), "{out}");
    assert!(out.starts_with("test: no faults, 1 note ("), "{out}");

    let dead = "rules:\n  - {id: dead, path: /status/x, action: Warn, message: m, when: {all: [{deleting: true}, {deleting: false}]}}";
    let faulty = write("faulty.yaml", &document(dead));
    let (code, out, _) = run(&[&faulty, "-o", "json"]);
    let json: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(code, Some(1));
    assert_eq!(json["conventions"][0]["faults"][0]["kind"], "never-fires");
    assert_eq!(json["conventions"][0]["faults"][0]["rules"][0], "test/dead");

    let broken = write("broken.yaml", &document("phaze: {}"));
    let (code, out, _) = run(&[&broken]);
    assert_eq!(code, Some(1));
    assert!(out.contains("broken.yaml:5:3") && out.contains("did you mean \"phase\"?"), "{out}");
    let (code, out, _) = run(&[&broken, "-o", "json"]);
    let json: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &json["mistakes"][0]["line"]), (Some(1), &5.into()));

    let (code, _, said) = run(&["/nowhere.yaml"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("/nowhere.yaml"), "{said}");
    let (code, _, said) = run(&["--convention", "apcat"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("did you mean \"appcat\"?"), "{said}");
}
