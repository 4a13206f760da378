//! One fault in a small convention.

use statusgate_analysis::lint::{Kind, Remark};
use statusgate_analysis::table::Table;

use super::{CONDITIONS, only, remarks, two_phases};

#[test]
fn a_sound_convention_has_no_faults() {
    let found = remarks(&two_phases(""));
    assert!(found.iter().all(|remark| !remark.kind.is_fault()), "{found:#?}");
}

#[test]
fn a_state_without_a_phase_is_reported() {
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
    // It is made for policies that reject: Repair would have nothing to choose.
    assert!(remarks.iter().all(|remark| remark.kind != Kind::RepairFindsNothing), "{remarks:#?}");
}

#[test]
fn phases_that_repair_cannot_replace_are_one_fault() {
    let spec = format!(
        "{CONDITIONS}
phase:
  path: /status/phase
  values:
    - {{phase: Up, necessary: {{condition: Ready, is: 'True'}}, sufficient: {{condition: Ready, is: 'True'}}}}
    - {{phase: Down, necessary: {{condition: Ready, is: 'False'}}}}
    - {{phase: Lost, necessary: {{condition: Ready, is: ['False', 'True']}}}}
    - {{phase: Other}}"
    );
    let fault = only(Kind::RepairFindsNothing, &spec);
    assert_eq!(fault.rules, ["test/phase-up", "test/phase-down", "test/phase-lost"]);
    assert!(fault.message.ends_with("to replace Up, Down or Lost"), "{fault:#?}");
    assert!(fault.witness.as_ref().unwrap().contains("phase: Up"), "{fault:#?}");
}

/// The phase is a member of the last element of a list.
#[test]
fn a_witness_has_the_shape_of_a_status() {
    let spec =
        "conditions: [{path: /status/conditions, history: {}, maxItems: 3, members: {phase: {}}}]
phase:
  path: /status/conditions/-1/phase
  values:
    - {phase: Up, necessary: {field: /status/a, is: 1}}
    - {phase: Down, necessary: {field: /status/a, is: 2}}";
    let remarks = remarks(spec);
    let fault = remarks.iter().find(|remark| remark.kind == Kind::NoAdmissiblePhase);
    assert!(fault.is_some(), "{remarks:#?}");
    for witness in remarks.iter().filter_map(|remark| remark.witness.as_ref()) {
        assert!(!witness.contains("-1"), "{witness}");
    }
}

#[test]
fn a_phase_without_an_admissible_state_is_reported() {
    let spec = two_phases("").replace(
        "- {phase: Unknown}",
        "- {phase: Lost, necessary: {all: [{deleting: true}, {deleting: false}]}}\n    - {phase: Unknown}",
    );
    let fault = only(Kind::UnreachablePhase, &spec);
    assert_eq!(fault.rules, ["test/phase-lost"]);
    assert!(fault.witness.unwrap().contains("phase: Lost"));
}

#[test]
fn rules_that_never_fire_are_reported() {
    let never =
        |rule: &str| only(Kind::NeverFires, &format!("{CONDITIONS}\nrules:\n  - {rule}")).rules;
    assert_eq!(
        never(
            "{id: dead, path: /status/x, action: Warn, message: m, when: {all: [{condition: A, is: 'True'}, {condition: A, is: 'False'}]}}"
        ),
        ["test/dead"]
    );
    // An absent condition has no status.
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
fn evidence_that_nothing_contradicts_is_reported() {
    let spec = two_phases("").replace(
        "- {phase: Unknown}",
        "- {phase: Odd, necessary: {any: [{deleting: true}, {deleting: false}]}}\n    - {phase: Unknown}",
    );
    assert_eq!(only(Kind::NeverFires, &spec).rules, ["test/phase-odd"]);
}

#[test]
fn rules_that_together_reject_everything_are_reported() {
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
fn a_rule_that_is_reported_alone_is_not_reported_with_others() {
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
fn a_phase_that_rules_always_reject_is_reported() {
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

#[test]
fn phases_that_the_same_rule_always_rejects_are_one_fault() {
    let spec = two_phases(
        "rules: [{id: unknown, path: /status/x, action: Deny, message: m, when: {phase: [Up, Down]}}]",
    );
    let fault = only(Kind::PhaseNeverWritten, &spec);
    assert_eq!(fault.message, "phase Up or Down is rejected in every state that admits it");
    assert_eq!(fault.rules, ["test/unknown"]);
    assert!(fault.witness.unwrap().contains("phase: Up"));
}

/// A walk through all combinations of so many conditions would be too long.
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
    let about_writes = |remark: &&Remark| {
        [Kind::PhaseNeverWritten, Kind::Contradiction].contains(&remark.kind)
            || remark.message.contains("accepts phase")
    };
    assert_eq!(found.iter().find(about_writes), None);
}

#[test]
fn a_default_phase_that_is_rejected_is_reported() {
    let spec = two_phases(
        "rules:
  - {id: say-something, path: /status/x, action: Deny, message: m, when: {phase: Unknown, condition: Ready, is: 'True'}}",
    );
    let found = remarks(&spec);
    let fault = found.iter().find(|remark| remark.kind == Kind::NoWayOut).unwrap();
    assert_eq!(fault.rules, ["test/say-something"]);
    assert!(fault.witness.as_ref().unwrap().contains("phase: Unknown"));
}

/// A list of conditions with a rule about each element, and a default that removes a member.
fn removing(rule: &str, of: &str) -> String {
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
    let fault = only(Kind::PatchRejected, &removing(missed, "{member: status, isNot: 'True'}"));
    assert_eq!(fault.rules, ["test/severity"]);
    let witness = fault.witness.unwrap();
    assert!(witness.contains("status: Unknown") && witness.contains("severity: "), "{witness}");
    let kept = removing(missed, "{polarity: positive, member: status, is: 'True'}");
    assert_eq!(remarks(&kept), []);
    let refused = "{all: [{member: status, is: Unknown}, {member: severity, set: true}]}";
    assert_eq!(remarks(&removing(refused, "{member: status, is: Unknown}")), []);
}

#[test]
fn a_default_that_never_removes_a_member_is_reported() {
    let refused = "{member: severity, is: Fatal}";
    let never = "{all: [{member: severity, set: false}, {polarity: positive}]}";
    let fault = only(Kind::NeverFires, &removing(refused, never));
    assert_eq!(fault.message, "default cleanup never removes a member severity");
}

/// Two conditions, the second of which has a default.
fn defaulting(more: &str) -> String {
    format!(
        "{more}
backfill: [{{name: first, list: /status/conditions, element: {{type: A, status: Unknown}}}}]"
    )
}

#[test]
fn a_default_that_the_convention_rejects_is_reported() {
    let rules = |spec: &str| only(Kind::PatchRejected, spec).rules;
    let of_type =
        "backfill: [{path: /status/x, value: 5}]\nfields: [{path: /status/x, type: string, id: x}]";
    assert_eq!(rules(&format!("{CONDITIONS}\n{of_type}")), ["test/x"]);
    let never = "conditions: [{path: /status/conditions, types: {A: {present: Deny}}}]";
    assert_eq!(rules(&defaulting(never)), ["test/a-present"]);
    let other =
        "conditions: [{path: /status/conditions, members: {status: {enum: ['True', 'False']}}}]";
    assert_eq!(rules(&defaulting(other)), ["test/condition-status"]);
    let rule = "{id: r, path: /status/conditions, action: Deny, message: m, when: {condition: A, is: Unknown}}";
    let fault = only(Kind::PatchRejected, &defaulting(&format!("{CONDITIONS}\nrules: [{rule}]")));
    assert_eq!(fault.rules, ["test/r"]);
    assert!(fault.witness.unwrap().contains("written: true"));
}

/// What each kind of default adds, with the rule that refuses it.
#[test]
fn a_default_that_a_rule_about_other_facts_refuses_is_reported() {
    let rule = |path: &str, when: &str| {
        format!("rules: [{{id: r, path: {path}, action: Deny, message: m, when: {when}}}]")
    };
    let phases = "phase: {path: /status/phase, values: [{phase: A}, {phase: B}]}";
    let one = "backfill: [{path: /status/x, value: 1}]";
    let guarded = "backfill: [{list: /status/conditions, member: n, value: one, when: {field: /status/y, is: 1}}]";
    let members = "conditions: [{path: /status/conditions, members: {n: {enum: [two], id: r}}}]";
    let each = "conditions: [{path: /status/conditions, each: [{id: r, action: Deny, message: m, when: {member: n, is: one, oldMember: status, is: 'True'}}]}]";
    let each = each.replace(
        "{member: n, is: one, oldMember: status, is: 'True'}",
        "{all: [{member: n, is: one}, {oldMember: status, is: 'True'}]}",
    );
    let copy = "backfill: [{path: /status/x, copyOf: /status/y}]";
    let stored = "backfill: [{path: /status/x, copyOf: stored}]";
    let element = "backfill: [{list: /status/conditions, element: {type: A, status: Unknown}}]";
    for spec in [
        format!(
            "{phases}\n{one}\n{}",
            rule("/status/x", "{all: [{oldPhase: A}, {field: /status/x, is: 1}]}")
        ),
        format!(
            "{one}\n{}",
            rule("/status/x", "{all: [{field: /status/y, is: [2, 3]}, {field: /status/x, is: 1}]}")
        ),
        format!("{members}\n{guarded}"),
        format!("{each}\n{guarded}"),
        format!("{copy}\nfields: [{{path: /status/x, id: r, type: string, format: date-time}}]"),
        format!(
            "{copy}\n{}",
            rule("/status/x", "{all: [{field: /status/x, is: 7}, {set: /status/z}]}")
        ),
        format!(
            "{stored}\n{}",
            rule("/status/x", "{all: [{field: /status/x, is: 7}, {field: /status/z, is: 1}]}")
        ),
        format!(
            "{CONDITIONS}\n{element}\n{}",
            rule(
                "/status/x",
                "{all: [{condition: A, is: Unknown}, {oldCondition: B, is: 'True'}]}"
            )
        ),
        format!(
            "conditions: [{{path: /status/conditions, types: {{A: {{reverted: Deny}}}}}}]\n{element}"
        ),
    ] {
        let found = remarks(&spec);
        let faults: Vec<&Remark> = found.iter().filter(|remark| remark.kind.is_fault()).collect();
        assert_eq!(faults.len(), 1, "{spec}\n{found:#?}");
        assert_eq!(faults[0].kind, Kind::PatchRejected, "{spec}");
        assert!(["test/r", "test/a-reverted"].contains(&faults[0].rules[0].as_str()), "{faults:?}");
    }
}

/// A rule rejects the phase that Repair sets, but not the one that was written.
#[test]
fn a_repair_that_a_rule_refuses_is_reported() {
    let spec = |when: &str| {
        format!(
            "phase:
  path: /status/phase
  repair: [{{to: B}}]
  values: [{{phase: A, necessary: {{field: /status/x, is: 1}}}}, {{phase: B}}]
rules: [{{id: r, path: /status/y, action: Deny, message: m, when: {{all: [{when}, {{field: /status/y, is: 1}}]}}}}]"
        )
    };
    let found = remarks(&spec("{phase: B}"));
    let refused = found.iter().find(|remark| remark.kind == Kind::PatchRejected);
    assert_eq!(refused.map(|remark| &*remark.rules), Some(&["test/r".to_owned()][..]));
    assert!(remarks(&spec("{phase: A}")).iter().all(|remark| remark.kind != Kind::PatchRejected));
    // The reason was written for the other phase.
    let reason = "phase:
  path: /status/phase
  reason: {path: /status/reason, action: Deny}
  repair: [{to: B}]
  values: [{phase: A, reasons: [R], necessary: {field: /status/x, is: 1}}, {phase: B, reasons: [S]}]";
    assert!(remarks(reason).iter().all(|remark| !remark.kind.is_fault()));
}

#[test]
fn a_phase_that_is_imposed_against_its_evidence_is_reported() {
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
fn a_default_that_is_never_set_with_a_phase_is_noted() {
    let more = "backfill: [{name: first, list: /status/conditions, element: {type: Ready, status: Unknown}}]";
    let note = only(Kind::DefaultWaits, &two_phases(more));
    assert_eq!(
        note.message,
        "default first is not set if the phase is Up: it would contradict that phase"
    );
    assert!(note.witness.unwrap().contains("phase: Up"));
}

#[test]
fn a_two_step_writer_that_is_locked_out_is_reported() {
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
    // Both actions have the same cause.
    let of_both = |fault: &&Remark| fault.message.starts_with("a writer that changes phase ");
    assert!(faults.iter().any(of_both), "{faults:#?}");
    // The writers send everything in one request.
    for spec in [spec, two_phases("")] {
        let found = remarks(&format!("writes: together\n{spec}"));
        assert!(
            found.iter().all(|remark| !remark.kind.name().starts_with("two-step-")),
            "{found:#?}"
        );
    }
    // A rejection that depends on the policy's `disagreement: Deny` is a note.
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
        (Kind::NoMoveOut, "no move leads out of phase B or C"),
        (Kind::SharedReason, "reason Two belongs to phases A and B"),
        (Kind::SharedReason, "phase B lists reason Copied, which all phases have"),
    ];
    assert_eq!(found, expected.map(|(kind, message)| (kind, message.to_owned())));
    // No move leads out of a final phase, on purpose.
    let found = remarks(&spec.replace("phase: C", "phase: C, final: true"));
    let ends = found.iter().filter(|remark| remark.kind == Kind::NoMoveOut);
    let ends: Vec<&str> = ends.map(|remark| remark.message.as_str()).collect();
    assert_eq!(ends, ["no move leads out of phase B"]);
}

#[test]
fn a_phase_that_no_allowed_move_leads_to_is_reported() {
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
fn moves_hide_no_rule_that_rejects_a_phase() {
    let rule = "rules: [{id: r, path: /status/x, action: Deny, message: m, when: {phase: B}}]";
    let spec = |moves: &str| {
        format!(
            "phase:\n  path: /status/phase\n  values: [{{phase: A}}, {{phase: B}}, {{phase: C}}]\n  moves: {{{moves}}}\n{rule}"
        )
    };
    // Only C follows B, so that it cannot be written either; but that has the same cause.
    let fault =
        only(Kind::PhaseNeverWritten, &spec("action: Deny, from: {'': A, A: B, B: C, C: A}"));
    assert_eq!(fault.message, "phase B is rejected in every state that admits it");
    assert_eq!(fault.rules, ["test/r"]);
    // No phase is the first one.
    let fault = only(Kind::PhaseNeverEntered, &spec("action: Deny, from: {A: B, B: C, C: A}"));
    assert!(fault.message.starts_with("no move leads to phase A, B or C"), "{fault:?}");
}

#[test]
fn evidence_that_holds_in_no_accepted_state_is_reported() {
    let of = |values: &str| {
        format!(
            "{CONDITIONS}\nphase: {{path: /status/phase, values: [{values}]}}\nfields: [{{path: /status/tier, enum: [small, large]}}]"
        )
    };
    let absent = "{condition: Ready, present: false, is: 'True'}";
    let fault =
        only(Kind::NeverFires, &of(&format!("{{phase: A, necessary: {absent}}}, {{phase: B}}")));
    assert_eq!(fault.message, "the necessary evidence of phase A holds in no state");
    for evidence in ["necessary", "sufficient"] {
        let spec = of(&format!(
            "{{phase: A, {evidence}: {{field: /status/tier, is: huge}}}}, {{phase: B}}"
        ));
        let fault = only(Kind::NeverFires, &spec);
        let message = format!(
            "the {evidence} evidence of phase A requires a value of status.tier that its checks reject"
        );
        assert_eq!(fault.message, message);
        assert_eq!(fault.rules, ["test/field-tier", "test/phase-a"]);
        let right = remarks(&spec.replace("is: huge", "is: [huge, large]"));
        assert!(right.iter().all(|remark| remark.kind != Kind::NeverFires), "{right:#?}");
    }
}

#[test]
fn condition_types_that_no_list_declares_are_one_note() {
    let spec = "conditions: [{path: /status/conditions, types: {Ready: {}, '*Healthy': {}}}]
phase: {path: /status/phase, values: [{phase: A, necessary: {condition: Synced, is: 'True'}}, {phase: B}]}
health: {rules: [{name: r, is: failed, when: {condition: DiskHealthy, is: 'False'}}]}
rules:
  - {id: r, path: /status/x, action: Warn, message: m, trigger: {moved: condition Progressing}, when: {set: /status/x}}
  - {id: s, path: /status/x, action: Warn, message: m, when: {field: /status/x, equals: {condition: Available, member: n}}}";
    let note = only(Kind::UndeclaredType, spec);
    assert_eq!(
        note.message,
        "no list declares the condition type Available, Progressing or Synced, but predicates name it"
    );
    // A convention that declares no types says nothing about them.
    let none = spec.replace(", types: {Ready: {}, '*Healthy': {}}", "");
    assert!(remarks(&none).iter().all(|remark| remark.kind != Kind::UndeclaredType));
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

#[test]
fn a_rule_about_health_that_never_decides_is_reported() {
    let health = |rules: &str| two_phases(&format!("health: {{rules: [{rules}]}}"));
    let first = "{name: broken, is: failed, when: {condition: Ready, isNot: 'True'}}";
    let hidden = "{name: down, is: failed, when: {phase: Down, condition: Ready, is: 'False'}}";
    let fault = only(Kind::UnreachableHealth, &health(&format!("{first}, {hidden}")));
    assert_eq!(fault.message, "the rule down about health decides in no state: broken comes first");
    assert!(fault.witness.unwrap().contains("phase: Down"));
    let never = "{name: never, is: failed, when: {all: [{deleting: true}, {condition: Ready, is: 'False'}]}}";
    let fault = only(Kind::UnreachableHealth, &health(never));
    assert_eq!(fault.message, "the rule never about health decides in no state");
    let found = remarks(&health(&format!("{hidden}, {first}")));
    assert!(found.iter().all(|remark| !remark.kind.is_fault()), "{found:#?}");
}

#[test]
fn a_phase_without_a_health_is_noted_if_others_have_one() {
    let spec = two_phases("health: {rules: [{name: down, is: failed, when: {phase: Down}}]}")
        .replace("{phase: Up,", "{phase: Up, health: current,");
    let note = only(Kind::PhaseWithoutHealth, &spec);
    assert_eq!(note.message, "phase Unknown has no health, and no rule names it");
    assert_eq!(note.rules, ["test/phase-unknown"]);
    let none = two_phases("health: {rules: [{name: down, is: failed, when: {phase: Down}}]}");
    assert!(remarks(&none).iter().all(|remark| remark.kind != Kind::PhaseWithoutHealth));
}

#[test]
fn an_object_that_is_current_without_a_status_is_noted() {
    let note = only(Kind::CurrentWithoutStatus, &two_phases("health: {default: current}"));
    assert!(!note.witness.unwrap().contains("status:"));
    let found = remarks(&two_phases("health: {default: inProgress}"));
    assert!(found.iter().all(|remark| remark.kind != Kind::CurrentWithoutStatus));
}

#[test]
fn objects_with_another_kstatus_result_are_one_note() {
    let health =
        |rules: &str| format!("{CONDITIONS}\nhealth: {{default: current, rules: [{rules}]}}");
    let not_ready =
        "{name: not-ready, is: inProgress, when: {condition: Ready, is: ['False', Unknown]}}";
    let found = remarks(&health(not_ready));
    assert!(found.iter().all(|remark| remark.kind != Kind::HealthDiffersFromKstatus), "{found:#?}");
    let down = "{name: down, is: failed, retried: true, when: {condition: Ready, is: 'False'}}";
    let up = "{name: up, is: suspended, when: {condition: Ready, is: 'True'}}";
    let note = only(Kind::HealthDiffersFromKstatus, &health(&format!("{down}, {up}")));
    assert_eq!(
        note.message,
        "health differs from kstatus in some state: current but kstatus InProgress, failed (retried) but kstatus \
         InProgress, suspended but kstatus Current"
    );
    // That of the first pair: kstatus knows the condition, and no rule does.
    let witness = note.witness.unwrap();
    assert!(witness.starts_with("apiVersion:") && witness.contains("type: "), "{witness}");
}

#[test]
fn moves_that_a_copied_phase_does_not_obey_are_not_reported() {
    let spec = "phase:
  path: /status/phase
  mirrored: {field: /spec/flag, is: true}
  moves: {from: {A: []}, action: Deny}
  values: [{phase: A}, {phase: B}]";
    assert_eq!(remarks(spec), []);
    let never = spec
        .replace("{field: /spec/flag, is: true}", "{all: [{deleting: true}, {deleting: false}]}");
    let kinds: Vec<Kind> = remarks(&never).iter().map(|remark| remark.kind).collect();
    assert!(kinds.contains(&Kind::PhaseNeverEntered), "{kinds:?}");
}

#[test]
fn a_phase_that_can_be_written_after_another_one_is_not_reported() {
    let rule = "rules: [{id: r, path: /status/x, action: Deny, message: m, trigger: {coWritten: [/status/phase, /status/x]}, when: {phase: B}}, {id: x, path: /status/x, action: Deny, message: m, when: {set: /status/x, not: {field: /status/x, is: 1}}}]";
    let phases = "phase: {path: /status/phase, values: [{phase: A}, {phase: B}]}";
    assert_eq!(remarks(&format!("{phases}\n{rule}")), []);
    let always = rule.replace("{coWritten: [/status/phase, /status/x]}", "state");
    assert_eq!(only(Kind::PhaseNeverWritten, &format!("{phases}\n{always}")).rules, ["test/r"]);
}

/// The reason may be absent: then it is no evidence.
#[test]
fn a_table_has_a_row_for_a_condition_without_a_reason() {
    let spec = format!(
        "{CONDITIONS}\nphase: {{path: /status/phase, values: [{{phase: A, necessary: {{condition: Ready, reason: R}}}}, {{phase: B}}]}}"
    );
    let policies = crate::support::compile(&[super::document(&spec)]);
    let convention = policies.conventions().get("test").unwrap();
    let table = Table::of_phase(convention, convention.phase.as_ref().unwrap()).unwrap();
    let mut rows: Vec<(String, Vec<bool>)> = table
        .iter()
        .map(|(number, outcome)| {
            let at = table.space.combination(number)[0];
            (table.space.facts[0][at].label(), outcome.admissible.clone())
        })
        .collect();
    rows.retain(|(label, _)| label == "absent" || label.starts_with("True"));
    let row = |label: &str, admits: bool| (label.to_owned(), vec![admits, true]);
    let wanted = [
        row("absent", true),
        row("True (no reason)", true),
        row("True (R)", true),
        row("True (another reason)", false),
    ];
    assert_eq!(rows, wanted);
    // With the empty reason in evidence, there is no such answer twice.
    let text = spec.replace("reason: R", "reason: [R, '']");
    let policies = crate::support::compile(&[super::document(&text)]);
    let convention = policies.conventions().get("test").unwrap();
    let again = Table::of_phase(convention, convention.phase.as_ref().unwrap()).unwrap();
    assert_eq!(again.rows.len(), table.rows.len());
}

#[test]
fn a_phase_that_another_one_always_replaces_is_reported() {
    let spec = |when: &str| {
        format!(
            "phase: {{path: /status/phase, values: [{{phase: A, imposed: {{when: {when}, since: /metadata/creationTimestamp}}}}, {{phase: B}}]}}"
        )
    };
    let fault =
        only(Kind::PhaseNeverWritten, &spec("{any: [{deleting: true}, {deleting: false}]}"));
    assert_eq!(fault.rules, ["test/phase-a"]);
    assert_eq!(fault.message, "phase B is rejected or replaced in every state that admits it");
    assert_eq!(remarks(&spec("{deleting: true}")), []);
}

#[test]
fn a_closed_list_of_other_elements_can_be_written() {
    let spec = "conditions: [{path: /status/nodes, element: node, key: [name], otherMembers: Deny, members: {name: {required: true}}}]";
    assert_eq!(remarks(spec), []);
    let each = "name: {required: true}}, each: [{id: e, action: Deny, message: m, when: {member: name, set: true}}]";
    let denied = spec.replace("name: {required: true}}", each);
    assert!(remarks(&denied).iter().any(|remark| remark.kind == Kind::Contradiction));
}
