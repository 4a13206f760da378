//! What compiling the parts of documents has in common: names, rule ids, actions.

use std::cell::RefCell;
use std::collections::BTreeSet;

use super::checks::of_element;
use super::convention::Names;
use super::rules::{DeclaredRule, Declarer, OWNER, RuleTable};
use super::{Disposition, Id};
use crate::documents::{Name, Sanction};
use crate::language::{Issue, Issues, Segment};
use crate::source::tree::At;

/// Compiles the parts of one document.
pub(crate) struct Compiler<'c> {
    /// Of the convention or policy: the first half of every rule id.
    pub(crate) name: &'c str,
    /// What predicates may name.
    pub(crate) names: &'c Names,
    /// Whether every inherited convention is known. Otherwise nothing is reported as missing: an unknown
    /// convention may declare it.
    pub(crate) complete: bool,
    /// The number of the source of the document: other parts are inherited.
    source: usize,
    rules: RefCell<RuleTable>,
    /// The condition types that predicates name and no list declares.
    pub(crate) undeclared: RefCell<BTreeSet<String>>,
}

/// Compiles what has one source: it declares rules with it.
#[derive(Clone, Copy)]
pub(crate) struct Sourced<'c> {
    compiler: &'c Compiler<'c>,
    source: &'c str,
    by: Declarer,
    /// What the elements of the list are called, if the rules are those of a list without conditions.
    element: Option<&'c str>,
}

impl<'c> Compiler<'c> {
    pub(crate) fn new(name: &'c str, names: &'c Names, complete: bool, at: At<'_>) -> Self {
        let (rules, undeclared) = (RefCell::default(), RefCell::default());
        Self { name, names, complete, source: at.node().span.source, rules, undeclared }
    }

    /// The same for a policy: its rules come after those of its convention.
    pub(crate) fn after(self, rules: Option<&RuleTable>) -> Self {
        Self { rules: RuleTable::after(rules.map_or(0, RuleTable::end)).into(), ..self }
    }

    pub(crate) fn into_rules(self) -> RuleTable {
        self.rules.into_inner()
    }

    /// A compiler that declares rules with a source: the first of `sources` that is not empty.
    pub(crate) fn tables(&'c self, sources: &[&'c str]) -> Sourced<'c> {
        let source = sources.iter().find(|source| !source.is_empty());
        let source = source.copied().unwrap_or_default();
        Sourced { compiler: self, source, by: Declarer::Table, element: None }
    }

    /// The id of a rule.
    pub(crate) fn id(&self, rule: &str) -> String {
        format!("{}/{rule}", self.name)
    }

    /// Who has declared this rule already.
    pub(crate) fn declarer(&self, rule: &str) -> Option<Declarer> {
        self.rules.borrow().get(&self.id(rule)).map(|rule| rule.by)
    }

    /// Adds a rule to the table, and returns its id.
    pub(crate) fn declare(&self, rule: &str, declared: DeclaredRule) -> Id {
        self.rules.borrow_mut().declare(self.id(rule), declared)
    }

    /// Adds a rule with an id that a person chose, and returns its id. Reports an id that is used.
    pub(crate) fn declare_written(&self, name: &Name, declared: DeclaredRule, at: At<'_>) -> Id {
        let at = at.key("id");
        let taken = |by: &str| Self::report_taken(at, name, by);
        match (self.declarer(name), declared.by) {
            _ if **name == OWNER => taken("owners of fields in policies"),
            (Some(Declarer::Rule), Declarer::Rule) => {
                at.report(format!("rule {} is listed twice", **name));
            }
            // Two lists may have the same rules, by `like`.
            (None, _) | (Some(Declarer::ElementRule), Declarer::ElementRule) => {}
            (Some(other), _) => taken(other.name()),
        }
        self.declare(name, declared)
    }

    /// Reports that a rule id is used already.
    pub(crate) fn report_taken(at: At<'_>, rule: &str, by: &str) {
        let message = format!("the rule id {rule} is already used by {by}");
        at.report_with_help(message, "give this one another id");
    }

    /// Whether a part is in the document itself, and not inherited.
    pub(crate) fn is_own(&self, at: At<'_>) -> bool {
        at.node().span.source == self.source
    }

    /// Checks the name of a condition type.
    pub(crate) fn check_type(&self, name: &str, at: At<'_>) {
        if self.names.check_condition(at, name, self.is_own(at)) {
            self.undeclared.borrow_mut().insert(name.to_owned());
        }
    }

    /// Reports the errors of a predicate with a purpose in their places.
    pub(crate) fn report(&self, issues: Issues, purpose: Purpose, at: At<'_>) {
        for (path, issue) in issues {
            let at = path.iter().fold(at, |at, segment| match segment {
                Segment::Key(key) => at.key(key),
                Segment::Item(index) => at.item(*index),
            });
            match issue {
                Issue::Error(message, Some(help)) => at.report_with_help(message, help),
                Issue::Error(message, None) => at.report(message),
                Issue::Clock if purpose == Purpose::Decide => at.report_with_help(
                    "time alone must neither change nor reject a write",
                    "use it in a rule with the action Warn or Audit",
                ),
                // A write that changes nothing has other stored facts than the write before it.
                Issue::Write if purpose == Purpose::Change => at.report_with_help(
                    "the webhook's own changes cannot depend on the stored object, the write or the time",
                    "ask about the written object; \"sufficient\", \"repair\" and \"rules\" may ask about the stored one",
                ),
                Issue::Write if purpose == Purpose::Health => at.report_with_help(
                    "health cannot ask about a write, the stored object or the time",
                    "readers of a status have only the object",
                ),
                Issue::Phase(name) => self.names.check_phase(at, &name),
                Issue::Condition(name) => self.check_type(&name, at),
                Issue::Clock | Issue::Write => {}
            }
        }
    }
}

/// The effect of a predicate.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Purpose {
    /// It can reject a write, or choose a phase for a contradicted one.
    Decide,
    /// It makes the mutating webhook change a status.
    Change,
    /// It can warn.
    Warn,
    /// It decides about health.
    Health,
}

impl Purpose {
    /// Of a rule with this action.
    pub(crate) const fn of(action: Disposition) -> Self {
        if action.can_deny() { Self::Decide } else { Self::Warn }
    }
}

impl<'c> Sourced<'c> {
    /// The same for rules that something else declares.
    pub(crate) const fn by(self, by: Declarer) -> Self {
        Self { by, ..self }
    }

    /// The same for the rules of a list.
    pub(crate) fn of_list(self, element: Option<&'c Name>) -> Self {
        Self { element: element.map(|name| name.as_str()), ..self }
    }

    /// A rule without a sentence of its own.
    pub(crate) fn declared(&self, action: Disposition) -> DeclaredRule {
        let source = self.source.to_owned();
        DeclaredRule { actions: vec![action], message: None, source, optional: false, by: self.by }
    }

    /// Declares a rule without a sentence of its own, and returns its id.
    pub(crate) fn rule(&self, rule: &str, action: Disposition) -> Id {
        self.compiler.declare(&of_element(self.element, rule), self.declared(action))
    }

    /// A rule of the engine with its action.
    pub(crate) fn sanction(&self, rule: &str, action: Disposition) -> Sanction {
        Sanction { rule: self.rule(rule, action), action }
    }

    /// Gives the sanction of a rule that warns at most its id. A wrong clock must not reject a write, and neither
    /// must what others wrote.
    pub(crate) fn name_mild(&self, rule: &str, mut sanction: Option<&mut Sanction>) {
        if let Some(sanction) = sanction.as_mut().filter(|sanction| sanction.action.can_deny()) {
            sanction.action = Disposition::Warn;
        }
        self.name(rule, sanction);
    }

    /// Gives the sanction of a document its id.
    pub(crate) fn name(&self, rule: &str, sanction: Option<&mut Sanction>) {
        if let Some(sanction) = sanction {
            sanction.rule = self.rule(rule, sanction.action);
        }
    }
}
