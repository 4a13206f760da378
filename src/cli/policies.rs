//! `--policies`: the flag of every command that judges.

use std::path::PathBuf;

use anyhow::bail;

use super::{explain, say};
use statusgate_cluster::manifests::resource::CustomResource;
use statusgate_cluster::manifests::rules::{Reason, RuleGap, gaps};
use statusgate_cluster::manifests::selectors::unserved;
use statusgate_core::documents::PolicySpec;
use statusgate_core::engine::REHEARSED;
use statusgate_core::policy::{Diagnostics, Policy, PolicySet, Source};
use statusgate_server::NO_POLICY;
use statusgate_server::files;

/// Where the policies are.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Policies {
    /// Policies: a file or a folder. May be repeated. Default: the built-in example policies.
    #[arg(id = "policies", long, value_name = "PATH")]
    pub(super) paths: Vec<PathBuf>,
}

impl Policies {
    /// Reads and compiles the policies.
    pub(super) fn load(&self) -> anyhow::Result<PolicySet> {
        following(&self.paths, None)
    }
}

/// The policies of some paths, or one policy, which may name a convention of these paths.
///
/// # Errors
/// Documents that cannot be read or are wrong, and paths without a policy: nothing would be judged.
pub(super) fn following(paths: &[PathBuf], spec: Option<PolicySpec>) -> anyhow::Result<PolicySet> {
    let Some(spec) = spec else {
        return judging(&files::load_policies_or_examples(paths)?);
    };
    // First compile these alone: errors then show their location.
    let given = compile(&files::load_policies(paths)?)?;
    let (name, known) = (&spec.convention, given.conventions());
    if !known.contains_key(name) {
        bail!("{}", explain::unknown(name, known.keys().map(String::as_str)));
    }
    Ok(given.with_policy("all", &spec)?)
}

/// Compiles the documents of a command that judges.
///
/// # Errors
/// All mistakes, and documents without a policy.
pub(super) fn judging(sources: &[Source]) -> anyhow::Result<PolicySet> {
    let policies = compile(sources)?;
    if policies.policies().is_empty() {
        bail!("{NO_POLICY}");
    }
    Ok(policies)
}

/// Compiles documents, with a note for each one that is skipped.
pub(super) fn compile(sources: &[Source]) -> Result<PolicySet, Diagnostics> {
    let policies = PolicySet::compile(sources)?;
    policies.skipped().iter().for_each(say);
    Ok(policies)
}

/// The names in the selectors of policies that no CRD has, as mistakes in their documents.
pub(super) fn mistakes_in_selectors(
    sources: &[Source],
    policies: &PolicySet,
    crds: &[CustomResource],
) -> Diagnostics {
    let mistakes = unserved(policies, crds).into_iter().filter_map(|found| {
        let place = found.place;
        let verb = if place.1 == "apiVersions" { "serve" } else { "have" };
        let message = format!("the CustomResourceDefinitions do not {verb} {}", found.what);
        let mut mistake = PolicySet::mistake_in_selector(sources, &found.policy, place, message)?;
        mistake.help = found.help;
        Some(mistake)
    });
    let gaps = gaps(policies, crds).into_iter().filter_map(|RuleGap { policy, resource, place, reason }| {
        let Reason::WrongSubresource { served } = reason else { return None };
        let has = if served { "has a" } else { "has no" };
        let message = format!("the CustomResourceDefinition of {resource} {has} status subresource: no write is judged");
        let mut mistake = PolicySet::mistake_in_selector(sources, &policy, place, message)?;
        mistake.help = Some(format!("set statusSubresource: {served}"));
        Some(mistake)
    });
    Diagnostics::new(sources, mistakes.chain(gaps).collect())
}

/// The ids of all rules that judge.
pub(super) fn rule_ids(policies: &PolicySet) -> Vec<String> {
    let rules = policies.policies().iter().flat_map(Policy::rules);
    let rehearsed = REHEARSED.iter().filter(|_| !policies.defined().is_empty());
    rules.map(|(id, _)| id.to_string()).chain(rehearsed.map(ToString::to_string)).collect()
}
