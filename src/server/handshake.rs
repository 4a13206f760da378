//! Failed TLS handshakes: reasons, counters and rate-limited log lines.
//!
//! The common failure in real clusters: the `caBundle` of the registration is not the CA of the
//! certificate, so the API server does not trust the server. Only this log and the API server's log
//! show it. One line per request would fill the log.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::telemetry::Metrics;

/// The reason of a failed handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// The handshake took too long.
    Timeout,
    /// The client closed the connection: a port scan or a TCP health check.
    Closed,
    /// The client rejected the server's certificate.
    NotTrusted,
    /// The client presented no certificate, but `--client-ca` requires one.
    NoClientCertificate,
    /// The client CA did not issue the client's certificate.
    BadClientCertificate,
    /// The client does not use TLS, or no common version or cipher suite.
    Protocol,
}

impl Failure {
    const COUNT: usize = 6;

    pub(super) fn of(error: &io::Error) -> Self {
        let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
        match tls {
            None => Self::Closed,
            Some(rustls::Error::AlertReceived(_)) => Self::NotTrusted,
            Some(rustls::Error::NoCertificatesPresented) => Self::NoClientCertificate,
            Some(rustls::Error::InvalidCertificate(_)) => Self::BadClientCertificate,
            Some(_) => Self::Protocol,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Closed => "closed",
            Self::NotTrusted => "not_trusted",
            Self::NoClientCertificate => "no_client_certificate",
            Self::BadClientCertificate => "bad_client_certificate",
            Self::Protocol => "protocol",
        }
    }
}

/// Counts failures and logs each reason at most once per minute.
#[derive(Debug)]
pub(super) struct HandshakeLog {
    start: Instant,
    /// For each reason, the second since the start from which it may be logged again.
    quiet_until: [AtomicU64; Failure::COUNT],
}

impl HandshakeLog {
    pub(super) fn new() -> Self {
        Self { start: Instant::now(), quiet_until: Default::default() }
    }

    pub(super) fn record(
        &self,
        failure: Failure,
        error: &dyn std::error::Error,
        metrics: &Metrics,
    ) {
        let reason = failure.name();
        metrics.handshake_failure(reason);
        // Port scans and health checks are normal.
        if failure != Failure::Closed && self.may_log(failure, self.start.elapsed()) {
            tracing::warn!(reason, %error, "TLS handshake failed; this reason is logged again in 60 s");
        } else {
            tracing::debug!(reason, %error, "TLS handshake failed");
        }
    }

    fn may_log(&self, failure: Failure, since_start: Duration) -> bool {
        let now = since_start.as_secs();
        self.quiet_until.get(failure as usize).is_some_and(|until| {
            until
                .fetch_update(Relaxed, Relaxed, |until| (until <= now).then_some(now + QUIET))
                .is_ok()
        })
    }
}

/// Seconds between two log lines with the same reason.
const QUIET: u64 = 60;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_logged_once_per_minute() {
        let log = HandshakeLog::new();
        let logs = |failure, second| log.may_log(failure, Duration::from_secs(second));
        assert!(logs(Failure::NotTrusted, 0));
        assert!(!logs(Failure::NotTrusted, 59));
        assert!(logs(Failure::Protocol, 59));
        assert!(logs(Failure::NotTrusted, 60));
    }
}
