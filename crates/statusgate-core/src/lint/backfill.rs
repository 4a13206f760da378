//! No write is rejected because of what the mutating webhook sets, imposes or removes.

use indexmap::{IndexMap, IndexSet};
use serde_json::{Value, json};

use super::gate::ACTIONS;
use super::{Kind, Lint, Remark};
use crate::engine::Action;
use crate::explain::{Clause, Question, Scene, Space, space_of};
use crate::language::{self, AnyWord, Predicate, Reference};
use crate::policy::convention::{Backfill, ConditionList, Convention, Filling};

/// A default that removes a member finds one.
pub(super) fn removed_members_exist(lint: &Lint<'_>) -> Vec<Remark> {
    let dead = removals(lint).into_iter().filter_map(|removal| {
        let message = format!("default {} never removes a member {}", removal.name, removal.member);
        lint.never_holds(removal.question(), Vec::new(), message)
    });
    dead.collect()
}

/// No rule requires a member that a default removes.
pub(super) fn removed_members_are_not_required(lint: &Lint<'_>) -> Vec<Remark> {
    let mut remarks = Vec::new();
    for removal in removals(lint) {
        // Only rules that ask for the member can require it. Each is tried alone: together they have too
        // many combinations.
        let asks = |clause: &&Clause<'_>| {
            clause.of_element
                && clause.can_reject()
                && clause.list.map(|own| &own.path) == removal.list.map(|own| &own.path)
                && reads(&clause.when, removal.member)
        };
        for clause in lint.clauses.iter().filter(asks) {
            let questions = [removal.question(), clause.question()];
            let space = space_of(lint.convention, lint.stage.version, &questions);
            let rejected = lint.first_scenes(&space).find_map(|scene| {
                let rules = lint.write(&scene).undone(lint.gate.policies(Action::Deny));
                (!rules.is_empty()).then_some((scene, rules))
            });
            if let Some((scene, rules)) = rejected {
                let (name, member) = (removal.name, removal.member);
                let message =
                    format!("default {name} removes member {member}, and the result is rejected");
                let witness = Some(scene.to_yaml());
                remarks.push(Remark::new(Kind::PatchRefused, rules, message, witness));
            }
        }
    }
    remarks
}

/// The validating webhook does not reject a write because of what the mutating webhook changes.
pub(super) fn patched_writes_pass(lint: &Lint<'_>) -> Vec<Remark> {
    let mut remarks: Vec<Remark> = Vec::new();
    for scene in lint.patched() {
        for action in ACTIONS {
            let rules = lint.write(&scene).undone(lint.gate.policies(action));
            if !rules.is_empty() && !remarks.iter().any(|known| known.rules == rules) {
                let witness = Some(scene.to_yaml());
                remarks.push(Remark::new(Kind::PatchRefused, rules, UNDONE, witness));
            }
        }
    }
    remarks
}

/// Notes the defaults that are not set because they contradict the phase.
pub(super) fn defaults_are_set(lint: &Lint<'_>) -> Vec<Remark> {
    let Some(rules) = &lint.convention.phase else { return Vec::new() };
    if lint.convention.backfill.is_empty() {
        return Vec::new();
    }
    // For each default: the phases, and the first state.
    let mut waiting: IndexMap<String, (IndexSet<&str>, String)> = IndexMap::new();
    for mut scene in lint.patched() {
        for phase in &rules.phases {
            lint.stage.set_phase(&mut scene.object, &phase.name);
            for name in lint.write(&scene).withheld(lint.gate.policies(Action::Deny)) {
                let first = || (IndexSet::new(), scene.to_yaml());
                waiting.entry(name).or_insert_with(first).0.insert(&phase.name);
            }
        }
    }
    let notes = waiting.into_iter().map(|(name, (phases, witness))| {
        let phases = Vec::from_iter(phases).join(" or ");
        let message = format!(
            "default {name} is not set if the phase is {phases}: it would contradict that phase"
        );
        Remark::new(Kind::DefaultWaits, Vec::new(), message, Some(witness))
    });
    notes.collect()
}

/// A default that removes a member from elements of a list.
struct Removal<'c> {
    name: &'c str,
    member: &'c str,
    list: Option<&'c ConditionList>,
    /// It has something to remove.
    applies: Predicate,
}

impl Removal<'_> {
    fn question(&self) -> Question<'_> {
        Question { predicate: &self.applies, list: self.list, of_element: true }
    }
}

fn removals<'l>(lint: &'l Lint<'_>) -> Vec<Removal<'l>> {
    let removal = |fill: &'l Backfill| match &fill.filling {
        Filling::AbsentMember { list, member, of } => Some(Removal {
            name: &fill.name,
            member,
            list: lint.convention.list_of_any_version(list),
            applies: taken(fill, member, of),
        }),
        _ => None,
    };
    lint.convention.backfill.iter().filter_map(removal).collect()
}

impl Lint<'_> {
    /// Writes in the states in which the mutating webhook changes something.
    fn patched(&self) -> Vec<Scene> {
        let spaces = patched(self.convention, self.stage.version, &self.convention.backfill);
        let mut scenes: Vec<Scene> = spaces.iter().flat_map(|space| self.scenes(space)).collect();
        scenes.iter_mut().for_each(add_field);
        scenes
    }
}

pub(super) const UNDONE: &str =
    "this write is rejected only because of what the mutating webhook changes";

/// The states in which the mutating webhook changes something: those without a status, and those that
/// imposed phases and defaults ask for.
pub(super) fn patched(convention: &Convention, version: &str, backfill: &[Backfill]) -> Vec<Space> {
    let space = |questions: &[Question<'_>]| space_of(convention, version, questions);
    let phases = convention.phase.iter().flat_map(|rules| &rules.phases);
    let imposed = phases.filter_map(|phase| phase.imposed.as_ref());
    let mut spaces = vec![space(&[])];
    spaces.extend(imposed.map(|imposed| space(&[Question::plain(&imposed.when)])));
    for fill in backfill {
        spaces.extend(fill.when.as_ref().map(|when| space(&[Question::plain(when)])));
        let (list, predicate) = match &fill.filling {
            Filling::AbsentMember { list, member, of } => (list, taken(fill, member, of)),
            // The element must exist.
            Filling::Member { list, member, .. } => {
                (list, Predicate::all(["type", "status", member].map(has)))
            }
            _ => continue,
        };
        let (list, predicate) = (convention.list_of_any_version(list), &predicate);
        spaces.push(space(&[Question { predicate, list, of_element: true }]));
    }
    spaces
}

/// Adds a field to the status: a write that changes nothing is never rejected.
pub(super) fn add_field(scene: &mut Scene) {
    if scene.object.get("status").and_then(Value::as_object).is_none() {
        scene.object["status"] = json!({});
    }
    scene.object["status"]["written"] = true.into();
}

/// Whether a default has a member to remove.
fn taken(fill: &Backfill, member: &str, of: &Predicate) -> Predicate {
    Predicate::all([of.clone(), has(member)].into_iter().chain(fill.when.clone()))
}

/// The element has a member.
fn has(member: &str) -> Predicate {
    let reference = Reference::Member(member.to_owned());
    language::Value { set: Some(true), ..language::Value::of(reference) }.into()
}

/// Whether a predicate can become true when a member of the element is removed. With an absent operand of
/// `equals` or `before`, there is no evidence.
fn reads(predicate: &Predicate, member: &str) -> bool {
    predicate.questions().into_iter().any(|word| match word {
        AnyWord::Value(value) => {
            matches!(&value.reference, Reference::Member(name) if name == member)
        }
        _ => false,
    })
}
