//! Memory for the trees of reviews and documents, which are larger than their text.
//!
//! As many are judged at once as fit. Others wait in the order of their arrival, and then get a 503,
//! which the API server retries on another connection and so perhaps at another replica.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::answer::Held;
use super::rejection::{Overload, Rejection};

/// The memory that is left.
#[derive(Debug)]
pub(super) struct TreeMemory {
    /// In KiB. Its permits are given in the order of the requests.
    left: Arc<Semaphore>,
    all: usize,
    patience: Duration,
}

/// The memory of one judgement.
#[derive(Debug)]
pub(super) struct Reserved {
    _permit: Option<OwnedSemaphorePermit>,
}

impl TreeMemory {
    pub(super) fn new(bytes: usize, patience: Duration) -> Self {
        let all = bytes >> 10;
        Self { left: Arc::new(Semaphore::new(all)), all, patience }
    }

    /// Waits for the memory of a review with a body of this length.
    pub(super) async fn of_review(&self, length: usize) -> Result<Reserved, Rejection> {
        if length <= SMALL_BODY {
            return Ok(Reserved { _permit: None });
        }
        self.reserve(length.saturating_mul(PER_BYTE).min(MOST)).await
    }

    /// Waits for the memory of a document.
    pub(super) async fn of_document(&self) -> Result<Reserved, Rejection> {
        self.reserve(MOST).await
    }

    async fn reserve(&self, bytes: usize) -> Result<Reserved, Rejection> {
        // What needs more than there is runs alone.
        let amount = u32::try_from((bytes >> 10).min(self.all)).unwrap_or(u32::MAX);
        let permit =
            timeout(self.patience, Arc::clone(&self.left).acquire_many_owned(amount)).await;
        match permit {
            Ok(Ok(permit)) => Ok(Reserved { _permit: Some(permit) }),
            _ => Err(Rejection::Overloaded(Overload::Bytes)),
        }
    }
}

impl Reserved {
    /// Runs a judgement on another thread, so that the other connections of this worker continue.
    /// `block_in_place` would panic in a single-threaded runtime.
    ///
    /// The thread owns the body and all memory: if the client leaves, they stay until it ends.
    pub(super) async fn run<T: Send + 'static>(
        self,
        body: Bytes,
        held: Held,
        judge: impl FnOnce(&[u8]) -> T + Send + 'static,
    ) -> Result<(T, Held), Rejection> {
        let judge = move || {
            let judged = judge(&body);
            drop((body, self));
            (judged, held)
        };
        tokio::task::spawn_blocking(judge).await.map_err(|failed| match failed.try_into_panic() {
            // Continue the panic here: the connection turns it into a 500.
            Ok(payload) => std::panic::resume_unwind(payload),
            // The runtime is shutting down.
            Err(_) => Rejection::Overloaded(Overload::Requests),
        })
    }
}

/// Reviews up to this size are judged without a reservation: a worker judges one at a time.
const SMALL_BODY: usize = 16 << 10;

/// Bytes of a tree for a byte of text: an element `0,` of a list needs 32 to 64.
const PER_BYTE: usize = 32;

/// The largest tree has 200,000 values, and a review has two.
const MOST: usize = 32 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn as_many_reviews_run_as_fit_and_others_wait_for_a_bounded_time() {
        let memory = TreeMemory::new(4 << 20, Duration::from_millis(20));
        let half = (2 << 20) / PER_BYTE;
        let (first, second) = (memory.of_review(half).await, memory.of_review(half).await);
        let rejection = Rejection::Overloaded(Overload::Bytes);
        assert_eq!(memory.of_review(half).await.err(), Some(rejection));
        assert!(memory.of_review(SMALL_BODY).await.is_ok());
        drop(first);
        assert!(memory.of_review(half).await.is_ok());
        drop(second);
        assert!(memory.of_document().await.is_ok(), "it needs more than all, and runs alone");
    }

    #[tokio::test]
    async fn a_large_review_is_next_even_if_small_ones_would_fit() {
        let memory = TreeMemory::new(4 << 20, Duration::from_secs(3600));
        let half = memory.of_review((2 << 20) / PER_BYTE).await;
        let mut large = std::pin::pin!(memory.of_document());
        let waits = timeout(Duration::from_millis(1), large.as_mut()).await;
        assert!(waits.is_err());
        let mut later = std::pin::pin!(memory.of_review(2 * SMALL_BODY));
        assert!(timeout(Duration::from_millis(1), later.as_mut()).await.is_err());
        drop(half);
        drop(large.await);
        assert!(later.await.is_ok());
    }
}
