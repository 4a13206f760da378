//! What a convention asks about an object: and/or/not over a few kinds of facts.
//!
//! In a document a predicate is a mapping. Several keys in one mapping must all hold, so most
//! predicates need no `all`:
//!
//! ```yaml
//! {condition: Ready, is: "True"}              # is, isNot: one status or several
//! {condition: Synced, reason: ReconcilePaused}
//! {condition: PodReady, present: false}
//! {oldCondition: Ready, present: true}        # the same, of the stored object
//! {phase: [Ready, Degraded]}                  # the phase of this write
//! {oldPhase: Ready}                           # the stored phase
//! {deleting: true}                            # deletionTimestamp is set
//! {set: /status/instanceNamespace}            # present and not null, "", [] or {}
//! {resource: "x*"}                            # the plural that is addressed
//! {not: …}  {all: […]}  {any: […]}
//! ```

use crate::model::{ConditionStatus, Pointer};

use super::Glob;
use super::yaml::{Node, Problems, Value};

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
    /// The field holds something.
    Set(Pointer),
    /// The plural that is addressed matches.
    Resource(Glob),
}

/// What is asked of a condition.
#[derive(Clone, Debug, PartialEq)]
pub enum ConditionTest {
    /// Its status is one of these.
    Is(Vec<ConditionStatus>),
    /// Its reason is one of these.
    Reason(Vec<String>),
    /// It is in the list at all. The only test for which absence is an answer.
    Present,
}

/// Reads a predicate. `phases` are the names that `phase` and `oldPhase` may use.
pub(crate) fn read(node: &Node, problems: &Problems, phases: &[String]) -> Option<Predicate> {
    let map = problems.map(node)?;
    let mut parts = Vec::new();
    let nested = |item| read(item, problems, phases);
    if let Some(node) = map.get("all") {
        parts.push(Predicate::All(problems.list(node, nested)));
    }
    if let Some(node) = map.get("any") {
        parts.push(Predicate::Any(problems.list(node, nested)));
    }
    if let Some(node) = map.get("not") {
        parts.extend(nested(node).map(Box::new).map(Predicate::Not));
    }
    let (current, old) = (map.get("condition"), map.get("oldCondition"));
    if let (Some(node), Some(_)) = (current, old) {
        problems.report(&node.span, "\"condition\" and \"oldCondition\" need a predicate each");
    }
    if let Some(name) = current.or(old).and_then(|node| problems.string(node)) {
        let before = parts.len();
        let mut test = |test, negated: bool| {
            let part = Predicate::Condition { old: old.is_some(), kind: name.to_owned(), test };
            parts.push(if negated { Predicate::Not(Box::new(part)) } else { part });
        };
        if let Some(node) = map.get("is") {
            test(
                ConditionTest::Is(problems.one_or_many(node, |item| status(item, problems))),
                false,
            );
        }
        if let Some(node) = map.get("isNot") {
            test(
                ConditionTest::Is(problems.one_or_many(node, |item| status(item, problems))),
                true,
            );
        }
        if let Some(node) = map.get("reason") {
            let reasons =
                problems.one_or_many(node, |item| problems.string(item).map(str::to_owned));
            test(ConditionTest::Reason(reasons), false);
        }
        if let Some(present) = map.get("present").and_then(|node| problems.boolean(node)) {
            test(ConditionTest::Present, !present);
        }
        if parts.len() == before {
            problems.report_with_help(
                &map.node.span,
                format!("nothing is asked of condition {name}"),
                Some("add is, isNot, reason or present".to_owned()),
            );
        }
    }
    let names = |node| {
        problems.one_or_many(node, |item| {
            let name = problems.string(item)?;
            if !phases.iter().any(|phase| phase == name) {
                problems.unknown(&item.span, "phase", name, phases.iter().map(String::as_str));
            }
            Some(name.to_owned())
        })
    };
    if let Some(node) = map.get("phase") {
        parts.push(Predicate::Phase(names(node)));
    }
    if let Some(node) = map.get("oldPhase") {
        parts.push(Predicate::OldPhase(names(node)));
    }
    if let Some(deleting) = map.get("deleting").and_then(|node| problems.boolean(node)) {
        let part = Predicate::Deleting;
        parts.push(if deleting { part } else { Predicate::Not(Box::new(part)) });
    }
    if let Some(node) = map.get("set") {
        parts.extend(pointer(node, problems).map(Predicate::Set));
    }
    if let Some(node) = map.get("resource") {
        parts.extend(problems.parsed(node).map(Predicate::Resource));
    }
    if parts.is_empty() && map.entries().is_empty() {
        problems.report(&map.node.span, "an empty predicate says nothing");
    }
    map.close();
    if parts.len() == 1 { parts.pop() } else { Some(Predicate::All(parts)) }
}

/// A condition status. YAML reads an unquoted `True` as a boolean; here it can mean only one thing.
fn status(node: &Node, problems: &Problems) -> Option<ConditionStatus> {
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

/// A pointer to something inside `.status`: the only place that rules speak of.
pub(crate) fn pointer(node: &Node, problems: &Problems) -> Option<Pointer> {
    let pointer: Pointer = problems.parsed(node)?;
    if !pointer.is_below_status() {
        problems.report(&node.span, "this must point below /status");
        return None;
    }
    Some(pointer)
}
