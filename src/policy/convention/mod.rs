//! A convention: the rules about `.status` that one system follows, from document to tables.
//!
//! Each file holds one noun: how it is compiled, and how it is read from a `StatusConvention`.

mod backfill;
mod conditions;
mod generation;
mod ids;
mod names;
mod phase;
mod place;
mod rule;
mod times;
mod types;

pub use backfill::{Backfill, Filling, ValueSource};
pub use conditions::{ConditionList, ElementRule, History};
pub use generation::GenerationRules;
pub use phase::{
    Imposition, Moves, Phase, PhaseReason, PhaseRules, PhaseTime, RepairStep, RepairTo, Since,
};
pub use rule::{Rule, Sanction, Trigger, Watched};
pub use times::{Movers, TransitionTimes};
pub use types::{ConditionType, ConditionTypes, Presence, ReasonRow};

pub(crate) use backfill::read_list as read_backfill;
pub(crate) use ids::{OWNER, check_policy as check_ids};
pub(crate) use names::Names;
pub(crate) use place::{Label, name_of, remaining};
pub(crate) use rule::read_trigger;
pub(crate) use types::read_polarity;

use super::schema::{self, FieldRule};
use super::{Action, Disposition, order};
use crate::source::tree::{Map, Node, Problems};

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
    /// Where the system as it is differs from what was written about it, a sentence each.
    pub differences: Vec<String>,
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
    /// Fields to fill in where they are absent, and what may not be there.
    pub backfill: Vec<Backfill>,
}

impl Convention {
    /// The conditions that predicates speak of in an object of this version: the first list that
    /// such an object has.
    #[must_use]
    pub fn primary_conditions(&self, version: &str) -> Option<&ConditionList> {
        self.conditions.iter().find(|list| list.applies_to(version))
    }

    /// The names of what a policy may `enable`: rules and defaults that are off by themselves.
    pub fn optional_parts(&self) -> impl Iterator<Item = &str> + Clone {
        let own = |id: &'_ str| id.len().min(self.name.len() + 1);
        let rules = self.rules.iter().filter(|rule| rule.optional).map(|rule| rule.id.as_str());
        let each = self.conditions.iter().flat_map(|list| &list.each);
        let each = each.filter(|rule| rule.optional).map(|rule| rule.id.as_str());
        let fills = self.backfill.iter().filter(|fill| fill.optional);
        let fills = fills.map(|fill| fill.name.as_str());
        rules.chain(each).map(move |id| &id[own(id)..]).chain(fills)
    }

    /// The same convention with the optional parts that are `wanted`, and without the others: what
    /// the engine judges by knows no options.
    pub(crate) fn with_parts(&self, wanted: &[String]) -> Self {
        let wants = |name: &str| wanted.iter().any(|part| part == name);
        let on = |optional: bool, id: &str| {
            !optional || id.split_once('/').is_some_and(|(_, name)| wants(name))
        };
        let mut convention = self.clone();
        convention.rules.retain(|rule| on(rule.optional, &rule.id));
        for list in &mut convention.conditions {
            list.each.retain(|rule| on(rule.optional, &rule.id));
        }
        convention.backfill.retain(|fill| !fill.optional || wants(&fill.name));
        convention
    }
}

/// Reads the `spec` of a `StatusConvention`, with what it extends; `complete` where that is all
/// known. `None` where it is not, or has mistakes; they are in `problems`.
pub(crate) fn read(
    name: &str,
    (spec, complete): (&Node, bool),
    problems: &Problems,
) -> Option<Convention> {
    let before = problems.count();
    let map = problems.map(spec)?;
    let title = map.get("title").and_then(|node| problems.sentence(node, "title"));
    // Evidence anywhere may name any phase, and a rule any list: names first, then the rest.
    let names = Names::read(spec, complete, problems);
    let reader = Reader { name, problems, names: &names, complete };
    let phase = map.get("phase").and_then(|node| reader.phase(node));
    let conditions = reader.condition_lists(&map);
    let fill = map.get("backfill");
    let fill = fill.map(|node| backfill::read_list(node, problems, &names, &conditions, &[]));
    let convention = Convention {
        name: name.to_owned(),
        title: title.unwrap_or_default().to_owned(),
        source: reader.text(&map, "source"),
        differences: reader.strings(&map, "differences"),
        status_rule: reader.id("status"),
        conditions,
        generation: map.get("generation").and_then(|node| reader.generation(node)),
        fields: map
            .get("fields")
            .map(|node| schema::read_fields(node, problems, name))
            .unwrap_or_default(),
        rules: reader.list(&map, "rules", |item| reader.rule(item, phase.as_ref())),
        backfill: fill.unwrap_or_default(),
        phase,
    };
    if let Some(node) = map.get("backfill").filter(|_| problems.count() == before)
        && let Some((cycle, message)) = order::cycle(&convention, &convention.backfill)
    {
        let item = cycle.first().and_then(|at| node.items().get(*at));
        order::report(item.unwrap_or(node), message, problems);
    }
    map.close();
    ids::check(spec, &convention, problems);
    (complete && problems.count() == before).then_some(convention)
}

/// Reads the parts of one convention.
struct Reader<'r> {
    name: &'r str,
    problems: &'r Problems,
    names: &'r Names,
    /// Whether all is known that the convention inherits. What is not may be what is missing.
    complete: bool,
}

impl Reader<'_> {
    /// The value of a key that must be there, written or inherited.
    fn required<'n>(&self, map: &Map<'n>, key: &'static str) -> Option<&'n Node> {
        if self.complete { map.required(key) } else { map.get(key) }
    }

    fn id(&self, rule: &str) -> String {
        format!("{}/{rule}", self.name)
    }

    /// `kept: Warn`: what happens where a rule of the engine's own is violated.
    fn sanction(&self, map: &Map<'_>, key: &'static str, rule: &str, default: Action) -> Sanction {
        self.sanction_if_said(map, key, rule)
            .unwrap_or_else(|| Sanction { rule: self.id(rule), action: default.into() })
    }

    fn sanction_if_said(&self, map: &Map<'_>, key: &'static str, rule: &str) -> Option<Sanction> {
        let action = map.get(key).and_then(|node| Disposition::read(node, self.problems))?;
        Some(Sanction { rule: self.id(rule), action })
    }

    fn list<'n, T>(
        &self,
        map: &Map<'n>,
        key: &'static str,
        read: impl FnMut(&'n Node) -> Option<T>,
    ) -> Vec<T> {
        map.get(key).map(|node| self.problems.list(node, read)).unwrap_or_default()
    }

    fn text(&self, map: &Map<'_>, key: &'static str) -> String {
        map.get(key).and_then(|node| self.problems.string(node)).unwrap_or_default().to_owned()
    }

    fn flag(&self, map: &Map<'_>, key: &'static str) -> bool {
        map.get(key).and_then(|node| self.problems.boolean(node)).unwrap_or(false)
    }

    /// The same, of a list that says nothing when it is empty.
    fn filled_strings(&self, map: &Map<'_>, key: &'static str) -> Vec<String> {
        let text = |item| self.problems.string(item).map(str::to_owned);
        map.get(key).map(|node| self.problems.filled(node, text)).unwrap_or_default()
    }

    fn strings(&self, map: &Map<'_>, key: &'static str) -> Vec<String> {
        let text = |item| self.problems.string(item).map(str::to_owned);
        map.get(key).map(|node| self.problems.one_or_many(node, text)).unwrap_or_default()
    }
}
