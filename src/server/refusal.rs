//! Every answer that is not a review: a code, one plain sentence, and what the client should do.
//!
//! Plain text because its readers are a person with curl and the API server's error message, which
//! quotes the body as it is. None of these is a *denial*: the API server counts them as a failed
//! call and lets `failurePolicy` decide.

use axum::http::header::{ALLOW, CONNECTION, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};

use crate::telemetry::Code;

/// Why a request got no review back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// No such path.
    NotFound,
    /// Not a POST.
    MethodNotAllowed,
    /// The client stopped in the middle of its body.
    Incomplete,
    /// The body did not come in time.
    Slow,
    /// The body is larger than accepted.
    TooLarge,
    /// Too much at once.
    Overloaded(Overload),
    /// A bug of ours.
    Panicked,
}

/// What there was too much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Overload {
    /// Requests at once.
    Requests,
    /// Bytes of request bodies at once.
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

impl Refusal {
    /// The code it is counted under; none for what is not a webhook path.
    pub(super) const fn code(self) -> Option<Code> {
        Some(match self {
            Self::NotFound => return None,
            Self::MethodNotAllowed => Code::MethodNotAllowed,
            Self::Incomplete => Code::BadRequest,
            Self::Slow => Code::Timeout,
            Self::TooLarge => Code::TooLarge,
            Self::Overloaded(_) => Code::Overloaded,
            Self::Panicked => Code::Internal,
        })
    }

    const fn status(self) -> StatusCode {
        match self {
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::Incomplete => StatusCode::BAD_REQUEST,
            Self::Slow => StatusCode::REQUEST_TIMEOUT,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Overloaded(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Panicked => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    const fn sentence(self) -> &'static str {
        match self {
            Self::NotFound => "there is nothing here; reviews are posted to /mutate and /validate",
            Self::MethodNotAllowed => "reviews are sent with POST",
            Self::Incomplete => "the request body ended before its announced length",
            Self::Slow => "the request body did not arrive in time",
            Self::TooLarge => "the request body is larger than the 8 MiB that are accepted",
            Self::Overloaded(_) => "too many requests at once; try again in a second",
            Self::Panicked => "the server has a bug and could not answer this request",
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        match self {
            Self::MethodNotAllowed => {
                headers.insert(ALLOW, HeaderValue::from_static("POST"));
            }
            Self::Overloaded(_) => {
                // The API server's client retries a 503 with an integer Retry-After, and on a new
                // connection, which may lead to another replica, when told to close this one.
                headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
                headers.insert(CONNECTION, HeaderValue::from_static("close"));
            }
            // The rest of the body may still be on its way; the next request's head would be
            // looked for in it.
            Self::Incomplete | Self::Slow | Self::TooLarge => {
                headers.insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Self::NotFound | Self::Panicked => {}
        }
        (self.status(), headers, self.sentence()).into_response()
    }
}
