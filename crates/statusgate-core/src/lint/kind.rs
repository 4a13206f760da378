//! The kinds of remarks.

/// The kind of a remark. Faults come first; [`Kind::TwoStepLockout`] is the last of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A state admits no phase.
    NoAdmissiblePhase,
    /// No state admits a phase.
    UnreachablePhase,
    /// Repair finds no phase in some state.
    RepairFindsNothing,
    /// Repair chooses a phase that is not admissible, or such a phase is imposed.
    RepairNotAdmissible,
    /// The next write changes a phase that is imposed or that Repair has chosen.
    NotStable,
    /// No state violates a rule, or evidence holds in no state.
    NeverFires,
    /// A rule in CEL with an expression that is always true or always false.
    ConstantRule,
    /// A rule in CEL that every write violates that lint tries.
    AlwaysViolated,
    /// Rules that together reject everything.
    Contradiction,
    /// Every write of a phase is rejected.
    PhaseNeverWritten,
    /// No move leads to a phase, and all other moves are rejected.
    PhaseNeverEntered,
    /// The default phase is rejected in some state.
    NoWayOut,
    /// A write is rejected only because of what the mutating webhook changes.
    PatchRefused,
    /// A rule about health that decides in no state.
    UnreachableHealth,
    /// Writers that change phase and conditions in two requests never reach their goal.
    TwoStepLockout,
    /// The same, but only under `disagreement: Deny`. A policy must name such writers.
    TwoStepDeadEnd,
    /// A default that is not set if the status has one of some phases.
    DefaultWaits,
    /// A policy with a phase that an earlier policy may own.
    SecondOwner,
    /// A rule about a polarity that no type of the convention has.
    WaitsForType,
    /// No move leads to a phase.
    NoWayIn,
    /// No move leads out of a phase.
    NoMoveOut,
    /// Several phases have the same reason.
    SharedReason,
    /// A phase without a health, although others have one.
    PhaseWithoutHealth,
    /// An object without a status is current.
    CurrentWithoutStatus,
    /// There are too many combinations, or they do not represent all values.
    NotProven,
}

impl Kind {
    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoAdmissiblePhase => "no-admissible-phase",
            Self::UnreachablePhase => "unreachable-phase",
            Self::RepairFindsNothing => "repair-finds-nothing",
            Self::RepairNotAdmissible => "repair-not-admissible",
            Self::NotStable => "not-stable",
            Self::NeverFires => "never-fires",
            Self::ConstantRule => "constant-rule",
            Self::AlwaysViolated => "always-violated",
            Self::Contradiction => "contradiction",
            Self::PhaseNeverWritten => "phase-never-written",
            Self::PhaseNeverEntered => "phase-never-entered",
            Self::NoWayOut => "no-way-out",
            Self::PatchRefused => "patch-refused",
            Self::UnreachableHealth => "unreachable-health",
            Self::TwoStepLockout => "two-step-lockout",
            Self::TwoStepDeadEnd => "two-step-dead-end",
            Self::DefaultWaits => "default-waits",
            Self::SecondOwner => "second-owner",
            Self::WaitsForType => "waits-for-type",
            Self::NoWayIn => "no-way-in",
            Self::NoMoveOut => "no-move-out",
            Self::SharedReason => "shared-reason",
            Self::PhaseWithoutHealth => "phase-without-health",
            Self::CurrentWithoutStatus => "current-without-status",
            Self::NotProven => "not-proven",
        }
    }

    /// Whether this is a fault. Otherwise it is a note.
    pub fn is_fault(self) -> bool {
        self <= Self::TwoStepLockout
    }
}
