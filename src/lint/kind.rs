//! The kinds of remarks.

/// What a remark is about. Faults come first.
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
    /// Writers that change phase and conditions in two requests never reach their goal.
    TwoStepLockout,
    /// The same, but only under `disagreement: Deny`. A policy must name such writers.
    TwoStepDeadEnd,
    /// A default that is not set beside some phases.
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
    /// There are too many combinations, or they do not stand for all values.
    NotProven,
}

const FAULT: bool = true;
const NOTE: bool = false;

impl Kind {
    const fn entry(self) -> (&'static str, bool) {
        match self {
            Self::NoAdmissiblePhase => ("no-admissible-phase", FAULT),
            Self::UnreachablePhase => ("unreachable-phase", FAULT),
            Self::RepairFindsNothing => ("repair-finds-nothing", FAULT),
            Self::RepairNotAdmissible => ("repair-not-admissible", FAULT),
            Self::NotStable => ("not-stable", FAULT),
            Self::NeverFires => ("never-fires", FAULT),
            Self::Contradiction => ("contradiction", FAULT),
            Self::PhaseNeverWritten => ("phase-never-written", FAULT),
            Self::PhaseNeverEntered => ("phase-never-entered", FAULT),
            Self::NoWayOut => ("no-way-out", FAULT),
            Self::PatchRefused => ("patch-refused", FAULT),
            Self::TwoStepLockout => ("two-step-lockout", FAULT),
            Self::TwoStepDeadEnd => ("two-step-dead-end", NOTE),
            Self::DefaultWaits => ("default-waits", NOTE),
            Self::SecondOwner => ("second-owner", NOTE),
            Self::WaitsForType => ("waits-for-type", NOTE),
            Self::NoWayIn => ("no-way-in", NOTE),
            Self::NoMoveOut => ("no-move-out", NOTE),
            Self::SharedReason => ("shared-reason", NOTE),
            Self::NotProven => ("not-proven", NOTE),
        }
    }

    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.entry().0
    }

    /// Whether something is wrong. Otherwise it is worth a second look.
    #[must_use]
    pub const fn is_fault(self) -> bool {
        self.entry().1
    }
}
