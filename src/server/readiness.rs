//! When the server may be sent requests: when everything that has to be there is.
//!
//! Readiness by handles, not by flags set in the right order: whoever has to be ready holds a
//! [`Gate`]; the server is ready when all gates are open. A component that dies before opening its
//! gate leaves it closed.

use std::sync::{Arc, Mutex, PoisonError};

/// What is still waited for.
#[derive(Clone, Debug, Default)]
pub(super) struct Readiness(Arc<Mutex<Vec<&'static str>>>);

impl Readiness {
    /// One more thing to wait for. `reason` is what `/readyz` says until then.
    pub(super) fn gate(&self, reason: &'static str) -> Gate {
        self.close(reason);
        Gate { readiness: self.clone(), reason }
    }

    /// Not ready any more, and never again.
    pub(super) fn close(&self, reason: &'static str) {
        self.waiting().push(reason);
    }

    /// Why the server is not ready; empty when it is.
    pub(super) fn reasons(&self) -> Vec<&'static str> {
        self.waiting().clone()
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, Vec<&'static str>> {
        // A list of words cannot be left half-changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Held by whoever has to become ready.
#[derive(Debug)]
#[must_use = "a gate that is dropped stays closed"]
pub(super) struct Gate {
    readiness: Readiness,
    reason: &'static str,
}

impl Gate {
    /// It is there.
    pub(super) fn open(self) {
        self.readiness.waiting().retain(|reason| *reason != self.reason);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_is_when_all_gates_are_open_and_a_dropped_one_stays_closed() {
        let readiness = Readiness::default();
        let policies = readiness.gate("policies are not loaded");
        let certificate = readiness.gate("the certificate is not loaded");
        policies.open();
        assert_eq!(readiness.reasons(), ["the certificate is not loaded"]);
        drop(certificate);
        assert_eq!(readiness.reasons(), ["the certificate is not loaded"]);
    }
}
