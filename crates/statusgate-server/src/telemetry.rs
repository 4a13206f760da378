//! Metrics, logs and traces of a running server.
//!
//! This folder uses no other folder. On the path of a request,
//! counting is an atomic add on a counter that was looked up when the policies were loaded, and logging never blocks.

use std::fmt;

pub mod audit;
pub mod histogram;
pub mod lines;
pub mod logs;
pub mod metrics;
pub mod policies;
mod register;
pub mod traces;
pub mod writes;

pub use audit::{AuditGauge, AuditMetrics, GaugeLabels};
pub use histogram::Histogram;
pub use lines::LostLines;
pub use logs::{FilterFile, Format, Logs};
pub use metrics::{Metrics, ServerMetrics, WebhookMetrics};
pub use policies::{Count, Counters, Decision, Declared};
pub use writes::Writes;

/// The content of `/metrics`.
pub trait Scrape: fmt::Debug + Send + Sync {
    /// Returns OpenMetrics text.
    ///
    /// # Errors
    /// Never in practice: writing to a `String` does not fail.
    fn encode(&self) -> Result<String, fmt::Error>;
}
