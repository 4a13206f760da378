//! A fixed number of writers behind a short queue.
//!
//! The queue is why there is one: a writer that is done takes the next object at once, and does not
//! wait until the task that lists and judges has noted the last one and come round to the next. On a
//! busy machine that wait is as long as a write.

use std::sync::Arc;

use tokio::sync::{Mutex, mpsc};
use tokio::task::{JoinError, JoinSet};

use super::Target;
use super::judge::Judged;
use super::write::{Desk, Written};

/// What is to be written, and who writes it.
pub(super) struct Writers {
    jobs: mpsc::Sender<Job>,
    results: mpsc::Receiver<Written>,
    tasks: JoinSet<()>,
    under_way: usize,
    most: usize,
}

type Job = (Arc<Target>, Judged);

impl Writers {
    /// Writes so many objects at a time.
    pub(super) fn start(desk: &Arc<Desk>, concurrency: usize) -> Self {
        let concurrency = concurrency.max(1);
        // As many waiting as there are being written.
        let most = 2 * concurrency;
        let (jobs, queue) = mpsc::channel(most);
        let (sender, results) = mpsc::channel(most);
        let queue = Arc::new(Mutex::new(queue));
        let mut tasks = JoinSet::new();
        for _ in 0..concurrency {
            tasks.spawn(work(Arc::clone(desk), Arc::clone(&queue), sender.clone()));
        }
        Self { jobs, results, tasks, under_way: 0, most }
    }

    /// Whether one has to wait before there is room for another object.
    pub(super) const fn are_busy(&self) -> bool {
        self.under_way >= self.most
    }

    /// Whether nothing is waiting or being written.
    pub(super) const fn are_idle(&self) -> bool {
        self.under_way == 0
    }

    /// Takes an object; there has to be room.
    pub(super) async fn take(&mut self, target: Arc<Target>, judged: Judged) {
        // Nobody is there to take it only where a writer has ended early, which `next` tells.
        let _ = self.jobs.send((target, judged)).await;
        self.under_way += 1;
    }

    /// The next object that is done with. Never comes where they are idle.
    ///
    /// # Errors
    /// When a writer has ended early.
    pub(super) async fn next(&mut self) -> Result<Written, JoinError> {
        if self.are_idle() {
            std::future::pending::<()>().await;
        }
        tokio::select! {
            // Results first: a writer that ended may have left some.
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
    desk: Arc<Desk>,
    queue: Arc<Mutex<mpsc::Receiver<Job>>>,
    results: mpsc::Sender<Written>,
) {
    loop {
        let job = queue.lock().await.recv().await;
        let Some((target, judged)) = job else { return };
        if results.send(Arc::clone(&desk).write(target, judged).await).await.is_err() {
            return;
        }
    }
}
