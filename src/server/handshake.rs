//! Handshakes that fail: why, how often, and when to tell.
//!
//! The common one in real clusters is that the API server does not trust us: the `caBundle` of the
//! registration is not the CA of the certificate. It shows nowhere but here and in the API server's
//! own log, so it has to be told; but once per request it would fill the log.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::telemetry::Metrics;

/// Why a handshake failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// Not finished in time.
    Timeout,
    /// The client went away: port scans, TCP health checks.
    Closed,
    /// The client does not like our certificate.
    NotTrusted,
    /// The client showed no certificate and has to.
    NoClientCertificate,
    /// The client's certificate is none of ours.
    BadClientCertificate,
    /// What was said is not TLS, or has nothing in common with ours.
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

/// Counts failures, and tells of each kind at most once a minute.
#[derive(Debug)]
pub(super) struct HandshakeLog {
    start: Instant,
    /// For each kind, the second since the start from which it may be told again.
    quiet_until: [AtomicU64; Failure::COUNT],
}

impl HandshakeLog {
    pub(super) fn new() -> Self {
        Self { start: Instant::now(), quiet_until: Default::default() }
    }

    pub(super) fn note(&self, failure: Failure, error: &dyn std::error::Error, metrics: &Metrics) {
        let reason = failure.name();
        metrics.handshake_failure(reason);
        // Those who just leave are no news at any rate.
        if failure != Failure::Closed && self.may_tell(failure, self.start.elapsed()) {
            tracing::warn!(reason, %error, "a TLS handshake failed; the next such is told in 60 s");
        } else {
            tracing::debug!(reason, %error, "a TLS handshake failed");
        }
    }

    fn may_tell(&self, failure: Failure, since_start: Duration) -> bool {
        let now = since_start.as_secs();
        self.quiet_until.get(failure as usize).is_some_and(|until| {
            until
                .fetch_update(Relaxed, Relaxed, |until| (until <= now).then_some(now + QUIET))
                .is_ok()
        })
    }
}

/// Seconds between two lines of one kind.
const QUIET: u64 = 60;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_told_once_a_minute() {
        let log = HandshakeLog::new();
        let tell = |failure, second| log.may_tell(failure, Duration::from_secs(second));
        assert!(tell(Failure::NotTrusted, 0));
        assert!(!tell(Failure::NotTrusted, 59));
        assert!(tell(Failure::Protocol, 59));
        assert!(tell(Failure::NotTrusted, 60));
    }
}
