//! Every state admits a phase, every phase has a state, and a repair ends somewhere.

use super::rules::plain;
use super::{Kind, Lint};
use crate::explain::{PhaseOutcome, Table, has_evidence};
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
            // Stable by the same token: an admissible phase is not repaired again.
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

    /// Evidence that no state contradicts, or settles, says nothing.
    fn evidence(&mut self, rules: &PhaseRules, table: &Table<PhaseOutcome>) {
        for (at, phase) in rules.phases.iter().enumerate() {
            let always = |outcome: &PhaseOutcome| outcome.admissible.get(at) == Some(&true);
            if phase.necessary.is_some() && table.iter().all(|(_, outcome)| always(outcome)) {
                let name = &phase.name;
                let message =
                    format!("no state contradicts the necessary evidence of phase {name}");
                self.say(Kind::NeverFires, vec![phase.rule.clone()], message, None);
            }
            if phase.imposed.is_some()
                && !table.iter().any(|(_, outcome)| outcome.imposed == Some(at))
            {
                let message = format!("phase {} is imposed in no state", phase.name);
                self.say(Kind::NeverFires, vec![phase.rule.clone()], message, None);
            }
        }
        for phase in &rules.phases {
            let Some(sufficient) = &phase.sufficient else { continue };
            if self.somewhere(plain(sufficient)) == Some(false) {
                let name = &phase.name;
                let message =
                    format!("no state settles phase {name}: its sufficient evidence never holds");
                self.say(Kind::NeverFires, vec![phase.rule.clone()], message, None);
            }
        }
        for (number, step) in (1..).zip(&rules.repair) {
            let Some(when) = &step.when else { continue };
            if self.somewhere(plain(when)) == Some(false) {
                let message = format!("step {number} of the repair applies in no state");
                self.say(Kind::NeverFires, Vec::new(), message, None);
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
