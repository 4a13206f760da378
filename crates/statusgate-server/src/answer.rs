//! An answer, which counts in the budgets until it is written.

use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::response::Response;

use super::budget::Share;
use super::rejection::{Overload, Rejection};
use statusgate_core::admit::Reply;

/// What a request holds from its head to the last byte of its answer.
#[derive(Debug)]
pub(super) struct Held {
    /// One of the requests in flight.
    pub(super) _request: Share,
    /// The memory of its body, then of its answer.
    pub(super) bytes: Share,
}

/// A body that keeps a value until hyper has written its last byte. A peer that does not read keeps both.
pub(super) fn body_with<T: Send + Sync + 'static>(bytes: Vec<u8>, held: T) -> Body {
    struct Unwritten<T> {
        bytes: Vec<u8>,
        _held: T,
    }
    impl<T> AsRef<[u8]> for Unwritten<T> {
        fn as_ref(&self) -> &[u8] {
            &self.bytes
        }
    }
    Body::from(Bytes::from_owner(Unwritten { bytes, _held: held }))
}

/// The response to a request whose body is dropped.
pub(super) fn respond(reply: Reply, mut held: Held) -> Result<Response, Rejection> {
    let Reply { status, body } = reply;
    if !held.bytes.resize(body.capacity()) {
        return Err(Rejection::Overloaded(Overload::Bytes));
    }
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let content_type = match status {
        StatusCode::OK => "application/json",
        _ => "text/plain; charset=utf-8",
    };
    let mut response = Response::new(body_with(body, held));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    Ok(response)
}
