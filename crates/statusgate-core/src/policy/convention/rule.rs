//! A rule of a convention: a predicate that should not hold, and what happens when it does.

use super::super::compile::{Compiler, Purpose};
use super::super::rules::{DeclaredRule, Declarer};
use super::{Rule, Trigger, Watched};
use crate::documents::{StatusPointer, TriggerWord};
use crate::model::Pointer;
use crate::source::tree::At;

impl Rule {
    /// The field that the response names.
    pub fn field(&self) -> &str {
        self.path.as_deref().map(Pointer::field).unwrap_or_default()
    }
}

impl Compiler<'_> {
    /// Compiles a rule with its defaults. `phase` is the path of the phase.
    pub(super) fn rule(
        &self,
        rule: &Rule,
        phase: Option<&StatusPointer>,
        at: At<'_>,
    ) -> Option<Rule> {
        if let Some(list) = &rule.list {
            self.names.check_list(at.key("in"), list);
        }
        let path = rule.path.as_ref().or(rule.list.as_ref()).or(phase);
        if path.is_none() && self.complete {
            at.report_with_help(
                "missing required key \"path\"",
                "name the field of the finding: without a phase in the convention, there is no default",
            );
        }
        let declared = self.tables(&[&rule.source]).by(Declarer::Rule).declared(rule.action);
        let (message, optional) = (Some(rule.message.to_string()), rule.optional);
        let declared = DeclaredRule { message, optional, ..declared };
        let id = self.declare_written(&rule.id, declared, at);
        self.report(rule.when.check(), Purpose::of(rule.action), at.key("when"));
        let trigger = self.trigger(rule.trigger.as_ref(), at);
        Some(Rule { rule: id, path: Some(path?.clone()), trigger: Some(trigger), ..rule.clone() })
    }

    /// The trigger of a rule, or the default.
    pub(crate) fn trigger(&self, trigger: Option<&Trigger>, at: At<'_>) -> Trigger {
        if let Some(Trigger::Watch(watch)) = trigger {
            let at = at.key("trigger");
            if watch.moved.is_some() == watch.co_written.is_some() {
                at.report("a trigger is state, introduced, moved or coWritten");
            }
            for (key, watched) in [("moved", &watch.moved), ("coWritten", &watch.co_written)] {
                for (at, watched) in at.key(key).each(watched.iter().flat_map(|all| all.iter())) {
                    if let Watched::Condition(kind) = watched {
                        self.check_type(kind, at);
                    }
                }
            }
        }
        trigger.cloned().unwrap_or(Trigger::Word(TriggerWord::Introduced))
    }
}

impl Trigger {
    /// Whether the rule judges writes that introduce the violation.
    pub const fn is_introduced(&self) -> bool {
        matches!(self, Self::Word(TriggerWord::Introduced))
    }
}
