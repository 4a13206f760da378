//! The kinds that a cluster serves, by the names that kubectl accepts.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResource;

use super::discovery::choose;
use super::{Cluster, ClusterError, Patience, Target};
use statusgate_core::policy::PolicySet;

/// Served kinds, in the order of discovery: kubectl prefers the first.
#[derive(Debug, Default)]
pub struct Kinds {
    pub(super) list: Vec<(Target, APIResource)>,
    /// The API versions without a responding server, with the errors: their kinds are unknown.
    pub unavailable: Vec<(String, ClusterError)>,
}

impl Cluster {
    /// The kinds of all groups. If each of these names has a group, only those of their groups.
    ///
    /// # Errors
    /// When discovery fails. The failure of one group is a part of the result.
    pub async fn kinds(&self, names: &[&str]) -> Result<Kinds, ClusterError> {
        let groups: Vec<Option<&str>> = names.iter().map(|name| split(name).1).collect();
        self.served(|of| groups.contains(&None) || groups.contains(&Some(of)), Patience::NONE).await
    }
}

impl Kinds {
    /// The kind with a plural, singular, kind or short name, each with or without its group, in the version
    /// that the most policies judge. Case does not matter.
    pub fn find(&self, name: &str, policies: &PolicySet) -> Option<Target> {
        let (name, group) = split(name);
        let is = |other: &String| other.eq_ignore_ascii_case(name);
        let mut all = self.list.iter().filter(|(kind, _)| group.is_none_or(|of| of == kind.group));
        let (found, _) = all
            .clone()
            .find(|(target, of)| is(&target.plural) || is(&of.singular_name) || is(&target.kind))
            .or_else(|| all.find(|(_, of)| of.short_names.iter().flatten().any(is)))?;
        let all = self.list.iter().map(|(target, _)| target);
        let versions = all.filter(|target| target.name() == found.name()).cloned().collect();
        choose(versions, policies).into_iter().next().or_else(|| Some(found.clone()))
    }
}

/// The name and its group.
fn split(name: &str) -> (&str, Option<&str>) {
    name.split_once('.').map_or((name, None), |(name, group)| (name, Some(group)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifests::rules::tests::policies;

    fn kinds(list: &[(&str, &str, &str, &str)]) -> Kinds {
        let kind = |(group, version, plural, kind): &(&str, &str, &str, &str)| {
            let target = Target {
                group: (*group).to_owned(),
                version: (*version).to_owned(),
                kind: (*kind).to_owned(),
                policies: Vec::new(),
                ..Target::example(plural)
            };
            let of = APIResource {
                singular_name: kind.to_lowercase(),
                short_names: Some(vec![plural.chars().take(2).collect()]),
                ..APIResource::default()
            };
            (target, of)
        };
        Kinds { list: list.iter().map(kind).collect(), unavailable: Vec::new() }
    }

    #[test]
    fn a_kind_has_the_names_that_kubectl_accepts() {
        let kinds = kinds(&[
            ("", "v1", "pods", "Pod"),
            ("a.io", "v1", "widgets", "Widget"),
            ("b.io", "v1", "widgets", "Widget"),
            ("b.io", "v1", "wi", "Wi"),
        ]);
        let policies = PolicySet::compile(&[]).unwrap();
        let found = |name: &str| Some(kinds.find(name, &policies)?.name());
        for name in ["widgets", "widget", "Widget", "widgets.a.io", "wi.a.io"] {
            assert_eq!(found(name).as_deref(), Some("widgets.a.io"), "{name}");
        }
        assert_eq!(found("Widget.b.io").as_deref(), Some("widgets.b.io"));
        // A name comes before a short name.
        assert_eq!(found("wi").as_deref(), Some("wi.b.io"));
        assert_eq!(found("po").as_deref(), Some("pods"));
        for name in ["", "gadget", "widget.c.io", "pods.a.io"] {
            assert_eq!(found(name), None, "{name}");
        }
    }

    #[test]
    fn the_version_is_one_that_a_policy_judges_otherwise_the_preferred_one() {
        let selector = "{apiGroups: [a.io], apiVersions: [v1], resources: [widgets]}";
        let policies = policies(&[("p", selector)]);
        let kinds = kinds(&[
            ("a.io", "v2", "widgets", "Widget"),
            ("a.io", "v1", "widgets", "Widget"),
            ("a.io", "v2", "gadgets", "Gadget"),
        ]);
        let found = |name: &str| {
            let found = kinds.find(name, &policies).unwrap();
            (found.version, found.policies)
        };
        assert_eq!(found("widgets"), ("v1".to_owned(), vec![0]));
        assert_eq!(found("gadgets"), ("v2".to_owned(), vec![]));
    }
}
