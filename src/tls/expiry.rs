//! The remaining lifetime of a certificate.

use jiff::Timestamp;

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

impl Expiry {
    /// Near is the last sixth of the lifetime: cert-manager renews when a third is left, kubelet
    /// when 10 to 30 percent are left. A fixed number of days would warn too early about
    /// short-lived certificates.
    pub fn of(not_before: Timestamp, not_after: Timestamp, now: Timestamp) -> Self {
        let life = not_after.as_second() - not_before.as_second();
        let left = not_after.as_second() - now.as_second();
        if left <= 0 {
            Self::Over
        } else if left < life / 6 {
            Self::Near
        } else {
            Self::Far
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_sixth_of_a_lifetime_is_near() {
        let at = |second| Timestamp::from_second(second).unwrap();
        assert_eq!(Expiry::of(at(0), at(600), at(0)), Expiry::Far);
        assert_eq!(Expiry::of(at(0), at(600), at(500)), Expiry::Far);
        assert_eq!(Expiry::of(at(0), at(600), at(501)), Expiry::Near);
        assert_eq!(Expiry::of(at(0), at(600), at(600)), Expiry::Over);
    }
}
