//! The resources that policies select in this cluster: globs expanded by the served resources.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use futures_util::stream::{self, StreamExt};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{
    APIGroup, APIGroupList, APIResource, APIResourceList,
};

use super::{Cluster, ClusterError, Kinds, Patience, Target};
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
        let rules = policies.policies().iter().flat_map(|policy| &policy.resources);
        let Kinds { list, unavailable } = self
            .served(|group| rules.clone().any(|rule| is_in(rule, group)), Patience::SHORT)
            .await?;
        let mut targets = Targets::default();
        for (api_version, error) in unavailable {
            // Without the core group, the API server does not work.
            if api_version == "/api/v1" {
                return Err(error);
            }
            targets.gaps.push(Gap::Unavailable { api_version, reason: error.to_string() });
        }
        let served: Vec<Target> = list.into_iter().map(|(target, _)| target).collect();
        for target in &served {
            targets.versions.entry(target.name()).or_default().push(target.version.clone());
        }
        targets.gaps.extend(wrong_subresources(&served, policies));
        targets.list = choose(served, policies);
        targets.gaps.extend(not_served(policies, &targets));
        Ok(targets)
    }

    /// The resources of the groups that matter, in the order of discovery.
    ///
    /// # Errors
    /// When discovery fails. The failure of one group is a part of the result.
    pub(super) async fn served(
        &self,
        matters: impl Fn(&str) -> bool,
        patience: Patience,
    ) -> Result<Kinds, ClusterError> {
        let what = "discover the API groups";
        let groups: APIGroupList = self.read_as(what, "/apis", Patience::SHORT).await?;
        // Owned: a stream that borrows is not `Send`.
        let mut wanted = Vec::new();
        if matters("") {
            wanted.push((String::new(), "v1".to_owned(), "/api/v1".to_owned()));
        }
        for group in groups.groups.iter().filter(|group| matters(&group.name)) {
            let of_group = versions(group).map(|version| {
                (group.name.clone(), version.to_owned(), format!("/apis/{}/{version}", group.name))
            });
            wanted.extend(of_group);
        }
        let lists = wanted.into_iter().map(|(group, version, path)| async move {
            let api_version = path.trim_start_matches("/apis/");
            let what = format!("discover the resources of {api_version}");
            let list: Result<APIResourceList, _> = self.read_as(&what, &path, patience).await;
            (group, version, list.map_err(|error| (api_version.to_owned(), error)))
        });
        let mut lists = stream::iter(lists).buffered(AT_ONCE);
        let mut served = Kinds::default();
        while let Some((group, version, list)) = lists.next().await {
            match list {
                Ok(list) => served.list.extend(resources(&group, &version, list)),
                Err(of @ (_, ClusterError::Rejected { .. })) => served.unavailable.push(of),
                Err((_, error)) => return Err(error),
            }
        }
        Ok(served)
    }
}

/// Enough for a remote server with a hundred groups to respond within a second.
const AT_ONCE: usize = 10;

/// The resources of one version of a group.
fn resources(
    group: &str,
    version: &str,
    list: APIResourceList,
) -> impl Iterator<Item = (Target, APIResource)> {
    let names: Vec<String> = list.resources.iter().map(|resource| resource.name.clone()).collect();
    let main = list.resources.into_iter().filter(|resource| !resource.name.contains('/'));
    main.map(move |resource| {
        let target = Target {
            group: group.to_owned(),
            version: version.to_owned(),
            plural: resource.name.clone(),
            kind: resource.kind.clone(),
            namespaced: resource.namespaced,
            status_subresource: names.contains(&format!("{}/status", resource.name)),
            policies: Vec::new(),
        };
        (target, resource)
    })
}

/// The versions of a group, the preferred one first.
fn versions(group: &APIGroup) -> impl Iterator<Item = &str> {
    let preferred = group.preferred_version.as_ref().map(|version| version.version.as_str());
    let others = group.versions.iter().map(|version| version.version.as_str());
    preferred.into_iter().chain(others.filter(move |version| Some(*version) != preferred))
}

fn is_in(rule: &Resources, group: &str) -> bool {
    rule.api_groups.iter().any(|glob| glob.matches(group))
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
    candidates.sort_by_cached_key(|target| {
        (target.group.clone(), target.plural.clone(), Reverse(target.policies.len()))
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
            let Some(policy) = policies.get(index) else { continue };
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
                let mut served = targets.list.iter().filter(|target| target.plural == plural);
                let reported = targets.gaps.iter().any(|gap| {
                    let Gap::WrongSubresource { resource, .. } = gap else { return false };
                    let (name, group) = resource.split_once('.').unwrap_or((resource, ""));
                    name == plural && is_in(rule, group)
                });
                let unknown = targets.unavailable().any(|api_version| {
                    is_in(rule, api_version.split_once('/').map_or("", |(group, _)| group))
                });
                if !reported && !unknown && !served.any(|target| is_in(rule, &target.group)) {
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
        let policies = policies(&[
            ("p", "{apiGroups: [a.io], apiVersions: [v1], resources: [foos, bars]}"),
            ("q", "{apiGroups: [b.io], apiVersions: [v1], resources: [foos]}"),
        ]);
        let list = vec![served("a.io", "v1", "foos", false)];
        let gap = |gap: &Gap| match gap {
            Gap::WrongSubresource { resource, served, .. } => format!("{resource} {served}"),
            gap => format!("{gap:?}"),
        };
        let gaps = wrong_subresources(&list, &policies);
        assert_eq!(gaps.iter().map(gap).collect::<Vec<_>>(), ["foos.a.io false"]);
        let targets = Targets { list: choose(list, &policies), gaps, ..Targets::default() };
        assert_eq!(targets.list, []);
        let missing = [("p", "bars.a.io"), ("q", "foos.b.io")].map(|(policy, resource)| {
            Gap::NotServed { policy: policy.into(), resource: resource.into() }
        });
        assert_eq!(not_served(&policies, &targets), missing);
    }
}
