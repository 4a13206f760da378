//! Lists of conditions: the shape of their elements, their types, their times.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Check, Disposition, ListPointer, Name, Sanction, Sentence, ZeroOrMore};
use crate::language::{ElementPredicate, Glob, OneOrMany, Polarity, Predicate, SpecPointer};
use crate::model::{Id, Pointer};

document! {
    /// A list of conditions.
    #[schemars(extend("x-merge" = "keys", "x-name" = "path"))]
    pub struct ConditionList {
        /// Where the list is, for example /status/conditions. With /status/parents/*/conditions, each
        /// element of status.parents has its own list. With /status/instances/*, the elements are the
        /// values of the map status.instances, and its keys identify them. With /status/replsets/*/members/*,
        /// they are the values of the maps in the values of a map.
        path: ListPointer,
        /// The outer list or map, if the path has a `*`. Compiling sets it.
        #[serde(skip)]
        outer: Option<OuterList>,
        /// The id of the rule that the list is a list and its elements are objects. Compiling sets it.
        #[serde(skip)]
        shape_rule: Id,
        /// With `*` in the path: the members that identify an element of the outer list. Without them,
        /// `*` stands for the values of a map.
        parent_key?: OneOrMany<String>,
        /// What an element is called in rule ids and messages, if it is no condition: `listener`. Default:
        /// condition.
        element?: Name,
        /// This list inherits the first list of that convention.
        #[schemars(extend("x-own" = true))]
        like?: String,
        /// Objects of these API versions have the list at this path. Default: all versions.
        api_versions = Vec<Glob>,
        /// Where these rules come from.
        source = String,
        /// The members that identify an element. Default: type; for a history, none.
        key?: OneOrMany<String>,
        /// What happens when two elements have the same key. Default: Deny.
        duplicate or "super::action::deny",
        /// The largest number of elements.
        max_items?: usize,
        /// What happens when the list has more elements. Default: Deny.
        too_long or "super::action::deny",
        /// The list is append-only: entries are immutable, and only the oldest may be dropped.
        history?: History,
        /// In each checked member of an element, the empty string counts as absent. Default: false.
        empty_is_absent = bool,
        /// The checks of the keys of a map whose values are the elements: of the inner maps, if there are two.
        keys = ZeroOrMore<Check>,
        /// The checks of each member of an element.
        #[schemars(extend("x-merge" = "members"))]
        members = IndexMap<String, ZeroOrMore<Check>>,
        /// What happens when an element has another member. Default: it is accepted.
        other_members?: Sanction,
        /// The types of conditions. The first name that matches a type counts.
        #[schemars(extend("x-merge" = "types"))]
        types = IndexMap<String, ConditionType>,
        /// What happens when an element has another type. Default: it is accepted.
        other_types?: Sanction,
        /// What happens when known types are not in the order of `types`. Default: it is accepted.
        order?: Sanction,
        /// What happens when a write adds a type or a reason that differs only in case or in one letter from a
        /// declared one, or from a type that the write removes. Default: Warn.
        misspelled or "super::action::warn",
        /// What happens when a write changes a status, but neither its reason nor its message, and the reason is not
        /// declared for both. Default: Warn.
        reason_kept or "super::action::warn",
        /// Lists in the spec by which the object names types of its own, with their polarity.
        polarity_from = Vec<SpecPointer>,
        /// When the transition time of an element changes.
        transition_time?: TransitionTime,
        /// Rules about each element.
        #[schemars(extend("x-merge" = "items"))]
        each = Vec<ElementRule>,
    }

    /// An append-only list.
    #[schemars(extend("x-merge" = "keys"))]
    pub struct History {
        /// A new element differs from the last one in one of these members.
        distinct?: OneOrMany<String>,
        /// What happens when a write changes an entry. Default: Warn.
        rewritten or "super::action::warn",
        /// What happens when a new element repeats the last one. Default: Warn.
        repeated or "super::action::warn",
    }

    /// A type of condition.
    #[schemars(extend("x-merge" = "keys"))]
    pub struct ConditionType {
        /// `Ready`, or a family of types: `*Ready`. Compiling sets it.
        #[serde(skip)]
        name: String,
        /// The same as a pattern. Compiling sets it.
        #[serde(skip)]
        glob: Glob,
        /// Which status is the good one.
        polarity?: Polarity,
        /// What the condition means.
        meaning = String,
        /// Where these rules come from.
        source = String,
        /// What happens when a written status lacks the condition. This is accepted during deletion, and
        /// when the write clears the list. Default: it is accepted.
        missing?: Presence,
        /// What happens when the condition is present. Default: it is accepted.
        present?: Presence,
        /// What happens when the condition is present but not True. Default: it is accepted.
        not_true?: Sanction,
        /// What happens when a write removes the condition. It warns at most during deletion, and a write may
        /// clear the list. Default: it is accepted.
        removed?: Presence,
        /// What happens when a write changes True to something else. Default: it is accepted.
        reverted?: Sanction,
        /// The condition is copied from another object: its time may change, and may go backwards.
        mirrored = bool,
        /// The members that identify elements of this type. Default: the key of the list.
        key?: OneOrMany<String>,
        /// The reasons of each status.
        reasons?: Reasons,
        /// The condition is as bad as the worst of the others: Ready of Knative. Types with a summary and
        /// conditions with the severity Warning or Info are not among these.
        summary?: Summary,
    }

    /// A condition that summarizes the others. Its rules warn at most: others may have written the parts.
    #[schemars(extend("x-merge" = "keys"))]
    pub struct Summary {
        /// What happens when it is better than the worst of the others. Default: Warn.
        better or "super::action::warn",
        /// What happens when it is worse than all others. Default: Warn.
        worse or "super::action::warn",
        /// What happens when it is not True, and no other condition that is as bad has its reason and message.
        /// Default: Warn.
        other_reason or "super::action::warn",
        /// The reasons with which the controller sets it without the others.
        own_reasons = ZeroOrMore<String>,
    }

    /// The reasons of a type of condition, by the status that they imply. A reason in several lists may have
    /// each of these statuses.
    #[schemars(extend("x-merge" = "keys"))]
    pub struct Reasons {
        /// The reasons of a condition that is True.
        #[serde(rename = "True")]
        of_true = ZeroOrMore<String>,
        /// The reasons of a condition that is False.
        #[serde(rename = "False")]
        of_false = ZeroOrMore<String>,
        /// The reasons of a condition that is Unknown.
        #[serde(rename = "Unknown")]
        of_unknown = ZeroOrMore<String>,
        /// What happens when the condition has a reason of another status. Default: Warn.
        action or "super::action::warn",
        /// What happens when its reason is in none of the lists. Default: it is accepted.
        other?: Sanction,
    }

    /// An action under a condition.
    pub struct GuardedPresence {
        /// The rule applies when this holds.
        when: Predicate,
        /// What happens.
        action: Sanction,
    }

    /// When the transition time of a condition changes.
    #[schemars(extend("x-merge" = "keys"))]
    pub struct TransitionTime {
        /// The member with the time.
        member: String,
        /// A change of one of these members must change the time.
        must_move_on = ZeroOrMore<String>,
        /// Only a change of one of these members may change the time; `anything` allows every change.
        may_move_on = ZeroOrMore<String>,
        /// What happens when the time should have changed but did not, and lies more than 2 seconds before the
        /// write. Times have a resolution of one second: a change in the same second keeps the text. It warns at
        /// most. Default: Warn.
        kept or "super::action::warn",
        /// What happens when the time changed without a reason. Default: Warn.
        moved or "super::action::warn",
        /// What happens when the time of a changed condition goes backwards. Default: Warn.
        backwards or "super::action::warn",
        /// What happens when the time of an unchanged condition goes backwards. Default: as `backwards`.
        #[serde(deserialize_with = "super::present")]
        #[schemars(with = "Option<Sanction>", extend("x-off" = true))]
        backwards_unchanged?: Option<Sanction>,
        /// What happens when the time is further in the future than `skewSeconds`. It warns at most. Default:
        /// Warn.
        future or "super::action::warn",
        /// The clock difference that is accepted, in seconds, at most a day. Default: 300.
        skew_seconds?: i64,
        /// Where these rules come from.
        source = String,
    }

    /// A rule about each element of a list.
    #[schemars(extend("x-merge" = "keys", "x-name" = "id"))]
    pub struct ElementRule {
        /// The second half of the rule id.
        id: Name,
        /// The rule id. Compiling sets it.
        #[serde(skip)]
        rule: Id,
        /// The violation.
        when: ElementPredicate,
        /// What happens on a violation.
        action: Disposition,
        /// The member that the response names. Default: the element.
        member = String,
        /// The sentence in the response.
        message: Sentence,
        /// Where the rule comes from.
        source = String,
        /// The rule is off unless a policy enables it.
        optional = bool,
    }
}

/// A list or map in which each element has a list of conditions, or a map with the elements themselves.
#[derive(Clone, Debug, PartialEq)]
pub struct OuterList {
    /// `/status/parents`.
    pub path: Pointer,
    /// The names from an element to its list of conditions, or to a map with the elements; none if the element is an
    /// element of the list.
    pub inner: Vec<String>,
    /// Whether the elements are the values of a map in each element.
    pub nested: bool,
    /// The members that identify an element; none for a map.
    pub key: Vec<String>,
}

/// An action, for example `Warn`, or `{when: …, action: Warn}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Presence {
    /// The rule always applies.
    Always(Sanction),
    /// The rule applies under a condition.
    Guarded(GuardedPresence),
}
