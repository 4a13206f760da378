//! Objects of a cluster, as kubectl names them.

use anyhow::bail;

use super::say;
use statusgate_cluster::{Cluster, Query, Target};
use statusgate_core::causes::with_causes;
use statusgate_core::policy::PolicySet;
use statusgate_core::source::Identity;
use statusgate_core::values;

/// Which objects of a TYPE, and where.
#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct Scope {
    /// All objects of the TYPE that match this label selector.
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    selector: Option<String>,

    /// The namespace. Default: that of the context.
    #[arg(short, long, value_name = "NAME", value_parser = values::namespace)]
    namespace: Option<String>,

    /// All objects of the TYPE in all namespaces.
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    all_namespaces: bool,
}

/// One object of the command line, or all objects of a TYPE.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Named {
    kind: String,
    /// Empty for that of the command line.
    namespace: String,
    /// `None` for all objects.
    name: Option<String>,
}

/// One object of a cluster, or all objects of a kind.
pub(super) struct Place {
    pub(super) target: Target,
    /// Empty for all namespaces, and for a kind without.
    pub(super) namespace: String,
    /// `None` for all objects.
    pub(super) name: Option<String>,
}

impl Scope {
    /// Whether the objects are selected, not named.
    pub(super) const fn selects(&self) -> bool {
        self.all_namespaces || self.selector.is_some()
    }

    /// Whether a flag names a part of a cluster.
    pub(super) const fn is_given(&self) -> bool {
        self.selects() || self.namespace.is_some()
    }

    /// The query for all objects of a place.
    pub(super) fn query(&self, place: &Place) -> Query {
        let selector = self.selector.clone().unwrap_or_default();
        Query { namespace: place.namespace.clone(), selector, ..Query::default() }
    }

    /// The kinds of the cluster for these objects.
    ///
    /// # Errors
    /// A kind that the cluster does not serve.
    pub(super) async fn find(
        &self,
        named: &[Named],
        cluster: &Cluster,
        policies: &PolicySet,
    ) -> anyhow::Result<Vec<Place>> {
        let kinds: Vec<&str> = named.iter().map(|named| named.kind.as_str()).collect();
        let kinds = cluster.kinds(&kinds).await?;
        let of_context = self.namespace.as_deref().unwrap_or_else(|| cluster.namespace());
        let mut places = Vec::with_capacity(named.len());
        for Named { kind, namespace, name } in named {
            let Some(target) = kinds.find(kind, policies) else {
                kinds.unavailable.iter().for_each(|(_, error)| say(with_causes(error)));
                bail!("the cluster does not serve {kind}");
            };
            let namespace = match namespace.as_str() {
                _ if !target.namespaced || self.all_namespaces => "",
                "" => of_context,
                own => own,
            };
            places.push(Place { target, namespace: namespace.to_owned(), name: name.clone() });
        }
        Ok(places)
    }
}

impl Named {
    /// Reads `TYPE`, `TYPE NAME…` or `TYPE/NAME…`. Without names, all objects of the TYPE are meant.
    pub(super) fn read(words: &[String]) -> anyhow::Result<Vec<Self>> {
        let new = |kind: &str, name: Option<&str>| {
            let (kind, name) = (kind.to_owned(), name.map(str::to_owned));
            Self { kind, namespace: String::new(), name }
        };
        match words {
            [kind] if !kind.contains('/') => Ok(vec![new(kind, None)]),
            [kind, names @ ..] if words.iter().all(|word| !word.contains('/')) => {
                Ok(names.iter().map(|name| new(kind, Some(name))).collect())
            }
            words => words
                .iter()
                .map(|word| match word.split_once('/') {
                    Some((kind, name)) if ![kind, name].contains(&"") && !name.contains('/') => {
                        Ok(new(kind, Some(name)))
                    }
                    _ => bail!("{word:?} is not TYPE/NAME"),
                })
                .collect(),
        }
    }

    /// The object of a manifest, in the version that policies judge.
    pub(super) fn of(identity: &Identity) -> Self {
        let Identity { kind, namespace, name, .. } = identity;
        let kind = match identity.group() {
            "" => format!("{kind}.{}.", identity.version()),
            group => format!("{kind}.{group}"),
        };
        Self { kind, namespace: namespace.clone(), name: Some(name.clone()) }
    }

    /// Whether it is one object.
    pub(super) const fn has_name(&self) -> bool {
        self.name.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_names_its_group_and_the_core_group_its_version() {
        let of = |api_version: &str, kind: &str| {
            let (api_version, kind) = (api_version.to_owned(), kind.to_owned());
            let identity =
                Identity { api_version, kind, namespace: "s".to_owned(), name: "a".to_owned() };
            Named::of(&identity).kind
        };
        assert_eq!(of("v1", "Pod"), "Pod.v1.");
        assert_eq!(of("apps/v1", "Deployment"), "Deployment.apps");
    }
}
