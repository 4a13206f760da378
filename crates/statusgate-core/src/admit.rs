//! Answers one AdmissionReview. The server and `statusgate review` share this function.

use jiff::Timestamp;

use crate::engine::{Verdict, decide};
use crate::model::{Operation, Webhook};
use crate::policy::PolicySet;
use crate::wire::{AdmissionRequest, ReviewError, respond};

/// The HTTP response to a review.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// 200 for a review, 400 for anything else, 500 for a bug in statusgate.
    pub status: u16,
    /// JSON with 200, otherwise one plain sentence.
    pub body: Vec<u8>,
}

/// Judges one review.
///
/// Calls `observe` once for a readable review, before the reply is written. Callers log and count
/// there.
pub fn admit(
    policies: &PolicySet,
    webhook: Webhook,
    body: &[u8],
    now: Timestamp,
    observe: impl FnOnce(&AdmissionRequest<'_>, &Verdict<'_>),
) -> Reply {
    let request = match AdmissionRequest::parse(body) {
        Ok(request) => request,
        Err(error) => return Reply::bad_request(&error),
    };
    let verdict = decide(policies, &request.subject, webhook, now);
    let selected = !verdict.policies.is_empty();
    if selected && !request.has_object && request.subject.operation != Operation::Delete {
        return Reply::bad_request(&ReviewError::Missing("request.object"));
    }
    observe(&request, &verdict);
    Reply::of(respond(&request, &verdict))
}

impl Reply {
    /// A response.
    pub fn of<E>(response: Result<Vec<u8>, E>) -> Self {
        let failed = b"the response could not be written: a bug in statusgate";
        match response {
            Ok(body) => Self { status: 200, body },
            Err(_) => Self { status: 500, body: failed.to_vec() },
        }
    }

    /// The answer to an invalid review.
    pub fn bad_request(error: &ReviewError) -> Self {
        Self { status: 400, body: error.to_string().into_bytes() }
    }
}
