//! Every rule can fire, every phase can be written, and the default phase is a way out of every state.

use serde_json::Value;

use super::gate::{Mode, Refused};
use super::{Kind, Lint, Remark};
use crate::explain::{Clause, Fact, Question, Scene, Space, Stage, space_of};
use crate::language::{Asks, Polarity, Predicate};
use crate::policy::convention::PhaseRules;

/// Combinations that a search for one state tries before it gives up. A state that exists is found among
/// the first few hundred.
pub(super) const MAX_SEARCH: usize = 1 << 16;

/// Writes that a search tries through both webhooks.
pub(super) const MAX_WRITES: usize = 1 << 12;

pub(super) fn rules_can_fire(lint: &Lint<'_>) -> Vec<Remark> {
    let unfired = lint.clauses.iter().filter_map(|clause| {
        let rules = vec![clause.id.to_owned()];
        Some(match lint.search(clause.question()) {
            Found::Something => return None,
            Found::Nothing if waits_for_type(clause) => Remark::new(
                Kind::WaitsForType,
                rules,
                "no condition type has the polarity that this rule requires; a convention that extends this one can add such a type",
                None,
            ),
            Found::Nothing => {
                let (message, witness) = lint.nearest(clause.question());
                Remark::new(Kind::NeverFires, rules, message, witness)
            }
            Found::TooMany => Remark::not_proven(rules, "the search for a state that violates this rule"),
            Found::Open => Remark::new(
                Kind::NotProven,
                rules,
                "not proven: no state was found that violates this rule, but not all values can be listed",
                None,
            ),
        })
    });
    unfired.collect()
}

/// A policy that denies disagreements accepts each phase in some state.
pub(super) fn phases_can_be_written(lint: &Lint<'_>) -> Vec<Remark> {
    let Some(rules) = &lint.convention.phase else { return Vec::new() };
    let about: Vec<&Clause<'_>> =
        lint.clauses.iter().filter(|clause| !clause.of_element && clause.refuses()).collect();
    let relevant = lint.refusing_rules(rules);
    let mut remarks = Vec::new();
    for phase in &rules.phases {
        let mut rejecting: Vec<String> = Vec::new();
        let mut witness = None;
        // All rules may have too many combinations. So first try what the evidence of the phase asks, then
        // what the rules ask that reject it there, then everything.
        let written = [0, 1, 2].into_iter().any(|step| {
            let asks = |clause: &&&Clause<'_>| {
                step == 2 || step == 1 && rejecting.iter().any(|id| id == clause.id)
            };
            let mut questions: Vec<Question<'_>> = phase.necessary.iter().map(plain).collect();
            questions.extend(about.iter().filter(asks).map(|clause| clause.question()));
            let mut space = space_of(lint.convention, lint.stage.version, &questions);
            space.remove(&Fact::Phase { old: false });
            if rules.moves.is_some() {
                space.add_stored_phase(lint.convention);
            }
            lint.scenes(&space).any(|mut scene| {
                lint.stage.set_phase(&mut scene.object, &phase.name);
                let Some(rules) = lint.rejection(&scene, &relevant) else { return true };
                if witness.is_none() {
                    (witness, rejecting) = (Some(scene.to_yaml()), rules);
                }
                false
            })
        });
        // A phase that its own evidence rejects everywhere is another fault.
        if !written && rejecting.iter().any(|rule| **rule != *phase.rule) {
            let message = format!("phase {} is rejected in every state that admits it", phase.name);
            remarks.push(Remark::new(Kind::PhaseNeverWritten, rejecting, message, witness));
        }
    }
    remarks
}

pub(super) fn default_phase_is_a_way_out(lint: &Lint<'_>) -> Vec<Remark> {
    let Some(rules) = &lint.convention.phase else { return Vec::new() };
    let Some(default) = &rules.default else { return Vec::new() };
    let relevant = lint.refusing_rules(rules);
    let clauses = lint.clauses.iter().filter(|clause| clause.refuses() && !clause.of_element);
    let rejected = clauses.filter_map(|clause| {
        let space = space_of(lint.convention, lint.stage.version, &[clause.question()]);
        if !space.facts.contains(&Fact::Phase { old: false }) {
            return None;
        }
        let size = space.size().unwrap_or(MAX_SEARCH).min(MAX_SEARCH);
        lint.count(size);
        let witness = (0..size).find_map(|number| {
            let mut scene = lint.stage.scene(&space, &space.combination(number))?;
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

impl Lint<'_> {
    /// The scenes of a space, as many as are tried through both webhooks.
    pub(super) fn scenes<'s>(&'s self, space: &'s Space) -> impl Iterator<Item = Scene> + 's {
        let numbers = Space::scattered(space.size().unwrap_or(MAX_SEARCH)).take(MAX_WRITES);
        numbers.filter_map(|number| {
            self.count(1);
            self.stage.scene(space, &space.combination(number))
        })
    }

    /// The rules whose rejections count. Others, such as those about the members of conditions, may reject
    /// values that lint made up.
    pub(super) fn refusing_rules(&self, rules: &PhaseRules) -> Vec<String> {
        let fields = self.convention.fields.iter().filter(|field| field.path == rules.path);
        let fields = fields.map(|field| field.check.rule.to_string());
        let clauses = self.clauses.iter().filter(|clause| clause.refuses());
        let clauses = clauses.map(|clause| clause.id.to_owned());
        let phases = rules.phases.iter().map(|phase| phase.rule.to_string());
        let moves = rules.moves.iter().map(|moves| moves.sanction.rule.to_string());
        clauses.chain(phases).chain(moves).chain(fields).collect()
    }

    /// The rules that reject the write of a scene. `None` if they accept it.
    fn rejection(&self, scene: &Scene, relevant: &[String]) -> Option<Vec<String>> {
        let resource = self.stage.resource(&scene.plural);
        let written = self.gate.write(Mode::Deny, &resource, &stored(scene), &scene.object);
        let Err(Refused(mut rules)) = written else { return None };
        rules.retain(|rule| relevant.contains(rule));
        (!rules.is_empty()).then_some(rules)
    }

    /// Whether a predicate holds in some state. `None` if there are too many states.
    pub(super) fn somewhere(&self, question: Question<'_>) -> Option<bool> {
        match self.search(question) {
            Found::Something => Some(true),
            Found::Nothing => Some(false),
            Found::TooMany | Found::Open => None,
        }
    }

    /// Searches all versions for a state in which a predicate holds.
    fn search(&self, question: Question<'_>) -> Found {
        let mut found = Found::Nothing;
        for stage in self.stages(&[question]) {
            match self.search_in(stage, question) {
                Found::Something => return Found::Something,
                Found::Nothing => {}
                unknown => found = unknown,
            }
        }
        found
    }

    fn search_in(&self, stage: Stage<'_>, question: Question<'_>) -> Found {
        let mut space = space_of(self.convention, stage.version, &[question]);
        let Some(size) = space.size() else { return Found::TooMany };
        // The second time, the stored conditions also differ in members that no predicate asks for.
        for touched in [false, true].into_iter().take(if space.changed > 0 { 2 } else { 1 }) {
            space.touched = touched;
            for (tried, number) in Space::scattered(size).enumerate() {
                if tried == MAX_SEARCH {
                    return Found::TooMany;
                }
                self.count(1);
                let scene = stage.scene(&space, &space.combination(number));
                if scene.is_some_and(|scene| stage.holds(&scene, &question)) {
                    return Found::Something;
                }
            }
        }
        if space.open { Found::Open } else { Found::Nothing }
    }

    /// The state in which the most parts of a predicate hold that never holds as a whole.
    pub(super) fn nearest(&self, question: Question<'_>) -> (String, Option<String>) {
        let none = "no state violates this rule".to_owned();
        let Some(stage) = self.stages(&[question]).first().copied() else { return (none, None) };
        let space = space_of(self.convention, stage.version, &[question]);
        let parts = question.predicate.conjuncts();
        let scenes = Space::scattered(space.size().unwrap_or(MAX_WRITES)).take(MAX_WRITES);
        let scenes = scenes.filter_map(|number| stage.scene(&space, &space.combination(number)));
        let rated = scenes.map(|scene| {
            let holds =
                |part: &&Predicate| stage.holds(&scene, &Question { predicate: part, ..question });
            (parts.iter().filter(holds).count(), scene)
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

/// The stored object of a scene, or one without a status.
pub(super) fn stored(scene: &Scene) -> Value {
    let bare = || {
        let mut bare = scene.object.clone();
        bare.as_object_mut().map(|members| members.remove("status"));
        bare
    };
    scene.old.clone().unwrap_or_else(bare)
}

/// The result of a search.
enum Found {
    Something,
    Nothing,
    TooMany,
    /// Nothing, but the combinations do not stand for all values.
    Open,
}

pub(super) fn plain(predicate: &Predicate) -> Question<'_> {
    Question { predicate, list: None, of_element: false }
}

/// Whether a rule requires a polarity that no type of its list has and that the spec cannot set.
fn waits_for_type(clause: &Clause<'_>) -> bool {
    let list = clause.list.filter(|list| list.types.polarity_from.is_empty());
    list.is_some_and(|list| {
        let mut asked = Polarities::default();
        clause.when.asks(&mut asked);
        let known = |wanted: &&[Polarity]| {
            list.types.known.iter().any(|kind| wanted.contains(&kind.polarity))
        };
        !asked.0.iter().all(known)
    })
}

/// The polarities that a predicate asks for.
#[derive(Default)]
struct Polarities<'p>(Vec<&'p [Polarity]>);

impl<'p> Asks<'p> for Polarities<'p> {
    fn polarity(&mut self, polarities: &'p [Polarity]) {
        self.0.push(polarities);
    }
}
