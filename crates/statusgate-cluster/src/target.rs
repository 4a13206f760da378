//! A resource that policies select, as this cluster serves it.

use std::sync::Arc;

use jiff::Timestamp;
use serde::de::Error as _;

use super::ClusterError;
use super::identity::read_object;
use statusgate_core::engine::{Health, Unproven, guess};
use statusgate_core::kstatus::{Fork, compute, is_group_of_kubernetes};
use statusgate_core::model::{Json, Object, Operation, Resource, Subject, Writer};
use statusgate_core::policy::PolicySet;
use statusgate_core::policy::convention::Convention;

/// One resource in one version, with the policies that judge it in this version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// `vshn.appcat.vshn.io`; empty for the core group.
    pub group: String,
    /// `v1`.
    pub version: String,
    /// `xvshnpostgresqls`.
    pub plural: String,
    /// `XVSHNPostgreSQL`.
    pub kind: String,
    /// Whether it is namespaced.
    pub namespaced: bool,
    /// Whether status is written through `/status`.
    pub status_subresource: bool,
    /// The policies, by their index in the set.
    pub policies: Vec<u16>,
}

/// What decides about the health of a custom resource of which no policy defines the health.
#[derive(Clone, Debug)]
pub enum Otherwise {
    /// This convention.
    Convention(Arc<Convention>),
    /// A guess.
    Guess,
}

impl Target {
    /// `xvshnpostgresqls.vshn.appcat.vshn.io`, the name of the resource for kubectl and of its CRD.
    pub fn name(&self) -> String {
        self.resource().name()
    }

    /// `vshn.appcat.vshn.io/v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// The subresource of status writes: `status` or nothing.
    pub const fn subresource(&self) -> &'static str {
        if self.status_subresource { "status" } else { "" }
    }

    /// The path of all objects, or of those in one namespace.
    pub fn path(&self, namespace: &str) -> String {
        let root = if self.group.is_empty() { "/api" } else { "/apis" };
        let api_version = self.api_version();
        if self.namespaced && !namespace.is_empty() {
            format!("{root}/{api_version}/namespaces/{namespace}/{}", self.plural)
        } else {
            format!("{root}/{api_version}/{}", self.plural)
        }
    }

    /// The path of one object.
    pub fn object_path(&self, namespace: &str, name: &str) -> String {
        format!("{}/{name}", self.path(namespace))
    }

    fn resource(&self) -> Resource<'_> {
        Resource::new(&self.group, &self.version, &self.plural)
    }

    /// A stored object as the subject of a status write that changes nothing. Old and new are the same
    /// object, so the write introduces no violation.
    pub(super) fn subject<'a>(&'a self, object: Object<'a>, writer: Writer<'a>) -> Subject<'a> {
        Subject {
            resource: self.resource(),
            subresource: self.subresource().into(),
            operation: Operation::Update,
            writer,
            old: Some(object.with_status(object.status.clone())),
            object,
        }
    }

    /// The health of a stored object under the first policy with a convention that defines it, under
    /// `otherwise` for a custom resource without one, or as far as kstatus knows; and whether its status may
    /// be about an older spec.
    ///
    /// # Errors
    /// When the text is not an object with a name, or its status is too large.
    pub fn health(
        &self,
        policies: &PolicySet,
        otherwise: Option<&Otherwise>,
        text: &str,
        now: Timestamp,
    ) -> Result<(Health, Option<Unproven>), serde_json::Error> {
        let object = read_object(text)?.judgeable().map_err(serde_json::Error::custom)?;
        let judging = self.policies.iter().filter_map(|index| policies.get(*index));
        let otherwise = otherwise.filter(|_| !is_group_of_kubernetes(&self.group));
        let chosen = otherwise.and_then(|otherwise| match otherwise {
            Otherwise::Convention(convention) => Some(&**convention),
            Otherwise::Guess => None,
        });
        let mut conventions = judging.map(|policy| &*policy.convention).chain(chosen);
        let resource = self.resource();
        let health = match conventions.find_map(|of| Health::of(of, &object, &resource)) {
            Some(health) => health,
            None if matches!(otherwise, Some(Otherwise::Guess)) => guess(&Json::parse(text)?),
            None => self.health_without_convention(text, now)?,
        };
        Ok((health, Unproven::of(&object)))
    }

    /// The health of a stored object of which no policy defines the health.
    ///
    /// # Errors
    /// When the text is not JSON.
    pub(super) fn health_without_convention(
        &self,
        text: &str,
        now: Timestamp,
    ) -> Result<Health, serde_json::Error> {
        let object = Json::parse(text)?;
        let why = self.resource().without_health(!self.policies.is_empty());
        let result = compute(&object, now.as_second(), Fork::default());
        Ok(Health::without_convention(&object, &result, &why))
    }

    /// The error of an invalid list.
    pub(super) fn bad_list(&self, source: serde_json::Error) -> ClusterError {
        ClusterError::BadAnswer { what: format!("list {}", self.name()), source }
    }

    /// The policies that judge status writes of this resource through `subresource`.
    pub(super) fn selected(&self, policies: &PolicySet, subresource: &str) -> Vec<u16> {
        let subject = Subject {
            subresource: subresource.into(),
            ..self.subject(Object::default(), Writer::default())
        };
        policies.select(&subject).map(|(index, _)| index).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Target;

    impl Target {
        /// A resource of the group a.io that the first policy selects. The kind of `foos` is `Foo`.
        pub(crate) fn example(plural: &str) -> Self {
            let (first, rest) = plural.trim_end_matches('s').split_at(1);
            Self {
                group: "a.io".into(),
                version: "v1".into(),
                plural: plural.into(),
                kind: first.to_uppercase() + rest,
                namespaced: true,
                status_subresource: true,
                policies: vec![0],
            }
        }
    }
}
