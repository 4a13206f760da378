//! A convention: the rules about `.status` that one system follows, from document to tables.
//!
//! Each file holds one noun, and how it is compiled from its part of a `StatusConvention`.

mod backfill;
mod conditions;
mod generation;
mod health;
mod names;
mod phase;
mod place;
mod rule;
mod times;
mod types;

pub use crate::documents::{
    ConditionList, ConditionType, ElementRule, Generation, HealthRule, History, Imposition, Moves,
    OuterList, PhaseReason, PhaseTimeRules, PhaseValue, Presence, Reasons, RepairStep,
    ResourceVersion, Rule, Sanction, Since, TransitionTime, Trigger, TriggerWord, Watch, Watched,
    Writes,
};
pub use backfill::{Backfill, Filling, ValueSource};
pub(crate) use health::PHASE;
pub use health::{Health, HealthClass};
pub use phase::PhaseRules;
pub use phase::{REQUESTED, STORED};

pub use conditions::{MEMBERS, Position};
pub use names::Names;
pub(crate) use place::{Label, remaining};

use std::collections::BTreeSet;
use std::sync::Arc;

use super::compile::Compiler;
use super::mentioned::pointers;
use super::rules::RuleTable;
use super::{Disposition, Field, Id};
use crate::documents::ConventionSpec;
use crate::model::Pointer;
use crate::source::tree::At;

/// A named set of rules about `.status`. Made from a `StatusConvention` document, and from nothing
/// else: a rule that a document cannot say does not exist. A copy with other optional parts shares its
/// largest tables.
#[derive(Clone, Debug)]
pub struct Convention {
    /// `appcat`: the first half of every rule id.
    pub name: String,
    /// What it is, for people.
    pub title: String,
    /// Where its rules come from.
    pub source: String,
    /// Where the system as it is differs from what was written about it, a sentence each.
    pub differences: Vec<String>,
    /// Whether its writers send `metadata.resourceVersion`.
    pub resource_version: ResourceVersion,
    /// Whether its writers send phase and conditions in one request.
    pub writes: Option<Writes>,
    /// The rule id for a status that is not an object at all.
    pub status_rule: Id,
    /// The condition lists it knows. Lists that are not named here are exempt.
    pub conditions: Vec<Arc<ConditionList>>,
    /// The phase, where the convention has one.
    pub phase: Option<Arc<PhaseRules>>,
    /// How generations relate.
    pub generation: Option<Generation>,
    /// What a status means for its readers.
    pub health: Option<Arc<Health>>,
    /// Checks of other fields than conditions and phase.
    pub fields: Vec<Field>,
    /// Everything that needs a predicate.
    pub rules: Vec<Arc<Rule>>,
    /// Defaults for absent fields, and members to remove.
    pub backfill: Vec<Backfill>,
    /// The members with times: a status in which only these changed has the same content.
    pub times: Arc<[String]>,
    /// Every rule id of these tables.
    pub declared: Arc<RuleTable>,
    /// What a policy that follows the convention may name.
    pub(crate) names: Names,
    /// The condition types that predicates name and no list declares, although lists declare some.
    pub undeclared: BTreeSet<String>,
    /// Every field of the spec and the status that it names.
    pub paths: BTreeSet<Pointer>,
}

impl Convention {
    /// The conditions that predicates read in an object of this version: the first list that such an object
    /// has. Lists inside other lists are read only by their own rules.
    pub fn primary_conditions(&self, version: &str) -> Option<&ConditionList> {
        self.lists(version).find(|list| list.outer.is_none())
    }

    /// The list of conditions at a path in an object of this version.
    pub fn list_at(&self, path: &Pointer, version: &str) -> Option<&ConditionList> {
        self.lists(version).find(|list| *list.path == *path)
    }

    /// The first list of conditions at a path.
    pub fn list_of_any_version(&self, path: &Pointer) -> Option<&ConditionList> {
        self.conditions.iter().map(AsRef::as_ref).find(|list: &&ConditionList| *list.path == *path)
    }

    /// The lists of conditions in an object of this version.
    pub fn lists(&self, version: &str) -> impl Iterator<Item = &ConditionList> + Clone {
        let lists = self.conditions.iter().map(AsRef::as_ref);
        lists.filter(move |list: &&ConditionList| list.applies_to(version))
    }

    /// The names that a policy may `enable`: rules and defaults that are off by default.
    pub fn optional_parts(&self) -> impl Iterator<Item = &str> + Clone {
        let rules = self.rules.iter().filter(|rule| rule.optional).map(|rule| rule.id.as_str());
        let each = self.conditions.iter().flat_map(|list| &list.each).filter(|rule| rule.optional);
        let defaults = self.backfill.iter().filter(|default| default.optional);
        rules
            .chain(each.map(|rule| rule.id.as_str()))
            .chain(defaults.map(|default| default.name.as_str()))
    }

    /// The same convention with the optional parts that are `wanted`, and without the others.
    pub(crate) fn with_parts(&self, wanted: &[String]) -> Self {
        let on = |optional: bool, name: &str| !optional || wanted.iter().any(|part| part == name);
        let mut convention = self.clone();
        convention.rules.retain(|rule| on(rule.optional, &rule.id));
        for list in &mut convention.conditions {
            if list.each.iter().any(|rule| !on(rule.optional, &rule.id)) {
                Arc::make_mut(list).each.retain(|rule| on(rule.optional, &rule.id));
            }
        }
        convention.backfill.retain(|default| on(default.optional, &default.name));
        convention
    }
}

/// The second half of a rule id.
pub(crate) fn own_name(id: &str) -> &str {
    id.split_once('/').map_or(id, |(_, name)| name)
}

/// Compiles a convention. `complete` is false where it extends an unknown one.
pub(crate) fn compile(name: &str, spec: &ConventionSpec, complete: bool, at: At<'_>) -> Convention {
    // Evidence anywhere may name any phase, and a rule any list: names first, then the rest.
    let names = Names::of(spec, complete);
    let compiler = Compiler::new(name, &names, complete, at);
    let status_rule = compiler.tables(&[]).rule("status", Disposition::Deny);
    let phase = spec.phase.as_ref().and_then(|phase| compiler.phase(phase, at.key("phase")));
    let mut conditions = compiler.condition_lists(spec, at);
    let generation = spec.generation.clone().flatten().map(|rules| compiler.generation(rules));
    let observed = generation.as_ref().and_then(Generation::own_path);
    let health = compiler.health(spec, observed, at).map(Arc::new);
    let fields = compiler.fields(&spec.fields, at.key("fields"));
    let backfill = compiler.backfill(&spec.backfill, &conditions, &[], at.key("backfill"));
    let times = times_of(&backfill, &conditions, phase.as_ref());
    // Rules last: their ids are the only ones that are chosen.
    let path = spec.phase.as_ref().and_then(|phase| phase.path.first());
    let given = at.key("rules").each(&spec.rules);
    let rules =
        given.filter_map(|(at, rule)| compiler.rule(rule, path, at)).map(Arc::new).collect();
    for (at, list) in at.key("conditions").each(&mut conditions) {
        let each = compiler.element_rules(&list.each, at);
        Arc::make_mut(list).each = each;
    }
    let undeclared = compiler.undeclared.take();
    let mut declared = compiler.into_rules();
    declared.set_default_source(&spec.source);
    Convention {
        name: name.to_owned(),
        title: spec.title.as_ref().map(ToString::to_string).unwrap_or_default(),
        source: spec.source.clone(),
        differences: spec.differences.0.clone(),
        resource_version: spec.resource_version.clone().unwrap_or_default(),
        writes: spec.writes,
        status_rule,
        conditions,
        phase: phase.map(Arc::new),
        generation,
        health,
        fields,
        rules,
        backfill,
        times,
        declared: Arc::new(declared),
        names,
        undeclared,
        paths: pointers(at.node()),
    }
}

/// The members with times: those of the default that restores a status, whether a policy enables it or not,
/// otherwise the transition times.
fn times_of(
    backfill: &[Backfill],
    lists: &[Arc<ConditionList>],
    phase: Option<&PhaseRules>,
) -> Arc<[String]> {
    let steady = backfill.iter().find_map(|default| match &default.filling {
        Filling::SteadyStatus { times, .. } => Some(times.clone()),
        _ => None,
    });
    if let Some(times) = steady {
        return times.into();
    }
    let of_phase = phase.and_then(|rules| rules.transition_time.as_ref()?.path.tokens().last());
    let of_lists = lists.iter().map(|list| list.time_member().to_owned());
    of_lists.chain(of_phase.cloned()).collect::<BTreeSet<_>>().into_iter().collect()
}
