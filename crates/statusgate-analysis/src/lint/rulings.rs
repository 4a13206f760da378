//! The rules that can reject a status or a condition, and what their verdicts depend on.

use serde_json::Value as Json;

use super::fields::checks_at;
use super::{Lint, each_once};
use crate::facts::{Left, Question, STATUSES, has_statuses, is_decided, left};
use crate::line::Clause;
use crate::scene::Scene;
use statusgate_core::language::{
    AnyWord, Condition, MemberOf, Observed, ObservedGeneration, OneOrMany, Phase as PhaseWord,
    Predicate, Reference, Scalar, Value,
};
use statusgate_core::model::{ConditionStatus, Pointer};
use statusgate_core::policy::convention::{
    ConditionList, ConditionType, PhaseRules, Presence, Sanction, Trigger, Watch, Watched,
};
use statusgate_core::policy::{Check, Disposition};

/// The id of the wish that a list has an element.
pub(super) const EMPTY: &str = "";

/// Types that are tried in a list that must have an element.
const MAX_TYPES: usize = 8;

/// A rule that can reject, and what its verdict depends on.
pub(super) struct Ruling<'c> {
    pub(super) id: &'c str,
    /// The verdict is the same while the answers to these are the same.
    pub(super) asks: Vec<Predicate>,
    /// The verdict also depends on all values at and below these paths.
    pub(super) reads: Vec<&'c Pointer>,
    /// The list of its conditions, if it is not the first one.
    pub(super) list: Option<&'c ConditionList>,
    /// The type that it is about: without such a condition in the list, it rejects nothing.
    pub(super) kind: Option<String>,
    /// Whether the values that are tried represent all values.
    pub(super) decided: bool,
}

impl<'c> Ruling<'c> {
    const fn new(id: &'c str, asks: Vec<Predicate>, list: Option<&'c ConditionList>) -> Self {
        Self { id, asks, reads: Vec::new(), list, kind: None, decided: true }
    }

    /// The rule of a sanction that can reject.
    fn of(
        sanction: Option<&'c Sanction>,
        asks: Vec<Predicate>,
        list: Option<&'c ConditionList>,
    ) -> Option<Self> {
        let rule = &sanction.filter(|sanction| rejects(sanction))?.rule;
        Some(Self::new(rule, asks, list))
    }

    /// Its predicates, about the object or about each element.
    pub(super) fn questions(&self, of_element: bool) -> impl Iterator<Item = Question<'_>> {
        self.asks.iter().map(move |predicate| Question { predicate, list: self.list, of_element })
    }

    /// Whether the list of a scene has a condition that it is about.
    pub(super) fn is_about(&self, scene: &Scene) -> bool {
        let (Some(kind), Some(list)) = (&self.kind, self.list) else { return true };
        let items = scene.object.pointer(&list.path.to_string()).and_then(Json::as_array);
        items.is_some_and(|items| items.iter().any(|item| item["type"] == **kind))
    }

    fn of_clause(clause: &Clause<'c>) -> Self {
        let mut ruling = Self::new(clause.id, vec![clause.when.clone().into_owned()], clause.list);
        if let Some(Trigger::Watch(Watch { moved, co_written })) = clause.trigger {
            for watched in [moved, co_written].into_iter().flatten().flat_map(|of| of.iter()) {
                match watched {
                    Watched::Field(path) => ruling.reads.push(path),
                    Watched::Condition(kind) => ruling.asks.push(is_present(kind)),
                }
            }
        }
        ruling
    }
}

impl<'c> Lint<'c> {
    /// The rules that can reject a status with these lists of conditions.
    pub(super) fn rulings_of_status(&self, lists: &[&'c ConditionList]) -> Vec<Ruling<'c>> {
        self.rulings_with(lists, Vec::new())
    }

    /// The same for a status in which this list has an element.
    pub(super) fn rulings_of_filled(
        &self,
        lists: &[&'c ConditionList],
        filled: &'c ConditionList,
    ) -> Vec<Ruling<'c>> {
        let kinds = filled.types.values().map(ConditionType::sample).take(MAX_TYPES);
        let asks = kinds.chain(["Example".to_owned()]).map(|kind| is_present(&kind)).collect();
        let wish = Ruling::new(EMPTY, asks, Some(filled));
        self.rulings_with(lists, vec![Ruling { reads: vec![&filled.path], ..wish }])
    }

    fn rulings_with(
        &self,
        lists: &[&'c ConditionList],
        mut rulings: Vec<Ruling<'c>>,
    ) -> Vec<Ruling<'c>> {
        rulings.extend(self.rulings_of_clauses(lists));
        for list in lists.iter().copied() {
            rulings.extend(list.types.values().filter_map(|kind| {
                Ruling::of(kind.not_true.as_ref(), vec![is_true(kind)], Some(list))
            }));
            let asks = list.types.values().map(|kind| is_present(&kind.sample())).collect();
            // A family has any number of types.
            let decided = list.key() == ["type"]
                && !list.has_keys_of_types()
                && list.types.values().all(|kind| kind.glob.exact().is_some());
            let other_types = Ruling::of(list.other_types.as_ref(), asks, Some(list));
            let of_types = other_types.map(|ruling| Ruling { decided, ..ruling });
            let too_long = Ruling::of(list.too_long.as_ref(), Vec::new(), Some(list));
            let of_list = too_long.into_iter().chain(of_types);
            rulings.extend(of_list.map(|ruling| Ruling { reads: vec![&list.path], ..ruling }));
        }
        let convention = self.convention;
        let fields = convention.fields.iter();
        let denying = fields.filter(|field| field.check.action() == Disposition::Deny);
        rulings.extend(denying.filter_map(|field| {
            let reference = Reference::Field((*field.path).clone().try_into().ok()?);
            // Checks that no value passes are a fault of their own.
            let (asks, decided) = asks_for_value(&checks_at(convention, &field.path), reference)?;
            Some(Ruling { decided, ..Ruling::new(&field.check.rule, vec![asks], None) })
        }));
        rulings.extend(self.rulings_of_generation());
        if let Some(rules) = &convention.phase {
            rulings.extend(rulings_of_phase(rules));
        }
        let conditions: Vec<Ruling<'c>> = lists
            .iter()
            .filter(|list| list.outer.is_none())
            .flat_map(|list| {
                let kinds = self.kinds(list, &rulings);
                let of_kind =
                    kinds.into_iter().map(|kind| self.rulings_of_condition(list, &kind, &rulings));
                of_kind.flatten().collect::<Vec<_>>()
            })
            .collect();
        rulings.extend(conditions);
        rulings
    }

    /// The types in a list that some rules ask for: no rule needs another condition.
    fn kinds(&self, list: &ConditionList, rulings: &[Ruling<'_>]) -> Vec<String> {
        let primary = self.convention.lists(self.stage.version).find(|list| list.outer.is_none());
        let of_list = rulings.iter().filter(|ruling| {
            ruling.list.or(primary).is_some_and(|other| std::ptr::eq(other, list))
        });
        let asked = of_list.flat_map(|ruling| ruling.asks.iter().flat_map(Predicate::questions));
        // A condition that a rule about elements asks for is an element, too.
        let of_elements = self.of_elements(list).flat_map(|clause| clause.when.questions());
        let kinds = asked.chain(of_elements).filter_map(|word| match word {
            AnyWord::Condition(word) => Some(word.of.kind().to_owned()),
            _ => None,
        });
        each_once(kinds)
    }

    fn rulings_of_clauses(&self, lists: &[&'c ConditionList]) -> Vec<Ruling<'c>> {
        let clauses = self.rejecting().filter(|clause| {
            clause.list.is_none_or(|list| lists.iter().any(|known| std::ptr::eq(*known, list)))
        });
        let rulings = clauses.map(|clause| {
            let mut ruling = Ruling::of_clause(clause);
            // Every state can change to the default phase: no rule about the phase's own field rejects it.
            let phase = self.convention.phase.as_ref().map(|rules| &rules.path);
            ruling.reads.extend(phase.filter(|path| clause.path == Some(path)));
            ruling
        });
        rulings.collect()
    }

    fn rulings_of_generation(&self) -> Vec<Ruling<'c>> {
        let Some(rules) = &self.convention.generation else { return Vec::new() };
        let observed = ObservedGeneration { observed: Observed::Current.into() };
        let ahead = Ruling::of(rules.ahead_at_first.as_ref(), vec![observed.into()], None)
            .zip(rules.own_path())
            .map(|(ruling, path)| Ruling { reads: vec![path], ..ruling });
        let below = rules.below.iter().flat_map(|sanction| {
            rules.paths.iter().flatten().filter_map(|path| {
                let reference = Reference::Field((**path).clone().try_into().ok()?);
                let (asks, _) = asks_for_value(&checks_at(self.convention, path), reference)?;
                Some(Ruling { reads: vec![path], ..Ruling::new(&sanction.rule, vec![asks], None) })
            })
        });
        ahead.into_iter().chain(below).collect()
    }

    /// The rules that can reject an element of a list of conditions.
    pub(super) fn rulings_of_element(
        &self,
        list: &'c ConditionList,
        kind: &str,
    ) -> Vec<Ruling<'c>> {
        let ruling = |id, asks| Ruling::new(id, asks, Some(list));
        let rejecting = self.of_elements(list).filter(|clause| clause.can_reject());
        let mut rulings: Vec<Ruling<'c>> = rejecting
            .map(|clause| ruling(clause.id, vec![clause.when.clone().into_owned()]))
            .collect();
        let of = |sanction, asks| Ruling::of(sanction, asks, Some(list));
        if let Some(kind) = list.find(kind) {
            rulings.extend(of(kind.not_true.as_ref(), Vec::new()));
            if let Some((when, sanction)) = kind.present.as_ref().map(Presence::parts) {
                rulings.extend(of(Some(sanction), when.cloned().into_iter().collect()));
            }
            if let Some(reasons) = &kind.reasons {
                let asks = || vec![is_one_of("reason", &reasons.all().collect::<Vec<_>>())];
                rulings.extend(of(reasons.action.as_ref(), asks()));
                rulings.extend(of(reasons.other.as_ref(), asks()));
            }
        }
        for (member, checks) in list.members.iter().filter(|(member, _)| *member != "type") {
            for check in checks.iter().filter(|check| check.action() == Disposition::Deny) {
                let reference = Reference::Member(member.clone());
                let Some((asks, decided)) = asks_for_value(checks, reference) else { break };
                rulings.push(Ruling { decided, ..ruling(&check.rule, vec![asks]) });
            }
        }
        let names = self.members_of(list).into_iter();
        let others = names.filter(|name| !list.members.contains_key(name));
        let asks = others.map(|name| is_set(Reference::Member(name))).collect();
        rulings.extend(of(list.other_members.as_ref(), asks));
        for ruling in &mut rulings {
            if has_statuses(list) {
                ruling.asks.push(is_one_of("status", &STATUSES));
            }
            // Conditions in addition to the element are judged, too.
            ruling.reads.push(&list.path);
        }
        let too_long = of(list.too_long.as_ref(), Vec::new());
        rulings.extend(too_long.map(|ruling| Ruling { reads: vec![&list.path], ..ruling }));
        rulings
    }

    /// The rules about elements that can reject a condition of a status.
    fn rulings_of_condition(
        &self,
        list: &'c ConditionList,
        name: &str,
        others: &[Ruling<'c>],
    ) -> Vec<Ruling<'c>> {
        let ruling = |id, asks| Ruling {
            kind: Some(name.to_owned()),
            reads: Vec::new(),
            ..Ruling::new(id, asks, Some(list))
        };
        let mut rulings: Vec<Ruling<'c>> = Vec::new();
        for clause in self.of_elements(list).filter(|clause| clause.can_reject()) {
            let (asks, decided) = asks_of_condition(&clause.when, name);
            rulings.push(Ruling { decided, ..ruling(clause.id, asks) });
        }
        if let Some(reasons) = list.find(name).and_then(|kind| kind.reasons.as_ref()) {
            let sanctions = [&reasons.action, &reasons.other].into_iter().flatten();
            for sanction in sanctions.filter(|sanction| rejects(sanction)) {
                let reason = Some(reasons.all().map(str::to_owned).collect());
                let asks = vec![Condition { reason, ..Condition::of(name) }.into()];
                rulings.push(ruling(&sanction.rule, asks));
            }
        }
        let known = ["reason", "severity"].map(str::to_owned).into_iter();
        let members = known.chain(list.members.keys().cloned()).chain(self.members_of(list));
        let asked: Vec<String> = each_once(members.filter(|member| {
            let words = others.iter().chain(&rulings).flat_map(|ruling| &ruling.asks);
            words.flat_map(Predicate::questions).any(|word| match word {
                AnyWord::Condition(word) if word.of.kind() == name => match member.as_str() {
                    "reason" => word.reason.is_some(),
                    "severity" => word.severity.is_some(),
                    _ => false,
                },
                AnyWord::Value(value) => {
                    let operands = value.operands().map(|operand| &operand.0);
                    let mut references = operands.chain([&value.reference]);
                    references.any(|other| *other == member_of(name, member))
                }
                _ => false,
            })
        }));
        let asks = |member: &str, checks: &[Check]| match member {
            "reason" => {
                let Left::Value(value) = left(&Vec::from_iter(checks)) else { return Vec::new() };
                let reason = value.as_str().map(|reason| OneOrMany::from(reason.to_owned()));
                vec![Condition { reason, ..Condition::of(name) }.into()]
            }
            member => {
                let asked = asks_for_value(checks, member_of(name, member));
                asked.into_iter().map(|(asks, _)| asks).collect()
            }
        };
        for (member, checks) in list.members.iter().filter(|(member, _)| asked.contains(member)) {
            let decided = is_decided(&Vec::from_iter(checks.iter()));
            for check in checks.iter().filter(|check| check.action() == Disposition::Deny) {
                rulings.push(Ruling { decided, ..ruling(&check.rule, asks(member, checks)) });
            }
        }
        if let Some(sanction) = list.other_members.as_ref().filter(|sanction| rejects(sanction)) {
            let unknown = asked.iter().filter(|member| !list.members.contains_key(member.as_str()));
            rulings.push(ruling(
                &sanction.rule,
                unknown.flat_map(|member| asks(member, &[])).collect(),
            ));
        }
        for ruling in &mut rulings {
            ruling.asks.push(is_present(name));
        }
        rulings
    }

    /// The rules about the elements of a list.
    fn of_elements(&self, list: &ConditionList) -> impl Iterator<Item = &Clause<'c>> {
        self.clauses.iter().filter(move |clause| {
            clause.of_element && clause.list.is_some_and(|own| std::ptr::eq(own, list))
        })
    }

    /// The members that these ask for.
    pub(super) fn members_of(&self, list: &ConditionList) -> Vec<String> {
        let words = self.of_elements(list).flat_map(|clause| clause.when.questions());
        let values = words.filter_map(|word| match word {
            AnyWord::Value(value) => Some(value),
            _ => None,
        });
        let references = values
            .flat_map(|value| value.operands().map(|operand| &operand.0).chain([&value.reference]));
        each_once(references.filter_map(|reference| match reference {
            Reference::Member(name) | Reference::OldMember(name) => Some(name.clone()),
            _ => None,
        }))
    }
}

/// What a rule about elements asks of a condition, and whether that is all.
fn asks_of_condition(predicate: &Predicate, kind: &str) -> (Vec<Predicate>, bool) {
    let mut decided = true;
    let asks = predicate.questions().into_iter().filter_map(|word| match word {
        AnyWord::Value(value) => {
            let Reference::Member(name) = &value.reference else {
                // Without a stored object, a stored member is no evidence.
                return (!value.reference.is_member()).then(|| word.clone().into());
            };
            decided &= value.operands().next().is_none();
            let scalars = value.is.iter().chain(&value.is_not).flat_map(|wanted| wanted.iter());
            let texts = scalars.filter_map(|scalar| scalar.value().as_str().map(str::to_owned));
            match name.as_str() {
                "type" => None,
                "status" => Some(is_present(kind)),
                "reason" => {
                    decided &= value.matches.is_none();
                    let reason = Some(texts.chain([String::new()]).collect());
                    Some(Condition { reason, ..Condition::of(kind) }.into())
                }
                name => {
                    let reference = member_of(kind, name);
                    Some(
                        Value { equals: None, before: None, reference, ..(**value).clone() }.into(),
                    )
                }
            }
        }
        AnyWord::ElementPolarity(_) => None,
        other => Some(other.clone().into()),
    });
    (asks.collect(), decided)
}

pub(super) fn rulings_of_phase(rules: &PhaseRules) -> Vec<Ruling<'_>> {
    // A phase that the webhook imposes is not rejected.
    let mut imposed: Vec<Predicate> = Vec::new();
    for phase in rules.phases.iter().filter_map(|phase| phase.imposed.as_ref()) {
        let asks = phase.when.questions().into_iter().cloned();
        imposed.extend(asks.map(Predicate::from));
    }
    let of_phases = rules.phases.iter().map(|phase| {
        let name = PhaseWord { phase: phase.name.clone().into() }.into();
        let asks = phase.necessary.iter().cloned().chain([name]).chain(imposed.clone()).collect();
        Ruling::new(&phase.rule, asks, None)
    });
    let phase: OneOrMany<String> = rules.phases.iter().map(|phase| phase.name.clone()).collect();
    let all: Vec<Predicate> =
        [PhaseWord { phase }.into()].into_iter().chain(imposed.clone()).collect();
    let mut rulings: Vec<Ruling<'_>> = of_phases.collect();
    let moves = rules.moves.as_ref().and_then(|moves| moves.action.as_ref());
    let of_moves = all.iter().chain(&rules.mirrored).cloned().collect();
    rulings.extend(Ruling::of(moves, of_moves, None));
    if let Some(reason) = &rules.reason
        && let Ok(path) = (*reason.path).clone().try_into()
    {
        let own = rules.phases.iter().flat_map(|phase| phase.reasons.iter());
        let all_reasons = own.chain(reason.always.iter()).map(|reason| Scalar::from(&**reason));
        let is = Some(all_reasons.collect());
        let of_reason = Value { is, ..Value::of(Reference::Field(path)) };
        // It is not held against a phase that the webhook sets.
        let evidence = rules.phases.iter().filter_map(|phase| phase.necessary.clone());
        let asks = all.iter().cloned().chain(evidence).chain([of_reason.into()]).collect();
        rulings.extend(Ruling::of(reason.action.as_ref(), asks, None));
    }
    rulings
}

pub(super) fn rejects(sanction: &Sanction) -> bool {
    sanction.action.can_deny()
}

fn is_true(kind: &ConditionType) -> Predicate {
    let is = Some(ConditionStatus::True.into());
    Condition { is, ..Condition::of(kind.sample()) }.into()
}

pub(super) fn is_present(kind: &str) -> Predicate {
    Condition { present: Some(true), ..Condition::of(kind) }.into()
}

pub(super) fn is_set(reference: Reference) -> Predicate {
    Value { set: Some(true), ..Value::of(reference) }.into()
}

fn member_of(kind: &str, member: &str) -> Reference {
    Reference::OfCondition(MemberOf { condition: kind.to_owned(), member: member.to_owned() })
}

pub(super) fn is_one_of(member: &str, texts: &[&str]) -> Predicate {
    let is = Some(texts.iter().map(|text| Scalar::from(*text)).collect());
    Value { is, ..Value::of(Reference::Member(member.to_owned())) }.into()
}

/// Asks for a value, such that a value that passes all its checks is among the answers. `None` if
/// no such value is known. Also returns whether the values that are tried represent all values.
fn asks_for_value(checks: &[Check], reference: Reference) -> Option<(Predicate, bool)> {
    let all: Vec<&Check> = checks.iter().collect();
    let Left::Value(value) = left(&all) else { return None };
    let is = Some(Scalar::try_from(value).ok()?.into());
    Some((Value { is, ..Value::of(reference) }.into(), is_decided(&all)))
}
