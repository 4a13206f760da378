//! Proves properties of a convention, and of a policy in addition to its convention.
//!
//! The compiler reports errors in a document. Lint judges the document as a whole: every state admits a
//! phase, every repair finds one, no rule is dead, and rules do not lock a writer out. Each fault has a
//! witness: an object that shows it. Lint builds such objects and asks the engine about them.

mod additions;
mod backfill;
mod cel;
mod example;
mod fields;
mod gate;
mod health;
mod joint;
mod kind;
mod moves;
mod owners;
mod phases;
mod policy;
mod proof;
mod rules;
mod rulings;
mod usage;
mod values;
mod writers;

use std::cell::{Cell, OnceCell};
use std::collections::BTreeSet;
use std::fmt;

use indexmap::IndexMap;
use serde_json::{Value, json};

use crate::facts::{Question, versions_of};
use crate::line::{Clause, clauses};
use crate::scene::Stage;
use crate::table::{PhaseOutcome, Table, has_evidence};
use statusgate_core::language::any_of;
use statusgate_core::policy::convention::Convention;
use statusgate_core::policy::{Diagnostics, PolicySet};

use gate::Gate;

pub use example::{Example, Examples, Pair};
pub use kind::Kind;
pub use policy::lint_policy;

/// The result of linting a convention or a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Its name.
    pub name: String,
    /// The remarks, faults first.
    pub remarks: Vec<Remark>,
    /// How many combinations were judged.
    pub combinations: usize,
}

/// One fault or note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// What it is about.
    pub kind: Kind,
    /// The ids of the rules that it is about.
    pub rules: Vec<String>,
    /// One sentence.
    pub message: String,
    /// Objects that show it, as YAML.
    pub witness: Option<String>,
}

/// `fault no-admissible-phase: … [appcat/phase-ready]`
impl fmt::Display for Remark {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.kind.is_fault() { "fault" } else { "note" };
        write!(formatter, "{word} {}: {}", self.kind.name(), self.message)?;
        self.rules.iter().try_for_each(|rule| write!(formatter, " [{rule}]"))
    }
}

/// The checks of a convention. Each returns what it finds.
const CHECKS: &[fn(&Lint<'_>) -> Vec<Remark>] = &[
    phases::table_can_be_built,
    phases::states_admit_a_phase,
    phases::phases_are_admissible_somewhere,
    phases::repair_finds_a_phase,
    phases::repair_is_admissible,
    phases::imposed_phases_are_admissible,
    phases::necessary_evidence_can_be_contradicted,
    phases::evidence_can_hold,
    phases::imposed_phases_can_occur,
    phases::repair_steps_can_apply,
    fields::values_pass_all_checks,
    values::named_values_can_occur,
    values::tests_are_open,
    values::members_are_declared,
    rules::rules_can_fire,
    rules::phases_can_be_written,
    rules::default_phase_is_a_way_out,
    joint::statuses_can_be_written,
    joint::conditions_can_be_written,
    backfill::removed_members_exist,
    backfill::patched_writes_pass,
    backfill::defaults_are_set,
    moves::moves_lead_to_phases,
    moves::moves_lead_out_of_phases,
    moves::reasons_belong_to_one_phase,
    health::rules_decide,
    health::phases_have_a_health,
    health::objects_without_a_status_are_not_current,
    health::health_is_the_kstatus_result,
    writers::two_step_writers_arrive,
];

/// The checks of each version, and of the resources of a policy: something can be written.
const WRITES: &[fn(&Lint<'_>) -> Vec<Remark>] = &[
    rules::phases_can_be_written,
    joint::statuses_can_be_written,
    joint::conditions_can_be_written,
    backfill::patched_writes_pass,
];

impl Report {
    /// The faults, and the notes.
    pub fn parts(&self) -> (Vec<&Remark>, Vec<&Remark>) {
        self.remarks.iter().partition(|remark| remark.kind.is_fault())
    }

    /// The report as data.
    pub fn to_json(&self) -> Value {
        let (faults, notes) = self.parts();
        let list = |remarks: Vec<&Remark>| -> Value {
            let remarks = remarks.into_iter().map(|remark| {
                json!({
                    "kind": remark.kind.name(),
                    "rules": remark.rules,
                    "message": remark.message,
                    "help": remark.kind.help(),
                    "witness": remark.witness,
                })
            });
            remarks.collect()
        };
        json!({
            "name": self.name,
            "combinations": self.combinations,
            "faults": list(faults),
            "notes": list(notes),
        })
    }

    /// Whether there is a fault, not only notes.
    pub fn has_faults(&self) -> bool {
        self.remarks.iter().any(|remark| remark.kind.is_fault())
    }
}

impl Remark {
    fn new(
        kind: Kind,
        rules: Vec<String>,
        message: impl Into<String>,
        witness: Option<String>,
    ) -> Self {
        Self { kind, rules, message: message.into(), witness }
    }

    fn not_proven(rules: Vec<String>, what: &str) -> Self {
        let message = format!("not proven: {what} has too many combinations");
        Self::new(Kind::NotProven, rules, message, None)
    }

    /// A search among some values has found nothing.
    fn open(rules: Vec<String>, what: &str) -> Self {
        let message = format!("not proven: no {what}, but not all values can be listed");
        Self::new(Kind::NotProven, rules, message, None)
    }

    /// Whether another remark already reports this. A contradiction of fewer rules includes those of more.
    fn repeats(&self, other: &Self) -> bool {
        self.kind == other.kind
            && match self.kind {
                Kind::Contradiction => other.rules.iter().all(|rule| self.rules.contains(rule)),
                _ => self.rules == other.rules && self.message == other.message,
            }
            // A rule that rejects a phase also rejects it where the webhook sets it.
            || self.kind == Kind::PatchRejected
                && matches!(other.kind, Kind::PhaseNeverWritten | Kind::NoWayOut)
                && self.rules.iter().all(|rule| other.rules.contains(rule))
    }
}

/// Faults first; of several remarks that report the same, only the first.
fn sorted(all: impl Iterator<Item = Remark>) -> Vec<Remark> {
    let mut remarks: Vec<Remark> = Vec::new();
    for remark in all {
        if !remarks.iter().any(|known| remark.repeats(known)) {
            remarks.push(remark);
        }
    }
    remarks.sort_by_key(|remark| remark.kind);
    remarks
}

/// Each of these once, sorted.
fn each_once<T: Ord>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    BTreeSet::from_iter(all).into_iter().collect()
}

/// One remark for all phases, or other things with a name, that the same rules are about: they have one
/// cause. The remark shows the first.
fn one_per_cause<T>(
    found: impl IntoIterator<Item = (Vec<String>, String, T)>,
    remark: impl Fn(Vec<String>, String, T) -> Remark,
) -> Vec<Remark> {
    let mut causes: IndexMap<Vec<String>, (Vec<String>, T)> = IndexMap::new();
    for (rules, name, first) in found {
        causes.entry(rules).or_insert_with(|| (Vec::new(), first)).0.push(name);
    }
    let remarks = causes
        .into_iter()
        .map(|(rules, (names, first))| remark(rules, any_of(names.into_iter()), first));
    remarks.collect()
}

/// Lints one convention, with all its optional parts.
///
/// # Errors
/// If there is no convention of this name.
pub fn lint(policies: &PolicySet, name: &str) -> Result<Report, Diagnostics> {
    let gate = Gate::new(policies, name)?;
    let versions = versions_of(gate.convention());
    let stage = |version| Stage::of(gate.convention(), version);
    let stages: Vec<Stage<'_>> = versions.iter().map(|version| stage(version)).collect();
    let others = stages[1..].iter().map(|stage| Lint::new(&gate, vec![*stage]));
    let (lint, others) = (Lint::new(&gate, stages.clone()), others.collect::<Vec<_>>());
    let of_first = CHECKS.iter().flat_map(|check| check(&lint));
    let of_others = others.iter().flat_map(|lint| WRITES.iter().flat_map(|check| check(lint)));
    let of_documents = usage::of_convention(policies, gate.convention());
    let remarks = sorted(of_first.chain(of_others).chain(of_documents));
    let combinations = others.iter().chain([&lint]).map(|lint| lint.combinations.get()).sum();
    Ok(Report { name: name.to_owned(), remarks, combinations })
}

/// The convention to check.
struct Lint<'c> {
    convention: &'c Convention,
    /// The first version that the convention names.
    stage: Stage<'c>,
    /// All versions that it names.
    stages: Vec<Stage<'c>>,
    gate: &'c Gate,
    clauses: Vec<Clause<'c>>,
    table: OnceCell<Option<Table<PhaseOutcome>>>,
    combinations: Cell<usize>,
}

impl<'c> Lint<'c> {
    /// There is at least one stage.
    fn new(gate: &'c Gate, stages: Vec<Stage<'c>>) -> Self {
        let (convention, stage) = (gate.convention(), stages[0]);
        let (table, combinations) = (OnceCell::new(), Cell::new(0));
        let clauses = clauses(convention);
        Self { convention, stage, stages, gate, clauses, table, combinations }
    }

    /// The truth table of the phase, if the phase has evidence and the table can be built.
    fn table(&self) -> Option<&Table<PhaseOutcome>> {
        let built = self.table.get_or_init(|| {
            let rules = self.convention.phase.as_ref().filter(|rules| has_evidence(rules))?;
            let table = Table::of_phase(self.convention, rules).ok()?;
            self.count(table.rows.len());
            Some(table)
        });
        built.as_ref()
    }

    /// The versions in which the list of a question exists.
    fn stages_of(&self, question: Question<'_>) -> impl Iterator<Item = Stage<'c>> {
        let stages = self.stages.iter().copied();
        stages.filter(move |stage| question.list.is_none_or(|list| list.applies_to(stage.version)))
    }

    /// The clauses about an object that can reject a write.
    fn rejecting(&self) -> impl Iterator<Item = &Clause<'c>> {
        self.clauses.iter().filter(|clause| clause.can_reject() && !clause.of_element)
    }

    fn count(&self, combinations: usize) {
        self.combinations.set(self.combinations.get() + combinations);
    }
}
