//! A fixed number of concurrent writes, and a short queue.
//!
//! Because of the queue, the next write starts at once, and does not wait until the listing task has
//! recorded the last one. On a busy machine this wait is as long as a write.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::{JoinError, JoinSet};

use super::Target;
use super::judge::Proposal;
use super::write::{Shared, WriteResult};

/// The writes in progress and in the queue.
pub(super) struct Writers {
    shared: Arc<Shared>,
    /// Fair: objects are written in the order of the queue.
    turns: Arc<Semaphore>,
    tasks: JoinSet<WriteResult>,
    most: usize,
}

impl Writers {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        let concurrency = shared.plan.concurrency.max(1);
        let turns = Arc::new(Semaphore::new(concurrency));
        // As many objects in the queue as in progress.
        Self { shared, turns, tasks: JoinSet::new(), most: 2 * concurrency }
    }

    /// Whether the queue is full.
    pub(super) fn are_busy(&self) -> bool {
        self.tasks.len() >= self.most
    }

    /// Whether no object is queued or in progress.
    pub(super) fn are_idle(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Queues an object. The queue must not be full.
    pub(super) fn take(&mut self, target: Arc<Target>, judged: Proposal) {
        let (shared, turns) = (Arc::clone(&self.shared), Arc::clone(&self.turns));
        self.tasks.spawn(async move {
            // The semaphore is never closed.
            let _turn = turns.acquire().await;
            shared.write(&target, judged).await
        });
    }

    /// Waits for the next written object; forever if idle.
    ///
    /// # Errors
    /// When a write panicked.
    pub(super) async fn next(&mut self) -> Result<WriteResult, JoinError> {
        match self.tasks.join_next().await {
            Some(written) => written,
            None => std::future::pending().await,
        }
    }
}
