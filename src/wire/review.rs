//! An AdmissionReview as it arrives, borrowed from its bytes.

use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde_json::error::Category;

use crate::model::{AnySize, Object, Operation, Resource, Subject, Text, Writer, read};

use super::envelope::{Envelope, Members};

/// Go's `encoding/json`, and so the API server, refuses deeper nesting than this: what is deeper
/// does not come from an API server.
const MAX_DEPTH: usize = 10_000;

/// A review that can be judged.
#[derive(Debug)]
pub struct Review<'a> {
    /// The uid to send back.
    pub uid: Cow<'a, str>,
    /// The group of the kind that is addressed.
    pub kind_group: Cow<'a, str>,
    /// The kind that is addressed.
    pub kind: Cow<'a, str>,
    /// The object's name; empty when the server is still to generate it.
    pub name: Cow<'a, str>,
    /// The object's namespace; empty for cluster-scoped objects.
    pub namespace: Cow<'a, str>,
    /// Whether nothing will be stored.
    pub dry_run: bool,
    /// Whether there is an object at all: a deletion has none.
    pub has_object: bool,
    /// What is to be judged.
    pub subject: Subject<'a>,
}

/// Who and what a request is about: all that may be logged of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Identity<'a> {
    /// The request's uid.
    pub uid: &'a str,
    /// The API group.
    pub group: &'a str,
    /// The API version.
    pub version: &'a str,
    /// The plural.
    pub resource: &'a str,
    /// `status`, or empty for the main resource.
    pub subresource: &'a str,
    /// The namespace; empty for cluster-scoped objects.
    pub namespace: &'a str,
    /// The object's name.
    pub name: &'a str,
    /// `CREATE`, `UPDATE`, …
    pub operation: &'static str,
    /// The writer.
    pub user: &'a str,
    /// Whether nothing will be stored.
    pub dry_run: bool,
}

/// Why bytes are not a review. The text is for whoever sent them: it names places, never contents.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReviewError {
    /// Nothing was sent.
    #[error("the body is empty")]
    Empty,
    /// Bytes that are no text.
    #[error("the body is not UTF-8 from byte {0} on")]
    NotUtf8(usize),
    /// Nesting that no API server sends.
    #[error("the body is nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// No JSON.
    #[error("the body is not JSON at line {0}, column {1}")]
    NotJson(usize, usize),
    /// JSON that ends too early.
    #[error("the body ends in the middle of a JSON value")]
    Truncated,
    /// Another kind of JSON value at the top.
    #[error("the body is not a JSON object")]
    NotAnObject,
    /// A member that cannot be what it is.
    #[error(
        "the body is not an AdmissionReview: a member has the wrong type at line {0}, column {1}"
    )]
    WrongType(usize, usize),
    /// Another kind of document.
    #[error("the body is not an AdmissionReview: kind is something else")]
    WrongKind,
    /// Another version of it.
    #[error("apiVersion must be admission.k8s.io/v1")]
    WrongVersion,
    /// A member that must be there.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// An object that is none.
    #[error("{0} is not a JSON object")]
    ObjectIsNone(&'static str),
    /// An operation that does not exist.
    #[error("request.operation is none of CREATE, UPDATE, DELETE and CONNECT")]
    UnknownOperation,
}

impl<'a> Review<'a> {
    /// Reads a review.
    ///
    /// # Errors
    /// One sentence on what the bytes are not.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ReviewError> {
        // Once over the bytes here saves a check of each string later.
        let text = std::str::from_utf8(bytes)
            .map_err(|error| ReviewError::NotUtf8(error.valid_up_to()))?;
        match text.trim_ascii_start().as_bytes().first() {
            None => return Err(ReviewError::Empty),
            Some(b'{') => {}
            // Distinguished so that the sentence is true: `[]` is JSON, `hello` is not.
            Some(_) if is_too_deep(bytes) => return Err(ReviewError::TooDeep),
            Some(_) => {
                return Err(match serde_json::from_str::<IgnoredAny>(text) {
                    Ok(_) => ReviewError::NotAnObject,
                    Err(error) => describe(&error),
                });
            }
        }
        if is_too_deep(bytes) {
            return Err(ReviewError::TooDeep);
        }
        match read::<Envelope<'a, Object<'a>>>(text) {
            Ok(envelope) => envelope.into_review(),
            // A status of more values than can be judged is no reason to refuse what nobody judges.
            Err(error) if error.is_data() => match read::<Envelope<'a, AnySize<'a>>>(text) {
                Ok(envelope) => envelope.into_review(),
                Err(_) => Err(describe(&error)),
            },
            Err(error) => Err(describe(&error)),
        }
    }

    /// What may be logged of this review.
    #[must_use]
    pub fn identity(&self) -> Identity<'_> {
        let Subject { resource, subresource, operation, writer, .. } = &self.subject;
        Identity {
            uid: &self.uid,
            group: &resource.group,
            version: &resource.version,
            resource: &resource.resource,
            subresource,
            namespace: &self.namespace,
            name: &self.name,
            operation: operation.name(),
            user: &writer.user,
            dry_run: self.dry_run,
        }
    }
}

fn describe(error: &serde_json::Error) -> ReviewError {
    match error.classify() {
        Category::Eof => ReviewError::Truncated,
        Category::Data => ReviewError::WrongType(error.line(), error.column()),
        Category::Syntax | Category::Io => ReviewError::NotJson(error.line(), error.column()),
    }
}

/// Whether the nesting is deeper than the limit. Almost always answered by the length alone: a
/// closed nesting needs two bytes a level. Else by counting the openers, which the compiler turns
/// into vector instructions; and only where they are many, by walking the text.
fn is_too_deep(bytes: &[u8]) -> bool {
    if bytes.len() < MAX_DEPTH {
        return false;
    }
    let openers: usize = bytes
        .chunks(128)
        .map(|chunk| chunk.iter().map(|byte| u8::from(matches!(byte, b'{' | b'['))).sum::<u8>())
        .map(usize::from)
        .sum();
    openers > MAX_DEPTH && depth_of(bytes) > MAX_DEPTH
}

fn depth_of(bytes: &[u8]) -> usize {
    let (mut depth, mut deepest) = (0usize, 0);
    let mut rest = bytes.iter();
    while let Some(byte) = rest.next() {
        match byte {
            b'{' | b'[' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                while let Some(inner) = rest.next() {
                    match inner {
                        b'\\' => {
                            rest.next();
                        }
                        b'"' => break,
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    deepest
}

impl<'a, O: Into<Object<'a>>> Envelope<'a, O> {
    fn into_review(self) -> Result<Review<'a>, ReviewError> {
        if self.kind.0 != "AdmissionReview" {
            return Err(ReviewError::WrongKind);
        }
        if self.api_version.0 != "admission.k8s.io/v1" {
            return Err(ReviewError::WrongVersion);
        }
        let Members(request) = self.request.ok_or(ReviewError::Missing("request"))?;
        let (Members(kind), Members(plural)) = (request.kind, request.resource);
        let Members(user) = request.user_info;
        if request.uid.0.is_empty() {
            return Err(ReviewError::Missing("request.uid"));
        }
        if plural.resource.0.is_empty() {
            return Err(ReviewError::Missing("request.resource"));
        }
        let operation =
            Operation::parse(&request.operation.0).ok_or(ReviewError::UnknownOperation)?;
        let object: Option<Object<'a>> = request.object.open("request.object")?.map(O::into);
        let old = request.old_object.open("request.oldObject")?.map(O::into);
        let has_object = object.is_some();
        let text = |text: Option<Text<'a>>| text.unwrap_or_default().0;
        let groups = user.groups.unwrap_or_default();
        Ok(Review {
            uid: request.uid.0,
            kind_group: kind.group.0,
            kind: kind.kind.0,
            name: text(request.name),
            namespace: text(request.namespace),
            dry_run: request.dry_run.unwrap_or(false),
            has_object,
            subject: Subject {
                resource: Resource {
                    group: plural.group.0,
                    version: plural.version.0,
                    resource: plural.resource.0,
                },
                subresource: text(request.sub_resource),
                operation,
                writer: Writer {
                    user: user.username.0,
                    groups: groups.into_iter().map(|group| group.0).collect(),
                },
                object: object.unwrap_or_default(),
                old,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> ReviewError {
        Review::parse(text.as_bytes()).unwrap_err()
    }

    fn review(request: &str) -> String {
        format!(
            r#"{{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{request}}}"#
        )
    }

    #[test]
    fn each_kind_of_bad_input_has_its_own_sentence() {
        assert_eq!(error(""), ReviewError::Empty);
        assert_eq!(error(" \n"), ReviewError::Empty);
        assert_eq!(error("hello"), ReviewError::NotJson(1, 1));
        assert_eq!(error("[]"), ReviewError::NotAnObject);
        assert_eq!(error("{"), ReviewError::Truncated);
        assert_eq!(error("{}x"), ReviewError::NotJson(1, 3));
        assert_eq!(error("{}"), ReviewError::WrongKind);
        assert_eq!(error(r#"{"kind":5}"#), ReviewError::WrongType(1, 9));
        assert_eq!(error(r#"{"kind":"AdmissionReview"}"#), ReviewError::WrongVersion);
        assert_eq!(
            error(r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1beta1"}"#),
            ReviewError::WrongVersion
        );
        assert_eq!(error(&review("null")), ReviewError::Missing("request"));
        assert_eq!(error(&review("{}")), ReviewError::Missing("request.uid"));
        let request = r#"{"uid":"u","resource":{"resource":"r"},"operation":"#;
        assert_eq!(error(&review(&format!(r#"{request}"X"}}"#))), ReviewError::UnknownOperation);
        for object in ["5", "[]", "\"x\"", "true", "1.5"] {
            assert_eq!(
                error(&review(&format!(r#"{request}"UPDATE","object":{object}}}"#))),
                ReviewError::ObjectIsNone("request.object")
            );
        }
        assert_eq!(Review::parse(b"{\"\xff\"}").unwrap_err(), ReviewError::NotUtf8(2));
    }

    #[test]
    fn nesting_that_no_api_server_sends_is_refused_wherever_it_is() {
        let deep = format!("{}{}", "[".repeat(60_000), "]".repeat(60_000));
        assert_eq!(error(&deep), ReviewError::TooDeep);
        assert_eq!(error(&"{\"a\":".repeat(60_000)), ReviewError::TooDeep);
        let request = format!(r#"{{"uid":"u","object":{{"spec":{deep}}}}}"#);
        assert_eq!(error(&review(&request)), ReviewError::TooDeep);
        // Brackets in a text are no nesting.
        let text = format!(r#"{{"kind":"{}"}}"#, "[".repeat(60_000));
        assert_eq!(error(&text), ReviewError::WrongKind);
    }

    #[test]
    fn a_review_is_borrowed_and_its_unknown_members_are_skipped() {
        let text = review(
            r#"{"uid":"u","kind":{"group":"g","version":"v1","kind":"K"},
            "resource":{"group":"g","version":"v1","resource":"ks"},"subResource":"status",
            "requestKind":{},"name":"n","namespace":"s","operation":"UPDATE",
            "userInfo":{"username":"w","groups":["a","b"],"extra":{"x":["y"]}},
            "object":{"metadata":{"name":"n"},"status":{"phase":"Ready"}},"oldObject":null,
            "dryRun":true,"options":{"kind":"UpdateOptions"},"fromTheFuture":[1]}"#,
        );
        let review = Review::parse(text.as_bytes()).unwrap();
        assert!(matches!(review.uid, Cow::Borrowed("u")));
        assert!(review.has_object && review.dry_run && review.subject.old.is_none());
        assert_eq!(review.subject.writer.groups, ["a", "b"]);
        assert_eq!(review.identity().resource, "ks");
    }
}
