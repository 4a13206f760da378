//! A fixed number of writers with a short queue.
//!
//! Because of the queue, a writer starts the next object at once, and does not wait until the listing
//! task has recorded the last one. On a busy machine this wait is as long as a write.

use std::sync::Arc;

use tokio::sync::{Mutex, mpsc};
use tokio::task::{JoinError, JoinSet};

use super::Target;
use super::judge::Judged;
use super::write::{Shared, Written};

/// The writers and their queue.
pub(super) struct Writers {
    jobs: mpsc::Sender<Job>,
    results: mpsc::Receiver<Written>,
    tasks: JoinSet<()>,
    under_way: usize,
    most: usize,
}

type Job = (Arc<Target>, Judged);

impl Writers {
    /// Starts this number of writers.
    pub(super) fn start(shared: &Arc<Shared>, concurrency: usize) -> Self {
        let concurrency = concurrency.max(1);
        // As many objects in the queue as in progress.
        let most = 2 * concurrency;
        let (jobs, queue) = mpsc::channel(most);
        let (sender, results) = mpsc::channel(most);
        let queue = Arc::new(Mutex::new(queue));
        let mut tasks = JoinSet::new();
        for _ in 0..concurrency {
            tasks.spawn(work(Arc::clone(shared), Arc::clone(&queue), sender.clone()));
        }
        Self { jobs, results, tasks, under_way: 0, most }
    }

    /// Whether the queue is full.
    pub(super) const fn are_busy(&self) -> bool {
        self.under_way >= self.most
    }

    /// Whether no object is queued or in progress.
    pub(super) const fn are_idle(&self) -> bool {
        self.under_way == 0
    }

    /// Queues an object. The queue must not be full.
    pub(super) async fn take(&mut self, target: Arc<Target>, judged: Judged) {
        // It fails only if the writers panicked; `next` returns this error.
        let _ = self.jobs.send((target, judged)).await;
        self.under_way += 1;
    }

    /// Waits for the next written object; forever if idle.
    ///
    /// # Errors
    /// When a writer panicked.
    pub(super) async fn next(&mut self) -> Result<Written, JoinError> {
        if self.are_idle() {
            std::future::pending::<()>().await;
        }
        tokio::select! {
            // Results first: a writer that panicked may have left some.
            biased;
            Some(written) = self.results.recv() => {
                self.under_way -= 1;
                Ok(written)
            }
            Some(Err(error)) = self.tasks.join_next() => Err(error),
        }
    }
}

async fn work(
    shared: Arc<Shared>,
    queue: Arc<Mutex<mpsc::Receiver<Job>>>,
    results: mpsc::Sender<Written>,
) {
    loop {
        let job = queue.lock().await.recv().await;
        let Some((target, judged)) = job else { return };
        if results.send(Arc::clone(&shared).write(target, judged).await).await.is_err() {
            return;
        }
    }
}
