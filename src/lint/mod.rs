//! What can be proven of a convention, and of a policy beside it, by walking all combinations of what it asks about.
//!
//! The compiler says what is wrong with a document; here it is judged as a whole: that every state
//! admits a phase, that a repair ends somewhere, that no rule is dead and none shuts a writer out.
//! Every fault comes with a witness, the smallest object that shows it. The engine itself is asked,
//! about objects that are made for the purpose.

mod backfill;
mod checks;
mod gate;
mod joint;
mod moves;
mod phases;
mod policy;
mod proof;
mod rules;
mod rulings;
mod writers;

use crate::explain::{Clause, Question, Stage, clauses, versions_of};
use crate::policy::convention::Convention;
use crate::policy::{Diagnostics, PolicySet, Source};

use gate::Gate;

pub use policy::lint_policy;

/// What was found out about a convention or a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Its name.
    pub name: String,
    /// What was found, faults first.
    pub remarks: Vec<Remark>,
    /// How many combinations were asked about.
    pub combinations: usize,
}

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// What it is.
    pub kind: Kind,
    /// The rules that it is about.
    pub rules: Vec<String>,
    /// One sentence.
    pub message: String,
    /// Objects that show it, as YAML.
    pub witness: Option<String>,
}

/// The things that can be found. Faults come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A state in which no phase may stand.
    NoAdmissiblePhase,
    /// A phase that may stand in no state.
    UnreachablePhase,
    /// A state in which Repair finds no phase.
    RepairFindsNothing,
    /// A state in which Repair chooses a phase, or one is imposed, that may not stand there.
    RepairNotAdmissible,
    /// A phase that Repair chooses, or that is imposed, and that gives way to another at the next write.
    NotStable,
    /// A rule, or evidence, that no state can violate or settle.
    NeverFires,
    /// Rules that between them refuse everything.
    Contradiction,
    /// A phase that rules, or a policy's own checks, refuse in every state in which it may stand.
    PhaseNeverWritten,
    /// A phase that no move leads to, where all other moves are refused.
    PhaseNeverEntered,
    /// The default phase is refused somewhere.
    NoWayOut,
    /// A write that is refused only for what the mutating webhook made of it.
    PatchRefused,
    /// Two writers, or one writer in two requests, who never get through.
    TwoStepLockout,
    /// The same under `disagreement: Deny`, which is why such writers are named in policies.
    TwoStepDeadEnd,
    /// A default that is left out beside some phases.
    DefaultWaits,
    /// A policy with a phase, where another one may own it.
    SecondOwner,
    /// A rule about a polarity that no type of the convention has.
    WaitsForType,
    /// A phase that no move leads to.
    NoWayIn,
    /// A phase that no move leads out of.
    NoMoveOut,
    /// A reason of several phases.
    SharedReason,
    /// More combinations than are walked.
    NotProven,
}

impl Kind {
    /// As reports spell it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoAdmissiblePhase => "no-admissible-phase",
            Self::UnreachablePhase => "unreachable-phase",
            Self::RepairFindsNothing => "repair-finds-nothing",
            Self::RepairNotAdmissible => "repair-not-admissible",
            Self::NotStable => "not-stable",
            Self::NeverFires => "never-fires",
            Self::Contradiction => "contradiction",
            Self::PhaseNeverWritten => "phase-never-written",
            Self::PhaseNeverEntered => "phase-never-entered",
            Self::NoWayOut => "no-way-out",
            Self::PatchRefused => "patch-refused",
            Self::TwoStepLockout => "two-step-lockout",
            Self::TwoStepDeadEnd => "two-step-dead-end",
            Self::DefaultWaits => "default-waits",
            Self::SecondOwner => "second-owner",
            Self::WaitsForType => "waits-for-type",
            Self::NoWayIn => "no-way-in",
            Self::NoMoveOut => "no-move-out",
            Self::SharedReason => "shared-reason",
            Self::NotProven => "not-proven",
        }
    }

    /// Whether the convention is broken, or only worth a second look.
    #[must_use]
    pub const fn is_fault(self) -> bool {
        !matches!(
            self,
            Self::TwoStepDeadEnd
                | Self::DefaultWaits
                | Self::SecondOwner
                | Self::WaitsForType
                | Self::NoWayIn
                | Self::NoMoveOut
                | Self::SharedReason
                | Self::NotProven
        )
    }
}

impl Report {
    /// Whether there is a fault; notes are none.
    #[must_use]
    pub fn has_faults(&self) -> bool {
        self.remarks.iter().any(|remark| remark.kind.is_fault())
    }
}

/// Judges one convention, built in or among `sources`. All its optional parts are switched on.
///
/// # Errors
/// All mistakes in the documents.
pub fn lint(sources: &[Source], name: &str) -> Result<Report, Diagnostics> {
    let gate = Gate::new(sources, name)?;
    let versions = versions_of(gate.convention());
    let mut lint = Lint::new(&gate, &versions);
    lint.phases();
    lint.checks();
    lint.rules();
    lint.joint();
    lint.backfill();
    lint.moves();
    lint.writers();
    let Lint { mut remarks, combinations, .. } = lint;
    remarks.sort_by_key(|remark| remark.kind);
    Ok(Report { name: name.to_owned(), remarks, combinations })
}

/// The names of the conventions that are declared in `sources`.
///
/// # Errors
/// All mistakes in the documents.
pub fn declared(sources: &[Source]) -> Result<Vec<String>, Diagnostics> {
    let built_in = built_in()?;
    let all = PolicySet::compile(sources)?;
    let names = all.conventions().keys().filter(|name| !built_in.contains(name));
    Ok(names.cloned().collect())
}

/// The names of the built-in conventions.
///
/// # Errors
/// Never, but for a mistake in a document of ours.
pub fn built_in() -> Result<Vec<String>, Diagnostics> {
    Ok(PolicySet::compile(&[])?.conventions().keys().cloned().collect())
}

/// A convention under examination.
struct Lint<'c> {
    convention: &'c Convention,
    /// At the first version that the convention speaks of.
    stage: Stage<'c>,
    /// At each of them.
    stages: Vec<Stage<'c>>,
    gate: &'c Gate,
    clauses: Vec<Clause<'c>>,
    remarks: Vec<Remark>,
    combinations: usize,
}

impl<'c> Lint<'c> {
    fn new(gate: &'c Gate, versions: &'c [String]) -> Self {
        let convention = gate.convention();
        let stage = |version: &'c String| Stage { convention, version };
        let stages: Vec<Stage<'c>> = versions.iter().map(stage).collect();
        let (clauses, remarks) = (clauses(convention), Vec::new());
        // There is always a version.
        let stage = stages[0];
        Self { convention, stage, stages, gate, clauses, remarks, combinations: 0 }
    }

    /// The versions in which all that is asked for exists.
    fn stages(&self, questions: &[Question<'_>]) -> Vec<Stage<'c>> {
        let lists = || questions.iter().filter_map(|question| question.list);
        let exists = |stage: &&Stage<'_>| lists().all(|list| list.applies_to(stage.version));
        self.stages.iter().filter(exists).copied().collect()
    }

    fn say(
        &mut self,
        kind: Kind,
        rules: Vec<String>,
        message: impl Into<String>,
        witness: Option<String>,
    ) {
        self.remarks.push(Remark { kind, rules, message: message.into(), witness });
    }

    fn not_proven(&mut self, rules: Vec<String>, what: &str) {
        let message = format!("{what} has more combinations than are walked");
        self.say(Kind::NotProven, rules, message, None);
    }
}
