//! How far a certificate is from its end.

use jiff::Timestamp;

/// Where in its life a certificate is. Compare by wall clock, at every poll: a monotonic timer set
/// for the end would be wrong after a suspended laptop or a paused virtual machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// Nothing to say.
    Far,
    /// Whoever renews it is late.
    Near,
    /// API servers refuse it.
    Over,
}

impl Expiry {
    /// Judges a life by its bounds.
    ///
    /// Near is the last sixth: cert-manager renews when a third is left, kubelet-like rotation
    /// between 30 and 10 percent. A fixed number of days would cry wolf over short-lived
    /// certificates and be late for none.
    #[must_use]
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
    fn the_last_sixth_of_a_life_is_near_its_end() {
        let at = |second| Timestamp::from_second(second).unwrap();
        assert_eq!(Expiry::of(at(0), at(600), at(0)), Expiry::Far);
        assert_eq!(Expiry::of(at(0), at(600), at(500)), Expiry::Far);
        assert_eq!(Expiry::of(at(0), at(600), at(501)), Expiry::Near);
        assert_eq!(Expiry::of(at(0), at(600), at(600)), Expiry::Over);
    }
}
