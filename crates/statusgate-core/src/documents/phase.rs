//! The phase of a convention.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Name, PhaseHealth, StatusPointer, ZeroOrMore};
use crate::language::{OneOrMany, Predicate};
use crate::model::Id;

/// Where the transition time of an imposed phase comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Since {
    /// `metadata.deletionTimestamp`.
    #[serde(rename = "/metadata/deletionTimestamp")]
    DeletionTimestamp,
    /// `metadata.creationTimestamp`.
    #[serde(rename = "/metadata/creationTimestamp")]
    CreationTimestamp,
}

document! {
    /// The phase: its values, their evidence, its time and its reason.
    #[schemars(extend("x-merge" = "keys"))]
    pub struct Phase {
        /// Where the phase is. Of several paths, the first one with a string counts.
        path: OneOrMany<StatusPointer>,
        /// The phase of a status without one.
        default?: String,
        /// Where these rules come from.
        source = String,
        /// The time of the last change of the phase.
        transition_time?: PhaseTime,
        /// The field with the reason of the phase.
        reason?: PhaseReason,
        /// Which phase may follow which. Default: all.
        moves?: Moves,
        /// When the phase is copied from another object: then every move is valid, and its time may change
        /// alone or stay. Default: never.
        mirrored?: Predicate,
        /// The phases, highest priority first.
        #[schemars(length(min = 1), extend("x-merge" = "items", "x-empty" = "without a value no phase could be written"))]
        values: Vec<PhaseValue>,
        /// How a repair chooses the phase: the first step that applies and has an admissible phase.
        repair = Vec<RepairStep>,
    }

    /// One value of the phase.
    #[schemars(extend("x-merge" = "keys", "x-name" = "phase"))]
    pub struct PhaseValue {
        /// The value, for example Ready. Several values share what follows.
        phase: OneOrMany<String>,
        /// The value. Of several, compiling makes one of each.
        #[serde(skip)]
        name: String,
        /// The rule id for a write that contradicts it. Compiling sets it.
        #[serde(skip)]
        rule: Id,
        /// The second half of the rule id. Default: `phase-` and the value.
        id?: Name,
        /// What it means.
        meaning = String,
        /// Where its evidence comes from.
        source = String,
        /// What must hold. The phase is not admissible when this is definitely false.
        necessary?: Predicate,
        /// What proves the phase.
        sufficient?: Predicate,
        /// When the webhook sets this phase, independent of what the writer sends.
        imposed?: Imposition,
        /// No move leaves this phase, not even one of `anyTo`. Default: false.
        #[serde(rename = "final")]
        is_final = bool,
        /// What the phase means for readers of the status. Default: the rules of `health` decide.
        health?: PhaseHealth,
        /// The reasons that this phase may have. Default: all.
        reasons = ZeroOrMore<String>,
    }

    /// When a phase is imposed.
    pub struct Imposition {
        /// When it is imposed.
        when: Predicate,
        /// The time of the transition.
        since: Since,
    }

    /// The time of the last change of the phase.
    #[schemars(extend("x-merge" = "keys"))]
    pub struct PhaseTimeRules {
        /// Where the time is.
        path: StatusPointer,
        /// Whether the webhook updates the time together with the phase. Default: true.
        in_step?: bool,
        /// What happens when only the phase changed and the time lies more than 2 seconds before the write.
        /// Times have a resolution of one second: a change in the same second keeps the text. Default: Warn.
        kept or "super::action::warn",
        /// What happens when only the time changed. Default: Warn.
        moved or "super::action::warn",
    }

    /// The field with the reason of the phase.
    #[schemars(extend("x-merge" = "keys"))]
    pub struct PhaseReason {
        /// Where the reason is.
        path: StatusPointer,
        /// Reasons that every phase may have.
        always = ZeroOrMore<String>,
        /// What happens when the phase may not have the reason. Default: Warn.
        action or "super::action::warn",
    }

    /// Which phase may follow which.
    #[schemars(extend("x-merge" = "keys"))]
    pub struct Moves {
        /// Phases that may follow every other.
        any_to = ZeroOrMore<String>,
        /// A phase, or "" for none, and the phases that may follow it. A write that removes the phase is a
        /// move to "".
        #[schemars(extend("x-merge" = "keys"))]
        from: IndexMap<String, ZeroOrMore<String>>,
        /// What happens on any other move. Default: Warn.
        action or "super::action::warn",
    }

    /// One step in the choice of a phase.
    pub struct RepairStep {
        /// A phase, `requested` (what the writer sent) or `stored`.
        to: String,
        /// The step applies when this holds. Default: always.
        when?: Predicate,
    }
}

/// The path of the time, or the path with rules.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum PhaseTime {
    /// The path.
    Path(StatusPointer),
    /// The path with rules.
    Rules(PhaseTimeRules),
}
