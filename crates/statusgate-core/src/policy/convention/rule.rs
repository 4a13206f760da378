//! A rule of a convention: a predicate that should not hold, and what happens when it does.

use super::super::compile::Compiler;
use super::super::rules::{DeclaredRule, Declarer};
use super::super::{Disposition, Id};
use super::{PhaseRules, Sanction};
use crate::documents::{self, TriggerWord, Watched};
use crate::language::Predicate;
use crate::model::Pointer;
use crate::source::tree::At;

/// A limit of a number, and what happens beyond it.
#[derive(Clone, Debug)]
pub struct Limit<T> {
    /// The largest or smallest valid number.
    pub value: T,
    /// Another number is beyond it.
    pub sanction: Sanction,
}

/// A rule that needs a predicate.
#[derive(Clone, Debug)]
pub struct Rule {
    /// `appcat/instance-namespace`.
    pub id: Id,
    /// The violation: the rule fires when this definitely holds.
    pub when: Predicate,
    /// Which writes it judges.
    pub trigger: Trigger,
    /// What happens.
    pub action: Disposition,
    /// The field that the response names.
    pub path: Pointer,
    /// The condition list that it reads, if not the first.
    pub list: Option<Pointer>,
    /// The sentence in the response.
    pub message: String,
    /// Where it comes from.
    pub source: String,
    /// Off, unless a policy enables it.
    pub optional: bool,
}

/// Which writes a rule judges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// Every write that leaves the violation.
    State,
    /// Writes that introduce the violation: the stored object does not have it in the same place.
    Introduced,
    /// Writes that changed one of these.
    Moved(Vec<Watched>),
    /// Writes that changed all of these, or created the status.
    CoWritten(Vec<Watched>),
}

impl Compiler<'_> {
    pub(super) fn rule(
        &self,
        document: &documents::Rule,
        phase: Option<&PhaseRules>,
        at: At<'_>,
    ) -> Option<Rule> {
        let list = document.list.as_deref().cloned();
        if let Some(list) = &list {
            self.names.check_list(at.key("in"), list);
        }
        let path = document.path.as_deref().or(list.as_ref());
        let path = path.or_else(|| phase.map(|phase| &phase.path));
        if path.is_none() && self.complete {
            at.report("missing required key \"path\"");
        }
        let path = path.cloned();
        let declared = DeclaredRule {
            actions: vec![document.action],
            message: Some(document.message.to_string()),
            source: document.source.clone(),
            optional: document.optional,
            by: Declarer::Rule,
        };
        let id = self.declare_written(&document.id, declared.clone(), at);
        let when = self.predicate(&document.when, at.key("when"));
        let trigger = document
            .trigger
            .as_ref()
            .map_or(Trigger::Introduced, |trigger| Trigger::compile(trigger, at.key("trigger")));
        Some(Rule {
            id,
            when,
            trigger,
            action: document.action,
            path: path?,
            list,
            message: document.message.to_string(),
            source: declared.source.clone(),
            optional: declared.optional,
        })
    }
}

impl Trigger {
    /// Compiles a trigger of a convention or of a policy.
    pub(crate) fn compile(trigger: &documents::Trigger, at: At<'_>) -> Self {
        match trigger {
            documents::Trigger::Word(TriggerWord::State) => Self::State,
            documents::Trigger::Word(TriggerWord::Introduced) => Self::Introduced,
            documents::Trigger::Watch(watch) => match (&watch.moved, &watch.co_written) {
                (Some(moved), None) => Self::Moved(moved.to_vec()),
                (None, Some(written)) => Self::CoWritten(written.to_vec()),
                _ => {
                    at.report("a trigger is state, introduced, moved or coWritten");
                    Self::Introduced
                }
            },
        }
    }
}
