//! The selectors of policies against the custom resources that exist.

use std::collections::BTreeSet;

use super::resource::{CustomResource, ServedVersion};
use super::rules::judged;
use statusgate_core::policy::{Glob, PolicySet, Resources};
use statusgate_core::source::tree::near;

/// A name in a selector that no custom resource has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unserved {
    /// The policy.
    pub policy: String,
    /// Where in its `resources`: the entry, the list, the item.
    pub place: (usize, &'static str, usize),
    /// `the group example.com`, `things.example.com`, `version v2 of things.example.com`.
    pub what: String,
    /// What was probably meant.
    pub help: Option<String>,
}

/// The groups, plurals and versions in the selectors of policies that no custom resource has.
///
/// Built-in resources and those of aggregated APIs have no definition, so nothing is known of groups that may
/// be theirs.
pub fn unserved(policies: &PolicySet, resources: &[CustomResource]) -> Vec<Unserved> {
    let resources: Vec<&CustomResource> = judged(resources).collect();
    let mut all = Vec::new();
    for policy in policies.policies() {
        for (entry, rule) in policy.resources.iter().enumerate() {
            for (list, item, what, help) in of_rule(rule, &resources) {
                let (policy, place) = (policy.name.to_string(), (entry, list, item));
                all.push(Unserved { policy, place, what, help });
            }
        }
    }
    all
}

/// A served version of a resource that a policy selects in other versions only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// The policy.
    pub policy: String,
    /// `widgets.example.org v1`.
    pub version: String,
    /// Whether the policy names the version, but with the wrong `statusSubresource`: it judges none of its
    /// writes. Otherwise, it judges them if no other policy names the version, because the API server
    /// converts them.
    pub named: bool,
}

/// The served versions that policies leave out.
pub fn left_out(policies: &PolicySet, resources: &[CustomResource]) -> Vec<LeftOut> {
    let mut all = Vec::new();
    for (index, policy) in (0..).zip(policies.policies()) {
        for resource in judged(resources) {
            let selects =
                |version: &ServedVersion| resource.selected(policies, version).contains(&index);
            if !resource.versions.iter().any(selects) {
                continue;
            }
            for version in resource.versions.iter().filter(|version| !selects(version)) {
                let status_subresource = !version.status_subresource;
                let otherwise = ServedVersion { status_subresource, ..version.clone() };
                all.push(LeftOut {
                    policy: policy.name.to_string(),
                    version: format!("{} {}", resource.name(), version.name),
                    named: selects(&otherwise),
                });
            }
        }
    }
    all
}

impl LeftOut {
    /// A sentence without its end.
    pub fn describe(&self) -> String {
        let Self { policy, version, named } = self;
        match named {
            true => format!("policy {policy} has the wrong statusSubresource for {version}"),
            false => format!("policy {policy} does not select {version}, which is served"),
        }
    }
}

/// The list, the item, what it is and what was meant.
type Found = (&'static str, usize, String, Option<String>);

fn of_rule(rule: &Resources, resources: &[&CustomResource]) -> Vec<Found> {
    let mut found = Vec::new();
    let has = |glob: &Glob| resources.iter().any(|resource| glob.matches(&resource.group));
    let mut is_known = true;
    for (item, glob) in rule.api_groups.iter().enumerate() {
        let name = glob.to_string();
        if may_be_built_in(&name) {
            is_known &= has(glob) && glob.exact().is_some();
        } else if !has(glob) {
            let groups = resources.iter().map(|resource| resource.group.as_str());
            found.push(("apiGroups", item, format!("the group {name}"), meant(&name, groups)));
        }
    }
    let mut of_groups = resources.to_vec();
    of_groups.retain(|resource| rule.api_groups.iter().any(|glob| glob.matches(&resource.group)));
    if of_groups.is_empty() || !is_known {
        return found;
    }
    let groups: BTreeSet<&str> = of_groups.iter().map(|resource| resource.group.as_str()).collect();
    let groups = groups.into_iter().collect::<Vec<_>>().join(" or ");
    for (item, glob) in rule.resources.iter().enumerate() {
        if !of_groups.iter().any(|resource| glob.matches(&resource.plural)) {
            let plurals = of_groups.iter().map(|resource| resource.plural.as_str());
            let name = glob.to_string();
            let help = meant(&name, plurals);
            found.push(("resources", item, format!("the resource {name} in {groups}"), help));
        }
    }
    let mut selected = of_groups;
    selected.retain(|resource| rule.resources.iter().any(|glob| glob.matches(&resource.plural)));
    let served: BTreeSet<&str> = selected
        .iter()
        .flat_map(|resource| resource.versions.iter().map(|version| version.name.as_str()))
        .collect();
    let names: Vec<String> = selected.iter().map(|resource| resource.name()).collect();
    for (item, glob) in rule.api_versions.iter().enumerate() {
        if !names.is_empty() && !served.iter().any(|version| glob.matches(version)) {
            let help = format!("served: {}", served.iter().copied().collect::<Vec<_>>().join(", "));
            let what = format!("version {glob} of {}", names.join(" or "));
            found.push(("apiVersions", item, what, Some(help)));
        }
    }
    found
}

/// Whether resources of this group may exist without a definition. Groups of Kubernetes have no dot, or end
/// in k8s.io, as some custom resources do.
fn may_be_built_in(group: &str) -> bool {
    !group.contains('.') || group.ends_with(".k8s.io")
}

fn meant<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Option<String> {
    near(name, known).map(|near| format!("did you mean \"{near}\"?"))
}

#[cfg(test)]
mod tests {
    use super::super::resource::ServedVersion;
    use super::super::rules::tests::policies;
    use super::*;

    fn found(resources: &str) -> Vec<String> {
        let policies = policies(&[("p", resources)]);
        let resource = |group: &str, plural: &str, versions: &[&str]| CustomResource {
            group: group.into(),
            plural: plural.into(),
            kind: "Any".into(),
            versions: versions
                .iter()
                .map(|name| ServedVersion { name: (*name).into(), status_subresource: true })
                .collect(),
        };
        let resources = [
            resource("kafka.strimzi.io", "kafkas", &["v1", "v1beta2"]),
            resource("kafka.strimzi.io", "kafkatopics", &["v1"]),
            resource("gateway.networking.k8s.io", "gateways", &["v1"]),
        ];
        let found = unserved(&policies, &resources).into_iter();
        let said = |Unserved { place: (entry, list, item), what, help, .. }: Unserved| {
            format!("{entry} {list} {item}: {what}; {}", help.unwrap_or_default())
        };
        found.map(said).collect()
    }

    #[test]
    fn names_that_exist_and_groups_that_may_be_built_in_are_right() {
        for right in [
            "{apiGroups: [kafka.strimzi.io], apiVersions: [v1, v1beta2], resources: [kafkas, kafkatopics]}",
            "{apiGroups: ['*'], apiVersions: ['*'], resources: ['*', things]}",
            "{apiGroups: ['*.strimzi.io'], apiVersions: ['v1*'], resources: ['kafka*']}",
            "{apiGroups: [apps, kafka.strimzi.io], apiVersions: [v1], resources: [deployments, kafkas]}",
            "{apiGroups: [networking.k8s.io], apiVersions: [v1], resources: [ingresses]}",
            "{apiGroups: [gateway.networking.k8s.io], apiVersions: [v1], resources: [gateways]}",
        ] {
            assert_eq!(found(right), [""; 0], "{right}");
        }
    }

    #[test]
    fn each_name_that_does_not_exist_is_found_with_the_one_that_was_meant() {
        assert_eq!(
            found(
                "{apiGroups: [kafka.strimzi.oi], apiVersions: [v1], resources: [kafkas]}, \
                 {apiGroups: [kafka.strimzi.io], apiVersions: [v1], resources: [kafka, users]}, \
                 {apiGroups: [kafka.strimzi.io], apiVersions: [v1, v2], resources: [kafkatopics]}, \
                 {apiGroups: [gateway.networking.k8s.io], apiVersions: [v1], resources: [gatways]}"
            ),
            [
                "0 apiGroups 0: the group kafka.strimzi.oi; did you mean \"kafka.strimzi.io\"?",
                "1 resources 0: the resource kafka in kafka.strimzi.io; did you mean \"kafkas\"?",
                "1 resources 1: the resource users in kafka.strimzi.io; ",
                "2 apiVersions 1: version v2 of kafkatopics.kafka.strimzi.io; served: v1",
                "3 resources 0: the resource gatways in gateway.networking.k8s.io; did you mean \"gateways\"?",
            ]
        );
    }
}
