//! The truth table of the phase: every state admits a phase, and every repair finds one.

use super::fields::checks_at;
use super::{Kind, Lint, Remark, each_once};
use crate::facts::{Question, passes};
use crate::scene::{put, yaml};
use crate::table::{PhaseOutcome, Table, has_evidence};
use statusgate_core::language::{AnyWord, Predicate, Reference, Scalar, any_of};
use statusgate_core::policy::convention::{PhaseRules, PhaseValue};
use statusgate_core::policy::{Check, Disposition};

/// The phases of a convention, and their table.
struct Phases<'l> {
    lint: &'l Lint<'l>,
    rules: &'l PhaseRules,
    table: &'l Table<PhaseOutcome>,
}

pub(super) fn table_can_be_built(lint: &Lint<'_>) -> Vec<Remark> {
    let rules = lint.convention.phase.as_ref().filter(|rules| has_evidence(rules));
    match (rules, lint.table()) {
        (Some(_), None) => vec![Remark::not_proven(Vec::new(), "the truth table of the phase")],
        _ => Vec::new(),
    }
}

pub(super) fn states_admit_a_phase(lint: &Lint<'_>) -> Vec<Remark> {
    let Some(phases) = Phases::of(lint) else { return Vec::new() };
    let (rules, table) = (phases.rules, phases.table);
    let nothing = |(_, outcome): &(usize, &PhaseOutcome)| !outcome.admissible.contains(&true);
    let Some((number, _)) = table.iter().find(nothing) else { return Vec::new() };
    let count = table.iter().filter(nothing).count();
    let message = format!("{count} of {} states admit no phase", table.rows.len());
    let ids = rules.phases.iter().map(|phase| phase.rule.to_string()).collect();
    vec![Remark::new(Kind::NoAdmissiblePhase, ids, message, phases.witness(number, None))]
}

pub(super) fn phases_are_admissible_somewhere(lint: &Lint<'_>) -> Vec<Remark> {
    Phases::each(lint, |phases, at, phase| {
        let (first, _) = phases.table.iter().next().filter(|_| !phases.is_reachable(at))?;
        let message = format!("no state admits phase {}", phase.name);
        Some(phases.remark(Kind::UnreachablePhase, phase, message, first))
    })
}

/// One fault for all phases: the cause is what Repair can choose. A convention that gives it nothing to
/// choose is not made for Repair; a policy that repairs with it is a fault.
pub(super) fn repair_finds_a_phase(lint: &Lint<'_>) -> Vec<Remark> {
    let Some(phases) = Phases::of(lint).filter(|phases| phases.rules.can_repair()) else {
        return Vec::new();
    };
    let all = phases.rules.phases.iter().enumerate();
    let lost = all.filter_map(|(at, phase)| {
        let found = phases.find(at, |outcome| {
            !outcome.admissible[at] && outcome.imposed.is_none() && outcome.repairs[at].is_none()
        });
        Some((phase, found?.0))
    });
    let lost: Vec<(&PhaseValue, usize)> = lost.collect();
    let Some((first, number)) = lost.first() else { return Vec::new() };
    let names = any_of(lost.iter().map(|(phase, _)| phase.name.clone()));
    let rules = lost.iter().map(|(phase, _)| phase.rule.to_string()).collect();
    let message = format!("in some state, Repair finds no phase to replace {names}");
    let witness = phases.witness(*number, Some(&first.name));
    vec![Remark::new(Kind::RepairFindsNothing, rules, message, witness)]
}

pub(super) fn repair_is_admissible(lint: &Lint<'_>) -> Vec<Remark> {
    Phases::each(lint, |phases, at, phase| {
        let (number, outcome) = phases
            .find(at, |outcome| outcome.repairs[at].is_some_and(|to| !outcome.admissible[to]))?;
        let message = format!(
            "Repair replaces phase {} by {}, which is not admissible in that state",
            phase.name, phases.rules.phases[outcome.repairs[at]?].name
        );
        Some(phases.remark(Kind::RepairNotAdmissible, phase, message, number))
    })
}

pub(super) fn imposed_phases_are_admissible(lint: &Lint<'_>) -> Vec<Remark> {
    Phases::each(lint, |phases, at, phase| {
        let (number, _) =
            phases.find(at, |outcome| outcome.imposed == Some(at) && !outcome.admissible[at])?;
        let message = format!("phase {} is imposed in a state that contradicts it", phase.name);
        Some(phases.remark(Kind::RepairNotAdmissible, phase, message, number))
    })
}

pub(super) fn necessary_evidence_can_be_contradicted(lint: &Lint<'_>) -> Vec<Remark> {
    Phases::each(lint, |phases, at, phase| {
        phase.necessary.as_ref()?;
        let (first, _) = phases.table.iter().next()?;
        let always = phases.table.iter().all(|(_, outcome)| outcome.admissible[at]);
        let message =
            format!("no state contradicts the necessary evidence of phase {}", phase.name);
        always.then(|| phases.remark(Kind::NeverFires, phase, message, first))
    })
}

/// Some state with values that their checks accept has the evidence. A phase that no state admits is a fault of its own.
pub(super) fn evidence_can_hold(lint: &Lint<'_>) -> Vec<Remark> {
    let Some(rules) = &lint.convention.phase else { return Vec::new() };
    let phases = Phases::of(lint);
    let evidence = rules.phases.iter().enumerate().flat_map(|(at, phase)| {
        let is_reachable = phases.as_ref().is_none_or(|phases| phases.is_reachable(at));
        let necessary = phase.necessary.as_ref().filter(|_| is_reachable);
        let both = [("necessary", necessary), ("sufficient", phase.sufficient.as_ref())];
        both.map(|(what, evidence)| Some((phase, what, evidence?)))
    });
    let remarks = evidence.flatten().filter_map(|(phase, what, evidence)| {
        let ids = vec![phase.rule.to_string()];
        let message = format!("the {what} evidence of phase {} holds in no state", phase.name);
        lint.never_holds(Question::plain(evidence), ids, message)
            .or_else(|| rejected_value(lint, phase, what, evidence))
    });
    let remarks: Vec<Remark> = remarks.collect();
    // Evidence that never holds excludes all other evidence.
    if !remarks.is_empty() {
        return remarks;
    }
    let exclusive = rules.phases.iter().filter_map(|phase| {
        let both = [phase.necessary.clone()?, phase.sufficient.clone()?];
        let message = format!(
            "the necessary and the sufficient evidence of phase {} exclude each other",
            phase.name
        );
        let ids = vec![phase.rule.to_string()];
        lint.never_holds(Question::plain(&Predicate::all(both)), ids, message)
    });
    exclusive.collect()
}

/// The fault of evidence that requires a value of a field that its checks reject.
fn rejected_value(
    lint: &Lint<'_>,
    phase: &PhaseValue,
    what: &str,
    evidence: &Predicate,
) -> Option<Remark> {
    evidence.conjuncts().iter().flat_map(Predicate::words).find_map(|word| {
        let AnyWord::Value(word) = word else { return None };
        let Reference::Field(path) = &word.reference else { return None };
        let checks = checks_at(lint.convention, path);
        let checks = checks.iter().filter(|check| check.action() == Disposition::Deny);
        let checks: Vec<&Check> = checks.collect();
        let wanted = word.is.as_ref()?;
        let first = wanted.first().filter(|_| {
            let mut values = wanted.iter().map(Scalar::value);
            !values.any(|value| passes(&checks, value))
        })?;
        let mut object = lint.stage.bare();
        put(&mut object, path, first.value().clone());
        lint.stage.set_phase(&mut object, &phase.name);
        let ids = checks.iter().map(|check| check.rule.to_string());
        let ids = each_once(ids.chain([phase.rule.to_string()]));
        let message = format!(
            "the {what} evidence of phase {} requires a value of {} that its checks reject",
            phase.name,
            path.field()
        );
        Some(Remark::new(Kind::NeverFires, ids, message, Some(yaml(&object))))
    })
}

pub(super) fn imposed_phases_can_occur(lint: &Lint<'_>) -> Vec<Remark> {
    Phases::each(lint, |phases, at, phase| {
        let imposed = phase.imposed.as_ref()?;
        if phases.table.iter().any(|(_, outcome)| outcome.imposed == Some(at)) {
            return None;
        }
        let message = format!("phase {} is imposed in no state", phase.name);
        let nearest = lint.nearest(Question::plain(&imposed.when)).1;
        Some(Remark::new(Kind::NeverFires, vec![phase.rule.to_string()], message, nearest))
    })
}

pub(super) fn repair_steps_can_apply(lint: &Lint<'_>) -> Vec<Remark> {
    let Some(phases) = Phases::of(lint) else { return Vec::new() };
    let repair = &phases.rules.repair;
    let steps = (1..).zip(repair).filter_map(|(number, step)| {
        let message = format!("repair step {number} applies in no state");
        lint.never_holds(Question::plain(step.when.as_ref()?), Vec::new(), message)
    });
    // A step with neither a condition nor evidence applies in every state.
    let open = phases.rules.phases.iter().filter(|phase| phase.necessary.is_none());
    let last = repair
        .iter()
        .position(|step| step.when.is_none() && open.clone().any(|phase| phase.name == step.to));
    let behind = last.filter(|last| last + 1 < repair.len()).map(|last| {
        let message = format!(
            "repair step {} applies in no state: step {} always applies",
            last + 2,
            last + 1
        );
        Remark::new(Kind::NeverFires, Vec::new(), message, Some(yaml(&lint.stage.bare())))
    });
    steps.chain(behind).collect()
}

impl<'l> Phases<'l> {
    fn of(lint: &'l Lint<'l>) -> Option<Self> {
        Some(Self { lint, rules: lint.convention.phase.as_ref()?, table: lint.table()? })
    }

    fn each(
        lint: &'l Lint<'l>,
        check: impl Fn(&Self, usize, &'l PhaseValue) -> Option<Remark>,
    ) -> Vec<Remark> {
        let Some(phases) = Self::of(lint) else { return Vec::new() };
        let all = phases.rules.phases.iter().enumerate();
        all.filter_map(|(at, phase)| check(&phases, at, phase)).collect()
    }

    fn is_reachable(&self, at: usize) -> bool {
        self.table.iter().any(|(_, outcome)| outcome.admissible[at])
    }

    /// The first state with such an outcome. A phase that no state admits is a fault of its own.
    fn find(
        &self,
        at: usize,
        wanted: impl Fn(&PhaseOutcome) -> bool,
    ) -> Option<(usize, &'l PhaseOutcome)> {
        self.table.iter().find(|(_, outcome)| wanted(outcome)).filter(|_| self.is_reachable(at))
    }

    fn remark(&self, kind: Kind, phase: &PhaseValue, message: String, number: usize) -> Remark {
        let witness = self.witness(number, Some(&phase.name));
        Remark::new(kind, vec![phase.rule.to_string()], message, witness)
    }

    /// The object of a row, with a phase.
    fn witness(&self, number: usize, phase: Option<&str>) -> Option<String> {
        let (stage, space) = (&self.lint.stage, &self.table.space);
        let mut scene = stage.scene(space, &space.combination(number))?;
        if let Some(phase) = phase {
            stage.set_phase(&mut scene.object, phase);
        }
        Some(scene.to_yaml())
    }
}
