//! When the transition time of a condition changes.

use super::super::Disposition;
use super::super::compile::Compiler;
use super::{ConditionList, Sanction, TransitionTime};
use crate::language::SKEW_SECONDS;
use crate::source::tree::At;

/// The largest value in a document. With clocks that differ by a day, certificates fail before conditions
/// do.
const MAX_SKEW_SECONDS: i64 = 86_400;

/// The word for every write.
pub(super) const ANYTHING: &str = "anything";

impl TransitionTime {
    /// Whether every write may move the time: ACK sets the time of all conditions at each reconciliation.
    pub fn moves_freely(&self) -> bool {
        *self.may_move_on == [ANYTHING]
    }

    /// Whether a change of this member may move the time.
    pub fn may_move_on(&self, member: &str) -> bool {
        self.moves_freely() || self.may_move_on.iter().any(|name| name == member)
    }

    /// What happens when the time of an unchanged condition goes backwards.
    pub fn unchanged(&self) -> Option<&Sanction> {
        self.backwards_unchanged.as_ref()?.as_ref()
    }

    /// The clock difference that is accepted, in seconds.
    pub fn skew(&self) -> i64 {
        self.skew_seconds.unwrap_or(SKEW_SECONDS)
    }
}

impl Compiler<'_> {
    pub(super) fn transition_times(
        &self,
        times: &mut TransitionTime,
        list: &ConditionList,
        resource_version: bool,
        at: At<'_>,
    ) {
        if times.skew() < 0 {
            at.key("skewSeconds").report("a difference of clocks cannot be negative");
        }
        if times.skew() > MAX_SKEW_SECONDS {
            let message = format!("clocks differ by at most {MAX_SKEW_SECONDS} seconds, a day");
            at.key("skewSeconds").report(message);
        }
        for name in times.must_move_on.iter() {
            if self.complete && !times.may_move_on(name) {
                at.report_with_help(
                    format!("\"{name}\" must move the time but is not in mayMoveOn"),
                    format!("add it: mayMoveOn: [{name}]"),
                );
            }
        }
        let own = times.source.clone();
        let rules = self.tables(&[&own, &list.source]).of_list(list.element.as_ref());
        rules.name("transition-time-backwards", times.backwards.as_mut());
        let backwards = times.backwards.as_ref().map(|changed| changed.action);
        let action = match &times.backwards_unchanged {
            Some(written) => written.as_ref().map(|written| written.action),
            // Without a resourceVersion, a writer with a stale cache repeats an older time.
            None => {
                backwards.map(|changed| if resource_version { Disposition::Deny } else { changed })
            }
        };
        let unchanged = action.map(|action| rules.sanction("transition-time-backwards", action));
        times.backwards_unchanged = Some(unchanged);
        times.kept = times.kept.take().filter(|_| !times.must_move_on.is_empty());
        rules.name_mild("transition-time-kept", times.kept.as_mut());
        times.moved = times.moved.take().filter(|_| !times.moves_freely());
        rules.name("transition-time-moved", times.moved.as_mut());
        rules.name_mild("transition-time-future", times.future.as_mut());
    }
}
