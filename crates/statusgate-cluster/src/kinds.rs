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
        let groups = names.iter().flat_map(|name| readings(name).map(|(_, _, group)| group));
        let groups: Vec<Option<&str>> = groups.collect();
        self.served(|of| groups.contains(&None) || groups.contains(&Some(of)), Patience::NONE).await
    }
}

impl Kinds {
    /// The kind with a plural, singular, kind or short name. With `.VERSION.GROUP`, in this version, otherwise in
    /// the one that the most policies judge. Case does not matter.
    pub fn find(&self, name: &str, policies: &PolicySet) -> Option<Target> {
        readings(name).find_map(|(name, version, group)| {
            let is = |other: &String| other.eq_ignore_ascii_case(name);
            let all = self.list.iter().filter(|(kind, _)| {
                group.is_none_or(|of| of == kind.group)
                    && version.is_none_or(|of| of == kind.version)
            });
            let (found, _) = all
                .clone()
                .find(|(kind, of)| is(&kind.plural) || is(&of.singular_name) || is(&kind.kind))
                .or_else(|| all.clone().find(|(_, of)| of.short_names.iter().flatten().any(is)))?;
            let versions = all.map(|(kind, _)| kind).filter(|kind| kind.name() == found.name());
            let chosen = choose(versions.cloned().collect(), policies).into_iter().next();
            chosen.or_else(|| Some(found.clone()))
        })
    }
}

/// The readings of a name: with a version and a group, as kubectl tries it first; with a group; or alone.
fn readings(name: &str) -> impl Iterator<Item = (&str, Option<&str>, Option<&str>)> {
    let (kind, group) = name.split_once('.').map_or((name, None), |(kind, of)| (kind, Some(of)));
    let versioned = group.and_then(|group| group.split_once('.'));
    let versioned = versioned.map(|(version, group)| (kind, Some(version), Some(group)));
    versioned.into_iter().chain([(kind, None, group)])
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
        assert_eq!(found("widgets.v1.b.io").as_deref(), Some("widgets.b.io"));
        // The core group has no name.
        assert_eq!(found("Pod.v1.").as_deref(), Some("pods"));
        for name in ["", "gadget", "widget.c.io", "pods.a.io", "widgets.v2.b.io", "widgets.v1."] {
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
        assert_eq!(found("widgets.v2.a.io"), ("v2".to_owned(), vec![]));
        assert_eq!(found("widgets.v1.a.io"), ("v1".to_owned(), vec![0]));
    }
}
