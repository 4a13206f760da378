//! `statusgate explain`: the list of conventions, one of them, one rule, or a kind of remark of lint.

mod kind;

use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::ValueEnum;
use serde_json::{Value, json};

use super::policies::{compile, rule_ids};
use super::{Outcome, table};
use statusgate_core::documents::StatusConvention;
use statusgate_core::policy::convention::Convention;
use statusgate_core::policy::{PolicySet, Source};
use statusgate_core::source::tree::near;
pub(super) use statusgate_pages::calls::unknown;
use statusgate_pages::explain::{Explained, Graph, Page, data, render};
use statusgate_server::files;

/// The arguments of `explain`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Without a name: the list of conventions. Exit code 2: there is no such \
                        convention, rule or kind of remark, or it cannot be printed in this format.")]
pub(super) struct Args {
    /// The convention to explain, or the id of a rule, such as appcat/phase-ready. A rule is printed with a
    /// write that violates it and one that satisfies it. `lint` lists the kinds of remarks of `statusgate
    /// lint`, and lint/never-fires explains one with an example. Without a name: the list of conventions.
    #[arg(value_name = "CONVENTION|RULE-ID|lint/KIND")]
    name: Option<String>,

    /// Documents with your own conventions and policies: a file or a folder. May be repeated.
    #[arg(long, value_name = "PATH")]
    policies: Vec<PathBuf>,

    /// How to print it. `yaml` is the document as it was written, `mermaid` the graph of the phases.
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,

    /// With `-o yaml`: everything that the document extends in its place.
    #[arg(long)]
    resolved: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    Table,
    Markdown,
    Json,
    Yaml,
    Mermaid,
}

/// Explains a convention, a rule or a kind of remark, or lists the conventions.
///
/// # Errors
/// When documents cannot be read, or there is no such name, or it cannot be printed in this format.
pub(super) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let sources = files::load_policies(&args.policies)?;
    let policies = compile(&sources)?;
    if args.resolved && args.output != Output::Yaml {
        bail!("--resolved requires -o yaml");
    }
    let text = match &args.name {
        Some(id) if is_of_lint(id, &policies) => kind::explain(id, args.output)?,
        Some(id) if id.contains('/') => rule(id, &policies, args)?,
        Some(name) => {
            let Some(convention) = policies.conventions().get(name) else {
                bail!("{}", unknown(name, policies.conventions().keys().map(String::as_str)));
            };
            one(convention, args, &sources)?
        }
        None => list(policies.conventions().values().map(AsRef::as_ref), args.output)?,
    };
    super::print(&text)
}

/// Whether a name is that of a kind of remark, and not of a document that is also named lint.
fn is_of_lint(id: &str, policies: &PolicySet) -> bool {
    id.split('/').next() == Some(kind::LINT)
        && !policies.conventions().contains_key(kind::LINT)
        && !policies.names().any(|name| name == kind::LINT)
}

/// A rule of a convention or of a policy in words, with an example that violates it and one that satisfies it.
fn rule(id: &str, policies: &PolicySet, args: &Args) -> anyhow::Result<String> {
    let Some(rule) = Explained::find(id, policies)? else {
        let conventions = policies.conventions().values();
        let declared = conventions.flat_map(|convention| convention.declared.iter());
        let mut ids: Vec<String> = declared.map(|(id, _)| id.to_string()).collect();
        ids.extend(rule_ids(policies));
        bail!("{}", unknown_rule(id, ids.iter().map(String::as_str), !args.policies.is_empty()));
    };
    print_page(&rule.to_page(), &json!(rule), args.output, "a rule")
}

/// Prints a page, or the same as data. `what` is it in the error for other formats.
fn print_page(page: &Page, data: &Value, output: Output, what: &str) -> anyhow::Result<String> {
    Ok(match output {
        Output::Table => render::text(page, table::width()),
        Output::Markdown => render::markdown(page),
        Output::Json => format!("{data:#}\n"),
        Output::Yaml | Output::Mermaid => bail!("{what} can be printed as table, markdown or json"),
    })
}

fn one(convention: &Convention, args: &Args, sources: &[Source]) -> anyhow::Result<String> {
    let name = &convention.name;
    Ok(match args.output {
        Output::Table => render::text(&Page::of(convention), table::width()),
        Output::Markdown => render::markdown(&Page::of(convention)),
        Output::Json => format!("{:#}\n", data::convention(&whole(name, sources)?, convention)),
        Output::Yaml if args.resolved => serde_saphyr::to_string(&whole(name, sources)?)?,
        Output::Yaml => PolicySet::document(sources, name).with_context(|| missing(name))?,
        Output::Mermaid => match Graph::of(convention) {
            Some(graph) => graph.to_mermaid(),
            None => bail!("convention {name} has no phase, and so no graph of phases"),
        },
    })
}

/// The document with everything that it extends.
fn whole(name: &str, sources: &[Source]) -> anyhow::Result<StatusConvention> {
    PolicySet::whole_document(sources, name).with_context(|| missing(name))
}

fn missing(name: &str) -> String {
    format!("cannot find the document of {name}")
}

fn list<'c>(
    conventions: impl Iterator<Item = &'c Convention>,
    output: Output,
) -> anyhow::Result<String> {
    let phases =
        |convention: &Convention| convention.phase.as_ref().map_or(0, |rules| rules.phases.len());
    let lists = |convention: &Convention| -> Vec<String> {
        let lists = convention.conditions.iter();
        lists.map(|list| list.path.field().to_owned()).collect()
    };
    Ok(match output {
        Output::Table => {
            let mut table = table::new(&["convention", "what", "phases", "conditions"]);
            for convention in conventions {
                let phases = match phases(convention) {
                    0 => "none".to_owned(),
                    count => count.to_string(),
                };
                let lists = lists(convention).join("\n");
                table.add_row([&convention.name, &convention.title, &phases, &lists]);
            }
            format!("{table}\n")
        }
        Output::Markdown => {
            let mut text =
                "| convention | what | phases | conditions |\n|---|---|---|---|\n".to_owned();
            for convention in conventions {
                let (name, title) = (&convention.name, &convention.title);
                let (phases, lists) = (phases(convention), lists(convention).join(", "));
                text.push_str(&format!("| [{name}]({name}.md) | {title} | {phases} | {lists} |\n"));
            }
            text
        }
        Output::Json => {
            format!("{:#}\n", conventions.map(data::summary).collect::<Value>())
        }
        Output::Yaml | Output::Mermaid => bail!("name the convention to print so"),
    })
}

/// What to say of a rule that does not exist. A convention has dozens of rules, so not all are listed. `given`: whether --policies is.
pub(super) fn unknown_rule<'w>(
    id: &str,
    known: impl Iterator<Item = &'w str> + Clone,
    given: bool,
) -> String {
    let document = id.split('/').next().unwrap_or_default();
    let is_known = known.clone().any(|rule| rule.split('/').next() == Some(document));
    let help = match near(id, known) {
        Some(name) => format!("did you mean \"{name}\"?"),
        None if !given && !is_known => {
            format!("if {document} is your own, name its documents with --policies")
        }
        None => LISTED.to_owned(),
    };
    format!("unknown rule \"{id}\"; {help}")
}

/// The help for an unknown rule.
pub(super) const LISTED: &str = "`statusgate explain CONVENTION` lists the rules of a convention";
