//! What the mutating webhook changes in a write: imposed and repaired phases, defaults, and what it restores.

use serde_json::Value as Json;

use super::fields::checks_at;
use super::proof::reaches;
use super::rulings::{Ruling, is_present, is_set};
use super::{Lint, each_once};
use crate::facts::{Question, Space, refused};
use crate::scene::Stage;
use statusgate_core::documents::{CopySource, Origin};
use statusgate_core::engine::Action;
use statusgate_core::language::{
    AnyWord, Condition, ConditionOf, OneOrMany, Operand, Predicate, Reference, Scalar, Value,
};
use statusgate_core::model::Pointer;
use statusgate_core::policy::Check;
use statusgate_core::policy::convention::{Backfill, ConditionList, Filling, ValueSource};

const DENY: &[Action] = &[Action::Deny];
pub(super) const REPAIR: &[Action] = &[Action::Repair];

/// Something that the mutating webhook changes.
pub(super) struct Addition<'c> {
    /// What it depends on; a predicate about an element has its list.
    asks: Vec<(Predicate, Option<&'c ConditionList>)>,
    /// What it changes.
    pub(super) place: &'c Pointer,
    /// What it changes there, if that is a list.
    pub(super) of_list: Part<'c>,
    /// The written phase that it replaces.
    pub(super) phase: Option<&'c str>,
    pub(super) sets: Sets<'c>,
    /// The actions for a disagreement that make a difference.
    pub(super) actions: &'static [Action],
}

/// What the mutating webhook sets.
#[derive(Clone, Copy)]
pub(super) enum Sets<'c> {
    /// Always this value.
    Constant(&'c Json),
    /// The stored value.
    Stored,
    Other,
}

/// A part of a list of conditions, or all of a value.
#[derive(Clone, Copy)]
pub(super) enum Part<'c> {
    Whole,
    Member(&'c str),
    Element(&'c str),
}

impl<'c> Addition<'c> {
    /// A change of a whole value that depends on the object.
    fn of(asks: impl IntoIterator<Item = Predicate>, place: &'c Pointer) -> Self {
        let asks = asks.into_iter().map(|ask| (ask, None)).collect();
        let (of_list, sets) = (Part::Whole, Sets::Other);
        Self { asks, place, of_list, phase: None, sets, actions: &[] }
    }

    pub(super) fn questions(&self) -> impl Iterator<Item = Question<'_>> {
        self.asks.iter().map(|(predicate, list)| match list {
            Some(list) => Question { predicate, list: Some(list), of_element: true },
            None => Question::plain(predicate),
        })
    }

    /// Asks for the changes on which the verdict of a rule may depend.
    pub(super) fn changes(&self, stage: Stage<'_>, ruling: &Ruling<'_>) -> Vec<Predicate> {
        let changed = |reference: Reference| Value { changed: Some(true), ..Value::of(reference) };
        let watched = ruling.reads.iter();
        let watched =
            watched.filter(|path| stage.convention.list_at(path, stage.version).is_none());
        let mut changes: Vec<Predicate> =
            watched.filter_map(|path| field(path)).map(|field| changed(field).into()).collect();
        match self.sets {
            Sets::Constant(value) => {
                let is = Scalar::try_from(value.clone()).ok().map(OneOrMany::from);
                let set = field(self.place);
                changes.extend(set.map(|field| Value { is, ..changed(field) }.into()));
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
    pub(super) fn meets(&self, stage: Stage<'_>, ruling: &Ruling<'_>, asked: &Space) -> bool {
        let place = self.place;
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
            && (ruling.reads.iter().any(|path| path.contains(place) || place.contains(path))
                || asked.facts.keys().any(|fact| reaches(stage, asked, fact, place)))
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
    /// What the mutating webhook changes.
    pub(super) fn additions(&self) -> Vec<Addition<'c>> {
        let mut additions: Vec<Addition<'c>> = Vec::new();
        if let Some(rules) = &self.convention.phase {
            let imposed =
                rules.phases.iter().filter_map(|phase| Some(phase.imposed.as_ref()?.when.clone()));
            let default = rules.default.iter().map(|_| Predicate::all([]));
            let set = imposed.chain(default).map(|ask| Addition::of([ask], &rules.path));
            additions.extend(set.map(|addition| Addition { actions: DENY, ..addition }));
            if rules.can_repair() {
                let contradicted = rules.phases.iter().filter(|phase| phase.necessary.is_some());
                additions.extend(contradicted.map(|phase| {
                    let own = phase
                        .necessary
                        .iter()
                        .chain(rules.phases.iter().filter_map(|phase| phase.sufficient.as_ref()));
                    let steps = rules.repair.iter().filter_map(|step| step.when.as_ref());
                    let (phase, actions) = (Some(&*phase.name), REPAIR);
                    let asks = own.chain(steps).cloned();
                    Addition { phase, actions, ..Addition::of(asks, &rules.path) }
                }));
            }
        }
        additions.extend(self.convention.backfill.iter().filter_map(|fill| self.of_default(fill)));
        let policy = self.gate.policy();
        let owned = policy.owned_list(self.stage.version);
        let owned = owned.filter(|list| policy.preserve.iter().any(|path| *path == *list.path));
        for kind in policy.owners.iter().flat_map(|owner| &owner.conditions) {
            let of = ConditionOf::OldCondition(kind.clone());
            let stored = Condition { of, present: Some(true), ..Condition::of("") };
            additions.extend(owned.map(|list| Addition {
                of_list: Part::Element(kind),
                sets: Sets::Stored,
                ..Addition::of([stored.into(), is_present(kind)], &list.path)
            }));
        }
        let fields = policy.preserve.iter();
        let fields = fields.filter(|path| owned.is_none_or(|list| **path != *list.path));
        additions.extend(fields.filter_map(|path| {
            let removed = Value { changed: Some(true), ..Value::of(field(path)?) };
            Some(Addition { sets: Sets::Stored, ..Addition::of([removed.into()], path) })
        }));
        additions
    }

    fn of_default(&self, fill: &'c Backfill) -> Option<Addition<'c>> {
        let list = self.convention.list_of_any_version(fill.path());
        let mut asks: Vec<(Predicate, Option<&ConditionList>)> =
            fill.when.iter().map(|when| (when.clone(), None)).collect();
        match &fill.filling {
            // The same list without its duplicates is the stored one.
            Filling::Absent(_) | Filling::SteadyStatus { .. } | Filling::Unique(_) => return None,
            Filling::Field(path, sources) => {
                let checks = checks_at(self.convention, path);
                asks.extend(copies(&field(path)?, sources, &checks).map(|ask| (ask, None)));
            }
            Filling::Member { member, sources, .. } => {
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
            Filling::Steady { member, unless, .. } => {
                let names = ["type", "status"].into_iter().chain(unless.iter().map(String::as_str));
                asks.push((Predicate::all(each_once(names).into_iter().map(has)), list));
                let member = Value::of(Reference::Member(member.clone()));
                asks.push((Value { changed: Some(true), ..member }.into(), list));
            }
            Filling::AbsentMember { member, of, .. } => {
                asks = vec![(taken(fill, member, of), list)];
            }
        }
        let of_list = match &fill.filling {
            Filling::Element { kind, .. } => Part::Element(kind),
            filling => filling.member().map_or(Part::Whole, Part::Member),
        };
        let sets = if let Filling::Field(_, sources) = &fill.filling
            && let [ValueSource::Value(value)] = sources.as_slice()
        {
            Sets::Constant(value)
        } else {
            Sets::Other
        };
        Some(Addition { asks, place: fill.path(), of_list, sets, phase: None, actions: DENY })
    }
}

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

/// Whether a default has a member to remove.
pub(super) fn taken(fill: &Backfill, member: &str, of: &Predicate) -> Predicate {
    Predicate::all([of.clone(), has(member)].into_iter().chain(fill.when.clone()))
}

/// The element has a member.
fn has(member: &str) -> Predicate {
    is_set(Reference::Member(member.to_owned()))
}
