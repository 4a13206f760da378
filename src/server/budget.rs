//! A number of something that may be held at once: requests, or bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// What is left of a fixed amount.
///
/// Not a `tokio::sync::Semaphore`: nobody ever waits here, one who gets nothing is answered 503 at
/// once; and giving back a semaphore's permit takes its lock of waiters at every request.
#[derive(Debug)]
pub(crate) struct Budget(AtomicUsize);

impl Budget {
    pub(crate) fn new(amount: usize) -> Arc<Self> {
        Arc::new(Self(AtomicUsize::new(amount)))
    }

    /// Takes an amount, if that much is left.
    pub(crate) fn take(self: &Arc<Self>, amount: usize) -> Option<Share> {
        let mut share = Share { budget: Arc::clone(self), amount: 0 };
        share.grow(amount).then_some(share)
    }

    #[cfg(test)]
    fn left(&self) -> usize {
        self.0.load(Relaxed)
    }
}

/// A part of a budget. Dropping it gives it back.
#[derive(Debug)]
pub(crate) struct Share {
    budget: Arc<Budget>,
    amount: usize,
}

impl Share {
    /// Takes more; `false` takes nothing.
    ///
    /// `Relaxed` is enough: the number guards no other memory, it only must never go below zero.
    pub(crate) fn grow(&mut self, amount: usize) -> bool {
        let taken =
            self.budget.0.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(amount)).is_ok();
        if taken {
            self.amount += amount;
        }
        taken
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.0.fetch_add(self.amount, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_comes_back_and_never_more_is_given_than_there_is() {
        let budget = Budget::new(10);
        let mut share = budget.take(4).unwrap();
        assert!(share.grow(6));
        assert!(!share.grow(1));
        assert!(budget.take(1).is_none());
        drop(share);
        assert_eq!(budget.left(), 10);
    }
}
