//! The readiness of a server: it is ready when nothing blocks it.

use std::sync::{Arc, Mutex, PoisonError};

/// The reasons why a server is not ready, as `/readyz` lists them.
#[derive(Clone, Debug, Default)]
pub struct Readiness(Arc<Mutex<Vec<&'static str>>>);

impl Readiness {
    /// A server that is not ready for these reasons.
    pub fn blocked_by<const N: usize>(reasons: [&'static str; N]) -> Self {
        Self(Arc::new(Mutex::new(reasons.into())))
    }

    /// Adds a reason.
    pub fn block(&self, reason: &'static str) {
        self.lock().push(reason);
    }

    /// Removes a reason.
    pub fn unblock(&self, reason: &'static str) {
        self.lock().retain(|known| *known != reason);
    }

    pub(super) fn reasons(&self) -> Vec<&'static str> {
        self.lock().clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<&'static str>> {
        // A panic cannot leave a list of words half-changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
