//! A limit on concurrent use: of requests, or of bytes.

use std::sync::Arc;
#[cfg(not(test))]
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

#[cfg(test)]
use loom::sync::atomic::AtomicUsize;

/// The rest of a fixed amount.
///
/// `tokio::sync::Semaphore` is for tasks that wait. Here no request waits (it gets a 503), and
/// returning a permit would take the lock of the wait queue for every request.
#[derive(Debug)]
pub(super) struct Budget(AtomicUsize);

impl Budget {
    pub(super) fn new(amount: usize) -> Arc<Self> {
        Arc::new(Self(AtomicUsize::new(amount)))
    }

    /// Takes an amount if that much is left.
    pub(super) fn take(self: &Arc<Self>, amount: usize) -> Option<Share> {
        let mut share = Share { budget: Arc::clone(self), amount: 0 };
        share.grow(amount).then_some(share)
    }
}

/// A part of a budget. Dropping it returns it.
#[derive(Debug)]
pub(super) struct Share {
    budget: Arc<Budget>,
    amount: usize,
}

impl Share {
    /// Takes more. Returns `false` and takes nothing if less is left.
    ///
    /// `Relaxed` is enough: the number guards no other memory.
    pub(super) fn grow(&mut self, amount: usize) -> bool {
        let taken =
            self.budget.0.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(amount)).is_ok();
        if taken {
            self.amount += amount;
        }
        taken
    }

    /// Takes more, or returns a part. Returns `false` and takes nothing if less is left.
    pub(super) fn resize(&mut self, amount: usize) -> bool {
        let Some(surplus) = self.amount.checked_sub(amount) else {
            return self.grow(amount - self.amount);
        };
        self.budget.0.fetch_add(surplus, Relaxed);
        self.amount = amount;
        true
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.0.fetch_add(self.amount, Relaxed);
    }
}

/// loom runs each test once per order in which its threads can reach the number.
#[cfg(test)]
mod tests {
    use loom::thread;

    use super::*;

    #[test]
    fn shares_never_exceed_the_budget_and_return_on_drop() {
        loom::model(|| {
            let budget = Budget::new(10);
            let mut share = budget.take(4).unwrap();
            assert!(share.grow(6));
            assert!(!share.grow(1));
            assert!(budget.take(1).is_none());
            assert!(share.resize(3) && budget.take(7).is_some());
            assert!(share.resize(10) && !share.resize(11));
            drop(share);
            assert!(budget.take(10).is_some());
        });
    }

    #[test]
    fn concurrent_shares_never_exceed_the_budget_and_none_is_lost() {
        loom::model(|| {
            let budget = Budget::new(10);
            let in_use = Arc::new(std::sync::atomic::AtomicUsize::new(0));
            let threads = [6, 5].map(|amount| {
                let (budget, in_use) = (Arc::clone(&budget), Arc::clone(&in_use));
                thread::spawn(move || {
                    let Some(mut share) = budget.take(amount) else { return };
                    share.grow(2);
                    let taken = share.amount;
                    assert!(in_use.fetch_add(taken, Relaxed) + taken <= 10);
                    thread::yield_now();
                    in_use.fetch_sub(taken, Relaxed);
                    drop(share);
                })
            });
            for thread in threads {
                thread.join().unwrap();
            }
            assert!(budget.take(10).is_some(), "all shares were returned");
        });
    }
}
