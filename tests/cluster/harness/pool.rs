//! Control planes for tests that need the whole cluster.

use std::ops::Deref;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::plane::Plane;

/// Each costs memory, and CPU for its start.
const MOST: usize = 4;

/// Runs a test in an empty cluster that no other test uses at the same time.
pub(crate) fn in_own_cluster(test: impl AsyncFnOnce(&'static Plane)) {
    let plane = Taken::take();
    plane.runtime.block_on(async {
        plane.install().await;
        plane.empty().await;
        test(plane.0).await;
    });
}

struct Pool {
    free: Vec<&'static Plane>,
    running: usize,
}

static POOL: Mutex<Pool> = Mutex::new(Pool { free: Vec::new(), running: 0 });
static CHANGED: Condvar = Condvar::new();

fn pool() -> MutexGuard<'static, Pool> {
    POOL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The control plane of one test.
struct Taken(&'static Plane);

impl Taken {
    fn take() -> Self {
        let all_in_use = |pool: &mut Pool| pool.free.is_empty() && pool.running == MOST;
        let waiting = CHANGED.wait_while(pool(), all_in_use);
        let mut pool = waiting.unwrap_or_else(PoisonError::into_inner);
        if let Some(plane) = pool.free.pop() {
            return Self(plane);
        }
        pool.running += 1;
        drop(pool);
        // It ends with this process.
        Self(Box::leak(Box::new(Plane::start())))
    }
}

impl Deref for Taken {
    type Target = Plane;

    fn deref(&self) -> &Plane {
        self.0
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // It may be stopped or damaged.
            pool().running -= 1;
        } else {
            pool().free.push(self.0);
        }
        CHANGED.notify_one();
    }
}
