//! What can be seen of a running server: numbers for Prometheus and lines for people.
//!
//! A leaf: nothing of ours is used here, so that every other folder may count and log. Whatever is
//! counted on the way of a request is an atomic add on a counter that was looked up beforehand;
//! whatever is logged goes through a queue that drops lines rather than wait.

use std::fmt;

pub mod audit;
pub mod latency;
pub mod logs;
pub mod metrics;

pub use audit::{AuditMetrics, AuditNumbers, PolicyLabels};
pub use latency::Latency;
pub use logs::{Format, Logs};
pub use metrics::{Code, Decision, DecisionCounters, Metrics, WebhookMetrics};

/// What `/metrics` shows.
pub trait Scrape: fmt::Debug + Send + Sync {
    /// OpenMetrics text.
    ///
    /// # Errors
    /// Never in practice: writing to a `String` does not fail.
    fn encode(&self) -> Result<String, fmt::Error>;
}
