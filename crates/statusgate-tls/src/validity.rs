//! When a certificate is valid, and how close it is to its expiry.

use std::time::Duration;

use jiff::Timestamp;
use x509_parser::prelude::{FromDer, X509Certificate};

/// When a certificate is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Validity {
    /// The first second.
    pub not_before: Timestamp,
    /// The second after the last.
    pub not_after: Timestamp,
}

/// How close a certificate is to its expiry. Compare by wall clock at every poll: a monotonic timer
/// would be wrong after a laptop or a virtual machine was suspended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// No action is needed.
    Far,
    /// The renewal is late.
    Near,
    /// The certificate has expired; API servers reject it.
    Over,
}

impl Validity {
    /// From now on for a lifetime.
    pub fn from_now(lifetime: Duration, now: Timestamp) -> Self {
        Self {
            not_before: now.checked_sub(CLOCK_SKEW).unwrap_or(Timestamp::UNIX_EPOCH),
            not_after: now.checked_add(lifetime).unwrap_or(Timestamp::MAX),
        }
    }

    /// That of an X.509 certificate, as DER.
    pub fn of(certificate: &[u8]) -> Option<Self> {
        let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
        Self::in_certificate(&parsed)
    }

    /// That of an X.509 certificate.
    pub(super) fn in_certificate(certificate: &X509Certificate<'_>) -> Option<Self> {
        let validity = certificate.validity();
        Some(Self {
            not_before: Timestamp::from_second(validity.not_before.timestamp()).ok()?,
            not_after: Timestamp::from_second(validity.not_after.timestamp()).ok()?,
        })
    }

    /// Whether a certificate is valid.
    pub fn contains(self, now: Timestamp) -> bool {
        self.not_before <= now && now < self.not_after
    }

    /// Near is the last sixth of the lifetime: cert-manager renews when a third is left, kubelet
    /// when 10 to 30 percent are left. A fixed number of days would warn too early about
    /// short-lived certificates.
    pub fn expiry(self, now: Timestamp) -> Expiry {
        let life = self.not_after.as_second() - self.not_before.as_second();
        let left = self.not_after.as_second() - now.as_second();
        if left <= 0 {
            Expiry::Over
        } else if left < life / 6 {
            Expiry::Near
        } else {
            Expiry::Far
        }
    }
}

/// The allowed clock difference between the machines that issue and verify a certificate.
/// Kubernetes' own tools use five minutes.
const CLOCK_SKEW: Duration = Duration::from_secs(300);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_sixth_of_a_lifetime_is_near() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let validity = Validity { not_before: at(0), not_after: at(600) };
        assert_eq!(validity.expiry(at(0)), Expiry::Far);
        assert_eq!(validity.expiry(at(500)), Expiry::Far);
        assert_eq!(validity.expiry(at(501)), Expiry::Near);
        assert_eq!(validity.expiry(at(600)), Expiry::Over);
    }
}
