//! Which object, in which version: what a guarded patch needs beside the status.

use std::borrow::Cow;

use serde::Deserialize;

/// The part of `metadata` that names an object and its version.
///
/// [`crate::model::Object`] does not read these: no rule may depend on them.
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

#[derive(Deserialize)]
struct Named<'a> {
    #[serde(borrow)]
    metadata: Identity<'a>,
}

impl<'a> Identity<'a> {
    /// Reads the identity of an object.
    ///
    /// # Errors
    /// When the text is no object with metadata.
    pub fn parse(text: &'a str) -> Result<Self, serde_json::Error> {
        Ok(serde_json::from_str::<Named<'a>>(text)?.metadata)
    }

    /// `namespace/name`, or the name alone.
    #[must_use]
    pub fn path(&self) -> String {
        if self.namespace.is_empty() {
            self.name.to_string()
        } else {
            format!("{}/{}", self.namespace, self.name)
        }
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
}
