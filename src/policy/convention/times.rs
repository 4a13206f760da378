//! When the transition time of a condition moves.

use super::super::Action;
use super::{Reader, Sanction};
use crate::source::tree::{Node, Value};

/// How far a transition time may lie ahead of our clock when a document does not say: what
/// clusters with unsynchronised nodes show in practice, and far below what would hide an outage.
const DEFAULT_SKEW_SECONDS: i64 = 300;

/// The most that a document may say. Clocks that are a day apart are broken, and certificates fail
/// before conditions do.
const MAX_SKEW_SECONDS: i64 = 86_400;

/// When the transition time of a condition moves.
#[derive(Clone, Debug)]
pub struct TransitionTimes {
    /// The member that holds it.
    pub member: String,
    /// A change in one of these must move it.
    pub must_move_on: Vec<String>,
    /// Only a change in one of these may move it.
    pub may_move_on: Movers,
    /// Said of a change that did not move it.
    pub kept: Sanction,
    /// Said of a move without a change.
    pub moved: Sanction,
    /// Said of a move into the past, of a condition that changed.
    pub backwards: Sanction,
    /// Said of a move into the past, of a condition that did not.
    pub backwards_unchanged: Sanction,
    /// Said of a move further into the future than `skew`.
    pub future: Sanction,
    /// The clock difference that is no fault, in seconds.
    pub skew: i64,
    /// Where these come from.
    pub source: String,
}

/// What may move a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Movers {
    /// Every write: ACK stamps all conditions anew each time it looks.
    Anything,
    /// A change in one of these members.
    Members(Vec<String>),
}

impl Reader<'_> {
    pub(super) fn transition_times(&self, node: &Node) -> Option<TransitionTimes> {
        let map = self.problems.map(node)?;
        let member = self.required(&map, "member").and_then(|node| self.problems.string(node));
        let skew = map.get("skewSeconds").and_then(|node| {
            let skew = self.problems.integer(node)?;
            if skew < 0 {
                self.problems.report(&node.span, "clocks cannot differ by less than nothing");
            }
            if skew > MAX_SKEW_SECONDS {
                let message = format!("clocks differ by at most {MAX_SKEW_SECONDS} seconds, a day");
                self.problems.report(&node.span, message);
            }
            Some(skew)
        });
        let movers = match map.get("mayMoveOn") {
            Some(Node { value: Value::String(word), .. }) if word == "anything" => Movers::Anything,
            _ => Movers::Members(self.strings(&map, "mayMoveOn")),
        };
        let sanction = |key, rule, default| self.sanction(&map, key, rule, default);
        let backwards = sanction("backwards", "transition-time-backwards", Action::Warn);
        let times = TransitionTimes {
            member: member.unwrap_or_default().to_owned(),
            must_move_on: self.strings(&map, "mustMoveOn"),
            may_move_on: movers,
            kept: sanction("kept", "transition-time-kept", Action::Warn),
            moved: sanction("moved", "transition-time-moved", Action::Warn),
            backwards_unchanged: self
                .sanction_if_said(&map, "backwardsUnchanged", "transition-time-backwards")
                .unwrap_or_else(|| backwards.clone()),
            backwards,
            future: sanction("future", "transition-time-future", Action::Deny),
            skew: skew.unwrap_or(DEFAULT_SKEW_SECONDS),
            source: self.text(&map, "source"),
        };
        for name in &times.must_move_on {
            if self.complete && !times.may_move_on.include(name) {
                let message = format!("\"{name}\" must move the time but is not in mayMoveOn");
                self.problems.report(&map.node.span, message);
            }
        }
        map.close();
        Some(times)
    }
}

impl Movers {
    /// Whether a change of this member may move the time.
    #[must_use]
    pub fn include(&self, member: &str) -> bool {
        match self {
            Self::Anything => true,
            Self::Members(members) => members.iter().any(|name| name == member),
        }
    }
}
