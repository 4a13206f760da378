//! The used members of an AdmissionReview, as they are on the wire. Others are skipped.

use std::borrow::Cow;

use super::request::AdmissionRequest;
use crate::model::{Object, Reader, Resource, Writer};

/// An AdmissionReview. An absent member is empty.
#[derive(Default)]
pub(super) struct AdmissionReview<'a> {
    pub(super) api_version: Cow<'a, str>,
    pub(super) kind: Cow<'a, str>,
    /// The request, and its operation as text.
    pub(super) request: Option<(AdmissionRequest<'a>, Cow<'a, str>)>,
}

impl<'a> AdmissionReview<'a> {
    /// Reads a review; `None` if a member has another type.
    pub(super) fn read(reader: &mut Reader<'a>) -> Option<Self> {
        let mut review = Self::default();
        reader.object(|reader, name| {
            match &*name {
                "apiVersion" => review.api_version = reader.text()?,
                "kind" => review.kind = reader.text()?,
                "request" => review.request = reader.optional(request)?,
                _ => return reader.skip().map(|_| ()),
            }
            Some(())
        })?;
        Some(review)
    }
}

fn request<'a>(reader: &mut Reader<'a>) -> Option<(AdmissionRequest<'a>, Cow<'a, str>)> {
    let (mut request, mut operation) = (AdmissionRequest::default(), Cow::default());
    reader.object(|reader, name| {
        let subject = &mut request.subject;
        match &*name {
            "uid" => request.uid = reader.text()?,
            "kind" => [request.kind_group, request.kind] = texts(reader, ["group", "kind"])?,
            "resource" => {
                let names = ["group", "version", "resource"];
                let [group, version, resource] = texts(reader, names)?;
                subject.resource = Resource { group, version, resource };
            }
            "subResource" => subject.subresource = optional_text(reader)?,
            "name" => request.name = optional_text(reader)?,
            "namespace" => request.namespace = optional_text(reader)?,
            "operation" => operation = reader.text()?,
            "userInfo" => subject.writer = writer(reader)?,
            "object" => {
                let object = reader.optional(Object::read)?;
                request.has_object = object.is_some();
                subject.object = object.unwrap_or_default();
            }
            "oldObject" => subject.old = reader.optional(Object::read)?,
            "dryRun" => request.dry_run = reader.optional(Reader::bool)?.unwrap_or(false),
            _ => return reader.skip().map(|_| ()),
        }
        Some(())
    })?;
    Some((request, operation))
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
            None => return reader.skip().map(|_| ()),
        }
        Some(())
    })?;
    Some(texts)
}

fn writer<'a>(reader: &mut Reader<'a>) -> Option<Writer<'a>> {
    let mut writer = Writer::default();
    reader.object(|reader, name| {
        match &*name {
            "username" => writer.user = reader.text()?,
            "groups" => writer.groups = reader.optional(groups)?.unwrap_or_default(),
            _ => return reader.skip().map(|_| ()),
        }
        Some(())
    })?;
    Some(writer)
}

fn groups<'a>(reader: &mut Reader<'a>) -> Option<Vec<Cow<'a, str>>> {
    let mut groups = Vec::with_capacity(4);
    reader.list(|reader| {
        groups.push(reader.text()?);
        // An element needs eight times the memory of its text.
        (groups.len() <= MAX_GROUPS).then_some(())
    })?;
    Some(groups)
}

/// Groups of a user. They come from the authentication of the API server, which has no such user.
const MAX_GROUPS: usize = 10_000;
