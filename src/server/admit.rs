//! One review, judged: bytes in, bytes out, the same for the network and for `statusgate review`.

use jiff::Timestamp;

use crate::engine::{Verdict, decide};
use crate::model::{Operation, Webhook};
use crate::policy::PolicySet;
use crate::wire::{Identity, Review, ReviewError, answer};

/// What to send back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// 200, or 400 for bytes that are no review.
    pub status: u16,
    /// JSON with 200, one plain sentence with 400.
    pub body: Vec<u8>,
}

/// Judges one review.
///
/// `observe` is called once for a review that could be read, before the reply is written: for the
/// log and the metrics, which are not this function's business.
pub fn admit(
    policies: &PolicySet,
    webhook: Webhook,
    body: &[u8],
    now: Timestamp,
    observe: impl FnOnce(&Identity<'_>, &Verdict<'_>),
) -> Reply {
    let review = match Review::parse(body) {
        Ok(review) => review,
        Err(error) => return Reply::bad(&error),
    };
    let verdict = decide(policies, &review.subject, webhook, now);
    let judged = !verdict.policies.is_empty();
    if judged && !review.has_object && review.subject.operation != Operation::Delete {
        return Reply::bad(&ReviewError::Missing("request.object"));
    }
    observe(&review.identity(), &verdict);
    match answer(&review, &verdict) {
        Ok(body) => Reply { status: 200, body },
        Err(_) => Reply { status: 500, body: b"the answer could not be written".to_vec() },
    }
}

impl Reply {
    fn bad(error: &ReviewError) -> Self {
        Self { status: 400, body: error.to_string().into_bytes() }
    }
}
