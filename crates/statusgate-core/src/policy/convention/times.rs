//! When the transition time of a condition changes.

use super::super::Disposition;
use super::super::compile::Compiler;
use super::Sanction;
use crate::documents;
use crate::language::SKEW_SECONDS;
use crate::source::tree::At;

/// The largest value in a document. With clocks that differ by a day, certificates fail before conditions
/// do.
const MAX_SKEW_SECONDS: i64 = 86_400;

/// When the transition time of a condition changes.
#[derive(Clone, Debug)]
pub struct TransitionTimes {
    /// The member that holds it.
    pub member: String,
    /// A change in one of these must move it.
    pub must_move_on: Vec<String>,
    /// Only a change in one of these may move it.
    pub may_move_on: Movers,
    /// A change did not move it. `None` if no change must.
    pub kept: Option<Sanction>,
    /// It moved without a change. `None` if every write may move it.
    pub moved: Option<Sanction>,
    /// The time of a changed condition went backwards.
    pub backwards: Sanction,
    /// The time of an unchanged condition went backwards.
    pub backwards_unchanged: Sanction,
    /// The time is further in the future than `skew`.
    pub future: Sanction,
    /// The clock difference that is accepted, in seconds.
    pub skew: i64,
    /// Where these come from.
    pub source: String,
}

/// What may move a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Movers {
    /// Every write: ACK sets the time of all conditions at each reconciliation.
    Anything,
    /// A change in one of these members.
    Members(Vec<String>),
}

impl Compiler<'_> {
    pub(super) fn transition_times(
        &self,
        document: &documents::TransitionTime,
        list: &documents::ConditionList,
        resource_version: bool,
        at: At<'_>,
    ) -> TransitionTimes {
        let skew = document.skew_seconds.unwrap_or(SKEW_SECONDS);
        if skew < 0 {
            at.key("skewSeconds").report("a difference of clocks cannot be negative");
        }
        if skew > MAX_SKEW_SECONDS {
            let message = format!("clocks differ by at most {MAX_SKEW_SECONDS} seconds, a day");
            at.key("skewSeconds").report(message);
        }
        let rules = self.tables(&[&document.source, &list.source]);
        let backwards =
            rules.sanction("transition-time-backwards", document.backwards, Disposition::Warn);
        // Without a resourceVersion, a writer with a stale cache repeats an older time.
        let strict = resource_version.then_some(Disposition::Deny);
        let unchanged = document.backwards_unchanged.or(strict).or(document.backwards);
        let backwards_unchanged =
            rules.sanction("transition-time-backwards", unchanged, Disposition::Warn);
        let must_move_on = document.must_move_on.0.clone();
        let may_move_on = match document.may_move_on.0.clone() {
            words if words == [ANYTHING] => Movers::Anything,
            members => Movers::Members(members),
        };
        let kept = || rules.sanction("transition-time-kept", document.kept, Disposition::Warn);
        let moved = || rules.sanction("transition-time-moved", document.moved, Disposition::Warn);
        let times = TransitionTimes {
            member: document.member.clone(),
            kept: (!must_move_on.is_empty()).then(kept),
            must_move_on,
            moved: (may_move_on != Movers::Anything).then(moved),
            may_move_on,
            backwards,
            backwards_unchanged,
            future: rules.sanction("transition-time-future", document.future, Disposition::Deny),
            skew,
            source: document.source.clone(),
        };
        for name in &times.must_move_on {
            if self.complete && !times.may_move_on.include(name) {
                at.report(format!("\"{name}\" must move the time but is not in mayMoveOn"));
            }
        }
        times
    }
}

/// The word for every write.
pub(super) const ANYTHING: &str = "anything";

impl Movers {
    /// Whether a change of this member may move the time.
    pub fn include(&self, member: &str) -> bool {
        match self {
            Self::Anything => true,
            Self::Members(members) => members.iter().any(|name| name == member),
        }
    }
}
