//! The policy that nearly selects an object. An object that no policy selects often has another version
//! than the policy names.

use super::{Policy, PolicySet, Resources};
use crate::language::{Glob, any_of};
use crate::model::Subject;
use crate::source::tree::near;

impl PolicySet {
    /// Why no policy selects a subject, with the policy that nearly selects it: it names another version, a
    /// similar group, a similar plural, or the other kind of status subresource. Of several, the one with
    /// the fewest differences.
    pub fn why_unselected(&self, subject: &Subject<'_>) -> String {
        let rules = self.policies().iter().flat_map(|policy| {
            policy.resources.iter().filter_map(|rule| difference(policy, rule, subject))
        });
        // The first of those with the fewest.
        match rules.min_by_key(|(count, _)| *count) {
            Some((_, near)) => format!("no policy selects it; {near}"),
            None => "no policy selects it".to_owned(),
        }
    }
}

/// The number of differences, and the first of them: `kstatus-flux names v1, this is v1beta2`. A plural is
/// a guess if there is no CRD, and the guess depends on the version, so the plural is reported last.
fn difference(policy: &Policy, rule: &Resources, subject: &Subject<'_>) -> Option<(usize, String)> {
    let resource = &subject.resource;
    let group = similar(&rule.api_groups, &resource.group)?;
    let plural = similar(&rule.resources, &resource.resource)?;
    // Two similar names are no evidence.
    if group.is_some() && plural.is_some() {
        return None;
    }
    let same_version = rule.api_versions.iter().any(|glob| glob.matches(&resource.version));
    let version =
        (!same_version).then(|| any_of(rule.api_versions.iter().map(ToString::to_string)));
    let differences = [
        (group.map(str::to_owned), resource.group.to_string()),
        (version, resource.version.to_string()),
        (plural.map(str::to_owned), resource.resource.to_string()),
    ];
    let count = differences.iter().filter(|(names, _)| names.is_some()).count();
    let first = differences.into_iter().find_map(|(names, found)| Some((names?, found)));
    // With the same names, only the subresource is left.
    let (names, found) = first.unwrap_or_else(|| {
        let text = |with: bool| {
            let word = if with { "with" } else { "without" };
            format!("a resource {word} a status subresource")
        };
        (text(rule.status_subresource), text(!rule.status_subresource))
    });
    Some((count, format!("{} names {names}, this is {found}", policy.name)))
}

/// `None` if no name is similar. Otherwise the similar name, or nothing if one matches.
fn similar<'g>(globs: &'g [Glob], found: &str) -> Option<Option<&'g str>> {
    if globs.iter().any(|glob| glob.matches(found)) {
        return Some(None);
    }
    near(found, globs.iter().filter_map(Glob::exact)).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Resource;
    use crate::policy::Source;

    fn miss(group: &str, version: &str, plural: &str, subresource: &str) -> String {
        let policy = |name: &str, resources: &str| {
            format!(
                "apiVersion: statusgate.dev/v1alpha1\nkind: StatusPolicy\nmetadata: {{name: {name}}}\n\
                 spec: {{convention: metav1, resources: [{resources}]}}\n"
            )
        };
        let text = [
            policy(
                "flux",
                "{apiGroups: [toolkit.io], apiVersions: [v1, v2], resources: [helmrepositories]}",
            ),
            policy("globs", "{apiGroups: ['*.azure.com'], apiVersions: [v1], resources: ['*']}"),
            policy(
                "main",
                "{apiGroups: [own.io], apiVersions: [v1], resources: [mice], statusSubresource: false}",
            ),
        ];
        let policies = PolicySet::compile(&[Source::new("p.yaml", text.join("---\n"))]).unwrap();
        let (group, version, resource) = (group.into(), version.into(), plural.into());
        let subject = Subject {
            resource: Resource { group, version, resource },
            subresource: subresource.into(),
            ..Subject::default()
        };
        assert_eq!(policies.select(&subject).count(), 0);
        policies.why_unselected(&subject)
    }

    #[test]
    fn another_version_a_similar_group_and_a_similar_plural_are_near_misses() {
        for (group, version, plural, expected) in [
            ("toolkit.io", "v1beta2", "helmrepositories", "flux names v1 or v2, this is v1beta2"),
            ("tolkit.io", "v1", "helmrepositories", "flux names toolkit.io, this is tolkit.io"),
            (
                "toolkit.io",
                "v1",
                "helmrepositorys",
                "flux names helmrepositories, this is helmrepositorys",
            ),
            // The guess of the plural may be wrong, too.
            ("toolkit.io", "v3", "helmrepositorys", "flux names v1 or v2, this is v3"),
            ("sql.azure.com", "v1beta1", "servers", "globs names v1, this is v1beta1"),
            (
                "own.io",
                "v1",
                "mice",
                "main names a resource without a status subresource, \
                 this is a resource with a status subresource",
            ),
        ] {
            let expected = format!("no policy selects it; {expected}");
            assert_eq!(miss(group, version, plural, "status"), expected);
        }
    }

    #[test]
    fn an_unrelated_resource_has_no_near_miss() {
        for (group, plural) in [
            ("toolkit.io", "buckets"),
            ("apps", "deployments"),
            ("tolkit.io", "helmrepositorys"),
            ("azure.com", "servers"),
        ] {
            let found = miss(group, "v1", plural, "status");
            assert_eq!(found, "no policy selects it", "{group} {plural}");
        }
    }
}
