//! The resources that policies select in this cluster: globs expanded by the served resources.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{
    APIGroup, APIGroupList, APIResource, APIResourceList,
};

use super::{Cluster, ClusterError, Patience, Target};
use statusgate_core::policy::{PolicySet, Resources};

/// The resources that policies select in this cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Targets {
    /// The selected resources, by group and plural.
    pub list: Vec<Target>,
    /// Resources that policies name but that cannot be judged.
    pub gaps: Vec<Gap>,
    /// The served versions of each resource, by its name.
    pub versions: BTreeMap<String, Vec<String>>,
}

/// A resource that a policy names but that cannot be judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gap {
    /// The cluster does not serve this resource in the groups and versions of the policy.
    NotServed {
        /// The policy.
        policy: String,
        /// `xvshnredis.vshn.appcat.vshn.io`.
        resource: String,
    },
    /// The policy has the wrong `statusSubresource`: no request matches it.
    WrongSubresource {
        /// The policy.
        policy: String,
        /// `widgets.example.org`.
        resource: String,
        /// `Widget`.
        kind: String,
        /// Whether the resource has the subresource.
        served: bool,
    },
    /// An API group without a responding server.
    Unavailable {
        /// `metrics.k8s.io/v1beta1`.
        api_version: String,
        /// The error.
        reason: String,
    },
}

impl Targets {
    /// The groups without a responding server: their resources are unknown.
    pub fn unavailable(&self) -> impl Iterator<Item = &str> {
        self.gaps.iter().filter_map(|gap| match gap {
            Gap::Unavailable { api_version, .. } => Some(api_version.as_str()),
            _ => None,
        })
    }
}

impl Cluster {
    /// The resources that policies select.
    ///
    /// They come from discovery rather than from CRDs: every account may read it, it is small, and it
    /// includes built-in kinds. Only groups that a policy may select are requested.
    ///
    /// Of several served versions of a resource, the result contains as few as its policies need.
    ///
    /// # Errors
    /// When discovery fails. The failure of one group is a [`Gap::Unavailable`].
    pub async fn targets(&self, policies: &PolicySet) -> Result<Targets, ClusterError> {
        let mut served = Vec::new();
        let mut targets = Targets::default();
        if group_matters(policies, "") {
            served.extend(self.resources("", "v1", "/api/v1").await?);
        }
        let what = "discover the API groups";
        let groups: APIGroupList = self.read_as(what, "/apis", Patience::SHORT).await?;
        for group in groups.groups.iter().filter(|group| group_matters(policies, &group.name)) {
            for version in versions(group) {
                let path = format!("/apis/{}/{version}", group.name);
                match self.resources(&group.name, version, &path).await {
                    Ok(resources) => served.extend(resources),
                    Err(error @ ClusterError::Rejected { .. }) => {
                        let api_version = format!("{}/{version}", group.name);
                        let reason = error.to_string();
                        targets.gaps.push(Gap::Unavailable { api_version, reason });
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        for target in &served {
            targets.versions.entry(target.name()).or_default().push(target.version.clone());
        }
        targets.gaps.extend(wrong_subresources(&served, policies));
        targets.list = choose(served, policies);
        targets.gaps.extend(not_served(policies, &targets));
        Ok(targets)
    }

    /// The resources of one version of a group, without policies.
    async fn resources(
        &self,
        group: &str,
        version: &str,
        path: &str,
    ) -> Result<Vec<Target>, ClusterError> {
        let list = self.resource_list(path, Patience::SHORT).await?;
        Ok(targets_of(group, version, &list).map(|(target, _)| target).collect())
    }

    /// The resources at a path of discovery, as served.
    pub(super) async fn resource_list(
        &self,
        path: &str,
        patience: Patience,
    ) -> Result<APIResourceList, ClusterError> {
        let what = format!("discover the resources of {}", path.trim_start_matches("/apis/"));
        self.read_as(&what, path, patience).await
    }
}

/// The resources of one version of a group, without policies.
pub(super) fn targets_of<'l>(
    group: &'l str,
    version: &'l str,
    list: &'l APIResourceList,
) -> impl Iterator<Item = (Target, &'l APIResource)> {
    let names: Vec<&str> = list.resources.iter().map(|resource| resource.name.as_str()).collect();
    let main = list.resources.iter().filter(|resource| !resource.name.contains('/'));
    main.map(move |resource| {
        let target = Target {
            group: group.to_owned(),
            version: version.to_owned(),
            plural: resource.name.clone(),
            kind: resource.kind.clone(),
            namespaced: resource.namespaced,
            status_subresource: names.contains(&format!("{}/status", resource.name).as_str()),
            policies: Vec::new(),
        };
        (target, resource)
    })
}

/// The versions of a group, the preferred one first.
pub(super) fn versions(group: &APIGroup) -> impl Iterator<Item = &str> {
    let preferred = group.preferred_version.as_ref().map(|version| version.version.as_str());
    let others = group.versions.iter().map(|version| version.version.as_str());
    preferred.into_iter().chain(others.filter(move |version| Some(*version) != preferred))
}

fn group_matters(policies: &PolicySet, group: &str) -> bool {
    let rules = policies.policies().iter().flat_map(|policy| &policy.resources);
    rules.flat_map(|rule| &rule.api_groups).any(|glob| glob.matches(group))
}

/// Of all versions of a resource, the fewest that its policies need.
pub(super) fn choose(served: Vec<Target>, policies: &PolicySet) -> Vec<Target> {
    let mut candidates: Vec<Target> = served
        .into_iter()
        .map(|target| Target {
            policies: target.selected(policies, target.subresource()),
            ..target
        })
        .filter(|target| !target.policies.is_empty())
        .collect();
    // Stable: among equals, the preferred version stays first.
    candidates.sort_by(|one, other| {
        let key = |target: &Target| (target.group.clone(), target.plural.clone());
        key(one).cmp(&key(other)).then(other.policies.len().cmp(&one.policies.len()))
    });
    let mut chosen: Vec<Target> = Vec::new();
    for mut candidate in candidates {
        let same = chosen.iter().filter(|target| target.name() == candidate.name());
        let covered: Vec<u16> = same.flat_map(|target| target.policies.clone()).collect();
        // A policy judges each object once.
        candidate.policies.retain(|policy| !covered.contains(policy));
        if !candidate.policies.is_empty() {
            chosen.push(candidate);
        }
    }
    chosen
}

fn wrong_subresources(served: &[Target], policies: &PolicySet) -> Vec<Gap> {
    let mut gaps = Vec::new();
    for target in served {
        let elsewhere = if target.status_subresource { "" } else { "status" };
        let seen = target.selected(policies, target.subresource());
        for index in target.selected(policies, elsewhere) {
            let Some(policy) = policies.policies().get(usize::from(index)) else { continue };
            // A policy with `*` as plural accepts each resource as it is.
            let named = policy.resources.iter().flat_map(|rule| &rule.resources);
            let named = named.filter_map(|glob| glob.exact()).any(|name| name == target.plural);
            let gap = Gap::WrongSubresource {
                policy: policy.name.to_string(),
                resource: target.name(),
                kind: target.kind.clone(),
                served: target.status_subresource,
            };
            if named && !seen.contains(&index) && !gaps.contains(&gap) {
                gaps.push(gap);
            }
        }
    }
    gaps
}

/// The plurals without `*` that match no target, except in groups without a responding server.
fn not_served(policies: &PolicySet, targets: &Targets) -> Vec<Gap> {
    let mut gaps = Vec::new();
    for policy in policies.policies() {
        for rule in &policy.resources {
            for plural in rule.resources.iter().filter_map(|glob| glob.exact()) {
                let served = |target: &Target| {
                    target.plural == plural
                        && rule.api_groups.iter().any(|glob| glob.matches(&target.group))
                };
                let reported = targets.gaps.iter().any(|gap| {
                    matches!(gap, Gap::WrongSubresource { resource, .. }
                        if resource.split('.').next() == Some(plural))
                });
                let unknown = targets.unavailable().any(|api_version| {
                    let group = api_version.split_once('/').map_or("", |(group, _)| group);
                    rule.api_groups.iter().any(|glob| glob.matches(group))
                });
                if !targets.list.iter().any(served) && !reported && !unknown {
                    let policy = policy.name.to_string();
                    gaps.push(Gap::NotServed { policy, resource: written(plural, rule) });
                }
            }
        }
    }
    gaps
}

fn written(plural: &str, rule: &Resources) -> String {
    match rule.api_groups.iter().find_map(|glob| glob.exact()) {
        Some("") => plural.to_owned(),
        Some(group) => format!("{plural}.{group}"),
        None => format!("{plural} (in any group that matches)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifests::rules::tests::policies;

    fn served(group: &str, version: &str, plural: &str, status_subresource: bool) -> Target {
        let (group, version) = (group.to_owned(), version.to_owned());
        let policies = Vec::new();
        Target { group, version, status_subresource, policies, ..Target::example(plural) }
    }

    #[test]
    fn one_version_is_chosen_if_all_policies_judge_it() {
        let policies = policies(&[
            ("both", "{apiGroups: [a.io], apiVersions: [v1, v2], resources: [foos]}"),
            ("new", "{apiGroups: [a.io], apiVersions: [v2], resources: [\"*\"]}"),
        ]);
        let list = vec![served("a.io", "v1", "foos", true), served("a.io", "v2", "foos", true)];
        let chosen = choose(list, &policies);
        assert_eq!(chosen.len(), 1);
        assert_eq!(
            (chosen[0].version.as_str(), chosen[0].policies.as_slice()),
            ("v2", [0, 1].as_slice())
        );
    }

    #[test]
    fn several_versions_are_chosen_if_policies_need_them() {
        let policies = policies(&[
            ("old", "{apiGroups: [a.io], apiVersions: [v1], resources: [foos]}"),
            ("new", "{apiGroups: [a.io], apiVersions: [v2], resources: [foos]}"),
        ]);
        let list = vec![served("a.io", "v2", "foos", true), served("a.io", "v1", "foos", true)];
        let chosen = choose(list, &policies);
        assert_eq!(chosen.iter().map(|target| &*target.version).collect::<Vec<_>>(), ["v2", "v1"]);
    }

    #[test]
    fn a_policy_judges_an_object_in_one_version_only() {
        let policies = policies(&[
            ("both", "{apiGroups: [a.io], apiVersions: [v1, v2], resources: [foos]}"),
            ("old", "{apiGroups: [a.io], apiVersions: [v1], resources: [foos]}"),
            ("new", "{apiGroups: [a.io], apiVersions: [v2], resources: [foos]}"),
        ]);
        let list = vec![served("a.io", "v2", "foos", true), served("a.io", "v1", "foos", true)];
        let chosen = choose(list, &policies);
        let chosen: Vec<_> =
            chosen.iter().map(|target| (&*target.version, &*target.policies)).collect();
        assert_eq!(chosen, [("v2", [0, 2].as_slice()), ("v1", [1].as_slice())]);
    }

    #[test]
    fn resources_of_an_unavailable_group_are_not_reported_as_missing() {
        let policies = policies(&[
            ("here", "{apiGroups: [a.io], apiVersions: [v1], resources: [foos]}"),
            ("there", "{apiGroups: [b.io], apiVersions: [v1], resources: [foos]}"),
        ]);
        let (api_version, reason) = ("b.io/v1".to_owned(), "503".to_owned());
        let gaps = vec![Gap::Unavailable { api_version, reason }];
        let targets = Targets { gaps, ..Targets::default() };
        let resource = "foos.a.io".to_owned();
        assert_eq!(
            not_served(&policies, &targets),
            [Gap::NotServed { policy: "here".into(), resource }]
        );
        assert_eq!(targets.unavailable().collect::<Vec<_>>(), ["b.io/v1"]);
    }

    #[test]
    fn a_wrong_status_subresource_is_reported() {
        let policies =
            policies(&[("p", "{apiGroups: [a.io], apiVersions: [v1], resources: [foos, bars]}")]);
        let list = vec![served("a.io", "v1", "foos", false)];
        let gap = |gap: &Gap| match gap {
            Gap::WrongSubresource { resource, served, .. } => format!("{resource} {served}"),
            gap => format!("{gap:?}"),
        };
        let gaps = wrong_subresources(&list, &policies);
        assert_eq!(gaps.iter().map(gap).collect::<Vec<_>>(), ["foos.a.io false"]);
        let targets = Targets { list: choose(list, &policies), gaps, ..Targets::default() };
        assert_eq!(targets.list, []);
        let resource = "bars.a.io".to_owned();
        assert_eq!(
            not_served(&policies, &targets),
            [Gap::NotServed { policy: "p".into(), resource }]
        );
    }
}
