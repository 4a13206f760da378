//! What all parts of the manager use.

use std::error::Error;
use std::sync::Arc;

use jiff::Timestamp;
use tokio::sync::watch;

use super::exchange::Exchange;
use super::options::ManagerOptions;
use statusgate_cluster::Cluster;
use statusgate_core::causes::with_causes;
use statusgate_server::PolicyStore;
use statusgate_server::telemetry::Metrics;

/// What all parts of the manager use.
#[derive(Clone)]
pub struct Context {
    /// The API server.
    pub cluster: Cluster,
    /// What the server manages.
    pub options: Arc<ManagerOptions>,
    /// The policies in use.
    pub store: PolicyStore,
    /// Where the other parts are.
    pub exchange: Arc<Exchange>,
    /// The metrics of the server.
    pub metrics: Arc<Metrics>,
    /// The wall clock.
    pub clock: fn() -> Timestamp,
}

impl Context {
    /// The same for one part: its requests count for this purpose.
    #[must_use]
    pub fn counting(&self, purpose: &'static str) -> Self {
        let metrics = Arc::clone(&self.metrics);
        let cluster = self.cluster.reporting(move |code| metrics.api_request(purpose, code));
        Self { cluster, ..self.clone() }
    }

    /// The time.
    pub(super) fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// Logs and counts an event of a watch, or a failure.
    pub(super) fn watched<T>(
        &self,
        event: &Result<T, String>,
        watch: &'static str,
        what: &str,
        trouble: &mut Trouble,
    ) {
        match event {
            Ok(_) => {
                trouble.end(what);
                self.metrics.watch_event(watch, self.now().as_second());
            }
            Err(error) => {
                trouble.begin_with(what, error.clone());
                self.metrics.watch_failed(watch);
            }
        }
    }
}

/// Publishes a value, unless it is known.
pub(super) fn set_if_changed<T: PartialEq>(sender: &watch::Sender<T>, value: T) {
    sender.send_if_modified(|known| {
        let changed = *known != value;
        *known = value;
        changed
    });
}

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
