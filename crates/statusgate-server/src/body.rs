//! Reads a request body within its limits of size, time and memory.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use http_body_util::BodyExt;
use tokio::time::timeout;

use super::budget::{Budget, Share};
use super::rejection::{Overload, Rejection};

/// The limits of request bodies.
#[derive(Debug)]
pub(super) struct BodyLimits {
    /// Bytes of one body.
    pub(super) bytes: usize,
    /// Bytes of all bodies and of all answers together.
    pub(super) held: Arc<Budget>,
    /// Time for a complete body.
    pub(super) timeout: Duration,
}

/// Reads a complete body. Returns it with its share of the memory for bodies.
///
/// `expects_continue`: the client sent `Expect: 100-continue`.
pub(super) async fn read(
    mut body: Body,
    expects_continue: bool,
    limits: &BodyLimits,
) -> Result<(Bytes, Share), Rejection> {
    if body.size_hint().exact().is_some_and(|announced| announced > limits.bytes as u64) {
        let rejection = Rejection::TooLarge(limits.bytes);
        discard_unread(body, expects_continue, rejection).await;
        return Err(rejection);
    }
    // `timeout` polls the body before it starts its timer, so a body that arrived with its head,
    // as small ones do, costs no timer.
    let received = timeout(limits.timeout, collect(&mut body, limits)).await;
    let received = received.unwrap_or(Err(Rejection::Slow));
    if let Err(rejection @ (Rejection::TooLarge(_) | Rejection::Overloaded(_))) = received {
        discard(body, rejection).await;
    }
    received
}

/// Discards a body of which nothing was read. A client that sent `Expect: 100-continue` has not sent it, and does
/// not after a rejection.
pub(super) async fn discard_unread(body: Body, expects_continue: bool, rejection: Rejection) {
    if !expects_continue {
        discard(body, rejection).await;
    }
}

/// Reads and drops the rest of a body, within limits.
///
/// Closing a socket with unread bytes sends a reset, and a reset discards the response on its way to
/// the client. A 503 would become a broken connection, which the API server does not retry.
async fn discard(mut body: Body, rejection: Rejection) {
    let mut left = DISCARDED_BYTES;
    let reading = async {
        while let Some(Ok(frame)) = body.frame().await {
            let bytes = frame.data_ref().map_or(0, Bytes::len);
            let Some(rest) = left.checked_sub(bytes) else { break };
            left = rest;
        }
    };
    if timeout(DISCARD_TIMEOUT, reading).await.is_err() {
        tracing::debug!(?rejection, "responded before the end of the body");
    }
}

async fn collect(body: &mut Body, limits: &BodyLimits) -> Result<(Bytes, Share), Rejection> {
    // The share grows with the received bytes: a client that announces 8 MiB and sends nothing must
    // not use up the memory of others.
    let mut share = limits.held.take(0).ok_or(Rejection::Overloaded(Overload::Bytes))?;
    // A single part needs no copy.
    let (mut only, mut many) = (Bytes::new(), Vec::<u8>::new());
    let mut length = 0;
    let announced = body.size_hint().exact().and_then(|length| usize::try_from(length).ok());
    let announced = announced.unwrap_or(limits.bytes);
    while let Some(frame) = body.frame().await {
        // The client closed the connection or sent invalid chunks.
        let frame = frame.map_err(|_| Rejection::Incomplete)?;
        // Ignore trailers.
        let Ok(part) = frame.into_data() else { continue };
        length += part.len();
        if length > limits.bytes {
            return Err(Rejection::TooLarge(limits.bytes));
        }
        if !share.grow(part.len()) {
            return Err(Rejection::Overloaded(Overload::Bytes));
        }
        if length == part.len() {
            only = part;
            continue;
        }
        if many.capacity() < length {
            many.reserve_exact(reserved(length, announced) - many.len());
        }
        many.extend_from_slice(&std::mem::take(&mut only));
        many.extend_from_slice(&part);
    }
    let bytes = if many.is_empty() { only } else { many.into() };
    Ok((bytes, share))
}

/// The bytes to reserve for a body that has arrived up to this length. The budget counts what has arrived, so
/// address space for the announced length would have no limit: 24 MiB could reserve 192 MiB.
fn reserved(length: usize, announced: usize) -> usize {
    announced.min(RESERVED_BYTES.max(2 * length)).max(length)
}

/// Of an announced length, so much is reserved at first. With 8 MiB, the requests in flight would reserve 2 GiB.
const RESERVED_BYTES: usize = 1 << 20;

/// Twice the default body limit.
const DISCARDED_BYTES: usize = 16 << 20;

const DISCARD_TIMEOUT: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_body_reserves_at_most_twice_what_has_arrived() {
        const ANNOUNCED: usize = 8 << 20;
        assert_eq!(reserved(40_000, 180_000), 180_000);
        assert_eq!(reserved(40_000, ANNOUNCED), RESERVED_BYTES);
        assert_eq!(reserved(RESERVED_BYTES + 1, ANNOUNCED), 2 * RESERVED_BYTES + 2);
        assert_eq!(reserved(ANNOUNCED - 1, ANNOUNCED), ANNOUNCED);
        assert_eq!(reserved(ANNOUNCED, 5), ANNOUNCED);
    }
}
