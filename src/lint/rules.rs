//! No rule is dead, and none contradicts another.

use serde_json::Value;

use super::gate::{Mode, Refused};
use super::{Kind, Lint};
use crate::explain::{Clause, Fact, Question, Scene, Space, Stage, space_of};
use crate::language::{Asks, Polarity, Predicate};
use crate::policy::convention::{ConditionList, PhaseRules, Trigger};

/// A search for one state among many stops here; then it is said that nothing was proven. What
/// exists at all is found within the first few hundred.
pub(super) const MAX_SEARCH: usize = 1 << 16;

/// The rest of a phase's search: states that are tried in full, through both webhooks.
pub(super) const MAX_WRITES: usize = 1 << 12;

impl Lint<'_> {
    pub(super) fn rules(&mut self) {
        self.dead();
        self.contradictions();
        if let Some(rules) = &self.convention.phase {
            self.never_written(rules);
            self.way_out(rules);
        }
    }

    fn dead(&mut self) {
        for clause in self.clauses.clone() {
            let id = vec![clause.id.to_owned()];
            match self.search(&[clause.question()], |firing| firing[0]) {
                Found::Something => {}
                Found::Nothing if waits_for_type(&clause) => {
                    let message = "no type of this convention has the polarity that the rule asks for; one that extends it may add some";
                    self.say(Kind::WaitsForType, id, message, None);
                }
                Found::Nothing => {
                    let (message, witness) = self.nearest(clause.question());
                    self.say(Kind::NeverFires, id, message, witness);
                }
                Found::TooMany => self.not_proven(id, "the question whether this rule ever fires"),
                Found::Open => {
                    let message = "no state was found that violates this rule, but not all that it asks for can be listed";
                    self.say(Kind::NotProven, id, message, None);
                }
            }
        }
    }

    /// Rules that refuse whenever they are violated, two by two: there is a state that violates
    /// neither.
    fn contradictions(&mut self) {
        let clauses = self.clauses.clone();
        let refusing: Vec<&Clause<'_>> = clauses
            .iter()
            .filter(|clause| clause.refuses() && !clause.of_element)
            .filter(|clause| {
                matches!(clause.trigger, None | Some(Trigger::State | Trigger::Introduced))
            })
            .collect();
        // What is wrong with one rule alone is said once, and not of every pair that it is in.
        let mut sound = Vec::new();
        for one in refusing {
            if self.nowhere(&[one.question()], |firing| !firing[0]) {
                let witness = self.any_scene(&[one.question()]);
                let id = vec![one.id.to_owned()];
                self.say(Kind::Contradiction, id, "this rule refuses every state", witness);
            } else if !self.never_fires(one) {
                sound.push(one);
            }
        }
        for (at, one) in sound.iter().enumerate() {
            for other in sound.iter().skip(at + 1) {
                let questions = [one.question(), other.question()];
                let neither = |firing: &[bool]| !firing[0] && !firing[1];
                if self.nowhere(&questions, neither) {
                    let witness = self.any_scene(&questions);
                    let ids = vec![one.id.to_owned(), other.id.to_owned()];
                    let message = "one of these rules refuses whatever the other allows";
                    self.say(Kind::Contradiction, ids, message, witness);
                }
            }
        }
    }

    /// Whether that was said of a rule already.
    fn never_fires(&self, clause: &Clause<'_>) -> bool {
        let mut dead = self.remarks.iter().filter(|remark| remark.kind == Kind::NeverFires);
        dead.any(|remark| remark.rules.iter().any(|id| id == clause.id))
    }

    /// For each phase there is a state in which a policy that denies disagreements lets it be
    /// written.
    fn never_written(&mut self, rules: &PhaseRules) {
        let clauses = self.clauses.clone();
        let about: Vec<&Clause<'_>> = clauses.iter().filter(|clause| !clause.of_element).collect();
        let relevant = self.refusing_rules(rules);
        for phase in &rules.phases {
            let mut refusals: Vec<String> = Vec::new();
            let mut witness = None;
            // The evidence of the phase, and what stored phases it may follow; then what is asked by those
            // that refuse it there; then the rest, of which there may be more than can be tried.
            let written = [0, 1, 2].into_iter().any(|step| {
                let asks = |clause: &&&Clause<'_>| match step {
                    0 => false,
                    1 => refusals.iter().any(|id| id == clause.id),
                    _ => clause.refuses(),
                };
                let mut questions: Vec<Question<'_>> = phase.necessary.iter().map(plain).collect();
                questions.extend(about.iter().filter(asks).map(|clause| clause.question()));
                let space = &self.space(&questions, true);
                let size = space.size().unwrap_or(MAX_SEARCH);
                Space::scattered(size).take(MAX_WRITES).any(|number| {
                    self.combinations += 1;
                    let scene = self.stage.scene(space, &space.combination(number));
                    let Some(mut scene) = scene else { return false };
                    self.stage.set_phase(&mut scene.object, &phase.name);
                    match self.refusal(Mode::Deny, &scene, &relevant) {
                        Some(rules) => {
                            if witness.is_none() {
                                (witness, refusals) = (Some(scene.to_yaml()), rules);
                            }
                            false
                        }
                        None => true,
                    }
                })
            });
            // That its own evidence refuses it everywhere was said already.
            if !written && refusals.iter().any(|rule| *rule != phase.rule) {
                let message =
                    format!("phase {} is refused in every state in which it may stand", phase.name);
                self.say(Kind::PhaseNeverWritten, refusals, message, witness);
            }
        }
    }

    /// The default phase is a way out of every state.
    fn way_out(&mut self, rules: &PhaseRules) {
        let Some(default) = &rules.default else { return };
        let relevant = self.refusing_rules(rules);
        for clause in self.clauses.clone() {
            let asks = self.space(&[clause.question()], false);
            if !clause.refuses()
                || clause.of_element
                || !asks.facts.contains(&Fact::Phase { old: false })
            {
                continue;
            }
            let size = asks.size().unwrap_or(MAX_SEARCH).min(MAX_SEARCH);
            let refused = (0..size).find_map(|number| {
                let mut scene = self.stage.scene(&asks, &asks.combination(number))?;
                self.stage.set_phase(&mut scene.object, default);
                if !self.stage.holds(&scene, &clause.question()) {
                    return None;
                }
                let refused = self.refusal(Mode::Deny, &scene, &relevant)?;
                refused.iter().any(|rule| rule == clause.id).then_some(scene)
            });
            self.combinations += size;
            if let Some(scene) = refused {
                let message = format!(
                    "the default phase {default} is refused, so that there are states without a way out"
                );
                let id = vec![clause.id.to_owned()];
                self.say(Kind::NoWayOut, id, message, Some(scene.to_yaml()));
            }
        }
    }

    /// The rules whose refusals count here. Others, such as those about the shape of conditions, may
    /// refuse what is made up for the purpose.
    pub(super) fn refusing_rules(&self, rules: &PhaseRules) -> Vec<String> {
        let fields = self.convention.fields.iter().filter(|field| field.path == rules.path);
        let fields = fields.map(|field| field.check.rule.clone());
        let clauses = self.clauses.iter().filter(|clause| clause.refuses());
        let clauses = clauses.map(|clause| clause.id.to_owned());
        let phases = rules.phases.iter().map(|phase| phase.rule.clone());
        let moves = rules.moves.iter().map(|moves| moves.sanction.rule.clone());
        clauses.chain(phases).chain(moves).chain(fields).collect()
    }

    /// The rules that refuse to write the object of a scene over the stored one.
    fn refusal(&self, mode: Mode, scene: &Scene, relevant: &[String]) -> Option<Vec<String>> {
        let resource = self.stage.resource(&scene.plural);
        let old = stored(scene);
        let Err(Refused(rules)) = self.gate.write(mode, &resource, &old, &scene.object) else {
            return None;
        };
        let rules: Vec<String> = rules.into_iter().filter(|rule| relevant.contains(rule)).collect();
        (!rules.is_empty()).then_some(rules)
    }

    /// What the questions ask about, but for the phase itself; with the stored phase where moves
    /// depend on it.
    fn space(&self, questions: &[Question<'_>], settled: bool) -> Space {
        let mut space = space_of(self.convention, self.stage.version, questions);
        if settled {
            space.remove(&Fact::Phase { old: false });
            let moves = self.convention.phase.as_ref().is_some_and(|rules| rules.moves.is_some());
            if moves {
                space.add_stored_phase(self.convention);
            }
        }
        space
    }

    /// Whether a predicate holds in some state; `None` where there are too many to know.
    pub(super) fn somewhere(&mut self, question: Question<'_>) -> Option<bool> {
        match self.search(&[question], |firing| firing[0]) {
            Found::Something => Some(true),
            Found::Nothing => Some(false),
            Found::TooMany | Found::Open => None,
        }
    }

    /// Whether this is so in no state of some version.
    fn nowhere(&mut self, questions: &[Question<'_>], wanted: impl Fn(&[bool]) -> bool) -> bool {
        let mut stages = self.stages(questions).into_iter();
        stages.any(|stage| matches!(self.search_in(stage, questions, &wanted), Found::Nothing))
    }

    /// In all versions together.
    fn search(&mut self, questions: &[Question<'_>], wanted: impl Fn(&[bool]) -> bool) -> Found {
        let mut found = Found::Nothing;
        for stage in self.stages(questions) {
            match self.search_in(stage, questions, &wanted) {
                Found::Something => return Found::Something,
                Found::Nothing => {}
                unknown => found = unknown,
            }
        }
        found
    }

    fn search_in(
        &mut self,
        stage: Stage<'_>,
        questions: &[Question<'_>],
        wanted: impl Fn(&[bool]) -> bool,
    ) -> Found {
        let mut space = space_of(self.convention, stage.version, questions);
        let Some(size) = space.size() else { return Found::TooMany };
        // Once more with stored conditions that are others in all that is not asked of them.
        for touched in [false, true].into_iter().take(if space.changed > 0 { 2 } else { 1 }) {
            space.touched = touched;
            for (tried, number) in Space::scattered(size).enumerate() {
                if tried == MAX_SEARCH {
                    return Found::TooMany;
                }
                self.combinations += 1;
                let Some(scene) = stage.scene(&space, &space.combination(number)) else {
                    continue;
                };
                let firing: Vec<bool> =
                    questions.iter().map(|question| stage.holds(&scene, question)).collect();
                if wanted(&firing) {
                    return Found::Something;
                }
            }
        }
        if space.open { Found::Open } else { Found::Nothing }
    }

    /// What comes nearest to what never holds: of all parts that would have to, it has the most.
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
        let message = match (count, parts.len()) {
            (_, 0 | 1) => format!("{none}; this one does not"),
            (count, all) => format!("{none}; in the nearest, {count} of its {all} parts hold"),
        };
        (message, Some(scene.to_yaml()))
    }

    fn any_scene(&self, questions: &[Question<'_>]) -> Option<String> {
        let space = space_of(self.convention, self.stage.version, questions);
        let mut numbers = 0..space.size()?;
        let scene = numbers.find_map(|number| self.stage.scene(&space, &space.combination(number)));
        scene.map(|scene| scene.to_yaml())
    }
}

/// The stored object of a scene: without facts of its own it is one without a status.
pub(super) fn stored(scene: &Scene) -> Value {
    let bare = || {
        let mut bare = scene.object.clone();
        bare.as_object_mut().map(|members| members.remove("status"));
        bare
    };
    scene.old.clone().unwrap_or_else(bare)
}

/// What came of a search.
enum Found {
    Something,
    Nothing,
    TooMany,
    /// Nothing, but what was tried does not stand for all there is.
    Open,
}

pub(super) fn plain(predicate: &Predicate) -> Question<'_> {
    Question { predicate, list: None, of_element: false }
}

/// Whether a rule asks for a polarity that no type of its list has, nor any that the spec could name.
fn waits_for_type(clause: &Clause<'_>) -> bool {
    let open = |list: &&ConditionList| list.types.polarity_from.is_empty();
    clause.list.filter(open).is_some_and(|list| {
        let mut asked = Polarities::default();
        clause.when.asks(&mut asked);
        let has = |wanted: &&[Polarity]| {
            list.types.known.iter().any(|kind| wanted.contains(&kind.polarity))
        };
        !asked.0.iter().all(has)
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
