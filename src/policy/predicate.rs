//! What a convention asks about an object: and/or/not over a few kinds of facts.
//!
//! In a document a predicate is a mapping. Several keys in one mapping must all hold, so most
//! predicates need no `all`:
//!
//! ```yaml
//! {condition: Ready, is: "True"}              # is, isNot: one status or several
//! {condition: Synced, reason: ReconcilePaused} # one reason or several; "" is none, too
//! {condition: PodReady, present: false}
//! {condition: Ready, changed: true}           # this write changed it
//! {oldCondition: Ready, present: true}        # the same, of the stored object
//! {phase: [Ready, Degraded]}                  # the phase of this write
//! {oldPhase: Ready}                           # the stored phase
//! {deleting: true}                            # deletionTimestamp is set
//! {observed: behind}                          # observedGeneration: behind, current or ahead
//! {set: /status/instanceNamespace}            # present and not null, "", [] or {}
//! {field: /status/replicas, is: 0}            # is, isNot, set, changed, decreased, future, matches,
//! {oldField: /spec/paused, is: true}          # equals and before (another field); old: stored
//! {length: /status/conditions, atLeast: 21}   # atLeast, atMost
//! {gates: /spec/readinessGates}               # the conditions that the spec asks for are good
//! {resource: "x*"}                            # the plural that is addressed
//! {not: …}  {all: […]}  {any: […]}
//! ```
//!
//! In the rules about each element of a list there are more: `{member: severity, set: true}` and
//! `{oldMember: severity, set: true}`, of the stored element, with all that `field` can be asked, and
//! `{polarity: positive}`, the polarity of its type.

mod value;

use crate::model::{ConditionStatus, Pointer};

use super::convention::{Names, Polarity};
use super::{Glob, Observed};
use crate::source::tree::{Map, Node, Problems, Value};

pub use value::{Place, ValueTest};
pub(crate) use value::{scalar_text, unquoted_status};

/// A question about an object. Its answer has three values; see `engine::evidence`.
#[derive(Clone, Debug, PartialEq)]
pub enum Predicate {
    /// All hold.
    All(Vec<Self>),
    /// At least one holds.
    Any(Vec<Self>),
    /// It does not hold.
    Not(Box<Self>),
    /// A condition of the object, or of the stored one.
    Condition {
        /// Read from the stored object.
        old: bool,
        /// The condition's type.
        kind: String,
        /// What is asked of it.
        test: ConditionTest,
    },
    /// The phase is one of these.
    Phase(Vec<String>),
    /// The stored phase is one of these.
    OldPhase(Vec<String>),
    /// `metadata.deletionTimestamp` is set.
    Deleting,
    /// The object's own `observedGeneration` is one of these.
    Observed(Vec<Observed>),
    /// A value of the object.
    Value(Place, ValueTest),
    /// The number of items in a list.
    Length {
        /// The list.
        path: Pointer,
        /// The least number.
        at_least: usize,
        /// The largest number.
        at_most: usize,
    },
    /// Every condition that this list in the spec asks for is good.
    Gates(Pointer),
    /// The polarity of the element's type is one of these.
    Polarity(Vec<Polarity>),
    /// The plural that is addressed matches.
    Resource(Vec<Glob>),
}

/// What is asked of a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConditionTest {
    /// Its status is one of these.
    Is(Vec<ConditionStatus>),
    /// Its reason is one of these. The empty one stands for absence too.
    Reason(Vec<String>),
    /// It is in the list at all. The only test for which absence is an answer.
    Present,
    /// This write changed it.
    Changed,
}

/// Reads a predicate. `names` has those that `phase` and `oldPhase` may use.
pub(crate) fn read(node: &Node, problems: &Problems, names: &Names) -> Option<Predicate> {
    Reader { problems, names, of_element: false }.predicate(node)
}

/// Reads a predicate about one element of a list.
pub(crate) fn read_of_element(
    node: &Node,
    problems: &Problems,
    names: &Names,
) -> Option<Predicate> {
    Reader { problems, names, of_element: true }.predicate(node)
}

struct Reader<'r> {
    problems: &'r Problems,
    names: &'r Names,
    of_element: bool,
}

/// The keys that bring their own questions: a mapping has room for one of them.
const SUBJECTS: [&str; 6] =
    ["condition", "oldCondition", "field", "oldField", "member", "oldMember"];

/// Those of them whose value is asked about.
const VALUES: [&str; 4] = ["field", "oldField", "member", "oldMember"];

impl Reader<'_> {
    fn predicate(&self, node: &Node) -> Option<Predicate> {
        let problems = self.problems;
        let map = problems.map(node)?;
        let mut parts = Vec::new();
        let nested = |item| self.predicate(item);
        if let Some(node) = map.get("all") {
            parts.push(Predicate::All(problems.filled_list(
                node,
                "an empty list: this would always hold",
                nested,
            )));
        }
        if let Some(node) = map.get("any") {
            parts.push(Predicate::Any(problems.filled_list(
                node,
                "an empty list: this would never hold",
                nested,
            )));
        }
        if let Some(node) = map.get("not") {
            parts.extend(nested(node).map(Box::new).map(Predicate::Not));
        }
        let entries = map.entries().iter();
        let subjects: Vec<_> =
            entries.filter(|(key, _)| SUBJECTS.contains(&key.name.as_str())).collect();
        if let [(one, _), (other, _), ..] = subjects[..] {
            let message = format!("\"{}\" and \"{}\" need a predicate each", one.name, other.name);
            problems.report(&other.span, message);
        }
        self.condition(&map, &mut parts);
        self.value(&map, &mut parts);
        self.circumstances(&map, &mut parts);
        if parts.is_empty() && map.entries().is_empty() {
            problems.report(&map.node.span, "an empty predicate says nothing");
        }
        map.close();
        if parts.len() == 1 { parts.pop() } else { Some(Predicate::All(parts)) }
    }

    fn condition(&self, map: &Map<'_>, parts: &mut Vec<Predicate>) {
        let problems = self.problems;
        let (current, old) = (map.get("condition"), map.get("oldCondition"));
        let Some(name) = current.or(old).and_then(|node| problems.string(node)) else { return };
        let (before, mistakes) = (parts.len(), problems.count());
        let mut test = |test, negated: bool| {
            let old = current.is_none();
            push(parts, Predicate::Condition { old, kind: name.to_owned(), test }, negated);
        };
        let statuses = |node| problems.filled(node, |item| status(item, problems));
        if let Some(node) = map.get("is") {
            test(ConditionTest::Is(statuses(node)), false);
        }
        if let Some(node) = map.get("isNot") {
            test(ConditionTest::Is(statuses(node)), true);
        }
        if let Some(node) = map.get("reason") {
            let reason = |item| problems.string(item).map(str::to_owned);
            test(ConditionTest::Reason(problems.filled(node, reason)), false);
        }
        if let Some(present) = map.get("present").and_then(|node| problems.boolean(node)) {
            test(ConditionTest::Present, !present);
        }
        if let Some(changed) = map.get("changed").and_then(|node| problems.boolean(node)) {
            test(ConditionTest::Changed, !changed);
        }
        if parts.len() == before && problems.count() == mistakes {
            problems.report_with_help(
                &map.node.span,
                format!("nothing is asked of condition {name}"),
                Some("add is, isNot, reason, present or changed".to_owned()),
            );
        }
    }

    fn value(&self, map: &Map<'_>, parts: &mut Vec<Predicate>) {
        let problems = self.problems;
        // Beside a field or a member, `set: true` is a question about it.
        let of_value = VALUES.iter().any(|subject| map.node.member(subject).is_some());
        if let Some(path) = map.get("set").filter(|_| !of_value) {
            let place = any_pointer(path, problems).map(|path| Place::Field { old: false, path });
            parts.extend(place.map(|place| Predicate::Value(place, ValueTest::Set)));
        }
        let (current, old) = (map.get("field"), map.get("oldField"));
        let place = match current.or(old) {
            Some(node) => any_pointer(node, problems)
                .map(|path| Place::Field { old: current.is_none(), path }),
            None if self.of_element => {
                let (current, old) = (map.get("member"), map.get("oldMember"));
                let name = current.or(old).and_then(|node| problems.string(node));
                name.map(|name| Place::Member { old: current.is_none(), name: name.to_owned() })
            }
            None => None,
        };
        let Some(place) = place else { return };
        let (before, mistakes) = (parts.len(), problems.count());
        for (test, negated) in value::read_tests(map, problems, self.of_element) {
            push(parts, Predicate::Value(place.clone(), test), negated);
        }
        if parts.len() == before && problems.count() == mistakes {
            problems.report_with_help(
                &map.node.span,
                format!("nothing is asked of {place}"),
                Some(format!("add {}", value::TESTS)),
            );
        }
    }

    fn circumstances(&self, map: &Map<'_>, parts: &mut Vec<Predicate>) {
        let problems = self.problems;
        if let Some(node) = map.get("phase") {
            parts.push(Predicate::Phase(self.phase_names(node)));
        }
        if let Some(node) = map.get("oldPhase") {
            parts.push(Predicate::OldPhase(self.phase_names(node)));
        }
        if let Some(deleting) = map.get("deleting").and_then(|node| problems.boolean(node)) {
            push(parts, Predicate::Deleting, !deleting);
        }
        if let Some(node) = map.get("observed") {
            let words = [
                ("behind", Observed::Behind),
                ("current", Observed::Current),
                ("ahead", Observed::Ahead),
            ];
            let observed = problems.filled(node, |item| problems.word(item, &words));
            parts.push(Predicate::Observed(observed));
        }
        if let Some(node) = map.get("length") {
            let limit = |key| map.get(key).and_then(|node| super::schema::size(node, problems));
            let (at_least, at_most) = (limit("atLeast"), limit("atMost"));
            if ["atLeast", "atMost"].iter().all(|key| map.node.member(key).is_none()) {
                problems.report(&node.span, "a length needs \"atLeast\" or \"atMost\"");
            } else if at_least.zip(at_most).is_some_and(|(least, most)| least > most) {
                problems.report(&node.span, "no length is at least and at most this");
            }
            parts.extend(any_pointer(node, problems).map(|path| Predicate::Length {
                path,
                at_least: at_least.unwrap_or(0),
                at_most: at_most.unwrap_or(usize::MAX),
            }));
        }
        if let Some(node) = map.get("gates") {
            parts.extend(any_pointer(node, problems).map(Predicate::Gates));
        }
        if self.of_element
            && let Some(node) = map.get("polarity")
        {
            let read = |item| super::convention::read_polarity(item, problems);
            parts.push(Predicate::Polarity(problems.filled(node, read)));
        }
        if let Some(node) = map.get("resource") {
            let globs = problems.filled(node, |item| problems.parsed(item));
            parts.push(Predicate::Resource(globs));
        }
    }

    fn phase_names(&self, node: &Node) -> Vec<String> {
        self.problems.filled(node, |item| {
            let name = self.problems.string(item)?;
            self.names.check_phase(&item.span, name, self.problems);
            Some(name.to_owned())
        })
    }
}

fn push(parts: &mut Vec<Predicate>, part: Predicate, negated: bool) {
    parts.push(if negated { Predicate::Not(Box::new(part)) } else { part });
}

/// A condition status. YAML reads an unquoted `True` as a boolean; here it can mean only one thing.
pub(crate) fn status(node: &Node, problems: &Problems) -> Option<ConditionStatus> {
    match &node.value {
        Value::Bool(true) => Some(ConditionStatus::True),
        Value::Bool(false) => Some(ConditionStatus::False),
        _ => problems.word(
            node,
            &[
                ("True", ConditionStatus::True),
                ("False", ConditionStatus::False),
                ("Unknown", ConditionStatus::Unknown),
            ],
        ),
    }
}

/// A pointer to something inside `.status`: what rules judge and change.
pub(crate) fn pointer(node: &Node, problems: &Problems) -> Option<Pointer> {
    let pointer: Pointer = problems.parsed(node)?;
    if !pointer.is_below_status() {
        problems.report(&node.span, "this must point below /status");
        return None;
    }
    Some(pointer)
}

/// A pointer to something that may be asked for: inside `.status` or `.spec`.
pub(crate) fn any_pointer(node: &Node, problems: &Problems) -> Option<Pointer> {
    let pointer: Pointer = problems.parsed(node)?;
    if !pointer.is_below_status() && pointer.below_spec().is_empty() {
        problems.report(&node.span, "this must point below /status or /spec");
        return None;
    }
    Some(pointer)
}
