//! No write is rejected because of what the mutating webhook sets, imposes or removes.

use indexmap::{IndexMap, IndexSet};
use serde_json::{Value as Json, json};

use super::fields::checks_at;
use super::proof::reaches;
use super::rules::MAX_WRITES;
use super::rulings::{Ruling, is_present, is_set, rulings_of_phase};
use super::{Kind, Lint, Remark, each_once};
use crate::facts::{Fact, PAST, Question, Space, refused};
use crate::scene::{Scene, Stage};
use statusgate_core::documents::{CopySource, Origin};
use statusgate_core::engine::Action;
use statusgate_core::language::{
    AnyWord, Condition, ConditionOf, OneOrMany, Operand, Predicate, Reference, Scalar, Value,
};
use statusgate_core::model::Pointer;
use statusgate_core::policy::convention::{Backfill, ConditionList, Filling, ValueSource};
use statusgate_core::policy::{Check, Owner};

/// A default that removes a member finds one.
pub(super) fn removed_members_exist(lint: &Lint<'_>) -> Vec<Remark> {
    let dead = removals(lint).into_iter().filter_map(|removal| {
        let message = format!("default {} never removes a member {}", removal.name, removal.member);
        lint.never_holds(removal.question(), Vec::new(), message)
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
                for (action, policies) in lint.gate.all() {
                    let counts = actions.is_empty() || actions.contains(action);
                    let rules = if counts { lint.write(&scene).undone(policies) } else { continue };
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
            for name in lint.write(&scene).withheld(lint.gate.policies(Action::Deny)) {
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
    let removals = lint.convention.backfill.iter().filter_map(|fill| match &fill.filling {
        Filling::AbsentMember { list, member, of } => Some(Removal {
            name: &fill.name,
            member,
            list: lint.convention.list_of_any_version(list),
            applies: taken(fill, member, of),
        }),
        _ => None,
    });
    removals.collect()
}

/// Something that the mutating webhook changes.
struct Addition<'c> {
    /// What it depends on; a predicate about an element has its list.
    asks: Vec<(Predicate, Option<&'c ConditionList>)>,
    /// What it changes.
    places: Vec<&'c Pointer>,
    /// What it changes there, if that is a list.
    of_list: Part<'c>,
    /// The written phase that it replaces.
    phase: Option<&'c str>,
    sets: Sets<'c>,
    /// The actions for a disagreement that make a difference.
    actions: &'static [Action],
}

/// What the mutating webhook sets.
#[derive(Clone, Copy)]
enum Sets<'c> {
    /// Always this value.
    Constant(&'c Json),
    /// The stored value.
    Stored,
    Other,
}

/// A part of a list of conditions, or all of a value.
#[derive(Clone, Copy)]
enum Part<'c> {
    Whole,
    Member(&'c str),
    Element(&'c str),
}

impl Addition<'_> {
    fn questions(&self) -> impl Iterator<Item = Question<'_>> {
        self.asks.iter().map(|(predicate, list)| match list {
            Some(list) => Question { predicate, list: Some(list), of_element: true },
            None => Question::plain(predicate),
        })
    }

    /// Asks for the changes on which the verdict of a rule may depend.
    fn changes(&self, stage: Stage<'_>, ruling: &Ruling<'_>) -> Vec<Predicate> {
        let changed = |reference: Reference| Value { changed: Some(true), ..Value::of(reference) };
        let watched = ruling.reads.iter();
        let watched =
            watched.filter(|path| stage.convention.list_at(path, stage.version).is_none());
        let mut changes: Vec<Predicate> =
            watched.filter_map(|path| field(path)).map(|field| changed(field).into()).collect();
        match self.sets {
            Sets::Constant(value) => {
                let is = Scalar::try_from(value.clone()).ok().map(OneOrMany::from);
                let fields = self.places.iter().filter_map(|place| field(place));
                changes
                    .extend(fields.map(|field| Value { is: is.clone(), ..changed(field) }.into()));
            }
            // Otherwise a rule that the stored object violates, too, rejects nothing; nor does a list that lost all
            // its conditions.
            Sets::Stored => {
                let words = || ruling.asks.iter().flat_map(Predicate::questions);
                if words().any(|word| matches!(word, AnyWord::Condition(_))) {
                    changes.push(is_present("Example"));
                }
                changes.extend(words().filter_map(|word| match word {
                    AnyWord::Condition(word) => {
                        let of = Condition::of(word.of.kind());
                        Some(Condition { changed: Some(true), ..of }.into())
                    }
                    AnyWord::Value(value) => match &value.reference {
                        Reference::Field(_) => Some(changed(value.reference.clone()).into()),
                        _ => None,
                    },
                    AnyWord::Set(word) => Some(changed(Reference::Field(word.set.clone())).into()),
                    _ => None,
                }));
            }
            Sets::Other => {}
        }
        changes
    }

    /// Whether a rule sees what it changes.
    fn meets(&self, stage: Stage<'_>, ruling: &Ruling<'_>, asked: &Space) -> bool {
        let words = || ruling.asks.iter().flat_map(Predicate::questions);
        let is_seen = match self.of_list {
            Part::Whole => true,
            Part::Member(name) => words().any(|word| sees_member(word, name)),
            Part::Element(kind) => words().any(|word| match word {
                AnyWord::Condition(word) => word.of.kind() == kind,
                // The default gives the members, and the stored object those of the stored element.
                AnyWord::Value(value) => !matches!(value.reference, Reference::Member(_)),
                AnyWord::ElementPolarity(_) => false,
                _ => true,
            }),
        };
        is_seen
            && self.places.iter().any(|place| {
                ruling.reads.iter().any(|path| path.contains(place) || place.contains(path))
                    || asked.facts.keys().any(|fact| reaches(stage, asked, fact, place))
            })
    }
}

/// Whether a word may see a member of a condition.
fn sees_member(word: &AnyWord, name: &str) -> bool {
    match word {
        AnyWord::Condition(word) => {
            let asked = [("reason", word.reason.is_some()), ("severity", word.severity.is_some())];
            word.changed.is_some() || name == "status" || asked.contains(&(name, true))
        }
        AnyWord::Value(value) => {
            let operands = value.operands().map(|operand| &operand.0);
            operands.chain([&value.reference]).any(|reference| match reference {
                Reference::Member(member) | Reference::OldMember(member) => member == name,
                Reference::OfCondition(of) => of.member == name,
                Reference::Field(_) | Reference::OldField(_) => true,
            })
        }
        AnyWord::ElementPolarity(_) | AnyWord::Length(_) | AnyWord::Gates(_) => false,
        _ => true,
    }
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

    /// What the mutating webhook changes.
    fn additions(&self) -> Vec<Addition<'c>> {
        let mut additions: Vec<Addition<'c>> = Vec::new();
        if let Some(rules) = &self.convention.phase {
            let places = vec![&rules.path];
            let of_phase = |asks: Vec<Predicate>, phase, actions| {
                let asks = asks.into_iter().map(|ask| (ask, None)).collect();
                let (places, of_list, sets) = (places.clone(), Part::Whole, Sets::Other);
                Addition { asks, places, of_list, sets, phase, actions }
            };
            let imposed =
                rules.phases.iter().filter_map(|phase| Some(phase.imposed.as_ref()?.when.clone()));
            let default = rules.default.iter().map(|_| Predicate::all([]));
            additions.extend(imposed.chain(default).map(|ask| of_phase(vec![ask], None, DENY)));
            if rules.can_repair() {
                let contradicted = rules.phases.iter().filter(|phase| phase.necessary.is_some());
                additions.extend(contradicted.map(|phase| {
                    let own = phase
                        .necessary
                        .iter()
                        .chain(rules.phases.iter().filter_map(|phase| phase.sufficient.as_ref()));
                    let steps = rules.repair.iter().filter_map(|step| step.when.as_ref());
                    of_phase(own.chain(steps).cloned().collect(), Some(&phase.name), REPAIR)
                }));
            }
        }
        additions.extend(self.convention.backfill.iter().filter_map(|fill| self.of_default(fill)));
        let policy = self.gate.policy();
        let owned = policy.owned_list(self.stage.version);
        let owned = owned.filter(|list| policy.preserve.iter().any(|path| *path == *list.path));
        for kind in policy.owners.iter().flat_map(Owner::kinds) {
            let of = ConditionOf::OldCondition(kind.clone());
            let stored = Condition { of, present: Some(true), ..Condition::of("") };
            additions.extend(owned.map(|list| Addition {
                asks: vec![(stored.into(), None), (is_present(kind), None)],
                places: vec![&*list.path],
                of_list: Part::Element(kind),
                sets: Sets::Stored,
                phase: None,
                actions: &[],
            }));
        }
        let fields = policy.preserve.iter();
        let fields = fields.filter(|path| owned.is_none_or(|list| **path != *list.path));
        additions.extend(fields.filter_map(|path| {
            let removed = Value { changed: Some(true), ..Value::of(field(path)?) };
            Some(Addition {
                asks: vec![(removed.into(), None)],
                places: vec![path],
                of_list: Part::Whole,
                sets: Sets::Stored,
                phase: None,
                actions: &[],
            })
        }));
        additions
    }

    fn of_default(&self, fill: &'c Backfill) -> Option<Addition<'c>> {
        let of_element = |list: &Pointer| self.convention.list_of_any_version(list);
        let mut asks: Vec<(Predicate, Option<&ConditionList>)> =
            fill.when.iter().map(|when| (when.clone(), None)).collect();
        match &fill.filling {
            // The same list without its duplicates is the stored one.
            Filling::Absent(_) | Filling::SteadyStatus { .. } | Filling::Unique(_) => return None,
            Filling::Field(path, sources) => {
                let checks = checks_at(self.convention, path);
                asks.extend(copies(&field(path)?, sources, &checks).map(|ask| (ask, None)));
            }
            Filling::Member { list, member, sources } => {
                let list = of_element(list);
                let checks = list.map(|list| list.checks(member)).unwrap_or_default();
                asks.push((Predicate::all(["type", "status", member].map(has)), list));
                let member = Reference::Member(member.clone());
                asks.extend(copies(&member, sources, checks).map(|ask| (ask, list)));
            }
            Filling::Element { kind, members, .. } => {
                let of = ConditionOf::OldCondition(kind.clone());
                let stored = Condition { of, present: Some(true), ..Condition::of("") };
                asks.extend([(is_present(kind), None), (stored.into(), None)]);
                // Without a status to copy, there is no condition.
                let sources = members.iter().flat_map(|(_, sources)| sources);
                asks.extend(sources.filter_map(|source| match source {
                    ValueSource::Copy(CopySource::Member(of)) => {
                        Some((is_present(&of.condition), None))
                    }
                    _ => None,
                }));
            }
            Filling::Steady { list, member, unless } => {
                let list = of_element(list);
                let names = ["type", "status"].into_iter().chain(unless.iter().map(String::as_str));
                asks.push((Predicate::all(each_once(names).into_iter().map(has)), list));
                let member = Value::of(Reference::Member(member.clone()));
                asks.push((Value { changed: Some(true), ..member }.into(), list));
            }
            Filling::AbsentMember { list, member, of } => {
                asks = vec![(taken(fill, member, of), of_element(list))];
            }
        }
        let of_list = match &fill.filling {
            Filling::Element { kind, .. } => Part::Element(kind),
            filling => filling.member().map_or(Part::Whole, Part::Member),
        };
        let sets = match &fill.filling {
            Filling::Field(_, sources) => match sources.as_slice() {
                [ValueSource::Value(value)] => Sets::Constant(value),
                _ => Sets::Other,
            },
            _ => Sets::Other,
        };
        let places = vec![fill.path()];
        Some(Addition { asks, places, of_list, sets, phase: None, actions: DENY })
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

const DENY: &[Action] = &[Action::Deny];
const REPAIR: &[Action] = &[Action::Repair];

/// Writes that are tried for an addition with one rule.
const MAX_TOGETHER: usize = 1 << 9;

pub(super) const UNDONE: &str =
    "this write is rejected only because of what the mutating webhook changes";

fn field(path: &Pointer) -> Option<Reference> {
    Some(Reference::Field(path.clone().try_into().ok()?))
}

/// Asks for the values that sources copy to a place, including one that its checks refuse.
fn copies(
    to: &Reference,
    sources: &[ValueSource],
    checks: &[Check],
) -> impl Iterator<Item = Predicate> {
    let refused = refused(&Vec::from_iter(checks)).and_then(|value| Scalar::try_from(value).ok());
    sources.iter().filter_map(move |source| {
        let ValueSource::Copy(source) = source else { return None };
        let to = Value::of(to.clone());
        let from = match source {
            CopySource::Member(of) => Reference::OfCondition(of.clone()),
            CopySource::Origin(Origin::Field(path)) => field(path)?,
            CopySource::Origin(Origin::Stored) => {
                return Some(Value { changed: Some(true), ..to }.into());
            }
            CopySource::Origin(_) => return None,
        };
        let is = refused.clone().map(OneOrMany::from);
        Some(Value { equals: Some(Operand(from)), is, ..to }.into())
    })
}

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
    let (Part::Element(_), [list]) = (addition.of_list, addition.places.as_slice()) else {
        return None;
    };
    let mut scene = scene.clone();
    let items = scene.object.pointer_mut(&list.to_string()).and_then(Json::as_array_mut)?;
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

/// Whether a default has a member to remove.
fn taken(fill: &Backfill, member: &str, of: &Predicate) -> Predicate {
    Predicate::all([of.clone(), has(member)].into_iter().chain(fill.when.clone()))
}

/// The element has a member.
fn has(member: &str) -> Predicate {
    is_set(Reference::Member(member.to_owned()))
}
