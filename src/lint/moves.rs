//! The table of moves, and reasons: what looks like an oversight but may be meant.

use super::gate::{Mode, Refused};
use super::{Kind, Lint};
use crate::policy::convention::{Moves, PhaseRules};

impl Lint<'_> {
    pub(super) fn moves(&mut self) {
        let Some(rules) = &self.convention.phase else { return };
        self.shared_reasons(rules);
        let Some(moves) = &rules.moves else { return };
        let rule = || vec![moves.sanction.rule.clone()];
        let mut reached: Vec<&str> = vec![""];
        reached.extend(rules.default.as_deref());
        let mut at = 0;
        while let Some(from) = reached.get(at).copied() {
            at += 1;
            for phase in &rules.phases {
                if moves.allow(from, &phase.name) && !reached.contains(&phase.name.as_str()) {
                    reached.push(&phase.name);
                }
            }
        }
        for phase in &rules.phases {
            let name = &phase.name;
            let others = || rules.phases.iter().map(|other| other.name.as_str());
            let mut others = others().filter(|other| other != name);
            let another = others.clone().next().unwrap_or_default();
            if !reached.contains(&name.as_str()) {
                let from = rules.default.as_deref().filter(|from| from != name);
                let (refused, witness) = self.a_move(from.unwrap_or(another), name, moves);
                let (kind, more) = match refused {
                    true => (Kind::PhaseNeverEntered, ", and others are refused"),
                    false => (Kind::NoWayIn, ""),
                };
                let message = format!("no move leads to phase {name}{more}");
                self.say(kind, rule(), message, Some(witness));
            }
            if !others.any(|other| moves.allow(name, other)) {
                let message = format!("no move leads out of phase {name}");
                let witness = self.a_move(name, another, moves).1;
                self.say(Kind::NoMoveOut, rule(), message, Some(witness));
            }
        }
    }

    /// A write that makes a move, and whether it is refused for that.
    fn a_move(&self, from: &str, to: &str, moves: &Moves) -> (bool, String) {
        let [mut old, mut new] = [self.stage.bare(), self.stage.bare()];
        self.stage.set_phase(&mut old, from);
        self.stage.set_phase(&mut new, to);
        let written = self.gate.write(Mode::Warn, &self.stage.resource(""), &old, &new);
        let refused = written.is_err_and(|Refused(rules)| rules.contains(&moves.sanction.rule));
        (refused, self.stage.scene_of(new, Some(old), "").to_yaml())
    }

    fn shared_reasons(&mut self, rules: &PhaseRules) {
        let Some(table) = &rules.reason else { return };
        let mut said: Vec<&str> = Vec::new();
        for reason in rules.phases.iter().flat_map(|phase| &phase.reasons) {
            let phases = rules.phases.iter().filter(|phase| phase.reasons.contains(reason));
            let phases: Vec<&str> = phases.map(|phase| phase.name.as_str()).collect();
            if phases.len() > 1 && !said.contains(&reason.as_str()) {
                said.push(reason);
                let message = format!("reason {reason} goes with {}", phases.join(" and "));
                self.say(Kind::SharedReason, vec![table.sanction.rule.clone()], message, None);
            }
            if table.always.contains(reason) {
                let message =
                    format!("reason {reason} goes with every phase, and is listed with one");
                self.say(Kind::SharedReason, vec![table.sanction.rule.clone()], message, None);
            }
        }
    }
}
