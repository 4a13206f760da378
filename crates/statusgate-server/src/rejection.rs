//! HTTP responses without a review: a status code, one plain sentence, and headers for the client.
//!
//! The body is plain text because its readers are people with curl and the API server, which quotes
//! it in its error message. A rejection is not a *denial*: the API server counts it as a failed
//! call and applies `failurePolicy`.

use std::borrow::Cow;

use axum::http::header::{ALLOW, CONNECTION, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};

/// Why a request gets no review.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rejection {
    /// Unknown path.
    NotFound,
    /// The method is not POST.
    MethodNotAllowed,
    /// The body ended before its announced length.
    Incomplete,
    /// The body did not arrive in time.
    Slow,
    /// The body is larger than this limit in bytes.
    TooLarge(usize),
    /// Too much load at once.
    Overloaded(Overload),
    /// The handler panicked: a bug in statusgate.
    Panicked,
}

/// The exhausted budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Overload {
    /// Concurrent requests.
    Requests,
    /// Bytes of request bodies.
    Bytes,
}

impl Overload {
    /// The name in metrics.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Bytes => "bytes",
        }
    }
}

impl Rejection {
    fn status_and_sentence(self) -> (StatusCode, Cow<'static, str>) {
        let (status, sentence) = match self {
            Self::NotFound => (StatusCode::NOT_FOUND, "unknown path; use /mutate or /validate"),
            Self::MethodNotAllowed => (StatusCode::METHOD_NOT_ALLOWED, "use the method POST"),
            Self::Incomplete => {
                (StatusCode::BAD_REQUEST, "the request body ended before its announced length")
            }
            Self::Slow => (StatusCode::REQUEST_TIMEOUT, "the request body did not arrive in time"),
            Self::TooLarge(limit) => {
                let sentence = format!("the request body is larger than {limit} bytes");
                return (StatusCode::PAYLOAD_TOO_LARGE, sentence.into());
            }
            Self::Overloaded(_) => (
                StatusCode::SERVICE_UNAVAILABLE,
                "too many requests at once; try again in a second",
            ),
            Self::Panicked => (
                StatusCode::INTERNAL_SERVER_ERROR,
                "the request could not be answered: a bug in statusgate",
            ),
        };
        (status, sentence.into())
    }
}

impl IntoResponse for Rejection {
    fn into_response(self) -> Response {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        match self {
            Self::MethodNotAllowed => {
                headers.insert(ALLOW, HeaderValue::from_static("POST"));
            }
            Self::Overloaded(_) => {
                // The API server's client retries a 503 that has an integer Retry-After. With
                // `close` it retries on a new connection, which may lead to another replica.
                headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
                headers.insert(CONNECTION, HeaderValue::from_static("close"));
            }
            // The rest of the body may still arrive, and hyper would parse it as the next head.
            Self::Incomplete | Self::Slow | Self::TooLarge(_) => {
                headers.insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Self::NotFound | Self::Panicked => {}
        }
        let (status, sentence) = self.status_and_sentence();
        (status, headers, sentence).into_response()
    }
}
