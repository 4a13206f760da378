//! Errors of a loop that tries again until it succeeds.

use std::error::Error;

use crate::telemetry::with_causes;

/// The last error of a loop, so that each different one is logged once.
#[derive(Debug, Default)]
pub(super) struct Trouble(String);

impl Trouble {
    /// Logs an error that is not the last one. `what` is the failed action.
    pub(super) fn begin(&mut self, what: &str, error: &(dyn Error + 'static)) {
        self.begin_with(what, with_causes(error));
    }

    pub(super) fn begin_with(&mut self, what: &str, error: String) {
        if self.0 != error {
            tracing::warn!(error, "cannot {what}: the server tries again");
            self.0 = error;
        }
    }

    /// Logs the end of the errors.
    pub(super) fn end(&mut self, what: &str) {
        if !self.0.is_empty() {
            tracing::info!("can {what} again");
            self.0.clear();
        }
    }
}
