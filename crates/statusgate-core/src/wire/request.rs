//! The request of an AdmissionReview, borrowed from its bytes.

use std::borrow::Cow;

use crate::model::{Operation, ReadError, Subject, read};

use super::review::AdmissionReview;

/// The limit of Go's `encoding/json` and so of the API server.
const MAX_DEPTH: usize = 10_000;

/// The request of an AdmissionReview.
#[derive(Debug, Default)]
pub struct AdmissionRequest<'a> {
    /// The uid, which the response repeats.
    pub uid: Cow<'a, str>,
    /// The group of the kind.
    pub kind_group: Cow<'a, str>,
    /// The kind.
    pub kind: Cow<'a, str>,
    /// The object's name; empty if the API server generates it later.
    pub name: Cow<'a, str>,
    /// The object's namespace; empty for cluster-scoped objects.
    pub namespace: Cow<'a, str>,
    /// Whether the API server stores nothing.
    pub dry_run: bool,
    /// Whether there is a new object; a deletion has none.
    pub has_object: bool,
    /// The input for the engine.
    pub subject: Subject<'a>,
}

/// Why bytes are not an AdmissionReview. The text names locations, never content.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReviewError {
    /// There are no bytes.
    #[error("the body is empty")]
    Empty,
    /// The bytes are not text.
    #[error("the body is not UTF-8 from byte {0} on")]
    NotUtf8(usize),
    /// The nesting is deeper than an API server sends.
    #[error("the body is nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// The text is not JSON.
    #[error("the body is not JSON at line {0}, column {1}")]
    NotJson(usize, usize),
    /// The JSON ends too early.
    #[error("the body ends in the middle of a JSON value")]
    Truncated,
    /// The JSON is not an object.
    #[error("the body is not a JSON object")]
    NotAnObject,
    /// A member has the wrong type.
    #[error(
        "the body is not an AdmissionReview: a member has the wrong type or value at line {0}, column {1}"
    )]
    WrongType(usize, usize),
    /// The document has another kind.
    #[error("the body is not an AdmissionReview: kind has another value")]
    WrongKind,
    /// The review has another version.
    #[error("apiVersion must be admission.k8s.io/v1")]
    WrongVersion,
    /// A required member is missing.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// The operation does not exist.
    #[error("request.operation must be CREATE, UPDATE, DELETE or CONNECT")]
    UnknownOperation,
}

impl<'a> AdmissionRequest<'a> {
    /// Reads an AdmissionReview.
    ///
    /// # Errors
    /// Bytes that are not an AdmissionReview.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ReviewError> {
        // One pass here saves a check of each string later.
        let text = simdutf8::compat::from_utf8(bytes)
            .map_err(|error| ReviewError::NotUtf8(error.valid_up_to()))?;
        match read(text, AdmissionReview::read) {
            Ok(review) => review.into_request(),
            Err(_) if text.trim_ascii().is_empty() => Err(ReviewError::Empty),
            Err(_) if depth_of(bytes) > MAX_DEPTH => Err(ReviewError::TooDeep),
            Err(ReadError::NotJson(error)) if error.is_eof() => Err(ReviewError::Truncated),
            Err(ReadError::NotJson(error)) => {
                Err(ReviewError::NotJson(error.line(), error.column()))
            }
            // `[]` is JSON, but `hello` is not.
            Err(_) if !text.trim_ascii_start().starts_with('{') => Err(ReviewError::NotAnObject),
            Err(ReadError::Unexpected { line, column }) => {
                Err(ReviewError::WrongType(line, column))
            }
        }
    }
}

/// The number of levels of brackets outside of strings.
pub fn depth_of(bytes: &[u8]) -> usize {
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

impl<'a> AdmissionReview<'a> {
    fn into_request(self) -> Result<AdmissionRequest<'a>, ReviewError> {
        if self.kind != "AdmissionReview" {
            return Err(ReviewError::WrongKind);
        }
        if self.api_version != "admission.k8s.io/v1" {
            return Err(ReviewError::WrongVersion);
        }
        let (mut request, operation) = self.request.ok_or(ReviewError::Missing("request"))?;
        if request.uid.is_empty() {
            return Err(ReviewError::Missing("request.uid"));
        }
        if request.subject.resource.resource.is_empty() {
            return Err(ReviewError::Missing("request.resource"));
        }
        request.subject.operation =
            Operation::parse(&operation).ok_or(ReviewError::UnknownOperation)?;
        request.subject = request.subject.as_stored();
        Ok(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> ReviewError {
        AdmissionRequest::parse(text.as_bytes()).unwrap_err()
    }

    fn review(request: &str) -> String {
        format!(
            r#"{{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{request}}}"#
        )
    }

    #[test]
    fn each_invalid_input_has_its_own_error() {
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
            let error = error(&review(&format!(r#"{request}"UPDATE","object":{object}}}"#)));
            assert!(matches!(error, ReviewError::WrongType(..)), "{object}: {error}");
        }
        assert_eq!(AdmissionRequest::parse(b"{\"\xff\"}").unwrap_err(), ReviewError::NotUtf8(2));
    }

    #[test]
    fn deep_nesting_is_rejected_everywhere() {
        let deep = format!("{}{}", "[".repeat(60_000), "]".repeat(60_000));
        assert_eq!(error(&deep), ReviewError::TooDeep);
        assert_eq!(error(&"{\"a\":".repeat(60_000)), ReviewError::TooDeep);
        let request = format!(r#"{{"uid":"u","object":{{"spec":{deep}}}}}"#);
        assert_eq!(error(&review(&request)), ReviewError::TooDeep);
        // Brackets in a string are not nesting.
        let text = format!(r#"{{"kind":"{}"}}"#, "[".repeat(60_000));
        assert_eq!(error(&text), ReviewError::WrongKind);
    }

    #[test]
    fn a_request_is_borrowed_and_its_unknown_members_are_skipped() {
        let text = review(
            r#"{"uid":"u","kind":{"group":"g","version":"v1","kind":"K"},
            "resource":{"group":"g","version":"v1","resource":"ks"},"subResource":"status",
            "requestKind":{},"name":"n","namespace":"s","operation":"UPDATE",
            "userInfo":{"username":"w","groups":["a","b"],"extra":{"x":["y"]}},
            "object":{"metadata":{"name":"n"},"status":{"phase":"Ready"}},"oldObject":null,
            "dryRun":true,"options":{"kind":"UpdateOptions"},"fromTheFuture":[1]}"#,
        );
        let request = AdmissionRequest::parse(text.as_bytes()).unwrap();
        assert!(matches!(request.uid, Cow::Borrowed("u")));
        assert!(request.has_object && request.dry_run && request.subject.old.is_none());
        assert_eq!(request.subject.writer.groups, ["a", "b"]);
        assert_eq!(request.subject.resource.resource, "ks");
    }
}
