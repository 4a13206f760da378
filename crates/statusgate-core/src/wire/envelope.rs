//! The used members of an AdmissionReview, as they are on the wire. Others are skipped.

use std::borrow::Cow;

use crate::model::{Object, Reader, Resource};

/// An AdmissionReview. An absent member is empty.
#[derive(Default)]
pub(super) struct Envelope<'a> {
    pub(super) api_version: Cow<'a, str>,
    pub(super) kind: Cow<'a, str>,
    pub(super) request: Option<Request<'a>>,
}

/// Its request.
#[derive(Default)]
pub(super) struct Request<'a> {
    pub(super) uid: Cow<'a, str>,
    pub(super) kind_group: Cow<'a, str>,
    pub(super) kind: Cow<'a, str>,
    pub(super) resource: Resource<'a>,
    pub(super) subresource: Cow<'a, str>,
    pub(super) name: Cow<'a, str>,
    pub(super) namespace: Cow<'a, str>,
    pub(super) operation: Cow<'a, str>,
    pub(super) user: User<'a>,
    pub(super) object: Option<Object<'a>>,
    pub(super) old: Option<Object<'a>>,
    pub(super) dry_run: bool,
}

#[derive(Default)]
pub(super) struct User<'a> {
    pub(super) name: Cow<'a, str>,
    pub(super) groups: Vec<Cow<'a, str>>,
}

impl<'a> Envelope<'a> {
    /// Reads a review; `None` if a member has another type.
    pub(super) fn read(reader: &mut Reader<'a>) -> Option<Self> {
        let mut envelope = Self::default();
        reader.object(|reader, name| {
            match &*name {
                "apiVersion" => envelope.api_version = reader.text()?,
                "kind" => envelope.kind = reader.text()?,
                "request" => envelope.request = reader.optional(Request::read)?,
                _ => {
                    reader.skip()?;
                }
            }
            Some(())
        })?;
        Some(envelope)
    }
}

impl<'a> Request<'a> {
    fn read(reader: &mut Reader<'a>) -> Option<Self> {
        let mut request = Self::default();
        reader.object(|reader, name| {
            match &*name {
                "uid" => request.uid = reader.text()?,
                "kind" => {
                    [request.kind_group, request.kind] = texts(reader, ["group", "kind"])?;
                }
                "resource" => {
                    let names = ["group", "version", "resource"];
                    let [group, version, resource] = texts(reader, names)?;
                    request.resource = Resource { group, version, resource };
                }
                "subResource" => request.subresource = optional_text(reader)?,
                "name" => request.name = optional_text(reader)?,
                "namespace" => request.namespace = optional_text(reader)?,
                "operation" => request.operation = reader.text()?,
                "userInfo" => request.user = User::read(reader)?,
                "object" => request.object = reader.optional(Object::read)?,
                "oldObject" => request.old = reader.optional(Object::read)?,
                "dryRun" => request.dry_run = reader.optional(Reader::bool)?.unwrap_or(false),
                _ => {
                    reader.skip()?;
                }
            }
            Some(())
        })?;
        Some(request)
    }
}

fn optional_text<'a>(reader: &mut Reader<'a>) -> Option<Cow<'a, str>> {
    reader.optional(Reader::text).map(Option::unwrap_or_default)
}

/// The texts of these members of an object.
fn texts<'a, const N: usize>(
    reader: &mut Reader<'a>,
    names: [&str; N],
) -> Option<[Cow<'a, str>; N]> {
    let mut texts = [const { Cow::Borrowed("") }; N];
    reader.object(|reader, name| {
        match names.iter().position(|known| *known == name) {
            Some(index) => texts[index] = reader.text()?,
            None => {
                reader.skip()?;
            }
        }
        Some(())
    })?;
    Some(texts)
}

impl<'a> User<'a> {
    fn read(reader: &mut Reader<'a>) -> Option<Self> {
        let mut user = Self::default();
        reader.object(|reader, name| {
            match &*name {
                "username" => user.name = reader.text()?,
                "groups" => user.groups = reader.optional(groups)?.unwrap_or_default(),
                _ => {
                    reader.skip()?;
                }
            }
            Some(())
        })?;
        Some(user)
    }
}

fn groups<'a>(reader: &mut Reader<'a>) -> Option<Vec<Cow<'a, str>>> {
    let mut groups = Vec::with_capacity(4);
    reader.list(|reader| {
        groups.push(reader.text()?);
        Some(())
    })?;
    Some(groups)
}
