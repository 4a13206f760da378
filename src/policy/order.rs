//! The order of what the mutating webhook does: by what each step reads and what it sets.
//!
//! A step comes after those that could give it something to do, so that one pass is enough. And it comes
//! before those that could take it away: two defaults that are each for a condition without the other are
//! both set, as if at once. In doubt the phase comes first, then the defaults as they are written.

use std::collections::BTreeSet;

use serde_json::Value as Json;

use super::convention::{Backfill, ConditionList, Convention, Filling, PhaseRules, ValueSource};
use super::owner::overlap;
use super::schema::Check;
use super::{Action, Policy};
use crate::language::{
    All, Any, AnyWord, Asks, Condition, ConditionOf, Not, Place, Polarity, Predicate, Scalar, Value,
};
use crate::model::{ConditionStatus, Pointer};
use crate::source::tree::At;

/// Something that the mutating webhook does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step<'p> {
    /// Sets the phase and its time.
    Phase(&'p PhaseRules),
    /// Sets a default.
    Default(&'p Backfill),
}

/// A step, and the convention that its names are from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Task<'p> {
    pub(super) convention: &'p Convention,
    pub(super) step: Step<'p>,
}

/// All steps of a convention with these defaults.
pub(super) fn tasks<'p>(
    convention: &'p Convention,
    defaults: &'p [Backfill],
) -> impl Iterator<Item = Task<'p>> {
    let phase = convention.phase.iter().map(Step::Phase);
    phase.chain(defaults.iter().map(Step::Default)).map(|step| Task { convention, step })
}

/// The order of some tasks: their places in the list. And those that wait for each other, if any; they come
/// as they are written. `met` are the tasks that may be done to the same objects as one of them.
fn sort(tasks: &[Task<'_>], met: impl Fn(usize) -> Vec<usize>) -> (Vec<usize>, Vec<usize>) {
    let mut waiting: Vec<Vec<usize>> = vec![Vec::new(); tasks.len()];
    let mut yielding = waiting.clone();
    for (late, task) in tasks.iter().enumerate() {
        for early in met(late).into_iter().filter(|early| *early != late) {
            let other = &tasks[early];
            if other.enables(task) {
                waiting[late].push(early);
            } else if other.informs(task) || task.disables(other) {
                yielding[late].push(early);
            }
        }
    }
    let mut left: BTreeSet<usize> = (0..tasks.len()).collect();
    let (mut order, mut cycle) = (Vec::with_capacity(tasks.len()), Vec::new());
    while let Some(first) = left.first().copied() {
        let free = |others: &[usize]| !others.iter().any(|other| left.contains(other));
        let ready = || left.iter().copied().filter(|task| free(&waiting[*task]));
        let next = ready().find(|task| free(&yielding[*task])).or_else(|| ready().next());
        if next.is_none() && cycle.is_empty() {
            // Everything that is left waits for something that is left.
            let before =
                |task: usize| waiting[task].iter().copied().find(|task| left.contains(task));
            let mut way = vec![first];
            while let Some(next) = way.last().and_then(|last| before(*last)) {
                if let Some(at) = way.iter().position(|known| *known == next) {
                    cycle = way.split_off(at);
                    break;
                }
                way.push(next);
            }
        }
        let next = next.unwrap_or(first);
        left.remove(&next);
        order.push(next);
    }
    (order, cycle)
}

/// The defaults of a convention, or of a policy that follows it, that wait for each other: which they are,
/// and what to say.
pub(super) fn cycle(
    convention: &Convention,
    defaults: &[Backfill],
) -> Option<(Vec<usize>, String)> {
    let tasks: Vec<Task<'_>> = tasks(convention, defaults).collect();
    let (_, cycle) = sort(&tasks, |_| (0..tasks.len()).collect());
    let phases = tasks.len() - defaults.len();
    let message = describe(cycle.iter().map(|at| &tasks[*at]))?;
    Some((cycle.into_iter().filter_map(|at| at.checked_sub(phases)).collect(), message))
}

/// Reports a cycle.
pub(super) fn report(at: At<'_>, message: String) {
    at.report_with_help(
        message,
        "change a \"when\" or a source: no order lets each see what the others set",
    );
}

/// Puts the steps of all policies in one order. Where defaults of several policies wait for each other: the
/// last of these policies, and what to say.
pub(super) fn rank(policies: &mut [Policy]) -> Option<(usize, String)> {
    let mut tasks = Vec::new();
    let mut places: Vec<(usize, Option<usize>)> = Vec::new();
    for (at, policy) in policies.iter().enumerate() {
        let phase = policy.convention.phase.iter().map(|_| None);
        places.extend(phase.chain((0..policy.backfill.len()).map(Some)).map(|step| (at, step)));
        tasks.extend(self::tasks(&policy.convention, &policy.backfill));
    }
    let own = |(policy, step): (usize, Option<usize>)| {
        step.is_some_and(|step| policies[policy].backfill[step].of_policy)
    };
    let owns = |policy: usize| policies[policy].convention.phase.is_some();
    let met = |one: &Policy| {
        let others = policies.iter().enumerate().filter(|(_, other)| overlap(one, other));
        others.map(|(at, _)| at).collect()
    };
    let met: Vec<Vec<usize>> = policies.iter().map(met).collect();
    let (order, cycle) = sort(&tasks, |task| {
        let one = places[task];
        let first = |policy: usize| places.partition_point(|(at, _)| *at < policy);
        let tasks = met[one.0].iter().flat_map(|policy| first(*policy)..first(policy + 1));
        // Of two owners, or an owner and another, the defaults of one convention only are set.
        let both = |other: (usize, Option<usize>)| {
            one.0 == other.0 || own(one) || own(other) || (!owns(one.0) && !owns(other.0))
        };
        tasks.filter(|task| both(places[*task])).collect()
    });
    let last = cycle.iter().map(|at| places[*at].0).max();
    let message = describe(cycle.iter().map(|at| &tasks[*at]));
    let ranked: Vec<(usize, Option<usize>)> = order.into_iter().map(|at| places[at]).collect();
    for policy in &mut *policies {
        policy.steps.clear();
    }
    for (rank, (policy, step)) in (0..).zip(ranked) {
        policies[policy].steps.push((rank, step));
    }
    last.zip(message)
}

fn describe<'t>(cycle: impl Iterator<Item = &'t Task<'t>>) -> Option<String> {
    let name = |task: &Task<'_>| match task.step {
        Step::Phase(_) => "the phase".to_owned(),
        Step::Default(default) => format!("default \"{}\"", default.name),
    };
    let names: Vec<String> = cycle.map(name).collect();
    (!names.is_empty()).then(|| format!("{} depend on each other", names.join(" and ")))
}

/// Whether two defaults, or a default and a phase, set the same place.
pub(super) fn set_the_same(one: &Task<'_>, other: &Task<'_>) -> bool {
    one.sets().iter().any(|one| other.sets().iter().any(|other| one.meets(other)))
}

/// What a step sets.
enum Set<'p> {
    /// A field; a constant, where it is only ever one.
    Field(&'p Pointer, Option<&'p Json>),
    /// A condition of a type, with these members.
    Element(&'p Pointer, &'p str, &'p [(String, Vec<ValueSource>)]),
    /// A member of conditions; whether it is removed.
    Member(&'p Pointer, &'p str, bool),
}

impl<'p> Task<'p> {
    fn sets(&self) -> Vec<Set<'p>> {
        match self.step {
            Step::Phase(rules) => {
                let time = rules.transition_time.iter().filter(|time| time.in_step);
                let paths = rules.paths().chain(time.map(|time| &time.path));
                paths.map(|path| Set::Field(path, None)).collect()
            }
            Step::Default(default) => match &default.filling {
                // To every reader a null is nothing.
                Filling::Absent(_) => Vec::new(),
                Filling::Field(path, sources) => vec![Set::Field(path, constant(sources))],
                Filling::Element { list, kind, members } => vec![Set::Element(list, kind, members)],
                Filling::Member { list, member, .. } | Filling::Steady { list, member, .. } => {
                    vec![Set::Member(list, member, false)]
                }
                Filling::AbsentMember { list, member, .. } => {
                    vec![Set::Member(list, member, true)]
                }
            },
        }
    }

    /// Whether this could give another step something to do that it did not have to do before.
    fn enables(&self, other: &Task<'_>) -> bool {
        self.sets().iter().any(|set| other.is_enabled_by(set))
    }

    fn is_enabled_by(&self, set: &Set<'_>) -> bool {
        let reader = Reader { convention: self.convention, set, element_of: None };
        let default = match self.step {
            Step::Phase(rules) => {
                let imposed = rules.phases.iter().filter_map(|phase| phase.imposed.as_ref());
                return imposed.into_iter().any(|imposed| reader.becomes(&imposed.when, true))
                    // Where there is a default phase no other default comes to it.
                    || (rules.default.is_none() && rules.paths().any(|path| set.touches(path)));
            }
            Step::Default(default) => default,
        };
        let in_list = |own: &Pointer| match set {
            Set::Element(list, ..) => *list == own,
            // The whole list, or what contains it.
            Set::Field(..) => set.touches(own),
            Set::Member(..) => false,
        };
        let member = |own: &Pointer, name: &str, removed: bool| matches!(set, Set::Member(list, other, gone) if *list == own && *other == name && *gone == removed);
        default.when.as_ref().is_some_and(|when| reader.becomes(when, true))
            || match &default.filling {
                Filling::Absent(_) => false,
                Filling::Field(_, sources) => {
                    constant_at_end(sources).is_none() && reader.copied(sources, None)
                }
                Filling::Member { list, member: name, sources } => {
                    let has = |(known, sources): &(String, Vec<ValueSource>)| {
                        known == name && constant(sources).is_some()
                    };
                    let given =
                        matches!(set, Set::Element(_, _, members) if members.iter().any(has));
                    (in_list(list) && !given)
                        || member(list, name, true)
                        || (constant_at_end(sources).is_none()
                            && reader.copied(sources, Some(list)))
                }
                Filling::Element { list, members, .. } => members.iter().any(|(name, sources)| {
                    self.requires(list, name) && reader.copied(sources, Some(list))
                }),
                Filling::Steady { list, member: own, unless } => {
                    let counts =
                        |name: &String| member(list, name, false) || member(list, name, true);
                    in_list(list) || member(list, own, true) || unless.iter().any(counts)
                }
                Filling::AbsentMember { list, member: name, of } => {
                    let reader = Reader { element_of: Some(list), ..reader };
                    // Of what another one has removed nothing is left to remove.
                    if member(list, name, true) {
                        return false;
                    }
                    in_list(list) || member(list, name, false) || reader.becomes(of, true)
                }
            }
    }

    /// Whether a condition without a member cannot be added to a list.
    fn requires(&self, path: &Pointer, name: &str) -> bool {
        let mut lists = self.convention.conditions.iter().filter(|list| list.path == *path);
        let required = |check: &Check| check.required && check.action == Action::Deny;
        lists.any(|list: &ConditionList| {
            let mut members = list.members.iter().filter(|(known, _)| known == name);
            members.any(|(_, checks)| checks.iter().any(required))
        })
    }

    /// Whether another step copies what this sets.
    fn informs(&self, other: &Task<'_>) -> bool {
        let Step::Default(default) = other.step else { return false };
        self.sets().iter().any(|set| {
            let reader = Reader { convention: other.convention, set, element_of: None };
            match &default.filling {
                Filling::Field(_, sources) => reader.copied(sources, None),
                Filling::Member { list, sources, .. } => reader.copied(sources, Some(list)),
                Filling::Element { list, members, .. } => {
                    members.iter().any(|(_, sources)| reader.copied(sources, Some(list)))
                }
                _ => false,
            }
        })
    }

    /// Whether this could leave another default without anything to do.
    fn disables(&self, other: &Task<'_>) -> bool {
        let Step::Default(default) = other.step else { return false };
        self.sets().iter().any(|set| {
            let reader = Reader { convention: other.convention, set, element_of: None };
            default.when.as_ref().is_some_and(|when| reader.becomes(when, false))
        })
    }
}

impl Set<'_> {
    /// Whether this changes what is at a path, above it or below it.
    fn touches(&self, path: &Pointer) -> bool {
        let own = self.path();
        own.contains(path) || path.contains(own)
    }

    const fn path(&self) -> &Pointer {
        match self {
            Self::Field(path, _) | Self::Element(path, ..) | Self::Member(path, ..) => path,
        }
    }

    fn meets(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Element(_, one, _), Self::Element(_, other, _))
            | (Self::Member(_, one, _), Self::Member(_, other, _))
                if one != other =>
            {
                false
            }
            (Self::Element(..), Self::Member(..)) | (Self::Member(..), Self::Element(..)) => false,
            _ => self.touches(other.path()),
        }
    }
}

/// Whether a change could turn an answer.
#[derive(Clone, Copy)]
struct Reader<'r> {
    convention: &'r Convention,
    set: &'r Set<'r>,
    /// The list of the element that is asked about.
    element_of: Option<&'r Pointer>,
}

impl Reader<'_> {
    /// Whether the result could become `wanted`.
    fn becomes(&self, predicate: &Predicate, wanted: bool) -> bool {
        predicate.words().iter().any(|word| match word {
            AnyWord::All(All { all: parts }) | AnyWord::Any(Any { any: parts }) => {
                parts.iter().any(|part| self.becomes(part, wanted))
            }
            AnyWord::Not(Not { not }) => self.becomes(not, !wanted),
            AnyWord::Condition(condition) => self.condition_becomes(condition, wanted),
            AnyWord::Value(value) => self.value_becomes(value, wanted),
            AnyWord::Set(place) => {
                self.set.touches(&place.set) && (wanted || self.constant().is_none())
            }
            // Any change of the facts that other words read counts.
            word => {
                let mut change = Change { reader: self, found: false };
                Predicate::from(word.clone()).asks(&mut change);
                change.found
            }
        })
    }

    fn condition_becomes(&self, condition: &Condition, wanted: bool) -> bool {
        let ConditionOf::Condition(kind) = &condition.of else { return false };
        if !self.is_in_a_list() {
            return false;
        }
        let Condition { is, is_not, reason, present, changed, .. } = condition;
        let (added, members) = match self.set {
            Set::Element(_, added, members) => (*added, *members),
            Set::Member(_, name, _) => {
                return changed.is_some()
                    || (*name == "status" && (is.is_some() || is_not.is_some()))
                    || (*name == "reason" && reason.is_some())
                    || (*name == "type" && present.is_some());
            }
            Set::Field(..) => return true,
        };
        if !self.are_one_type(kind, added) {
            return false;
        }
        let text = |name: &str| {
            let (_, sources) = members.iter().find(|(known, _)| known == name)?;
            constant(sources)?.as_str()
        };
        let status = |statuses: &[ConditionStatus], wanted| {
            let text = text("status");
            text.is_none_or(|text| statuses.iter().any(|one| one.name() == text) == wanted)
        };
        changed.is_some()
            || present.is_some_and(|present| present == wanted)
            || is.as_ref().is_some_and(|statuses| status(statuses, wanted))
            || is_not.as_ref().is_some_and(|statuses| status(statuses, !wanted))
            || reason.as_ref().is_some_and(|reasons| {
                let text = text("reason");
                text.is_none_or(|text| reasons.iter().any(|one| one == text) == wanted)
            })
    }

    fn value_becomes(&self, value: &Value, wanted: bool) -> bool {
        let compared = [&value.equals, &value.before].into_iter().flatten();
        let reads = self.reads(&value.place);
        if compared.into_iter().any(|other| reads || self.reads(&other.0)) {
            return true;
        }
        let Some(constant) = self.constant().filter(|_| reads) else { return reads };
        let is = |values: &[Scalar]| values.iter().any(|value| value.value() == constant);
        let Value { is: one_of, is_not, set, changed, decreased, future, past, matches, .. } =
            value;
        set.is_some_and(|set| set == wanted)
            || one_of.as_ref().is_some_and(|values| constant.is_object() || is(values) == wanted)
            || is_not.as_ref().is_some_and(|values| constant.is_object() || is(values) != wanted)
            || changed.is_some()
            || decreased.is_some()
            || future.is_some()
            || past.is_some()
            || matches.is_some()
    }

    /// The only value that a field is set to.
    const fn constant(&self) -> Option<&Json> {
        match self.set {
            Set::Field(_, value) => *value,
            _ => None,
        }
    }

    fn reads(&self, place: &Place) -> bool {
        match (place, self.set) {
            (Place::OldField(_) | Place::OldMember(_), _) => false,
            (Place::Field(path), set) => set.touches(path),
            (Place::Member(_), Set::Field(path, _)) => {
                self.element_of.is_some_and(|list| list.contains(path) || path.contains(list))
            }
            (Place::Member(_), Set::Element(list, ..)) => self.element_of == Some(list),
            (Place::Member(name), Set::Member(list, set, _)) => {
                self.element_of == Some(list) && name == set
            }
        }
    }

    /// Whether one of these sources reads what is set; `list` is where conditions are copied from.
    fn copied(&self, sources: &[ValueSource], list: Option<&Pointer>) -> bool {
        sources.iter().any(|source| match source {
            ValueSource::Field(path) => self.set.touches(path),
            ValueSource::Condition { kind, member } => match self.set {
                Set::Element(own, added, _) => list == Some(own) && self.are_one_type(kind, added),
                Set::Member(own, name, _) => list == Some(own) && member == name,
                Set::Field(..) => list.is_some_and(|list| self.set.touches(list)),
            },
            _ => false,
        })
    }

    fn is_in_a_list(&self) -> bool {
        self.convention.conditions.iter().any(|list| match self.set {
            Set::Field(..) => self.set.touches(&list.path),
            set => *set.path() == list.path,
        })
    }

    fn are_one_type(&self, one: &str, other: &str) -> bool {
        let known = |list: &ConditionList| {
            let known = list.types.find(one);
            known.is_some_and(|known| known.is_called(other))
        };
        one == other || self.convention.conditions.iter().any(known)
    }
}

/// Whether words read what is set.
struct Change<'r> {
    reader: &'r Reader<'r>,
    found: bool,
}

impl Asks<'_> for Change<'_> {
    fn phase(&mut self, old: bool) {
        let rules = self.reader.convention.phase.iter().filter(|_| !old);
        self.found |= rules.flat_map(PhaseRules::paths).any(|path| self.reader.set.touches(path));
    }

    fn observed(&mut self) {
        let rules = self.reader.convention.generation.iter();
        let mut paths = rules.flat_map(|rules| &rules.paths);
        self.found |= paths.any(|path| self.reader.set.touches(path));
    }

    fn length(&mut self, path: &Pointer, _: usize, _: usize) {
        self.found |= self.reader.set.touches(path);
    }

    fn gates(&mut self, _: &Pointer) {
        self.found |= self.reader.is_in_a_list();
    }

    fn conditions_of(&mut self, _: Polarity) {
        self.found |= self.reader.is_in_a_list();
    }
}

/// The value, where there is no other source.
fn constant(sources: &[ValueSource]) -> Option<&Json> {
    match sources {
        [ValueSource::Value(value)] => Some(value),
        _ => None,
    }
}

/// The value that is set where nothing can be copied.
fn constant_at_end(sources: &[ValueSource]) -> Option<&Json> {
    match sources.last()? {
        ValueSource::Value(value) => Some(value),
        _ => None,
    }
}
