//! The parts of a Kubernetes object that rules read: type, some metadata, spec and status.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::sync::Arc;

use super::json::in_status;
use super::reader::{MAX_VALUES, Reader, count_values, read};
use super::{Json, Pointer};

/// Why a text is not an object that can be judged.
#[derive(Debug, thiserror::Error)]
pub enum ObjectError {
    /// The text is not a JSON object.
    #[error("not a Kubernetes object")]
    NotAnObject(#[from] serde_json::Error),
    /// The status is too large to be read.
    #[error("the status {0}")]
    TooLarge(String),
}

/// What a status with too many values is: [`Json::Large`] with this text.
pub fn too_many(text: &str) -> String {
    format!("has {} values; at most {MAX_VALUES} can be judged", count_values(text))
}

/// One object, borrowed from the text it was read from.
///
/// It is read in one pass: `spec`, labels and annotations stay text, `status` becomes a tree, and
/// everything else (`managedFields`, data) is skipped without an allocation.
#[derive(Debug, Default)]
pub struct Object<'a> {
    /// `group/version`.
    pub api_version: Cow<'a, str>,
    /// `XVSHNPostgreSQL`.
    pub kind: Cow<'a, str>,
    /// The metadata that rules read.
    pub metadata: Metadata<'a>,
    /// `None` if the member is absent, `Some(Null)` if it is null, `Some(Large)` if it has too many
    /// values to be read.
    pub status: Option<Json<'a>>,
    /// The desired state.
    pub spec: Unread<'a>,
}

/// A value as text, parsed when a rule first reads it: few rules do. Clones share a parsed tree.
#[derive(Clone, Debug, Default)]
pub struct Unread<'a> {
    text: Option<&'a str>,
    /// Owned: a cell with a borrowed value would make the lifetime invariant.
    tree: OnceCell<Option<Arc<Json<'static>>>>,
}

impl<'a> Unread<'a> {
    /// The text; `None` if the member is absent.
    pub const fn text(&self) -> Option<&'a str> {
        self.text
    }

    /// The tree; `None` if the member is absent or exceeds the limits of [`Json`].
    pub fn tree(&self) -> Option<&Json<'a>> {
        let tree =
            self.tree.get_or_init(|| Some(Json::parse(self.text?).ok()?.into_owned().into()));
        tree.as_deref()
    }
}

/// The part of `metadata` that rules and messages use. A member with the wrong type counts as
/// absent: the API server checks metadata before it calls webhooks.
#[derive(Clone, Debug, Default)]
pub struct Metadata<'a> {
    /// `metadata.name`; empty if the API server generates it later.
    pub name: Cow<'a, str>,
    /// `metadata.namespace`; empty for cluster-scoped objects.
    pub namespace: Cow<'a, str>,
    /// `metadata.uid`. Like the version for guarded patches: no rule depends on it.
    pub uid: Cow<'a, str>,
    /// `metadata.resourceVersion`.
    pub resource_version: Cow<'a, str>,
    /// `metadata.generation`.
    pub generation: Option<i64>,
    /// `metadata.creationTimestamp`.
    pub creation_timestamp: Option<Cow<'a, str>>,
    /// `metadata.deletionTimestamp`: set when the deletion was requested.
    pub deletion_timestamp: Option<Cow<'a, str>>,
    /// `metadata.labels`.
    pub labels: Unread<'a>,
    /// `metadata.annotations`.
    pub annotations: Unread<'a>,
    /// The text of `metadata.managedFields`: who wrote which fields, and when.
    pub managed_fields: Option<&'a str>,
}

impl<'a> Object<'a> {
    /// Reads an object from the complete `text`.
    ///
    /// # Errors
    /// When `text` is not JSON or not an object.
    pub fn parse(text: &'a str) -> Result<Self, ObjectError> {
        read(text, Self::read).map_err(|error| ObjectError::NotAnObject(error.into()))
    }

    /// Reads the next value of a text.
    pub fn read(reader: &mut Reader<'a>) -> Option<Self> {
        let mut object = Self::default();
        reader.object(|reader, name| {
            match &*name {
                "apiVersion" => object.api_version = text(reader)?,
                "kind" => object.kind = text(reader)?,
                "metadata" => {
                    object.metadata = reader.optional(Metadata::read)?.unwrap_or_default();
                }
                "spec" => object.spec.text = Some(reader.skip()?),
                "status" => object.status = Some(reader.json_of_any_size()?),
                _ => return reader.skip().map(|_| ()),
            }
            Some(())
        })?;
        Some(object)
    }

    /// Returns the object if its status can be judged.
    ///
    /// # Errors
    /// A status with too many values.
    pub fn judgeable(self) -> Result<Self, ObjectError> {
        match &self.status {
            Some(Json::Large(text)) => Err(ObjectError::TooLarge(too_many(text))),
            _ => Ok(self),
        }
    }

    /// Whether the status has too many values to be read.
    pub const fn has_large_status(&self) -> bool {
        matches!(self.status, Some(Json::Large(_)))
    }

    /// Whether the deletion was requested.
    pub const fn is_deleting(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// The same object with another status.
    pub fn with_status<'b>(&self, status: Option<Json<'b>>) -> Object<'b>
    where
        'a: 'b,
    {
        Object {
            api_version: self.api_version.clone(),
            kind: self.kind.clone(),
            metadata: self.metadata.clone(),
            spec: self.spec.clone(),
            status,
        }
    }

    /// The status if it is an object with members. Go clients send `{}` for every status without
    /// `omitempty`, so `{}` counts as absent.
    pub fn written_status(&self) -> Option<&Json<'a>> {
        self.status_object().filter(|status| !status.is_empty())
    }

    /// The value at a pointer below `/status`.
    pub fn at_status(&self, path: &Pointer) -> Option<&Json<'a>> {
        in_status(self.status.as_ref(), path)
    }

    /// The part outside the status that holds a pointer, and the names inside it.
    pub fn part<'p>(&self, path: &'p Pointer) -> Option<(&Unread<'a>, &'p [String])> {
        match path.in_metadata() {
            Some(("labels", key)) => Some((&self.metadata.labels, key)),
            Some((_, key)) => Some((&self.metadata.annotations, key)),
            None => Some((&self.spec, path.below_spec())).filter(|(_, names)| !names.is_empty()),
        }
    }

    /// Whether the status is absent, null or `{}`.
    pub fn has_no_status(&self) -> bool {
        match &self.status {
            None | Some(Json::Null) => true,
            Some(Json::Object(members)) => members.is_empty(),
            Some(_) => false,
        }
    }

    /// The status if it is an object.
    pub fn status_object(&self) -> Option<&Json<'a>> {
        self.status.as_ref().filter(|status| matches!(status, Json::Object(_)))
    }
}

impl<'a> Metadata<'a> {
    fn read(reader: &mut Reader<'a>) -> Option<Self> {
        let mut metadata = Self::default();
        let time = |text: Cow<'a, str>| if text.is_empty() { None } else { Some(text) };
        reader.object(|reader, name| {
            match &*name {
                "name" => metadata.name = text(reader)?,
                "namespace" => metadata.namespace = text(reader)?,
                "uid" => metadata.uid = text(reader)?,
                "resourceVersion" => metadata.resource_version = text(reader)?,
                "generation" => metadata.generation = integer(reader)?,
                "creationTimestamp" => metadata.creation_timestamp = time(text(reader)?),
                "deletionTimestamp" => metadata.deletion_timestamp = time(text(reader)?),
                "labels" => metadata.labels.text = Some(reader.skip()?),
                "annotations" => metadata.annotations.text = Some(reader.skip()?),
                "managedFields" => metadata.managed_fields = Some(reader.skip()?),
                _ => return reader.skip().map(|_| ()),
            }
            Some(())
        })?;
        Some(metadata)
    }
}

/// A string; empty for a value of another type.
fn text<'a>(reader: &mut Reader<'a>) -> Option<Cow<'a, str>> {
    if reader.next_byte() == b'"' {
        return reader.text();
    }
    reader.skip().map(|_| Cow::default())
}

/// An integer; `None` inside for a value of another type.
fn integer(reader: &mut Reader<'_>) -> Option<Option<i64>> {
    if matches!(reader.next_byte(), b'-' | b'0'..=b'9') {
        return reader.number().map(|number| Json::Number(number).as_i64());
    }
    reader.skip().map(|_| None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_parts_that_are_judged_are_read() {
        let object = Object::parse(
            r#"{"apiVersion":"g/v1","kind":"K","metadata":{"name":"n","namespace":"s","generation":3,
                "managedFields":[{"f":{}}],"deletionTimestamp":"2024-01-01T00:00:00Z"},
                "spec":{"deep":[[[]]]},"status":{"phase":"Ready"},"data":1}"#,
        )
        .unwrap();
        assert_eq!((object.metadata.name.as_ref(), object.metadata.generation), ("n", Some(3)));
        assert!(object.is_deleting());
        assert_eq!(object.spec.text(), Some(r#"{"deep":[[[]]]}"#));
        assert!(object.spec.tree().and_then(|spec| spec.get("deep")).is_some());
        assert!(object.status_object().is_some());
    }

    #[test]
    fn a_status_of_another_kind_is_kept_as_it_is_but_is_no_status_object() {
        for text in [r#"{"status":null}"#, r#"{"status":[]}"#, r#"{"status":5}"#] {
            let object = Object::parse(text).unwrap();
            assert!(object.status.is_some() && object.status_object().is_none(), "{text}");
        }
    }

    #[test]
    fn a_status_of_too_many_values_stays_a_text() {
        let status = format!(r#"{{"list":[{}0]}}"#, "0,".repeat(200_000));
        let text = format!(r#"{{"kind":"K","status":{status},"data":1}}"#);
        let object = Object::parse(&text).unwrap();
        assert_eq!(
            (object.kind.as_ref(), &object.status),
            ("K", &Some(Json::Large(status.into())))
        );
        assert!(object.status_object().is_none() && object.judgeable().is_err());
    }

    #[test]
    fn metadata_of_a_wrong_type_reads_as_absent() {
        let object = Object::parse(r#"{"metadata":{"name":5,"generation":"x"}}"#).unwrap();
        assert_eq!((object.metadata.name.as_ref(), object.metadata.generation), ("", None));
        assert!(Object::parse(r#"{"metadata":null}"#).is_ok());
    }

    #[test]
    fn a_value_that_is_not_an_object_is_an_error() {
        for text in ["[]", "5", "null", "\"x\"", "", "{"] {
            assert!(Object::parse(text).is_err(), "{text}");
        }
    }
}
