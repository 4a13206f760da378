//! What identifies an object in a cluster.

use std::collections::HashSet;

use serde::de::Error as _;

use super::hash::fnv1a_128;
use statusgate_core::model::{Metadata, Object, ObjectError};

/// The objects that were processed, in 16 bytes each. A list that restarts returns objects again.
#[derive(Debug, Default)]
pub(super) struct Seen(HashSet<u128>);

/// Reads an object of a list, once and whole.
///
/// # Errors
/// When the text is not an object with a name.
pub(super) fn read_object(text: &str) -> Result<Object<'_>, serde_json::Error> {
    match Object::parse(text) {
        Ok(object) if object.metadata.name.is_empty() => {
            Err(serde_json::Error::custom("an object without a name"))
        }
        Ok(object) => Ok(object),
        Err(ObjectError::NotAnObject(error)) => Err(error),
        Err(error @ ObjectError::TooLarge(_)) => Err(serde_json::Error::custom(error)),
    }
}

/// `namespace/name`, or only the name.
pub fn object_path(namespace: &str, name: &str) -> String {
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") }
}

impl Seen {
    /// Adds an object. Returns whether it is new. Objects of an aggregated API may have no uid: then
    /// the name identifies them.
    pub(super) fn insert(&mut self, metadata: &Metadata<'_>) -> bool {
        self.0.insert(if metadata.uid.is_empty() {
            fnv1a_128(object_path(&metadata.namespace, &metadata.name).as_bytes())
        } else {
            fnv1a_128(metadata.uid.as_bytes())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_without_a_name_is_an_error() {
        let text = r#"{"kind":"K","metadata":{"uid":"u","name":"n","namespace":"s"},"spec":{}}"#;
        assert_eq!(read_object(text).unwrap().metadata.uid, "u");
        assert!(read_object(r#"{"metadata":null}"#).is_err());
    }

    #[test]
    fn objects_differ_by_uid_or_by_name_if_they_have_none() {
        let of = |uid: &'static str, name: &'static str| Metadata {
            uid: uid.into(),
            name: name.into(),
            ..Metadata::default()
        };
        let mut seen = Seen::default();
        assert!(seen.insert(&of("u", "a")) && !seen.insert(&of("u", "b")));
        assert!(seen.insert(&of("", "a")) && seen.insert(&of("", "b")));
    }
}
