//! A kind of objects that policies speak of, as this cluster serves it.

use crate::model::{Object, ObjectError, Operation, Resource, Subject, Writer};
use crate::policy::PolicySet;

/// One resource to go over: in one version, for the policies that judge it in that version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// `vshn.appcat.vshn.io`; empty for the core group.
    pub group: String,
    /// `v1`.
    pub version: String,
    /// `xvshnpostgresqls`.
    pub plural: String,
    /// `XVSHNPostgreSQL`.
    pub kind: String,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// Whether status is written through `/status`.
    pub status_subresource: bool,
    /// The policies, by their place in the set.
    pub policies: Vec<u16>,
}

impl Target {
    /// `xvshnpostgresqls.vshn.appcat.vshn.io`, as kubectl names a resource, and as the
    /// CustomResourceDefinition is called.
    #[must_use]
    pub fn name(&self) -> String {
        if self.group.is_empty() {
            self.plural.clone()
        } else {
            format!("{}.{}", self.plural, self.group)
        }
    }

    /// `vshn.appcat.vshn.io/v1`.
    #[must_use]
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// The subresource that status is written through: `status` or nothing.
    #[must_use]
    pub const fn subresource(&self) -> &'static str {
        if self.status_subresource { "status" } else { "" }
    }

    /// The path of all its objects, or of those of one namespace.
    #[must_use]
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
    #[must_use]
    pub fn object_path(&self, namespace: &str, name: &str) -> String {
        format!("{}/{name}", self.path(namespace))
    }

    /// A stored object as a subject: a status write that leaves everything as it is.
    ///
    /// Old and new are the same object, so that nothing counts as introduced by this write. It is
    /// read twice and not cloned: both borrow from `text`.
    ///
    /// # Errors
    /// When `text` is no object, or its status cannot be judged.
    pub fn subject<'a>(
        &'a self,
        text: &'a str,
        writer: Writer<'a>,
    ) -> Result<Subject<'a>, ObjectError> {
        Ok(Subject {
            resource: Resource {
                group: self.group.as_str().into(),
                version: self.version.as_str().into(),
                resource: self.plural.as_str().into(),
            },
            subresource: self.subresource().into(),
            operation: Operation::Update,
            writer,
            object: Object::parse(text)?.judgeable()?,
            old: Some(Object::parse(text)?),
        })
    }

    /// The policies that judge status writes of this resource through `subresource`.
    pub(super) fn selected(&self, policies: &PolicySet, subresource: &str) -> Vec<u16> {
        let subject = Subject {
            resource: Resource {
                group: self.group.as_str().into(),
                version: self.version.as_str().into(),
                resource: self.plural.as_str().into(),
            },
            subresource: subresource.into(),
            operation: Operation::Update,
            writer: Writer::default(),
            object: Object::default(),
            old: None,
        };
        policies.select(&subject).map(|(index, _)| index).collect()
    }
}
