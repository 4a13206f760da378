//! One rule in words, with an example that violates it and one that satisfies it.

use anyhow::bail;
use serde_json::{Value, json};

use super::{Args, Output, table, unknown_rule};
use statusgate_core::explain::{Block, Page, RuleText, render};
use statusgate_core::lint::{Example, Examples, Pair};
use statusgate_core::policy::{Policy, PolicySet};

/// The text of a rule of a convention or of a policy.
pub(super) fn explain(id: &str, policies: &PolicySet, args: &Args) -> anyhow::Result<String> {
    let (rule, examples) = find(id, policies, !args.policies.is_empty())?;
    let examples = examples.of_rule(id);
    Ok(match args.output {
        Output::Table => render::text(&page(&rule, &examples), table::width()),
        Output::Markdown => render::markdown(&page(&rule, &examples)),
        Output::Json => format!("{:#}\n", data(&rule, &examples)),
        Output::Yaml | Output::Mermaid => {
            bail!("a rule can be printed as table, markdown or json")
        }
    })
}

fn find(id: &str, policies: &PolicySet, given: bool) -> anyhow::Result<(RuleText, Examples)> {
    let name = id.split_once('/').map_or(id, |(name, _)| name);
    if let Some(convention) = policies.conventions().get(name)
        && let Some(rule) = RuleText::of_convention(convention, id)
    {
        return Ok((rule, Examples::of_convention(policies, name)?));
    }
    for policy in policies.policies().iter().filter(|policy| *policy.name == *name) {
        if let Some(rule) = RuleText::of_policy(policy, id) {
            return Ok((rule, Examples::of_policy(policy)));
        }
    }
    let of_conventions = policies.conventions().values();
    let of_conventions = of_conventions.flat_map(|convention| convention.declared.iter());
    let of_policies = policies.policies().iter().flat_map(Policy::rules);
    let ids = of_conventions.chain(of_policies).map(|(id, _)| id.to_string());
    let ids: Vec<String> = ids.collect();
    bail!("{}", unknown_rule(id, ids.iter().map(String::as_str), given))
}

fn page(rule: &RuleText, examples: &Pair) -> Page {
    let mut page = Page::of_rule(rule);
    let parts = [
        ("A write that violates it", &examples.violating),
        ("A write that satisfies it", &examples.satisfying),
    ];
    for (heading, example) in parts {
        let Some(example) = example else { continue };
        page.blocks.push(Block::Heading(heading.to_owned()));
        if !example.resource.is_empty() {
            page.blocks.push(Block::Text(format!("Resource: {}.", example.resource)));
        }
        page.blocks.push(Block::Code(yaml(example)));
        let findings = example.findings.iter().map(ToString::to_string);
        page.blocks.push(match findings.collect::<Vec<_>>() {
            none if none.is_empty() => Block::Text("No findings.".to_owned()),
            findings => Block::List(findings),
        });
    }
    if examples.violating.is_none() {
        let text = "No example was found: no write that was tried violates this rule.";
        page.blocks.push(Block::Text(text.to_owned()));
    }
    page
}

/// The stored object, if it has a status, and the written one.
fn yaml(example: &Example) -> String {
    let write = |value: &Value| serde_saphyr::to_string(&shortened(value)).unwrap_or_default();
    match &example.stored {
        Some(stored) => {
            format!("# stored\n{}---\n# written\n{}", write(stored), write(&example.written))
        }
        None => format!("# written\n{}", write(&example.written)),
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
            let members = members.iter().map(|(name, value)| (name.clone(), shortened(value)));
            Value::Object(members.collect())
        }
        other => other.clone(),
    }
}

fn data(rule: &RuleText, examples: &Pair) -> Value {
    let mut data = json!(rule);
    data["violating"] = json!(examples.violating);
    data["satisfying"] = json!(examples.satisfying);
    data
}
