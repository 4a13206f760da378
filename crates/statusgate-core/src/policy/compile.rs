//! What compiling the parts of documents has in common: names, rule ids, actions.

use std::cell::RefCell;

use super::convention::Names;
use super::rules::{DeclaredRule, Declarer, OWNER, RuleTable};
use super::{Disposition, Id};
use crate::documents::{Name, Sanction};
use crate::language::{Predicate, Report, Segment};
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
    rules: RefCell<RuleTable>,
}

/// Compiles what has one source: it declares rules with it.
#[derive(Clone, Copy)]
pub(crate) struct Sourced<'c> {
    compiler: &'c Compiler<'c>,
    source: &'c str,
    by: Declarer,
}

impl<'c> Compiler<'c> {
    pub(crate) fn new(name: &'c str, names: &'c Names, complete: bool) -> Self {
        Self { name, names, complete, rules: RefCell::default() }
    }

    /// The same for a policy that follows a convention: its rules come after these.
    pub(crate) fn after(self, rules: &RuleTable) -> Self {
        Self { rules: RuleTable::after(rules.end()).into(), ..self }
    }

    pub(crate) fn into_rules(self) -> RuleTable {
        self.rules.into_inner()
    }

    /// Compiles tables; the first of `sources` counts.
    pub(crate) fn tables(&'c self, sources: &[&'c str]) -> Sourced<'c> {
        let source = sources.iter().find(|source| !source.is_empty());
        Sourced { compiler: self, source: source.copied().unwrap_or_default(), by: Declarer::Table }
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

    /// Checks what the schema of a predicate cannot express.
    pub(crate) fn predicate(&self, predicate: &Predicate, at: At<'_>) {
        predicate.check(&mut self.reporter(at, true));
    }

    /// Receives the errors of a predicate. One that `decides` can change or reject a write.
    pub(crate) const fn reporter<'r>(&'r self, at: At<'r>, decides: bool) -> Reporter<'r> {
        Reporter { at, names: self.names, decides, is_health: false }
    }

    /// Receives the errors of a predicate about health.
    pub(crate) const fn health_reporter<'r>(&'r self, at: At<'r>) -> Reporter<'r> {
        Reporter { at, names: self.names, decides: false, is_health: true }
    }
}

impl<'c> Sourced<'c> {
    /// The same for rules that something else declares.
    pub(crate) const fn by(self, by: Declarer) -> Self {
        Self { by, ..self }
    }

    /// Declares a rule without a sentence of its own, and returns its id.
    pub(crate) fn rule(&self, rule: &str, action: Disposition) -> Id {
        let declared = DeclaredRule {
            actions: vec![action],
            message: None,
            source: self.source.to_owned(),
            optional: false,
            by: self.by,
        };
        self.compiler.declare(rule, declared)
    }

    /// A rule of the engine with its action.
    pub(crate) fn sanction(&self, rule: &str, action: Disposition) -> Sanction {
        Sanction { rule: self.rule(rule, action), action }
    }

    /// Gives the sanction of a document its id.
    pub(crate) fn name(&self, rule: &str, sanction: Option<&mut Sanction>) {
        if let Some(sanction) = sanction {
            sanction.rule = self.rule(rule, sanction.action);
        }
    }
}

/// Reports the errors of a predicate in their places.
pub(crate) struct Reporter<'r> {
    at: At<'r>,
    names: &'r Names,
    decides: bool,
    is_health: bool,
}

impl Reporter<'_> {
    fn at(&self, path: &[Segment]) -> At<'_> {
        path.iter().fold(self.at, |at, segment| match segment {
            Segment::Key(key) => at.key(key),
            Segment::Item(index) => at.item(*index),
        })
    }
}

impl Report for Reporter<'_> {
    fn error(&mut self, path: &[Segment], message: &str, help: Option<&str>) {
        match help {
            Some(help) => self.at(path).report_with_help(message, help),
            None => self.at(path).report(message),
        }
    }

    fn clock(&mut self, path: &[Segment]) {
        if self.decides {
            let message = "time alone must neither change nor reject a write";
            let help = "use it in a rule with the action Warn or Audit";
            self.at(path).report_with_help(message, help);
        }
    }

    fn write(&mut self, path: &[Segment]) {
        if self.is_health {
            let message = "health cannot ask about a write, the stored object or the time";
            self.at(path).report_with_help(message, "readers of a status have only the object");
        }
    }

    fn phase(&mut self, path: &[Segment], name: &str) {
        self.names.check_phase(self.at(path), name);
    }

    fn condition(&mut self, path: &[Segment], name: &str) {
        self.names.check_condition(self.at(path), name);
    }
}
