//! No write is rejected because of what the mutating webhook sets, imposes or removes.

use indexmap::{IndexMap, IndexSet};
use serde_json::{Value as Json, json};

use super::additions::{Addition, Part, REPAIR, Sets, taken};
use super::gate::Write;
use super::rules::MAX_WRITES;
use super::rulings::{Ruling, rulings_of_phase};
use super::{Kind, Lint, Remark};
use crate::facts::{Fact, PAST, Question, Space};
use crate::scene::Scene;
use statusgate_core::documents::{CopySource, Origin};
use statusgate_core::engine::Action;
use statusgate_core::language::{AnyWord, Predicate};
use statusgate_core::policy::convention::{Backfill, ConditionList, Filling, ValueSource};

/// A default that removes a member finds one.
pub(super) fn removed_members_exist(lint: &Lint<'_>) -> Vec<Remark> {
    let dead = lint.convention.backfill.iter().filter_map(|fill| {
        let Filling::AbsentMember { member, of, .. } = &fill.filling else { return None };
        let list = lint.convention.list_of_any_version(fill.path());
        let question = Question { predicate: &taken(fill, member, of), list, of_element: true };
        let message = format!("default {} never removes a member {member}", fill.name);
        lint.never_holds(question, Vec::new(), message)
    });
    dead.collect()
}

/// The validating webhook does not reject a write because of what the mutating webhook changes.
pub(super) fn patched_writes_pass(lint: &Lint<'_>) -> Vec<Remark> {
    let mut remarks: Vec<Remark> = Vec::new();
    let metadata = lint.convention.backfill.iter().any(copies_metadata);
    let mut judge = |space: &Space, actions: &[Action], addition: Option<&Addition<'_>>, most| {
        for mut scene in lint.scenes(space).take(most) {
            if let Some(phase) = addition.and_then(|addition| addition.phase) {
                lint.stage.set_phase(&mut scene.object, phase);
            }
            let required = addition.and_then(|addition| required(&scene, space, addition));
            let emptied = addition.and_then(|addition| emptied(&scene, addition));
            for mut scene in
                [Some(scene), required, emptied].into_iter().flatten().flat_map(with_kept)
            {
                add_field(&mut scene);
                if metadata {
                    add_metadata(&mut scene);
                }
                let all = lint.gate.all().iter();
                let counted = all.filter(|(of, _)| actions.is_empty() || actions.contains(of));
                for (_, policies) in counted {
                    let rules = Write::of(&lint.stage, &scene).undone(policies);
                    if !rules.is_empty() && !remarks.iter().any(|known| known.rules == rules) {
                        let witness = Some(scene.to_yaml());
                        remarks.push(Remark::new(Kind::PatchRejected, rules, UNDONE, witness));
                    }
                }
            }
        }
    };
    judge(&lint.stage.space(&[]), &[], None, 1);
    let rulings = lint.rulings_with_elements();
    let of_phase: Vec<Ruling<'_>> =
        lint.convention.phase.iter().flat_map(|rules| rulings_of_phase(rules)).collect();
    for addition in lint.additions() {
        let alone: Vec<Question<'_>> = addition.questions().collect();
        let (actions, most) = match addition.phase {
            Some(_) => (REPAIR, MAX_TOGETHER),
            None => (&[][..], MAX_WRITES),
        };
        judge(&lint.stage.space(&alone), actions, Some(&addition), most);
        // A default that contradicts the phase is not set.
        let more = if matches!(addition.sets, Sets::Stored) { &of_phase[..] } else { &[] };
        for ruling in rulings.iter().chain(more) {
            let of_ruling: Vec<Question<'_>> =
                ruling.questions(lint.is_of_element(ruling)).collect();
            let changes = addition.changes(lint.stage, ruling);
            if addition.meets(lint.stage, ruling, &lint.stage.space(&of_ruling)) {
                let of_changes = changes.iter().map(Question::plain);
                let questions: Vec<Question<'_>> =
                    addition.questions().chain(of_ruling).chain(of_changes).collect();
                let space = lint.stage.space(&questions);
                judge(&space, addition.actions, Some(&addition), MAX_TOGETHER);
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
            for name in Write::of(&lint.stage, &scene).withheld(lint.gate.policies(Action::Deny)) {
                let entry = waiting.entry(name);
                entry.or_insert_with(|| (IndexSet::new(), scene.to_yaml())).0.insert(&phase.name);
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

impl<'c> Lint<'c> {
    /// Writes in the states in which the mutating webhook changes something.
    fn patched(&self) -> Vec<Scene> {
        let mut spaces = vec![self.stage.space(&[])];
        spaces.extend(self.additions().iter().map(|addition| {
            let questions: Vec<Question<'_>> = addition.questions().collect();
            self.stage.space(&questions)
        }));
        let mut scenes: Vec<Scene> = spaces.iter().flat_map(|space| self.scenes(space)).collect();
        scenes.iter_mut().for_each(add_field);
        scenes
    }

    /// The rules about a status without its phase, and about elements of each list.
    fn rulings_with_elements(&self) -> Vec<Ruling<'c>> {
        let lists = self.lists(self.stage);
        let mut rulings = self.rulings_of_status(&lists);
        let rules = self.convention.phase.iter();
        let of_phase: Vec<&str> =
            rules.flat_map(|rules| rulings_of_phase(rules)).map(|ruling| ruling.id).collect();
        rulings.retain(|ruling| ruling.kind.is_none() && !of_phase.contains(&ruling.id));
        for list in lists {
            let kinds = list.types.values().map(|kind| kind.sample());
            for kind in kinds.chain(["Example".to_owned()]) {
                let mut new = self.rulings_of_element(list, &kind);
                new.retain(|one| {
                    !rulings.iter().any(|other| one.id == other.id && one.asks == other.asks)
                });
                rulings.extend(new);
            }
        }
        rulings
    }

    /// Whether a ruling asks for members of an element.
    fn is_of_element(&self, ruling: &Ruling<'_>) -> bool {
        let words = ruling.asks.iter().flat_map(Predicate::questions);
        ruling.list.is_some_and(ConditionList::is_map)
            || ruling.list.is_some()
                && words.into_iter().any(|word| match word {
                    AnyWord::Value(value) => value.reference.is_member(),
                    AnyWord::ElementPolarity(_) => true,
                    _ => false,
                })
    }
}

/// Writes that are tried for an addition with one rule.
const MAX_TOGETHER: usize = 1 << 9;

pub(super) const UNDONE: &str =
    "this write is rejected only because of what the mutating webhook changes";

/// Adds a field to the status: a write that changes nothing is never rejected.
pub(super) fn add_field(scene: &mut Scene) {
    if scene.object.get("status").and_then(Json::as_object).is_none() {
        scene.object["status"] = json!({});
    }
    scene.object["status"]["written"] = true.into();
}

/// The same write, and one that keeps the stored status: there, rules can reject only what the webhook changes.
fn with_kept(scene: Scene) -> [Scene; 2] {
    let kept = Scene { old: Some(scene.object.clone()), ..scene.clone() };
    [scene, kept]
}

/// The write of an object whose spec requires the condition that a default adds, if rules ask for what it requires.
fn required(scene: &Scene, space: &Space, addition: &Addition<'_>) -> Option<Scene> {
    let Part::Element(kind) = addition.of_list else { return None };
    let mut required = None;
    for fact in space.facts.keys() {
        let Fact::Gates(path) = fact else { continue };
        let scene = required.get_or_insert_with(|| scene.clone());
        let gates = scene.object.pointer_mut(&path.to_string()).and_then(Json::as_array_mut);
        gates.into_iter().flatten().for_each(|gate| gate["conditionType"] = kind.into());
    }
    required
}

/// The same write with an empty list. A condition that stays could violate a rule about elements already before the default.
fn emptied(scene: &Scene, addition: &Addition<'_>) -> Option<Scene> {
    let Part::Element(_) = addition.of_list else { return None };
    let mut scene = scene.clone();
    let items =
        scene.object.pointer_mut(&addition.place.to_string()).and_then(Json::as_array_mut)?;
    items.clear();
    Some(scene)
}

/// Adds the metadata that defaults may copy.
fn add_metadata(scene: &mut Scene) {
    for object in [Some(&mut scene.object), scene.old.as_mut()].into_iter().flatten() {
        object["metadata"]["creationTimestamp"] = PAST.into();
        if object["metadata"].get("generation").is_none() {
            object["metadata"]["generation"] = 1.into();
        }
    }
}

/// Whether a default copies metadata.
fn copies_metadata(default: &Backfill) -> bool {
    let is_metadata = |source: &ValueSource| match source {
        ValueSource::Copy(CopySource::Origin(origin)) => {
            !matches!(origin, Origin::Stored | Origin::Transition | Origin::Field(_))
        }
        _ => false,
    };
    match &default.filling {
        Filling::Field(_, sources) | Filling::Member { sources, .. } => {
            sources.iter().any(is_metadata)
        }
        Filling::Element { members, .. } => {
            members.iter().flat_map(|(_, sources)| sources).any(is_metadata)
        }
        _ => false,
    }
}
