//! A custom resource, as far as registrations depend on it.

use serde::Deserialize;
use serde::de::IgnoredAny;

use statusgate_analysis::relevance::{Relevance, Relevances};
use statusgate_core::model::{Resource, Subject, Webhook};
use statusgate_core::policy::PolicySet;
use statusgate_core::request::Served;
use statusgate_core::source::Identity;

/// A custom resource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CustomResource {
    /// `vshn.appcat.vshn.io`.
    pub group: String,
    /// `xvshnpostgresqls`.
    pub plural: String,
    /// `XVSHNPostgreSQL`.
    pub kind: String,
    /// The served versions.
    pub versions: Vec<ServedVersion>,
}

/// A served version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServedVersion {
    /// `v1`.
    pub name: String,
    /// Whether the status is written through `/status`.
    pub status_subresource: bool,
}

impl CustomResource {
    /// Reads a CustomResourceDefinition, also of v1beta1, where all versions may share their subresources.
    /// Its schemas are skipped: they are by far the most of it.
    ///
    /// # Errors
    /// When it is not a CustomResourceDefinition.
    pub fn read(json: &[u8]) -> Result<Self, serde_json::Error> {
        let Definition { spec } = serde_json::from_slice(json)?;
        let Spec { group, names, mut versions, version, subresources: shared } = spec;
        if versions.is_empty() {
            let one = version.map(|name| DefinedVersion { name, served: None, subresources: None });
            versions.extend(one);
        }
        let served = versions.into_iter().filter(|version| version.served != Some(false));
        let versions = served.map(|version| {
            let subresources = version.subresources.as_ref().or(shared.as_ref());
            let status_subresource = subresources.is_some_and(|of| of.status.is_some());
            ServedVersion { name: version.name, status_subresource }
        });
        Ok(Self { group, plural: names.plural, kind: names.kind, versions: versions.collect() })
    }

    /// The kind of an object, in its version. Policies decide on its plural and its subresource.
    pub fn of_object(identity: &Identity, policies: &PolicySet) -> Self {
        let version = |status_subresource| {
            vec![ServedVersion { name: identity.version().to_owned(), status_subresource }]
        };
        let plural = Served::guessed(identity, policies).plural;
        let (group, kind) = (identity.group().to_owned(), identity.kind.clone());
        let mut resource = Self { group, plural, kind, versions: version(true) };
        if !resource.is_selected(policies) {
            resource.versions = version(false);
        }
        resource
    }

    /// `xvshnpostgresqls.vshn.appcat.vshn.io`, the name of its definition.
    pub fn name(&self) -> String {
        let dot = if self.group.is_empty() { "" } else { "." };
        format!("{}{dot}{}", self.plural, self.group)
    }

    /// The policies that judge status writes in this version, by their index.
    pub(super) fn selected(&self, policies: &PolicySet, version: &ServedVersion) -> Vec<u16> {
        policies.select(&self.subject(version)).map(|(index, _)| index).collect()
    }

    /// Whether a policy judges status writes in some version.
    pub(super) fn is_selected(&self, policies: &PolicySet) -> bool {
        self.versions.iter().any(|version| !self.selected(policies, version).is_empty())
    }

    /// Which writes of the status can matter to a webhook; `None` if every write can. A write of the main
    /// resource may change everything else together with the status, so every one can.
    pub(super) fn relevance(
        &self,
        policies: &PolicySet,
        relevances: &Relevances<'_>,
        webhook: Webhook,
    ) -> Option<Relevance> {
        let selected =
            self.versions.iter().filter(|version| !self.selected(policies, version).is_empty());
        let each = selected.map(|version| {
            let subject = version.status_subresource.then(|| self.subject(version))?;
            relevances.to(&subject, webhook)
        });
        each.collect::<Option<Vec<Relevance>>>()?.into_iter().reduce(Relevance::or)
    }

    /// A write of the status in this version.
    pub fn subject(&self, version: &ServedVersion) -> Subject<'_> {
        let subresource = if version.status_subresource { "status" } else { "" };
        Subject {
            resource: Resource::new(&self.group, version.name.clone(), &self.plural),
            subresource: subresource.into(),
            ..Subject::default()
        }
    }
}

#[derive(Deserialize)]
struct Definition {
    spec: Spec,
}

#[derive(Deserialize)]
struct Spec {
    group: String,
    names: Names,
    #[serde(default)]
    versions: Vec<DefinedVersion>,
    /// Of v1beta1, without a list.
    version: Option<String>,
    subresources: Option<Subresources>,
}

#[derive(Deserialize)]
struct Names {
    plural: String,
    kind: String,
}

#[derive(Deserialize)]
struct DefinedVersion {
    name: String,
    served: Option<bool>,
    subresources: Option<Subresources>,
}

#[derive(Deserialize)]
struct Subresources {
    status: Option<IgnoredAny>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_has_the_served_versions_and_their_subresource() {
        let text = r#"{"kind": "CustomResourceDefinition", "spec": {"group": "a.io", "names": {"plural": "foos", "kind": "Foo"},
            "versions": [{"name": "v1", "served": true, "subresources": {"status": {}}, "schema": {}},
            {"name": "v2", "served": true, "subresources": {"scale": {}}},
            {"name": "v3", "served": true, "subresources": {"status": null}}, {"name": "v0", "served": false}]}}"#;
        let resource = CustomResource::read(text.as_bytes()).unwrap();
        assert_eq!(resource.name(), "foos.a.io");
        let versions = resource.versions.iter();
        let versions: Vec<_> =
            versions.map(|version| (version.name.as_str(), version.status_subresource)).collect();
        assert_eq!(versions, [("v1", true), ("v2", false), ("v3", false)]);
        assert!(CustomResource::read(br#"{"spec": {"group": "a.io", "version": "v1"}}"#).is_err());
    }
}
