//! Every rule can fire, every phase can be written, and every state can change to the default phase.

use std::collections::BTreeSet;

use super::gate::Write;
use super::{Kind, Lint, Remark, one_per_cause};
use crate::engine::Action;
use crate::explain::{Clause, Fact, Question, Scene, Space, Stage, space_of};
use crate::language::{AnyWord, Polarity, Predicate};
use crate::policy::convention::{PhaseRules, PhaseValue};

/// Combinations that a search for one state tries before it gives up. A state that exists is found among
/// the first few hundred.
pub(super) const MAX_SEARCH: usize = 1 << 16;

/// Writes that a search tries through both webhooks.
pub(super) const MAX_WRITES: usize = 1 << 12;

pub(super) fn rules_can_fire(lint: &Lint<'_>) -> Vec<Remark> {
    let unfired = lint.clauses.iter().filter_map(|clause| {
        let rules = vec![clause.id.to_owned()];
        Some(match lint.search(clause.question()) {
            Searched::Something => return None,
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

/// A policy that denies disagreements accepts each phase in some state.
pub(super) fn phases_can_be_written(lint: &Lint<'_>) -> Vec<Remark> {
    let Some(rules) = &lint.convention.phase else { return Vec::new() };
    let relevant = lint.rejecting_rules(rules);
    let (mut never, mut remarks) = (Vec::new(), Vec::new());
    for phase in &rules.phases {
        let (found, rejected) = lint.search_write(rules, phase, &relevant);
        let Some((mut rejecting, witness)) = rejected else { continue };
        // A phase that its own evidence rejects everywhere is another fault.
        rejecting.retain(|rule| **rule != *phase.rule);
        if rejecting.is_empty() {
            continue;
        }
        let name = &phase.name;
        match found {
            Searched::Something => {}
            Searched::Nothing => never.push((rejecting, name.clone(), witness)),
            unknown => {
                remarks.push(unknown.not_proven(rejecting, &format!("accepts phase {name}")));
            }
        }
    }
    remarks.extend(one_per_cause(never, |rules, phases, witness| {
        let message = format!("phase {phases} is rejected in every state that admits it");
        Remark::new(Kind::PhaseNeverWritten, rules, message, Some(witness))
    }));
    remarks
}

pub(super) fn default_phase_is_a_way_out(lint: &Lint<'_>) -> Vec<Remark> {
    let Some(rules) = &lint.convention.phase else { return Vec::new() };
    let Some(default) = &rules.default else { return Vec::new() };
    let relevant = lint.rejecting_rules(rules);
    let rejected = lint.rejecting().filter_map(|clause| {
        let space = space_of(lint.convention, lint.stage.version, &[clause.question()]);
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
        let fields = self.convention.fields.iter().filter(|field| *field.path == rules.path);
        let fields = fields.map(|field| field.check.rule.to_string());
        let clauses = self.clauses.iter().filter(|clause| clause.can_reject());
        let clauses = clauses.map(|clause| clause.id.to_owned());
        let phases = rules.phases.iter().map(|phase| phase.rule.to_string());
        let moves = rules.moves.iter().flat_map(|moves| &moves.action);
        let moves = moves.map(|sanction| sanction.rule.to_string());
        clauses.chain(phases).chain(moves).chain(fields).collect()
    }

    pub(super) fn write<'s>(&self, scene: &'s Scene) -> Write<'s>
    where
        'c: 's,
    {
        Write::of(scene, self.stage.resource(&scene.plural))
    }

    /// Searches for a state in which a write of a phase is accepted. Also returns the rules that reject the
    /// first state that was tried, and that state.
    ///
    /// All rules may have too many combinations. So the search starts with the evidence of the phase, and
    /// adds the rules that reject what it tries. If it tries all combinations and these rules reject each
    /// of them, then other facts make no difference.
    fn search_write(
        &self,
        rules: &PhaseRules,
        phase: &PhaseValue,
        relevant: &[String],
    ) -> (Searched, Option<(Vec<String>, String)>) {
        let mut added: Vec<&Clause<'_>> = Vec::new();
        let mut first = None;
        loop {
            let questions = phase.necessary.iter().map(Question::plain);
            let questions = questions.chain(added.iter().map(|clause| clause.question()));
            let questions: Vec<Question<'_>> = questions.collect();
            let mut space = space_of(self.convention, self.stage.version, &questions);
            space.facts.shift_remove(&Fact::Phase { old: false });
            if rules.moves.is_some() {
                space.add_stored_phase(self.convention);
            }
            let mut rejecting: BTreeSet<String> = BTreeSet::new();
            for mut scene in self.scenes(&space) {
                self.stage.set_phase(&mut scene.object, &phase.name);
                let Some(rules) = self.rejection(&scene, relevant) else {
                    return (Searched::Something, first);
                };
                first.get_or_insert_with(|| (rules.clone(), scene.to_yaml()));
                rejecting.extend(rules);
            }
            let is_known = |clause: &&Clause<'_>| added.iter().any(|known| known.id == clause.id);
            let more = self.rejecting().filter(|clause| rejecting.contains(clause.id));
            let more: Vec<&Clause<'_>> = more.filter(|clause| !is_known(clause)).collect();
            if !more.is_empty() {
                added.extend(more);
                continue;
            }
            let found = match space.size() {
                Some(size) if size <= MAX_WRITES && space.open => Searched::Open,
                Some(size) if size <= MAX_WRITES => Searched::Nothing,
                _ => Searched::TooMany,
            };
            return (found, first);
        }
    }

    /// The rules that reject the write of a scene. `None` if they accept it.
    fn rejection(&self, scene: &Scene, relevant: &[String]) -> Option<Vec<String>> {
        let (_, mut rules) = self.write(scene).review(self.gate.policies(Action::Deny));
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
    fn search(&self, question: Question<'_>) -> Searched {
        let mut found = Searched::Nothing;
        for stage in self.stages(&[question]) {
            match self.search_in(stage, question) {
                Searched::Something => return Searched::Something,
                Searched::Nothing => {}
                unknown => found = unknown,
            }
        }
        found
    }

    fn search_in(&self, stage: Stage<'_>, question: Question<'_>) -> Searched {
        let mut space = space_of(self.convention, stage.version, &[question]);
        let Some(size) = space.size() else { return Searched::TooMany };
        // The second time, the stored conditions also differ in members that no predicate asks for.
        for touched in [false, true].into_iter().take(if space.changed > 0 { 2 } else { 1 }) {
            space.touched = touched;
            let numbers = space.scattered(MAX_SEARCH).inspect(|_| self.count(1));
            if stage.scenes(&space, numbers).any(|scene| stage.holds(&scene, &question)) {
                return Searched::Something;
            }
            if size > MAX_SEARCH {
                return Searched::TooMany;
            }
        }
        if space.open { Searched::Open } else { Searched::Nothing }
    }

    /// The state in which the most parts of a predicate hold that never holds as a whole.
    pub(super) fn nearest(&self, question: Question<'_>) -> (String, Option<String>) {
        let none = "no state violates this rule".to_owned();
        let Some(stage) = self.stages(&[question]).first().copied() else { return (none, None) };
        let space = space_of(self.convention, stage.version, &[question]);
        let parts = question.predicate.conjuncts();
        let rated = stage.scenes(&space, space.scattered(MAX_WRITES)).map(|scene| {
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

/// The result of a search.
enum Searched {
    Something,
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
        let known = |wanted: &[Polarity]| {
            list.types.values().any(|kind| kind.polarity.is_some_and(|own| wanted.contains(&own)))
        };
        clause.when.questions().into_iter().any(|word| match word {
            AnyWord::ElementPolarity(word) => !known(&word.polarity),
            _ => false,
        })
    })
}
