//! The table of moves, and the reasons of phases: likely oversights.

use super::gate::Write;
use super::{Kind, Lint, Remark, one_per_cause};
use crate::facts::{Fact, Question};
use crate::scene::Scene;
use statusgate_core::engine::Action;
use statusgate_core::policy::Id;
use statusgate_core::policy::convention::{Moves, PhaseRules};

/// Each phase can be reached by moves from a new object or from the default phase.
pub(super) fn moves_lead_to_phases(lint: &Lint<'_>) -> Vec<Remark> {
    let Some((rules, moves, rule)) = moves(lint) else { return Vec::new() };
    let mut reached: Vec<&str> = vec![""];
    reached.extend(rules.default.as_deref());
    let mut at = 0;
    while let Some(from) = reached.get(at).copied() {
        at += 1;
        for phase in &rules.phases {
            if !reached.contains(&phase.name.as_str())
                && (moves.allow(from, &phase.name) || lint.mirrors(rules, from, &phase.name))
            {
                reached.push(&phase.name);
            }
        }
    }
    let names = rules.phases.iter().map(|phase| phase.name.as_str());
    let missing = names.filter(|name| !reached.contains(name)).map(|name| {
        let from = rules.default.as_deref().unwrap_or_default();
        let (rejected, witness) = lint.make_move(from, name, rule);
        (rejected, (vec![rule.to_string()], name.to_owned(), witness))
    });
    let (rejected, reported): (Vec<_>, Vec<_>) = missing.partition(|(rejected, _)| *rejected);
    let remarks = [
        (rejected, Kind::PhaseNeverEntered, ", and other moves are rejected"),
        (reported, Kind::NoWayIn, ""),
    ];
    let remarks = remarks.into_iter().flat_map(|(missing, kind, more)| {
        one_per_cause(missing.into_iter().map(|(_, found)| found), |rule, phases, witness| {
            let message = format!("no move leads to phase {phases}{more}");
            Remark::new(kind, rule, message, Some(witness))
        })
    });
    remarks.collect()
}

pub(super) fn moves_lead_out_of_phases(lint: &Lint<'_>) -> Vec<Remark> {
    let Some((rules, moves, rule)) = moves(lint) else { return Vec::new() };
    // A final phase is one on purpose.
    let open = rules.phases.iter().filter(|phase| !phase.is_final).map(|phase| &*phase.name);
    let last = open.filter(|name| {
        let mut others = rules.phases.iter().map(|phase| &*phase.name).filter(|to| to != name);
        !others.any(|to| moves.allow(name, to) || lint.mirrors(rules, name, to))
    });
    let ends = last.map(|name| {
        let (_, witness) = lint.make_move(name, another(rules, name), rule);
        (vec![rule.to_string()], name.to_owned(), witness)
    });
    one_per_cause(ends, |rule, phases, witness| {
        let message = format!("no move leads out of phase {phases}");
        Remark::new(Kind::NoMoveOut, rule, message, Some(witness))
    })
}

pub(super) fn reasons_belong_to_one_phase(lint: &Lint<'_>) -> Vec<Remark> {
    let Some(rules) = &lint.convention.phase else { return Vec::new() };
    let Some(table) = &rules.reason else { return Vec::new() };
    let mut messages: Vec<String> = Vec::new();
    for phase in &rules.phases {
        for reason in phase.reasons.iter() {
            let phases = rules.phases.iter().filter(|phase| phase.reasons.contains(reason));
            let phases: Vec<&str> = phases.map(|phase| phase.name.as_str()).collect();
            // Reported with the first of its phases.
            if phases.len() > 1 && phases.first() == Some(&phase.name.as_str()) {
                messages
                    .push(format!("reason {reason} belongs to phases {}", phases.join(" and ")));
            }
            if table.always.contains(reason) {
                let name = &phase.name;
                messages.push(format!("phase {name} lists reason {reason}, which all phases have"));
            }
        }
    }
    let rules = Vec::from_iter(table.action.iter().map(|sanction| sanction.rule.to_string()));
    messages
        .into_iter()
        .map(|message| Remark::new(Kind::SharedReason, rules.clone(), message, None))
        .collect()
}

/// The phases, their moves and the rule about these.
pub(super) fn moves<'l>(lint: &'l Lint<'_>) -> Option<(&'l PhaseRules, &'l Moves, &'l Id)> {
    let rules = lint.convention.phase.as_ref()?;
    let moves = rules.moves.as_ref()?;
    Some((rules, moves, &moves.action.as_ref()?.rule))
}

fn another<'r>(rules: &'r PhaseRules, phase: &str) -> &'r str {
    let mut names = rules.phases.iter().map(|phase| phase.name.as_str());
    names.find(|name| *name != phase).unwrap_or_default()
}

impl Lint<'_> {
    /// Whether a phase may be copied from another object in a move: then the table does not apply.
    fn mirrors(&self, rules: &PhaseRules, from: &str, to: &str) -> bool {
        let Some(mirrored) = &rules.mirrored else { return false };
        let question = Question::plain(mirrored);
        let mut space = self.stage.space(&[question]);
        space.facts.retain(|fact, _| !matches!(fact, Fact::Phase { .. }));
        self.first_scenes(&space).any(|mut scene| {
            let mut old = scene.stored().into_owned();
            if !from.is_empty() {
                self.stage.set_phase(&mut old, from);
            }
            self.stage.set_phase(&mut scene.object, to);
            scene.old = Some(old);
            self.stage.holds(&scene, &question)
        })
    }

    /// A write that makes a move, and whether the rule about moves rejects it.
    fn make_move(&self, from: &str, to: &str, rule: &Id) -> (bool, String) {
        let [mut old, mut new] = [self.stage.bare(), self.stage.bare()];
        if !from.is_empty() {
            self.stage.set_phase(&mut old, from);
        }
        self.stage.set_phase(&mut new, to);
        let scene = Scene::of(new, Some(old));
        let (_, rules) = Write::of(&self.stage, &scene).review(self.gate.policies(Action::Warn));
        (rules.iter().any(|found| **found == **rule), scene.to_yaml())
    }
}
