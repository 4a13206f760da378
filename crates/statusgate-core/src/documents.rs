//! The documents that users write, declared once.
//!
//! The types here are the only definition of the grammar. The JSON Schemas, the structural check and
//! the reader derive from them; the comment of a field is what editors show for its key. To add a key,
//! add a field, and compile it in `policy/`.

#[macro_use]
mod declare;

mod action;
mod check;
mod condition;
mod convention;
mod field;
mod health;
mod kind;
mod phase;
mod policy;
mod rule;
mod schema;
mod shapes;
pub mod suite;

use serde::{Deserialize, Deserializer};

pub(crate) use action::warn;
pub use action::{Action, Disposition, FixedAction, Sanction};
pub(crate) use check::{PLACEHOLDER_POINTER, Spec, envelope, spec};
pub use condition::{
    ConditionList, ConditionType, ElementRule, GuardedPresence, History, OuterList, Presence,
    Reasons, Summary, TransitionTime,
};
pub use convention::{ConventionKind, ConventionSpec, ResourceVersion, StatusConvention, Writes};
pub use field::{Check, Field, FieldType, Format};
pub use health::{Health, HealthRule, HealthStatus, PhaseHealth, RetriedHealth};
pub use kind::{ApiVersion, DocumentKind, Envelope, GROUP, Metadata};
pub use phase::{
    Imposition, Moves, Phase, PhaseReason, PhaseTime, PhaseTimeRules, PhaseValue, RepairStep, Since,
};
pub use policy::{
    CelRule, Owner, PolicyKind, PolicySpec, Resources, StatusPolicy, Writer, Writers,
};
pub use rule::{
    Backfill, Copy, CopySource, Element, ElementStatus, ElementValue, Generation, OnlyTimes, Rule,
    SteadyWhile, Trigger, TriggerWord, Watch,
};
pub(crate) use schema::Merge;
pub use shapes::{ListPointer, Name, Origin, Sentence, StatusOrBelow, StatusPointer, Watched};

pub use crate::language::{MemberOf, SpecPointer, ZeroOrMore};

/// Whether a key with this value can be left out.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The default of a key that is true unless a document has it.
const fn yes() -> bool {
    true
}

const fn is_yes(value: &bool) -> bool {
    *value
}

/// A key that is present, even if its value is null.
fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

#[cfg(test)]
mod tests;
