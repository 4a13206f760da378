//! A rule of a convention: a predicate that should not hold, and what happens when it does.

use super::super::predicate::{self, pointer};
use super::super::{Action, Disposition};
use super::{PhaseRules, Reader};
use crate::language::Predicate;
use crate::model::Pointer;
use crate::source::tree::{Node, Problems, Value};

/// A rule that is built into the engine: what it is called here and what happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sanction {
    /// The rule id.
    pub rule: String,
    /// What happens on a violation.
    pub action: Disposition,
}

/// A rule that needs a predicate.
#[derive(Clone, Debug)]
pub struct Rule {
    /// `appcat/instance-namespace`.
    pub id: String,
    /// The violation: the rule fires when this definitely holds.
    pub when: Predicate,
    /// Which writes it looks at.
    pub trigger: Trigger,
    /// What happens.
    pub action: Disposition,
    /// The field that is named in the answer.
    pub path: Pointer,
    /// The condition list it speaks of, where it is not the first.
    pub list: Option<Pointer>,
    /// The sentence in the answer.
    pub message: String,
    /// Where it comes from.
    pub source: String,
    /// Off, unless a policy enables it.
    pub optional: bool,
}

/// Which writes a rule looks at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// Every write that leaves the violation.
    State,
    /// Writes that bring the violation in: the stored object did not have it in the same place.
    Introduced,
    /// Writes that changed one of these.
    Moved(Vec<Watched>),
    /// Writes that changed all of these, or made the status.
    CoWritten(Vec<Watched>),
}

/// Something whose change a trigger waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Watched {
    /// The value at a pointer.
    Field(Pointer),
    /// The status of the condition of this type.
    Condition(String),
}

impl Reader<'_> {
    pub(super) fn rule(&self, node: &Node, phase: Option<&PhaseRules>) -> Option<Rule> {
        let map = self.problems.map(node)?;
        let id = map.required("id").and_then(|node| self.problems.identifier(node));
        let when = map.required("when");
        let when = when.and_then(|node| predicate::read(node, self.problems, self.names));
        let trigger = map
            .get("trigger")
            .map_or(Some(Trigger::Introduced), |node| read_trigger(node, self.problems));
        let action = map.required("action");
        let action = action.and_then(|node| Disposition::read(node, self.problems));
        let list = map.get("in").and_then(|node| {
            let list = pointer(node, self.problems)?;
            self.names.check_list(&node.span, &list.to_string(), self.problems);
            Some(list)
        });
        let path = match map.get("path") {
            Some(node) => pointer(node, self.problems),
            None => list.clone().or_else(|| phase.map(|phase| phase.path.clone())).or_else(|| {
                self.required(&map, "path");
                None
            }),
        };
        let message = map.required("message");
        let message = message.and_then(|node| self.problems.sentence(node, "message"));
        let (source, optional) = (self.text(&map, "source"), self.flag(&map, "optional"));
        map.close();
        Some(Rule {
            id: self.id(id?),
            when: when?,
            trigger: trigger?,
            action: action?,
            path: path?,
            list,
            message: message?.to_owned(),
            source,
            optional,
        })
    }
}

/// Reads a trigger: one of two words, or a mapping with what is watched. The rules of policies have
/// the same.
pub(crate) fn read_trigger(node: &Node, problems: &Problems) -> Option<Trigger> {
    if let Value::String(_) = node.value {
        let words = [("state", false), ("introduced", true)];
        let introduced = problems.word(node, &words)?;
        return Some(if introduced { Trigger::Introduced } else { Trigger::State });
    }
    let map = problems.map(node)?;
    let watched = |node| problems.filled(node, |item| watched(item, problems));
    let moved = map.get("moved").map(watched).map(Trigger::Moved);
    let written = map.get("coWritten").map(watched).map(Trigger::CoWritten);
    let span = &map.node.span;
    let trigger = match (moved, written) {
        (Some(trigger), None) | (None, Some(trigger)) => Some(trigger),
        _ => {
            problems.report(span, "a trigger is state, introduced, moved or coWritten");
            None
        }
    };
    map.close();
    trigger
}

/// `/status/phase`, or `condition Ready`.
fn watched(node: &Node, problems: &Problems) -> Option<Watched> {
    let text = problems.string(node)?;
    if let Some(kind) = text.strip_prefix("condition ").filter(|kind| !kind.is_empty()) {
        return Some(Watched::Condition(kind.to_owned()));
    }
    if !text.starts_with('/') {
        let message = "this is neither a field nor a condition";
        let help = "write a pointer such as /status/phase, or \"condition\" and a type".to_owned();
        problems.report_with_help(&node.span, message, Some(help));
        return None;
    }
    pointer(node, problems).map(Watched::Field)
}

impl From<Action> for Disposition {
    fn from(action: Action) -> Self {
        Self::Fixed(action)
    }
}
