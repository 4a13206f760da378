//! The phase: its values in order of priority, their evidence, and what goes with it.

use super::super::Action;
use super::super::predicate::{self, pointer};
use super::super::schema::kebab;
use super::{Reader, Sanction};
use crate::language::Predicate;
use crate::model::Pointer;
use crate::source::tree::{Map, Node, Value};

/// The phase: its values in order of priority, their evidence, and what goes with it.
#[derive(Clone, Debug)]
pub struct PhaseRules {
    /// `/status/phase`.
    pub path: Pointer,
    /// Where else it may be: the first place that holds a text counts.
    pub other_paths: Vec<Pointer>,
    /// The value where none is given.
    pub default: Option<String>,
    /// The rule id for a value that does not exist or is no text.
    pub value_rule: String,
    /// The time of its last change.
    pub transition_time: Option<PhaseTime>,
    /// The reason that goes with it.
    pub reason: Option<PhaseReason>,
    /// Which phase may follow which.
    pub moves: Option<Moves>,
    /// Highest priority first.
    pub phases: Vec<Phase>,
    /// How to choose a phase in a repair: the first entry that holds and whose phase is admissible.
    pub repair: Vec<RepairStep>,
    /// Where all this comes from.
    pub source: String,
}

/// The time of the last change of the phase.
#[derive(Clone, Debug)]
pub struct PhaseTime {
    /// Where it is.
    pub path: Pointer,
    /// Whether the mutating webhook keeps it in step.
    pub in_step: bool,
    /// Said of a time that moved alone.
    pub moved: Sanction,
    /// Said of a phase that moved alone, where nobody keeps the time in step.
    pub kept: Sanction,
}

/// The reason of a phase.
#[derive(Clone, Debug)]
pub struct PhaseReason {
    /// Where it is.
    pub path: Pointer,
    /// Reasons that go with every phase.
    pub always: Vec<String>,
    /// Said of a reason that does not go with the phase.
    pub sanction: Sanction,
}

/// Which phase may follow which.
#[derive(Clone, Debug)]
pub struct Moves {
    /// Phases that may follow every other.
    pub any_to: Vec<String>,
    /// A phase, or "" for none, and those that may follow it.
    pub from: Vec<(String, Vec<String>)>,
    /// Said of any other move.
    pub sanction: Sanction,
}

/// One value of the phase.
#[derive(Clone, Debug)]
pub struct Phase {
    /// `Ready`.
    pub name: String,
    /// `appcat/phase-ready`: the rule id for a write that contradicts it.
    pub rule: String,
    /// What must hold. Only what is definitely contradicted counts.
    pub necessary: Option<Predicate>,
    /// What settles it.
    pub sufficient: Option<Predicate>,
    /// When the mutating webhook sets it whatever the writer says.
    pub imposed: Option<Imposition>,
    /// The reasons that go with it.
    pub reasons: Vec<String>,
    /// What it means, for people.
    pub meaning: String,
    /// Where its evidence comes from.
    pub source: String,
}

/// A phase that is not the writer's to choose.
#[derive(Clone, Debug)]
pub struct Imposition {
    /// When it is imposed.
    pub when: Predicate,
    /// The time of the transition.
    pub since: Since,
}

/// Where the time of an imposed phase comes from. Never the clock: another replica, or the second
/// call of the same request, must arrive at the same value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// `metadata.deletionTimestamp`.
    DeletionTimestamp,
    /// `metadata.creationTimestamp`.
    CreationTimestamp,
}

/// One way to choose a phase in a repair.
#[derive(Clone, Debug)]
pub struct RepairStep {
    /// When it applies; always, where there is none.
    pub when: Option<Predicate>,
    /// What is chosen.
    pub to: RepairTo,
}

/// What a repair chooses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RepairTo {
    /// This phase.
    Phase(String),
    /// The phase that the writer asked for.
    Requested,
    /// The phase that is stored.
    Stored,
}

impl PhaseRules {
    /// The phase of this name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Phase> {
        self.phases.iter().find(|phase| phase.name == name)
    }
}

impl Moves {
    /// Whether one phase (or "" for none) may follow another.
    #[must_use]
    pub fn allow(&self, from: &str, to: &str) -> bool {
        let listed = |names: &[String]| names.iter().any(|name| name == to);
        listed(&self.any_to) || self.from.iter().any(|(name, names)| name == from && listed(names))
    }
}

impl Reader<'_> {
    pub(super) fn phase(&self, node: &Node) -> Option<PhaseRules> {
        let map = self.problems.map(node)?;
        let paths = self.required(&map, "path");
        let paths =
            paths.map(|node| self.problems.filled(node, |item| pointer(item, self.problems)));
        let mut paths = paths.unwrap_or_default().into_iter();
        let path = paths.next();
        let values = self.required(&map, "values");
        let phases: Vec<Phase> = values
            .map(|node| {
                let why = "without a value no phase could be written";
                self.problems.filled_list(node, why, |item| self.phase_value(item))
            })
            .unwrap_or_default();
        let default = map.get("default");
        let default_name = default.and_then(|node| self.problems.string(node));
        if let (Some(node), Some(name)) = (default, default_name) {
            self.names.check_phase(&node.span, name, self.problems);
            // The way out of every state: nothing may ever contradict it.
            if phases.iter().any(|phase| phase.name == name && phase.necessary.is_some()) {
                let message = format!("the default phase {name} must be admissible in every state");
                let help = Some("remove its \"necessary\"".to_owned());
                self.problems.report_with_help(&node.span, message, help);
            }
        }
        let transition_time = map.get("transitionTime").and_then(|node| self.phase_time(node));
        let reason = map.get("reason").and_then(|node| self.phase_reason(node));
        let moves = map.get("moves").and_then(|node| self.moves(node));
        let repair = self.list(&map, "repair", |item| self.repair_step(item));
        let source = self.text(&map, "source");
        map.close();
        Some(PhaseRules {
            path: path?,
            other_paths: paths.collect(),
            default: default_name.map(str::to_owned),
            value_rule: self.id("phase-value"),
            transition_time,
            reason,
            moves,
            phases,
            repair,
            source,
        })
    }

    /// `/status/lastTransitionTime`, or `{path: …, inStep: false}`.
    fn phase_time(&self, node: &Node) -> Option<PhaseTime> {
        let sanction = |action| Sanction { rule: self.id("phase-transition-time"), action };
        let warning = || sanction(Action::Warn.into());
        if let Value::String(_) = node.value {
            let path = pointer(node, self.problems)?;
            return Some(PhaseTime { path, in_step: true, moved: warning(), kept: warning() });
        }
        let map = self.problems.map(node)?;
        let path = map.required("path").and_then(|node| pointer(node, self.problems));
        let said = |key| self.sanction_if_said(&map, key, "phase-transition-time");
        let in_step = map.get("inStep").and_then(|node| self.problems.boolean(node));
        let (moved, kept) = (said("moved"), said("kept"));
        map.close();
        Some(PhaseTime {
            path: path?,
            in_step: in_step.unwrap_or(true),
            moved: moved.unwrap_or_else(warning),
            kept: kept.unwrap_or_else(warning),
        })
    }

    fn phase_reason(&self, node: &Node) -> Option<PhaseReason> {
        let map = self.problems.map(node)?;
        let path = map.required("path").and_then(|node| pointer(node, self.problems));
        let always = self.strings(&map, "always");
        let sanction = self.sanction(&map, "action", "phase-reason", Action::Warn);
        map.close();
        Some(PhaseReason { path: path?, always, sanction })
    }

    fn moves(&self, node: &Node) -> Option<Moves> {
        let map = self.problems.map(node)?;
        let named = |node: &Node| {
            self.problems.one_or_many(node, |item| {
                let name = self.problems.string(item)?;
                self.names.check_phase(&item.span, name, self.problems);
                Some(name.to_owned())
            })
        };
        let from = map.required("from").and_then(|node| self.problems.map(node)).map(|table| {
            let row = |(key, node): &(crate::source::tree::Key, Node)| {
                if !key.name.is_empty() {
                    self.names.check_phase(&key.span, &key.name, self.problems);
                }
                (key.name.clone(), named(node))
            };
            table.entries().iter().map(row).collect()
        });
        let moves = Moves {
            any_to: map.get("anyTo").map(named).unwrap_or_default(),
            from: from.unwrap_or_default(),
            sanction: self.sanction(&map, "action", "phase-move", Action::Warn),
        };
        map.close();
        Some(moves)
    }

    fn phase_value(&self, node: &Node) -> Option<Phase> {
        let map = self.problems.map(node)?;
        let name = map.required("phase").and_then(|node| self.problems.string(node));
        let evidence = |key| self.predicate(&map, key);
        let (necessary, sufficient) = (evidence("necessary"), evidence("sufficient"));
        let imposed = map.get("imposed").and_then(|node| self.imposition(node));
        let reasons = self.strings(&map, "reasons");
        let (meaning, source) = (self.text(&map, "meaning"), self.text(&map, "source"));
        map.close();
        let name = name?;
        let rule = self.id(&format!("phase-{}", kebab(name)));
        let name = name.to_owned();
        Some(Phase { name, rule, necessary, sufficient, imposed, reasons, meaning, source })
    }

    fn imposition(&self, node: &Node) -> Option<Imposition> {
        let map = self.problems.map(node)?;
        let when = map.required("when");
        let when = when.and_then(|node| predicate::read(node, self.problems, self.names));
        let since = map.required("since").and_then(|node| {
            self.problems.word(
                node,
                &[
                    ("/metadata/deletionTimestamp", Since::DeletionTimestamp),
                    ("/metadata/creationTimestamp", Since::CreationTimestamp),
                ],
            )
        });
        map.close();
        Some(Imposition { when: when?, since: since? })
    }

    fn repair_step(&self, node: &Node) -> Option<RepairStep> {
        let map = self.problems.map(node)?;
        let when = self.predicate(&map, "when");
        let to = map.required("to").and_then(|node| {
            let text = self.problems.string(node)?;
            Some(match text {
                "requested" => RepairTo::Requested,
                "stored" => RepairTo::Stored,
                name => {
                    self.names.check_phase(&node.span, name, self.problems);
                    RepairTo::Phase(name.to_owned())
                }
            })
        });
        map.close();
        Some(RepairStep { when, to: to? })
    }

    fn predicate(&self, map: &Map<'_>, key: &'static str) -> Option<Predicate> {
        map.get(key).and_then(|node| predicate::read(node, self.problems, self.names))
    }
}
