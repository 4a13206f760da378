//! Failed TLS handshakes: reasons, counters and rate-limited log lines.
//!
//! The common failure in real clusters: the `caBundle` of the registration is not the CA of the
//! certificate, so the API server does not trust the server. Only this log and the API server's log
//! show it. One line per request would fill the log.

use std::collections::HashMap;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::telemetry::Metrics;

/// The handshake took too long.
pub(super) const TIMEOUT: &str = "timeout";

/// The client closed the connection: a port scan or a TCP health check.
const CLOSED: &str = "closed";

/// The reason of a failed handshake, as the metric names it.
pub(super) fn reason(error: &io::Error) -> &'static str {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        None => CLOSED,
        // The client rejected the server's certificate.
        Some(rustls::Error::AlertReceived(_)) => "not_trusted",
        // `--client-ca` requires one.
        Some(rustls::Error::NoCertificatesPresented) => "no_client_certificate",
        // The client CA did not issue it.
        Some(rustls::Error::InvalidCertificate(_)) => "bad_client_certificate",
        // The client does not use TLS, or no common version or cipher suite.
        Some(_) => "protocol",
    }
}

/// Counts failures and logs each reason at most once per minute. Holds when each was logged.
#[derive(Debug, Default)]
pub(super) struct HandshakeLog(Mutex<HashMap<&'static str, Instant>>);

impl HandshakeLog {
    pub(super) fn record(
        &self,
        reason: &'static str,
        error: &dyn std::error::Error,
        metrics: &Metrics,
    ) {
        metrics.handshake_failure(reason);
        // Port scans and health checks are normal.
        if reason != CLOSED && self.may_log(reason, Instant::now()) {
            tracing::warn!(reason, %error, "TLS handshake failed; this reason is logged again in 60 s");
        } else {
            tracing::debug!(reason, %error, "TLS handshake failed");
        }
    }

    fn may_log(&self, reason: &'static str, now: Instant) -> bool {
        let mut logged = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let may_log = logged.get(reason).is_none_or(|last| now.duration_since(*last) >= QUIET);
        if may_log {
            logged.insert(reason, now);
        }
        may_log
    }
}

/// Between two log lines with the same reason.
const QUIET: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_logged_once_per_minute() {
        let (log, start) = (HandshakeLog::default(), Instant::now());
        let logs = |reason, second| log.may_log(reason, start + Duration::from_secs(second));
        assert!(logs("not_trusted", 0));
        assert!(!logs("not_trusted", 59));
        assert!(logs("protocol", 59));
        assert!(logs("not_trusted", 60));
    }
}
