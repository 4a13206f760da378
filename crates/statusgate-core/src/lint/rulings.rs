//! The rules that can reject a status or a condition, and what their verdicts depend on.

use super::Lint;
use super::example::STATUSES;
use crate::explain::{Clause, Left, is_decided, left};
use crate::language::{
    Condition, OneOrMany, Phase as PhaseWord, Predicate, Reference, Scalar, Value,
};
use crate::model::{ConditionStatus, Pointer};
use crate::policy::convention::{
    ConditionList, ConditionType, PhaseRules, PhaseValue, Sanction, Trigger, Watch, Watched,
};
use crate::policy::{Check, Disposition};

/// A rule that can reject, and what its verdict depends on.
pub(super) struct Ruling<'c> {
    pub(super) id: &'c str,
    /// The verdict is the same while the answers to these are the same.
    pub(super) asks: Vec<Predicate>,
    /// The verdict also depends on all values at and below these paths.
    pub(super) reads: Vec<&'c Pointer>,
    /// The list of its conditions, if it is not the first one.
    pub(super) list: Option<&'c ConditionList>,
    /// Whether the values that are tried represent all values.
    pub(super) decided: bool,
}

impl<'c> Ruling<'c> {
    const fn new(id: &'c str, asks: Vec<Predicate>, list: Option<&'c ConditionList>) -> Self {
        Self { id, asks, reads: Vec::new(), list, decided: true }
    }
}

impl<'c> Lint<'c> {
    /// The rules that can reject a status with these lists of conditions.
    pub(super) fn rulings_of_status(&self, lists: &[&'c ConditionList]) -> Vec<Ruling<'c>> {
        let mut rulings = self.rulings_of_clauses(lists);
        for list in lists {
            for kind in list.types.values() {
                for sanction in kind.not_true.iter().filter(|sanction| rejects(sanction)) {
                    rulings.push(Ruling::new(&sanction.rule, vec![is_true(kind)], Some(list)));
                }
            }
            if let Some(sanction) = list.too_long.as_ref().filter(|sanction| rejects(sanction)) {
                let ruling = Ruling::new(&sanction.rule, Vec::new(), Some(list));
                rulings.push(Ruling { reads: vec![&list.path], ..ruling });
            }
        }
        let fields = &self.convention.fields;
        for field in fields.iter().filter(|field| field.check.action() == Disposition::Deny) {
            let checks = fields.iter().filter(|other| other.path == field.path);
            let checks: Vec<&Check> = checks.map(|field| &field.check).collect();
            let Ok(path) = (*field.path).clone().try_into() else { continue };
            let reference = Reference::Field(path);
            // Checks that no value passes are a fault of their own.
            if let Some(asks) = asks_for_value(&checks, reference) {
                let decided = is_decided(&checks);
                let ruling = Ruling::new(&field.check.rule, vec![asks], None);
                rulings.push(Ruling { decided, ..ruling });
            }
        }
        if let Some(rules) = &self.convention.phase {
            rulings.extend(rulings_of_phase(rules));
        }
        rulings
    }

    fn rulings_of_clauses(&self, lists: &[&'c ConditionList]) -> Vec<Ruling<'c>> {
        let known = |list: &ConditionList| lists.iter().any(|known| std::ptr::eq(*known, list));
        let clauses = self.rejecting().filter(|clause| clause.list.is_none_or(known));
        let ruling = |clause: &Clause<'c>| {
            let mut ruling =
                Ruling::new(clause.id, vec![clause.when.clone().into_owned()], clause.list);
            if let Some(Trigger::Watch(Watch { moved: Some(watched), .. })) = clause.trigger {
                for watched in watched.iter() {
                    match watched {
                        Watched::Field(path) => ruling.reads.push(path),
                        Watched::Condition(kind) => ruling.asks.push(is_present(kind)),
                    }
                }
            }
            // Every state can change to the default phase: no rule about the phase's own field rejects it.
            let phase = self.convention.phase.as_ref().map(|rules| &rules.path);
            ruling.reads.extend(phase.filter(|path| clause.path == Some(path)));
            ruling
        };
        clauses.map(ruling).collect()
    }

    /// The rules that can reject an element of a list of conditions.
    pub(super) fn rulings_of_element(&self, list: &'c ConditionList) -> Vec<Ruling<'c>> {
        let ruling = |id, asks| Ruling::new(id, asks, Some(list));
        let of_list = self.clauses.iter().filter(|clause| {
            clause.of_element
                && clause.can_reject()
                && clause.list.is_some_and(|own| std::ptr::eq(own, list))
        });
        let mut rulings: Vec<Ruling<'c>> = of_list
            .map(|clause| ruling(clause.id, vec![clause.when.clone().into_owned()]))
            .collect();
        for kind in list.types.values() {
            for sanction in kind.not_true.iter().filter(|sanction| rejects(sanction)) {
                rulings.push(ruling(&sanction.rule, Vec::new()));
            }
            let reasons: Vec<&str> = kind.reasons.keys().map(String::as_str).collect();
            for row in kind.reasons.values().filter(|row| row.action().can_deny()) {
                let expected = row.expects();
                let expected =
                    expected.map(|(member, texts)| is_one_of(member, &texts.collect::<Vec<_>>()));
                let asks = expected.chain([is_one_of("reason", &reasons)]).collect();
                rulings.push(ruling(&kind.reason_rule, asks));
            }
        }
        for (member, checks) in list.members.iter().filter(|(member, _)| *member != "type") {
            for check in checks.iter().filter(|check| check.action() == Disposition::Deny) {
                let reference = Reference::Member(member.clone());
                let all: Vec<&Check> = checks.iter().collect();
                let (asks, decided) = (asks_for_value(&all, reference), is_decided(&all));
                let of_member = |asks| Ruling { decided, ..ruling(&check.rule, vec![asks]) };
                rulings.extend(asks.map(of_member));
            }
        }
        for ruling in &mut rulings {
            if !list.is_map() {
                ruling.asks.push(is_one_of("status", &STATUSES));
            }
            // Conditions in addition to the element are judged, too.
            ruling.reads.push(&list.path);
        }
        rulings
    }
}

fn rulings_of_phase(rules: &PhaseRules) -> Vec<Ruling<'_>> {
    // A phase that the webhook imposes is not rejected.
    let mut imposed: Vec<Predicate> = Vec::new();
    for phase in rules.phases.iter().filter_map(|phase| phase.imposed.as_ref()) {
        let asks = phase.when.questions().into_iter().cloned();
        imposed.extend(asks.map(Predicate::from));
    }
    let of_phase = |phase: &PhaseValue| {
        let name = PhaseWord { phase: phase.name.clone().into() }.into();
        phase.necessary.iter().cloned().chain([name]).chain(imposed.clone()).collect()
    };
    let phase: OneOrMany<String> = rules.phases.iter().map(|phase| phase.name.clone()).collect();
    let all = [PhaseWord { phase }.into()].into_iter().chain(imposed.clone());
    let all: Vec<Predicate> = all.collect();
    let phases = rules.phases.iter().map(|phase| Ruling::new(&phase.rule, of_phase(phase), None));
    let moves = rules.moves.iter().flat_map(|moves| &moves.action);
    let moves = moves.filter(|sanction| rejects(sanction));
    phases.chain(moves.map(|sanction| Ruling::new(&sanction.rule, all.clone(), None))).collect()
}

pub(super) fn rejects(sanction: &Sanction) -> bool {
    sanction.action.can_deny()
}

fn is_true(kind: &ConditionType) -> Predicate {
    let is = Some(ConditionStatus::True.into());
    Condition { is, ..Condition::of(kind.sample()) }.into()
}

fn is_present(kind: &str) -> Predicate {
    Condition { present: Some(true), ..Condition::of(kind) }.into()
}

pub(super) fn is_one_of(member: &str, texts: &[&str]) -> Predicate {
    let is = Some(texts.iter().map(|text| Scalar::from(*text)).collect());
    Value { is, ..Value::of(Reference::Member(member.to_owned())) }.into()
}

/// Asks for a value, such that a value that passes all its checks is among the answers. `None` if
/// no such value is known.
fn asks_for_value(checks: &[&Check], reference: Reference) -> Option<Predicate> {
    let Left::Value(value) = left(checks) else { return None };
    let is = Some(Scalar::try_from(value).ok()?.into());
    Some(Value { is, ..Value::of(reference) }.into())
}
