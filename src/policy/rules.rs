//! The table of rules: every rule id, and what is declared of it. Reports read it; the engine does
//! not.

use std::collections::BTreeMap;

use super::Disposition;

/// The second half of the id for changes of an owned field by others.
pub(crate) const OWNER: &str = "owner";

/// The rules of a convention or of a policy, by id.
#[derive(Clone, Debug, Default)]
pub struct RuleTable(BTreeMap<String, DeclaredRule>);

/// What is declared of a rule, in addition to what it checks.
#[derive(Clone, Debug)]
pub struct DeclaredRule {
    /// What happens on a violation. Of several actions, the first in the document.
    pub action: Disposition,
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
    #[must_use]
    pub fn get(&self, id: &str) -> Option<&DeclaredRule> {
        self.0.get(id)
    }

    /// All rules, by id.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &DeclaredRule)> {
        self.0.iter().map(|(id, rule)| (id.as_str(), rule))
    }

    /// The ids of the rules that have a predicate.
    pub(crate) fn written(&self) -> impl Iterator<Item = &str> {
        let is = |by: Declarer| matches!(by, Declarer::Rule | Declarer::ElementRule);
        self.iter().filter(move |(_, rule)| is(rule.by)).map(|(id, _)| id)
    }

    /// Adds a rule. Of several declarations with one id, the first message and all sources stay.
    pub(crate) fn declare(&mut self, id: &str, rule: DeclaredRule) {
        match self.0.get_mut(id) {
            Some(known) => known.add_source(&rule.source),
            None => {
                self.0.insert(id.to_owned(), rule);
            }
        }
    }

    /// A rule from a table without a source gets the source of its convention.
    pub(crate) fn set_default_source(&mut self, source: &str) {
        for rule in self.0.values_mut().filter(|rule| rule.source.is_empty()) {
            rule.source.push_str(source);
        }
    }

    /// Removes the rules that are off.
    pub(crate) fn retain_enabled(&mut self, enabled: impl Fn(&str) -> bool) {
        self.0.retain(|id, rule| !rule.optional || enabled(id));
    }

    /// Adds all rules of another table.
    pub(crate) fn extend(&mut self, other: &Self) {
        self.0.extend(other.0.iter().map(|(id, rule)| (id.clone(), rule.clone())));
    }
}

impl DeclaredRule {
    fn add_source(&mut self, source: &str) {
        for part in source.split("; ").filter(|part| !part.is_empty()) {
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
