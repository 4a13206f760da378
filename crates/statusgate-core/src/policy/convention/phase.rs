//! The phase: its values in order of priority, their evidence, its time and its reason.

use indexmap::IndexMap;

use super::super::checks::kebab;
use super::super::compile::{Compiler, Purpose, Sourced};
use super::super::rules::Declarer;
use super::super::{Disposition, Id};
use super::{Moves, PhaseReason, PhaseTimeRules, PhaseValue, RepairStep};
use crate::documents::{self, warn};
use crate::language::Predicate;
use crate::model::Pointer;
use crate::source::tree::At;

/// The phase: its values in order of priority, their evidence, its time and its reason.
#[derive(Clone, Debug)]
pub struct PhaseRules {
    /// `/status/phase`.
    pub path: Pointer,
    /// Where else it may be: the first path with a string counts.
    pub other_paths: Vec<Pointer>,
    /// The phase of a status without one.
    pub default: Option<String>,
    /// The rule id for an unknown value, or one that is not a string.
    pub value_rule: Id,
    /// The time of its last change.
    pub transition_time: Option<PhaseTimeRules>,
    /// The field with its reason.
    pub reason: Option<PhaseReason>,
    /// Which phase may follow which.
    pub moves: Option<Moves>,
    /// When it is copied from another object.
    pub mirrored: Option<Predicate>,
    /// Highest priority first.
    pub phases: Vec<PhaseValue>,
    /// How a repair chooses a phase: the first entry that holds and has an admissible phase.
    pub repair: Vec<RepairStep>,
    /// Where all this comes from.
    pub source: String,
}

/// The word for a step of `repair` that chooses the phase that the writer asked for.
pub const REQUESTED: &str = "requested";
/// The word for one that chooses the stored phase.
pub const STORED: &str = "stored";
const KEYWORDS: [&str; 2] = [REQUESTED, STORED];

impl PhaseRules {
    /// Whether there is anything that Repair can choose.
    pub fn can_repair(&self) -> bool {
        self.default.is_some()
            || !self.repair.is_empty()
            || self.phases.iter().any(|phase| phase.sufficient.is_some())
    }

    /// Whether Repair can choose this phase.
    pub(crate) fn can_repair_to(&self, phase: &PhaseValue) -> bool {
        phase.sufficient.is_some() || self.repair.iter().any(|step| step.to == phase.name)
    }

    /// Where the phase may be: the first of these with a text counts.
    pub fn paths(&self) -> impl Iterator<Item = &Pointer> {
        std::iter::once(&self.path).chain(&self.other_paths)
    }

    /// The phase of this name.
    pub fn find(&self, name: &str) -> Option<&PhaseValue> {
        self.phases.iter().find(|phase| phase.name == name)
    }
}

impl Moves {
    /// Whether one phase (or "" for none) may follow another.
    pub fn allow(&self, from: &str, to: &str) -> bool {
        self.after(from).any(|name| name == to)
    }

    /// The phases that may follow one (or "" for none).
    pub fn after<'m>(&'m self, from: &'m str) -> impl Iterator<Item = &'m str> {
        let listed = self.from.get(from).into_iter().flat_map(|names| names.iter());
        listed.chain(self.any_to.iter()).map(String::as_str)
    }

    /// Whether every policy rejects other moves.
    pub fn are_denied(&self) -> bool {
        self.action.as_ref().is_some_and(|sanction| sanction.action == Disposition::Deny)
    }
}

impl PhaseTimeRules {
    /// Whether the mutating webhook updates the time together with the phase.
    pub fn in_step(&self) -> bool {
        self.in_step.unwrap_or(true)
    }
}

impl Compiler<'_> {
    pub(super) fn phase(&self, document: &documents::Phase, at: At<'_>) -> Option<PhaseRules> {
        let rules = self.tables(&[&document.source]);
        let value_rule = rules.rule("phase-value", Disposition::Deny);
        let mut phases: Vec<PhaseValue> = Vec::new();
        for (at, value) in at.key("values").each(&document.values) {
            if !value.reasons.is_empty() && document.reason.is_none() && self.complete {
                at.key("reasons").report_with_help(
                    "\"reasons\" judges nothing: the phase has no \"reason\"",
                    "add \"reason\" with the path of the reason to \"phase\"",
                );
            }
            for (place, name) in at.key("phase").each(value.phase.iter()) {
                if phases.iter().any(|other| other.name == *name) {
                    place.report(format!("phase {name} is listed twice"));
                }
                if KEYWORDS.contains(&name.as_str()) {
                    let message = format!("a phase cannot have the name {name}");
                    place.report_with_help(message, "this is a keyword of \"repair\"");
                }
                let rule = self.evidence_rule(name, value, document, &phases, at);
                phases.push(self.phase_value(name, rule, value, at));
            }
        }
        if let Some(reason) = &document.reason
            && document.path.contains(&reason.path)
        {
            at.key("reason").key("path").report("the phase and its reason are the same field");
        }
        if document.reason.is_some() && phases.iter().all(|phase| phase.reasons.is_empty()) {
            at.key("reason").report_with_help(
                "\"reason\" judges nothing: no phase has \"reasons\"",
                "add \"reasons\" to a phase, or remove \"reason\"",
            );
        }
        if let Some(name) = &document.default {
            let at = at.key("default");
            self.names.check_phase(at, name);
            // A writer must be able to report it in every state, so nothing may contradict it.
            if phases.iter().any(|phase| phase.name == *name && phase.necessary.is_some()) {
                let message = format!("the default phase {name} must be admissible in every state");
                at.report_with_help(message, "remove its \"necessary\"");
            }
            if phases.iter().any(|phase| phase.name == *name && phase.is_final) {
                let message = format!("the default phase {name} cannot be final");
                at.report_with_help(message, "remove its \"final\"");
            }
        }
        for (at, step) in at.key("repair").each(&document.repair) {
            if !KEYWORDS.contains(&step.to.as_str()) {
                self.names.check_phase(at.key("to"), &step.to);
            }
            let when = step.when.iter();
            when.for_each(|when| self.report(when.check(), Purpose::Decide, at.key("when")));
        }
        let mirrored = document.mirrored.clone();
        if let Some(when) = &mirrored {
            self.report(when.check(), Purpose::Decide, at.key("mirrored"));
        }
        let mut paths = document.path.iter().map(|path| (**path).clone());
        Some(PhaseRules {
            path: paths.next()?,
            other_paths: paths.collect(),
            default: document.default.clone(),
            value_rule,
            transition_time: document.transition_time.as_ref().map(|time| phase_time(time, rules)),
            reason: document.reason.clone().map(|mut reason| {
                rules.name("phase-reason", reason.action.as_mut());
                reason
            }),
            moves: self.moves(document, rules, at),
            mirrored,
            phases,
            repair: document.repair.clone(),
            source: document.source.clone(),
        })
    }

    /// Without `moves` every phase may follow every other, except that none follows a final phase.
    fn moves(&self, phase: &documents::Phase, rules: Sourced<'_>, at: At<'_>) -> Option<Moves> {
        let values = phase.values.iter().filter(|value| value.is_final);
        let finals: Vec<&str> =
            values.flat_map(|value| value.phase.iter()).map(String::as_str).collect();
        let all = || phase.values.iter().flat_map(|value| value.phase.iter()).cloned();
        let mut moves = match &phase.moves {
            Some(moves) => {
                self.check_moves(moves, &finals, at.key("moves"));
                moves.clone()
            }
            None if finals.is_empty() => return None,
            None => Moves { any_to: all().collect(), from: IndexMap::new(), action: warn() },
        };
        if !finals.is_empty() {
            let any_to = std::mem::take(&mut moves.any_to);
            for from in std::iter::once(String::new()).chain(all()) {
                let is_final = finals.contains(&from.as_str());
                let to = &mut moves.from.entry(from).or_default().0;
                if is_final { to.clear() } else { to.extend(any_to.iter().cloned()) }
            }
        }
        rules.name("phase-move", moves.action.as_mut());
        Some(moves)
    }

    fn check_moves(&self, moves: &Moves, finals: &[&str], at: At<'_>) {
        let check = |names: &[String], at: At<'_>| {
            for (at, name) in at.each(names).filter(|(_, name)| !name.is_empty()) {
                self.names.check_phase(at, name);
            }
        };
        for (from, to) in &moves.from {
            let at = at.key("from").key(from);
            if !from.is_empty() {
                self.names.check_phase(at.name(), from);
            }
            if finals.contains(&from.as_str()) && !to.is_empty() {
                at.report(format!("phase {from} is final, so no move leaves it"));
            }
            check(to, at);
        }
        check(&moves.any_to, at.key("anyTo"));
    }

    /// The rule of `necessary`. Phases with one id and the same evidence share it.
    fn evidence_rule(
        &self,
        name: &str,
        value: &PhaseValue,
        phase: &documents::Phase,
        known: &[PhaseValue],
        at: At<'_>,
    ) -> Id {
        let written = value.id.as_ref().map(|id| id.to_string());
        let rule = written.unwrap_or_else(|| format!("phase-{}", kebab(name)));
        if value.necessary.is_none() {
            // Nothing can contradict this phase: its rule has no findings and is in no table.
            return Id::new(self.id(&rule), usize::MAX);
        }
        let id = self.id(&rule);
        let mut others = known.iter().filter(|other| *other.rule == *id);
        let shared = value.id.is_some() && others.any(|other| other.necessary == value.necessary);
        if self.declarer(&rule) == Some(Declarer::Phase) && !shared {
            let at = if value.id.is_some() { at.key("id") } else { at.key("phase") };
            Self::report_taken(at, &rule, "another phase");
        }
        let rules = self.tables(&[&value.source, &phase.source]).by(Declarer::Phase);
        rules.rule(&rule, Disposition::Disagreement)
    }

    fn phase_value(&self, name: &str, rule: Id, value: &PhaseValue, at: At<'_>) -> PhaseValue {
        let imposed = value.imposed.as_ref().map(|imposed| &imposed.when);
        for (evidence, purpose, at) in [
            (value.necessary.as_ref(), Purpose::Change, at.key("necessary")),
            (value.sufficient.as_ref(), Purpose::Decide, at.key("sufficient")),
            (imposed, Purpose::Change, at.key("imposed").key("when")),
        ] {
            evidence.into_iter().for_each(|evidence| self.report(evidence.check(), purpose, at));
        }
        PhaseValue { name: name.to_owned(), rule, ..value.clone() }
    }
}

/// `/status/lastTransitionTime`, or `{path: …, inStep: false}`.
fn phase_time(document: &documents::PhaseTime, rules: Sourced<'_>) -> PhaseTimeRules {
    let mut time = match document.clone() {
        documents::PhaseTime::Path(path) => {
            PhaseTimeRules { path, in_step: None, kept: warn(), moved: warn() }
        }
        documents::PhaseTime::Rules(time) => time,
    };
    rules.name("phase-transition-time", time.moved.as_mut());
    rules.name_mild("phase-transition-time", time.kept.as_mut());
    time
}
