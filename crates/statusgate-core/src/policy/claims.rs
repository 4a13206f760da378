//! A resource has one owner of its phase and defaults. Two policies that name the same one, without globs,
//! and both configure a phase are an error; with globs the overlap may be meant, and the first one wins.

use super::{Policy, Resources};
use crate::language::Glob;
use crate::source::Diagnostic;
use crate::source::tree::Node;

/// A policy, and the places where it configures what other policies may also configure.
pub(super) struct Claim<'n> {
    pub(super) policy: Policy,
    pub(super) resources: &'n [Node],
}

/// The resources that two policies name, when both configure the phase: an error at each of the two entries.
pub(super) fn check(claims: &[Claim<'_>]) -> Vec<Diagnostic> {
    let owners: Vec<&Claim<'_>> =
        claims.iter().filter(|claim| claim.policy.convention.phase.is_some()).collect();
    let mut mistakes = Vec::new();
    for (at, later) in owners.iter().enumerate() {
        for earlier in &owners[..at] {
            for (rule, node) in later.policy.resources.iter().zip(later.resources) {
                for (other, other_node) in earlier.policy.resources.iter().zip(earlier.resources) {
                    let Some(resource) = both_name(rule, other) else { continue };
                    for (node, policy, owner) in
                        [(other_node, earlier, later), (node, later, earlier)]
                    {
                        let message = format!(
                            "policies \"{}\" and \"{}\" both configure the phase of {resource}",
                            policy.policy.name, owner.policy.name
                        );
                        let help = "one policy owns the phase of a resource; give the other one a convention without a phase";
                        let mistake = Diagnostic::new(node.span.clone(), message);
                        mistakes.push(Diagnostic { help: Some(help.to_owned()), ..mistake });
                    }
                }
            }
        }
    }
    mistakes
}

/// Whether both can select one object.
pub(crate) fn overlap(one: &Policy, other: &Policy) -> bool {
    one.resources.iter().any(|one| {
        other.resources.iter().any(|other| {
            one.status_subresource == other.status_subresource
                && Glob::any_overlap(&one.api_groups, &other.api_groups)
                && Glob::any_overlap(&one.api_versions, &other.api_versions)
                && Glob::any_overlap(&one.resources, &other.resources)
        })
    })
}

/// A resource that both entries name without globs.
fn both_name(one: &Resources, other: &Resources) -> Option<String> {
    let shared = |some: &[Glob], others: &[Glob]| {
        let mut names = some.iter().filter_map(Glob::exact);
        let is_there = |name: &&str| others.iter().any(|other| other.exact() == Some(name));
        names.find(is_there).map(str::to_owned)
    };
    if one.status_subresource != other.status_subresource {
        return None;
    }
    let group = shared(&one.api_groups, &other.api_groups)?;
    let version = shared(&one.api_versions, &other.api_versions)?;
    let plural = shared(&one.resources, &other.resources)?;
    let slash = if group.is_empty() { "" } else { "/" };
    Some(format!("{group}{slash}{version} {plural}"))
}
