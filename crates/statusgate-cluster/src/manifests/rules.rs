//! The rules of registrations, from policies and custom resources.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::resource::{CustomResource, ServedVersion};
use statusgate_core::documents::GROUP;
use statusgate_core::policy::PolicySet;

/// A rule of a webhook.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RuleWithOperations {
    /// Groups or `*`.
    pub api_groups: Vec<String>,
    /// Versions or `*`.
    pub api_versions: Vec<String>,
    /// Operations or `*`.
    pub operations: Vec<String>,
    /// Plurals with a subresource or `*`.
    pub resources: Vec<String>,
    /// `*`, `Cluster` or `Namespaced`.
    #[serde(default = "any", deserialize_with = "scope")]
    pub scope: String,
}

/// A resource that a policy names and that has no rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleGap {
    /// The policy.
    pub policy: String,
    /// `widgets.example.org`.
    pub resource: String,
    /// Where in the policy's `resources`: the entry, the list, the item.
    pub place: (usize, &'static str, usize),
    /// Why there is no rule.
    pub reason: Reason,
}

/// Why a resource has no rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// There is no definition: the kind is built in, belongs to an aggregated API, or is not installed.
    NotDefined,
    /// The policy has the wrong `statusSubresource`.
    WrongSubresource {
        /// Whether the resource has the subresource.
        served: bool,
    },
    /// The policy names none of the served versions.
    OtherVersions,
}

impl Reason {
    /// As part of a sentence about the resource.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::NotDefined => {
                "no CustomResourceDefinition; statusgate registers custom resources only"
            }
            Self::WrongSubresource { served: true } => {
                "it has the status subresource: remove statusSubresource: false from the policy"
            }
            Self::WrongSubresource { served: false } => {
                "it has no status subresource: set statusSubresource: false in the policy"
            }
            Self::OtherVersions => "it is not served in a version of the policy",
        }
    }
}

impl RuleWithOperations {
    /// The rule for policies and conventions.
    pub(super) fn documents() -> Self {
        let resources = ["statuspolicies", "statusconventions"];
        Self::of(GROUP, &["v1alpha1"], &["CREATE", "UPDATE"], &resources)
    }

    /// A rule for both scopes: claims are namespaced and composites cluster-scoped.
    pub(super) fn of(
        group: &str,
        versions: &[&str],
        operations: &[&str],
        resources: &[impl AsRef<str>],
    ) -> Self {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Self {
            api_groups: owned(&[group]),
            api_versions: owned(versions),
            operations: owned(operations),
            resources: resources.iter().map(|name| name.as_ref().to_owned()).collect(),
            scope: any(),
        }
    }

    /// Whether it matches an operation on a resource such as `foos` or `foos/status`, apart from its scope.
    pub fn matches(&self, group: &str, version: &str, operation: &str, resource: &str) -> bool {
        // An entry without a slash matches no subresource.
        let (plural, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        has(&self.api_groups, group)
            && has(&self.api_versions, version)
            && has(&self.operations, operation)
            && self.resources.iter().any(|entry| {
                let (entry, of) = entry.split_once('/').unwrap_or((entry, ""));
                (entry == ANY || entry == plural) && (of == subresource || of == ANY)
            })
    }
}

/// The rules for the resources that policies select, the same for the same input in any order.
///
/// A version is named only if a policy selects it. With `matchPolicy: Equivalent`, the API server converts
/// requests in the other versions to one that is named; a request in a version that is named and that no
/// policy selects would pass unjudged.
pub fn rules(policies: &PolicySet, resources: &[CustomResource]) -> Vec<RuleWithOperations> {
    let mut merged: BTreeMap<(&str, bool, Vec<&str>), BTreeSet<&str>> = BTreeMap::new();
    for resource in judged(resources) {
        for status_subresource in [true, false] {
            let selected = resource.versions.iter().filter(|version| {
                version.status_subresource == status_subresource
                    && !resource.selected(policies, version).is_empty()
            });
            let versions: BTreeSet<&str> = selected.map(|version| version.name.as_str()).collect();
            if !versions.is_empty() {
                let versions = versions.into_iter().collect();
                let key = (resource.group.as_str(), status_subresource, versions);
                merged.entry(key).or_default().insert(&resource.plural);
            }
        }
    }
    let rules = merged.into_iter().map(|((group, status_subresource, versions), plurals)| {
        let entries = plurals.into_iter().map(|plural| entry(plural, status_subresource));
        let entries: Vec<String> = entries.collect();
        RuleWithOperations::of(group, &versions, operations(status_subresource), &entries)
    });
    rules.collect()
}

/// The resources that policies name without `*` and that have no rule.
pub fn gaps(policies: &PolicySet, resources: &[CustomResource]) -> Vec<RuleGap> {
    let mut gaps = Vec::new();
    for (index, policy) in (0..).zip(policies.policies()) {
        for (entry, rule) in policy.resources.iter().enumerate() {
            for (item, glob) in rule.resources.iter().enumerate() {
                let Some(plural) = glob.exact() else { continue };
                let matching = judged(resources).filter(|resource| {
                    resource.plural == plural
                        && rule.api_groups.iter().any(|glob| glob.matches(&resource.group))
                });
                let named: Vec<&CustomResource> = matching.collect();
                let is_selected = |resource: &CustomResource, as_served: bool| {
                    resource.versions.iter().any(|version| {
                        let status_subresource = version.status_subresource == as_served;
                        let version = ServedVersion { status_subresource, ..version.clone() };
                        resource.selected(policies, &version).contains(&index)
                    })
                };
                if named.iter().any(|resource| is_selected(resource, true)) {
                    continue;
                }
                let reason = if named.is_empty() {
                    Reason::NotDefined
                } else if named.iter().any(|resource| is_selected(resource, false)) {
                    Reason::WrongSubresource { served: !rule.status_subresource }
                } else {
                    Reason::OtherVersions
                };
                let group = rule.api_groups.iter().find_map(|glob| glob.exact());
                let resource = match (named.first(), group) {
                    (Some(resource), _) => resource.name(),
                    (None, None | Some("")) => plural.to_owned(),
                    (None, Some(group)) => format!("{plural}.{group}"),
                };
                let policy = policy.name.to_string();
                let place = (entry, "resources", item);
                // Two entries may name it.
                let mut known = gaps.iter().filter(|gap: &&RuleGap| gap.policy == policy);
                if !known.any(|gap| gap.resource == resource && gap.reason == reason) {
                    gaps.push(RuleGap { policy, resource, place, reason });
                }
            }
        }
    }
    gaps
}

/// Whether two lists of rules match the same requests. The API server stores rules as they are written,
/// but another program may write them in another order or divided otherwise.
pub fn are_equivalent(one: &[RuleWithOperations], other: &[RuleWithOperations]) -> bool {
    expanded(one) == expanded(other)
}

fn expanded(rules: &[RuleWithOperations]) -> BTreeSet<[&str; 5]> {
    let mut all = BTreeSet::new();
    for rule in rules {
        for group in &rule.api_groups {
            for version in &rule.api_versions {
                for operation in &rule.operations {
                    all.extend(rule.resources.iter().map(|resource| {
                        [group, version, operation, resource, &rule.scope].map(String::as_str)
                    }));
                }
            }
        }
    }
    all
}

/// Without the kinds of statusgate itself, which no policy judges: it could forbid its own repair.
pub(super) fn judged(resources: &[CustomResource]) -> impl Iterator<Item = &CustomResource> {
    resources.iter().filter(|resource| resource.group != GROUP)
}

/// Only a request through `/status` can change the status of a resource with the subresource, and a
/// patch arrives as UPDATE too. Without the subresource, the status is part of the main resource.
pub const fn operations(status_subresource: bool) -> &'static [&'static str] {
    if status_subresource { &["UPDATE"] } else { &["CREATE", "UPDATE"] }
}

/// The resource of a status write, in the syntax of rules.
pub fn entry(plural: &str, status_subresource: bool) -> String {
    if status_subresource { format!("{plural}/status") } else { plural.to_owned() }
}

/// Whether a list of a rule has a name, or all names.
pub fn has(list: &[String], name: &str) -> bool {
    list.iter().any(|word| word == ANY || word == name)
}

fn any() -> String {
    ANY.to_owned()
}

/// A scope of null is `*`, as a missing one.
fn scope<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_else(any))
}

pub(super) const ANY: &str = "*";

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use statusgate_core::policy::Source;

    /// Policies with these names, each for an entry of `resources`.
    pub(crate) fn policies(resources: &[(&str, &str)]) -> PolicySet {
        let documents = resources.iter().enumerate().map(|(number, (name, rule))| Source {
            name: format!("{number}.yaml"),
            text: format!(
                "{{apiVersion: statusgate.dev/v1alpha1, kind: StatusPolicy, metadata: {{name: {name}}}, \
                 spec: {{convention: metav1, resources: [{rule}]}}}}"
            ),
        });
        PolicySet::compile(&documents.collect::<Vec<_>>()).unwrap()
    }

    /// Versions with `!` have no status subresource.
    pub(crate) fn resource(name: &str, versions: &[&str]) -> CustomResource {
        let (plural, group) = name.split_once('.').unwrap();
        let version = |name: &&str| ServedVersion {
            name: name.trim_end_matches('!').to_owned(),
            status_subresource: !name.ends_with('!'),
        };
        let versions = versions.iter().map(version).collect();
        CustomResource { group: group.into(), plural: plural.into(), kind: String::new(), versions }
    }

    #[test]
    fn rules_name_the_judged_versions_and_the_request_that_changes_the_status() {
        let policies = policies(&[
            ("both", "{apiGroups: [a.io], apiVersions: [v1, v2], resources: [foos, bars]}"),
            (
                "main",
                "{apiGroups: [a.io], apiVersions: ['*'], resources: [bazs], statusSubresource: false}",
            ),
        ]);
        let mut resources = [
            resource("foos.a.io", &["v1beta1", "v1"]),
            resource("bars.a.io", &["v1"]),
            resource("bazs.a.io", &["v2!", "v1!"]),
            resource("bars.b.io", &["v1"]),
        ];
        let expected = [
            RuleWithOperations::of("a.io", &["v1", "v2"], &["CREATE", "UPDATE"], &["bazs"]),
            RuleWithOperations::of("a.io", &["v1"], &["UPDATE"], &["bars/status", "foos/status"]),
        ];
        assert_eq!(rules(&policies, &resources), expected);
        resources.reverse();
        resources[1].versions.reverse();
        assert_eq!(rules(&policies, &resources), expected);
        assert_eq!(gaps(&policies, &resources), []);
    }

    #[test]
    fn policies_for_everything_get_no_rule_for_their_own_kind_or_for_built_in_kinds() {
        let policies =
            policies(&[("all", "{apiGroups: ['*'], apiVersions: ['*'], resources: ['*']}")]);
        let resources = [
            resource("statuspolicies.statusgate.dev", &["v1alpha1"]),
            resource("foos.a.io", &["v1"]),
        ];
        let expected = [RuleWithOperations::of("a.io", &["v1"], &["UPDATE"], &["foos/status"])];
        assert_eq!(rules(&policies, &resources), expected);
    }

    #[test]
    fn a_named_resource_without_a_rule_is_a_gap_with_its_reason() {
        let policies = policies(&[(
            "p",
            "{apiGroups: [apps, a.io], apiVersions: [v1], resources: [deployments, foos, bars]}, \
             {apiGroups: [a.io], apiVersions: [v1], resources: [bazs], statusSubresource: false}",
        )]);
        let resources = [
            resource("foos.a.io", &["v1!"]),
            resource("bars.a.io", &["v2"]),
            resource("bazs.a.io", &["v1"]),
        ];
        let gaps = gaps(&policies, &resources);
        let found: Vec<_> = gaps.iter().map(|gap| (gap.resource.as_str(), gap.reason)).collect();
        let expected = [
            ("deployments.apps", Reason::NotDefined),
            ("foos.a.io", Reason::WrongSubresource { served: false }),
            ("bars.a.io", Reason::OtherVersions),
            ("bazs.a.io", Reason::WrongSubresource { served: true }),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn the_order_and_the_division_of_rules_do_not_matter() {
        let one = [RuleWithOperations::of("a", &["v1", "v2"], &["CREATE", "UPDATE"], &["x", "y"])];
        let divided: Vec<RuleWithOperations> = ["v2", "v1"]
            .iter()
            .map(|version| {
                RuleWithOperations::of("a", &[version], &["UPDATE", "CREATE"], &["y", "x"])
            })
            .collect();
        assert!(are_equivalent(&one, &divided));
        assert!(!are_equivalent(&one, &divided[..1]));
        let stored =
            r#"{"apiGroups":["a"],"apiVersions":["v1"],"operations":["UPDATE"],"resources":["x"]}"#;
        let stored: RuleWithOperations = serde_json::from_str(stored).unwrap();
        assert!(are_equivalent(
            &[stored],
            &[RuleWithOperations::of("a", &["v1"], &["UPDATE"], &["x"])]
        ));
    }
}
