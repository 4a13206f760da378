//! The identity of an object in a cluster: its name, uid and version.

use std::borrow::Cow;
use std::collections::HashSet;

use serde::Deserialize;
use serde::de::Error as _;

use super::hash::fnv1a_128;
use crate::model::{Metadata, Object, ObjectError};

/// The part of `metadata` that identifies an object and its version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Identity<'a> {
    /// `metadata.name`.
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// `metadata.namespace`; empty for cluster-scoped objects.
    #[serde(borrow)]
    pub namespace: Cow<'a, str>,
    /// `metadata.uid`.
    #[serde(borrow)]
    pub uid: Cow<'a, str>,
    /// `metadata.resourceVersion`.
    #[serde(borrow, rename = "resourceVersion")]
    pub resource_version: Cow<'a, str>,
}

/// The objects that were processed, in 16 bytes each. A list that restarts returns objects again.
#[derive(Debug, Default)]
pub(super) struct Seen(HashSet<u128>);

#[derive(Deserialize)]
struct Named<'a> {
    #[serde(borrow)]
    metadata: Identity<'a>,
}

/// Reads an object of a list, once and whole.
///
/// # Errors
/// When the text is no object with a name.
pub(super) fn read_object(text: &str) -> Result<Object<'_>, serde_json::Error> {
    match Object::parse(text) {
        Ok(object) if object.metadata.name.is_empty() => {
            Err(serde_json::Error::custom("an object without a name"))
        }
        Ok(object) => Ok(object),
        Err(ObjectError::NotAnObject(error)) => Err(error),
        Err(error @ ObjectError::TooLarge) => Err(serde_json::Error::custom(error)),
    }
}

impl<'a> From<&Metadata<'a>> for Identity<'a> {
    fn from(metadata: &Metadata<'a>) -> Self {
        Self {
            name: metadata.name.clone(),
            namespace: metadata.namespace.clone(),
            uid: metadata.uid.clone(),
            resource_version: metadata.resource_version.clone(),
        }
    }
}

impl<'a> Identity<'a> {
    /// Reads the identity of an object.
    ///
    /// # Errors
    /// When the text is not an object with metadata.
    pub fn parse(text: &'a str) -> Result<Self, serde_json::Error> {
        Ok(serde_json::from_str::<Named<'a>>(text)?.metadata)
    }

    /// `namespace/name`, or only the name.
    #[must_use]
    pub fn path(&self) -> String {
        if self.namespace.is_empty() {
            self.name.to_string()
        } else {
            format!("{}/{}", self.namespace, self.name)
        }
    }
}

impl Seen {
    /// Adds an object. Returns whether it is new. Objects of an aggregated API may have no uid: then
    /// the name identifies them.
    pub(super) fn insert(&mut self, identity: &Identity<'_>) -> bool {
        self.0.insert(if identity.uid.is_empty() {
            fnv1a_128(identity.path().as_bytes())
        } else {
            fnv1a_128(identity.uid.as_bytes())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_identity_is_borrowed_from_the_text() {
        let text = r#"{"kind":"K","metadata":{"uid":"u","labels":{"a":"b"},"name":"n","resourceVersion":"7"},"spec":{}}"#;
        let identity = Identity::parse(text).unwrap();
        assert_eq!((&*identity.uid, &*identity.resource_version), ("u", "7"));
        assert!(matches!(identity.name, Cow::Borrowed("n")));
        assert_eq!(identity.path(), "n");
        assert!(Identity::parse(r#"{"metadata":null}"#).is_err());
    }

    #[test]
    fn objects_differ_by_uid_or_by_name_if_they_have_none() {
        let of = |uid: &'static str, name: &'static str| Identity {
            uid: uid.into(),
            name: name.into(),
            ..Identity::default()
        };
        let mut seen = Seen::default();
        assert!(seen.insert(&of("u", "a")) && !seen.insert(&of("u", "b")));
        assert!(seen.insert(&of("", "a")) && seen.insert(&of("", "b")));
    }
}
