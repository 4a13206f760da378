//! The table of moves, and reasons: what looks like an oversight but may be meant.

use super::{Kind, Lint};
use crate::policy::convention::PhaseRules;

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
            if !reached.contains(&name.as_str()) {
                self.say(Kind::NoWayIn, rule(), format!("no move leads to phase {name}"), None);
            }
            let leaves = |other: &String| other != name && moves.allow(name, other);
            if !rules.phases.iter().any(|other| leaves(&other.name)) {
                self.say(
                    Kind::NoMoveOut,
                    rule(),
                    format!("no move leads out of phase {name}"),
                    None,
                );
            }
        }
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
