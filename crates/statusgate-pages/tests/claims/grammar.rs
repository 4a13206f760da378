//! The small conventions: each word of the predicate language at each place of a document.

use std::collections::BTreeMap;

/// Where a place adds its text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Slot {
    /// The convention.
    Spec,
    /// The type `Ready`.
    Type,
    /// The list of conditions.
    List,
    /// Further lists.
    Lists,
    /// The phase `A`.
    A,
    /// The phase `B`.
    B,
    /// The phase.
    Phase,
    /// The generation.
    Generation,
    /// Checks of fields.
    Fields,
    /// Rules.
    Rules,
    /// Defaults.
    Backfill,
    /// The policy.
    Policy,
}

use Slot::{A, B, Backfill, Fields, Generation, List, Lists, Phase, Policy, Rules, Spec, Type};

/// A place for a predicate, which is `$P` in its texts.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) name: &'static str,
    pub(crate) texts: &'static [(Slot, &'static str)],
}

const fn place(name: &'static str, texts: &'static [(Slot, &'static str)]) -> Place {
    Place { name, texts }
}

/// The predicates about an object.
pub(crate) const PREDICATES: &[&str] = &[
    "{phase: A}",
    "{oldPhase: A}",
    "{field: /status/x, is: 1}",
    "{field: /status/x, isNot: 1}",
    "{field: /status/x, set: true}",
    "{field: /status/x, changed: true}",
    "{field: /status/x, decreased: true}",
    "{field: /status/x, atLeast: 2}",
    "{field: /status/x, atMost: /spec/n}",
    "{field: /status/x, equals: /spec/n}",
    "{field: /status/x, equals: {condition: Ready, member: n}}",
    "{field: /status/word, matches: ^o}",
    "{field: /status/t, before: /status/u}",
    "{field: /status/t, past: true}",
    "{oldField: /status/x, is: 1}",
    "{oldField: /spec/flag, is: true}",
    "{set: /status/x}",
    "{set: /spec/flag}",
    "{set: /metadata/annotations/a}",
    "{field: /metadata/annotations/a, is: b}",
    "{field: /spec/flag, is: true}",
    "{condition: Ready, is: 'True'}",
    "{condition: Ready, isNot: 'False'}",
    "{condition: Ready, reason: R}",
    "{condition: Ready, severity: Error}",
    "{condition: Ready, present: false}",
    "{condition: Ready, changed: true}",
    "{oldCondition: Ready, is: 'True'}",
    "{oldCondition: Ready, present: false}",
    "{deleting: true}",
    "{observed: behind}",
    "{observed: ahead}",
    "{length: /status/list, atLeast: 1}",
    "{length: /spec/parents, atMost: 0}",
    "{gates: /spec/gates}",
    "{resource: things}",
    "{all: [{oldPhase: A}, {phase: A}]}",
    "{all: [{oldField: /status/x, is: 1}, {field: /status/x, is: 1}]}",
    "{all: [{oldField: /status/x, is: 1}, {observed: behind}]}",
    "{any: [{oldPhase: B}, {condition: Ready, is: 'False'}]}",
];

/// Predicates that only rules without a rejection accept, because their answer depends on the clock.
pub(crate) const CLOCK_PREDICATES: &[&str] =
    &["{since: /status/t, moreThan: 5m}", "{field: /status/t, future: true}"];

/// The predicates about an element of a list.
pub(crate) const ELEMENT_PREDICATES: &[&str] = &[
    "{member: n, is: one}",
    "{member: n, changed: true}",
    "{member: severity, set: true}",
    "{oldMember: n, is: one}",
    "{polarity: positive}",
    "{member: n, equals: /status/word}",
];

/// The places for a predicate about an object.
pub(crate) const PLACES: &[Place] = &[
    place("rule", &[(Rules, "{id: r, path: /status/x, when: $P, action: Deny, message: m}")]),
    place("rule-warn", &[(Rules, "{id: r, path: /status/x, when: $P, action: Warn, message: m}")]),
    place(
        "rule-state",
        &[(Rules, "{id: r, path: /status/x, when: $P, action: Warn, trigger: state, message: m}")],
    ),
    place(
        "rule-moved",
        &[(
            Rules,
            "{id: r, path: /status/x, when: $P, action: Deny, trigger: {moved: /status/x}, message: m}",
        )],
    ),
    place(
        "rule-moved-condition",
        &[(
            Rules,
            "{id: r, path: /status/x, when: $P, action: Deny, trigger: {moved: condition Ready}, message: m}",
        )],
    ),
    place(
        "rule-cowritten",
        &[(
            Rules,
            "{id: r, path: /status/x, when: $P, action: Deny, trigger: {coWritten: [/status/phase, /status/x]}, message: m}",
        )],
    ),
    place(
        "rule-disagreement",
        &[(Rules, "{id: r, path: /status/x, when: $P, action: Disagreement, message: m}")],
    ),
    place(
        "rule-other-list",
        &[
            (Lists, "{path: /status/more, element: thing, types: {Ready: {}}}"),
            (Rules, "{id: r, in: /status/more, when: $P, action: Deny, message: m}"),
        ],
    ),
    place("missing", &[(Type, "missing: {when: $P, action: Deny}")]),
    place("present", &[(Type, "present: {when: $P, action: Deny}")]),
    place("necessary", &[(A, "necessary: $P")]),
    place("together", &[(A, "necessary: $P"), (Spec, "writes: together")]),
    place(
        "necessary-repair",
        &[(A, "necessary: $P"), (Phase, "repair: [{to: B}]"), (Policy, "disagreement: Repair")],
    ),
    place(
        "necessary-default",
        &[(A, "necessary: $P"), (Phase, "default: B"), (Policy, "disagreement: Repair")],
    ),
    place(
        "sufficient-repair",
        &[
            (A, "necessary: {not: {field: /status/x, is: 2}}"),
            (B, "sufficient: $P"),
            (Phase, "repair: [{to: B}]"),
            (Policy, "disagreement: Repair"),
        ],
    ),
    place(
        "step-repair",
        &[
            (A, "necessary: {not: {field: /status/x, is: 2}}"),
            (Phase, "repair: [{to: B, when: $P}]"),
            (Policy, "disagreement: Repair"),
        ],
    ),
    place(
        "stored-repair",
        &[
            (A, "necessary: $P"),
            (Phase, "repair: [{to: stored}, {to: B}]"),
            (Policy, "disagreement: Repair"),
        ],
    ),
    place(
        "writer-repair",
        &[
            (A, "necessary: $P"),
            (Phase, "repair: [{to: B}]"),
            (Policy, "writers: [{users: ['*'], groups: [g], disagreement: Repair}]"),
        ],
    ),
    place("imposed", &[(B, "imposed: {when: $P, since: /metadata/creationTimestamp}")]),
    place(
        "mirrored",
        &[(
            Phase,
            "mirrored: $P, moves: {from: {A: []}, action: Deny}, transitionTime: /status/time",
        )],
    ),
    place(
        "moves",
        &[
            (A, "necessary: $P"),
            (Phase, "moves: {anyTo: [], from: {'': A, A: [B], B: [A]}, action: Deny}"),
        ],
    ),
    place(
        "final",
        &[
            (A, "final: true, necessary: $P"),
            (Phase, "moves: {from: {'': [A, B], B: [A]}, action: Deny}"),
        ],
    ),
    place(
        "final-imposed",
        &[
            (A, "final: true"),
            (B, "imposed: {when: $P, since: /metadata/creationTimestamp}"),
            (Phase, "moves: {from: {'': [A, B], B: [A]}, action: Deny}"),
        ],
    ),
    place(
        "reason",
        &[
            (A, "reasons: [R], necessary: $P"),
            (Phase, "reason: {path: /status/reason, always: [Z], action: Deny}"),
        ],
    ),
    place(
        "reason-repair",
        &[
            (A, "reasons: [R], necessary: $P"),
            (B, "reasons: [S]"),
            (Phase, "reason: {path: /status/reason, action: Deny}, repair: [{to: B}]"),
            (Policy, "disagreement: Repair"),
        ],
    ),
    place(
        "phase-time",
        &[
            (A, "necessary: $P"),
            (
                Phase,
                "transitionTime: {path: /status/time, kept: Deny, moved: Deny}, repair: [{to: B}]",
            ),
            (Policy, "disagreement: Repair"),
        ],
    ),
    place(
        "phase-time-default",
        &[
            (
                Phase,
                "default: B, transitionTime: {path: /status/time, inStep: false, kept: Deny, moved: Deny}",
            ),
            (Rules, "{id: r, path: /status/phase, when: $P, action: Deny, message: m}"),
        ],
    ),
    place("not-true", &[(Type, "notTrue: Deny"), (A, "necessary: $P")]),
    place("removed", &[(Type, "removed: Deny"), (A, "necessary: $P")]),
    place("reverted", &[(Type, "reverted: Deny"), (A, "necessary: $P")]),
    place("misspelled", &[(List, "misspelled: Deny, reasonKept: Deny"), (A, "necessary: $P")]),
    place(
        "summary",
        &[
            (Type, "summary: {better: Deny, worse: Deny, otherReason: Deny, ownReasons: Q}"),
            (A, "necessary: $P"),
        ],
    ),
    place(
        "type-reasons",
        &[
            (
                Type,
                "reasons: {'True': Q, 'False': [R, S], Unknown: [S], action: Deny, other: Deny}",
            ),
            (A, "necessary: $P"),
        ],
    ),
    place(
        "max-items",
        &[
            (List, "maxItems: 0, tooLong: Deny"),
            (
                Backfill,
                "{list: /status/conditions, element: {type: New, status: Unknown}, when: $P}",
            ),
        ],
    ),
    place(
        "other-members",
        &[
            (
                List,
                "members: {type: {required: true}, status: {required: true}}, otherMembers: Deny",
            ),
            (A, "necessary: $P"),
        ],
    ),
    place(
        "other-types",
        &[
            (List, "otherTypes: Deny, order: Deny"),
            (
                Backfill,
                "{list: /status/conditions, element: {type: New, status: Unknown}, when: $P}",
            ),
        ],
    ),
    place(
        "other-types-rule",
        &[
            (List, "otherTypes: Deny"),
            (Rules, "{id: r, path: /status/conditions, when: $P, action: Deny, message: m}"),
        ],
    ),
    place(
        "member-default-refused",
        &[
            (List, "members: {n: {enum: [two], action: Deny}}"),
            (Backfill, "{list: /status/conditions, member: n, value: one, when: $P}"),
        ],
    ),
    place(
        "times",
        &[
            (
                List,
                "transitionTime: {member: lastTransitionTime, mustMoveOn: [status], mayMoveOn: [status], kept: Deny, \
                 moved: Deny, backwards: Deny, backwardsUnchanged: Warn, future: Warn, skewSeconds: 60}",
            ),
            (A, "necessary: $P"),
        ],
    ),
    place(
        "steady-member",
        &[
            (
                Backfill,
                "{list: /status/conditions, member: lastTransitionTime, steadyWhile: [status, reason]}",
            ),
            (Backfill, "{path: /status/d, value: 1, when: $P}"),
        ],
    ),
    place(
        "steady-status",
        &[
            (Backfill, "{name: s, steadyWhile: {onlyTimes: [t, time, lastTransitionTime]}}"),
            (Backfill, "{path: /status/d, value: 1, when: $P}"),
        ],
    ),
    place(
        "generation",
        &[
            (A, "necessary: $P"),
            (Generation, "ahead: Deny, decreased: Deny, reset: Deny, aheadAtFirst: Deny"),
        ],
    ),
    place("generation-minimum", &[(A, "necessary: $P"), (Generation, "minimum: 2")]),
    place(
        "field",
        &[
            (A, "necessary: $P"),
            (
                Fields,
                "{path: /status/x, type: integer, minimum: 1, maximum: 1, enum: [1, 2], action: Deny}",
            ),
        ],
    ),
    place(
        "field-text",
        &[
            (A, "necessary: $P"),
            (
                Fields,
                "{path: /status/word, id: w, enum: [one, two], pattern: ^o, message: m, minLength: 1, maxLength: 3, \
                 maxBytes: 3, nullable: false, action: Deny}",
            ),
        ],
    ),
    place(
        "field-empty",
        &[
            (List, "emptyIsAbsent: true, members: {n: {enum: [one], action: Deny}}"),
            (
                Fields,
                "{path: /status/word, required: true, emptyIsAbsent: true, enum: [one, o], action: Deny}",
            ),
            (Backfill, "{path: /status/word, value: one, when: $P}"),
        ],
    ),
    place(
        "field-required",
        &[
            (Fields, "{path: /status/d, required: true, action: Deny}"),
            (Backfill, "{path: /status/d, value: 1, when: $P}"),
        ],
    ),
    place(
        "field-forbidden",
        &[(Fields, "{path: /status/d, forbidden: true, action: Deny}"), (A, "necessary: $P")],
    ),
    place(
        "field-format",
        &[
            (Fields, "{path: /status/d, format: date-time, type: string, action: Deny}"),
            (
                Backfill,
                "{path: /status/d, copyOf: [/status/t, /metadata/creationTimestamp], when: $P}",
            ),
        ],
    ),
    place("default-field", &[(Backfill, "{path: /status/d, value: 1, when: $P}")]),
    place(
        "default-null",
        &[(Backfill, "{path: /status/d, value: null, nullable: true, when: $P}")],
    ),
    place(
        "default-member",
        &[(Backfill, "{list: /status/conditions, member: n, value: one, when: $P}")],
    ),
    place(
        "default-copied-member",
        &[(
            Backfill,
            "{list: /status/conditions, member: n, copyOf: [stored, /status/word], when: $P}",
        )],
    ),
    place(
        "default-stamped-member",
        &[(Backfill, "{list: /status/conditions, member: t, copyOf: transition, when: $P}")],
    ),
    place(
        "default-element",
        &[(
            Backfill,
            "{list: /status/conditions, element: {type: New, status: {copyOf: {condition: Ready, member: status}}, \
             n: one, reason: {copyOf: /status/word}}, when: $P}",
        )],
    ),
    place(
        "copy-rule",
        &[
            (Backfill, "{path: /status/d, copyOf: [/status/x], when: $P}"),
            (Rules, "{id: r, path: /status/d, when: {set: /status/d}, action: Deny, message: m}"),
        ],
    ),
    place(
        "two-defaults",
        &[
            (Backfill, "{path: /status/d, value: 1, when: $P}"),
            (Backfill, "{path: /status/x, value: 1}"),
        ],
    ),
    place(
        "two-defaults-element",
        &[
            (Backfill, "{path: /status/d, value: 1, when: $P}"),
            (Backfill, "{list: /status/conditions, element: {type: Ready, status: 'True'}}"),
        ],
    ),
    place(
        "default-rule",
        &[
            (Backfill, "{path: /status/x, value: 1}"),
            (Rules, "{id: r, path: /status/x, when: $P, action: Deny, message: m}"),
        ],
    ),
    place(
        "imposed-rule",
        &[
            (
                B,
                "imposed: {when: {field: /spec/flag, is: true}, since: /metadata/creationTimestamp}",
            ),
            (Rules, "{id: r, path: /status/x, when: $P, action: Deny, message: m}"),
        ],
    ),
    place(
        "repair-rule",
        &[
            (A, "necessary: {not: {field: /status/x, is: 1}}"),
            (Phase, "repair: [{to: B}]"),
            (Rules, "{id: r, path: /status/x, when: $P, action: Deny, message: m}"),
            (Policy, "disagreement: Repair"),
        ],
    ),
    place(
        "null",
        &[
            (Backfill, "{path: /status/x, value: null}"),
            (Rules, "{id: r, path: /status/x, when: $P, action: Deny, message: m}"),
        ],
    ),
    place(
        "owner",
        &[
            (A, "necessary: $P"),
            (Phase, "repair: [{to: B}]"),
            (
                Policy,
                "disagreement: Repair, owners: [{path: /status/phase, users: [o], groups: [g]}]",
            ),
        ],
    ),
    place(
        "preserve",
        &[
            (Rules, "{id: r, path: /status/x, when: $P, action: Deny, message: m}"),
            (Policy, "preserve: [/status/x]"),
        ],
    ),
    place(
        "owned-condition",
        &[
            (A, "necessary: $P"),
            (
                Policy,
                "disagreement: Repair, owners: [{conditions: [Ready], users: [o], groups: [g]}], \
                 preserve: [/status/conditions]",
            ),
        ],
    ),
    place(
        "preserve-condition",
        &[
            (Rules, "{id: r, path: /status/x, when: $P, action: Deny, message: m}"),
            (
                Policy,
                "owners: [{conditions: [Other, Ready], users: [o]}], preserve: [/status/conditions]",
            ),
        ],
    ),
    place(
        "unique-elements",
        &[(A, "necessary: $P"), (Backfill, "{list: /status/conditions, uniqueElements: true}")],
    ),
    place(
        "unique-elements-rule",
        &[
            (Rules, "{id: r, path: /status/x, when: $P, action: Deny, message: m}"),
            (Type, "reverted: Deny"),
            (Backfill, "{list: /status/conditions, uniqueElements: true}"),
        ],
    ),
    place(
        "history",
        &[
            (
                Lists,
                "{path: /status/list, key: [], maxItems: 2, history: {distinct: [n], rewritten: Deny, repeated: Deny}}",
            ),
            (A, "necessary: $P"),
        ],
    ),
    place(
        "keyed",
        &[
            (
                Lists,
                "{path: /status/parents/*/more, parentKey: name, key: [type], duplicate: Deny, \
                 types: {Ready: {key: [type, n], mirrored: true, polarity: positive}}}",
            ),
            (A, "necessary: $P"),
        ],
    ),
    place(
        "policy-rule",
        &[
            (A, "necessary: $P"),
            (
                Policy,
                "rules: [{name: c, expression: '!has(self.status.x) || self.status.x != 2', message: m}], \
                 fields: [{path: /status/word, enum: [one]}], backfill: [{path: /status/d, value: 1}]",
            ),
        ],
    ),
    place(
        "policy-rule-moved",
        &[
            (A, "necessary: $P"),
            (
                Policy,
                "enforcement: Deny, rules: [{name: c, expression: 'self.status.phase != oldSelf.status.phase', \
                 message: m, action: Warn, path: /status/x, trigger: {moved: /status/x}}]",
            ),
        ],
    ),
    place("warned", &[(A, "necessary: $P"), (Policy, "disagreement: Warn")]),
    place("enforced-as-warning", &[(A, "necessary: $P"), (Policy, "enforcement: Warn")]),
];

/// Conventions for which no first write passes. In each, another kind of rule is needed for that.
pub(crate) const CONTRADICTIONS: &[Place] = &[
    place(
        "contradiction-not-true",
        &[
            (Type, "missing: Deny, notTrue: Deny"),
            (
                Rules,
                "{id: r, path: /status/x, when: {condition: Ready, is: 'True'}, action: Deny, message: m}",
            ),
        ],
    ),
    place(
        "contradiction-too-long",
        &[(Type, "missing: Deny"), (List, "maxItems: 0, tooLong: Deny")],
    ),
    place(
        "contradiction-other-types",
        &[
            (List, "otherTypes: Deny"),
            (
                Rules,
                "{id: r, path: /status/x, when: {length: /status/conditions, atMost: 2}, action: Deny, message: m}",
            ),
        ],
    ),
    place(
        "contradiction-field",
        &[
            (
                Fields,
                "{path: /status/x, required: true, type: integer, minimum: 1, maximum: 1, action: Deny}",
            ),
            (
                Rules,
                "{id: r, path: /status/x, when: {field: /status/x, is: 1}, action: Deny, message: m}",
            ),
        ],
    ),
    place(
        "contradiction-generation-ahead",
        &[
            (Generation, "aheadAtFirst: Deny"),
            (
                Fields,
                "{path: /status/observedGeneration, required: true, type: integer, action: Deny}",
            ),
            (
                Rules,
                "{id: r, path: /status/x, when: {not: {observed: ahead}}, action: Deny, message: m}",
            ),
        ],
    ),
    place(
        "contradiction-generation-minimum",
        &[
            (Generation, "minimum: 3"),
            (
                Fields,
                "{path: /status/observedGeneration, required: true, type: integer, maximum: 3, action: Deny}",
            ),
            (
                Rules,
                "{id: r, path: /status/x, when: {field: /status/observedGeneration, is: 3}, action: Deny, message: m}",
            ),
        ],
    ),
    place(
        "contradiction-moves",
        &[
            (Phase, "moves: {from: {A: [B], B: [A]}, action: Deny}"),
            (
                Rules,
                "{id: p, path: /status/x, when: {not: {set: /status/phase}}, action: Deny, message: m}",
            ),
        ],
    ),
    place(
        "contradiction-reason",
        &[
            (A, "reasons: [R]"),
            (B, "reasons: [R]"),
            (Phase, "reason: {path: /status/reason, action: Deny}"),
            (
                Rules,
                "{id: p, path: /status/x, when: {not: {set: /status/phase}}, action: Deny, message: m}",
            ),
            (
                Rules,
                "{id: r, path: /status/x, when: {field: /status/reason, is: R}, action: Deny, message: m}",
            ),
            (
                Rules,
                "{id: s, path: /status/x, when: {not: {set: /status/reason}}, action: Deny, message: m}",
            ),
        ],
    ),
    place("contradiction-present", &[(Type, "missing: Deny, present: Deny")]),
    place(
        "contradiction-type-reasons",
        &[
            (Type, "missing: Deny, reasons: {'False': R, action: Deny}"),
            (List, "members: {reason: {required: true, action: Deny}}"),
            (
                Rules,
                "{id: r, path: /status/x, when: {condition: Ready, is: 'False'}, action: Deny, message: m}",
            ),
            (
                Rules,
                "{id: s, path: /status/x, when: {not: {condition: Ready, reason: R}}, action: Deny, message: m}",
            ),
        ],
    ),
    place(
        "contradiction-members",
        &[
            (Type, "missing: Deny"),
            (
                List,
                "members: {n: {required: true, enum: [one], action: Deny}}, each: [{id: e, when: {member: n, is: one}, action: Deny, message: m}]",
            ),
        ],
    ),
    place(
        "contradiction-other-members",
        &[
            (Type, "missing: Deny"),
            (
                List,
                "members: {type: {required: true}, status: {required: true}}, otherMembers: Deny, each: [{id: e, when: {not: {member: n, set: true}}, action: Deny, message: m}]",
            ),
        ],
    ),
    place(
        "contradiction-each",
        &[
            (Type, "missing: Deny"),
            (List, "each: [{id: e, when: {member: status, set: true}, action: Deny, message: m}]"),
        ],
    ),
];

/// The places for a predicate about an element.
pub(crate) const ELEMENT_PLACES: &[Place] = &[
    place("each", &[(List, "each: [{id: e, when: $P, action: Deny, message: m, member: n}]")]),
    place(
        "each-polarity",
        &[
            (Type, "polarity: positive"),
            (
                List,
                "polarityFrom: [/spec/gates], each: [{id: e, when: $P, action: Deny, message: m}]",
            ),
        ],
    ),
    place(
        "each-of-map",
        &[(
            Lists,
            "{path: '/status/map/*', keys: {enum: [a]}, each: [{id: e, when: $P, action: Deny, message: m}]}",
        )],
    ),
    place(
        "default-absent",
        &[(Backfill, "{list: /status/conditions, member: n, absentWhere: $P}")],
    ),
];

/// One small convention with its policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sketch {
    /// The place and the predicate, for messages.
    pub(crate) name: String,
    texts: Vec<(Slot, String)>,
}

impl Sketch {
    fn new(place: &Place, predicate: &str) -> Self {
        let fill = |(slot, text): &(Slot, &str)| (*slot, text.replace("$P", predicate));
        Self {
            name: format!("{} {predicate}", place.name),
            texts: place.texts.iter().map(fill).collect(),
        }
    }

    /// Whether it has a predicate. One without is a contradiction, alone and in every pair.
    pub(crate) fn has_predicate(&self) -> bool {
        !self.name.ends_with(' ')
    }

    /// The predicates of a pair.
    pub(crate) fn predicates(&self) -> Option<[&str; 2]> {
        let (one, other) = self.name.split_once(" + ")?;
        Some([one.split_once(' ')?.1, other.split_once(' ')?.1])
    }

    fn place(&self) -> &str {
        self.name.split(' ').next().unwrap_or_default()
    }

    /// The convention of both; `None` if the two configure the same key.
    pub(crate) fn with(&self, other: &Self) -> Option<Self> {
        let many = [Fields, Rules, Backfill, Lists];
        let key = |text: &str| text.split(':').next().unwrap_or_default().to_owned();
        let clashes = self.texts.iter().any(|(slot, text)| {
            other
                .texts
                .iter()
                .any(|(of, more)| of == slot && !many.contains(slot) && key(text) == key(more))
        });
        if clashes {
            return None;
        }
        let mut texts = self.texts.clone();
        for (slot, text) in &other.texts {
            let text = match slot {
                Rules => text.replacen("id: r", "id: q", 1),
                _ => text.clone(),
            };
            texts.push((*slot, text));
        }
        Some(Self { name: format!("{} + {}", self.name, other.name), texts })
    }

    fn slot(&self, slot: Slot, separator: &str) -> String {
        let texts = self.texts.iter().filter(|(of, _)| *of == slot).map(|(_, text)| text.as_str());
        texts.collect::<Vec<_>>().join(separator)
    }

    fn more(&self, slot: Slot) -> String {
        let text = self.slot(slot, ", ");
        if text.is_empty() { text } else { format!(", {text}") }
    }

    /// Both documents. `subresource` is whether the resource has the status subresource.
    pub(crate) fn documents(&self, subresource: bool) -> String {
        let without = if subresource { "" } else { ", statusSubresource: false" };
        format!(
            "apiVersion: statusgate.dev/v1alpha1\nkind: StatusConvention\nmetadata: {{name: own}}\nspec:\n  {}\n  \
             conditions: [{{path: /status/conditions, types: {{Ready: {{{}}}, Other: {{}}}}{}}}{}]\n  \
             generation: {{paths: [/status/observedGeneration]{}}}\n  \
             phase: {{path: /status/phase, values: [{{phase: A{}}}, {{phase: B{}}}]{}}}\n  \
             fields: [{}]\n  rules: [{}]\n  backfill: [{}]\n---\n\
             apiVersion: statusgate.dev/v1alpha1\nkind: StatusPolicy\nmetadata: {{name: p}}\nspec: {{convention: own, \
             resources: [{{apiGroups: [g], apiVersions: [v1], resources: [things]{without}}}]{}}}\n",
            self.slot(Spec, ", "),
            self.slot(Type, ", "),
            self.more(List),
            self.more(Lists),
            self.more(Generation),
            self.more(A),
            self.more(B),
            self.more(Phase),
            self.slot(Fields, ", "),
            self.slot(Rules, ", "),
            self.slot(Backfill, ", "),
            self.more(Policy),
        )
    }
}

/// The predicates about an object, each also negated.
pub(crate) fn about_objects() -> Vec<String> {
    also_negated(PREDICATES.iter().chain(CLOCK_PREDICATES))
}

fn also_negated<'w>(words: impl Iterator<Item = &'w &'w str> + Clone) -> Vec<String> {
    let negated = words.clone().map(|word| format!("{{not: {word}}}"));
    words.map(|word| (*word).to_owned()).chain(negated).collect()
}

/// All conventions with one predicate at one place, each predicate also negated.
pub(crate) fn singles() -> Vec<Sketch> {
    let objects = about_objects();
    let mut elements = also_negated(ELEMENT_PREDICATES.iter());
    elements.extend(objects.clone());
    let mut sketches: Vec<Sketch> = Vec::new();
    let none = vec![String::new()];
    for (places, predicates) in
        [(PLACES, &objects), (ELEMENT_PLACES, &elements), (CONTRADICTIONS, &none)]
    {
        for place in places {
            for predicate in predicates {
                let sketch = Sketch::new(place, predicate);
                if !sketches
                    .iter()
                    .rev()
                    .take(predicates.len())
                    .any(|known| known.texts == sketch.texts)
                {
                    sketches.push(sketch);
                }
            }
        }
    }
    sketches
}

/// How many conventions have the same two places.
const OF_TWO_PLACES: usize = 3;

/// Every two places that fit together, and every two predicates about an object.
pub(crate) fn pairs() -> Vec<Sketch> {
    let mut singles = singles();
    singles.retain(Sketch::has_predicate);
    let places: Vec<&[Sketch]> =
        singles.chunk_by(|one, other| one.place() == other.place()).collect();
    // How many pairs two places with so many predicates have so far.
    let mut counts: BTreeMap<[usize; 2], usize> = BTreeMap::new();
    let mut pairs: Vec<Sketch> = Vec::new();
    for (at, of_one) in places.iter().enumerate() {
        for of_other in &places[at..] {
            let count = counts.entry([of_one.len(), of_other.len()]).or_default();
            for _ in 0..OF_TWO_PLACES {
                let (one, step) = (*count % of_one.len(), *count / of_one.len());
                if let Some(pair) = of_one[one].with(&of_other[(one + step) % of_other.len()]) {
                    pairs.push(pair);
                    *count += 1;
                }
            }
        }
    }
    pairs
}
