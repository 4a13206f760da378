//! The kinds of remarks.

/// Declares [`Kind`]: for each its meaning, its name, and what to do about such a remark.
macro_rules! kinds {
    ($($(#[doc = $meaning:literal])+ $kind:ident $name:literal $help:literal)+) => {
        /// The kind of a remark. Faults come first; [`Kind::TwoStepLockout`] is the last of them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kind {
            $($(#[doc = $meaning])+ $kind,)+
        }

        impl Kind {
            /// All kinds.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$kind),+];

            /// The name in reports.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$kind => $name,)+ }
            }

            /// What a remark means.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$kind => concat!($($meaning),+).trim_ascii(),)+ }
            }

            /// What to do about it.
            pub const fn help(self) -> &'static str {
                match self { $(Self::$kind => $help,)+ }
            }

            /// Documents that get one remark, of this kind.
            pub const fn example(self) -> &'static str {
                match self { $(Self::$kind => include_str!(concat!("kinds/", $name, ".yaml")),)+ }
            }
        }
    };
}

kinds! {
    /// A state admits no phase. It contradicts the `necessary` evidence of each one.
    NoAdmissiblePhase "no-admissible-phase"
    "Add a `default` phase: it has no `necessary`, so every state admits it."

    /// No state admits a phase. Every write of this phase is a disagreement.
    UnreachablePhase "unreachable-phase"
    "Correct the `necessary` evidence of the phase, or remove the phase."

    /// Repair finds no phase in some state. No admissible phase has `sufficient` evidence, no repair step
    /// applies, and there is no default phase.
    RepairFindsNothing "repair-finds-nothing"
    "Add a `default` phase or a repair step. A policy with a convention that has neither uses another `disagreement`."

    /// Repair chooses a phase that is not admissible, or such a phase is imposed.
    RepairNotAdmissible "repair-not-admissible"
    "Change `necessary`, so that it allows every state in which the phase is imposed."

    /// No state violates a rule, or evidence holds in no state that the checks accept. The same for the predicate of a repair step
    /// or of a default, and for evidence that nothing contradicts.
    NeverFires "never-fires"
    "Compare the predicate with the witness, which is the nearest state. Correct the predicate, or remove it."

    /// A rule in CEL has an expression that is always true or always false.
    ConstantRule "constant-rule"
    "Correct the expression, so that its result depends on the object, or remove the rule."

    /// Every status that lint tries violates a rule in CEL. The result may not be a boolean.
    AlwaysViolated "always-violated"
    "Correct the expression. Check with `has()` that a field exists before it is read."

    /// A rule in CEL reads a member of the status that may be absent. Then the rule cannot be evaluated, and its
    /// action applies.
    UnguardedMember "unguarded-member"
    "Check with `has()` that the member exists before it is read. The witness has no such member."

    /// Rules together reject every status, every condition of a type, or every value of a field.
    Contradiction "contradiction"
    "Change or remove one of these rules, so that they accept something."

    /// Every write of a phase is rejected, or another phase is imposed.
    PhaseNeverWritten "phase-never-written"
    "Let these rules accept the phase in some state that admits it, or remove the phase."

    /// No move leads to a phase, and all other moves are rejected.
    PhaseNeverEntered "phase-never-entered"
    "Add the phase to `moves`, in `from` or in `anyTo`, or remove the phase."

    /// The default phase is rejected in some state. But every state must be able to change to it.
    NoWayOut "no-way-out"
    "Exclude the default phase in the `when` of the rule."

    /// A write is rejected only because of what the mutating webhook changes.
    PatchRejected "patch-rejected"
    "Change the default or the imposed phase so that the rules accept it, or change the rules."

    /// No user may change a field. Its owners and those of a field around it, or of the same field in another
    /// policy, have no user in common.
    OwnersLock "owners-lock"
    "Name a user in both lists, or let only one of them own the field."

    /// A rule about health decides in no state. Its predicate holds nowhere, or an earlier rule always decides.
    UnreachableHealth "unreachable-health"
    "Move the rule above the rule that decides, correct its predicate, or remove it."

    /// A list of conditions is only for API versions that no policy of these documents selects, and objects of a
    /// selected version have no other list. Nothing judges their conditions.
    UnselectedList "unselected-list"
    "Correct `apiVersions` of the list, or select these versions in a policy."

    /// Writers that change phase and conditions in two requests never reach their goal. Rules reject the
    /// state in between, in every order of the requests or in one of them.
    TwoStepLockout "two-step-lockout"
    "Give these rules a trigger of `coWritten`, or an action that does not reject. If the writers send phase and conditions in one request, write `writes: together`."

    /// Writers that change phase and conditions in two requests never reach their goal with
    /// `disagreement: Deny`. The evidence of the phases rejects the state in between.
    TwoStepDeadEnd "two-step-dead-end"
    "A policy with `disagreement: Deny` names such writers in `writers`, with another `disagreement`. Without such writers, write `writes: together` in the convention."

    /// A default is not set if the status has one of some phases. It would contradict that phase.
    DefaultWaits "default-waits"
    "If the default must always be set, change its value or the evidence of these phases."

    /// An earlier policy may own the phase of the same objects. Then it also owns the defaults, and this
    /// policy contributes only findings, fields and defaults for other paths.
    SecondOwner "second-owner"
    "If this policy must own the phase, load it first, or let the other one select other resources."

    /// No policy of these documents follows a convention, and no other convention extends it.
    UnusedConvention "unused-convention"
    "Name the convention in a policy. Without one, it judges nothing."

    /// Predicates or triggers name a condition type that no list declares.
    UndeclaredType "undeclared-type"
    "Correct the name, or add the type to `types` of its list."

    /// A document names a value that the checks of its place reject, a test that they decide, a reason or member that is
    /// similar to a declared one, or two similar fields.
    UndeclaredValue "undeclared-value"
    "Correct the value or name, or declare it in the checks, `reasons` or `members`. If stored objects have it from before an upgrade, or if there are two such fields, leave it."

    /// A rule requires a polarity that no condition type of the convention has.
    WaitsForType "waits-for-type"
    "If no convention that extends this one adds such a type, correct the polarity or remove the rule."

    /// No move leads to a phase. Other moves to it are reported, but not rejected.
    NoWayIn "no-way-in"
    "Add the phase to `moves`, in `from` or in `anyTo`, or remove the phase."

    /// No move leads out of a phase, and it is not final.
    NoMoveOut "no-move-out"
    "If nothing follows the phase, mark it as `final: true`. Otherwise add a row for it to `moves.from`."

    /// Several phases have the same reason, or one lists a reason that all phases have.
    SharedReason "shared-reason"
    "If the reason identifies a phase, list it there only. A reason of all phases belongs only to `always`."

    /// A phase has no `health` although others have one, and no rule about health names it. The rules about
    /// conditions and the default decide.
    PhaseWithoutHealth "phase-without-health"
    "Give the phase a `health`, unless the conditions are meant to decide."

    /// An object without a status is current, before its controller has seen it. Flux cannot express that.
    CurrentWithoutStatus "current-without-status"
    "Set `health.default` to inProgress, unless some objects never get a status."

    /// The health of some objects differs from their kstatus result. Readers of one see another object than readers
    /// of the other. The witness has one object for each pair of results.
    HealthDiffersFromKstatus "health-differs-from-kstatus"
    "If the health is right, use it where kstatus was used. kstatus reads only Ready, Reconciling, Stalled and observedGeneration."

    /// Lint proves nothing about these rules: there are too many combinations, or no list of values
    /// represents all values.
    NotProven "not-proven"
    "Check these rules with `statusgate test`, or simplify them: fewer facts, or one pattern for a value."
}

impl Kind {
    /// Whether this is a fault. Otherwise it is a note.
    pub fn is_fault(self) -> bool {
        self <= Self::TwoStepLockout
    }
}
