//! Every rule can fire, every phase can be written, and every state can change to the default phase.

use std::collections::BTreeSet;

use serde_json::Value;

use super::gate::Write;
use super::joint::Joint;
use super::moves::moves;
use super::proof::Search;
use super::rulings::Ruling;
use super::{Kind, Lint, Remark, one_per_cause};
use crate::facts::{Fact, Question, Space};
use crate::line::Clause;
use crate::scene::{Scene, Stage};
use statusgate_core::engine::{Action, Truth};
use statusgate_core::language::AnyWord;
use statusgate_core::policy::convention::{PhaseRules, PhaseValue};

/// Combinations that a search for one state tries before it gives up. A state that exists is found among
/// the first few hundred.
pub(super) const MAX_SEARCH: usize = 1 << 16;

/// Combinations that a search tries before it looks for a way to the state. Most states are among them.
const FEW: usize = 256;

/// Writes that a search tries through both webhooks.
pub(super) const MAX_WRITES: usize = 1 << 12;

pub(super) fn rules_can_fire(lint: &Lint<'_>) -> Vec<Remark> {
    let unfired = lint.clauses.iter().filter_map(|clause| {
        let rules = vec![clause.id.to_owned()];
        Some(match lint.search(clause.question()) {
            Searched::Something(_) => return None,
            Searched::Nothing if waits_for_type(clause) => Remark::new(
                Kind::WaitsForType,
                rules,
                "no condition type has the polarity that this rule requires; a convention that extends this one can add such a type",
                None,
            ),
            Searched::Nothing => {
                let (message, witness) = lint.nearest(clause.question());
                Remark::new(Kind::NeverFires, rules, message, witness)
            }
            unknown => unknown.not_proven(rules, "violates this rule"),
        })
    });
    unfired.collect()
}

/// A policy that denies disagreements accepts each phase in some state: in the first status, or after another
/// phase that it accepts.
pub(super) fn phases_can_be_written(lint: &Lint<'_>) -> Vec<Remark> {
    let Some(rules) = &lint.convention.phase else { return Vec::new() };
    let rulings = lint.rulings_of_status(&lint.lists(lint.stage));
    let (stage, gate) = (lint.stage, lint.gate);
    let first =
        |phase| lint.jointly(&Search { stage, gate, element: None, phase, filled: None }, &rulings);
    // That no status can be written is another fault.
    if matches!(first(None), Joint::Rejected(..)) {
        return Vec::new();
    }
    // For each phase that can be written the write; for the others the rules that together reject it as the
    // first one.
    let mut written: Vec<Scene> = Vec::new();
    let mut later: Vec<(&PhaseValue, Option<Vec<String>>)> = Vec::new();
    for phase in &rules.phases {
        match first(Some(phase.name.as_str())) {
            Joint::Passes(scene) => written.push(scene),
            Joint::Rejected(core, _) => later.push((phase, Some(core))),
            Joint::Open(_) | Joint::TooMany => later.push((phase, None)),
        }
    }
    let mut open: Vec<(&PhaseValue, Searched, Rejected, Option<Vec<String>>)> = Vec::new();
    loop {
        open.clear();
        let known = written.len();
        later.retain(|(phase, core)| match lint.search_write(phase, &rulings, &written) {
            (Searched::Something(scene), _) => {
                written.push(scene);
                false
            }
            (found, rejected) => {
                open.push((phase, found, rejected, core.clone()));
                true
            }
        });
        if written.len() == known {
            break;
        }
    }
    let (mut never, mut remarks) = (Vec::new(), Vec::new());
    for (phase, found, rejected, core) in open {
        // A phase that its own evidence rejects everywhere, or that no move leads to, is another fault.
        let Some((first, witness)) = rejected else { continue };
        let mut rejecting = core.unwrap_or_default();
        rejecting.retain(|rule| !lint.decides_admission(phase, rule));
        if rejecting.is_empty() {
            rejecting = first;
        }
        let name = &phase.name;
        match found {
            Searched::Nothing => never.push((rejecting, name.clone(), witness)),
            unknown => {
                remarks.push(unknown.not_proven(rejecting, &format!("accepts phase {name}")));
            }
        }
    }
    remarks.extend(one_per_cause(never, |ids, phases, witness| {
        let mut imposed = rules.phases.iter().filter(|phase| phase.imposed.is_some());
        let is_imposed = imposed.any(|phase| ids.iter().any(|id| **id == *phase.rule));
        let replaced = if is_imposed { " or replaced" } else { "" };
        let message = format!("phase {phases} is rejected{replaced} in every state that admits it");
        Remark::new(Kind::PhaseNeverWritten, ids, message, Some(witness))
    }));
    remarks
}

pub(super) fn default_phase_is_a_way_out(lint: &Lint<'_>) -> Vec<Remark> {
    let Some(rules) = &lint.convention.phase else { return Vec::new() };
    let Some(default) = &rules.default else { return Vec::new() };
    let relevant = lint.rejecting_rules(rules);
    let rejected = lint.rejecting().filter_map(|clause| {
        let space = lint.stage.space(&[clause.question()]);
        if !space.facts.contains_key(&Fact::Phase { old: false }) {
            return None;
        }
        let witness = lint.first_scenes(&space).find_map(|mut scene| {
            lint.stage.set_phase(&mut scene.object, default);
            let rejected = lint.stage.holds(&scene, &clause.question())
                && lint.rejection(&scene, &relevant)?.iter().any(|rule| rule == clause.id);
            rejected.then(|| scene.to_yaml())
        })?;
        let message =
            format!("the default phase {default} is rejected, but every state must have a way out");
        let rules = vec![clause.id.to_owned()];
        Some(Remark::new(Kind::NoWayOut, rules, message, Some(witness)))
    });
    rejected.collect()
}

impl<'c> Lint<'c> {
    /// The scenes of a space, as many as are tried through both webhooks.
    pub(super) fn scenes<'s>(&'s self, space: &'s Space) -> impl Iterator<Item = Scene> + 's {
        let numbers = space.scattered(MAX_SEARCH).take(MAX_WRITES);
        self.stage.scenes(space, numbers.inspect(|_| self.count(1)))
    }

    /// The first scenes of a space.
    pub(super) fn first_scenes<'s>(&'s self, space: &'s Space) -> impl Iterator<Item = Scene> + 's {
        let size = space.size().unwrap_or(MAX_SEARCH).min(MAX_SEARCH);
        self.count(size);
        self.stage.scenes(space, 0..size)
    }

    /// The rules that can reject a write of the phase. Rejections by other rules, such as those about members
    /// of conditions, do not count: the values of these members are only examples.
    pub(super) fn rejecting_rules(&self, rules: &PhaseRules) -> Vec<String> {
        let clauses = self.clauses.iter().filter(|clause| clause.can_reject());
        let phases = rules.phases.iter().map(|phase| &*phase.rule);
        let moves = rules.moves.iter().flat_map(|moves| &moves.action);
        let fields = self.convention.fields.iter().filter(|field| *field.path == rules.path);
        let of_phase = phases.chain(moves.map(|sanction| &*sanction.rule));
        let others = of_phase.chain(fields.map(|field| &*field.check.rule));
        clauses.map(|clause| clause.id).chain(others).map(str::to_owned).collect()
    }

    /// Searches for a state in which a write of a phase is accepted, also after one of these writes. Also
    /// returns the first state that its evidence and the moves admit, and the rules that reject it.
    ///
    /// All rules may have too many combinations. So the search starts with the evidence of the phase, and
    /// adds the rules that reject what it tries. If it tries all combinations and these rules reject each
    /// of them, then other facts make no difference.
    fn search_write(
        &self,
        phase: &PhaseValue,
        rulings: &[Ruling<'_>],
        written: &[Scene],
    ) -> (Searched, Rejected) {
        let relevant: Vec<String> = rulings.iter().map(|ruling| ruling.id.to_owned()).collect();
        let mut added: Vec<&Ruling<'_>> = Vec::new();
        let mut first = None;
        loop {
            let necessary = phase.necessary.iter().map(Question::plain);
            let asks = added.iter().flat_map(|ruling| ruling.questions(false));
            let questions: Vec<Question<'_>> = necessary.chain(asks).collect();
            let mut space = self.stage.space(&questions);
            space.facts.shift_remove(&Fact::Phase { old: false });
            let mut rejecting: BTreeSet<String> = BTreeSet::new();
            let scenes = self.scenes(&space).filter(|scene| self.stage.is_real(scene));
            // A phase that was not written is not stored.
            let possible = scenes.filter(|scene| {
                let stored = scene.old.as_ref().and_then(|old| self.stage.phase_of(old));
                stored.is_none()
                    || written.iter().any(|write| self.stage.phase_of(&write.object) == stored)
            });
            for mut scene in possible {
                let before = self.before(&scene, &relevant, written);
                self.stage.set_phase(&mut scene.object, &phase.name);
                let later = before.into_iter().map(|old| Scene { old: Some(old), ..scene.clone() });
                for scene in [scene.clone()].into_iter().chain(later) {
                    let Some(rules) = self.refusal(&scene, phase, &relevant) else {
                        return (Searched::Something(scene), first);
                    };
                    if first.is_none() && !rules.iter().any(|id| self.decides_admission(phase, id))
                    {
                        first = Some((rules.clone(), scene.to_yaml()));
                    }
                    rejecting.extend(rules);
                }
            }
            rejecting.retain(|id| !added.iter().any(|known| known.id == id));
            let more: Vec<&Ruling<'_>> =
                rulings.iter().filter(|ruling| rejecting.contains(ruling.id)).collect();
            if !more.is_empty() {
                added.extend(more);
                continue;
            }
            let open = space.open || added.iter().any(|ruling| !ruling.decided);
            let found = match space.size() {
                Some(size) if size <= MAX_WRITES && open => Searched::Open,
                Some(size) if size <= MAX_WRITES => Searched::Nothing,
                _ => Searched::TooMany,
            };
            return (found, first);
        }
    }

    /// What can be stored before a scene gets another phase: what was written, or the same status without a
    /// phase or with a phase that was written, if no rule rejects it.
    fn before(&self, scene: &Scene, relevant: &[String], written: &[Scene]) -> Vec<Value> {
        let mut others = relevant.to_vec();
        others.retain(|rule| moves(self).is_none_or(|(_, _, of_moves)| **rule != **of_moves));
        let phases = written.iter().filter_map(|write| self.stage.phase_of(&write.object));
        let similar = [None].into_iter().chain(phases.map(Some)).map(|phase| {
            let mut scene = Scene { old: None, ..scene.clone() };
            if let Some(phase) = phase {
                self.stage.set_phase(&mut scene.object, phase);
            }
            scene
        });
        let accepted = similar.filter(|scene| self.rejection(scene, &others).is_none());
        let of_resource = written.iter().filter(|write| write.plural == scene.plural).cloned();
        accepted.chain(of_resource).map(|scene| scene.object).collect()
    }

    /// Whether a rule is that of the phase's evidence or of the moves.
    fn decides_admission(&self, phase: &PhaseValue, rule: &str) -> bool {
        *phase.rule == *rule || moves(self).is_some_and(|(_, _, of_moves)| **of_moves == *rule)
    }

    /// The rules that reject the write of a phase, or that of the phase that replaces it.
    fn refusal(&self, scene: &Scene, phase: &PhaseValue, relevant: &[String]) -> Rules {
        let replaced = self.stage.replaced(scene, &phase.name).map(|by| vec![by.rule.to_string()]);
        replaced.or_else(|| self.rejection(scene, relevant))
    }

    /// The rules that reject the write of a scene. `None` if they accept it.
    fn rejection(&self, scene: &Scene, relevant: &[String]) -> Rules {
        let (_, mut rules) = Write::of(&self.stage, scene).review(self.gate.policies(Action::Deny));
        rules.retain(|rule| relevant.contains(rule));
        (!rules.is_empty()).then_some(rules)
    }

    /// The fault of a predicate that provably holds in no state.
    pub(super) fn never_holds(
        &self,
        question: Question<'_>,
        rules: Vec<String>,
        message: String,
    ) -> Option<Remark> {
        let never = matches!(self.search(question), Searched::Nothing);
        never.then(|| Remark::new(Kind::NeverFires, rules, message, self.nearest(question).1))
    }

    /// Searches all versions for a state in which a predicate holds.
    pub(super) fn search(&self, question: Question<'_>) -> Searched {
        let mut found = Searched::Nothing;
        for stage in self.stages_of(question) {
            match self.search_in(stage, question) {
                found @ Searched::Something(_) => return found,
                Searched::Nothing => {}
                unknown => found = unknown,
            }
        }
        found
    }

    fn search_in(&self, stage: Stage<'_>, question: Question<'_>) -> Searched {
        let mut space = stage.space(&[question]);
        let Some(size) = space.size() else { return Searched::TooMany };
        // The second time, the stored conditions also differ in members that no predicate asks for.
        for touched in [false, true].into_iter().take(if space.changed > 0 { 2 } else { 1 }) {
            space.touched = touched;
            let mut numbers = space.scattered(MAX_SEARCH).inspect(|_| self.count(1));
            let holds = |scene: &Scene| stage.holds(scene, &question);
            let first = stage.scenes(&space, numbers.by_ref().take(FEW)).find(holds);
            let found = if first.is_some() || size <= FEW {
                first
            } else {
                let climbed = self.climb(stage, &space, question).filter(holds);
                climbed.or_else(|| stage.scenes(&space, numbers).find(holds))
            };
            if let Some(scene) = found {
                return Searched::Something(scene);
            }
            if size > MAX_SEARCH {
                return Searched::TooMany;
            }
        }
        if space.open { Searched::Open } else { Searched::Nothing }
    }

    /// Changes one fact after the other, as long as more parts of a predicate hold. This finds the one state in
    /// thousands of a rule that requires many conditions.
    fn climb(&self, stage: Stage<'_>, space: &Space, question: Question<'_>) -> Option<Scene> {
        let parts = question.predicate.conjuncts();
        let rated = |combination: &[usize]| {
            self.count(1);
            let scene = stage.scene(space, combination)?;
            let held = stage.look(&scene, question.list, |facts| {
                parts.iter().filter(|part| facts.ask(part) == Truth::True).count()
            });
            Some((held?, scene))
        };
        let mut chosen = vec![0; space.facts.len()];
        let mut best = rated(&chosen);
        for (at, answers) in space.facts.values().enumerate() {
            for answer in 1..answers.len() {
                let mut other = chosen.clone();
                other[at] = answer;
                let next = rated(&other);
                let held = |rated: &Option<(usize, Scene)>| rated.as_ref().map(|(held, _)| *held);
                if held(&next) > held(&best) {
                    (chosen, best) = (other, next);
                }
            }
        }
        best.map(|(_, scene)| scene)
    }

    /// The state in which the most parts of a predicate hold that never holds as a whole.
    pub(super) fn nearest(&self, question: Question<'_>) -> (String, Option<String>) {
        let none = "no state violates this rule".to_owned();
        let Some(stage) = self.stages_of(question).next() else { return (none, None) };
        let space = stage.space(&[question]);
        let parts = question.predicate.conjuncts();
        let rated = stage.scenes(&space, space.scattered(MAX_WRITES)).map(|scene| {
            let held = parts
                .iter()
                .filter(|predicate| stage.holds(&scene, &Question { predicate, ..question }));
            (held.count(), scene)
        });
        // The first of those with most.
        let best = rated.reduce(|best, next| if next.0 > best.0 { next } else { best });
        let Some((count, scene)) = best else { return (none, None) };
        let message = match parts.len() {
            0 | 1 => none,
            all => format!("{none}; the nearest one satisfies {count} of its {all} parts"),
        };
        (message, Some(scene.to_yaml()))
    }
}

/// The rules that reject a write; `None` if they accept it.
type Rules = Option<Vec<String>>;

/// The rules that reject the first state that admits a phase, and that state.
type Rejected = Option<(Vec<String>, String)>;

/// The result of a search.
pub(super) enum Searched {
    Something(Scene),
    Nothing,
    TooMany,
    /// Nothing, but the combinations do not represent all values.
    Open,
}

impl Searched {
    /// The note about a search for a state that does something.
    fn not_proven(self, rules: Vec<String>, does: &str) -> Remark {
        match self {
            Self::TooMany => {
                Remark::not_proven(rules, &format!("the search for a state that {does}"))
            }
            _ => Remark::open(rules, &format!("state was found that {does}")),
        }
    }
}

/// Whether a rule requires a polarity that no type of its list has and that the spec cannot set.
fn waits_for_type(clause: &Clause<'_>) -> bool {
    let list = clause.list.filter(|list| list.polarity_from.is_empty());
    list.is_some_and(|list| {
        clause.when.questions().into_iter().any(|word| match word {
            AnyWord::ElementPolarity(word) => {
                let mut known = list.types.values().filter_map(|kind| kind.polarity);
                !known.any(|own| word.polarity.contains(&own))
            }
            _ => false,
        })
    })
}
