//! The table of rules: every rule id, and what is declared of it. Reports read it; the engine does
//! not.

use indexmap::IndexMap;

use super::{Disposition, Id};

/// The second half of the id for changes of an owned field by others.
pub(crate) const OWNER: &str = "owner";

/// The rules of a convention, or those of a policy in addition to them.
#[derive(Clone, Debug, Default)]
pub struct RuleTable {
    rules: IndexMap<String, DeclaredRule>,
    /// The position of the first one: the rules of a policy come after those of its convention.
    first: usize,
}

/// What is declared of a rule, in addition to what it checks.
#[derive(Clone, Debug)]
pub struct DeclaredRule {
    /// What happens on a violation: several for a rule with several checks.
    pub actions: Vec<Disposition>,
    /// The sentence in responses. Tables have none: what they report depends on the object.
    pub message: Option<String>,
    /// Where it comes from. Of several tables or checks with this id, all of their sources.
    pub source: String,
    /// Off, unless a policy enables it.
    pub optional: bool,
    /// Who declares it.
    pub(crate) by: Declarer,
}

/// Who declares a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Declarer {
    /// The `owners` of a policy.
    Owners,
    /// A check of a value.
    Check,
    /// A table of a convention.
    Table,
    /// A phase.
    Phase,
    /// A rule with a predicate, or in CEL.
    Rule,
    /// A rule about the elements of a list.
    ElementRule,
}

impl RuleTable {
    /// What is declared of a rule.
    pub fn get(&self, id: &str) -> Option<&DeclaredRule> {
        self.rules.get(id)
    }

    /// All rules with their ids.
    pub fn iter(&self) -> impl Iterator<Item = (Id, &DeclaredRule)> {
        let rules = (self.first..).zip(&self.rules);
        rules.map(|(index, (id, rule))| (Id::new(id.clone(), index), rule))
    }

    /// The position after the last rule.
    pub fn end(&self) -> usize {
        self.first + self.rules.len()
    }

    /// The ids of the rules that have a predicate.
    pub(crate) fn written(&self) -> impl Iterator<Item = &str> {
        self.rules.iter().filter_map(|(id, rule)| {
            matches!(rule.by, Declarer::Rule | Declarer::ElementRule).then_some(id.as_str())
        })
    }

    /// An empty table: its first rule will have this position.
    pub(crate) fn after(first: usize) -> Self {
        Self { first, ..Self::default() }
    }

    /// Adds a rule. Of several declarations with one id, the first message, all actions and all sources
    /// stay.
    pub(crate) fn declare(&mut self, id: String, rule: DeclaredRule) -> Id {
        let index = match self.rules.get_full_mut(&id) {
            Some((index, _, known)) => {
                known.join(rule);
                index
            }
            None => self.rules.insert_full(id.clone(), rule).0,
        };
        Id::new(id, self.first + index)
    }

    /// A rule from a table without a source gets the source of its convention.
    pub(crate) fn set_default_source(&mut self, source: &str) {
        for rule in self.rules.values_mut().filter(|rule| rule.source.is_empty()) {
            rule.source.push_str(source);
        }
    }
}

impl DeclaredRule {
    fn join(&mut self, other: Self) {
        for action in other.actions {
            if !self.actions.contains(&action) {
                self.actions.push(action);
            }
        }
        for part in other.source.split("; ").filter(|part| !part.is_empty()) {
            if self.source.split("; ").all(|known| known != part) {
                if !self.source.is_empty() {
                    self.source.push_str("; ");
                }
                self.source.push_str(part);
            }
        }
    }
}

impl Declarer {
    /// As messages name it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Owners => "owners of fields",
            Self::Check => "a check of a field or member",
            Self::Table | Self::Phase => "a table or the phases",
            Self::Rule | Self::ElementRule => "a rule of the convention",
        }
    }
}
