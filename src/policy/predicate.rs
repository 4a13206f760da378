//! Reads predicates from a tree.

use super::convention::{Names, read_polarity};
use crate::language::{
    All, Any, AnyPointer, AnyWord, Condition, ConditionOf, Deleting, ElementPolarity, Gates,
    Length, Not, Observed, ObservedGeneration, OldPhase, OneOrMany, Operand, Phase, Place,
    Predicate, ResourceName, Scalar, Set, Value as ValueWord,
};
use crate::model::{ConditionStatus, Pointer};
use crate::source::tree::{Map, Node, Problems, Value};

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

/// The keys that have their own tests: a mapping has room for one of them.
const SUBJECTS: [&str; 6] =
    ["condition", "oldCondition", "field", "oldField", "member", "oldMember"];

impl Reader<'_> {
    fn predicate(&self, node: &Node) -> Option<Predicate> {
        let problems = self.problems;
        let map = problems.map(node)?;
        let mut words: Vec<AnyWord> = Vec::new();
        let nested = |item| self.predicate(item);
        if let Some(node) = map.get("all") {
            let why = "an empty list: this would always hold";
            words.push(All { all: problems.filled_list(node, why, nested) }.into());
        }
        if let Some(node) = map.get("any") {
            let why = "an empty list: this would never hold";
            words.push(Any { any: problems.filled_list(node, why, nested) }.into());
        }
        if let Some(node) = map.get("not") {
            words.extend(nested(node).map(|not| Not { not }.into()));
        }
        let entries = map.entries().iter();
        let subjects: Vec<_> =
            entries.filter(|(key, _)| SUBJECTS.contains(&key.name.as_str())).collect();
        if let [(one, _), (other, _), ..] = subjects[..] {
            let message = format!("\"{}\" and \"{}\" need a predicate each", one.name, other.name);
            problems.report(&other.span, message);
        }
        words.extend(self.condition(&map).map(AnyWord::from));
        self.value(&map, &mut words);
        self.circumstances(&map, &mut words);
        if words.is_empty() && map.entries().is_empty() {
            problems.report(&map.node.span, "an empty predicate says nothing");
        }
        map.close();
        Some(words.into_iter().collect())
    }

    fn condition(&self, map: &Map<'_>) -> Option<Condition> {
        let problems = self.problems;
        let (current, old) = (map.get("condition"), map.get("oldCondition"));
        let kind = current.or(old).and_then(|node| problems.string(node))?.to_owned();
        let mistakes = problems.count();
        let statuses = |node| problems.filled(node, |item| status(item, problems));
        let reason = |item| problems.string(item).map(str::to_owned);
        let flag = |key| map.get(key).and_then(|node| problems.boolean(node));
        let none = Condition {
            of: match current {
                Some(_) => ConditionOf::Condition(kind),
                None => ConditionOf::OldCondition(kind),
            },
            ..Condition::of("")
        };
        let found = Condition {
            is: map.get("is").map(|node| OneOrMany(statuses(node))),
            is_not: map.get("isNot").map(|node| OneOrMany(statuses(node))),
            reason: map.get("reason").map(|node| OneOrMany(problems.filled(node, reason))),
            present: flag("present"),
            changed: flag("changed"),
            ..none.clone()
        };
        if found == none && problems.count() == mistakes {
            problems.report_with_help(
                &map.node.span,
                format!("nothing is asked of condition {}", none.of.kind()),
                Some("add is, isNot, reason, present or changed".to_owned()),
            );
        }
        Some(found)
    }

    fn value(&self, map: &Map<'_>, words: &mut Vec<AnyWord>) {
        let problems = self.problems;
        // Beside a field or a member, `set: true` is a question about it.
        let of_value = SUBJECTS[2..].iter().any(|subject| map.node.member(subject).is_some());
        if let Some(path) = map.get("set").filter(|_| !of_value) {
            words.extend(problems.parsed(path).map(|set| Set { set }.into()));
        }
        let (current, old) = (map.get("field"), map.get("oldField"));
        let place = match current.or(old) {
            Some(node) => problems.parsed(node).map(match current {
                Some(_) => Place::Field,
                None => Place::OldField,
            }),
            None if self.of_element => {
                let (current, old) = (map.get("member"), map.get("oldMember"));
                let name = current.or(old).and_then(|node| problems.string(node));
                name.map(str::to_owned).map(match current {
                    Some(_) => Place::Member,
                    None => Place::OldMember,
                })
            }
            None => None,
        };
        let Some(place) = place else { return };
        let mistakes = problems.count();
        let values = |node| OneOrMany(problems.filled(node, |item| scalar(item, problems)));
        let flag = |key| map.get(key).and_then(|node| problems.boolean(node));
        let other = |key| map.get(key).and_then(|node| self.operand(node));
        let none = ValueWord::of(place);
        let found = ValueWord {
            is: map.get("is").map(values),
            is_not: map.get("isNot").map(values),
            set: flag("set"),
            changed: flag("changed"),
            decreased: flag("decreased"),
            future: flag("future"),
            matches: map.get("matches").and_then(|node| problems.parsed(node)),
            equals: other("equals"),
            before: other("before"),
            ..none.clone()
        };
        if found == none && problems.count() == mistakes {
            let help = "add is, isNot, set, changed, decreased, future, matches, equals or before";
            problems.report_with_help(
                &map.node.span,
                format!("nothing is asked of {}", none.place),
                Some(help.to_owned()),
            );
        }
        words.push(found.into());
    }

    /// `/status/x`, or in rules about elements the name of another member.
    fn operand(&self, node: &Node) -> Option<Operand> {
        if self.of_element {
            return self.problems.parsed(node);
        }
        self.problems.parsed(node).map(|path| Operand(Place::Field(path)))
    }

    fn circumstances(&self, map: &Map<'_>, words: &mut Vec<AnyWord>) {
        let problems = self.problems;
        if let Some(node) = map.get("phase") {
            words.push(Phase { phase: self.phase_names(node) }.into());
        }
        if let Some(node) = map.get("oldPhase") {
            words.push(OldPhase { old_phase: self.phase_names(node) }.into());
        }
        if let Some(deleting) = map.get("deleting").and_then(|node| problems.boolean(node)) {
            words.push(Deleting { deleting }.into());
        }
        if let Some(node) = map.get("observed") {
            let all = [Observed::Behind, Observed::Current, Observed::Ahead];
            let all = all.map(|observed| (observed.name(), observed));
            let observed = OneOrMany(problems.filled(node, |item| problems.word(item, &all)));
            words.push(ObservedGeneration { observed }.into());
        }
        if let Some(node) = map.get("length") {
            let limit = |key| map.get(key).and_then(|node| super::schema::size(node, problems));
            let (at_least, at_most) = (limit("atLeast"), limit("atMost"));
            if ["atLeast", "atMost"].iter().all(|key| map.node.member(key).is_none()) {
                problems.report(&node.span, "a length needs \"atLeast\" or \"atMost\"");
            } else if at_least.zip(at_most).is_some_and(|(least, most)| least > most) {
                problems.report(&node.span, "no length is at least and at most this");
            }
            let length = problems.parsed(node);
            words.extend(length.map(|length| Length { length, at_least, at_most }.into()));
        }
        if let Some(node) = map.get("gates") {
            words.extend(problems.parsed(node).map(|gates| Gates { gates }.into()));
        }
        if self.of_element
            && let Some(node) = map.get("polarity")
        {
            let polarity = problems.filled(node, |item| read_polarity(item, problems));
            words.push(ElementPolarity { polarity: OneOrMany(polarity) }.into());
        }
        if let Some(node) = map.get("resource") {
            let resource = OneOrMany(problems.filled(node, |item| problems.parsed(item)));
            words.push(ResourceName { resource }.into());
        }
    }

    fn phase_names(&self, node: &Node) -> OneOrMany<String> {
        OneOrMany(self.problems.filled(node, |item| {
            let name = self.problems.string(item)?;
            self.names.check_phase(&item.span, name, self.problems);
            Some(name.to_owned())
        }))
    }
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

/// A text, number or boolean.
fn scalar(node: &Node, problems: &Problems) -> Option<Scalar> {
    if matches!(node.value, Value::List(_) | Value::Map(_) | Value::Null) {
        problems.report(&node.span, "this must be a text, a number, true or false");
        return None;
    }
    problems.json(node)?.try_into().ok()
}

/// A text as members of conditions have it. YAML reads an unquoted `True` as a boolean; in a
/// condition it can mean only the status.
pub(crate) fn scalar_text(node: &Node, problems: &Problems) -> Option<String> {
    match unquoted_status(node) {
        serde_json::Value::String(text) => Some(text),
        _ => problems.string(node).map(str::to_owned),
    }
}

/// A JSON value, where an unquoted `True` or `False` is the status of a condition.
pub(crate) fn unquoted_status(node: &Node) -> serde_json::Value {
    match &node.value {
        Value::Bool(true) => "True".into(),
        Value::Bool(false) => "False".into(),
        _ => node.to_json(),
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
    problems.parsed::<AnyPointer>(node).map(Pointer::from)
}
