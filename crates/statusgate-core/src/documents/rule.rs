//! Rules with predicates, generations, and defaults.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Disposition, Name, Origin, Sanction, Sentence, StatusPointer, Watched};
use crate::language::{ElementPredicate, MemberOf, OneOrMany, Predicate, Scalar};
use crate::model::{ConditionStatus, Id};

/// A trigger without parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum TriggerWord {
    /// Every write that leaves the violation.
    State,
    /// Writes that introduce the violation.
    Introduced,
}

/// Which writes a rule judges.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Trigger {
    /// A trigger without parameters.
    Word(TriggerWord),
    /// Writes that changed something.
    Watch(Watch),
}

document! {
    /// A trigger that watches for changes. It has one of the keys.
    pub struct Watch {
        /// Writes that changed one of these.
        moved?: OneOrMany<Watched>,
        /// Writes that changed all of these, or created the status.
        co_written?: OneOrMany<Watched>,
    }

    /// A rule with a predicate.
    #[schemars(extend("x-merge" = "keys", "x-name" = "id"))]
    pub struct Rule {
        /// The second half of the rule id.
        id: Name,
        /// The rule id. Compiling sets it.
        #[serde(skip)]
        rule: Id,
        /// The violation.
        when: Predicate,
        /// What happens on a violation.
        action: Disposition,
        /// The sentence in the response.
        message: Sentence,
        /// The field that the response names. Default: the list of `in`, or the phase.
        path?: StatusPointer,
        /// The list of conditions that the predicate reads. Default: the first one.
        #[serde(rename = "in")]
        list?: StatusPointer,
        /// Which writes the rule judges. Default: introduced.
        trigger?: Trigger,
        /// Where the rule comes from.
        source = String,
        /// The rule is off unless a policy enables it.
        optional = bool,
    }

    /// How observedGeneration relates to metadata.generation.
    #[derive(Default)]
    #[schemars(extend("x-merge" = "keys"))]
    pub struct Generation {
        /// Where the observed generation of the object is.
        paths?: Vec<StatusPointer>,
        /// What happens when it is ahead of metadata.generation. Default: Deny.
        ahead or "super::action::deny",
        /// The same, when there was no status before, as after a restore from a backup. Default: Warn.
        ahead_at_first or "super::action::warn",
        /// What happens when it decreases. Default: Warn.
        decreased or "super::action::warn",
        /// What happens when it is set back to 0. Default: it is accepted.
        reset?: Sanction,
        /// The least value. A smaller one is rejected.
        minimum?: i64,
        /// The rule of `minimum`.
        #[serde(skip)]
        below: Option<Sanction>,
        /// Where these rules come from.
        source = String,
    }

    /// A default for an absent field, or a member to remove.
    #[derive(Default)]
    pub struct Backfill {
        /// The name by which a policy enables or replaces it. Default: its path or member.
        name?: String,
        /// The default is off unless a policy enables it. Only in conventions.
        optional = bool,
        /// The default applies when this holds. Default: always.
        when?: Predicate,
        /// Where it comes from.
        source = String,
        /// The field to set.
        path?: StatusPointer,
        /// With `value: null` or without a value: whether an explicit null is set; otherwise a null is removed.
        nullable?: bool,
        /// The value to set.
        #[serde(deserialize_with = "super::present")]
        value?: Value,
        /// Where to copy the value from: the first source that has one.
        copy_of?: OneOrMany<CopySource>,
        /// The list of conditions to change.
        list?: StatusPointer,
        /// The member to set in each element of the list.
        member?: String,
        /// Restores the stored member while other members are unchanged, or the stored status while only times changed.
        steady_while?: SteadyWhile,
        /// Removes the member from the elements for which this holds.
        absent_where?: ElementPredicate,
        /// A condition to add when the list has none of its type.
        element?: Element,
        /// Of several elements with one key, only the one with the newest transition time stays.
        unique_elements = bool,
    }

    /// A status that is restored.
    pub struct OnlyTimes {
        /// The names of members with times that may differ, at any depth.
        #[schemars(length(min = 1), extend("x-empty" = "an empty list: nothing would be restored"))]
        only_times: Vec<String>,
    }

    /// A value that is copied.
    pub struct Copy {
        /// The first of these that has a value.
        copy_of: OneOrMany<CopySource>,
    }
}

/// When stored values are restored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(extend("x-help" = "write a list of members, or {onlyTimes: […]}"))]
pub enum SteadyWhile {
    /// The member is restored while these members are unchanged.
    Members(
        #[schemars(length(min = 1), extend("x-empty" = "an empty list: the stored member would always be restored"))]
         Vec<String>,
    ),
    /// The status is restored while only times differ from the stored one.
    OnlyTimes(OnlyTimes),
}

/// Where a value is copied from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum CopySource {
    /// `stored`, or a pointer.
    Origin(Origin),
    /// A member of a condition.
    Member(MemberOf),
}

/// A condition to add.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Element {
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<ElementStatus>,
    /// Its other members. A member without a value is left out.
    #[serde(flatten)]
    pub members: IndexMap<String, ElementValue>,
}

/// A value, or where to copy it from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(extend("x-help" = "write a value or {copyOf: …}, or leave the member out"))]
pub enum ElementValue {
    /// The value.
    Value(Scalar),
    /// Where to copy it from.
    Copy(Copy),
}

/// A status, or where to copy it from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ElementStatus {
    /// The status.
    Status(ConditionStatus),
    /// Where to copy it from.
    Copy(Copy),
}
