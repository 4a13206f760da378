//! What CustomResourceDefinitions define, for the policies that select it.

use std::collections::{BTreeSet, HashMap};

use serde_json::Value;

use super::convention::ConditionList;
use super::{Diagnostics, Misfit, Policy, PolicySet, Source};
use crate::model::{Pointer, Resource};
use crate::schema::{FieldSchema, ListType, Node, Schema};
use crate::source::Manifests;

/// A version of a custom resource, and its schema.
#[derive(Clone, Debug)]
pub struct Defined {
    /// `databases.example.com v1`, for messages.
    pub name: String,
    /// `example.com`.
    pub group: String,
    /// `v1`.
    pub version: String,
    /// `databases`.
    pub plural: String,
    /// Which fields its objects have.
    pub schema: Schema,
}

/// The versions of custom resources that are known, by their plural.
#[derive(Clone, Debug, Default)]
pub struct DefinedVersions(HashMap<String, Vec<Defined>>);

impl Defined {
    /// The served versions of a CustomResourceDefinition, as an API server with this minor version treats them.
    pub fn served(definition: &Value, minor: u32) -> Vec<Self> {
        let spec = &definition["spec"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (group, plural) = (text(&spec["group"]), text(&spec["names"]["plural"]));
        let versions = spec["versions"].as_array().into_iter().flatten();
        let served = versions.filter(|version| version["served"] != false);
        let served = served.map(|defined| {
            let version = text(&defined["name"]);
            let schema = Schema::of_version(definition, defined, minor);
            let name = format!("{plural}.{group} {version}");
            Self { name, group: group.clone(), version, plural: plural.clone(), schema }
        });
        served.collect()
    }

    /// Whether a policy selects it.
    pub fn is_selected(&self, policy: &Policy) -> bool {
        policy.resources.iter().any(|rule| {
            rule.api_groups.iter().any(|glob| glob.matches(&self.group))
                && rule.api_versions.iter().any(|glob| glob.matches(&self.version))
                && rule.resources.iter().any(|glob| glob.matches(&self.plural))
        })
    }

    /// The lists of a policy that are no maps with their keys: an apply of one element replaces all of them.
    pub fn lists_without_key<'p>(&self, policy: &'p Policy) -> Vec<&'p ConditionList> {
        let lists = policy.convention.conditions.iter().filter(|list| !list.key().is_empty());
        let lists = lists.filter(|list| match self.schema.at(list.path.tokens()) {
            FieldSchema::Declared(Node { list: ListType::Map(keys), .. }) => {
                let own = list.key();
                keys.len() != own.len()
                    || !own.iter().all(|own| keys.iter().any(|key| **key == **own))
            }
            FieldSchema::Declared(node) => node.items.is_some(),
            FieldSchema::Free | FieldSchema::Pruned => false,
        });
        lists.map(|list| &**list).collect()
    }

    /// The phases that its schema lists and the convention of a policy does not know.
    pub fn unknown_phases(&self, policy: &Policy) -> Vec<&str> {
        let Some(rules) = &policy.convention.phase else { return Vec::new() };
        let FieldSchema::Declared(node) = self.schema.at(rules.path.tokens()) else {
            return Vec::new();
        };
        let names = node.members().iter().filter_map(Value::as_str);
        names.filter(|name| !name.is_empty() && rules.find(name).is_none()).collect()
    }

    /// The fields that the webhook sets or removes in its objects.
    pub fn fields(&self, policies: &PolicySet) -> BTreeSet<Pointer> {
        let selecting = policies.policies().iter().filter(|policy| self.is_selected(policy));
        selecting.flat_map(Policy::fields_to_change).collect()
    }

    /// The same with the schema around some fields alone.
    #[must_use]
    pub fn around(&self, fields: &BTreeSet<Pointer>) -> Self {
        let fields: Vec<Pointer> = fields.iter().cloned().collect();
        Self { schema: self.schema.around(&fields), ..self.clone() }
    }

    /// The fields that a policy sets and an API server prunes or rejects in its objects.
    pub fn misfits(&self, policy: &Policy) -> Vec<Misfit> {
        policy.misfits(&Resource::new(&self.group, &self.version, &self.plural), &self.schema)
    }
}

impl DefinedVersions {
    /// Those of the CustomResourceDefinitions in files, whatever else these hold.
    ///
    /// # Errors
    /// What is no manifest.
    pub fn read(files: &[Source], minor: u32) -> Result<Self, Diagnostics> {
        let manifests = Manifests::read(files);
        if !manifests.mistakes().is_empty() {
            return Err(Diagnostics::new(files, manifests.mistakes().to_vec()));
        }
        let definitions = manifests.iter().filter(|of| {
            of.identity.kind == "CustomResourceDefinition"
                && of.identity.group() == "apiextensions.k8s.io"
        });
        let versions = definitions.flat_map(|of| {
            Defined::served(&serde_json::from_str(of.text).unwrap_or_default(), minor)
        });
        Ok(versions.collect())
    }

    /// Whether none is known.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The versions that a policy selects.
    pub fn selected_by(&self, policy: &Policy) -> impl Iterator<Item = &Defined> {
        self.0.values().flatten().filter(|version| version.is_selected(policy))
    }

    /// The version of a resource.
    pub fn get(&self, resource: &Resource<'_>) -> Option<&Defined> {
        let mut versions = self.0.get(&*resource.resource)?.iter();
        versions.find(|of| of.group == resource.group && of.version == resource.version)
    }
}

impl FromIterator<Defined> for DefinedVersions {
    fn from_iter<I: IntoIterator<Item = Defined>>(versions: I) -> Self {
        let mut by_plural: HashMap<String, Vec<Defined>> = HashMap::new();
        for version in versions {
            by_plural.entry(version.plural.clone()).or_default().push(version);
        }
        Self(by_plural)
    }
}
