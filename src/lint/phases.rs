//! Every state admits a phase, every phase has a state, and a repair ends somewhere.

use super::rules::plain;
use super::{Kind, Lint};
use crate::explain::{Answer, Fact, PhaseOutcome, Space, Table, has_evidence};
use crate::policy::convention::PhaseRules;

impl Lint<'_> {
    pub(super) fn phases(&mut self) {
        let convention = self.convention;
        let Some(rules) = convention.phase.as_ref().filter(|rules| has_evidence(rules)) else {
            return;
        };
        let table = match Table::of_phase(convention, rules) {
            Ok(table) => table,
            Err(_) => return self.not_proven(Vec::new(), "the truth table of the phase"),
        };
        self.combinations += table.rows.len();
        self.states(rules, &table);
        self.stable(rules, &table);
        self.evidence(rules, &table);
    }

    fn states(&mut self, rules: &PhaseRules, table: &Table<PhaseOutcome>) {
        let nothing = |outcome: &PhaseOutcome| !outcome.admissible.contains(&true);
        if let Some((number, _)) = table.iter().find(|(_, outcome)| nothing(outcome)) {
            let count = table.iter().filter(|(_, outcome)| nothing(outcome)).count();
            let phases = rules.phases.iter().map(|phase| phase.rule.clone()).collect();
            let message = format!("{count} of {} states admit no phase at all", table.rows.len());
            let witness = self.witness(table, number, None);
            self.say(Kind::NoAdmissiblePhase, phases, message, witness);
        }
        for (at, phase) in rules.phases.iter().enumerate() {
            let admitted = |outcome: &PhaseOutcome| outcome.admissible.get(at) == Some(&true);
            if !table.iter().any(|(_, outcome)| admitted(outcome)) {
                let message = format!("phase {} is admissible in no state", phase.name);
                let witness = table
                    .iter()
                    .next()
                    .and_then(|(number, _)| self.witness(table, number, Some(&phase.name)));
                self.say(Kind::UnreachablePhase, vec![phase.rule.clone()], message, witness);
                continue;
            }
            let repair = |outcome: &PhaseOutcome| outcome.repairs.get(at).copied().flatten();
            let unrepaired = table.iter().find(|(_, outcome)| {
                !admitted(outcome) && outcome.imposed.is_none() && repair(outcome).is_none()
            });
            if let Some((number, _)) = unrepaired {
                let name = &phase.name;
                let message = format!(
                    "there is a state in which Repair finds nothing in the place of phase {name}"
                );
                let witness = self.witness(table, number, Some(name));
                self.say(Kind::RepairFindsNothing, vec![phase.rule.clone()], message, witness);
            }
            let refused =
                |outcome: &PhaseOutcome| outcome.imposed == Some(at) && !admitted(outcome);
            if let Some((number, _)) = table.iter().find(|(_, outcome)| refused(outcome)) {
                let message = format!(
                    "phase {} is imposed where its own evidence contradicts it",
                    phase.name
                );
                let witness = self.witness(table, number, Some(&phase.name));
                self.say(Kind::RepairNotAdmissible, vec![phase.rule.clone()], message, witness);
            }
            let astray = table.iter().find(|(_, outcome)| {
                repair(outcome).is_some_and(|to| outcome.admissible.get(to) != Some(&true))
            });
            if let Some((number, outcome)) = astray {
                let to = repair(outcome).and_then(|to| rules.phases.get(to));
                let to = to.map(|phase| phase.name.as_str()).unwrap_or_default();
                let message = format!(
                    "Repair chooses {to} in the place of {}, and {to} is not admissible there",
                    phase.name
                );
                let witness = self.witness(table, number, Some(&phase.name));
                self.say(Kind::RepairNotAdmissible, vec![phase.rule.clone()], message, witness);
            }
        }
    }

    /// What is imposed or chosen by Repair stays at the next write, whose stored phase it is: else each
    /// write would have another phase, and none of them would be the writer's.
    fn stable(&mut self, rules: &PhaseRules, table: &Table<PhaseOutcome>) {
        let mut said: Vec<usize> = Vec::new();
        for (number, outcome) in table.iter() {
            let chosen = match outcome.imposed {
                Some(imposed) => vec![imposed],
                None => outcome.repairs.iter().copied().flatten().collect(),
            };
            for chosen in chosen {
                let Some(phase) = rules.phases.get(chosen).filter(|_| !said.contains(&chosen))
                else {
                    continue;
                };
                let Some(next) = next_write(&table.space, number, &phase.name) else { continue };
                let Some(after) = table.outcome(next) else { continue };
                let then = match after.imposed {
                    Some(imposed) => Some(imposed),
                    None if after.admissible.get(chosen) == Some(&true) => None,
                    None => after.repairs.get(chosen).copied().flatten(),
                };
                let Some(then) = then.filter(|then| *then != chosen) else { continue };
                said.push(chosen);
                let how =
                    if outcome.imposed.is_some() { "is imposed" } else { "is Repair's choice" };
                let then = rules.phases.get(then).map(|phase| phase.name.as_str());
                let message = format!(
                    "phase {} {how}, and once it is stored the next write makes it {}",
                    phase.name,
                    then.unwrap_or_default()
                );
                let witness = self.witness(table, next, Some(&phase.name));
                self.say(Kind::NotStable, vec![phase.rule.clone()], message, witness);
            }
        }
    }

    /// Evidence that no state contradicts, or settles, says nothing.
    fn evidence(&mut self, rules: &PhaseRules, table: &Table<PhaseOutcome>) {
        for (at, phase) in rules.phases.iter().enumerate() {
            let always = |outcome: &PhaseOutcome| outcome.admissible.get(at) == Some(&true);
            if phase.necessary.is_some() && table.iter().all(|(_, outcome)| always(outcome)) {
                let name = &phase.name;
                let message =
                    format!("no state contradicts the necessary evidence of phase {name}");
                let first = table.iter().next();
                let witness = first.and_then(|(number, _)| self.witness(table, number, Some(name)));
                self.say(Kind::NeverFires, vec![phase.rule.clone()], message, witness);
            }
            if let Some(imposed) = &phase.imposed
                && !table.iter().any(|(_, outcome)| outcome.imposed == Some(at))
            {
                let message = format!("phase {} is imposed in no state", phase.name);
                let (_, nearest) = self.nearest(plain(&imposed.when));
                self.say(Kind::NeverFires, vec![phase.rule.clone()], message, nearest);
            }
        }
        for phase in &rules.phases {
            let Some(sufficient) = &phase.sufficient else { continue };
            if self.somewhere(plain(sufficient)) == Some(false) {
                let name = &phase.name;
                let message =
                    format!("no state settles phase {name}: its sufficient evidence never holds");
                let (_, nearest) = self.nearest(plain(sufficient));
                self.say(Kind::NeverFires, vec![phase.rule.clone()], message, nearest);
            }
        }
        for (number, step) in (1..).zip(&rules.repair) {
            let Some(when) = &step.when else { continue };
            if self.somewhere(plain(when)) == Some(false) {
                let message = format!("step {number} of the repair applies in no state");
                let (_, nearest) = self.nearest(plain(when));
                self.say(Kind::NeverFires, Vec::new(), message, nearest);
            }
        }
    }

    /// The object of a row, with a phase.
    fn witness(
        &self,
        table: &Table<PhaseOutcome>,
        number: usize,
        phase: Option<&str>,
    ) -> Option<String> {
        let mut scene = self.stage.scene(&table.space, &table.space.combination(number))?;
        if let Some(phase) = phase {
            self.stage.set_phase(&mut scene.object, phase);
        }
        Some(scene.to_yaml())
    }
}

/// The combination of the write that follows on one, of the same status with the phase that came of it: what
/// is asked of the stored object has the answer that the object had. `None` where that is none of the
/// answers that are told apart.
fn next_write(space: &Space, number: usize, phase: &str) -> Option<usize> {
    let combination = space.combination(number);
    let mut places = space.facts.iter().zip(&space.answers).zip(&combination);
    places.try_fold(0, |number, ((fact, answers), at)| {
        let answer = |wanted: &Fact| space.answer(wanted, &combination);
        let place = |wanted: &Answer| answers.iter().position(|known| known == wanted);
        let at = match fact {
            Fact::Phase { old: true } => answers.iter().position(
                |known| matches!(known, Answer::Value { value, .. } if value.as_str() == Some(phase)),
            )?,
            Fact::Condition { old: true, list, kind } => {
                let (list, kind) = (list.clone(), kind.clone());
                place(answer(&Fact::Condition { old: false, list, kind })?)?
            }
            Fact::Field { old: true, path } => {
                place(answer(&Fact::Field { old: false, path: path.clone() })?)?
            }
            _ => *at,
        };
        Some(number * answers.len() + at)
    })
}
