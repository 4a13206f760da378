//! The search for something that every rule accepts: a solver proposes combinations of facts, and the
//! engine judges each of them.
//!
//! A rule that rejects a combination forbids the answers that its verdict depends on, as long as the
//! solver assumes that rule. If no combination is left, the solver names the rules that leave none.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ptr::from_ref;

use batsat::{BasicSolver, Lit, SolverInterface, lbool};
use serde_json::Value;

use super::backfill::add_field;
use super::each_once;
use super::gate::{Gate, Write};
use super::rulings::{EMPTY, Ruling, is_one_of};
use crate::facts::{Answer, Fact, Question, STATUSES, Space, has_statuses, has_types};
use crate::scene::{Scene, Stage};
use statusgate_core::engine::Action;
use statusgate_core::language::{AnyWord, Predicate};
use statusgate_core::model::Pointer;
use statusgate_core::policy::convention::ConditionList;

/// Combinations that are judged before a search gives up.
const MAX_JUDGED: usize = 1 << 14;

/// What is searched: first statuses of an object, or one element of a list of conditions.
pub(super) struct Search<'s, 'c> {
    pub(super) stage: Stage<'c>,
    pub(super) gate: &'c Gate,
    /// The list of the element, and its type.
    pub(super) element: Option<(&'c ConditionList, &'s str)>,
    /// The phase of each status; `None` for any.
    pub(super) phase: Option<&'s str>,
    /// The list that must have an element; `None` if all may be empty.
    pub(super) filled: Option<&'c ConditionList>,
}

/// What a search has found.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Decision {
    /// These rules accept this.
    Accepted(Scene),
    /// These rules together reject everything.
    Rejected(Vec<usize>),
    /// The search gave up.
    Unknown,
}

/// The search among the combinations of what some rules ask.
pub(super) struct Proof<'p, 'c> {
    search: &'p Search<'p, 'c>,
    rulings: Vec<&'p Ruling<'c>>,
    pub(super) space: Space,
    /// The rules, by id. Several rulings may share one.
    pub(super) rules: Vec<&'c str>,
    /// The facts behind each word of the rules, by its address.
    leaves: HashMap<usize, Vec<usize>>,
    solver: BasicSolver,
    /// One literal for each answer of each fact.
    answers: Vec<Vec<Lit>>,
    /// One literal for each rule: it is assumed.
    guards: Vec<Lit>,
    /// How many combinations were judged.
    pub(super) judged: usize,
    /// The combination that the fewest rules reject, and their number.
    pub(super) least: Option<(usize, Scene)>,
}

impl<'c> Search<'_, 'c> {
    /// What some rules ask of a new status. The object has no stored status, and is not being deleted.
    pub(super) fn space(&self, rulings: &[&Ruling<'c>]) -> Space {
        let asks = rulings.iter().flat_map(|ruling| {
            ruling.asks.iter().map(|predicate| self.question(predicate, ruling.list))
        });
        let mut questions: Vec<Question<'_>> = asks.collect();
        let kind: Vec<&str> = self.element.iter().map(|(_, name)| *name).collect();
        let typed = self.element.filter(|(list, _)| has_types(list));
        // The other values of `status` are those that its checks accept.
        let has_statuses = typed.is_some_and(|(list, _)| has_statuses(list));
        let statuses: &[&str] = if has_statuses { &STATUSES } else { &[] };
        let of_status = Some(is_one_of("status", statuses)).filter(|_| !statuses.is_empty());
        let judged = Predicate::all(of_status.into_iter().chain([is_one_of("type", &kind)]));
        questions.extend(typed.map(|(list, _)| self.question(&judged, Some(list))));
        let mut space = self.stage.space(&questions);
        space.facts.retain(|fact, _| *fact != Fact::Deleting && !fact.is_stored());
        for (member, wanted) in [("type", kind.as_slice()), ("status", statuses)] {
            let fact = Fact::Member { old: false, name: member.to_owned() };
            let is_wanted = typed.is_some() && !wanted.is_empty();
            if let Some(answers) = space.facts.get_mut(&fact).filter(|_| is_wanted) {
                answers.retain(|answer| {
                    answer.value().is_some_and(|value| wanted.iter().any(|text| value == text))
                });
            }
        }
        if let Some(phase) = self.phase {
            space.facts.insert(Fact::Phase { old: false }, vec![Answer::named(phase.into())]);
        }
        space
    }

    /// The write of a combination. `None` if its facts exclude each other.
    pub(super) fn scene(&self, space: &Space, combination: &[usize]) -> Option<Scene> {
        let mut scene =
            self.stage.scene(space, combination).filter(|scene| self.stage.is_real(scene))?;
        if let Some((list, _)) = self.element {
            self.stage.complete(space, list, &mut scene);
        }
        // A status that equals what the webhook sets on an empty object is always accepted.
        add_field(&mut scene);
        Some(scene)
    }

    /// The rules that reject a write, the rule of a phase that replaces the wanted one, and [`EMPTY`].
    pub(super) fn rejecting(&self, scene: &Scene) -> Vec<String> {
        let resource = self.stage.resource(&scene.plural);
        let write = Write { resource, old: Cow::Owned(self.stage.bare()), new: &scene.object };
        let rules = write.rejecting(self.gate.policies(Action::Deny));
        let replaced = self.phase.and_then(|phase| self.stage.replaced(scene, phase));
        let is_empty = |list: &ConditionList| {
            let items = scene.object.pointer(&list.path.to_string()).and_then(Value::as_array);
            items.is_none_or(Vec::is_empty)
        };
        let empty = self.filled.filter(|list| is_empty(list)).map(|_| EMPTY.to_owned());
        rules.into_iter().chain(replaced.map(|by| by.rule.to_string())).chain(empty).collect()
    }

    /// Whether a space adds other conditions to the list of the element. The rules judge those, too.
    pub(super) fn has_neighbours(&self, space: &Space) -> bool {
        self.element.is_some_and(|(list, _)| {
            let mut facts = space.facts.keys();
            facts.any(|fact| !is_member(fact) && self.reaches(space, fact, &list.path))
        })
    }

    fn question<'q>(
        &self,
        predicate: &'q Predicate,
        list: Option<&'q ConditionList>,
    ) -> Question<'q> {
        Question { predicate, list, of_element: self.element.is_some() }
    }

    fn reaches(&self, space: &Space, fact: &Fact, path: &Pointer) -> bool {
        reaches(self.stage, space, fact, path)
    }

    /// Whether a length adds elements to the list of a ruling about elements.
    pub(super) fn is_stretched(&self, space: &Space, ruling: &Ruling<'c>) -> bool {
        let Some(list) = ruling.list.filter(|_| ruling.kind.is_some()) else { return false };
        let lengths = space.facts.keys().filter(|fact| matches!(fact, Fact::Length(_)));
        lengths.into_iter().any(|fact| self.reaches(space, fact, &list.path))
    }

    /// Whether one fact can change what the other one's place holds. Facts that find their items by
    /// type do not meet in one list.
    fn interfere(&self, space: &Space, one: &Fact, other: &Fact) -> bool {
        let by_type = |fact: &Fact| {
            matches!(fact, Fact::Condition { .. } | Fact::Gates(_) | Fact::Member { .. })
        };
        !(by_type(one) && by_type(other))
            && places(self.stage, space, one)
                .into_iter()
                .any(|path| self.reaches(space, other, path))
    }
}

impl<'p, 'c> Proof<'p, 'c> {
    pub(super) fn new(search: &'p Search<'p, 'c>, rulings: Vec<&'p Ruling<'c>>) -> Self {
        let space = search.space(&rulings);
        let rules = each_once(rulings.iter().map(|ruling| ruling.id));
        let mut solver = BasicSolver::default();
        let mut literal = || Lit::new(solver.new_var_default(), true);
        let answers: Vec<Vec<Lit>> = space
            .facts
            .values()
            .map(|answers| answers.iter().map(|_| literal()).collect())
            .collect();
        let guards = rules.iter().map(|_| literal()).collect();
        for answers in &answers {
            solver.add_clause_reuse(&mut answers.clone());
            for (at, one) in answers.iter().enumerate() {
                for other in answers.iter().take(at) {
                    solver.add_clause_reuse(&mut vec![!*one, !*other]);
                }
            }
        }
        let (leaves, judged, least) = (HashMap::new(), 0, None);
        let mut proof =
            Self { search, rulings, space, rules, leaves, solver, answers, guards, judged, least };
        for ruling in proof.rulings.clone() {
            for word in ruling.asks.iter().flat_map(Predicate::questions) {
                let predicate = word.clone().into();
                let facts = proof.facts_of(search.question(&predicate, ruling.list));
                proof.leaves.insert(from_ref(word).addr(), facts);
            }
        }
        proof
    }

    /// As few rules as it takes to reject everything.
    pub(super) fn core(&mut self) -> Decision {
        let all: Vec<usize> = (0..self.rules.len()).collect();
        let mut core = match self.decide(&all) {
            Decision::Rejected(core) => core,
            other => return other,
        };
        for rule in core.clone() {
            let rest: Vec<usize> = core.iter().copied().filter(|other| *other != rule).collect();
            if rest.len() == core.len() {
                continue;
            }
            match self.decide(&rest) {
                Decision::Rejected(smaller) => core = smaller,
                Decision::Accepted(_) => {}
                Decision::Unknown => return Decision::Unknown,
            }
        }
        Decision::Rejected(core)
    }

    /// Whether these rules accept any combination; otherwise those of them that together reject all.
    pub(super) fn decide(&mut self, rules: &[usize]) -> Decision {
        let guard = |rule: &usize| self.guards.get(*rule).copied();
        let assumed: Vec<Lit> = rules.iter().filter_map(guard).collect();
        while self.solver.solve_limited(&assumed) == lbool::TRUE {
            let combination = self.proposed();
            let Some(scene) = self.search.scene(&self.space, &combination) else {
                let facts = self.conflict(&combination);
                self.forbid(&facts, &combination, None);
                continue;
            };
            if self.judged == MAX_JUDGED {
                return Decision::Unknown;
            }
            self.judged += 1;
            let ids = self.search.rejecting(&scene);
            let places =
                ids.iter().filter_map(|id| self.rules.iter().position(|known| known == id));
            let rejecting: Vec<usize> = places.collect();
            if !rejecting.iter().any(|rule| rules.contains(rule)) {
                return Decision::Accepted(scene);
            }
            for rule in &rejecting {
                let facts = self.grounds(*rule, &scene);
                self.forbid(&facts, &combination, self.guards.get(*rule).copied());
            }
            if self.least.as_ref().is_none_or(|(count, _)| rejecting.len() < *count) {
                self.least = Some((rejecting.len(), scene));
            }
        }
        let left = rules.iter().copied().filter(|rule| {
            let guard = self.guards.get(*rule);
            guard.is_some_and(|guard| self.solver.unsat_core_contains_var(guard.var()))
        });
        Decision::Rejected(left.collect())
    }

    fn proposed(&self) -> Vec<usize> {
        let chosen = self.answers.iter().map(|answers| {
            answers.iter().position(|literal| self.solver.value_lit(*literal) == lbool::TRUE)
        });
        chosen.map(Option::unwrap_or_default).collect()
    }

    /// Never proposes these answers together again, as long as the rule is assumed.
    fn forbid(&mut self, facts: &[usize], combination: &[usize], rule: Option<Lit>) {
        let answers =
            facts.iter().filter_map(|fact| self.answers.get(*fact)?.get(*combination.get(*fact)?));
        let mut clause: Vec<Lit> = answers.copied().chain(rule).map(|literal| !literal).collect();
        self.solver.add_clause_reuse(&mut clause);
    }

    /// The facts that settle the verdict of a rule about a scene.
    pub(super) fn grounds(&self, rule: usize, scene: &Scene) -> Vec<usize> {
        let id = self.rules.get(rule);
        // Other conditions have verdicts of their own.
        let of_one = !self.search.has_neighbours(&self.space);
        let mut found: Vec<usize> = Vec::new();
        for ruling in self.rulings.iter().filter(|ruling| Some(&ruling.id) == id) {
            if let Some(list) = ruling.list.filter(|_| ruling.kind.is_some()) {
                // A good gate adds a condition, and a rule about each element judges that, too.
                found.extend(self.facts_at(&list.path).filter(|at| {
                    matches!(self.space.facts.get_index(*at), Some((Fact::Gates(_), _)))
                }));
            }
            if self.search.is_stretched(&self.space, ruling) {
                found.extend(ruling.list.iter().flat_map(|list| self.facts_at(&list.path)));
            } else if !ruling.is_about(scene) {
                continue;
            }
            let mut leaves: Vec<&AnyWord> = Vec::new();
            let looked = self.search.stage.look(scene, ruling.list, |facts| {
                if of_one {
                    leaves.extend(ruling.asks.iter().flat_map(|ask| facts.deciding(ask)));
                }
            });
            if looked.is_none() || !of_one {
                leaves.extend(ruling.asks.iter().flat_map(Predicate::questions));
            }
            let facts = leaves.iter().filter_map(|leaf| self.leaves.get(&from_ref(*leaf).addr()));
            found.extend(facts.flatten());
            found.extend(ruling.reads.iter().flat_map(|path| self.facts_at(path)));
        }
        each_once(found)
    }

    /// The facts that a predicate asks for, and those that can change what they find.
    fn facts_of(&self, question: Question<'_>) -> Vec<usize> {
        let stage = &self.search.stage;
        let asked = stage.space(&[question]).facts;
        let known = asked.keys().filter_map(|fact| self.space.facts.get_index_of(fact)).collect();
        self.with_interfering(known)
    }

    fn facts_at(&self, path: &'c Pointer) -> impl Iterator<Item = usize> {
        let facts = self.space.facts.keys().enumerate();
        facts.filter_map(move |(at, fact)| {
            (!is_member(fact) && self.search.reaches(&self.space, fact, path)).then_some(at)
        })
    }

    fn with_interfering(&self, mut facts: Vec<usize>) -> Vec<usize> {
        let all = self.space.facts.keys().enumerate();
        let more = all.filter(|(at, other)| {
            let known = facts.iter().filter_map(|at| self.space.facts.get_index(*at));
            !facts.contains(at)
                && known
                    .into_iter()
                    .any(|(fact, _)| self.search.interfere(&self.space, fact, other))
        });
        facts.extend(more.map(|(at, _)| at).collect::<Vec<_>>());
        facts
    }

    /// As few facts of a combination as it takes to exclude each other.
    fn conflict(&self, combination: &[usize]) -> Vec<usize> {
        let mut facts: Vec<usize> = (0..combination.len()).collect();
        for fact in 0..combination.len() {
            let rest: Vec<usize> = facts.iter().copied().filter(|other| *other != fact).collect();
            if !self.can_be_built(&rest, combination) {
                facts = rest;
            }
        }
        self.with_interfering(facts)
    }

    fn can_be_built(&self, chosen: &[usize], combination: &[usize]) -> bool {
        let facts = chosen.iter().filter_map(|at| {
            let (fact, answers) = self.space.facts.get_index(*at)?;
            Some((fact.clone(), vec![answers.get(*combination.get(*at)?)?.clone()]))
        });
        let element_of = self.space.element_of.clone();
        let part = Space { facts: facts.collect(), element_of, ..Space::default() };
        self.search.scene(&part, &vec![0; chosen.len()]).is_some()
    }
}

/// The places in the object that a fact writes.
fn places<'f>(stage: Stage<'f>, space: &'f Space, fact: &'f Fact) -> Vec<&'f Pointer> {
    let convention = stage.convention;
    match fact {
        Fact::Phase { .. } => convention.phase.iter().map(|rules| &rules.path).collect(),
        Fact::Observed => {
            convention.generation.iter().filter_map(|rules| rules.own_path()).collect()
        }
        Fact::Field { path, .. } | Fact::Length(path) => vec![path],
        Fact::Gates(path) => {
            let list = convention.primary_conditions(stage.version);
            [path].into_iter().chain(list.map(|list| &*list.path)).collect()
        }
        Fact::Condition { list, .. } | Fact::OfCondition { list, .. } => list.iter().collect(),
        Fact::Member { .. } => space.element_of.iter().collect(),
        Fact::Deleting | Fact::Resource => Vec::new(),
    }
}

/// Whether a fact writes what a path leads to, or something around it.
pub(super) fn reaches(stage: Stage<'_>, space: &Space, fact: &Fact, path: &Pointer) -> bool {
    places(stage, space, fact).into_iter().any(|place| overlap(place, path))
}

const fn is_member(fact: &Fact) -> bool {
    matches!(fact, Fact::Member { .. })
}

/// Whether one path leads to the other, or through it. Positions in a list do not matter.
fn overlap(one: &Pointer, other: &Pointer) -> bool {
    let is_name = |token: &str| token != "-1" && token.parse::<usize>().is_err();
    let pairs = one.tokens().iter().zip(other.tokens());
    let mut names = pairs.take_while(|(one, other)| is_name(one) && is_name(other));
    names.all(|(one, other)| one == other)
}

#[cfg(test)]
mod tests;
