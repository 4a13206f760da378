//! A convention, compiled: the rules about `.status` that one system follows.

use crate::model::Pointer;

use super::{Action, Check, Disposition, FieldRule, Predicate};

/// A named set of rules about `.status`. Made from a `StatusConvention` document, and from nothing
/// else: a rule that a document cannot say does not exist.
#[derive(Clone, Debug)]
pub struct Convention {
    /// `appcat`: the first half of every rule id.
    pub name: String,
    /// What it is, for people.
    pub title: String,
    /// Where its rules come from.
    pub source: String,
    /// The rule id for a status that is not an object at all.
    pub status_rule: String,
    /// The condition lists it knows. Lists that are not named here are exempt.
    pub conditions: Vec<ConditionList>,
    /// The phase, where the convention has one.
    pub phase: Option<PhaseRules>,
    /// How generations relate.
    pub generation: Option<GenerationRules>,
    /// Fields beside the conditions and the phase.
    pub fields: Vec<FieldRule>,
    /// Everything that needs a predicate.
    pub rules: Vec<Rule>,
    /// Fields to fill in where they are absent.
    pub backfill: Vec<Backfill>,
}

/// A list of conditions and what its elements look like.
#[derive(Clone, Debug)]
pub struct ConditionList {
    /// `/status/conditions`.
    pub path: Pointer,
    /// The rule id for a list that is no list, or an element that is no object.
    pub shape_rule: String,
    /// The rule id for two elements with one key.
    pub duplicate_rule: String,
    /// The checks of each member of an element, in the order of the document.
    pub members: Vec<(String, Vec<Check>)>,
    /// How `lastTransitionTime` moves.
    pub times: Option<TransitionTimes>,
}

/// When the transition time of a condition moves.
#[derive(Clone, Debug)]
pub struct TransitionTimes {
    /// The member that holds it.
    pub member: String,
    /// A change in one of these must move it.
    pub must_move_on: Vec<String>,
    /// Only a change in one of these may move it.
    pub may_move_on: Vec<String>,
    /// Said of a change that did not move it.
    pub kept: Sanction,
    /// Said of a move without a change.
    pub moved: Sanction,
    /// Said of a move into the past.
    pub backwards: Sanction,
    /// Said of a move further into the future than `skew`.
    pub future: Sanction,
    /// The clock difference that is no fault, in seconds.
    pub skew: i64,
}

/// A rule that is built into the engine: what it is called here and what happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sanction {
    /// The rule id.
    pub rule: String,
    /// What happens on a violation.
    pub action: Action,
}

/// How `observedGeneration` relates to `metadata.generation`.
#[derive(Clone, Debug)]
pub struct GenerationRules {
    /// Where the object's own is, `/status/observedGeneration`.
    pub paths: Vec<Pointer>,
    /// Said of a generation that does not exist yet.
    pub ahead: Sanction,
    /// Said of one that was observed before.
    pub decreased: Sanction,
}

/// The phase: its values in order of priority, their evidence, and what goes with it.
#[derive(Clone, Debug)]
pub struct PhaseRules {
    /// `/status/phase`.
    pub path: Pointer,
    /// The value where none is given.
    pub default: Option<String>,
    /// The rule id for a value that does not exist or is no text.
    pub value_rule: String,
    /// The time of the last change of the phase, and the rule id for one that moved alone.
    pub transition_time: Option<(Pointer, String)>,
    /// Highest priority first.
    pub phases: Vec<Phase>,
    /// How to choose a phase in a repair: the first entry that holds and whose phase is admissible.
    pub repair: Vec<RepairStep>,
}

/// One value of the phase.
#[derive(Clone, Debug)]
pub struct Phase {
    /// `Ready`.
    pub name: String,
    /// `appcat/phase-ready`: the rule id for a write that contradicts it.
    pub rule: String,
    /// What must hold. Only what is definitely contradicted counts.
    pub necessary: Option<Predicate>,
    /// What settles it.
    pub sufficient: Option<Predicate>,
    /// When the mutating webhook sets it whatever the writer says.
    pub imposed: Option<Imposition>,
}

/// A phase that is not the writer's to choose.
#[derive(Clone, Debug)]
pub struct Imposition {
    /// When it is imposed.
    pub when: Predicate,
    /// The time of the transition.
    pub since: Since,
}

/// Where the time of an imposed phase comes from. Never the clock: another replica, or the second
/// call of the same request, must arrive at the same value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// `metadata.deletionTimestamp`.
    DeletionTimestamp,
    /// `metadata.creationTimestamp`.
    CreationTimestamp,
}

/// One way to choose a phase in a repair.
#[derive(Clone, Debug)]
pub struct RepairStep {
    /// When it applies; always, where there is none.
    pub when: Option<Predicate>,
    /// What is chosen.
    pub to: RepairTo,
}

/// What a repair chooses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RepairTo {
    /// This phase.
    Phase(String),
    /// The phase that the writer asked for.
    Requested,
    /// The phase that is stored.
    Stored,
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
    /// The sentence in the answer.
    pub message: String,
    /// Where it comes from.
    pub source: String,
}

/// Which writes a rule looks at.
#[derive(Clone, Debug, PartialEq)]
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
#[derive(Clone, Debug, PartialEq)]
pub enum Watched {
    /// The value at a pointer.
    Field(Pointer),
    /// The condition of this type.
    Condition(String),
}

/// A field to fill in where it is absent.
#[derive(Clone, Debug)]
pub struct Backfill {
    /// Where.
    pub path: Pointer,
    /// With what.
    pub fill: Fill,
    /// Only when this holds.
    pub when: Option<Predicate>,
}

/// What an absent field is filled with.
#[derive(Clone, Debug, PartialEq)]
pub enum Fill {
    /// Nothing: the field stays absent, and an explicit null is removed, because a null on a
    /// property that is not `nullable` fails the whole write.
    Absent,
    /// An explicit null, on a property that is `nullable`.
    Null,
    /// This value.
    Value(serde_json::Value),
    /// A copy of the first of these that is set.
    CopyOf(Vec<Pointer>),
}

impl Convention {
    /// The conditions that predicates speak of: the first list.
    #[must_use]
    pub fn primary_conditions(&self) -> Option<&ConditionList> {
        self.conditions.first()
    }
}

impl PhaseRules {
    /// The phase of this name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Phase> {
        self.phases.iter().find(|phase| phase.name == name)
    }
}
