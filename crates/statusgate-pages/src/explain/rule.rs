//! One rule in words: what violates it, what happens, and where it comes from.

use serde::Serialize;

use super::page::{Block, Page};
use statusgate_analysis::line::{Line, lines, lines_of_policy};
use statusgate_analysis::words;
use statusgate_core::policy::convention::Convention;
use statusgate_core::policy::{DeclaredRule, Policy};

/// A rule in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RuleText {
    /// The rule id.
    pub id: String,
    /// The sentence in responses, if it is the same for every violation.
    pub message: Option<String>,
    /// The meaning of the condition type or phase that the rule is about.
    pub meaning: Option<String>,
    /// What violates it, with the action. One id may have several.
    pub violations: Vec<Violation>,
    /// Whether it is off unless a policy enables it.
    pub optional: bool,
    /// Where it comes from.
    pub source: String,
}

/// One way to violate a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// A clause: `condition Ready is missing`.
    pub what: String,
    /// The writes that the rule judges, if it declares them.
    pub judges: Option<String>,
    /// `Deny`; `Disagreement` is the action that the policy chooses.
    pub action: &'static str,
}

impl RuleText {
    /// A rule of a convention.
    pub fn of_convention(convention: &Convention, id: &str) -> Option<Self> {
        Some(Self::of(id, convention.declared.get(id)?, lines(convention)))
    }

    /// A policy's own rule.
    pub fn of_policy(policy: &Policy, id: &str) -> Option<Self> {
        Some(Self::of(id, policy.declared.get(id)?, lines_of_policy(policy)))
    }

    fn of(id: &str, rule: &DeclaredRule, mut lines: Vec<Line<'_>>) -> Self {
        lines.retain(|line| line.id == id);
        let mut subjects = lines.iter().filter_map(|line| line.subject);
        let meaning = subjects.find(|(_, meaning)| !meaning.is_empty());
        Self {
            id: id.to_owned(),
            message: rule.message.clone(),
            meaning: meaning.map(|(name, meaning)| format!("{name}: {meaning}")),
            optional: rule.optional,
            source: rule.source.clone(),
            violations: lines
                .into_iter()
                .map(|line| Violation {
                    what: line.sentence,
                    judges: line.judges.map(words::trigger),
                    action: words::action(line.action),
                })
                .collect(),
        }
    }
}

impl Page {
    /// The page of a rule, without examples.
    pub fn of_rule(rule: &RuleText) -> Self {
        let mut page = Self { title: rule.id.clone(), blocks: Vec::new() };
        rule.message.iter().for_each(|message| page.text(format!("Message: {message}.")));
        rule.meaning.iter().for_each(|meaning| page.text(format!("{meaning}.")));
        if rule.optional {
            page.text("This rule is off unless a policy enables it.");
        }
        page.text("Violated where:");
        let points =
            rule.violations.iter().map(|Violation { what, judges, action }| match judges {
                Some(judges) => format!("{what}; it judges {judges}: {action}"),
                None => format!("{what}: {action}"),
            });
        page.blocks.push(Block::List(points.collect()));
        if rule.violations.iter().any(|violation| violation.action == "Disagreement") {
            page.text("Disagreement: the policy's `disagreement` for the writer, Deny by default.");
        }
        page.source(&rule.source);
        page
    }
}
