//! One rule in words, with an example that violates it and one that satisfies it.

use anyhow::bail;

use super::{Args, Output, table, unknown_rule};
use statusgate_core::explain::render;
use statusgate_core::lint::Explained;
use statusgate_core::policy::{Policy, PolicySet};

/// The text of a rule of a convention or of a policy.
pub(super) fn explain(id: &str, policies: &PolicySet, args: &Args) -> anyhow::Result<String> {
    let Some(rule) = Explained::find(id, policies)? else {
        let of_conventions = policies.conventions().values();
        let of_conventions = of_conventions.flat_map(|convention| convention.declared.iter());
        let of_policies = policies.policies().iter().flat_map(Policy::rules);
        let ids = of_conventions.chain(of_policies).map(|(id, _)| id.to_string());
        let ids: Vec<String> = ids.collect();
        bail!("{}", unknown_rule(id, ids.iter().map(String::as_str), !args.policies.is_empty()));
    };
    Ok(match args.output {
        Output::Table => render::text(&rule.to_page(), table::width()),
        Output::Markdown => render::markdown(&rule.to_page()),
        Output::Json => format!("{:#}\n", rule.to_json()),
        Output::Yaml | Output::Mermaid => {
            bail!("a rule can be printed as table, markdown or json")
        }
    })
}
