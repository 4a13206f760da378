//! How long certificates are valid, and when they are replaced.

use jiff::{SignedDuration, Timestamp};

use crate::Validity;

/// The times of the rotation. All follow from the lifetime of a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetimes {
    /// From the issue of a leaf to its expiry.
    pub leaf: SignedDuration,
    /// From the creation of an authority to its expiry.
    pub authority: SignedDuration,
    /// How long an authority has to be in every caBundle before a leaf of it is served.
    pub settle: SignedDuration,
    /// How long this server has to serve a leaf of the newest authority before it removes older ones.
    pub grace: SignedDuration,
}

impl Lifetimes {
    /// The times for leaves with this lifetime.
    ///
    /// An authority lives four times as long. It has to outlive its leaves, and a leaf is often replaced
    /// without touching the registrations. But its key is in the Secret, so a copy of it should not be
    /// useful for years.
    pub fn of_leaf(leaf: SignedDuration) -> Self {
        Self {
            leaf,
            authority: leaf * 4,
            settle: SETTLE.min(leaf / 12),
            grace: GRACE.min(leaf / 6),
        }
    }

    /// When to replace a leaf: when a third of its lifetime is left, as cert-manager does. A leaf with
    /// more time than this server would give it is far from that, so two replicas with different
    /// lifetimes do not replace each other's leaf.
    pub fn leaf_due(&self, leaf: Validity) -> Timestamp {
        earlier(leaf.not_after, self.leaf / 3)
    }

    /// When to replace an authority: when it could not sign a leaf any more that outlives the next
    /// renewal. So a leaf never has to end with its authority.
    pub fn authority_due(&self, authority: Validity) -> Timestamp {
        earlier(authority.not_after, self.leaf + self.leaf / 3)
    }

    /// When the leaf of a replica has expired at the latest, if the replica last read the Secret at this time.
    pub fn last_handshake(&self, read: Timestamp) -> Timestamp {
        later(read, self.leaf)
    }

    /// The validity of a new leaf, from an authority with this validity.
    pub(super) fn new_leaf(
        &self,
        old: Option<Validity>,
        authority: Validity,
        now: Timestamp,
    ) -> Validity {
        let validity = starting(now, self.leaf, old);
        Validity { not_after: validity.not_after.min(authority.not_after), ..validity }
    }

    /// The validity of a new authority.
    pub(super) fn new_authority(&self, old: Option<Validity>, now: Timestamp) -> Validity {
        starting(now, self.authority, old)
    }
}

/// From now on for a lifetime.
///
/// The start is set back by half of the lifetime, so that a certificate survives a clock that is
/// corrected backwards. If the clock says that the old certificate is not valid, this clock or the
/// one of its issuer is wrong: the new certificate is valid in both times. So two replicas with
/// different clocks do not replace each other's certificate again and again.
fn starting(now: Timestamp, lifetime: SignedDuration, old: Option<Validity>) -> Validity {
    let (not_before, not_after) = (earlier(now, lifetime / 2), later(now, lifetime));
    match old {
        Some(old) if !old.contains(now) => Validity {
            not_before: old.not_before.min(not_before),
            not_after: old.not_after.max(not_after),
        },
        _ => Validity { not_before, not_after },
    }
}

/// Saturating, because a Secret may contain any time.
fn earlier(time: Timestamp, by: SignedDuration) -> Timestamp {
    time.checked_sub(by).unwrap_or(Timestamp::MIN)
}

fn later(time: Timestamp, by: SignedDuration) -> Timestamp {
    time.checked_add(by).unwrap_or(Timestamp::MAX)
}

/// An API server sees a changed registration within a second, and a slow one within some seconds.
const SETTLE: SignedDuration = SignedDuration::from_secs(30);

/// Two durations of a Lease: after them, every replica that serves an older leaf has a Lease that shows it.
const GRACE: SignedDuration = SignedDuration::from_secs(80);

#[cfg(test)]
mod tests {
    use super::*;

    impl Default for Lifetimes {
        fn default() -> Self {
            Self::of_leaf(SignedDuration::from_hours(90 * 24))
        }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn renewal_starts_before_expiry_is_reported_as_near() {
        use crate::Expiry;
        let lifetimes = Lifetimes::default();
        let now = at(1_800_000_000);
        let authority = lifetimes.new_authority(None, now);
        let leaf = lifetimes.new_leaf(None, authority, now);
        for (validity, due) in
            [(leaf, lifetimes.leaf_due(leaf)), (authority, lifetimes.authority_due(authority))]
        {
            assert_eq!(validity.expiry(due), Expiry::Far);
        }
    }

    #[test]
    fn short_lifetimes_shorten_the_waits() {
        let lifetimes = Lifetimes::of_leaf(SignedDuration::from_secs(12));
        assert_eq!(lifetimes.settle, SignedDuration::from_secs(1));
        assert_eq!(lifetimes.grace, SignedDuration::from_secs(2));
        assert_eq!(Lifetimes::default().settle, SETTLE);
    }

    #[test]
    fn a_certificate_that_replaces_an_invalid_one_is_valid_in_both_times() {
        let lifetime = SignedDuration::from_secs(100);
        let old = Validity { not_before: at(1000), not_after: at(1150) };
        let starting = |now| starting(at(now), lifetime, Some(old));
        assert_eq!(starting(1120), Validity { not_before: at(1070), not_after: at(1220) });
        assert_eq!(starting(5000), Validity { not_before: at(1000), not_after: at(5100) });
        assert_eq!(starting(500), Validity { not_before: at(450), not_after: at(1150) });
    }
}
