//! One rule in words, with an example that violates it and one that satisfies it.

use serde::Serialize;
use serde_json::Value;

use super::{Block, Page, RuleText};
use statusgate_analysis::lint::{Example, Examples, Pair};
use statusgate_analysis::scene::yaml;
use statusgate_core::policy::{Diagnostics, PolicySet};

/// A rule and its examples.
#[derive(Debug, Serialize)]
pub struct Explained {
    #[serde(flatten)]
    rule: RuleText,
    /// Writes that show it.
    #[serde(flatten)]
    pub examples: Pair,
}

impl Explained {
    /// A rule of a convention or of a policy; `None` if there is none with this id.
    ///
    /// # Errors
    /// When the convention cannot be used in a policy.
    pub fn find(id: &str, policies: &PolicySet) -> Result<Option<Self>, Diagnostics> {
        let name = id.split_once('/').map_or(id, |(name, _)| name);
        if let Some(convention) = policies.conventions().get(name)
            && let Some(rule) = RuleText::of_convention(convention, id)
        {
            let examples = Examples::of_convention(policies, name)?.of_rule(id);
            return Ok(Some(Self { rule, examples }));
        }
        let mut named = policies.policies().iter().filter(|policy| *policy.name == *name);
        Ok(named.find_map(|policy| {
            let rule = RuleText::of_policy(policy, id)?;
            Some(Self { rule, examples: Examples::of_policy(policy).of_rule(id) })
        }))
    }

    /// The rule as a page.
    pub fn to_page(&self) -> Page {
        let Self { rule, examples } = self;
        let mut page = Page::of_rule(rule);
        let parts = [
            ("A write that violates it", &examples.violating),
            ("A write that satisfies it", &examples.satisfying),
        ];
        for (heading, example) in parts {
            let Some(example) = example else { continue };
            page.heading(heading);
            if !example.resource.is_empty() {
                page.text(format!("Resource: {}.", example.resource));
            }
            page.blocks.push(Block::Code(yaml_of(example)));
            let findings = example.findings.iter().map(ToString::to_string);
            match findings.collect::<Vec<_>>() {
                none if none.is_empty() => page.text("No findings."),
                findings => page.list(findings),
            }
        }
        if examples.violating.is_none() {
            page.text("No example was found: no write that was tried violates this rule.");
        }
        page
    }
}

/// The stored object of an example, if it has a status, and the written one.
fn yaml_of(example: &Example) -> String {
    let written = yaml(&shortened(&example.written));
    match &example.stored {
        Some(stored) => {
            format!("# stored\n{}---\n# written\n{written}", yaml(&shortened(stored)))
        }
        None => format!("# written\n{written}"),
    }
}

/// Longer texts and lists are cut: they are examples of something that is too long.
const LONGEST_TEXT: usize = 320;
const LONGEST_LIST: usize = 20;

/// The value without the end of very long texts and lists.
fn shortened(value: &Value) -> Value {
    match value {
        Value::String(text) => match text.char_indices().nth(LONGEST_TEXT) {
            Some((end, _)) => {
                let start = text.get(..end).unwrap_or_default();
                format!("{start}… ({} characters)", text.chars().count()).into()
            }
            None => value.clone(),
        },
        Value::Array(items) => {
            let more = items.len().saturating_sub(LONGEST_LIST);
            let more = (more > 0).then(|| format!("… ({more} more)").into());
            items.iter().take(LONGEST_LIST).map(shortened).chain(more).collect()
        }
        Value::Object(members) => {
            members.iter().map(|(name, value)| (name.clone(), shortened(value))).collect()
        }
        other => other.clone(),
    }
}
