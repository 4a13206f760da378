//! A resource has one owner of its phase and defaults. Two policies in files that name the same one, without
//! globs, and both configure a phase are an error; with globs the overlap may be meant, and the first one wins.
//! In a cluster, documents change one after the other: the first one always wins, and the other one is reported.

use std::collections::BTreeSet;

use super::{Policy, Resources};
use crate::language::Glob;
use crate::source::Diagnostic;
use crate::source::tree::Node;

/// A policy, and the places where it configures what other policies may also configure.
pub(super) struct Claim<'n> {
    pub(super) policy: Policy,
    pub(super) resources: &'n [Node],
}

/// A policy that configures a phase that it does not own.
#[derive(Clone, Debug)]
pub struct Conflict<'p> {
    /// The policy that owns the phase: it comes first.
    pub owner: &'p Policy,
    /// The other policy.
    pub policy: &'p Policy,
    /// The resource, as far as the policies name it: `example.org/v1 widgets`.
    pub resource: String,
}

/// The conflicts between policies, in their order, of all policies or of the one with this name.
pub(super) fn conflicts<'p>(policies: &'p [Policy], about: Option<&str>) -> Vec<Conflict<'p>> {
    let is_wanted = |policy: &Policy| about.is_none_or(|name| *policy.name == *name);
    let owners: Vec<&Policy> =
        policies.iter().filter(|policy| policy.convention.phase.is_some()).collect();
    let mut conflicts = Vec::new();
    for (at, policy) in owners.iter().copied().enumerate() {
        for owner in owners[..at].iter().copied() {
            if !is_wanted(policy) && !is_wanted(owner) {
                continue;
            }
            let pairs = policy.resources.iter().flat_map(|one| {
                owner.resources.iter().filter_map(move |other| both_select(one, other))
            });
            let pairs = pairs.map(|resource| Conflict { owner, policy, resource });
            conflicts.extend(pairs.take(MAX_CONFLICTS));
        }
    }
    conflicts
}

/// The reported conflicts between two policies.
const MAX_CONFLICTS: usize = 20;

/// The resources that two policies name, when both configure the phase: an error at each of the two entries.
/// `cluster` is the number of the first source that is a document of a cluster.
pub(super) fn check(claims: &[Claim<'_>], cluster: usize) -> Vec<Diagnostic> {
    let owners: Vec<&Claim<'_>> =
        claims.iter().filter(|claim| claim.policy.convention.phase.is_some()).collect();
    let mut mistakes = Vec::new();
    for (at, later) in owners.iter().enumerate() {
        for earlier in &owners[..at] {
            for (rule, node) in later.policy.resources.iter().zip(later.resources) {
                if node.span.source >= cluster {
                    continue;
                }
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
pub fn overlap(one: &Policy, other: &Policy) -> bool {
    one.resources.iter().any(|one| other.resources.iter().any(|other| both_match(one, other)))
}

/// Whether both entries can select one object.
fn both_match(one: &Resources, other: &Resources) -> bool {
    one.status_subresource == other.status_subresource
        && Glob::any_overlap(&one.api_groups, &other.api_groups)
        && Glob::any_overlap(&one.api_versions, &other.api_versions)
        && Glob::any_overlap(&one.resources, &other.resources)
}

/// What both entries can select: names, or the globs of the first one.
fn both_select(one: &Resources, other: &Resources) -> Option<String> {
    shared(one, other, |some, others| {
        let pairs = some.iter().flat_map(|one| others.iter().map(move |other| (one, other)));
        let both = pairs.filter(|(one, other)| one.overlaps(other));
        let names = both.map(|(one, other)| if other.exact().is_some() { other } else { one });
        let names: BTreeSet<String> = names.map(Glob::to_string).collect();
        (!names.is_empty()).then(|| Vec::from_iter(names).join(", "))
    })
}

/// A resource that both entries name without globs.
fn both_name(one: &Resources, other: &Resources) -> Option<String> {
    shared(one, other, |some, others| {
        let mut names = some.iter().filter_map(Glob::exact);
        let name = names.find(|name| others.iter().any(|other| other.exact() == Some(*name)));
        name.map(str::to_owned)
    })
}

/// What both entries have in common, if that is something in each of their lists: `example.org/v1 widgets`.
fn shared(
    one: &Resources,
    other: &Resources,
    in_lists: impl Fn(&[Glob], &[Glob]) -> Option<String>,
) -> Option<String> {
    if one.status_subresource != other.status_subresource {
        return None;
    }
    let group = in_lists(&one.api_groups, &other.api_groups)?;
    let version = in_lists(&one.api_versions, &other.api_versions)?;
    let plural = in_lists(&one.resources, &other.resources)?;
    let slash = if group.is_empty() { "" } else { "/" };
    Some(format!("{group}{slash}{version} {plural}"))
}
