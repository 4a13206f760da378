//! The input of one decision.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Object;

/// The operation of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Operation {
    /// Creates an object.
    Create,
    /// Changes an object. Patches and server-side apply arrive as updates.
    #[default]
    Update,
    /// Deletes an object.
    Delete,
    /// Connects to a subresource such as `exec`. No case of a test names it.
    #[serde(skip)]
    Connect,
}

impl Operation {
    /// Reads the spelling in an AdmissionReview.
    pub fn parse(text: &str) -> Option<Self> {
        let all = [Self::Create, Self::Update, Self::Delete, Self::Connect];
        all.into_iter().find(|operation| operation.name() == text)
    }

    /// The spelling in an AdmissionReview.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

/// The resource of a request: group, version and plural, not the kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resource<'a> {
    /// `vshn.appcat.vshn.io`; empty for the core group.
    pub group: Cow<'a, str>,
    /// `v1`.
    pub version: Cow<'a, str>,
    /// `xvshnpostgresqls`.
    pub resource: Cow<'a, str>,
}

impl<'a> Resource<'a> {
    /// A resource by its group, version and plural.
    pub fn new(
        group: impl Into<Cow<'a, str>>,
        version: impl Into<Cow<'a, str>>,
        resource: impl Into<Cow<'a, str>>,
    ) -> Self {
        Self { group: group.into(), version: version.into(), resource: resource.into() }
    }

    /// `xvshnpostgresqls.vshn.appcat.vshn.io`, the name for kubectl.
    pub fn name(&self) -> String {
        let dot = if self.group.is_empty() { "" } else { "." };
        format!("{}{dot}{}", self.resource, self.group)
    }

    /// Why its objects have no health: no policy selects it, or none of the policies that do defines health.
    pub fn without_health(&self, is_selected: bool) -> String {
        let with = if is_selected { " with a health" } else { "" };
        format!("no policy{with} selects {}", self.name())
    }
}

/// The user that makes the request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Writer<'a> {
    /// For example `system:serviceaccount:NAMESPACE:NAME`.
    pub user: Cow<'a, str>,
    /// The groups of the user.
    pub groups: Vec<Cow<'a, str>>,
}

/// The input for one decision: the new object, the old one if any, and the request.
#[derive(Debug, Default)]
pub struct Subject<'a> {
    /// The resource.
    pub resource: Resource<'a>,
    /// `status`, or empty for the main resource.
    pub subresource: Cow<'a, str>,
    /// The operation.
    pub operation: Operation,
    /// The writer.
    pub writer: Writer<'a>,
    /// The object to store.
    pub object: Object<'a>,
    /// The stored object; `None` on a creation.
    pub old: Option<Object<'a>>,
}

impl Subject<'_> {
    /// Whether there is no status, now and before: there is nothing to judge.
    pub fn has_no_status(&self) -> bool {
        self.object.has_no_status() && self.old.as_ref().is_none_or(Object::has_no_status)
    }

    /// The write as the API server stores it: a write of `/status` keeps metadata and spec of the stored
    /// object. It calls the mutating webhooks before that
    /// (`statusStrategy.PrepareForUpdate` in apiextensions-apiserver).
    #[must_use]
    pub fn as_stored(mut self) -> Self {
        if let Some(old) = self.old.as_ref().filter(|_| self.subresource == "status") {
            self.object.metadata = old.metadata.clone();
            self.object.spec = old.spec.clone();
        }
        self
    }
}
