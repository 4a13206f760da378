//! Reads a request body: whole, in time, and within what may be held; and leaves nothing behind.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use http_body_util::BodyExt;
use memmap2::MmapMut;
use tokio::time::timeout;

use super::budget::{Budget, Share};
use super::refusal::{Overload, Refusal};

/// What a body may take.
#[derive(Debug)]
pub(super) struct BodyLimits {
    /// One body.
    pub(super) bytes: usize,
    /// All bodies together.
    pub(super) held: Arc<Budget>,
    /// For the whole of it.
    pub(super) timeout: Duration,
}

/// A whole body, and its share of the memory for bodies.
#[derive(Debug)]
pub(super) struct Whole {
    pub(super) bytes: Bytes,
    _share: Share,
}

/// Reads a body to its end.
///
/// `waits` says that the client sent `Expect: 100-continue`: it holds its body back until it is
/// read from, and so can be refused without having sent anything.
pub(super) async fn read(
    mut body: Body,
    waits: bool,
    limits: &BodyLimits,
) -> Result<Whole, Refusal> {
    let announced = body.size_hint().exact();
    let limit = limits.bytes as u64;
    let reading = async {
        if announced.is_some_and(|announced| announced > limit) {
            return Err(Refusal::TooLarge);
        }
        collect(&mut body, limits).await
    };
    // `timeout` polls the body before it arms its timer: a body that came with its head, which is
    // the usual case for small ones, costs no timer.
    let read = timeout(limits.timeout, reading).await.unwrap_or(Err(Refusal::Slow));
    if let Err(refusal @ (Refusal::TooLarge | Refusal::Overloaded(_))) = read
        && !waits
    {
        discard(body, refusal).await;
    }
    read
}

/// Takes the rest of a body off the wire, without keeping it.
///
/// Closing a socket with unread bytes in it makes the kernel send a reset, and a reset throws away
/// the answer on its way to the client: a 503 would look like a broken connection, which the API
/// server does not retry. So the client is let finish, within limits.
pub(super) async fn discard(mut body: Body, refusal: Refusal) {
    let mut left = DISCARDED_BYTES;
    let reading = async {
        while let Some(Ok(frame)) = body.frame().await {
            let bytes = frame.data_ref().map_or(0, Bytes::len);
            let Some(rest) = left.checked_sub(bytes) else { break };
            left = rest;
        }
    };
    if timeout(DISCARD_TIMEOUT, reading).await.is_err() {
        tracing::debug!(?refusal, "answered before the end of the body");
    }
}

async fn collect(body: &mut Body, limits: &BodyLimits) -> Result<Whole, Refusal> {
    // By what has come, not by what was announced: a client that announces 8 MiB and sends nothing
    // must not take them from the others.
    let mut share = limits.held.take(0).ok_or(Refusal::Overloaded(Overload::Bytes))?;
    let mut whole = Parts::None;
    let mut length = 0;
    // Room for all of it at once; without a length, for the largest it may be.
    let room = body
        .size_hint()
        .exact()
        .map_or(limits.bytes, |length| usize::try_from(length).unwrap_or(limits.bytes));
    while let Some(frame) = body.frame().await {
        // A read error here is the client's: it closed, or its chunks are no chunks.
        let frame = frame.map_err(|_| Refusal::Incomplete)?;
        // Trailers say nothing to us.
        let Ok(part) = frame.into_data() else { continue };
        length += part.len();
        if length > limits.bytes {
            return Err(Refusal::TooLarge);
        }
        if !share.grow(part.len()) {
            return Err(Refusal::Overloaded(Overload::Bytes));
        }
        // Too little address space is too little memory.
        whole = whole.and(&part, room).map_err(|_| Refusal::Overloaded(Overload::Bytes))?;
    }
    Ok(Whole { bytes: whole.into(), _share: share })
}

/// What has come of a body. One part needs no copy.
enum Parts {
    None,
    One(Bytes),
    Many(Vec<u8>),
    Large(MmapMut, usize),
}

impl Parts {
    fn and(self, part: &Bytes, room: usize) -> io::Result<Self> {
        Ok(match self {
            Self::None => Self::One(part.clone()),
            Self::One(first) if room > LARGE_BYTES => {
                Self::Large(MmapMut::map_anon(room)?, 0).and(&first, room)?.and(part, room)?
            }
            Self::One(first) => {
                let mut many = Vec::with_capacity(room);
                many.extend_from_slice(&first);
                many.extend_from_slice(part);
                Self::Many(many)
            }
            Self::Many(mut many) => {
                many.extend_from_slice(part);
                Self::Many(many)
            }
            Self::Large(mut map, length) => {
                let end = length + part.len();
                let place = map.get_mut(length..end).ok_or(io::ErrorKind::FileTooLarge)?;
                place.copy_from_slice(part);
                Self::Large(map, end)
            }
        })
    }
}

impl From<Parts> for Bytes {
    fn from(parts: Parts) -> Self {
        match parts {
            Parts::None => Self::new(),
            Parts::One(part) => part,
            Parts::Many(many) => many.into(),
            Parts::Large(map, length) => Self::from_owner(map).slice(..length),
        }
    }
}

/// Larger bodies get a memory map of their own and not a piece of the heap. glibc would take them
/// for the normal size from then on and keep the freed memory for the next: after a burst of 8 MiB
/// bodies 120 MB stayed, and a server limited to 64 MB would be dead. A map is gone when it is
/// dropped, whatever the allocator; pages of it that nothing was written to never existed.
pub(super) const LARGE_BYTES: usize = 256 << 10;

/// Twice the body limit: enough for honest mistakes, an end for the others.
const DISCARDED_BYTES: usize = 16 << 20;

/// A second is what an answered client may still keep us busy with.
const DISCARD_TIMEOUT: Duration = Duration::from_secs(1);
