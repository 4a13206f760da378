//! One object to judge, and the circumstances.

use std::borrow::Cow;

use super::Object;

/// What the request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// A new object.
    Create,
    /// A changed one. Patches and server-side apply arrive as this too.
    Update,
    /// A removal.
    Delete,
    /// A connection to a subresource such as `exec`.
    Connect,
}

impl Operation {
    /// Reads the spelling of an AdmissionReview.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "CREATE" => Some(Self::Create),
            "UPDATE" => Some(Self::Update),
            "DELETE" => Some(Self::Delete),
            "CONNECT" => Some(Self::Connect),
            _ => None,
        }
    }

    /// As an AdmissionReview spells it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

/// The resource a request addresses: group, version and plural, not the kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resource<'a> {
    /// `vshn.appcat.vshn.io`; empty for the core group.
    pub group: Cow<'a, str>,
    /// `v1`.
    pub version: Cow<'a, str>,
    /// `xvshnpostgresqls`.
    pub resource: Cow<'a, str>,
}

/// Who makes the request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Writer<'a> {
    /// `system:serviceaccount:NAMESPACE:NAME`, or a person.
    pub user: Cow<'a, str>,
    /// Groups the API server has found the user in.
    pub groups: Vec<Cow<'a, str>>,
}

/// One object to judge: the new object, the old one if any, and who does what to it where.
#[derive(Debug)]
pub struct Subject<'a> {
    /// What is addressed.
    pub resource: Resource<'a>,
    /// `status`, or empty for the main resource.
    pub subresource: Cow<'a, str>,
    /// What is done.
    pub operation: Operation,
    /// Who does it.
    pub writer: Writer<'a>,
    /// The object as it would be stored.
    pub object: Object<'a>,
    /// The object as it is stored now; `None` on a creation.
    pub old: Option<Object<'a>>,
}
